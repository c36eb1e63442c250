/* The fake driver's devices, copies, faults on order, and its control.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULTS                                                                               \
  {                                                                                            \
    .total_bytes = (size_t)4 << 30, .driver_version = CUDA_VERSION, .n_devices = 1,            \
    .capability = 90                                                                           \
  }

FakeCuda fake = DEFAULTS;
CUresult fake_sticky;
TdCudaApi td_cuda;
static bool opened;
static struct CUctx_st
{
  bool lives;
} contexts[FAKE_DEVICES]; /* each device's */
static __thread CUcontext current;
void (*fake_reset_more) (void);
static struct Fault
{
  const char *function;
  int n;
  CUresult code;
} fault;

/* "init=100 version=12040 devices=0 capability=70 vmm=0 megabytes=300 fault=9": another driver,
 * another device. */
static void
take_settings (const char *text)
{
  char name[16];
  int value, n;

  while (text != NULL && sscanf (text, " %15[a-z]=%d%n", name, &value, &n) == 2)
    {
      if (strcmp (name, "init") == 0)
        fault = (struct Fault){ "cuInit", 1, (CUresult)value };
      else if (strcmp (name, "version") == 0)
        fake.driver_version = value;
      else if (strcmp (name, "devices") == 0)
        fake.n_devices = value;
      else if (strcmp (name, "capability") == 0)
        fake.capability = value;
      else if (strcmp (name, "vmm") == 0)
        fake.no_vmm = value == 0;
      else if (strcmp (name, "megabytes") == 0)
        fake.total_bytes = (size_t)value << 20;
      else if (strcmp (name, "fault") == 0) /* in that launch */
        fault = (struct Fault){ "cuLaunchKernel", value, CUDA_ERROR_ILLEGAL_ADDRESS };
      text += n;
    }
}

/* cublasLt is in here, NVRTC where kernels can be made, CUPTI if FAKE_CUPTI is set, NCCL if
 * FAKE_NCCL is, recurrent layers of cuDNN if FAKE_CUDNN is, and nothing else of NVIDIA's. */
void *
__wrap_td_cuda_library (const char *name)
{
  Dl_info self;

  if ((strncmp (name, "libcublasLt", 11) != 0
       && (strncmp (name, "libnvrtc", 8) != 0 || fake.no_nvrtc)
       && (strncmp (name, "libcupti", 8) != 0 || getenv ("FAKE_CUPTI") == NULL)
       && (strncmp (name, "libnccl", 7) != 0 || getenv ("FAKE_NCCL") == NULL)
       && (strncmp (name, "libcudnn", 8) != 0 || getenv ("FAKE_CUDNN") == NULL))
      || dladdr (&fake, &self) == 0)
    return NULL;
  return dlopen (self.dli_fname, RTLD_NOW | RTLD_LOCAL);
}

const char *
td_cuda_api_open (void)
{
#define TD_CU(name) td_cuda.name = name;
#include "api.def"
#undef TD_CU
  take_settings (getenv ("FAKE_CUDA"));
  setenv ("TAPEDECK_CUDA_CACHE", "off", 0); /* a test leaves nothing for the next */
  opened = true;
  return NULL;
}

/* Where a program tells nobody else: a line in the file FAKE_CUDA_REPORT for each process that
 * opened the driver. */
__attribute__ ((destructor)) static void
report (void)
{
  const char *path = getenv ("FAKE_CUDA_REPORT");
  FILE *f = path != NULL && opened ? fopen (path, "a") : NULL;

  if (f == NULL)
    return;
  fprintf (f, "launches %ld misused %ld up %ld down %ld exchanges %ld %s\n", fake.n_launches,
           fake.n_violations, fake.copied_bytes[0], fake.copied_bytes[1], fake.n_exchanges,
           fake.violation);
  fclose (f);
}

void
fake_violation (const char *format, ...)
{
  va_list args;

  if (fake.n_violations++ > 0)
    return;
  va_start (args, format);
  vsnprintf (fake.violation, sizeof fake.violation, format, args);
  va_end (args);
}

static bool
ends_context (CUresult code)
{
  return code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_LAUNCH_FAILED;
}

/* What a thread may call that has no context. */
static bool
wants_context (const char *function)
{
  static const char *const free_ones[]
      = { "cuInit",          "cuDriverGet",  "cuDeviceGet",    "cuDeviceTotal",
          "cuDevicePrimary", "cuCtxSet",     "cuLibrary",      "cuThreadExchange",
          "cuMemGetAlloc",   "cuMemAddress", "cuMemCreate",    "cuMemRelease",
          "cuMemMap",        "cuMemUnmap",   "cuMemSetAccess", "cupti" };

  for (size_t i = 0; i < sizeof free_ones / sizeof *free_ones; i++)
    if (strncmp (function, free_ones[i], strlen (free_ones[i])) == 0)
      return false;
  return true;
}

CUresult
fake_enter (const char *function)
{
  if (wants_context (function) && (current == NULL || !current->lives))
    {
      fake_violation ("%s in a thread without a context", function);
      return CUDA_ERROR_INVALID_CONTEXT;
    }
  if (fault.n > 0 && strcmp (function, fault.function) == 0 && --fault.n == 0)
    {
      if (ends_context (fault.code))
        fake_sticky = fault.code;
      return fault.code;
    }
  return fake_sticky;
}

/* --- control --- */

int
fake_device (void)
{
  return current != NULL ? (int)(current - contexts) : -1;
}

static void
reset (void)
{
  if (fake_reset_more != NULL)
    fake_reset_more ();
  fake_sticky = CUDA_SUCCESS;
  fake_streams_reset ();
  fake_memory_reset ();
  fault.n = 0;
  fake = (FakeCuda)DEFAULTS;
}

static void
fail (const char *function, int n, int code)
{
  fault.function = function;
  fault.n = n;
  fault.code = (CUresult)code;
}

/* The kernel answers EFAULT where our own access would be a signal. */
static bool
host_can_touch (const void *address)
{
  int ends[2];
  ssize_t n;

  if (pipe (ends) != 0)
    return false;
  n = write (ends[1], address, 1);
  close (ends[0]);
  close (ends[1]);
  return n == 1;
}

static const FakeCudaControl control = { &fake, reset, fail, host_can_touch };

const FakeCudaControl *
fake_cuda_control (void)
{
  return &control;
}

/* --- devices --- */

CUresult
cuInit (unsigned flags)
{
  return fake_enter ("cuInit");
}

CUresult
cuDriverGetVersion (int *version)
{
  *version = fake.driver_version;
  return fake_enter ("cuDriverGetVersion");
}

CUresult
cuGetErrorName (CUresult error, const char **name)
{
  static const struct
  {
    CUresult error;
    const char *name;
  } names[] = {
    { CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
    { CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE" },
    { CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
    { CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED" },
    { CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY" },
  };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].error == error)
      {
        *name = names[i].name;
        return CUDA_SUCCESS;
      }
  *name = "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

CUresult
cuGetErrorString (CUresult error, const char **text)
{
  return cuGetErrorName (error, text);
}

CUresult
cuDeviceGetCount (int *n)
{
  *n = fake.n_devices;
  return fake_enter ("cuDeviceGetCount");
}

CUresult
cuDeviceGet (CUdevice *device, int i)
{
  *device = i;
  return fake_enter ("cuDeviceGet");
}

CUresult
cuDeviceGetName (char *name, int size, CUdevice device)
{
  snprintf (name, (size_t)size, "Fake H200");
  return fake_enter ("cuDeviceGetName");
}

/* Of this machine's devices, whatever process asks. */
CUresult
cuDeviceGetUuid (CUuuid *uuid, CUdevice device)
{
  memset (uuid, 0, sizeof *uuid);
  snprintf (uuid->bytes, sizeof uuid->bytes, "fake %d", device);
  return fake_enter ("cuDeviceGetUuid");
}

CUresult
cuDeviceGetAttribute (int *value, CUdevice_attribute attribute, CUdevice device)
{
  switch ((int)attribute)
    {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 3; /* few, so that loops over a grid go round */
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = fake.capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = fake.capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = !fake.no_vmm;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  return fake_enter ("cuDeviceGetAttribute");
}

CUresult
cuDeviceTotalMem (size_t *bytes, CUdevice device)
{
  *bytes = fake.total_bytes;
  return fake_enter ("cuDeviceTotalMem");
}

CUresult
cuDevicePrimaryCtxRetain (CUcontext *context, CUdevice device)
{
  *context = &contexts[device];
  contexts[device].lives = true;
  return fake_enter ("cuDevicePrimaryCtxRetain");
}

/* The engine takes its settings out of the environment when it starts.  A program that starts
 * it again, and knows nothing of devices, is to come back to this one. */
CUresult
cuDevicePrimaryCtxRelease (CUdevice device)
{
  if (getenv ("FAKE_CUDA_STAY") != NULL)
    setenv ("TAPEDECK_DEVICE", getenv ("FAKE_CUDA_STAY"), 1);
  contexts[device].lives = false;
  fake_kernels_unload ();
  return fake_enter ("cuDevicePrimaryCtxRelease");
}

CUresult
cuDevicePrimaryCtxReset (CUdevice device)
{
  fake_sticky = CUDA_SUCCESS;
  fake_streams_reset ();
  fake_memory_end_context ();
  contexts[device].lives = false;
  fake_kernels_unload ();
  return fake_enter ("cuDevicePrimaryCtxReset");
}

CUresult
cuCtxSetCurrent (CUcontext context)
{
  current = context;
  return fake_enter ("cuCtxSetCurrent");
}

/* --- copies --- */

static void
run_copy (FakeCommand *c)
{
  memcpy (c->to, c->from, c->bytes);
}

static void
run_set (FakeCommand *c)
{
  memset (c->to, c->value, c->bytes);
}

/* A copy's ends are the device's, or pinned memory of the host. */
static CUresult
copy (const char *name, void *to, const void *from, size_t bytes, CUstream stream, int kind)
{
  CUresult result = fake_enter (name);
  FakeCommand *c;

  if (result != CUDA_SUCCESS)
    return result;
  c = fake_command (name, run_copy);
  c->to = to;
  c->from = from;
  c->bytes = bytes;
  if (kind != 0)
    fake_command_use (c, (CUdeviceptr)from, bytes, false);
  else if (!fake_is_pinned (from, bytes))
    fake_violation ("%s from memory that is not pinned", name);
  if (kind != 1)
    fake_command_use (c, (CUdeviceptr)to, bytes, true);
  else if (!fake_is_pinned (to, bytes))
    fake_violation ("%s to memory that is not pinned", name);
  fake.n_copies[kind]++;
  fake.copied_bytes[kind] += (long)bytes;
  return fake_enqueue (stream, c);
}

CUresult
cuMemcpyHtoDAsync (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
  return copy ("cuMemcpyHtoDAsync", (void *)to, from, bytes, stream, 0);
}

CUresult
cuMemcpyDtoHAsync (void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
  return copy ("cuMemcpyDtoHAsync", to, (const void *)from, bytes, stream, 1);
}

CUresult
cuMemcpyDtoDAsync (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
  return copy ("cuMemcpyDtoDAsync", (void *)to, (const void *)from, bytes, stream, 2);
}

CUresult
cuMemsetD8Async (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
  CUresult result = fake_enter ("cuMemsetD8Async");
  FakeCommand *c;

  if (result != CUDA_SUCCESS)
    return result;
  c = fake_command ("cuMemsetD8Async", run_set);
  c->to = (void *)to;
  c->value = value;
  c->bytes = bytes;
  fake_command_use (c, to, bytes, true);
  return fake_enqueue (stream, c);
}
