/* A segment as a CUDA graph: how it is captured, and fixed places in memory for arrays whose
 * moving would make it necessary to capture again at every call.
 *
 * SPDX-License-Identifier: MIT */
#include "capture-private.h"
#include "host-memory.h"
#include "compute/core/async-index.h"

#include <stdlib.h>

void
td__segment_drop_places (TdCaptureSegment *st)
{
  for (uint32_t k = 0; k < st->n_fixed; k++)
    if (st->fixed[k].owns)
      td__pool_release (st->fixed[k].block);
  st->n_fixed = 0;
  for (uint32_t k = 0; k < st->n_refs; k++)
    st->refs[k].fixed = -1;
}

/* --- fixed places --- */

static int
fixed_of (const TdCaptureSegment *st, uint32_t value)
{
  for (uint32_t k = 0; k < st->n_fixed; k++)
    if (st->fixed[k].value == value)
      return (int)k;
  return -1;
}

/* Whether this value, or another one of the segment in the same array (a gradient that this one
 * is added to), is at another address at each call. */
static bool
moves (const TdReplay *p, const TdCaptureSegment *st, uint32_t value)
{
  const TdCaptures *c = p->list->captures;

  for (uint32_t k = 0; k < st->n_refs; k++)
    if (c->moves[st->refs[k].value] >= TD_MAX_MOVES
        && p->i->address[st->refs[k].value] == p->i->address[value])
      return true;
  return false;
}

/* Allocate a fixed place for each array that was found to move.  Values that share an array
 * share its place. */
void
td__segment_make_places (const TdReplay *p, TdCaptureSegment *st)
{
  TdDevice *d = p->list->captures->device;
  const TdSchedule *s = p->i->plan->s;

  td__segment_drop_places (st);
  for (uint32_t k = 0; k < st->n_refs; k++)
    {
      uint32_t value = st->refs[k].value, same = 0;
      TdBlock *block;

      st->refs[k].fixed = fixed_of (st, value);
      if (st->refs[k].fixed >= 0 || !moves (p, st, value))
        continue;
      while (same < st->n_fixed && p->i->address[st->fixed[same].value] != p->i->address[value])
        same++;
      if (same < st->n_fixed)
        block = st->fixed[same].block;
      else if ((block = td__pool_take_from (d->pool, TD_MEM_POOL_GRAPH, s->values[value].bytes,
                                            TD_MEM_STATIC))
               == NULL)
        { /* no memory: go on without fixed places */
          td__segment_drop_places (st);
          return;
        }
      st->fixed = td__xrealloc (st->fixed, (st->n_fixed + 1) * sizeof *st->fixed);
      st->fixed[st->n_fixed] = (TdFixedPlace){ value, block, same == st->n_fixed };
      st->refs[k].fixed = (int)st->n_fixed++;
    }
}

/* Whether values share arrays in this call exactly where they share fixed places. */
bool
td__segment_places_hold (const TdReplay *p, const TdCaptureSegment *st)
{
  for (uint32_t f = 0; f < st->n_fixed; f++)
    {
      const TdFixedPlace *fixed = &st->fixed[f];
      const void *array = p->i->address[fixed->value];

      for (uint32_t k = 0; k < st->n_refs; k++)
        {
          const TdCaptureSegmentRef *ref = &st->refs[k];
          bool one_place = ref->fixed >= 0 && st->fixed[ref->fixed].block == fixed->block;

          if ((p->i->address[ref->value] == array) != one_place)
            return false;
        }
    }
  return true;
}

/* Point operands at the fixed places, or back at the arrays. */
void
td__segment_bind (const TdReplay *p, const TdCaptureSegment *st, bool fixed)
{
  for (uint32_t k = 0; k < st->n_refs && st->n_fixed > 0; k++)
    {
      const TdCaptureSegmentRef *ref = &st->refs[k];

      if (ref->fixed >= 0)
        ref->t->data
            = fixed ? (void *)st->fixed[ref->fixed].block->address : p->i->address[ref->value];
    }
}

/* Copy what the segment reads into the fixed places before it runs, or what it has written
 * there back to the arrays after it. */
TdStatus
td__segment_copy (const TdReplay *p, const TdCaptureSegment *st, bool before)
{
  TdDevice *d = p->i->plan->s->device;
  TdStatus status = TD_OK;

  for (uint32_t f = 0; f < st->n_fixed && status == TD_OK; f++)
    {
      const TdFixedPlace *fixed = &st->fixed[f];
      void *array = p->i->address[fixed->value];
      size_t bytes = p->i->plan->s->values[fixed->value].bytes;
      bool first = true, wanted = false;

      for (uint32_t k = 0; fixed->owns && k < st->n_refs; k++)
        {
          const TdCaptureSegmentRef *ref = &st->refs[k];

          if (ref->t->data != (void *)fixed->block->address)
            continue;
          if (before ? first && (ref->reads || st->steps[ref->at].adds != 0) : ref->writes)
            wanted = true;
          first = false;
        }
      if (wanted)
        status = before ? d->ops->copy (d, fixed->block->address, array, bytes)
                        : d->ops->copy (d, array, fixed->block->address, bytes);
    }
  return status;
}

/** State of the engine that is suspended while a segment is captured. */
typedef struct
{
  TdObserver *observer;
  TdError error;
  bool has_error;
} Suspended;

static void
suspend (Suspended *was, TdDevice *d)
{
  TdEngine *e = &td__engine;

  *was = (Suspended){ e->observer, e->error, e->has_error };
  e->observer = NULL;
  e->capturing = true;
  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    td__pool_hold (d->pool, (TdMemPool)which, 1);
}

static void
resume (const Suspended *was, TdDevice *d)
{
  TdEngine *e = &td__engine;

  e->observer = was->observer;
  e->error = was->error;
  e->has_error = was->has_error;
  e->capturing = false;
  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    td__pool_hold (d->pool, (TdMemPool)which, -1);
}

/* Call the steps' kernels while the device captures: all of them into a new graph, or only the
 * marked ones to update the graph that there is.  Returns NULL on success, else the reason;
 * *bad is then the step that cannot be captured, or TD_ABSENT where no step is at fault. */
const char *
td__segment_record (TdReplay *p, TdCaptureSegment *st, bool all, uint32_t *bad)
{
  TdDevice *d = p->list->captures->device;
  const TdDeviceGraphs *graphs = d->ops->graphs;
  const char *why;
  Suspended was;

  *bad = TD_ABSENT;
  suspend (&was, d);
  why = graphs->begin (d, all ? NULL : st->graph);
  for (uint32_t k = 0; k < st->n_steps && why == NULL && *bad == TD_ABSENT; k++)
    if (all || st->steps[k].changed)
      {
        TdReady *r = &p->list->ready[st->steps[k].ready];

        graphs->step (d, k);
        td__index_capture (d, &st->steps[k].places, r->step->path);
        if (td__replay_one (p, r) != TD_OK)
          *bad = st->steps[k].ready;
        td__index_capture (d, NULL, NULL);
      }
  if (*bad != TD_ABSENT)
    {
      graphs->abandon (d, &why);
      why = why != NULL ? why : "fails while it is captured";
    }
  else if (why == NULL)
    {
      TdGraph *before = st->graph;

      why = graphs->end (d, &st->graph);
      if ((before == NULL) != (st->graph == NULL))
        td__pool_hold (d->pool, TD_MEM_POOL_GRAPH, st->graph != NULL ? 1 : -1);
    }
  resume (&was, d);
  return why;
}
