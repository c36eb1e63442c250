/* Copies on the host of small arrays that it sent to the device, each valid until the array is
 * written.
 *
 * Labels and other indices are checked before kernels use them.  Nearly always the host has
 * just sent them, so that it can check its copy and need not wait for the device.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MAX_BYTES = 64 << 10
};

static bool
overlaps (const TdCudaHostCopy *s, CUdeviceptr address, size_t bytes)
{
  return s->host != NULL && address < s->address + s->bytes && s->address < address + bytes;
}

static void
forget (TdCudaHostCopy *s)
{
  free (s->host);
  *s = (TdCudaHostCopy){ 0 };
}

void
td_cuda_host_copies_written (TdCuda *c, const void *address, size_t bytes)
{
  td_cuda_stats_written (c, address, bytes);
  td_cuda_marks_written (c, address, bytes);
  for (int i = 0; i < TD_CUDA_HOST_COPIES; i++)
    if (overlaps (&c->host_copies[i], (CUdeviceptr)address, bytes))
      forget (&c->host_copies[i]);
}

void
td_cuda_host_copies_keep (TdCuda *c, const void *address, const void *host, size_t bytes)
{
  TdCudaHostCopy *s = &c->host_copies[c->next_host_copy];

  td_cuda_host_copies_written (c, address, bytes);
  if (bytes == 0 || bytes > MAX_BYTES)
    return;
  forget (s);
  s->host = malloc (bytes);
  if (s->host == NULL)
    return;
  memcpy (s->host, host, bytes);
  s->address = (CUdeviceptr)address;
  s->bytes = bytes;
  c->next_host_copy = (c->next_host_copy + 1) % TD_CUDA_HOST_COPIES;
}

void
td_cuda_host_copies_close (TdCuda *c)
{
  for (int i = 0; i < TD_CUDA_HOST_COPIES; i++)
    forget (&c->host_copies[i]);
}

/* The array as the host sent it, or NULL. */
static char *
find (const TdCuda *c, const TdTensor *index)
{
  CUdeviceptr address = (CUdeviceptr)index->data;
  size_t bytes = (size_t)index->size * td__bytes_of (index->dtype);

  for (int i = 0; i < TD_CUDA_HOST_COPIES; i++)
    {
      const TdCudaHostCopy *s = &c->host_copies[i];

      if (s->host != NULL && address >= s->address && address + bytes <= s->address + s->bytes)
        return s->host + (address - s->address);
    }
  return NULL;
}

bool
td_cuda_host_copies_have (const TdCuda *c, const TdTensor *index)
{
  return find (c, index) != NULL;
}

bool
td_cuda_host_copies_check_index (TdCuda *c, const TdTensor *index, int64_t limit,
                                 int64_t ignore, int64_t *bad_place, int64_t *bad_value,
                                 TdStatus *status)
{
  TdTensor there = *index;

  if (td_cuda_refuses (c, "has indices that the host checks at every call"))
    {
      *status = TD_ERR_STATE;
      return true;
    }
  there.data = find (c, index);
  if (there.data != NULL)
    *status = td_cuda_host->cpu->ops->check_index (td_cuda_host->cpu, &there, limit, ignore,
                                                   bad_place, bad_value);
  return there.data != NULL;
}
