/* What levels stats and values add to an event: statistics and elements of its outputs.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"

#include "compute/core/copies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void
td__recorder_fill_stats (TdTapeStats *to, const TdStats *d)
{
  memset (to, 0, sizeof *to);
  to->n = d->n;
  to->n_sampled = d->n_sampled;
  to->n_zero = d->n_zero;
  to->n_nan = d->n_nan;
  to->n_pos_inf = d->n_pos_inf;
  to->n_neg_inf = d->n_neg_inf;
  to->min = d->min;
  to->max = d->max;
  to->mean = d->mean;
  to->m2 = d->m2;
  to->l2 = sqrt (d->sum_squares);
  memcpy (to->bins, d->exponent, sizeof to->bins);
}

void
td__recorder_stats_of (const TdNode *n, const TdBuffer *b, uint64_t id, TdTapeStats *to)
{
  TdShape shape = n->shape;
  const uint64_t size = (uint64_t)td_shape_size (&shape), sample = size > TD_TAPE_STATS_SAMPLE
                                                                       ? TD_TAPE_STATS_SAMPLED
                                                                       : TD_TAPE_STATS_SAMPLE;
  TdTensor x = { b->data, &shape, (int64_t)size, (TdDtype)n->dtype };
  TdStats d;

  memset (to, 0, sizeof *to);
  if (b->device->ops->stats (b->device, &x, sample, id, &d) == TD_OK)
    td__recorder_fill_stats (to, &d);
}

static void
write_stats (TdRecorder *r, const TdNode *n, const TdBuffer *b, uint64_t size)
{
  TdRawStats *s;
  TdShape shape = n->shape;
  TdTensor x = { b->data, &shape, (int64_t)size, (TdDtype)n->dtype };
  uint64_t sample = size > TD_TAPE_STATS_SAMPLE ? TD_TAPE_STATS_SAMPLED : TD_TAPE_STATS_SAMPLE;

  if (td__recorder_stats_async (r, n, &x, sample))
    return;
  s = td_ring_reserve (r->ring, sizeof *s);
  s->head = (TdRawHead){ sizeof *s, TD_RAW_STATS, 0 };
  s->variable = n->id;
  td__recorder_stats_of (n, b, n->id, &s->stats);
  td_ring_publish (r->ring, sizeof *s);
}

void
td__recorder_tensor (TdRecorder *r, const TdNode *n, const TdBuffer *b, uint16_t flags)
{
  uint32_t most = TD_RING_MAX_RECORD (r->ring) - (uint32_t)sizeof (TdRawTensor);
  char *logical = NULL; /* of an array whose memory is in another order */

  if (n->layout != TD_ROW_MAJOR)
    {
      logical = malloc (b->bytes + 1);
      if (logical == NULL
          || td__layout_download (n, b, logical, TD_COPY_RECORDING, NULL) != TD_OK)
        {
          free (logical);
          return;
        }
    }
  for (uint64_t offset = 0; offset < b->bytes || offset == 0; offset += most)
    {
      uint32_t length = b->bytes - offset < most ? (uint32_t)(b->bytes - offset) : most;
      uint32_t bytes = TD_RAW_PADDED (sizeof (TdRawTensor) + length);
      TdRawTensor *t = td_ring_reserve (r->ring, bytes);

      t->head = (TdRawHead){ bytes, TD_RAW_TENSOR, flags };
      t->variable = n->id;
      t->total = b->bytes;
      t->offset = offset;
      t->length = length;
      t->dtype = n->dtype;
      t->ndim = (uint8_t)n->shape.ndim;
      t->reserved = 0;
      for (int d = 0; d < TD_TAPE_MAX_NDIM; d++)
        t->dims[d] = d < n->shape.ndim ? n->shape.dim[d] : 0;
      if (logical != NULL)
        memcpy (t->bytes, logical + offset, length);
      else if (b->device->ops->download (b->device, t->bytes, (const char *)b->data + offset,
                                         length)
               != TD_OK)
        return; /* what is reserved and not published was never there */
      td_ring_publish (r->ring, bytes);
    }
  free (logical);
}

void
td__recorder_values (TdRecorder *r, const TdNode *n, const TdBuffer *b)
{
  if (b == NULL || !b->device->computes)
    return;
  write_stats (r, n, b, (uint64_t)td_shape_size (&n->shape));
  if (r->level >= TD_TAPE_LEVEL_VALUES && b->bytes <= r->values_max_bytes)
    td__recorder_tensor (r, n, b, 0);
}

static TdGradientAt *
gradient_at (TdRecorder *r, const TdBuffer *b)
{
  return &r->gradients[b->id % TD_GRADIENTS_KNOWN];
}

/* What a replay reads that no variable has has memory all the same: constants, and sums in its
 * own memory. The rest of that is counted when it is written: before, it has what was there
 * last. */
static const TdBuffer *
buffer_of (TdRecorder *r, const TdEvent *e, const TdNode *n)
{
  const TdBuffer *b = n->retained;

  if (n->var != NULL)
    return n->var->buffer;
  if (!(e->flags & TD_EVENT_REPLAYED) || b == NULL)
    return NULL;
  if (b->category != TD_MEM_STATIC)
    return b;
  if (gradient_at (r, b)->buffer != b->id)
    return NULL;
  gradient_at (r, b)->variable = n->id; /* what is added from here on, too */
  return b;
}

void
td__recorder_inputs (TdRecorder *r, const TdEvent *e)
{
  for (int i = 0; i < e->n_in; i++)
    {
      TdNode *n = e->in[i];
      const bool is_gradient
          = e->phase == TD_PHASE_UPDATE && td__recorder_gradient_of (n) != NULL;

      if (n->counted == TD_COUNTED)
        continue;
      const bool is_written = n->counted == TD_COUNTED_WRITTEN;
      n->counted = TD_COUNTED;
      /* what is only written has numbers that nobody made */
      const bool is_filled = (e->cls->flags & TD_OP_FILLS) && td__bit (e->cls->writes, i);
      if ((!is_gradient || is_written) && !is_filled && n->device->ops->stats_async == NULL)
        td__recorder_values (r, n, buffer_of (r, e, n));
    }
}

/* A replay that adds to a gradient does not say to which: it is the one that has this memory.
 */
static void
replayed_sum (TdRecorder *r, const TdEvent *e)
{
  const TdBuffer *b = e->out_buffers[0];
  TdGradientAt *at = gradient_at (r, b);
  TdNode sum = *e->out[0];

  if (at->buffer != b->id)
    *at = (TdGradientAt){ b->id, sum.id };
  else if (b->device->ops->stats_async == NULL)
    {
      sum.id = at->variable;
      td__recorder_values (r, &sum, b);
    }
}

void
td__recorder_accumulated (TdRecorder *r, const TdEvent *e)
{
  const TdNode *n = (e->cls->writes & 1) != 0 && e->n_in > 0 ? e->in[0] : e->into;

  for (int k = 0; k < e->n_out && !(e->flags & TD_EVENT_ACCUMULATE); k++)
    if (e->out_buffers[k] != NULL)
      *gradient_at (r, e->out_buffers[k])
          = (TdGradientAt){ e->out_buffers[k]->id, e->out[k]->id };
  if (n == NULL && e->n_out > 0 && e->out_buffers[0] != NULL
      && (e->flags & TD_EVENT_ACCUMULATE))
    replayed_sum (r, e);
  if (n != NULL && n->var != NULL && n->device->ops->stats_async == NULL)
    td__recorder_values (r, n, n->var->buffer);
}

void
td__recorder_updated (TdRecorder *r, const TdNode *n)
{
  if (n->device->ops->stats_async != NULL)
    td__recorder_gradient (r, n);
  else if (n->var != NULL)
    td__recorder_values (r, n, n->var->buffer);
}
