/* The compare page: which iteration stands beside which, its sentence and list, linked canvases
 * and selection, what has no counterpart, pictures of it. Two runs share the tests by their
 * names: compare__ and pair__. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "lenet-tape.h"
#include "settings/td-keys.h"
#include "td-synthetic-tape.h"
#include "window/td-window-private.h"

#define BRANCH 20 /* the iteration that has one relu more */
#define RELU 12   /* its event */

static void
open_lenet (void)
{
  LenetOptions options = LENET_DEFAULT;
  const char *path = td_test_tmp ("lenet.tdtape");
  options.extra_relu_at = BRANCH;
  lenet_tape_write (path, &options);
  ui_test_resize (1440, 900);
  ui_test_open (path);
  ui_test_do ("go-to", "i=20&e=20");
}

static TdComparePage *
page (void)
{
  return td_workspace_get_compare (ui_test_workspace ());
}

static TdGraphView *
view_of (TdSide side)
{
  return td_compare_side_get_view (td_compare_page_get_side (page (), side));
}

static const TdCompare *
compare (void)
{
  assert_non_null (td_compare_page_get (page ()));
  return td_compare_page_get (page ());
}

/* Of one recording the older one is on the left, whichever is at the playhead. */
static void
assert_iterations (gint64 mine, gint64 theirs)
{
  TdSide side = td_compare_page_get_mine (page ());
  gboolean one = !td_compare_page_has_other_recording (page ());
  assert_int_equal (td_iteration_get_number (compare ()->of[side]), mine);
  assert_int_equal (td_iteration_get_number (compare ()->of[1 - side]), theirs);
  assert_int_equal (side, one && theirs < mine ? TD_SIDE_B : TD_SIDE_A);
}

static guint64
selected_of (TdSession *session)
{
  guint n;
  const guint64 *keys = td_session_get_selection (session, &n);
  return n ? keys[0] : 0;
}

static guint64
key_of (TdSide side, gint event)
{
  return td_iteration_get_tape (compare ()->of[side])->events[event].key;
}

/* ---- what is compared ---- */

static void
compare__shows_the_previous_iteration_at_first (void **state)
{
  open_lenet ();
  assert_null (td_compare_page_get (page ())); /* nothing is computed before it is looked at */
  ui_test_do ("compare", NULL);
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "compare");
  assert_iterations (20, 19);
  assert_non_null (strstr (td_compare_page_get_sentence (page ()), "1 operation"));
  ui_test_do ("next-iteration", NULL);
  assert_iterations (21, 20);
  ui_test_do ("go-to", "i=5&e=3");
  assert_iterations (5, 4);
}

static void
compare__takes_an_iteration_by_number (void **state)
{
  open_lenet ();
  ui_test_do ("compare-with", "7");
  assert_iterations (20, 7);
  ui_test_do ("next-iteration", NULL);
  assert_iterations (21, 7);
  ui_test_do ("compare-with", "9999");
  assert_string_equal (ui_test_info_text (), "There is no iteration 9999 to compare with");
  assert_iterations (21, 7);
}

static void
compare__moves_either_side_by_an_iteration (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  ui_test_do ("compare-previous", NULL);
  assert_iterations (20, 18);
  ui_test_do ("previous-iteration", NULL);
  assert_iterations (19, 18);
  ui_test_do ("compare-next", NULL);
  ui_test_do ("compare-next", NULL);
  assert_iterations (19, 20); /* now the older one is at the playhead */
  ui_test_do ("compare-with", "0");
  ui_test_do ("compare-previous", NULL);
  assert_iterations (19, 0);
}

static void
compare__finds_the_nearest_other_structure (void **state)
{
  open_lenet ();
  ui_test_do ("go-to", "i=30&e=0");
  ui_test_do ("compare-with", "structure");
  assert_iterations (30, BRANCH);
  ui_test_do ("go-to", "i=10&e=0");
  assert_iterations (10, BRANCH);
}

static void
compare__of_another_recording_takes_the_same_iteration (void **state)
{
  LenetOptions options = LENET_DEFAULT;
  const char *path = td_test_tmp ("other.tdtape");
  options.n_iterations = 25;
  options.op_name = "average_pooling_2d";
  lenet_tape_write (path, &options);
  open_lenet ();
  ui_test_do ("compare-with", path);
  assert_true (td_compare_page_has_other_recording (page ()));
  assert_iterations (20, 20);
  /* beyond the end of the other one: its last */
  ui_test_do ("go-to", "i=39&e=0");
  assert_iterations (39, 24);
  ui_test_do ("compare-with", "3");
  assert_iterations (39, 3);
  /* and back to one recording */
  ui_test_do ("compare-with", "previous");
  assert_false (td_compare_page_has_other_recording (page ()));
  assert_iterations (39, 38);
}

static void
compare__says_what_is_wrong_with_another_file (void **state)
{
  const char *path = td_test_tmp ("text.tdtape");
  open_lenet ();
  ui_test_do ("compare", NULL);
  assert_true (g_file_set_contents (path, "no tape", -1, NULL));
  ui_test_do ("compare-with", path);
  assert_non_null (strstr (ui_test_info_text (), "not a tape"));
  assert_iterations (20, 19);
}

static void
compare__without_another_iteration_says_so (void **state)
{
  SampleOptions one = { .n_iterations = 1, .nan_at = -1 };
  ui_test_open_sample (&one);
  ui_test_do ("compare", NULL);
  assert_null (td_compare_page_get (page ()));
  assert_string_equal (td_compare_page_get_reason (page ()),
                       "Iteration 0 comes first: nothing was recorded before it.");
  ui_test_save_picture ("compare-empty.png");
  ui_test_do ("compare-with", "structure");
  assert_string_equal (td_compare_page_get_reason (page ()),
                       "Iteration 0 has the graph that all iterations of this recording have.");
}

/* ---- differences ---- */

static void
compare__steps_from_difference_to_difference (void **state)
{
  guint n;
  open_lenet ();
  ui_test_do ("next-difference", NULL); /* from the debug perspective too */
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "compare");
  assert_int_equal (td_compare_page_get_position (page (), &n), 1);
  assert_int_equal (n, 1);
  /* only B has it: A says so, and B's node is selected */
  assert_int_equal (selected_of (ui_test_session ()), key_of (TD_SIDE_B, RELU));
  assert_int_equal (selected_of (td_compare_page_get_other (page ())), 0);
  assert_string_equal (
      td_compare_side_get_statement (td_compare_page_get_side (page (), TD_SIDE_A)),
      "No counterpart of relu, event 12");
  assert_null (td_compare_side_get_statement (td_compare_page_get_side (page (), TD_SIDE_B)));
  ui_test_do ("next-difference", NULL);
  assert_int_equal (td_compare_page_get_position (page (), &n), 1); /* it was the last */
  ui_test_do ("previous-difference", NULL);
  assert_int_equal (td_compare_page_get_position (page (), &n), 1);
}

static void
compare__lists_numbers_when_asked (void **state)
{
  guint n, more;
  open_lenet ();
  ui_test_do ("go-to", "i=30&e=0");
  ui_test_do ("compare", NULL);
  td_compare_page_get_position (page (), &n);
  ui_test_do ("toggle-numbers", NULL);
  td_compare_page_get_position (page (), &more);
  assert_true (compare ()->n_numeric > 0);
  assert_int_equal (more, n + compare ()->n_numeric);
  ui_test_do ("previous-difference", NULL);
  assert_int_equal (td_compare_page_get_position (page (), &n), more);
  ui_test_do ("toggle-numbers", NULL);
  td_compare_page_get_position (page (), &n);
  assert_int_equal (n, more - compare ()->n_numeric);
}

/* ---- one selection ---- */

static void
compare__selects_the_counterpart_on_the_other_side (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  TdSession *other = td_compare_page_get_other (page ());
  td_session_select (ui_test_session (), key_of (TD_SIDE_B, 20));
  gint there = td_compare_counterpart (compare (), TD_SIDE_B, 20);
  assert_int_equal (there, 19);
  assert_int_equal (selected_of (other), key_of (TD_SIDE_A, there));
  td_session_select (other, key_of (TD_SIDE_A, 5));
  assert_int_equal (selected_of (ui_test_session ()), key_of (TD_SIDE_B, 5));
  td_session_select (ui_test_session (), 0);
  assert_int_equal (selected_of (other), 0);
}

static void
compare__moves_both_playheads (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  TdSession *other = td_compare_page_get_other (page ());
  assert_int_equal (td_session_get_moment (other).event, 19);
  ui_test_do ("step-op", NULL);
  assert_moment (20, 21);
  assert_int_equal (td_session_get_moment (other).event, 20);
  td_session_set_moment (other, 19, 3);
  assert_moment (20, 3);
}

/* ---- linked canvases ---- */

/* Finding does not lead away from the two graphs. */
static void
compare__finds_on_the_page_itself (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  ui_test_do ("find", NULL);
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "compare");
  guint n = td_compare_page_search (page (), "relu");
  assert_true (n > 1);
  guint64 first = selected_of (ui_test_session ());
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  gint event = td_iteration_find_event (it, first);
  assert_true (event >= 0);
  assert_non_null (strstr (td_iteration_get_op_name (it, (guint)event), "relu"));
  assert_true (selected_of (td_compare_page_get_other (page ())) != 0); /* its counterpart */
  assert_int_equal (td_compare_page_search (page (), "relu"), n);
  assert_true (selected_of (ui_test_session ()) != first); /* the next one */
  assert_int_equal (td_compare_page_search (page (), "no such thing"), 0);
  ui_test_do ("cancel", NULL); /* closes the bar, and nothing else */
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "compare");
  assert_true (selected_of (ui_test_session ()) != 0);
}

static void
pair__zooms_and_folds_both_canvases (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  TdGraphView *a = view_of (TD_SIDE_A), *b = view_of (TD_SIDE_B);
  ui_test_do ("fit", NULL);
  assert_true (td_graph_view_get_scale (a) == td_graph_view_get_scale (b));
  double fitted = td_graph_view_get_scale (a);
  ui_test_do ("zoom-in", NULL);
  assert_true (td_graph_view_get_scale (a) > fitted);
  assert_true (td_graph_view_get_scale (a) == td_graph_view_get_scale (b));
  td_graph_view_zoom (b, 0.5); /* and the other way round */
  assert_true (td_graph_view_get_scale (a) == td_graph_view_get_scale (b));

  ui_test_do ("expand-to", "0");
  guint n = td_graph_view_get_n_nodes (b);
  ui_test_do ("expand-all", NULL);
  assert_true (td_graph_view_get_n_nodes (b) > n);
  assert_int_equal (td_graph_view_get_n_nodes (b), td_graph_view_get_n_nodes (a) + 1);
}

static void
pair__keeps_equal_operations_at_equal_places (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  ui_test_do ("expand-all", NULL);
  guint n_equal = 0;
  for (gint event = 0; event < RELU; event++)
    {
      TdSceneRect here, there;
      assert_true (td_scene_find_key (td_graph_view_get_scene (view_of (TD_SIDE_A)),
                                      key_of (TD_SIDE_A, event), &here));
      assert_true (td_scene_find_key (td_graph_view_get_scene (view_of (TD_SIDE_B)),
                                      key_of (TD_SIDE_B, event), &there));
      n_equal += here.x == there.x && here.y == there.y;
    }
  assert_int_equal (n_equal, RELU);
}

static void
pair__exports_both_pictures (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  ui_test_do ("save-picture", td_test_tmp ("both.svg"));
  g_autofree char *a = NULL, *b = NULL;
  assert_true (g_file_get_contents (td_test_tmp ("both-a.svg"), &a, NULL, NULL));
  assert_true (g_file_get_contents (td_test_tmp ("both-b.svg"), &b, NULL, NULL));
  assert_non_null (strstr (a, "<svg"));
  assert_non_null (strstr (b, "<svg"));
  assert_string_not_equal (a, b);
}

static void
text_read (GObject *clipboard, GAsyncResult *result, gpointer text)
{
  *(char **)text = gdk_clipboard_read_text_finish (GDK_CLIPBOARD (clipboard), result, NULL);
}

static gboolean
has_text (gpointer text)
{
  return *(char **)text != NULL;
}

static void
pair__copies_the_list_as_text (void **state)
{
  char *text = NULL;
  open_lenet ();
  ui_test_do ("copy-differences", NULL);
  gdk_clipboard_read_text_async (gtk_widget_get_clipboard (GTK_WIDGET (ui_test_window ())),
                                 NULL, text_read, &text);
  ui_test_wait ("the clipboard", has_text, &text);
  assert_non_null (strstr (text, "none → 12"));
  g_free (text);
}

static void
pair__keeps_the_perspective_for_the_next_window (void **state)
{
  open_lenet ();
  ui_test_do ("show-page", "compare");
  ui_test_new_window ();
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "compare");
  ui_test_open (td_test_tmp ("lenet.tdtape"));
  assert_non_null (td_compare_page_get (page ()));
}

/* ---- what takes longer ---- */

static gboolean
is_compared (gpointer unused)
{
  return td_compare_page_get (page ()) != NULL;
}

/* 5,000 operations are compared in a thread; both pictures are there before it is done. */
static void
pair__of_much_is_made_in_a_thread (void **state)
{
  char error[160];
  TdTapeWriterOptions options
      = { .size = sizeof options, .path = td_test_tmp ("large.tdtape") };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);
  assert_non_null (w);
  for (guint number = 0; number < 3; number++)
    {
      g_autoptr (TdIteration) it = td_synthetic_residual (number, 2500, FALSE);
      td_synthetic_write (w, it);
    }
  td_tape_writer_free (w);
  ui_test_open (td_test_tmp ("large.tdtape"));
  ui_test_do ("compare", NULL);
  assert_non_null (td_compare_page_get_other (page ()));
  assert_string_equal (td_compare_page_get_reason (page ()), "");
  ui_test_wait ("the comparison", is_compared, NULL);
  assert_iterations (2, 1);
  assert_int_equal (compare ()->n_structural, 0);
  /* something else is asked for before the first answer: that is what is shown */
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_window ()), "compare-with",
                                  g_variant_new_string ("0"));
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_window ()), "compare-with",
                                  g_variant_new_string ("1"));
  assert_null (td_compare_page_get (page ()));
  assert_string_equal (td_compare_page_get_sentence (page ()), "Comparing…");
  ui_test_wait ("the other comparison", is_compared, NULL);
  assert_iterations (2, 1);
}

/* ---- buffers ---- */

static void
pair__shows_the_buffers_of_both_sides (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  ui_test_do ("show-page", "compare-buffers");
  /* a buffer is the same in the graph, in the pictures of buffers and on the other side */
  const TdTapeIteration *b = td_iteration_get_tape (compare ()->of[TD_SIDE_B]);
  const TdTapeIteration *a = td_iteration_get_tape (compare ()->of[TD_SIDE_A]);
  guint64 here = b->vars[b->outs[b->events[20].first_out]].key;
  guint64 there = a->vars[a->outs[a->events[19].first_out]].key;
  TdSceneRect box;
  assert_true (
      td_scene_find_key (td_compare_page_get_buffers (page (), TD_SIDE_B), here, &box));
  assert_true (
      td_scene_find_key (td_compare_page_get_buffers (page (), TD_SIDE_A), there, &box));
  td_session_select (ui_test_session (), here);
  assert_int_equal (selected_of (td_compare_page_get_other (page ())), there);
  ui_test_save_picture ("compare-buffers.png");
}

/* ---- dynamic and static ---- */

static void
record_twice (const char *tape, const char *kind)
{
  const char *const argv[] = { td_test_program ("app/tapedeck"),
                               "run",
                               "-f",
                               "--quiet",
                               "--level",
                               "stats",
                               "-o",
                               tape,
                               td_test_source ("tests/ui/models/twice.c"),
                               kind,
                               NULL };
  TdTestChild child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

/* A replayed operation is as visible as one that was called: same graph, same numbers. */
static void
pair__of_code_and_its_schedule_finds_no_difference (void **state)
{
  g_autofree char *dynamic = g_strdup (td_test_tmp ("dynamic.tdtape")),
                  *fixed = g_strdup (td_test_tmp ("static.tdtape"));
  record_twice (dynamic, "dynamic");
  record_twice (fixed, "static");
  ui_test_resize (1440, 900);
  ui_test_open (dynamic);
  ui_test_do ("go-to", "i=3&e=2");
  ui_test_do ("compare-with", fixed);
  assert_iterations (3, 3);
  assert_int_equal (compare ()->diff->totals[TD_SIDE_A].n_static, 0);
  assert_true (compare ()->diff->totals[TD_SIDE_B].n_static > 0);
  assert_int_equal (compare ()->n_structural, 0);
  assert_int_equal (compare ()->n_numeric, 0);
  assert_true (compare ()->diff->has_numbers);
  td_session_select (ui_test_session (), key_of (TD_SIDE_A, 2));
  gint there = td_compare_counterpart (compare (), TD_SIDE_A, 2);
  assert_int_equal (selected_of (td_compare_page_get_other (page ())),
                    key_of (TD_SIDE_B, there));
  ui_test_save_picture ("compare-static.png");
}

/* ---- the lesson ---- */

static gboolean
shows_lesson (gpointer unused)
{
  if (g_str_equal (ui_test_page (), "message"))
    assert_string_equal (ui_test_message_title (), "Recording Two Examples");
  return g_str_equal (ui_test_page (), "workspace") && td_compare_page_get (page ()) != NULL;
}

static void
pair__of_the_lesson_shows_the_dynamic_and_the_static_graph (void **state)
{
  td_test_program ("app/tapedeck"); /* skipped where that was not built */
  ui_test_resize (1440, 900);
  ui_test_do ("lesson-compare", NULL);
  ui_test_wait ("the lesson", shows_lesson, NULL);
  ui_test_settle ();
  assert_true (td_compare_page_has_other_recording (page ()));
  assert_string_equal (td_session_get_name (ui_test_session ()), "dynamic_graph");
  assert_iterations (0, 0);
  /* relu and sum on the left; two linear layers with a relu between them on the right */
  assert_string_equal (td_iteration_get_op_name (compare ()->of[TD_SIDE_A], 0), "relu");
  assert_string_equal (td_iteration_get_op_name (compare ()->of[TD_SIDE_B], 0), "linear");
  ui_test_save_picture ("compare-lesson.png");
  /* and the branch within the dynamic one */
  ui_test_do ("compare-with", "structure");
  assert_iterations (0, 1);
  assert_non_null (strstr (td_compare_page_get_sentence (page ()), "dynamic_graph.c:"));
  ui_test_save_picture ("compare-branch.png");
}

/* ---- to look at ---- */

static void
pair__can_be_looked_at (void **state)
{
  open_lenet ();
  ui_test_do ("compare", NULL);
  ui_test_do ("next-difference", NULL);
  assert_true (ui_test_has_many_colours (20));
  ui_test_save_picture ("compare.png");
  ui_test_do ("toggle-numbers", NULL);
  ui_test_set_dark (TRUE);
  ui_test_save_picture ("compare-dark.png");
  ui_test_set_dark (FALSE);
  ui_test_resize (1024, 600);
  ui_test_save_picture ("compare-narrow.png");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (compare__shows_the_previous_iteration_at_first),
    ui_test (compare__takes_an_iteration_by_number),
    ui_test (compare__moves_either_side_by_an_iteration),
    ui_test (compare__finds_the_nearest_other_structure),
    ui_test (compare__of_another_recording_takes_the_same_iteration),
    ui_test (compare__says_what_is_wrong_with_another_file),
    ui_test (compare__without_another_iteration_says_so),
    ui_test (compare__steps_from_difference_to_difference),
    ui_test (compare__lists_numbers_when_asked),
    ui_test (compare__selects_the_counterpart_on_the_other_side),
    ui_test (compare__moves_both_playheads),
    ui_test (compare__finds_on_the_page_itself),
    ui_test (pair__zooms_and_folds_both_canvases),
    ui_test (pair__keeps_equal_operations_at_equal_places),
    ui_test (pair__exports_both_pictures),
    ui_test (pair__copies_the_list_as_text),
    ui_test (pair__keeps_the_perspective_for_the_next_window),
    ui_test (pair__of_much_is_made_in_a_thread),
    ui_test (pair__shows_the_buffers_of_both_sides),
    ui_test (pair__of_code_and_its_schedule_finds_no_difference),
    ui_test (pair__of_the_lesson_shows_the_dynamic_and_the_static_graph),
    ui_test (pair__can_be_looked_at),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
