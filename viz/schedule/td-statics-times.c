/*
 * How long each step took over many replays: mean, standard deviation and 99th percentile by
 * the step's place in the schedule.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-statics-times.h"

#include <math.h>

#define ITERATIONS_MOST 256

static int
by_size (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;
  return (x > y) - (x < y);
}

/* Nearest rank: the smallest number that 99 % are not above. */
static TdStepTimes
summary (GArray *samples)
{
  TdStepTimes t = { .n = samples->len };
  double squares = 0;

  if (t.n == 0)
    return t;
  g_array_sort (samples, by_size);
  for (guint i = 0; i < t.n; i++)
    t.mean += (double)g_array_index (samples, guint64, i) / t.n;
  for (guint i = 0; i < t.n; i++)
    {
      double d = (double)g_array_index (samples, guint64, i) - t.mean;
      squares += d * d;
    }
  t.sd = t.n > 1 ? sqrt (squares / (t.n - 1)) : 0;
  t.p99 = (double)g_array_index (samples, guint64, (guint)ceil (0.99 * t.n) - 1);
  return t;
}

static gboolean
replays_it (const TdTapeIteration *it, const TdStaticsChain *c)
{
  for (guint k = 0; k < it->n_statics; k++)
    if (it->statics[k].chain == c->chain->id)
      return it->statics[k].schedule == c->schedule && it->statics[k].n_replays > 0;
  return FALSE;
}

static void
collect (const TdStaticsChain *c, const TdTapeIteration *it, GArray **samples)
{
  g_autofree gint *row = td__statics_rows_of_events (c, it);

  for (guint e = 0; e < it->n_events; e++)
    if (row[e] >= 0)
      g_array_append_val (samples[row[e]], it->event_duration_ns[e]);
}

TdStepTimes *
td_statics_times (const TdStatics *all, const TdStaticsChain *c, guint *n_iterations)
{
  TdStepTimes *times = g_new0 (TdStepTimes, MAX (c->n_rows, 1));
  GArray **samples = g_new (GArray *, MAX (c->n_rows, 1));
  char error[200];

  *n_iterations = 0;
  for (guint i = 0; i < c->n_rows; i++)
    samples[i] = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (gint64 i = all->iteration; i >= 0 && i > all->iteration - ITERATIONS_MOST; i--)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (all->reader, (guint64)i, error, sizeof error);

      if (it == NULL) /* thinned */
        continue;
      if (replays_it (it, c) && it->event_duration_ns != NULL)
        {
          collect (c, it, samples);
          ++*n_iterations;
        }
      td_tape_iteration_free (it);
    }
  for (guint i = 0; i < c->n_rows; i++)
    {
      times[i] = summary (samples[i]);
      g_array_unref (samples[i]);
    }
  g_free (samples);
  return times;
}
