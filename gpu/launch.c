/* Launches of our own kernels.  An image is loaded into the driver when its first kernel is
 * asked for, and each kernel is looked up once.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "async.h"

#include <stdio.h>
#include <stdlib.h>

enum
{
  MAX_IMAGES = 64,
  SHARED_BY_DEFAULT = 48 << 10 /* more needs to be allowed kernel by kernel */
};

static CUlibrary libraries[MAX_IMAGES];

static TdCuda *
owner_of (TdCudaLauncher *l)
{
  return (TdCuda *)(void *)((char *)l - offsetof (TdCuda, launcher));
}

/* Kernels do not belong to a context, so that one lookup serves every device. */
static TdStatus
find_kernel (TdCuda *c, TdCudaKernel *kernel)
{
  char text[160];

  for (int i = 0; i < MAX_IMAGES && td_cuda_images[i].name != NULL; i++)
    {
      CUkernel found;
      CUresult result;

      if (libraries[i] == NULL)
        {
          result = td_cuda.cuLibraryLoadData (&libraries[i], td_cuda_images[i].data, NULL, NULL,
                                              0, NULL, NULL, 0);
          if (result != CUDA_SUCCESS)
            {
              libraries[i] = NULL;
              snprintf (text, sizeof text, "loading the kernels of %s", td_cuda_images[i].name);
              return td_cuda_check (c, result, text);
            }
        }
      if (td_cuda.cuLibraryGetKernel (&found, libraries[i], kernel->name) == CUDA_SUCCESS)
        {
          kernel->handle = found;
          return TD_OK;
        }
    }
  snprintf (text, sizeof text, "this build has no kernel %s", kernel->name);
  return td_cuda_host->fail (TD_ERR_DEVICE, c->device.name, text);
}

static TdStatus
look_up (TdCuda *c, TdCudaKernel *kernel)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  TdStatus status;

  td_cuda_exchange_mode (c, &mode);
  status = find_kernel (c, kernel);
  td_cuda_exchange_mode (c, &mode);
  return status;
}

/* More shared memory than every kernel may have. */
static TdStatus
allow_shared (TdCuda *c, const TdCudaKernel *kernel, size_t bytes)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result;

  td_cuda_exchange_mode (c, &mode); /* it may load the kernel */
  result = td_cuda.cuKernelSetAttribute (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         (int)bytes, kernel->handle, c->handle);
  td_cuda_exchange_mode (c, &mode);
  return td_cuda_check (c, result, kernel->name);
}

static TdStatus
launch (TdCudaLauncher *l, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
        size_t shared_bytes, const void *params)
{
  TdCuda *c = owner_of (l);
  void *values[] = { (void *)(uintptr_t)params }; /* only read: cuLaunchKernel is not const */
  CUfunction function;
  CUresult result;

  if (c->lost != TD_OK)
    return c->lost;
  if (kernel->handle == NULL && look_up (c, kernel) != TD_OK)
    return TD_ERR_DEVICE;
  function = (CUfunction)kernel->handle;
  if (shared_bytes > SHARED_BY_DEFAULT && allow_shared (c, kernel, shared_bytes) != TD_OK)
    return TD_ERR_DEVICE;
  if (c->capture == NULL && c->repeat != NULL)
    return td_cuda_repeat_launch (c, kernel, grid, block, shared_bytes, params);
  if (c->capture != NULL)
    result = td_cuda_graph_kernel (c, kernel, grid, block, shared_bytes, values);
  else
    result = td_cuda.cuLaunchKernel (function, grid[0], grid[1], grid[2], block, 1, 1,
                                     (unsigned)shared_bytes, c->stream, values, NULL);
  return result == CUDA_SUCCESS ? TD_OK : td_cuda_check (c, result, kernel->name);
}

static void *
workspace (TdCudaLauncher *l, size_t bytes)
{
  TdCuda *c = owner_of (l);

  return !c->in_own_room              ? td_cuda_scratch (c, bytes)
         : bytes <= c->own_room_bytes ? (void *)c->own_room
                                      : NULL;
}

static TdCudaStats *
count (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y, int64_t blocks)
{
  TdCuda *c = owner_of (l);

  return td_cuda_fused_stats_wanted (c) && td_cuda_counting_kernel (c, kernel)
             ? td_cuda_fused_stats_take (c, y, blocks)
             : NULL;
}

void *
td_cuda_room_for (void *items, uint32_t n, size_t bytes)
{
  if ((n & (n - 1)) != 0)
    return items;
  return realloc (items, (n > 0 ? 2 * (size_t)n : 1) * bytes);
}

void
td_cuda_launcher_init (TdCuda *c)
{
  c->launcher.count = count;
  c->launcher.launch = launch;
  c->launcher.workspace = workspace;
}

void
td_cuda_reads (TdCuda *c, const TdTensor *tensors, int n)
{
  td_cuda_updates_send (c); /* some of the arrays may be theirs */
}

void
td_cuda_writes (TdCuda *c, const TdTensor *tensors, int n)
{
  td_cuda_updates_send (c);
  for (int i = 0; tensors != NULL && i < n; i++)
    {
      td_cuda_host_copies_written (c, tensors[i].data,
                                   (size_t)tensors[i].size * td__bytes_of (tensors[i].dtype));
      if (tensors[i].size == 1)
        td_cuda_marks_wanted (c, tensors[i].data);
    }
}
