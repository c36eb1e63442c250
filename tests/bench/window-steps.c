/* How long the window takes from an action to its picture, drawn by Cairo: a step of one
 * operation forward and back, the next iteration and the one before, a layer that is opened,
 * and each page that is turned to. Prints one JSON object a line for each: medians and the
 * worst of so many times, in milliseconds: until something of it is drawn, until the last of it
 * is, and of the processor, which does not depend on what else the machine does.
 *
 *     window-steps PROGRAM [NAME=VALUE ...]     of tests/models/life
 *
 * SPDX-License-Identifier: MIT */
#include "../ui/ui-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pages/td-graph-page.h"
#include "widgets/td-graph-view.h"

#define TIMES 15
#define TURNS 5       /* of all pages */
#define QUIET_MS 120  /* nothing is drawn for so long: it was the last of it */
#define FIRST_MS 3000 /* nothing at all: it draws nothing */
#define MOST_MS 10000 /* a picture that moves for ever */
#define GOAL_MS 50
#define MOST_MEMBERS 10000 /* of a layer that is opened */

/* One action: when its first and last frames were drawn, and the processor's time until then.
 */
typedef struct
{
  double first_ms, last_ms, cpu_ms;
} Lap;

typedef struct
{
  gint64 begin, first, last;
  double cpu_begin, cpu_last;
  gboolean waits; /* for a first frame */
} Watch;

static char **arguments; /* program, its arguments */

static TdGraphView *
canvas (void)
{
  return td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
}

/* Of all threads of this process. */
static double
cpu_ms (void)
{
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
painted (GdkFrameClock *clock, Watch *w)
{
  w->last = g_get_monotonic_time ();
  w->cpu_last = cpu_ms ();
  if (w->first == 0)
    w->first = w->last;
}

static gboolean
wake (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

/* Runs the window until nothing more is drawn: what a worker loads is drawn late. */
static void
run_until_quiet (Watch *w)
{
  guint timer = g_timeout_add (QUIET_MS / 4, wake, NULL);
  gint64 now;

  do
    {
      g_main_context_iteration (NULL, TRUE);
      now = g_get_monotonic_time ();
    }
  while (now - MAX (w->last, w->begin) < (w->waits && !w->first ? FIRST_MS : QUIET_MS) * 1000
         && now - w->begin < MOST_MS * 1000);
  g_source_remove (timer);
}

static Lap
time_it (void (*act) (gpointer data), gpointer data)
{
  GdkFrameClock *clock = gtk_widget_get_frame_clock (GTK_WIDGET (ui_test_window ()));
  gulong id;
  Watch w = { .begin = g_get_monotonic_time () };

  run_until_quiet (&w); /* of what came before */
  w = (Watch){ .begin = g_get_monotonic_time (), .cpu_begin = cpu_ms (), .waits = TRUE };
  id = g_signal_connect (clock, "after-paint", G_CALLBACK (painted), &w);
  act (data);
  run_until_quiet (&w);
  g_signal_handler_disconnect (clock, id);
  if (w.first == 0)
    return (Lap){ 0 };
  return (Lap){ (double)(w.first - w.begin) / 1e3, (double)(w.last - w.begin) / 1e3,
                w.cpu_last - w.cpu_begin };
}

/* ---- what is done ---- */

static void
activate (gpointer action)
{
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_window ()), action, NULL);
}

static void
show_page (gpointer page)
{
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_window ()), "show-page",
                                  g_variant_new_string (page));
}

static void
toggle (gpointer key)
{
  td_graph_view_set_expanded (canvas (), *(guint64 *)key,
                              !td_graph_view_is_expanded (canvas (), *(guint64 *)key));
}

/* The folded layers of the forward lane, in order, but for those that have very many
 * operations: the layout of an open loop of 125,000 turns takes gigabytes. */
static GArray *
list_folded (void)
{
  TdVizView *view = td_graph_view_get_layout (canvas ())->view;
  GArray *keys = g_array_new (FALSE, FALSE, sizeof (guint64));
  for (guint i = 0; i < view->n_nodes; i++)
    {
      const TdVizNode *node = &view->nodes[i];
      guint n = 0;
      if (node->kind != TD_VIZ_GROUP || node->lane != TD_LANE_FORWARD)
        continue;
      td_viz_graph_get_members (view->graph, (guint)node->group, TD_LANE_FORWARD, &n);
      if (n <= MOST_MEMBERS)
        g_array_append_val (keys, node->select_key);
    }
  return keys;
}

/* ---- what is said ---- */

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
pick (const Lap *laps, guint n, gsize field, gboolean worst)
{
  double values[TIMES];
  for (guint i = 0; i < n; i++)
    values[i] = *(const double *)(const void *)((const char *)&laps[i] + field);
  qsort (values, n, sizeof *values, by_value);
  return values[worst ? n - 1 : n / 2];
}

#define FIELD(name) offsetof (Lap, name)

static void
say (const char *action, const Lap *laps, guint n)
{
  if (n == 0)
    return;
  printf ("{\"workload\": \"window.%.3s.%s\", \"threads\": 1, \"value\": %.1f, \"unit\": "
          "\"ms\", \"worst\": %.1f, \"first\": %.1f, \"first_worst\": %.1f, \"cpu\": %.1f, "
          "\"cpu_worst\": %.1f, \"n\": %u, \"peer\": null, \"ratio\": null, \"goal\": %d}\n",
          arguments[0], action, pick (laps, n, FIELD (last_ms), FALSE),
          pick (laps, n, FIELD (last_ms), TRUE), pick (laps, n, FIELD (first_ms), FALSE),
          pick (laps, n, FIELD (first_ms), TRUE), pick (laps, n, FIELD (cpu_ms), FALSE),
          pick (laps, n, FIELD (cpu_ms), TRUE), n, GOAL_MS);
  fflush (stdout);
}

/* An action that is done so many times; what draws nothing (there is no next iteration) is no
 * time. */
static void
time_action (const char *name)
{
  Lap laps[TIMES];
  guint n = 0;
  for (guint i = 0; i < TIMES; i++)
    {
      laps[n] = time_it (activate, (gpointer)name);
      n += laps[n].first_ms > 0;
    }
  assert_int_not_equal (n, 0); /* what moves nothing is drawn at once */
  say (name, laps, n);
}

/* There and back by turns: a recording may have two iterations. */
static void
time_turns (const char *there, const char *back)
{
  Lap laps[2][TIMES];
  guint n[2] = { 0 };
  for (guint i = 0; i < TIMES; i++)
    for (guint k = 0; k < 2; k++)
      {
        laps[k][n[k]] = time_it (activate, (gpointer)(k ? there : back));
        n[k] += laps[k][n[k]].first_ms > 0;
      }
  assert_true (n[0] > 0 && n[1] > 0);
  say (back, laps[0], n[0]);
  say (there, laps[1], n[1]);
}

/* Each layer is opened and closed again. */
static void
time_layers (void)
{
  g_autoptr (GArray) keys = list_folded ();
  Lap opened[TIMES], closed[TIMES];
  guint n = MIN (keys->len, TIMES);
  for (guint i = 0; i < n; i++)
    {
      opened[i] = time_it (toggle, &g_array_index (keys, guint64, i));
      closed[i] = time_it (toggle, &g_array_index (keys, guint64, i));
    }
  say ("open-layer", opened, n);
  say ("close-layer", closed, n);
}

/* In turn, so that each comes after another one of its place. */
static void
time_pages (void)
{
  static const char *const pages[]
      = { "memory", "gradients", "schedule", "source",     "log",   "breakpoints",
          "filter", "notes",     "outline",  "iterations", "value", "gradient",
          "op",     "compare",   "curves",   "debug" };
  Lap laps[G_N_ELEMENTS (pages)][TIMES];
  guint n[G_N_ELEMENTS (pages)] = { 0 };
  for (guint i = 0; i < TURNS; i++)
    for (guint p = 0; p < G_N_ELEMENTS (pages); p++)
      {
        laps[p][n[p]] = time_it (show_page, (gpointer)pages[p]);
        n[p] += laps[p][n[p]].first_ms > 0;
      }
  for (guint p = 0; p < G_N_ELEMENTS (pages); p++)
    {
      g_autofree char *name = g_strdup_printf ("page-%s", pages[p]);
      say (name, laps[p], n[p]);
    }
}

static void
window__is_timed (void **state)
{
  const char *tape = td_test_tmp ("life.tdtape");
  ui_test_record_life (tape, arguments, NULL);
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_wait_for_layout ();
  time_action ("step-op");
  time_action ("reverse-step-op");
  time_turns ("next-iteration", "previous-iteration");
  time_layers ();
  time_pages ();
  (void)state;
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = { ui_test (window__is_timed) };
  if (argc < 2)
    {
      fprintf (stderr, "usage: window-steps PROGRAM [NAME=VALUE ...]\n");
      return 2;
    }
  arguments = g_strdupv (argv + 1);
  argc = 1;
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
