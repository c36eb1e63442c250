/* What the window shows first of the programs of real size, as a table, and that each picture
 * can be read: few boxes, names high enough, the playhead in sight, boxes named by their
 * layers.
 *
 *     test-first-picture PROGRAM [NAME=VALUE ...]
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pages/td-graph-page.h"
#include "widgets/td-graph-view.h"

#define MOST_BOXES 60
#define LEAST_HEIGHT 9.0
#define NODE_FONT 12.5   /* td-paint-text.c */
#define MOST_SECONDS 2.0 /* of processors, whatever else the machine does */

static char **arguments; /* program, its arguments */

static TdGraphView *
canvas (void)
{
  return td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
}

/* Of all threads of this process. */
static double
cpu_seconds (void)
{
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A new recording of the program, at the window. Returns seconds of processors from opening to
 * the picture. */
static double
open_program (void)
{
  const char *tape = td_test_tmp ("life.tdtape");
  ui_test_record_life (tape, arguments, NULL);
  ui_test_resize (1440, 900);
  double begin = cpu_seconds ();
  ui_test_open (tape);
  ui_test_settle ();
  return cpu_seconds () - begin;
}

/* "step 3", "loop ×8", although something in it has a name. */
static gboolean
is_nameless (TdVizView *view, const TdVizNode *node)
{
  guint n;
  TdIteration *it = td_viz_graph_get_iteration (view->graph);
  const TdVizGroup *group = &td_viz_graph_get_groups (view->graph, &n)[node->group];
  const gint32 *members
      = td_viz_graph_get_members (view->graph, (guint)node->group, TD_LANE_FORWARD, &n);
  if (!g_str_has_prefix (group->name, "step ") && !g_str_has_prefix (group->name, "loop "))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (td_iteration_get_layer (it, (guint)members[i]) >= 0
        && strlen (td_iteration_get_link_path (it, (guint)members[i])) > strlen (group->path))
      return TRUE;
  return FALSE;
}

static void
first_picture__can_be_read (void **state)
{
  double seconds = open_program ();
  TdVizView *view = td_graph_view_get_layout (canvas ())->view;
  double height = NODE_FONT * td_graph_view_get_scale (canvas ());
  guint boxes[TD_N_LANES] = { 0 }, nameless = 0;
  TdSceneRect head;
  for (guint i = 0; i < view->n_nodes; i++)
    {
      const TdVizNode *node = &view->nodes[i];
      boxes[node->lane] += node->kind == TD_VIZ_OP || node->kind == TD_VIZ_GROUP;
      nameless += node->kind == TD_VIZ_GROUP && is_nameless (view, node);
    }
  gboolean in_sight = td_graph_view_get_playhead (canvas (), &head) && head.x >= 0
                      && head.y >= 0
                      && head.x + head.width <= gtk_widget_get_width (GTK_WIDGET (canvas ()))
                      && head.y + head.height <= gtk_widget_get_height (GTK_WIDGET (canvas ()));
  print_message ("%-22s %5.0f %% zoom  names %4.1f px  boxes %2u + %2u + %2u  nameless %u  "
                 "playhead %s  %.2f s of processors\n",
                 arguments[0], 100 * td_graph_view_get_scale (canvas ()), height, boxes[0],
                 boxes[1], boxes[2], nameless, in_sight ? "in sight" : "OUT OF SIGHT", seconds);
  ui_test_save_picture ("first-picture.png");
  assert_true (height >= LEAST_HEIGHT - 1e-6);
  assert_in_range (boxes[0] + boxes[1] + boxes[2], 1, MOST_BOXES);
  assert_int_equal (nameless, 0);
  assert_true (in_sight);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) /* which are slow on purpose */
  assert_true (seconds <= MOST_SECONDS);
#endif
  (void)state;
}

/* The first folded layer of the forward lane; 0: there is none. */
static guint64
find_folded (void)
{
  TdVizView *view = td_graph_view_get_layout (canvas ())->view;
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].kind == TD_VIZ_GROUP && view->nodes[i].lane == TD_LANE_FORWARD)
      return view->nodes[i].select_key;
  return 0;
}

static void
first_picture__opening_a_layer_keeps_the_zoom (void **state)
{
  open_program ();
  double scale = td_graph_view_get_scale (canvas ());
  guint64 key = find_folded ();
  if (!key)
    skip ();
  assert_true (td_graph_view_set_expanded (canvas (), key, TRUE));
  ui_test_wait_for_layout ();
  ui_test_settle ();
  assert_true (td_graph_view_get_scale (canvas ()) == scale);
  ui_test_do ("show-page", "graph");
  td_graph_view_fit (canvas ()); /* asked for */
  ui_test_settle ();
  assert_true (td_graph_view_get_scale (canvas ()) <= scale);
  (void)state;
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (first_picture__can_be_read),
    ui_test (first_picture__opening_a_layer_keeps_the_zoom),
  };
  if (argc < 2)
    return 2;
  arguments = g_strdupv (argv + 1);
  argc = 1;
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
