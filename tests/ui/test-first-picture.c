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
#include "tape/td-navigate.h"
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

/* ---- two of them ---- */

static TdComparePage *
compare_page (void)
{
  return td_workspace_get_compare (ui_test_workspace ());
}

static TdGraphView *
side_view (TdSide side)
{
  return td_compare_side_get_view (td_compare_page_get_side (compare_page (), side));
}

static gboolean
is_compared (gpointer unused)
{
  return td_compare_page_get (compare_page ()) != NULL;
}

/* The first row that is listed; -1: there is none. */
static gint
find_difference (const TdCompare *c)
{
  for (guint i = 0; i < c->n_rows; i++)
    if (c->rows[i].item >= 0 && c->rows[i].mark != TD_MARK_NUMBERS)
      return (gint)i;
  return -1;
}

static gboolean
is_in_sight (TdSide side, gint event, TdSceneRect *box)
{
  GtkWidget *view = GTK_WIDGET (side_view (side));
  return td_graph_view_get_event (side_view (side), event, box) && box->x >= -1 && box->y >= -1
         && box->x + box->width <= gtk_widget_get_width (view) + 1
         && box->y + box->height <= gtk_widget_get_height (view) + 1;
}

/* What is at the first difference, or the loss. */
static void
find_parting (const TdCompare *c, gint event[TD_N_SIDES])
{
  gint row = find_difference (c);
  for (int side = 0; side < TD_N_SIDES; side++)
    event[side] = row >= 0 ? c->rows[row].event[side] : td_navigate_loss (c->of[side]);
}

/* Where a side has nothing, what both have last before it shows the place. */
static void
assert_parting_in_sight (void)
{
  const TdCompare *c = td_compare_page_get (compare_page ());
  gint event[TD_N_SIDES], row = find_difference (c);
  TdSceneRect box[TD_N_SIDES];
  find_parting (c, event);
  gboolean both = event[TD_SIDE_A] >= 0 && event[TD_SIDE_B] >= 0;
  while (row >= 0 && (c->rows[row].event[TD_SIDE_A] < 0 || c->rows[row].event[TD_SIDE_B] < 0))
    row--;
  for (int side = 0; side < TD_N_SIDES; side++)
    if (event[side] >= 0 || row >= 0) /* else they part at once */
      assert_true (is_in_sight (
          (TdSide)side, event[side] >= 0 ? event[side] : c->rows[row].event[side], &box[side]));
  if (!both)
    return;
  assert_float_equal (box[TD_SIDE_A].y, box[TD_SIDE_B].y, 1);
  assert_float_equal (box[TD_SIDE_A].x, box[TD_SIDE_B].x, 1);
}

static double
assert_same_scale (void)
{
  double scale = td_graph_view_get_scale (side_view (TD_SIDE_A));
  assert_true (scale == td_graph_view_get_scale (side_view (TD_SIDE_B)));
  return scale;
}

static void
first_picture__of_a_comparison_can_be_read (void **state)
{
  static const int sizes[][2] = { { 1440, 900 }, { 900, 600 } };
  TdSceneRect box;
  open_program ();
  ui_test_do ("compare", NULL);
  ui_test_wait ("the comparison", is_compared, NULL);
  ui_test_settle ();
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      ui_test_resize (sizes[i][0], sizes[i][1]);
      ui_test_settle ();
      double height = NODE_FONT * assert_same_scale ();
      print_message (
          "%-22s %d x %d: names %4.1f px, %s\n", arguments[0], sizes[i][0], sizes[i][1], height,
          find_difference (td_compare_page_get (compare_page ())) < 0 ? "no difference"
                                                                      : "first difference");
      ui_test_save_picture (i ? "first-comparison-small.png" : "first-comparison.png");
      assert_true (height >= LEAST_HEIGHT - 1e-6);
      assert_parting_in_sight ();
    }
  ui_test_do ("first-event", NULL); /* and from there it follows the playhead */
  ui_test_settle ();
  assert_true (is_in_sight (td_compare_page_get_mine (compare_page ()), 0, &box));
  double scale = assert_same_scale ();
  ui_test_do ("fit", NULL);
  ui_test_settle ();
  assert_true (assert_same_scale () <= scale);
  (void)state;
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (first_picture__can_be_read),
    ui_test (first_picture__opening_a_layer_keeps_the_zoom),
    ui_test (first_picture__of_a_comparison_can_be_read),
  };
  if (argc < 2)
    return 2;
  arguments = g_strdupv (argv + 1);
  argc = 1;
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
