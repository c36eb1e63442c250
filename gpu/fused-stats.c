/* Partial statistics that kernels left while they wrote: which array has some, and where.
 *
 * Each block of a counting kernel (counting.c) leaves one partial result in a ring buffer in
 * device memory; the launch of stats-async.c reduces them to the array's statistics.  Partial
 * results describe the array as it was written, so the array may change after that.  They are
 * dropped when something else writes to the array, or when the ring wraps around; results that
 * somebody has asked for are reduced before the ring overwrites them.
 *
 * SPDX-License-Identifier: MIT */
#include "async.h"

#include <stdlib.h>

enum
{
  ROOM = 1 << 14, /* parts */
  KNOWN = 16 /* arrays; operations write one or two, a static function's kernel some more */
};

typedef struct
{
  const char *data; /* NULL: none */
  size_t bytes;
  TdDtype dtype;
  uint64_t at; /* of the ring, counted on and on */
  int64_t n;
} FusedStats;

struct TdCudaFusedStats
{
  TdCudaStats *parts; /* device memory */
  uint64_t head;
  uint64_t waits_from; /* the oldest that waits */
  bool waits;
  FusedStats known[KNOWN];
  int next;
};

size_t
td_cuda_fused_stats_bytes (void)
{
  return ROOM * sizeof (TdCudaStats);
}

bool
td_cuda_fused_stats_open (TdCuda *c, CUdeviceptr room)
{
  c->fused_stats = calloc (1, sizeof *c->fused_stats);
  if (c->fused_stats == NULL)
    return false;
  c->fused_stats->parts = (TdCudaStats *)room;
  return true;
}

void
td_cuda_fused_stats_close (TdCuda *c)
{
  free (c->fused_stats);
  c->fused_stats = NULL;
}

static size_t
bytes_of (const TdTensor *x)
{
  return (size_t)x->size * td__bytes_of (x->dtype);
}

bool
td_cuda_fused_stats_wanted (const TdCuda *c)
{
  return c->device.stats_wanted && !c->device.stats_apart && c->capture == NULL
         && c->repeat == NULL && c->lost == TD_OK;
}

TdCudaStats *
td_cuda_fused_stats_take (TdCuda *c, const TdTensor *y, int64_t blocks)
{
  struct TdCudaFusedStats *s;
  FusedStats *k;
  uint64_t at;

  if (!td_cuda_fused_stats_wanted (c) || blocks > ROOM || !td_cuda_stats_open (c))
    return NULL;
  s = c->fused_stats;
  at = s->head;
  if (at % ROOM + (uint64_t)blocks > ROOM) /* parts lie side by side */
    at += ROOM - at % ROOM;
  if (s->waits && at + (uint64_t)blocks - s->waits_from > ROOM)
    td_cuda_stats_send (c);
  s->head = at + (uint64_t)blocks;
  k = &s->known[s->next];
  s->next = (s->next + 1) % KNOWN;
  *k = (FusedStats){ y->data, bytes_of (y), y->dtype, at, blocks };
  return s->parts + at % ROOM;
}

TdCudaParts
td_cuda_fused_stats_find (const TdCuda *c, const TdTensor *x)
{
  const struct TdCudaFusedStats *s = c->fused_stats;

  for (int i = 0; s != NULL && i < KNOWN; i++)
    {
      const FusedStats *k = &s->known[i];

      if (k->data != NULL && k->data == x->data && k->bytes == bytes_of (x)
          && k->dtype == x->dtype && s->head - k->at <= ROOM)
        return (TdCudaParts){ s->parts + k->at % ROOM, k->n, k->at };
    }
  return (TdCudaParts){ 0 };
}

void
td_cuda_fused_stats_waits (TdCuda *c, const TdCudaParts *parts)
{
  struct TdCudaFusedStats *s = c->fused_stats;

  if (!s->waits || parts->at < s->waits_from)
    s->waits_from = parts->at;
  s->waits = true;
}

void
td_cuda_fused_stats_sent (TdCuda *c)
{
  if (c->fused_stats != NULL)
    c->fused_stats->waits = false;
}

void
td_cuda_fused_stats_written (TdCuda *c, const void *address, size_t bytes)
{
  struct TdCudaFusedStats *s = c->fused_stats;
  const char *from = address;

  for (int i = 0; s != NULL && i < KNOWN; i++)
    if (s->known[i].data != NULL && from < s->known[i].data + s->known[i].bytes
        && s->known[i].data < from + bytes)
      s->known[i].data = NULL;
}

void
td_cuda_fused_stats_forget (TdCuda *c)
{
  for (int i = 0; c->fused_stats != NULL && i < KNOWN; i++)
    c->fused_stats->known[i].data = NULL;
}
