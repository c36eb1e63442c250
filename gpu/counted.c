/* What kernels counted while they wrote, kept till it is asked for: where each array's parts
 * lie.
 *
 * Parts are a ring in the driver's own memory.  What was counted is forgotten when something
 * writes to its array, or when the ring comes round; what is asked for waits in stats-later.c
 * for the launch that joins the parts, and the ring does not overtake it: that launch goes out
 * first. Afterwards the array itself may change: the parts say what was in it.
 *
 * SPDX-License-Identifier: MIT */
#include "later.h"

#include <stdlib.h>

enum
{
  ROOM = 1 << 14, /* parts */
  KNOWN = 16      /* arrays; operations write one or two, a static chain's kernel some more */
};

typedef struct
{
  const char *data; /* NULL: none */
  size_t bytes;
  TdDtype dtype;
  uint64_t at; /* of the ring, counted on and on */
  int64_t n;
} Counted;

struct TdCudaCounted
{
  TdCudaStats *parts; /* device memory */
  uint64_t head;
  uint64_t waits_from; /* the oldest that waits */
  bool waits;
  Counted known[KNOWN];
  int next;
};

size_t
td_cuda_counted_bytes (void)
{
  return ROOM * sizeof (TdCudaStats);
}

bool
td_cuda_counted_open (TdCuda *c, CUdeviceptr room)
{
  c->counted = calloc (1, sizeof *c->counted);
  if (c->counted == NULL)
    return false;
  c->counted->parts = (TdCudaStats *)room;
  return true;
}

void
td_cuda_counted_close (TdCuda *c)
{
  free (c->counted);
  c->counted = NULL;
}

static size_t
bytes_of (const TdTensor *x)
{
  return (size_t)x->size * td_cuda_dtype_bytes[x->dtype];
}

bool
td_cuda_counted_wanted (const TdCuda *c)
{
  return c->device.stats_wanted && !c->device.stats_apart && c->capture == NULL
         && c->repeat == NULL && c->lost == TD_OK;
}

TdCudaStats *
td_cuda_counted_take (TdCuda *c, const TdTensor *y, int64_t blocks)
{
  struct TdCudaCounted *s;
  Counted *k;
  uint64_t at;

  if (!td_cuda_counted_wanted (c) || blocks > ROOM || !td_cuda_stats_open (c))
    return NULL;
  s = c->counted;
  at = s->head;
  if (at % ROOM + (uint64_t)blocks > ROOM) /* parts lie side by side */
    at += ROOM - at % ROOM;
  if (s->waits && at + (uint64_t)blocks - s->waits_from > ROOM)
    td_cuda_stats_send (c);
  s->head = at + (uint64_t)blocks;
  k = &s->known[s->next];
  s->next = (s->next + 1) % KNOWN;
  *k = (Counted){ y->data, bytes_of (y), y->dtype, at, blocks };
  if (td_cuda.uses != NULL)
    td_cuda.uses (c->stream, (CUdeviceptr)(s->parts + at % ROOM),
                  (size_t)blocks * sizeof *s->parts, true);
  return s->parts + at % ROOM;
}

TdCudaParts
td_cuda_counted_find (const TdCuda *c, const TdTensor *x)
{
  const struct TdCudaCounted *s = c->counted;

  for (int i = 0; s != NULL && i < KNOWN; i++)
    {
      const Counted *k = &s->known[i];

      if (k->data != NULL && k->data == x->data && k->bytes == bytes_of (x)
          && k->dtype == x->dtype && s->head - k->at <= ROOM)
        return (TdCudaParts){ s->parts + k->at % ROOM, k->n, k->at };
    }
  return (TdCudaParts){ 0 };
}

void
td_cuda_counted_waits (TdCuda *c, const TdCudaParts *parts)
{
  struct TdCudaCounted *s = c->counted;

  if (!s->waits || parts->at < s->waits_from)
    s->waits_from = parts->at;
  s->waits = true;
}

void
td_cuda_counted_sent (TdCuda *c)
{
  if (c->counted != NULL)
    c->counted->waits = false;
}

void
td_cuda_counted_written (TdCuda *c, const void *address, size_t bytes)
{
  struct TdCudaCounted *s = c->counted;
  const char *from = address;

  for (int i = 0; s != NULL && i < KNOWN; i++)
    if (s->known[i].data != NULL && from < s->known[i].data + s->known[i].bytes
        && s->known[i].data < from + bytes)
      s->known[i].data = NULL;
}

void
td_cuda_counted_forget (TdCuda *c)
{
  for (int i = 0; c->counted != NULL && i < KNOWN; i++)
    c->counted->known[i].data = NULL;
}
