/* Where a GPU's memory segments come from.  `cuda_vmm` maps physical pages into one reserved
 * range of addresses, so that segments are adjacent and the pool can merge them; `cuda_malloc`
 * allocates each.  The latter is for drivers without mapping, and for
 * TAPEDECK_CUDA_ALLOCATOR=cuda_malloc.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "async.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT_UNIT ((size_t)2 << 20) /* the pool's segments are multiples of this */

/** Pages that are mapped. */
typedef struct
{
  CUdeviceptr address;
  size_t bytes;
  CUmemGenericAllocationHandle handle;
} Chunk;

typedef struct TdCudaVmm
{
  CUdeviceptr start;
  size_t bytes, granularity;
  CUmemAllocationProp pages;
  Chunk *chunks; /* by address */
  size_t n, capacity;
} TdCudaVmm;

static bool
query (void *context, size_t *free_bytes, size_t *total_bytes)
{
  TdCuda *c = context;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result;

  td_cuda_thread (&c->device);
  td_cuda_exchange_mode (c, &mode);
  result = td_cuda.cuMemGetInfo (free_bytes, total_bytes);
  td_cuda_exchange_mode (c, &mode);
  return result == CUDA_SUCCESS;
}

/* Its context is gone, and all work with it; a capture that can be no graph is something else.
 */
static bool
is_lost (const TdCuda *c)
{
  return c->lost == TD_ERR_DEVICE;
}

/* A fence is an event on the compute stream, which waits for all other streams that write.
 * While that one is captured the stream of downloads has it, behind all that was issued before:
 * what is captured is only issued when the graph is launched. */
static void *
fence_new (void *context)
{
  TdCuda *c = context;
  CUevent event = NULL;
  CUstream stream = c->capture == NULL ? c->stream : c->downloads;

  td_cuda_enter (&c->device);
  td_cuda_stats_send (c); /* what a recording has asked for is read, too */
  if (is_lost (c))
    return NULL;
  if (c->n_fences > 0)
    event = c->fences[--c->n_fences];
  else if (td_cuda_check (c, td_cuda.cuEventCreate (&event, CU_EVENT_DISABLE_TIMING),
                          "cuEventCreate")
           != TD_OK)
    return NULL;
  if (c->capture != NULL)
    td_cuda_check (c, td_cuda.cuStreamWaitEvent (stream, c->before, 0), "cuStreamWaitEvent");
  td_cuda_check (c, td_cuda.cuEventRecord (event, stream), "cuEventRecord");
  return event;
}

static void
fence_end (TdCuda *c, CUevent event)
{
  if (!is_lost (c) && c->n_fences < TD_CUDA_FENCES)
    c->fences[c->n_fences++] = event;
  else if (!is_lost (c))
    td_cuda.cuEventDestroy (event); /* else it went with the context */
}

static bool
fence_passed (void *context, void *fence)
{
  TdCuda *c = context;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool passed;

  td_cuda_thread (&c->device);
  td_cuda_exchange_mode (c, &mode);
  passed = is_lost (c) || td_cuda.cuEventQuery (fence) != CUDA_ERROR_NOT_READY;
  td_cuda_exchange_mode (c, &mode);
  if (!passed)
    return false;
  fence_end (c, fence);
  return true;
}

static void
fence_wait (void *context, void *fence)
{
  TdCuda *c = context;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  td_cuda_enter_launch (&c->device);
  td_cuda_exchange_mode (c, &mode);
  if (!is_lost (c))
    td_cuda_check (c, td_cuda.cuEventSynchronize (fence), "waiting for the device");
  td_cuda_exchange_mode (c, &mode);
  fence_end (c, fence);
}

void
td_cuda_fences_close (TdCuda *c)
{
  for (int i = 0; i < c->n_fences && c->lost == TD_OK; i++)
    td_cuda.cuEventDestroy (c->fences[i]);
  c->n_fences = 0;
  if (c->before != NULL && c->lost == TD_OK)
    td_cuda.cuEventDestroy (c->before);
  c->before = NULL;
}

/* --- cuda_vmm --- */

bool
td_cuda_vmm_wanted (void)
{
  const char *wanted = getenv ("TAPEDECK_CUDA_ALLOCATOR");

  return wanted == NULL || strcmp (wanted, "cuda_malloc") != 0;
}

/* Physical pages at this place, readable and writable by the device. */
static bool
map (TdCuda *c, CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle *handle)
{
  CUmemAccessDesc access
      = { .location = c->vmm->pages.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

  if (td_cuda.cuMemCreate (handle, bytes, &c->vmm->pages, 0) != CUDA_SUCCESS)
    return false;
  if (td_cuda.cuMemMap (at, bytes, 0, *handle, 0) != CUDA_SUCCESS)
    {
      td_cuda.cuMemRelease (*handle);
      return false;
    }
  if (td_cuda.cuMemSetAccess (at, bytes, &access, 1) != CUDA_SUCCESS)
    {
      td_cuda.cuMemUnmap (at, bytes);
      td_cuda.cuMemRelease (*handle);
      return false;
    }
  return true;
}

/* Some systems give out addresses and then no pages for them. */
static bool
has_pages (TdCuda *c)
{
  CUmemGenericAllocationHandle handle;

  if (!map (c, c->vmm->start, c->vmm->granularity, &handle))
    return false;
  td_cuda.cuMemUnmap (c->vmm->start, c->vmm->granularity);
  td_cuda.cuMemRelease (handle);
  return true;
}

/* What pages are multiples of: as is advised, or the least, where the pool's segments are none.
 */
static bool
find_granularity (TdCudaVmm *v)
{
  static const CUmemAllocationGranularity_flags which[]
      = { CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_MINIMUM };

  for (int i = 0; i < 2; i++)
    if (td_cuda.cuMemGetAllocationGranularity (&v->granularity, &v->pages, which[i])
            == CUDA_SUCCESS
        && v->granularity > 0 && SEGMENT_UNIT % v->granularity == 0)
      return true;
  return false;
}

bool
td_cuda_vmm_open (TdCuda *c)
{
  TdCudaVmm *v = calloc (1, sizeof *v);
  size_t total = 0;
  int supported = 0;

  if (v == NULL)
    return false;
  v->pages.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  v->pages.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  v->pages.location.id = c->handle;
  td_cuda.cuDeviceGetAttribute (
      &supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, c->handle);
  if (supported == 0 || td_cuda.cuDeviceTotalMem (&total, c->handle) != CUDA_SUCCESS
      || !find_granularity (v))
    {
      free (v);
      return false;
    }
  /* Addresses are cheap: room for holes that only smaller segments fit into. */
  v->bytes = (4 * total + v->granularity - 1) / v->granularity * v->granularity;
  if (td_cuda.cuMemAddressReserve (&v->start, v->bytes, v->granularity, 0, 0) != CUDA_SUCCESS)
    {
      free (v);
      return false;
    }
  c->vmm = v;
  if (has_pages (c))
    return true;
  td_cuda_vmm_close (c);
  return false;
}

void
td_cuda_vmm_close (TdCuda *c)
{
  TdCudaVmm *v = c->vmm;

  if (v == NULL)
    return;
  td_cuda.cuMemAddressFree (v->start, v->bytes);
  free (v->chunks);
  free (v);
  c->vmm = NULL;
}

/* The lowest gap that holds so many bytes: where in the list, and its address; 0: none. */
static CUdeviceptr
find_gap (const TdCudaVmm *v, size_t bytes, size_t *place)
{
  CUdeviceptr at = v->start;

  for (*place = 0; *place < v->n; (*place)++)
    {
      const Chunk *next = &v->chunks[*place];

      if (next->address - at >= bytes)
        return at;
      at = next->address + next->bytes;
    }
  return v->start + v->bytes - at >= bytes ? at : 0;
}

static bool
make_room (TdCudaVmm *v)
{
  size_t capacity = v->capacity > 0 ? 2 * v->capacity : 64;
  Chunk *chunks;

  if (v->n < v->capacity)
    return true;
  chunks = realloc (v->chunks, capacity * sizeof *chunks);
  if (chunks == NULL)
    return false;
  v->chunks = chunks;
  v->capacity = capacity;
  return true;
}

static void *
vmm_new (void *context, size_t bytes)
{
  TdCuda *c = context;
  TdCudaVmm *v = c->vmm;
  CUmemGenericAllocationHandle handle;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr at;
  size_t place;
  bool mapped;

  td_cuda_thread (&c->device);
  if (bytes % v->granularity != 0 || !make_room (v))
    return NULL;
  at = find_gap (v, bytes, &place);
  if (at == 0)
    return NULL;
  td_cuda_exchange_mode (c, &mode);
  mapped = map (c, at, bytes, &handle);
  td_cuda_exchange_mode (c, &mode);
  if (!mapped)
    return NULL;
  memmove (v->chunks + place + 1, v->chunks + place, (v->n - place) * sizeof *v->chunks);
  v->chunks[place] = (Chunk){ at, bytes, handle };
  v->n++;
  return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr): a device address */
}

/* Joined segments come back as one: every chunk within goes.  Work that was issued may still
 * use the pages. */
static void
vmm_free (void *context, void *address, size_t bytes)
{
  TdCuda *c = context;
  TdCudaVmm *v = c->vmm;
  CUdeviceptr from = (CUdeviceptr)address;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  size_t kept = 0;

  td_cuda_enter (&c->device);
  td_cuda_stats_written (c, address, bytes);
  td_cuda_marks_written (c, address, bytes);
  if (c->stream != NULL)
    td_cuda_wait_issued (c);
  td_cuda_exchange_mode (c, &mode);
  for (size_t i = 0; i < v->n; i++)
    {
      Chunk *chunk = &v->chunks[i];

      if (chunk->address >= from && chunk->address < from + bytes)
        {
          td_cuda.cuMemUnmap (chunk->address, chunk->bytes);
          td_cuda.cuMemRelease (chunk->handle);
        }
      else
        v->chunks[kept++] = *chunk;
    }
  td_cuda_exchange_mode (c, &mode);
  v->n = kept;
}

const TdSegmentProvider td_cuda_vmm_provider = { .name = "cuda_vmm",
                                                 .segment_new = vmm_new,
                                                 .segment_free = vmm_free,
                                                 .query = query,
                                                 .alignment = 256,
                                                 .joins = true,
                                                 .fence_passed = fence_passed,
                                                 .fence_wait = fence_wait,
                                                 .fence_new = fence_new };

/* --- cuda_malloc --- */

static void *
malloc_new (void *context, size_t bytes)
{
  TdCuda *c = context;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr at;
  CUresult result;

  td_cuda_thread (&c->device);
  td_cuda_exchange_mode (c, &mode);
  result = td_cuda.cuMemAlloc (&at, bytes);
  td_cuda_exchange_mode (c, &mode);
  if (result != CUDA_SUCCESS)
    return NULL;
  return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr): a device address */
}

static void
malloc_free (void *context, void *address, size_t bytes)
{
  TdCuda *c = context;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  td_cuda_enter (&c->device);
  td_cuda_stats_written (c, address, bytes);
  td_cuda_marks_written (c, address, bytes);
  if (is_lost (c)) /* it went with the context */
    return;
  td_cuda_wait_issued (c);
  td_cuda_exchange_mode (c, &mode);
  td_cuda.cuMemFree ((CUdeviceptr)address);
  td_cuda_exchange_mode (c, &mode);
}

const TdSegmentProvider td_cuda_malloc_provider = { .name = "cuda_malloc",
                                                    .segment_new = malloc_new,
                                                    .segment_free = malloc_free,
                                                    .query = query,
                                                    .alignment = 256,
                                                    .fence_passed = fence_passed,
                                                    .fence_wait = fence_wait,
                                                    .fence_new = fence_new };
