/* Memory of the fake driver: one range of addresses without permission, of which pieces are
 * allocated or mapped; opened while kernels run.  New memory holds NaN.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_BYTES ((size_t)64 << 30) /* of addresses */
#define GRANULARITY ((size_t)2 << 20)

enum
{
  MAX_PIECES = 4096,
  MAX_PINNED = 64
};

/* Bytes that can be used, in the order of addresses. */
typedef struct
{
  CUdeviceptr address;
  size_t bytes;
  bool mapped; /* not the context's */
  bool usable; /* mapped pages: once access was given */
} Piece;

static struct
{
  char *start;
  size_t reserved; /* from the start on: ranges that were given out and are never given again */
  Piece pieces[MAX_PIECES];
  int n;
  bool open;
  struct
  {
    char *host;
    size_t bytes;
  } pinned[MAX_PINNED];
} memory;

static void
protect (const Piece *p, int how)
{
  mprotect ((void *)p->address, p->bytes, p->usable ? how : PROT_NONE);
}

void
fake_memory_open (void)
{
  memory.open = true;
  for (int i = 0; i < memory.n; i++)
    protect (&memory.pieces[i], PROT_READ | PROT_WRITE);
}

void
fake_memory_close (void)
{
  memory.open = false;
  for (int i = 0; i < memory.n; i++)
    protect (&memory.pieces[i], PROT_NONE);
}

/* Neighbours count as one: a pool joins them. */
bool
fake_is_mapped (CUdeviceptr address, size_t bytes)
{
  for (int i = 0; i < memory.n && bytes > 0; i++)
    {
      const Piece *p = &memory.pieces[i];

      if (p->usable && address >= p->address && address < p->address + p->bytes)
        {
          size_t here = p->address + p->bytes - address;

          if (bytes <= here)
            return true;
          address += here;
          bytes -= here;
        }
    }
  return bytes == 0;
}

static bool
region_open (void)
{
  if (memory.start == NULL)
    {
      memory.start = mmap (NULL, REGION_BYTES, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory.start == MAP_FAILED)
        memory.start = NULL;
    }
  return memory.start != NULL;
}

/* Addresses for so many bytes; 0: there are none. */
static CUdeviceptr
reserve (size_t bytes)
{
  CUdeviceptr at;

  bytes = (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
  if (!region_open () || bytes > REGION_BYTES - memory.reserved - GRANULARITY)
    return 0;
  at = (CUdeviceptr)memory.start + memory.reserved;
  memory.reserved += bytes + GRANULARITY; /* nobody's addresses lie between */
  return at;
}

static CUresult
add (CUdeviceptr address, size_t bytes, bool mapped)
{
  int i = memory.n;

  if (memory.n == MAX_PIECES)
    return CUDA_ERROR_OUT_OF_MEMORY;
  while (i > 0 && memory.pieces[i - 1].address > address)
    {
      memory.pieces[i] = memory.pieces[i - 1];
      i--;
    }
  memory.pieces[i] = (Piece){ address, bytes, mapped, true };
  memory.n++;
  protect (&memory.pieces[i], PROT_READ | PROT_WRITE);
  memset ((void *)address, 0xFF, bytes);
  memory.pieces[i].usable = !mapped;
  if (!memory.open || mapped)
    protect (&memory.pieces[i], PROT_NONE);
  return CUDA_SUCCESS;
}

static CUresult
take_away (CUdeviceptr address, size_t bytes)
{
  for (int i = 0; i < memory.n; i++)
    if (memory.pieces[i].address == address && (bytes == 0 || memory.pieces[i].bytes == bytes))
      {
        bytes = memory.pieces[i].bytes;
        if (fake_is_in_use (address, bytes))
          fake_violation ("memory was given back while work that waits uses it");
        madvise ((void *)address, bytes, MADV_DONTNEED);
        protect (&memory.pieces[i], PROT_NONE);
        memmove (memory.pieces + i, memory.pieces + i + 1,
                 (size_t)(memory.n - i - 1) * sizeof (Piece));
        memory.n--;
        return CUDA_SUCCESS;
      }
  fake_violation ("memory was given back that is not there");
  return CUDA_ERROR_INVALID_VALUE;
}

void
fake_memory_end_context (void)
{
  for (int i = memory.n - 1; i >= 0; i--)
    if (!memory.pieces[i].mapped)
      {
        fake.used_bytes -= memory.pieces[i].bytes;
        take_away (memory.pieces[i].address, 0);
      }
  for (int i = 0; i < MAX_PINNED; i++)
    {
      free (memory.pinned[i].host);
      memory.pinned[i].host = NULL;
    }
}

void
fake_memory_reset (void)
{
  while (memory.n > 0)
    take_away (memory.pieces[0].address, 0);
  memory.reserved = 0;
}

/* --- one call each --- */

static CUresult
charge (size_t bytes)
{
  if (bytes > fake.total_bytes - fake.used_bytes - fake.outside_bytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  fake.used_bytes += bytes;
  return CUDA_SUCCESS;
}

CUresult
cuMemGetInfo (size_t *free_bytes, size_t *total)
{
  *total = fake.total_bytes;
  *free_bytes = fake.total_bytes - fake.used_bytes - fake.outside_bytes;
  return fake_enter ("cuMemGetInfo");
}

CUresult
cuMemAlloc (CUdeviceptr *address, size_t bytes)
{
  CUresult result = fake_enter ("cuMemAlloc");

  if (result == CUDA_SUCCESS && fake_forbids ("cuMemAlloc"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  bytes = (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
  if (result == CUDA_SUCCESS)
    result = charge (bytes);
  if (result != CUDA_SUCCESS)
    return result;
  *address = reserve (bytes);
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : add (*address, bytes, false);
}

CUresult
cuMemFree (CUdeviceptr address)
{
  CUresult result = fake_enter ("cuMemFree");

  if (result == CUDA_SUCCESS && fake_forbids ("cuMemFree"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (int i = 0; i < memory.n; i++)
    if (memory.pieces[i].address == address)
      fake.used_bytes -= memory.pieces[i].bytes;
  return result != CUDA_SUCCESS ? result : take_away (address, 0);
}

CUresult
cuMemGetAllocationGranularity (size_t *granularity, const CUmemAllocationProp *prop,
                               CUmemAllocationGranularity_flags option)
{
  *granularity = option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED && fake.advised > 0
                     ? fake.advised
                     : GRANULARITY;
  return fake_enter ("cuMemGetAllocationGranularity");
}

CUresult
cuMemAddressReserve (CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                     unsigned long long flags)
{
  CUresult result = fake_enter ("cuMemAddressReserve");

  if (result != CUDA_SUCCESS)
    return result;
  if (bytes == 0 || bytes % GRANULARITY != 0 || (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *address = reserve (bytes);
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
cuMemAddressFree (CUdeviceptr address, size_t bytes)
{
  for (int i = 0; i < memory.n; i++)
    if (memory.pieces[i].address >= address && memory.pieces[i].address < address + bytes)
      fake_violation ("addresses were given back with memory behind them");
  return fake_enter ("cuMemAddressFree");
}

/* A handle is the number of its bytes. */
CUresult
cuMemCreate (CUmemGenericAllocationHandle *handle, size_t bytes,
             const CUmemAllocationProp *prop, unsigned long long flags)
{
  CUresult result = fake_enter ("cuMemCreate");

  if (result == CUDA_SUCCESS && fake_forbids ("cuMemCreate"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (result == CUDA_SUCCESS
      && (bytes == 0 || bytes % GRANULARITY != 0 || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED
          || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE))
    return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    result = charge (bytes);
  *handle = bytes;
  return result;
}

CUresult
cuMemRelease (CUmemGenericAllocationHandle handle)
{
  fake.used_bytes -= handle;
  return fake_enter ("cuMemRelease");
}

CUresult
cuMemMap (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
          unsigned long long flags)
{
  CUresult result = fake_enter ("cuMemMap");

  if (result != CUDA_SUCCESS)
    return result;
  for (int i = 0; i < memory.n; i++)
    if (memory.pieces[i].address < address + bytes
        && memory.pieces[i].address + memory.pieces[i].bytes > address)
      {
        fake_violation ("memory was mapped where there is some");
        return CUDA_ERROR_INVALID_VALUE;
      }
  if (address % GRANULARITY != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return bytes == handle ? add (address, bytes, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult
cuMemUnmap (CUdeviceptr address, size_t bytes)
{
  CUresult result = fake_enter ("cuMemUnmap");

  if (result == CUDA_SUCCESS && fake_forbids ("cuMemUnmap"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return result != CUDA_SUCCESS ? result : take_away (address, bytes);
}

CUresult
cuMemSetAccess (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
  CUresult result = fake_enter ("cuMemSetAccess");

  if (result != CUDA_SUCCESS)
    return result;
  for (int i = 0; i < memory.n; i++)
    {
      Piece *p = &memory.pieces[i];

      if (p->mapped && p->address >= address && p->address + p->bytes <= address + bytes)
        {
          p->usable = n == 1 && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                      && access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
          if (memory.open)
            protect (p, PROT_READ | PROT_WRITE);
        }
    }
  return fake_is_mapped (address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- pinned memory of the host --- */

bool
fake_is_pinned (const void *host, size_t bytes)
{
  for (int i = 0; i < MAX_PINNED; i++)
    if (memory.pinned[i].host != NULL && (const char *)host >= memory.pinned[i].host
        && (const char *)host + bytes <= memory.pinned[i].host + memory.pinned[i].bytes)
      return true;
  return false;
}

CUresult
cuMemAllocHost (void **host, size_t bytes)
{
  CUresult result = fake_enter ("cuMemAllocHost");

  if (result == CUDA_SUCCESS && fake_forbids ("cuMemAllocHost"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (int i = 0; result == CUDA_SUCCESS && i < MAX_PINNED; i++)
    if (memory.pinned[i].host == NULL)
      {
        *host = memory.pinned[i].host = malloc (bytes);
        memory.pinned[i].bytes = bytes;
        return *host == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
      }
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuMemFreeHost (void *host)
{
  if (fake_forbids ("cuMemFreeHost"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (int i = 0; i < MAX_PINNED; i++)
    if (memory.pinned[i].host == host)
      {
        fake_drain_all (); /* the driver waits as well */
        free (host);
        memory.pinned[i].host = NULL;
        return fake_enter ("cuMemFreeHost");
      }
  fake_violation ("pinned memory was freed that is none");
  return CUDA_ERROR_INVALID_VALUE;
}
