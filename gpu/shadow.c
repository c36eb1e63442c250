/* Small arrays as the host sent them: what has not been written since can be looked at without
 * waiting for the device.
 *
 * Labels and words are checked before kernels use them as places.  Nearly always the host has
 * just sent them, so that the check needs no answer from the device.
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
overlaps (const TdCudaShadow *s, CUdeviceptr address, size_t bytes)
{
  return s->host != NULL && address < s->address + s->bytes && s->address < address + bytes;
}

static void
forget (TdCudaShadow *s)
{
  free (s->host);
  *s = (TdCudaShadow){ 0 };
}

void
td_cuda_shadows_written (TdCuda *c, const void *address, size_t bytes)
{
  td_cuda_stats_written (c, address, bytes);
  td_cuda_marks_written (c, address, bytes);
  for (int i = 0; i < TD_CUDA_SHADOWS; i++)
    if (overlaps (&c->shadows[i], (CUdeviceptr)address, bytes))
      forget (&c->shadows[i]);
}

void
td_cuda_shadows_keep (TdCuda *c, const void *address, const void *host, size_t bytes)
{
  TdCudaShadow *s = &c->shadows[c->next_shadow];

  td_cuda_shadows_written (c, address, bytes);
  if (bytes == 0 || bytes > MAX_BYTES)
    return;
  forget (s);
  s->host = malloc (bytes);
  if (s->host == NULL)
    return;
  memcpy (s->host, host, bytes);
  s->address = (CUdeviceptr)address;
  s->bytes = bytes;
  c->next_shadow = (c->next_shadow + 1) % TD_CUDA_SHADOWS;
}

void
td_cuda_shadows_close (TdCuda *c)
{
  for (int i = 0; i < TD_CUDA_SHADOWS; i++)
    forget (&c->shadows[i]);
}

/* The array as the host sent it, or NULL. */
static char *
find (const TdCuda *c, const TdTensor *index)
{
  CUdeviceptr address = (CUdeviceptr)index->data;
  size_t bytes = (size_t)index->size * td_cuda_dtype_bytes[index->dtype];

  for (int i = 0; i < TD_CUDA_SHADOWS; i++)
    {
      const TdCudaShadow *s = &c->shadows[i];

      if (s->host != NULL && address >= s->address && address + bytes <= s->address + s->bytes)
        return s->host + (address - s->address);
    }
  return NULL;
}

bool
td_cuda_shadows_have (const TdCuda *c, const TdTensor *index)
{
  return find (c, index) != NULL;
}

bool
td_cuda_shadows_check_index (TdCuda *c, const TdTensor *index, int64_t limit, int64_t ignore,
                             int64_t *bad_place, int64_t *bad_value, TdStatus *status)
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
