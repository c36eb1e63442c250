/* A stretch as a CUDA graph: its capture, and fixed places for arrays that would make captures
 * necessary too often.
 *
 * SPDX-License-Identifier: MIT */
#include "capture-private.h"
#include "../core/late-index.h"

#include <stdlib.h>

void
td__stretch_drop_places (TdStretch *st)
{
  for (uint32_t k = 0; k < st->n_fixed; k++)
    if (st->fixed[k].owns)
      td__pool_give (st->fixed[k].block);
  st->n_fixed = 0;
  for (uint32_t k = 0; k < st->n_refs; k++)
    st->refs[k].fixed = -1;
}

/* --- fixed places --- */

static int
fixed_of (const TdStretch *st, uint32_t value)
{
  for (uint32_t k = 0; k < st->n_fixed; k++)
    if (st->fixed[k].value == value)
      return (int)k;
  return -1;
}

/* Does the stretch use a value that moves and lies where this one lies: itself, or one that its
 * gradient is added to? */
static bool
moves (const TdPlay *p, const TdStretch *st, uint32_t value)
{
  const TdCaptures *c = p->list->captures;

  for (uint32_t k = 0; k < st->n_refs; k++)
    if (c->moves[st->refs[k].value] >= TD_MAX_MOVES
        && p->i->address[st->refs[k].value] == p->i->address[value])
      return true;
  return false;
}

/* Places for the arrays that were found to move; what lies in one array has one place. */
void
td__stretch_make_places (const TdPlay *p, TdStretch *st)
{
  TdDevice *d = p->list->captures->device;
  const TdSchedule *s = p->i->plan->s;

  td__stretch_drop_places (st);
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
        { /* then it goes on without */
          td__stretch_drop_places (st);
          return;
        }
      st->fixed = realloc (st->fixed, (st->n_fixed + 1) * sizeof *st->fixed);
      if (st->fixed == NULL)
        abort ();
      st->fixed[st->n_fixed] = (TdFixedPlace){ value, block, same == st->n_fixed };
      st->refs[k].fixed = (int)st->n_fixed++;
    }
}

/* Do those values share arrays that share places, and no others? */
bool
td__stretch_places_hold (const TdPlay *p, const TdStretch *st)
{
  for (uint32_t f = 0; f < st->n_fixed; f++)
    {
      const TdFixedPlace *fixed = &st->fixed[f];
      const void *array = p->i->address[fixed->value];

      for (uint32_t k = 0; k < st->n_refs; k++)
        {
          const TdStretchRef *ref = &st->refs[k];
          bool one_place = ref->fixed >= 0 && st->fixed[ref->fixed].block == fixed->block;

          if ((p->i->address[ref->value] == array) != one_place)
            return false;
        }
    }
  return true;
}

/* Point operands at the fixed places, or back at the arrays. */
void
td__stretch_bind (const TdPlay *p, const TdStretch *st, bool fixed)
{
  for (uint32_t k = 0; k < st->n_refs && st->n_fixed > 0; k++)
    {
      const TdStretchRef *ref = &st->refs[k];

      if (ref->fixed >= 0)
        ref->t->data
            = fixed ? (void *)st->fixed[ref->fixed].block->address : p->i->address[ref->value];
    }
}

/* Bytes that the stretch finds there, before it; those that it leaves there, after it. */
TdStatus
td__stretch_copy (const TdPlay *p, const TdStretch *st, bool before)
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
          const TdStretchRef *ref = &st->refs[k];

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

/** What a capture must leave as it was. */
typedef struct
{
  TdObserver *observer;
  TdError error;
  bool has_error;
} Aside;

static void
put_aside (Aside *a, TdDevice *d)
{
  TdEngine *e = &td__engine;

  *a = (Aside){ e->observer, e->error, e->has_error };
  e->observer = NULL;
  e->capturing = true;
  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    td__pool_hold (d->pool, (TdMemPool)which, 1);
}

static void
put_back (const Aside *a, TdDevice *d)
{
  TdEngine *e = &td__engine;

  e->observer = a->observer;
  e->error = a->error;
  e->has_error = a->has_error;
  e->capturing = false;
  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    td__pool_hold (d->pool, (TdMemPool)which, -1);
}

/* Let the slots of steps go into a capture: all of them, or those that have changed.  NULL: all
 * is well; else why not, and *bad is the step, TD_ABSENT where it is none's fault. */
const char *
td__stretch_record (TdPlay *p, TdStretch *st, bool all, uint32_t *bad)
{
  TdDevice *d = p->list->captures->device;
  const TdDeviceGraphs *graphs = d->ops->graphs;
  const char *why;
  Aside aside;

  *bad = TD_ABSENT;
  put_aside (&aside, d);
  why = graphs->begin (d, all ? NULL : st->graph);
  for (uint32_t k = 0; k < st->n_steps && why == NULL && *bad == TD_ABSENT; k++)
    if (all || st->steps[k].changed)
      {
        TdReady *r = &p->list->ready[st->steps[k].ready];

        graphs->step (d, k);
        td__index_capture (d, &st->steps[k].places, r->step->path);
        if (td__play_one (p, r) != TD_OK)
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
  put_back (&aside, d);
  return why;
}
