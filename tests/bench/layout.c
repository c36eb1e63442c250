/* How long layouts take: the hard graphs of the design (an unrolled LSTM with shared parameters
 * of 506 and of 1,006 operations, written as a loop and without one; forward and backward of
 * 497), all groups open, by the quick engine and by Graphviz in its helper with nothing cached;
 * and the quick engine on 100,000. One JSON object a line; wall time, of the quick engine the
 * median of several. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "layout/td-layering.h"
#include "layout/td-layout.h"
#include "td-synthetic.h"

#define ROUNDS 7

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

static void
print (const char *workload, double ms, const TdVizView *view)
{
  printf ("{\"workload\": \"%s\", \"threads\": 1, \"value\": %.3f, \"unit\": \"ms\", \"peer\": "
          "null, "
          "\"ratio\": null, \"nodes\": %u, \"edges\": %u}\n",
          workload, ms, view->n_nodes, view->n_edges);
  fflush (stdout);
}

static double
cpu_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
measure_quick (const char *workload, TdVizView *view)
{
  double ms[ROUNDS];

  for (guint i = 0; i < ROUNDS; i++)
    {
      double start = cpu_ms ();

      td_layout_unref (td_layout_new_quick (view, NULL, NULL));
      ms[i] = cpu_ms () - start;
    }
  qsort (ms, ROUNDS, sizeof *ms, compare);
  print (workload, ms[ROUNDS / 2], view);
}

/* Ranks and order alone, of a chain of residual blocks: what a page of C does in 10 ms. */
static void
measure_layering (guint n)
{
  TdLayerEdge *edges = g_new0 (TdLayerEdge, 2 * n);
  double ms[ROUNDS];
  guint n_edges = 0;

  for (guint i = 0; i + 1 < n; i++)
    {
      edges[n_edges++] = (TdLayerEdge){ (gint32)i, (gint32)i + 1, 0, (gint32)i, 0 };
      if (i % 6 == 0 && i + 5 < n)
        edges[n_edges++] = (TdLayerEdge){ (gint32)i, (gint32)i + 5, 0, (gint32)i, 0 };
    }
  for (guint i = 0; i < ROUNDS; i++)
    {
      double start = cpu_ms ();

      td__layering_free (td__layering_new (n, edges, n_edges));
      ms[i] = cpu_ms () - start;
    }
  qsort (ms, ROUNDS, sizeof *ms, compare);
  printf ("{\"workload\": \"layout_layering.%u\", \"threads\": 1, \"value\": %.3f, \"unit\": "
          "\"ms\", "
          "\"peer\": null, \"ratio\": null}\n",
          n, ms[ROUNDS / 2]);
  g_free (edges);
}

/* Answers are remembered, so only the first time counts. */
static int
measure_helper (const char *workload, TdVizView *view)
{
  GError *error = NULL;
  gint64 start = g_get_monotonic_time ();
  TdLayout *layout = td_layout_new_graphviz (view, NULL, NULL, 60000, NULL, &error);
  double ms = (double)(g_get_monotonic_time () - start) / 1000;

  if (!layout)
    {
      fprintf (stderr, "layout: %s: %s\n", workload, error->message);
      g_error_free (error);
      return 1;
    }
  print (workload, ms, view);
  td_layout_unref (layout);
  return 0;
}

static TdVizView *
open_all (TdIteration *it)
{
  TdVizGraph *graph = td_iteration_get_graph (it);
  TdFold *fold = td_fold_new_depth (graph, -1);
  TdVizView *view = td_viz_view_new (graph, fold, TD_VIEW_ALL);

  td_fold_free (fold);
  return view;
}

int
main (void)
{
  const struct
  {
    const char *name;
    TdIteration *iteration;
    gboolean by_helper;
  } graphs[] = {
    { "lstm_506", td_synthetic_lstm (0, 34, FALSE, FALSE), TRUE },
    { "lstm_1006", td_synthetic_lstm (0, 67, FALSE, FALSE), TRUE },
    { "lstm_flat_506", td_synthetic_flat_lstm (0, 34), TRUE },
    { "lstm_flat_1006", td_synthetic_flat_lstm (0, 67), TRUE },
    { "forward_backward_497", td_synthetic_residual (0, 216, TRUE), TRUE },
    { "residual_10000", td_synthetic_residual (0, 10000, FALSE), FALSE },
    { "residual_100000", td_synthetic_residual (0, 100000, FALSE), FALSE },
  };
  int status = 0;

  measure_layering (100000);
  for (guint i = 0; i < G_N_ELEMENTS (graphs); i++)
    {
      TdVizView *view = open_all (graphs[i].iteration);
      char *name = g_strdup_printf ("layout_quick.%s", graphs[i].name);

      measure_quick (name, view);
      g_free (name);
      name = g_strdup_printf ("layout_helper.%s", graphs[i].name);
      if (graphs[i].by_helper)
        status |= measure_helper (name, view);
      g_free (name);
      td_viz_view_unref (view);
      td_iteration_unref (graphs[i].iteration);
    }
  return status;
}
