/* NVRTC: kernels compiled at run time, and kept on disk.
 *
 * It has no files: what fused.cuh includes is given with the text, the C library's headers as
 * the few names that scalar-ops.h wants of them.
 *
 * SPDX-License-Identifier: MIT */
#include "nvrtc-code.h"

#include "disk-cache.h"
#include "kernels/texts.h"
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

static const char *const header_names[] = { "fused.cuh",    "fused.h",         "common.cuh",
                                            "common.h",     "fused-count.cuh", "count.cuh",
                                            "scalar-ops.h", "stdint.h",        "math.h",
                                            "stdbool.h",    "string.h",        "kernel.cuh" };
static const char *const header_texts[] = { td_fused_cuh,
                                            td_fused_h,
                                            td_common_cuh,
                                            td_common_h,
                                            td_fused_count_cuh,
                                            td_count_cuh,
                                            td_scalar_ops_h,
                                            numbers,
                                            mathematics,
                                            "",
                                            "",
                                            "" };

enum
{
  N_HEADERS = sizeof header_names / sizeof header_names[0]
};

/* Formulas without fused multiplication and addition: the CPU's bits. */
static bool
compile (const char *text, const char *architecture, TdCudaCode *code)
{
  const char *const options[] = { architecture, "--std=c++17", "--fmad=false",
                                  "-default-device", "--ptxas-options=-v" };
  nvrtcProgram program;
  nvrtcResult result;
  size_t n = 0;

  result = rtc.nvrtcCreateProgram (&program, text, "fused.cu", N_HEADERS, header_texts,
                                   header_names);
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
    td_cuda_code_clear (code);
  rtc.nvrtcDestroyProgram (&program);
  return code->data != NULL;
}

/* All that the code depends on: compiler, architecture, every text. */
static char *
key_of (const char *text, const char *architecture)
{
  uint64_t headers = TD_CACHE_HASH;
  const size_t room = strlen (text) + 128;
  char *key = malloc (room);

  for (int i = 0; i < N_HEADERS; i++)
    headers = td_cuda_cache_hash (headers, header_texts[i], strlen (header_texts[i]) + 1);
  if (key != NULL)
    snprintf (key, room, "NVRTC %d.%d %s %016llx\n%s", rtc.major, rtc.minor, architecture,
              (unsigned long long)headers, text);
  return key;
}

bool
td_cuda_nvrtc_compile (const char *text, int major, int minor, TdCudaCode *code)
{
  char architecture[40], *key;

  *code = (TdCudaCode){ 0 };
  if (!td_cuda_nvrtc_here ())
    {
      code->log = strdup ("NVRTC is not here");
      return false;
    }
  snprintf (architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  key = key_of (text, architecture);
  if (key != NULL)
    code->data = td_cuda_cache_read ("kernel", key, strlen (key), &code->bytes);
  code->from_disk = code->data != NULL;
  if (!code->from_disk && compile (text, architecture, code) && key != NULL)
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
