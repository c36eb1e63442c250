/* Static schedules and the graph are one picture: a row selects its operation and an operation
 * its row, replayed operations say so, functions are chosen, a trace is seen to grow.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "graph/td-graph.h"
#include "schedule/td-gantt.h"
#include "widgets/td-scene-view.h"
#include "window/td-window-private.h"

#define REPLAYED 6 /* an iteration whose functions were replayed */
/* of the encoder: after its scope and the link that is entered */
#define LINEAR_STEP 2
#define GROUP_STEP 4

static char *tape; /* recorded once for all tests */

static void
open_chains (const char *moment)
{
  if (!tape)
    {
      const char *program = td_test_program ("app/tapedeck");
      g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
      g_mkdir_with_parents (folder, 0755);
      tape = g_build_filename (folder, "chains.tdtape", NULL);
      const char *const argv[] = { program,
                                   "run",
                                   "-f",
                                   "-o",
                                   tape,
                                   "--quiet",
                                   td_test_source ("tests/ui/models/chains.c"),
                                   NULL };
      TdTestChild child = td_test_run (argv, NULL, NULL);
      assert_child_status (child, 0);
      td_test_child_clear (&child);
    }
  ui_test_resize (1800, 1000);
  ui_test_open (tape);
  ui_test_do ("go-to", moment);
}

/* ---- what is on show ---- */

static TdSceneView *
scene_view (const char *page)
{
  ui_test_do ("show-page", "schedule");
  TdSceneView *view = ui_test_panel_scene_view ("schedule", page);
  assert_non_null (td_scene_view_get_scene (view));
  return view;
}

static char *
dump_page (const char *page)
{
  return td_scene_dump (td_scene_view_get_scene (scene_view (page)));
}

static TdScene *
graph_scene (void)
{
  TdGraphPage *pane = td_workspace_get_graph (ui_test_workspace ());
  return td_graph_view_get_scene (td_graph_page_get_view (pane));
}

/* The rows or nodes of a dump that have this mark and stand out. */
static gboolean
is_marked (const char *dump, const char *tag, gint64 data)
{
  g_autofree char *mark = g_strdup_printf ("[%s %" G_GINT64_FORMAT "]", tag, data);
  g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
  for (char **line = lines; *line; line++)
    if (g_str_has_suffix (*line, mark) && strstr (*line, "stroke=accent"))
      return TRUE;
  return FALSE;
}

static gboolean
is_graph_marked (gint event)
{
  g_autofree char *dump = td_scene_dump (graph_scene ());
  return is_marked (dump, "node", event);
}

/* Press what has this number in a page, as the pointer does. */
static void
press (const char *page, gint64 data)
{
  TdSceneView *view = scene_view (page);
  TdScene *scene = td_scene_view_get_scene (view);
  TdSceneHit hit;
  for (double y = 2; y < td_scene_height (scene); y += 2)
    for (double x = 20; x < td_scene_width (scene); x += 9)
      if (td_scene_hit (scene, x, y, 0, &hit) && hit.tag == TD_TAG_ROW && hit.data == data)
        {
          g_signal_emit_by_name (view, "pressed", &hit, x, y);
          ui_test_settle ();
          return;
        }
  fail_msg ("page %s has no row %d", page, (int)data);
}

static void
press_key (const char *page, int rows)
{
  gboolean taken = FALSE;
  g_signal_emit_by_name (scene_view (page), "moved", rows, &taken);
  assert_true (taken);
  ui_test_settle ();
}

static gint
find_op (const char *op)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  for (guint e = 0; e < td_iteration_get_n_events (it); e++)
    if (strcmp (td_iteration_get_op_name (it, e), op) == 0)
      return (gint)e;
  fail_msg ("no operation %s", op);
  return -1;
}

static guint64
key_of_event (gint event)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  return td_iteration_get_tape (it)->events[event].key;
}

static gboolean
is_event_selected (gint event)
{
  return td_session_is_selected (ui_test_session (), key_of_event (event));
}

#define FUSED "add_scalar+tanh+mul_scalar+relu"

/* ---- one selection ---- */

static void
static_page__row_and_node_are_one_selection (void **state)
{
  open_chains ("i=6&e=0");
  gint fused = find_op (FUSED), linear = find_op ("linear");
  press ("static", GROUP_STEP);
  assert_true (is_event_selected (fused));
  assert_true (is_graph_marked (fused));
  press_key ("static", 2); /* a member of it: tanh */
  assert_true (is_event_selected (fused));
  press_key ("static", -3);
  assert_true (is_event_selected (linear));
  assert_true (is_graph_marked (linear));
  assert_false (is_graph_marked (fused));

  td_session_select (ui_test_session (),
                     key_of_event (fused)); /* as a click on the node does */
  ui_test_settle ();
  g_autofree char *shown = dump_page ("static");
  for (int row = GROUP_STEP; row <= GROUP_STEP + 1; row++) /* the group and its members */
    assert_true (is_marked (shown, "row", row));
  assert_false (is_marked (shown, "row", LINEAR_STEP));
  ui_test_save_picture ("static-linked.png");
}

/* The page turns to the function of what is selected elsewhere. */
static void
static_page__follows_the_selection_to_its_function (void **state)
{
  open_chains ("i=6&e=0");
  g_autofree char *first = dump_page ("static");
  assert_contains (first, "static#1");
  td_session_select (ui_test_session (), key_of_event (find_op ("sigmoid")));
  ui_test_settle ();
  g_autofree char *second = dump_page ("static");
  assert_contains (second, "static#2");
  assert_true (is_marked (second, "row", 4));
  td_session_select (ui_test_session (), key_of_event (find_op ("sgd"))); /* in no function */
  ui_test_settle ();
  g_autofree char *still = dump_page ("static");
  assert_contains (still, "static#2");
}

static void
static_page__is_walked_by_keyboard (void **state)
{
  open_chains ("i=6&e=0");
  td_session_select (ui_test_session (), 0);
  press ("static", LINEAR_STEP);
  press_key ("static", 1); /* over the end of the link, to the group */
  assert_true (is_event_selected (find_op (FUSED)));
  press_key ("static", -1);
  assert_true (is_event_selected (find_op ("linear")));
  press_key ("static", 1);
  press_key ("static", 0); /* Return: there */
  assert_moment (REPLAYED, find_op (FUSED));
  gboolean taken = TRUE; /* there is no row above the first */
  g_signal_emit_by_name (scene_view ("static"), "moved", -1000, &taken);
  g_signal_emit_by_name (scene_view ("static"), "moved", -1000, &taken);
  assert_false (taken);
}

static void
order_page__stands_at_what_is_selected (void **state)
{
  open_chains ("i=6&e=0");
  gint last = find_op ("sgd") + 3;
  g_autofree char *label = g_strdup_printf ("[row %d]", last);
  ui_test_resize (1800, 760);
  td_session_select (ui_test_session (), key_of_event (last));
  ui_test_settle ();
  g_autofree char *shown = dump_page ("order");
  assert_contains (shown, label);
  press_key ("order", -1);
  assert_true (is_event_selected (last - 1));
}

/* A buffer is a variable: its node is the operation that made it. */
static void
buffers_page__bar_and_node_are_one_selection (void **state)
{
  open_chains ("i=6&e=0");
  gint linear = find_op ("linear");
  td_session_select (ui_test_session (), key_of_event (linear));
  ui_test_settle ();
  g_autofree char *shown = dump_page ("buffers");
  gboolean outlined = is_marked (shown, "row", linear);
  if (!outlined) /* it lies in the arena: take the gradient of the loss instead */
    {
      gint mul = find_op ("mul");
      td_session_select (ui_test_session (), key_of_event (mul));
      ui_test_settle ();
      g_autofree char *now = dump_page ("buffers");
      assert_true (is_marked (now, "row", mul));
      td_session_select (ui_test_session (), 0);
      press ("buffers", mul);
      assert_true (is_graph_marked (mul));
      press_key ("buffers", 1);
      assert_false (is_graph_marked (mul));
      return;
    }
  press ("buffers", linear);
  assert_true (is_graph_marked (linear));
}

static void
advice_page__row_and_layer_are_one_selection (void **state)
{
  open_chains ("i=6&e=0");
  guint n;
  press ("advice", 0);
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  assert_int_equal (n, 1);
  guint64 first = keys[0];
  assert_true (first != 0);
  g_autofree char *shown = dump_page ("advice");
  assert_contains (shown, "fill=selected [row 0]");
  press_key ("advice", 1);
  keys = td_session_get_selection (ui_test_session (), &n);
  assert_true (n == 1 && keys[0] != first);
}

/* ---- functions ---- */

static void
static_page__chooses_function_and_schedule (void **state)
{
  open_chains ("i=7&e=0"); /* five rows: the second function replays its other schedule */
  g_autofree char *small = dump_page ("static");
  assert_contains (small, "static#2");
  assert_contains (small, "f32 (5, 6)");
  ui_test_save_picture ("static-chain-2.png");
  ui_test_do ("next-schedule", NULL);
  g_autofree char *large = dump_page ("static");
  assert_contains (large, "static#2");
  assert_contains (large, "f32 (16, 6)");
  ui_test_do ("previous-schedule", NULL);
  g_autofree char *again = dump_page ("static");
  assert_string_equal (again, small);
  ui_test_do ("next-function", NULL);
  g_autofree char *other = dump_page ("static");
  assert_contains (other, "static#1");
  ui_test_do ("previous-function", NULL);
  g_autofree char *back = dump_page ("static");
  assert_string_equal (back, small);
}

static void
static_page__says_what_its_calls_wait_for (void **state)
{
  open_chains ("i=6&e=0");
  g_autofree char *forward = dump_page ("static");
  assert_contains (forward, "1 in forward");
  g_autofree char *link = g_strdup_printf ("i=6&e=%d", find_op ("sigmoid"));
  ui_test_do ("go-to", link);
  g_autofree char *waiting = dump_page ("static");
  assert_contains (waiting, "1 awaiting backward");
  ui_test_do ("last-event", NULL);
  g_autofree char *end = dump_page ("static");
  assert_contains (end, "\"free\"");
  assert_contains (end, "unverified since iteration 1");
}

/* ---- the graph ---- */

static void
assert_tooltip_has (gint event, const char *words)
{
  TdScene *scene = graph_scene ();
  TdSceneRect box;
  TdSceneHit hit;
  assert_true (td_scene_find_key (scene, key_of_event (event), &box));
  assert_true (td_scene_hit (scene, box.x + 4, box.y + box.height / 2, 2, &hit));
  assert_non_null (hit.tooltip);
  assert_contains (hit.tooltip, words);
}

static void
graph__marks_what_a_schedule_replayed (void **state)
{
  open_chains ("i=0&e=0"); /* their code ran */
  TdGraphView *view = td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
  ui_test_do ("expand-all", NULL);
  g_autofree char *dynamic = td_scene_dump (graph_scene ());
  assert_null (strstr (dynamic, "stroke=static"));
  assert_null (strstr (dynamic, "replayed\""));
  ui_test_do ("go-to", "i=6&e=3");
  ui_test_do ("expand-all", NULL);
  ui_test_wait_for_layout ();
  assert_true (td_graph_view_get_n_nodes (view) > 10);
  g_autofree char *replayed = td_scene_dump (graph_scene ());
  assert_contains (replayed, "stroke=static");
  assert_contains (replayed, "4 replayed");
  assert_contains (replayed, "\"mul_scalar\""); /* a line of the fused box */
  assert_contains (replayed, "stroke=fused");
  assert_tooltip_has (find_op (FUSED), "4 operations fused");
  assert_tooltip_has (find_op (FUSED), "replayed from schedule 1, step 4");
  assert_tooltip_has (find_op ("linear"), "replayed from schedule 1, step 2");
  ui_test_save_picture ("replayed.png");
}

static const TdVizGroup *
group_of_op (TdIteration *it, const char *op, guint depth)
{
  TdVizGraph *graph = td_iteration_get_graph (it);
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (graph, &n);
  gint group = td_viz_graph_get_event_group (graph, (guint)find_op (op));
  while (group > 0 && groups[group].depth > (gint)depth)
    group = groups[group].parent;
  return &groups[group];
}

/* A replay opens and closes the scopes that the code does. */
static void
graph__has_the_layers_of_the_code (void **state)
{
  open_chains ("i=6&e=0");
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  assert_string_equal (group_of_op (it, FUSED, 1)->name, "static#1");
  assert_string_equal (group_of_op (it, "sigmoid", 1)->name, "static#2");
  assert_int_equal (group_of_op (it, "mean_squared_error", 1)->kind, TD_GROUP_ROOT);
}

/* ---- a trace that grows ---- */

static gboolean
is_paused (gpointer unused)
{
  g_autofree char *state = ui_test_session () ? ui_test_state ("state") : NULL;
  return state && g_str_equal (state, "paused");
}

static gboolean
moment_differs (gpointer before)
{
  g_autofree char *now = ui_test_state ("moment");
  return !g_str_equal (now, before);
}

/* "tracing: 3 entries so far": the newest is the last row. */
static guint
count_entries (const char *dump)
{
  const char *words = strstr (dump, "tracing: ");
  guint n = words ? (guint)g_ascii_strtoull (words + strlen ("tracing: "), NULL, 10) : 0;
  g_autofree char *last = g_strdup_printf ("[row %u]", n - 1);
  if (n > 0)
    assert_contains (dump, last);
  return n;
}

static gboolean
can_step (gpointer unused)
{
  return is_paused (NULL)
         && g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), "step-op");
}

/* What the page shows may come a moment after the program has stopped. */
static gboolean
has_more_entries (gpointer than)
{
  g_autofree char *dump = dump_page ("static");
  return count_entries (dump) > *(guint *)than;
}

static void
static_page__grows_by_one_entry_a_step (void **state)
{
  const char *const args[] = { td_test_tmp ("pid"), "live", NULL };
  g_auto (GStrv) environment = g_get_environ ();
  guint n = 0;
  td_test_program ("app/tapedeck");
  ui_test_resize (1800, 1000);
  td__window_start (ui_test_window (),
                    &(TdRunOptions){ .program = td_test_source ("tests/ui/models/chains.c"),
                                     .args = args,
                                     .stop = "op == linear",
                                     .environment = (const char *const *)environment,
                                     .directory = td_test_tmp ("") });
  ui_test_wait ("the first operation", is_paused, NULL);
  for (int step = 0; step < 5; step++)
    {
      ui_test_wait ("another entry", has_more_entries, &n);
      g_autofree char *dump = dump_page ("static"), *there = ui_test_state ("moment");
      n = count_entries (dump);
      assert_contains (dump, "so far");
      ui_test_wait ("a program that can be stepped", can_step, NULL);
      ui_test_do ("step-op", NULL);
      ui_test_wait ("a step", moment_differs, there);
    }
  ui_test_wait ("a paused program", is_paused, NULL);
  ui_test_save_picture ("tracing.png");
}

/* ---- code beside schedule ---- */

static void
check_compared (gint64 a, gint64 b)
{
  const TdCompare *compare
      = td_compare_page_get (td_workspace_get_compare (ui_test_workspace ()));
  assert_non_null (compare);
  assert_int_equal (td_iteration_get_number (compare->of[0]), a);
  assert_int_equal (td_iteration_get_number (compare->of[1]), b);
}

/* Of batches of 16 the first is traced, of batches of 5 (iterations 3 and 7) as well. */
static void
compare__puts_code_beside_its_schedule (void **state)
{
  open_chains ("i=0&e=0");
  ui_test_do ("compare-with", "schedule");
  check_compared (0, 1);
  ui_test_save_picture ("compare-schedule.png");
  ui_test_do ("go-to", "i=2&e=0");
  ui_test_do ("compare-with", "code");
  check_compared (0, 2);
  ui_test_do ("go-to", "i=0&e=0");
  assert_string_equal (
      td_compare_page_get_reason (td_workspace_get_compare (ui_test_workspace ())),
      "Iteration 0 ran by code itself.");
  ui_test_do ("go-to", "i=3&e=0");
  ui_test_do ("compare-with", "schedule");
  check_compared (3, 7);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (static_page__row_and_node_are_one_selection),
    ui_test (static_page__follows_the_selection_to_its_function),
    ui_test (static_page__is_walked_by_keyboard),
    ui_test (order_page__stands_at_what_is_selected),
    ui_test (buffers_page__bar_and_node_are_one_selection),
    ui_test (advice_page__row_and_layer_are_one_selection),
    ui_test (static_page__chooses_function_and_schedule),
    ui_test (static_page__says_what_its_calls_wait_for),
    ui_test (graph__marks_what_a_schedule_replayed),
    ui_test (graph__has_the_layers_of_the_code),
    ui_test (static_page__grows_by_one_entry_a_step),
    ui_test (compare__puts_code_beside_its_schedule),
  };

  ui_test_init (&argc, &argv);
  int failed = cmocka_run_group_tests_name ("static-linked", tests, NULL, NULL);
  g_free (tape);
  return failed;
}
