/* NVRTC: kernels compiled at run time, and kept on disk.
 *
 * It opens no files: what a text includes is handed over with it (texts.h), and in place of the
 * C library's headers the few names of them that our kernels use.
 *
 * SPDX-License-Identifier: MIT */
#include "nvrtc-code.h"

#include "disk-cache.h"
#include "libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvrtc.h>

#define FUNCTIONS(X)                                                                           \
  X (nvrtcVersion)                                                                             \
  X (nvrtcGetErrorString)                                                                      \
  X (nvrtcCreateProgram)                                                                       \
  X (nvrtcDestroyProgram)                                                                      \
  X (nvrtcCompileProgram)                                                                      \
  X (nvrtcGetCUBINSize)                                                                        \
  X (nvrtcGetCUBIN)                                                                            \
  X (nvrtcGetProgramLogSize)                                                                   \
  X (nvrtcGetProgramLog)

static struct
{
  bool tried, here;
  int major, minor;
#define FIELD(name) __typeof__ (name) *name;
  FUNCTIONS (FIELD)
#undef FIELD
} rtc;

bool
td_cuda_nvrtc_here (void)
{
  void *library;

  if (rtc.tried)
    return rtc.here;
  rtc.tried = true;
  library = td_cuda_library ("libnvrtc.so.13");
  if (library == NULL)
    return false;
#define FIND(name)                                                                             \
  *(void **)&rtc.name = dlsym (library, #name);                                                \
  if (rtc.name == NULL)                                                                        \
    return false;
  FUNCTIONS (FIND)
#undef FIND
  return rtc.here = rtc.nvrtcVersion (&rtc.major, &rtc.minor) == NVRTC_SUCCESS;
}

/* In place of the C library's. */
static const char numbers[] = "typedef signed char int8_t;\n"
                              "typedef unsigned char uint8_t;\n"
                              "typedef short int16_t;\n"
                              "typedef unsigned short uint16_t;\n"
                              "typedef int int32_t;\n"
                              "typedef unsigned uint32_t;\n"
                              "typedef long long int64_t;\n"
                              "typedef unsigned long long uint64_t;\n"
                              "typedef unsigned long long uintptr_t;\n"
                              "#define INT32_MIN (-2147483647 - 1)\n"
                              "#define INT32_MAX 2147483647\n"
                              "#define INT64_MIN (-9223372036854775807LL - 1)\n"
                              "#define INT64_MAX 9223372036854775807LL\n";
static const char mathematics[] = "#define INFINITY __int_as_float (0x7F800000)\n"
                                  "#define NAN __int_as_float (0x7FFFFFFF)\n";

static const TdCudaText library_texts[]
    = { { "limits.h", "#define INT_MAX 2147483647\n" },
        { "math.h", mathematics },
        { "stdarg.h", "typedef char *va_list;\n" },
        { "stdbool.h", "" },
        { "stddef.h", "" },
        { "stdint.h", numbers },
        { "string.h", "" },
        { "kernel.cuh", "" }, /* of fused groups, which include count.cuh without it */
        { NULL, NULL } };

enum
{
  MAX_HEADERS = 64
};

/* The headers of a source: its own, which come first, then the C library's. */
typedef struct
{
  const char *names[MAX_HEADERS], *texts[MAX_HEADERS];
  int n;
} Headers;

static void
headers_add (Headers *h, const TdCudaText *texts)
{
  for (; texts->name != NULL && h->n < MAX_HEADERS; texts++)
    {
      bool there = false;

      for (int i = 0; i < h->n; i++)
        there |= strcmp (h->names[i], texts->name) == 0;
      if (there)
        continue;
      h->names[h->n] = texts->name;
      h->texts[h->n++] = texts->text;
    }
}

static Headers
headers_of (const TdCudaSource *source)
{
  Headers h = { .n = 0 };

  headers_add (&h, source->headers);
  headers_add (&h, library_texts);
  return h;
}

typedef struct
{
  char text[40];
} Architecture;

static Architecture
architecture_of (const TdCudaSource *source)
{
  Architecture a;

  snprintf (a.text, sizeof a.text, "--gpu-architecture=sm_%d%d", source->major, source->minor);
  return a;
}

/* As nvcc compiles the images: no fused multiplication and addition, which keeps the CPU's
 * bits. Warnings 1097 and 20044 are about declarations in the engine's headers: how functions
 * are exported, and variables of the host. */
static bool
compile (const TdCudaSource *source, TdCudaCode *code)
{
  const Architecture architecture = architecture_of (source);
  const char *const options[]
      = { architecture.text, "--std=c++17",        "--fmad=false",
          "-default-device", "--ptxas-options=-v", "--diag-suppress=1097,20044" };
  const Headers h = headers_of (source);
  nvrtcProgram program;
  nvrtcResult result;
  size_t n = 0;

  result = rtc.nvrtcCreateProgram (&program, source->text, "kernel.cu", h.n, h.texts, h.names);
  if (result != NVRTC_SUCCESS)
    {
      code->log = strdup (rtc.nvrtcGetErrorString (result));
      return false;
    }
  result = rtc.nvrtcCompileProgram (program, sizeof options / sizeof options[0], options);
  if (rtc.nvrtcGetProgramLogSize (program, &n) == NVRTC_SUCCESS)
    code->log = calloc (1, n + 1);
  if (code->log != NULL)
    rtc.nvrtcGetProgramLog (program, code->log);
  if (result == NVRTC_SUCCESS)
    result = rtc.nvrtcGetCUBINSize (program, &code->bytes);
  if (result == NVRTC_SUCCESS)
    code->data = malloc (code->bytes + 1);
  if (code->data != NULL && rtc.nvrtcGetCUBIN (program, code->data) != NVRTC_SUCCESS)
    {
      free (code->data);
      code->data = NULL;
    }
  rtc.nvrtcDestroyProgram (&program);
  return code->data != NULL;
}

/* All that the code depends on: compiler, architecture, every text.  *Owner*: the caller, free;
 * NULL: no memory, and nothing is kept. */
static char *
key_of (const TdCudaSource *source)
{
  const Headers h = headers_of (source);
  const size_t room = strlen (source->text) + 128;
  char *key = malloc (room);
  uint64_t hash = TD_CACHE_HASH;

  for (int i = 0; i < h.n; i++)
    hash = td_cuda_cache_hash (hash, h.texts[i], strlen (h.texts[i]) + 1);
  if (key != NULL)
    snprintf (key, room, "NVRTC %d.%d %s %016llx\n%s", rtc.major, rtc.minor,
              architecture_of (source).text, (unsigned long long)hash, source->text);
  return key;
}

/* What the disk cache has of a key, which may be NULL. */
static bool
find (const char *key, TdCudaCode *code)
{
  *code = (TdCudaCode){ 0 };
  if (key != NULL)
    code->data = td_cuda_cache_read ("kernel", key, strlen (key), &code->bytes);
  return code->from_disk = code->data != NULL;
}

bool
td_cuda_nvrtc_find (const TdCudaSource *source, TdCudaCode *code)
{
  char *key = td_cuda_nvrtc_here () ? key_of (source) : NULL;
  const bool found = find (key, code);

  free (key);
  return found;
}

bool
td_cuda_nvrtc_compile (const TdCudaSource *source, TdCudaCode *code)
{
  char *key;

  *code = (TdCudaCode){ 0 };
  if (!td_cuda_nvrtc_here ())
    {
      code->log = strdup ("libnvrtc.so.13 is not here");
      return false;
    }
  key = key_of (source);
  if (!find (key, code) && compile (source, code) && key != NULL)
    td_cuda_cache_write ("kernel", key, strlen (key), code->data, code->bytes);
  free (key);
  return code->data != NULL;
}

void
td_cuda_code_clear (TdCudaCode *code)
{
  free (code->data);
  free (code->log);
  *code = (TdCudaCode){ 0 };
}
