/*
 * How long the events of both sides take: medians over iterations that are like the compared
 * one, so that no cold or preempted run stands for an operation.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-devices.h"
#include "tape/td-iteration-private.h"
#include "td-diff-private.h"
#include "td-tape.h"

/* Of each side at most, with the compared one. */
#define MAX_LIKE 15
/* Of large iterations fewer: so much time and room a side. */
#define BUDGET_US (G_USEC_PER_SEC / 2)
#define BUDGET_BYTES (32u << 20)
/* Small ones are all taken: what is said of them does not depend on how busy a machine is. */
#define SMALL_EVENTS 10000
/* To load an event, before the first one has shown what it really takes. */
#define GUESSED_NS 300

/* Sorted as they come: what counts in the end is the one in the middle. */
typedef struct
{
  guint n, max;
  guint64 ns[MAX_LIKE], op_ns[MAX_LIKE];
  guint64 *events; /* `max` of each event */
} Samples;

static void
insert (guint64 *sorted, guint n, guint64 value)
{
  for (; n > 0 && sorted[n - 1] > value; n--)
    sorted[n] = sorted[n - 1];
  sorted[n] = value;
}

/* The lower of two in the middle: what disturbs a run only makes it longer. */
static guint64
median (const guint64 *sorted, guint n)
{
  return sorted[(n - 1) / 2];
}

static void
add_sample (Samples *s, const TdTapeIteration *t)
{
  guint64 sum = 0;

  for (guint e = 0; e < t->n_events; e++)
    {
      guint64 ns = t->event_duration_ns ? t->event_duration_ns[e] : 0;

      insert (s->events + (gsize)e * s->max, s->n, ns);
      sum += ns;
    }
  insert (s->ns, s->n, t->duration_ns);
  insert (s->op_ns, s->n, sum);
  s->n++;
}

/* The same events, each run by the program or by a schedule as the other is. */
static gboolean
is_like (const TdTapeIteration *a, const TdTapeIteration *b)
{
  const guint flags = TD_TAPE_EVENT_REPLAYED | TD_TAPE_EVENT_CAPTURED | TD_TAPE_EVENT_FAILED;

  if (a->n_events != b->n_events || a->n_dims != b->n_dims
      || (a->n_dims > 0 && memcmp (a->dims, b->dims, a->n_dims * sizeof *a->dims) != 0))
    return FALSE;
  for (guint e = 0; e < a->n_events; e++)
    {
      const TdTapeEvent *x = &a->events[e], *y = &b->events[e];

      if (x->opdef != y->opdef || x->phase != y->phase || x->site != y->site
          || ((x->flags ^ y->flags) & flags) != 0)
        return FALSE;
    }
  return TRUE;
}

/* Adds what iteration `row` took, if it is like `t` as it is shown: without what verified calls
 * have discarded, or with it. */
static void
add_row (Samples *s, TdTapeReader *reader, const TdTapeSummary *row, const TdTapeIteration *t)
{
  char error[160];
  const TdTapeIteration *it = td_tape_iteration_load_row (reader, row, error, sizeof error);
  void (*free_it) (const TdTapeIteration *) = td_tape_iteration_free;

  if (!it)
    return;
  if (it->n_events != t->n_events)
    it = td__iteration_without_discarded (it, &free_it);
  if (is_like (it, t))
    add_sample (s, it);
  free_it (it);
}

static void
add_like (Samples *s, TdTapeReader *reader, const TdTapeIteration *t)
{
  gint64 start = g_get_monotonic_time (), now = start, longest;
  const gboolean small = t->n_events <= SMALL_EVENTS;
  TdTapeSummary rows[MAX_LIKE];
  guint n = td_tape_reader_find_like (reader, t->number, t->structure, rows, s->max - 1);

  longest = (gint64)t->n_events * GUESSED_NS / 1000;
  for (guint i = 0; i < n && (small || now - start + longest < BUDGET_US); i++)
    {
      gint64 before = now;

      add_row (s, reader, &rows[i], t);
      now = g_get_monotonic_time ();
      longest = i == 0 ? now - before : MAX (longest, now - before);
    }
}

static void
measure (TdComparison *c, guint side)
{
  const TdTapeIteration *t = c->t[side];
  TdDiffTotals *totals = &c->d->totals[side];
  guint most = BUDGET_BYTES / sizeof (guint64) / MAX (t->n_events, 1);
  Samples s = { .max = CLAMP (most, 1, MAX_LIKE) };

  s.events = g_new (guint64, MAX ((gsize)t->n_events * s.max, 1));
  add_sample (&s, t);
  if (c->reader[side] && td_iteration_is_complete (c->d->side[side]) && s.max > 1)
    add_like (&s, c->reader[side], t);
  totals->n_times = s.n;
  totals->ns = median (s.ns, s.n);
  totals->op_ns = median (s.op_ns, s.n);
  /* the medians gather where the samples were */
  for (guint e = 0; e < t->n_events && s.n > 1; e++)
    s.events[e] = median (s.events + (gsize)e * s.max, s.n);
  if (s.n > 1)
    c->event_ns[side] = g_renew (guint64, s.events, MAX (t->n_events, 1));
  else
    g_free (s.events);
}

guint64
td__diff_event_ns (const TdComparison *c, guint side, guint event)
{
  const guint64 *own = c->t[side]->event_duration_ns;

  if (c->event_ns[side])
    return c->event_ns[side][event];
  return own ? own[event] : 0;
}

void
td__diff_times (TdComparison *c)
{
  for (guint side = 0; side < 2; side++)
    measure (c, side);
}

gboolean
td_diff_has_medians (const TdDiff *d)
{
  return d->totals[0].n_times > 1 && d->totals[1].n_times > 1;
}

/* Of what runs on a device, the times compared are those of issuing it: few iterations are
 * timed on their device, and seldom those of both sides. */
static gboolean
has_work_of_devices (const TdIteration *iteration)
{
  const guint n = td_iteration_get_n_events (iteration);
  guint e = 0;

  while (e < n && !td_devices_is_work (iteration, e))
    e++;
  return e < n;
}

char *
td_diff_dup_times (const TdDiff *d)
{
  const guint a = d->totals[0].n_times, b = d->totals[1].n_times;
  const gboolean issued = has_work_of_devices (d->side[0]) || has_work_of_devices (d->side[1]);
  const char *of = issued ? ", of issuing what devices run" : "";

  if (a == 1 && b == 1)
    return g_strdup_printf ("1 iteration each%s", of);
  if (a == b)
    return g_strdup_printf ("median of %u%s", a, of);
  return g_strdup_printf ("median of %u and of %u%s", a, b, of);
}
