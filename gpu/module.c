/* The module's entry: are there GPUs, what are they, and the life of each.
 *
 * SPDX-License-Identifier: MIT */
#include "blas.h"
#include "cuda-device.h"
#include "cudnn.h"
#include "kernel-times.h"
#include "async.h"
#include "libraries.h"
#include "nvtx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  DRIVER_WANTED
  = CUDA_VERSION / 1000 * 1000 /* kernels of a toolkit want a driver of its major version */
};

const TdModuleHost *td_cuda_host;
TdCuda *td_cuda_devices[TD_MAX_DEVICES];
static CUcontext current;
static int n_devices, driver_version;

TdCuda *
td_cuda_thread (TdDevice *d)
{
  TdCuda *c = d->priv;

  if (current != c->context && td_cuda.cuCtxSetCurrent (c->context) == CUDA_SUCCESS)
    current = c->context;
  return c;
}

TdCuda *
td_cuda_enter_launch (TdDevice *d)
{
  TdCuda *c = td_cuda_thread (d);

  td_cuda_updates_send (c);
  return c;
}

TdCuda *
td_cuda_enter (TdDevice *d)
{
  TdCuda *c = td_cuda_enter_launch (d);

  td_cuda_repeat_interrupt (c);
  return c;
}

/* Faults that end a context: every later call would return the same. */
static bool
ends_context (CUresult result)
{
  static const CUresult faults[]
      = { CUDA_ERROR_ILLEGAL_ADDRESS,      CUDA_ERROR_LAUNCH_FAILED,
          CUDA_ERROR_LAUNCH_TIMEOUT,       CUDA_ERROR_ASSERT,
          CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION,
          CUDA_ERROR_MISALIGNED_ADDRESS,   CUDA_ERROR_INVALID_ADDRESS_SPACE,
          CUDA_ERROR_INVALID_PC,           CUDA_ERROR_ECC_UNCORRECTABLE,
          CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_CONTAINED,
          CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_TENSOR_MEMORY_LEAK,
          CUDA_ERROR_EXTERNAL_DEVICE,      CUDA_ERROR_MPS_CLIENT_TERMINATED };

  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
    if (result == faults[i])
      return true;
  return false;
}

TdStatus
td_cuda_check (TdCuda *c, CUresult result, const char *what)
{
  const char *name = NULL;
  char text[256];

  if (result == CUDA_SUCCESS)
    return TD_OK;
  td_cuda.cuGetErrorName (result, &name);
  snprintf (text, sizeof text, "%s failed: %s%s", what, name != NULL ? name : "unknown error",
            ends_context (result)
                ? "; a new process can use the device, and td_finish and td_init may be enough"
                : "");
  if (ends_context (result))
    c->lost = TD_ERR_DEVICE;
  return td_cuda_host->fail (result == CUDA_ERROR_OUT_OF_MEMORY ? TD_ERR_MEMORY : TD_ERR_DEVICE,
                             c->device.name, text);
}

void *
td_cuda_scratch (TdCuda *c, size_t bytes)
{
  struct TdBlock *block = NULL;
  void *room;

  if (c->n_scratch == TD_CUDA_SCRATCH)
    {
      td_cuda_host->fail (TD_ERR_STATE, c->device.name,
                          "a call wants too many pieces of memory");
      return NULL;
    }
  room = td_cuda_host->memory_take (&c->device, bytes, TD_MEM_WORKSPACE, &block);
  if (room != NULL)
    {
      c->scratch[c->n_scratch++] = block;
      td_cuda_marks_written (c, room, bytes);
    }
  return room;
}

void
td_cuda_scratch_end (TdCuda *c)
{
  while (c->n_scratch > 0)
    td_cuda_host->memory_release (c->scratch[--c->n_scratch]);
}

/* --- looking for devices --- */

static const char *
module_open (const TdModuleHost *host)
{
  static char text[200];
  const char *missing = td_cuda_api_open (), *name = NULL;
  CUresult result;

  if (missing != NULL)
    return missing;
  td_cuda_host = host;
  result = td_cuda.cuInit (0);
  if (result == CUDA_ERROR_NO_DEVICE) /* 100 */
    return "the driver finds no device";
  if (result != CUDA_SUCCESS)
    {
      td_cuda.cuGetErrorName (result, &name);
      snprintf (text, sizeof text, "the driver does not start: %s (%d)",
                name != NULL ? name : "unknown error", (int)result);
      return text;
    }
  if (td_cuda.cuDriverGetVersion (&driver_version) != CUDA_SUCCESS
      || driver_version < DRIVER_WANTED) /* the runtime's error 35 */
    {
      snprintf (text, sizeof text, "the driver is too old: it knows CUDA %d.%d, %d.0 is needed",
                driver_version / 1000, driver_version % 1000 / 10, DRIVER_WANTED / 1000);
      return text;
    }
  if (td_cuda.cuDeviceGetCount (&n_devices) != CUDA_SUCCESS || n_devices == 0)
    return "the driver finds no device";
  td_cupti_start ();
  if (n_devices > TD_MAX_DEVICES)
    {
      snprintf (text, sizeof text,
                "the driver finds %d devices; those from cuda:%d on are not used", n_devices,
                TD_MAX_DEVICES);
      host->notice (text);
      n_devices = TD_MAX_DEVICES;
    }
  return NULL;
}

static int
module_n_devices (void)
{
  return n_devices;
}

static const char *
module_describe (int i)
{
  static char text[400];
  char name[128] = "?";
  size_t total = 0;
  CUdevice handle;

  if (td_cuda.cuDeviceGet (&handle, i) != CUDA_SUCCESS)
    return "not to be opened";
  td_cuda.cuDeviceGetName (name, sizeof name, handle);
  td_cuda.cuDeviceTotalMem (&total, handle);
  snprintf (text, sizeof text, "%s, %.1f GB, driver for CUDA %d.%d, %s%s%s", name,
            (double)total / 1e9, driver_version / 1000, driver_version % 1000 / 10,
            td_cuda_libraries_text (), *td_cupti_text () != '\0' ? ", " : "", td_cupti_text ());
  return text;
}

/* --- a device's life --- */

static int
attribute (const TdCuda *c, CUdevice_attribute which)
{
  int value = 0;

  td_cuda.cuDeviceGetAttribute (&value, which, c->handle);
  return value;
}

static bool
start (TdCuda *c, int i)
{
  CUstream *const streams[] = { &c->stream, &c->uploads, &c->downloads };
  char text[160];

  if (td_cuda_check (c, td_cuda.cuDeviceGet (&c->handle, i), "cuDeviceGet") != TD_OK
      || td_cuda_check (c, td_cuda.cuDevicePrimaryCtxRetain (&c->context, c->handle),
                        "making a context")
             != TD_OK)
    return false;
  td_cuda_enter (&c->device);
  if (td_cuda.cuDeviceGetName (c->model, sizeof c->model, c->handle) == CUDA_SUCCESS)
    c->device.model = c->model;
  td_cuda_launcher_init (c);
  c->launcher.n_sms = attribute (c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  c->major = attribute (c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  c->minor = attribute (c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (c->major * 10 + c->minor < TD_CUDA_ARCH)
    {
      snprintf (text, sizeof text,
                "this GPU is too old: its compute capability is %d.%d, and the kernels of this "
                "build begin with %d.%d",
                c->major, c->minor, TD_CUDA_ARCH / 10, TD_CUDA_ARCH % 10);
      td_cuda_host->fail (TD_ERR_DEVICE, c->device.name, text);
      return false;
    }
  for (size_t k = 0; k < sizeof streams / sizeof *streams; k++)
    if (td_cuda_check (c, td_cuda.cuStreamCreate (streams[k], CU_STREAM_NON_BLOCKING),
                       "cuStreamCreate")
        != TD_OK)
      return false;
  return td_cuda_stages_open (c);
}

static void
device_end (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d);

  if (c->stream != NULL)
    td_cuda.cuStreamSynchronize (c->stream);
  /* Libraries let go of what they have while there is a context, be it a failed one. */
  td_cuda_blas_close (c);
  td_cudnn_close (c);
  if (c->lost != TD_OK)
    {
      /* With the context go its streams, events, pinned memory and what cuMemAlloc gave; mapped
         pages stay, and are unmapped as ever. */
      td_cuda.cuDevicePrimaryCtxReset (c->handle);
      c->stream = c->uploads = c->downloads = NULL;
      c->computed = c->ahead = c->before = NULL;
      memset (&c->up, 0, sizeof c->up);
      memset (&c->up_new, 0, sizeof c->up_new);
      memset (c->down, 0, sizeof c->down);
      td_cuda_stats_close (c);
      td_cuda_timing_close (c);
      td_cuda_index_close (c);
    }
  td_cuda_updates_close (c);
  td_cuda_stats_close (c);
  td_cuda_timing_close (c);
  td_cuda_index_close (c);
  td_cuda_scratch_end (c);
}

static void
device_close (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d);
  CUstream const streams[] = { c->uploads, c->downloads, c->stream };

  td_cuda_vmm_close (c);
  td_cuda_host_copies_close (c);
  td_cuda_marks_close (c);
  td_cuda_team_marks_close (c);
  td_cuda_fences_close (c);
  td_cuda_stages_close (c);
  for (size_t k = 0; k < sizeof streams / sizeof *streams; k++)
    if (streams[k] != NULL)
      td_cuda.cuStreamDestroy (streams[k]);
  if (c->context != NULL)
    td_cuda.cuDevicePrimaryCtxRelease (c->handle);
  current = NULL;
  td_cuda_devices[d->index] = NULL;
  free (c);
}

/* cuDNN's convolutions want it; TAPEDECK_CUDA_LAYOUT=row_major: as on the CPU. */
static bool
channels_last_wanted (void)
{
  const char *layout = getenv ("TAPEDECK_CUDA_LAYOUT");

  return layout == NULL || strcmp (layout, "row_major") != 0;
}

static TdDevice *
device_open (int i)
{
  TdCuda *c = calloc (1, sizeof *c);

  if (c == NULL)
    return NULL;
  td_cuda_devices[i] = c;
  snprintf (c->device.name, sizeof c->device.name, "cuda:%d", i);
  c->device.index = i;
  c->device.computes = true;
  c->device.priv = c;
  c->device.channels_last = channels_last_wanted ();
  if (!start (c, i))
    {
      device_close (&c->device);
      return NULL;
    }
  c->ops = *td_cuda_slots ();
  td_cuda_halves_begin (&c->ops);
  if (!td_cuda_vmm_wanted () || !td_cuda_vmm_open (c))
    c->ops.provider = &td_cuda_malloc_provider;
  c->ops.range = td_cuda_nvtx ();
  c->device.ops = &c->ops;
  return &c->device;
}

static const TdModule module = {
  .abi = TD_DEVICE_ABI,
  .module_bytes = sizeof (TdModule),
  .host_bytes = sizeof (TdModuleHost),
  .ops_bytes = sizeof (TdDeviceOps),
  .device_bytes = sizeof (TdDevice),
  .provider_bytes = sizeof (TdSegmentProvider),
  .open = module_open,
  .n_devices = module_n_devices,
  .describe = module_describe,
  .device_open = device_open,
  .device_end = device_end,
  .device_close = device_close,
};

__attribute__ ((visibility ("default"))) const TdModule *td_device_module (void);

const TdModule *
td_device_module (void)
{
  return &module;
}
