/* An iteration that the program stands in, as it will go on if it does what one before did:
 * what ran is its own, what is to come is the other's. Nothing of it is a promise; it is drawn
 * as what has not run.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-iteration-private.h"

#include <string.h>

typedef struct
{
  TdTapeIteration it; /* first: what is freed is known by its address */
  TdIteration *before, *now;
  guint64 *start_ns, *duration_ns;
  TdTapeEvent *events;
  TdTapeStats *stats;
} Expected;

static void
expected_free (const TdTapeIteration *it)
{
  Expected *e = (Expected *)(uintptr_t)it;

  td_iteration_unref (e->before);
  td_iteration_unref (e->now);
  g_free (e->start_ns);
  g_free (e->duration_ns);
  g_free (e->events);
  g_free (e->stats);
  g_free (e);
}

static gboolean
same_var (const TdTapeIteration *a, guint32 i, const TdTapeIteration *b, guint32 k)
{
  const TdTapeVar *x = &a->vars[i], *y = &b->vars[k];

  return x->key == y->key && x->dtype == y->dtype && x->ndim == y->ndim
         && memcmp (&a->dims[x->first_dim], &b->dims[y->first_dim], x->ndim * sizeof *a->dims)
                == 0;
}

/* The same operation with the same outputs, sizes included. */
static gboolean
same_event (const TdTapeIteration *a, const TdTapeIteration *b, guint32 e)
{
  const TdTapeEvent *x = &a->events[e], *y = &b->events[e];

  if (x->key != y->key || x->phase != y->phase || x->opdef != y->opdef || x->n_out != y->n_out)
    return FALSE;
  for (guint k = 0; k < x->n_out; k++)
    if (!same_var (a, a->outs[x->first_out + k], b, b->outs[y->first_out + k]))
      return FALSE;
  return TRUE;
}

static gboolean
begins_like (const TdTapeIteration *now, const TdTapeIteration *before)
{
  if (before->n_events <= now->n_events)
    return FALSE;
  for (guint32 e = 0; e < now->n_events; e++)
    if (!same_event (now, before, e))
      return FALSE;
  return TRUE;
}

/* Statistics are of what ran, at the places that the variables have in the other iteration. */
static void
take_stats (Expected *e, const TdTapeIteration *now)
{
  e->stats = g_new (TdTapeStats, MAX (now->n_stats, 1));
  e->it.n_stats = 0;
  for (guint32 i = 0; i < now->n_stats; i++)
    {
      gint var = td_iteration_find_var (e->before, now->vars[now->stats[i].var].key);

      if (var < 0)
        continue;
      e->stats[e->it.n_stats] = now->stats[i];
      e->stats[e->it.n_stats++].var = (guint32)var;
    }
  e->it.stats = e->stats;
}

static void
take_events (Expected *e, const TdTapeIteration *now, const TdTapeIteration *before)
{
  guint32 n = before->n_events;

  e->events = g_memdup2 (before->events, n * sizeof *e->events);
  e->start_ns = g_new0 (guint64, n);
  e->duration_ns = g_new0 (guint64, n);
  for (guint32 i = 0; i < n; i++)
    {
      gboolean ran = i < now->n_events;

      e->events[i].flags
          = ran ? now->events[i].flags
                : e->events[i].flags & ~(guint32)(TD_TAPE_EVENT_FAILED | TD_TAPE_EVENT_FAULT);
      if (ran && now->event_start_ns)
        e->start_ns[i] = now->event_start_ns[i];
      if (ran && now->event_duration_ns)
        e->duration_ns[i] = now->event_duration_ns[i];
      if (!ran && i > 0)
        e->start_ns[i] = e->start_ns[i - 1] + e->duration_ns[i - 1];
    }
  e->it.events = e->events;
  e->it.event_start_ns = e->start_ns;
  e->it.event_duration_ns = e->duration_ns;
}

TdIteration *
td_iteration_new_expected (TdIteration *now, TdIteration *before)
{
  const TdTapeIteration *a = td_iteration_get_tape (now), *b = td_iteration_get_tape (before);
  Expected *e;

  if (!begins_like (a, b))
    return NULL;
  e = g_new0 (Expected, 1);
  e->it = *b;
  e->now = td_iteration_ref (now);
  e->before = td_iteration_ref (before);
  e->it.number = a->number;
  e->it.flags = a->flags;
  e->it.label = a->label;
  e->it.stop = a->stop;
  e->it.start_ns = a->start_ns;
  e->it.duration_ns = a->duration_ns;
  e->it.devices = a->devices;
  e->it.n_devices = a->n_devices;
  e->it.pools = a->pools;
  e->it.n_pools = a->n_pools;
  e->it.device_times = a->device_times;
  e->it.n_device_times = a->n_device_times;
  e->it.faults = a->faults;
  e->it.n_faults = a->n_faults;
  e->it.n_tensors = e->it.n_reports = e->it.n_notices = e->it.n_host_reads = 0;
  e->it.n_copies = e->it.n_collectives = e->it.n_rank_sums = 0;
  e->it.n_event_stacks = e->it.n_external_stacks = 0;
  take_events (e, a, b);
  take_stats (e, a);
  return td__iteration_new_like (before, &e->it, expected_free, a->n_events);
}
