/* NVRTC for the fake driver: the host's C++ compiler, in the emulator's dialect.  A "cubin" is
 * a shared object behind 8 bytes of its own; fake_code_load opens one, and the emulator knows
 * its kernel then.
 *
 * A text that picks one kernel of our files (gpu/counting.c) is not compiled again: the
 * emulator has that kernel from the same file, and gives it to nobody before its text was
 * compiled.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include "emu-core.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nvrtc.h>

_Static_assert(TD_EMU_XOR == 1, "fake_xor knows its number");

#define EXPORT __attribute__ ((visibility ("default")))
#define MAGIC "FAKECODE"
#define PICKED "FAKEPICK" /* and the kernel's name */
#define PICKS "#define TD_PICK_"

struct _nvrtcProgram
{
  char folder[256];
  char picked[100]; /* kernel; or "" */
  char *log, *code;
  size_t log_bytes, code_bytes;
};

/* How a kernel is declared in a shared object of its own: no runtime is linked with it. */
static const char dialect[]
    = "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n#include <math.h>\n"
      "typedef struct { unsigned x, y, z; } Dim;\n"
      "extern \"C\" { const Dim *fake_dims[4]; }\n"
      "#define threadIdx (*fake_dims[0])\n#define blockIdx (*fake_dims[1])\n"
      "#define blockDim (*fake_dims[2])\n#define gridDim (*fake_dims[3])\n"
      "#define TD_DEVICE static inline __attribute__ ((unused))\n#define TD_MEMBER inline\n"
      "extern \"C\" { void (*fake_meet) (const char *, int);\n"
      "uint64_t (*fake_warp) (int, uint32_t, uint64_t, int, const char *, int); }\n"
      "#define __syncthreads() fake_meet (__FILE__, __LINE__)\n"
      "#define __shfl_xor_sync(mask, v, lane) fake_xor (mask, v, lane, __FILE__, __LINE__)\n"
      "template <typename T> static inline T\n"
      "fake_xor (uint32_t mask, T v, int lane, const char *file, int line)\n{\n"
      "  uint64_t bits = 0;\n  memcpy (&bits, &v, sizeof v);\n"
      "  bits = fake_warp (1, mask, bits, lane, file, line);\n"
      "  memcpy (&v, &bits, sizeof v);\n  return v;\n}\n"
      "#define TD_FUSED_ROOMS(T, name, most) static T name[most]\n" /* blocks take turns */
      "#define TD_KERNEL(name, Params) static void name (const Params &a); \\\n"
      "  extern \"C\" const char fake_name[] = #name; \\\n"
      "  extern \"C\" const size_t fake_params = sizeof (Params); \\\n"
      "  extern \"C\" void fake_thread (const void *params) { name (*(const Params *)params); "
      "} \\\n"
      "  static void name (const Params &a)\n";

EXPORT const char *
nvrtcGetErrorString (nvrtcResult result)
{
  return result == NVRTC_SUCCESS ? "success" : "failure";
}

EXPORT nvrtcResult
nvrtcVersion (int *major, int *minor)
{
  *major = 0; /* no real one: what it leaves on disk is nobody else's */
  *minor = 1;
  return NVRTC_SUCCESS;
}

static void
write_file (const char *folder, const char *name, const char *before, const char *text)
{
  char path[300];
  FILE *f;

  snprintf (path, sizeof path, "%s/%s", folder, name);
  f = fopen (path, "w");
  if (f == NULL)
    abort ();
  fprintf (f, "%s%s", before, text);
  fclose (f);
}

EXPORT nvrtcResult
nvrtcCreateProgram (nvrtcProgram *program, const char *text, const char *name, int n_headers,
                    const char *const *headers, const char *const *names)
{
  nvrtcProgram p = calloc (1, sizeof *p);
  const char *picks = strstr (text, PICKS), *tmp = getenv ("TMPDIR");

  if (p == NULL)
    return NVRTC_ERROR_OUT_OF_MEMORY;
  *program = p;
  if (picks != NULL)
    {
      picks += strlen (PICKS);
      snprintf (p->picked, sizeof p->picked, "td_count_%.*s", (int)strcspn (picks, " "), picks);
      return NVRTC_SUCCESS;
    }
  snprintf (p->folder, sizeof p->folder, "%s/td-fake-nvrtc-XXXXXX", tmp != NULL ? tmp : "/tmp");
  if (mkdtemp (p->folder) == NULL)
    abort ();
  for (int i = 0; i < n_headers; i++)
    if (strncmp (names[i], "std", 3) != 0 && strcmp (names[i], "math.h") != 0
        && strcmp (names[i], "string.h") != 0) /* the host has its own */
      write_file (p->folder, names[i], "", headers[i]);
  write_file (p->folder, "kernel.cpp", dialect, text);
  return NVRTC_SUCCESS;
}

/* All of a file, behind `before`. */
static char *
contents (const char *folder, const char *name, const char *before, size_t *bytes)
{
  const size_t n = strlen (before);
  char path[300], *all;
  long size;
  FILE *f;

  snprintf (path, sizeof path, "%s/%s", folder, name);
  f = fopen (path, "r");
  if (f == NULL)
    return NULL;
  fseek (f, 0, SEEK_END);
  size = ftell (f);
  rewind (f);
  all = calloc (1, n + (size_t)size + 1);
  if (all == NULL)
    abort ();
  memcpy (all, before, n);
  *bytes = n + fread (all + n, 1, (size_t)size, f);
  fclose (f);
  return all;
}

EXPORT nvrtcResult
nvrtcCompileProgram (nvrtcProgram p, int n_options, const char *const *options)
{
  char command[1000];
  int status;

  if (fake_enter ("nvrtcCompileProgram") != CUDA_SUCCESS || fake.no_compiling)
    {
      p->log = strdup ("kernel.cu(1): error: the test says so\n");
      p->log_bytes = strlen (p->log);
      return NVRTC_ERROR_COMPILATION;
    }
  if (p->picked[0] != '\0')
    {
      p->code_bytes = strlen (PICKED) + strlen (p->picked) + 1;
      p->code = calloc (1, p->code_bytes);
      snprintf (p->code, p->code_bytes, "%s%s", PICKED, p->picked);
      fake.n_compiled++;
      return NVRTC_SUCCESS;
    }
  snprintf (command, sizeof command,
            "cd '%s' && " FAKE_CXX " -std=gnu++17 -O1 -ffp-contract=off -fPIC -shared -I. -o "
            "kernel.so kernel.cpp >log 2>&1",
            p->folder);
  status = system (command);
  p->log = contents (p->folder, "log", "", &p->log_bytes);
  if (status == 0)
    p->code = contents (p->folder, "kernel.so", MAGIC, &p->code_bytes);
  return p->code != NULL ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

EXPORT nvrtcResult
nvrtcGetProgramLogSize (nvrtcProgram p, size_t *bytes)
{
  *bytes = p->log_bytes + 1;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult
nvrtcGetProgramLog (nvrtcProgram p, char *log)
{
  memcpy (log, p->log != NULL ? p->log : "", p->log_bytes + 1);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult
nvrtcGetCUBINSize (nvrtcProgram p, size_t *bytes)
{
  *bytes = p->code_bytes;
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult
nvrtcGetCUBIN (nvrtcProgram p, char *code)
{
  memcpy (code, p->code, p->code_bytes);
  return NVRTC_SUCCESS;
}

EXPORT nvrtcResult
nvrtcDestroyProgram (nvrtcProgram *program)
{
  nvrtcProgram p = *program;
  char command[300];

  snprintf (command, sizeof command, "rm -r '%s'", p->folder);
  if (p->folder[0] != '\0' && system (command) != 0)
    fprintf (stderr, "%s stays\n", p->folder);
  free (p->log);
  free (p->code);
  free (p);
  *program = NULL;
  return NVRTC_SUCCESS;
}

/* --- what the driver does with it --- */

static void
open_object (const char *path)
{
  void *object = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  const TdEmuDim **dims = object != NULL ? dlsym (object, "fake_dims") : NULL;
  TdEmuKernel *kernel = calloc (1, sizeof *kernel);
  void (*thread) (const void *params) = NULL;

  if (dims == NULL || kernel == NULL)
    {
      fprintf (stderr, "%s\n", dlerror ());
      abort ();
    }
  *(void **)&thread = dlsym (object, "fake_thread");
  *(__typeof__ (td_emu_barrier) **)dlsym (object, "fake_meet") = td_emu_barrier;
  *(void **)dlsym (object, "fake_warp") = (void *)(uintptr_t)td_emu_warp;
  dims[0] = &threadIdx;
  dims[1] = &blockIdx;
  dims[2] = &blockDim;
  dims[3] = &gridDim;
  *kernel = (TdEmuKernel){ .name = dlsym (object, "fake_name"),
                           .thread = thread,
                           .params_bytes = *(const size_t *)dlsym (object, "fake_params") };
  td_emu_register (kernel);
}

void
fake_code_load (const void *code)
{
  /* The ELF header says where its section table, the end of the file, lies. */
  const char *object = (const char *)code + 8;
  uint64_t table;
  uint16_t entry, n;
  char path[64];
  size_t bytes;
  int fd;

  if (strncmp (code, PICKED, 8) == 0)
    fake_kernel_show ((const char *)code + 8);
  if (strncmp (code, MAGIC, 8) != 0)
    return;
  memcpy (&table, object + 40, sizeof table);
  memcpy (&entry, object + 58, sizeof entry);
  memcpy (&n, object + 60, sizeof n);
  bytes = (size_t)table + (size_t)entry * n;
  fd = memfd_create ("kernel", MFD_CLOEXEC);
  if (fd < 0 || write (fd, object, bytes) != (ssize_t)bytes)
    abort ();
  snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
  open_object (path);
}
