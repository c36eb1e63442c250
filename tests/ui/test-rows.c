/* What the window can do, by the rows of the list of features that a recording is enough for,
 * tried on one program of real size: a table with a line for each row, and no row that does
 * not work. "-" is a row of which the program has nothing, which is looked up on its tape.
 *
 *     test-rows PROGRAM [NAME=VALUE ...]
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "pages/td-graph-page.h"
#include "widgets/td-graph-view.h"
#include "pages/td-inspector.h"

#define LEAST_ITEMS 5 /* of a picture; what has nothing to show says so in two texts */

typedef enum
{
  NO,
  YES,
  NOTHING_OF_IT,
} Answer;

static char **arguments; /* program, its arguments */
static gint loss;        /* event of the loss in the last iteration */

/* ---- what is there ---- */

static TdGraphView *
canvas (void)
{
  return td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
}

static TdVizView *
boxes (void)
{
  return td_graph_view_get_layout (canvas ())->view;
}

static guint
count_boxes (TdVizNodeKind kind, TdLane lane)
{
  guint n = 0;
  for (guint i = 0; i < boxes ()->n_nodes; i++)
    n += boxes ()->nodes[i].kind == kind && boxes ()->nodes[i].lane == lane;
  return n;
}

static guint
count_events (TdTapePhase phase)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  const TdTapeIteration *t = td_iteration_get_tape (it);
  guint n = 0;
  for (guint e = 0; e < t->n_events; e++)
    n += t->events[e].phase == phase;
  return n;
}

static TdMoment
moment (void)
{
  return td_session_get_moment (ui_test_session ());
}

static void
go (gint event)
{
  td_session_set_moment (ui_test_session (), moment ().iteration, event);
  ui_test_settle ();
}

static char *
dump_canvas (void)
{
  return td_scene_dump (td_graph_view_get_scene (canvas ()));
}

static char *
dump_panel (const char *panel, const char *page)
{
  if (strcmp (panel, "memory") != 0) /* which has a page, too, beside its place in the dock */
    ui_test_do ("show-page", panel);
  return td_scene_dump (td_scene_view_get_scene (ui_test_panel_scene_view (panel, page)));
}

static Answer
has_picture (const char *panel, const char *page)
{
  if (strcmp (panel, "memory") != 0) /* which has a page, too, beside its place in the dock */
    ui_test_do ("show-page", panel);
  /* pictures are made one in a turn of the main loop, of iterations that may take a while */
  const gint64 until = g_get_monotonic_time () + 10 * G_USEC_PER_SEC;
  TdSceneView *view = ui_test_panel_scene_view (panel, page);
  TdScene *scene = td_scene_view_get_scene (view);
  while ((!scene || td_scene_n_items (scene) < LEAST_ITEMS) && g_get_monotonic_time () < until)
    {
      if (!g_main_context_iteration (NULL, FALSE))
        g_usleep (1000);
      scene = td_scene_view_get_scene (view);
    }
  return scene && td_scene_n_items (scene) >= LEAST_ITEMS ? YES : NO;
}

static gboolean
is_file (gpointer path)
{
  GStatBuf st;
  return g_stat (path, &st) == 0 && st.st_size > 60;
}

static Answer
saves (const char *action, const char *name)
{
  g_autofree char *path = g_strdup (td_test_tmp (name));
  ui_test_do (action, path);
  ui_test_wait (name, is_file, path);
  return YES;
}

/* ---- A: the graph ---- */

static Answer
shows_what_ran (void)
{
  return count_boxes (TD_VIZ_OP, TD_LANE_FORWARD) + count_boxes (TD_VIZ_GROUP, TD_LANE_FORWARD)
                 > 0
             ? YES
             : NO;
}

static Answer
has_lane (TdTapePhase phase, TdLane lane)
{
  if (count_events (phase) == 0)
    return NOTHING_OF_IT;
  return count_boxes (TD_VIZ_OP, lane) + count_boxes (TD_VIZ_GROUP, lane) > 0 ? YES : NO;
}

static Answer
has_backward (void)
{
  return has_lane (TD_TAPE_PHASE_BACKWARD, TD_LANE_BACKWARD);
}

static Answer
has_update (void)
{
  return has_lane (TD_TAPE_PHASE_UPDATE, TD_LANE_UPDATE);
}

static Answer
goes_to_the_twin (void)
{
  if (count_events (TD_TAPE_PHASE_BACKWARD) == 0)
    return NOTHING_OF_IT;
  go (loss);
  ui_test_do ("twin", NULL);
  return moment ().event > loss ? YES : NO;
}

static guint64
first_folded (void)
{
  for (guint i = 0; i < boxes ()->n_nodes; i++)
    if (boxes ()->nodes[i].kind == TD_VIZ_GROUP && boxes ()->nodes[i].lane == TD_LANE_FORWARD)
      return boxes ()->nodes[i].select_key;
  return 0;
}

static Answer
opens_and_folds_a_layer (void)
{
  guint before = boxes ()->n_nodes, open;
  double scale = td_graph_view_get_scale (canvas ());
  guint64 key = first_folded ();
  if (!key)
    return NOTHING_OF_IT;
  td_graph_view_set_expanded (canvas (), key, TRUE);
  ui_test_wait_for_layout ();
  open = boxes ()->n_nodes;
  gboolean kept = td_graph_view_get_scale (canvas ()) == scale;
  td_graph_view_set_expanded (canvas (), key, FALSE);
  ui_test_wait_for_layout ();
  return open > before && kept && boxes ()->n_nodes == before ? YES : NO;
}

static Answer
stacks_what_repeats (void)
{
  for (guint i = 0; i < boxes ()->n_nodes; i++)
    if (boxes ()->nodes[i].kind == TD_VIZ_GROUP && strstr (boxes ()->nodes[i].label, "×"))
      return YES;
  return strcmp (arguments[0], "l03-gpt") == 0 ? NO : NOTHING_OF_IT; /* of twelve blocks */
}

static Answer
has_stubs (void)
{
  return count_boxes (TD_VIZ_STUB, TD_LANE_FORWARD) > 0 ? YES : NO;
}

static Answer
says_what_is_saved (void)
{
  g_autofree char *text = dump_canvas ();
  if (count_events (TD_TAPE_PHASE_BACKWARD) == 0)
    return NOTHING_OF_IT;
  return strstr (text, "kB") || strstr (text, " B") || strstr (text, "MB") ? YES : NO;
}

static Answer
is_coloured_by_time (void)
{
  g_autofree char *before = dump_canvas ();
  td_graph_view_set_heat (canvas (), TD_HEAT_TIME);
  ui_test_settle ();
  g_autofree char *after = dump_canvas ();
  td_graph_view_set_heat (canvas (), TD_HEAT_OFF);
  ui_test_settle ();
  return strcmp (before, after) != 0 ? YES : NO;
}

static Answer
is_read_from_left_to_right (void)
{
  guint n = boxes ()->n_nodes;
  td_graph_view_set_orientation (canvas (), TD_ORIENTATION_LR);
  ui_test_wait_for_layout ();
  gboolean turned = td_graph_view_get_layout (canvas ())->orientation == TD_ORIENTATION_LR;
  gboolean whole = boxes ()->n_nodes == n;
  td_graph_view_set_orientation (canvas (), TD_ORIENTATION_TB);
  ui_test_wait_for_layout ();
  return turned && whole ? YES : NO;
}

static Answer
saves_pictures (void)
{
  static const char *const names[] = { "graph.svg", "graph.pdf", "graph.png" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    saves ("save-picture", names[i]);
  return YES;
}

/* ---- B: stepping ---- */

static Answer
moves (const char *action, gint from, int direction)
{
  TdMoment before;
  go (from);
  before = moment ();
  ui_test_do (action, NULL);
  TdMoment after = moment ();
  gint64 by = after.iteration != before.iteration ? after.iteration - before.iteration
                                                  : after.event - before.event;
  td_session_set_moment (ui_test_session (), before.iteration, loss);
  ui_test_settle ();
  return by * direction > 0 ? YES : NO;
}

static Answer
steps_an_operation (void)
{
  return moves ("step-op", 0, 1);
}

static Answer
steps_a_layer (void)
{
  return moves ("step-over", 0, 1) && moves ("step-into", 0, 1) && moves ("step-out", 0, 1)
             ? YES
             : NO;
}

static Answer
steps_backward (void)
{
  return count_events (TD_TAPE_PHASE_BACKWARD) == 0 ? NOTHING_OF_IT
                                                    : moves ("step-op", loss + 1, 1);
}

static Answer
steps_in_reverse (void)
{
  return moves ("reverse-step-op", loss, -1) && moves ("reverse-step-over", loss, -1)
                 && moves ("previous-iteration", loss, -1)
             ? YES
             : NO;
}

static Answer
runs_to_places (void)
{
  Answer a = moves ("run-to-loss", 0, 1);
  if (a == YES && count_events (TD_TAPE_PHASE_BACKWARD) > 0)
    a = moves ("run-to-backward", 0, 1);
  if (a == YES && count_events (TD_TAPE_PHASE_UPDATE) > 0)
    a = moves ("run-to-update", 0, 1);
  return a;
}

static Answer
says_where_from (void)
{
  return moves ("where-from", loss, -1);
}

static Answer
follows_in_the_source (void)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  g_autofree char *site = td_iteration_dup_site (it, (guint)loss);
  ui_test_do ("show-page", "source");
  go (loss);
  return *site ? YES : NO;
}

/* ---- C: tensors ---- */

static const TdTensor *
shown_tensor (void)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  ui_test_do ("show-page", "value");
  go (loss);
  td_session_select (ui_test_session (), td_iteration_get_tape (it)->events[loss].key);
  ui_test_settle ();
  return td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ()));
}

static Answer
has_values (void)
{
  const TdTensor *t = shown_tensor ();
  return t && t->values && t->n_values > 0 ? YES : NO;
}

static Answer
saves_values (void)
{
  return shown_tensor () && saves ("save-values", "value.npy") ? YES : NO;
}

/* ---- D: gradients ---- */

#define PICTURE(name, panel, page)                                                             \
  static Answer name (void)                                                                    \
  {                                                                                            \
    return has_picture (panel, page);                                                          \
  }
#define PICTURE_OF_UPDATES(name, panel, page)                                                  \
  static Answer name (void)                                                                    \
  {                                                                                            \
    return count_events (TD_TAPE_PHASE_UPDATE) == 0 ? NOTHING_OF_IT                            \
                                                    : has_picture (panel, page);               \
  }

PICTURE_OF_UPDATES (has_the_heat_map, "gradients", "heatmap")
PICTURE_OF_UPDATES (has_the_ridge, "gradients", "ridge")

/* Findings, or the sentence that there are none: either is an answer of the rules. */
static Answer
has_findings (void)
{
  g_autofree char *text = dump_panel ("gradients", "findings");
  return strstr (text, "Nothing found") || strstr (text, " parameters")
                 || count_events (TD_TAPE_PHASE_UPDATE) == 0
             ? YES
             : NO;
}

static Answer
names_what_is_missing (void)
{
  g_autofree char *text = dump_panel ("gradients", "missing");
  return strstr (text, "Nothing is missing") || strstr (text, "no optimizer")
                 || strstr (text, "no gradient") || strstr (text, "No optimizer")
                 || strstr (text, "only in others")
             ? YES
             : NO;
}

/* ---- E to H: memory, schedules, time, comparing ---- */

PICTURE (has_memory_by_category, "memory", "events")
PICTURE (has_memory_by_iteration, "memory", "iterations")
PICTURE (has_blocks, "memory", "blocks")
PICTURE (has_the_order, "schedule", "order")
PICTURE (has_the_timeline, "schedule", "timeline")
PICTURE (has_the_flame_graph, "schedule", "flame")

static Answer
says_whether_memory_grows (void)
{
  ui_test_do ("show-page", "memory");
  const char *text = gtk_label_get_text (GTK_LABEL (ui_test_named ("growth-sentence")));
  gboolean said = *text != 0;
  return said ? YES : NO;
}

static Answer
has_a_schedule (void)
{
  if (td_tape_reader_n_chains (td_session_get_reader (ui_test_session ())) == 0)
    return NOTHING_OF_IT;
  return has_picture ("schedule", "static") && has_picture ("schedule", "buffers") ? YES : NO;
}

static gboolean
is_compared (gpointer page)
{
  const char *text = td_compare_page_get_sentence (page);
  return td_compare_page_get (page) && text && *text;
}

static Answer
compares_iterations (void)
{
  ui_test_do ("show-page", "compare");
  ui_test_do ("compare", NULL);
  ui_test_wait ("a comparison", is_compared, td_workspace_get_compare (ui_test_workspace ()));
  return YES;
}

static Answer
has_curves (void)
{
  ui_test_do ("show-page", "curves");
  ui_test_settle ();
  return td_session_get_curves (ui_test_session ()) ? YES : NO;
}

/* Of the run only its first iteration, then all of it again. */
static Answer
narrows_to_a_range (void)
{
  TdIterationsPage *list = td_workspace_get_iterations (ui_test_workspace ());
  guint n = td_session_get_n_iterations (ui_test_session ());
  ui_test_do ("range", "0..0");
  ui_test_settle ();
  guint narrow = td_iterations_page_get_n_rows (list);
  ui_test_do ("clear-range", NULL);
  ui_test_settle ();
  return n > 1 && narrow == 1 && td_iterations_page_get_n_rows (list) == n ? YES : NO;
}

static const struct
{
  int row;
  const char *what;
  Answer (*works) (void);
} rows[] = {
  { 1, "graph of what ran", shows_what_ran },
  { 2, "backward beside forward", has_backward },
  { 2, "twins", goes_to_the_twin },
  { 3, "update in the graph", has_update },
  { 4, "layers open and fold, the zoom stays", opens_and_folds_a_layer },
  { 6, "what repeats is stacked", stacks_what_repeats },
  { 7, "parameters as stubs", has_stubs },
  { 8, "saved for backward, with bytes", says_what_is_saved },
  { 9, "colour by time", is_coloured_by_time },
  { 13, "left to right", is_read_from_left_to_right },
  { 16, "SVG, PDF and PNG", saves_pictures },
  { 18, "step an operation", steps_an_operation },
  { 19, "step over, into, out of a layer", steps_a_layer },
  { 20, "step through backward", steps_backward },
  { 21, "reverse", steps_in_reverse },
  { 22, "run to loss, backward, update", runs_to_places },
  { 24, "where from", says_where_from },
  { 28, "source follows", follows_in_the_source },
  { 29, "values of an operation", has_values },
  { 37, "values to .npy", saves_values },
  { 38, "norms by layer and iteration", has_the_heat_map },
  { 39, "ridge of histograms", has_the_ridge },
  { 40, "rules find what does not learn", has_findings },
  { 42, "parameters without gradient", names_what_is_missing },
  { 46, "memory by category", has_memory_by_category },
  { 47, "blocks at the playhead", has_blocks },
  { 50, "whether memory grows", says_whether_memory_grows },
  { 52, "memory by iteration", has_memory_by_iteration },
  { 56, "order of execution", has_the_order },
  { 57, "schedule and buffers", has_a_schedule },
  { 64, "timeline", has_the_timeline },
  { 65, "a range of iterations", narrows_to_a_range },
  { 66, "flame graph by layer", has_the_flame_graph },
  { 67, "curves", has_curves },
  { 69, "two iterations compared", compares_iterations },
};

static void
rows__that_need_only_a_recording_work (void **state)
{
  static const char *const words[] = { "NO", "yes", "-" };
  const char *tape = td_test_tmp ("rows.tdtape");
  guint n_no = 0, n_yes = 0;

  (void)state;
  ui_test_record_life (tape, arguments, (const char *const[]){ "--level", "values", NULL });
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_wait_for_layout ();
  td_session_go (ui_test_session (), TD_VERB_LOSS, 1, NULL);
  loss = moment ().event;
  assert_true (loss > 0);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      ui_test_do ("show-page", "debug");
      Answer answer = rows[i].works ();
      print_message ("row %2d  %-38s %s: %s\n", rows[i].row, rows[i].what, arguments[0],
                     words[answer]);
      n_no += answer == NO;
      n_yes += answer == YES;
    }
  print_message ("%s: %u work, %u do not, of %u; the others it has nothing of\n", arguments[0],
                 n_yes, n_no, (guint)G_N_ELEMENTS (rows));
  assert_int_equal (n_no, 0);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (rows__that_need_only_a_recording_work),
  };
  ui_test_init (&argc, &argv);
  if (argc < 2)
    {
      fprintf (stderr, "usage: test-rows PROGRAM [NAME=VALUE ...]\n");
      return 2;
    }
  arguments = argv + 1;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
