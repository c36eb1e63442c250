/*
 * How long each step took over many replays: mean, standard deviation and 99th percentile by
 * the step's place in the schedule.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-statics-times.h"

#include <math.h>

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
replays_it (const TdTapeIteration *it, const TdStaticsFunction *c)
{
  for (guint k = 0; k < it->n_statics; k++)
    if (it->statics[k].chain == c->function->id)
      return it->statics[k].schedule == c->schedule && it->statics[k].n_replays > 0;
  return FALSE;
}

static void
collect (const TdStaticsFunction *c, const TdTapeIteration *it, GArray **samples)
{
  g_autofree gint *row = td__statics_rows_of_events (c, it);

  for (guint e = 0; e < it->n_events; e++)
    if (row[e] >= 0)
      g_array_append_val (samples[row[e]], it->event_duration_ns[e]);
}

TdStepTimes *
td_statics_times (const TdStatics *all, const TdStaticsFunction *c, guint *n_iterations)
{
  TdStepTimes *times = g_new0 (TdStepTimes, MAX (c->n_rows, 1));
  GArray **samples = g_new (GArray *, MAX (c->n_rows, 1));
  char error[200];

  *n_iterations = 0;
  for (guint i = 0; i < c->n_rows; i++)
    samples[i] = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (gint64 i = all->iteration; i >= 0 && i > all->iteration - TD_STATICS_ITERATIONS_MOST;
       i--)
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

/* ---- what a call costs besides its operations ---- */

/* Operations of the code's forward, whatever became of them: they are numbered. */
static guint
traced_operations (const TdStaticsFunction *c)
{
  guint n = 0;

  for (guint i = 0; i < c->n_rows; i++)
    if (c->rows[i].tape->list == 0 && c->rows[i].tape->kind == TD_TAPE_STEP_OP)
      n = MAX (n, c->rows[i].tape->event);
  return n;
}

static void
least (double *ns, guint *n, double now)
{
  *ns = *n == 0 ? now : MIN (*ns, now);
  ++*n;
}

typedef struct
{
  const TdStaticsFunction *c;
  guint n_operations;
  TdStaticsOverhead found;
  double traced_ns;
  guint n_traced;
} Costs;

static void
add_run (Costs *costs, const TdTapeIteration *it, const TdTapeRun *run)
{
  guint64 inside = 0;
  guint n = run->kind == TD_TAPE_RUN_REPLAYED ? costs->n_operations : run->end - run->begin;
  double ns;

  for (guint e = run->begin; e < run->end; e++)
    inside += it->event_duration_ns[e];
  if (n == 0 || run->ns < inside)
    return;
  ns = (double)(run->ns - inside) / n;
  if (run->kind == TD_TAPE_RUN_REPLAYED && run->schedule == costs->c->schedule)
    least (&costs->found.static_ns, &costs->found.n_static, ns);
  else if (run->kind == TD_TAPE_RUN_CODE)
    least (&costs->found.dynamic_ns, &costs->found.n_dynamic, ns);
  else if (run->kind == TD_TAPE_RUN_TRACED)
    least (&costs->traced_ns, &costs->n_traced, ns);
}

TdStaticsOverhead
td_statics_overhead (const TdStatics *all, const TdStaticsFunction *c, guint most)
{
  Costs costs = { .c = c, .n_operations = traced_operations (c) };
  char error[200];

  for (gint64 i = all->iteration; i >= 0 && i > all->iteration - (gint64)most; i--)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (all->reader, (guint64)i, error, sizeof error);

      for (guint k = 0; it && it->event_duration_ns && k < it->n_runs; k++)
        if (it->runs[k].chain == c->function->id && it->runs[k].list == 0
            && !(it->runs[k].flags & (TD_TAPE_RUN_DISCARDED | TD_TAPE_RUN_OPEN)))
          add_run (&costs, it, &it->runs[k]);
      td_tape_iteration_free (it);
    }
  if (costs.found.n_dynamic == 0)
    {
      costs.found.n_dynamic = costs.n_traced;
      costs.found.dynamic_ns = costs.traced_ns;
      costs.found.traced = costs.n_traced > 0;
    }
  return costs.found;
}

static void
append_cost (GString *out, const char *how, double ns, guint n)
{
  if (n > 0)
    g_string_append_printf (out, "%s %.0f ns %s (least of %u %s)", out->len > 0 ? "," : "", ns,
                            how, n, n == 1 ? "call" : "calls");
}

char *
td_statics_overhead_text (const TdStaticsOverhead *o)
{
  g_autoptr (GString) out = g_string_new (NULL);

  append_cost (out, "replayed", o->static_ns, o->n_static);
  append_cost (out, o->traced ? "by code that is traced" : "by code", o->dynamic_ns,
               o->n_dynamic);
  return out->len > 0
             ? g_strdup_printf ("besides itself an operation of forward costs%s", out->str)
             : NULL;
}
