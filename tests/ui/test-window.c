/* The real window in this process: actions, outline, stepping, linked panels, pictures. Each
 * test opens a tape that was written for it and looks at what the window then says.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <math.h>
#include <string.h>

#include "graph/td-graph.h"
#include "settings/td-keys.h"
#include "window/td-window-private.h"

/* ---- actions ---- */

static const char *const verbs[] = {
  "play",
  "pause",
  "step-op",
  "reverse-step-op",
  "step-over",
  "reverse-step-over",
  "step-into",
  "reverse-step-into",
  "step-out",
  "reverse-step-out",
  "continue-back",
  "next-iteration",
  "previous-iteration",
  "first-event",
  "last-event",
  "next-anomaly",
  "previous-anomaly",
  "next-difference",
  "previous-difference",
  "run-to-cursor",
  "run-to-loss",
  "run-to-backward",
  "run-to-update",
  "follow",
  "toggle-breakpoint",
  "where-from",
  "where-used",
  "holders",
  "twin",
  "expand",
  "collapse",
  "fit",
  "zoom-in",
  "zoom-out",
  "find",
  "compare",
  "export",
  "slice",
  "evaluate",
  "copy-values",
  "export-values",
  "recompute",
  "cancel-recompute",
  "cancel-import",
  "import-again",
  "back",
  "forward",
  "toggle-outline",
  "toggle-inspector",
  "toggle-dock",
  "detach",
  "cancel",
  "close",
};
static const char *const with_parameter[]
    = { "go-to",     "select",       "show-page",  "show-source",
        "set-level", "save-picture", "save-values" };
static const char *const app_actions[]
    = { "open", "record", "new-window", "preferences", "help", "about", "quit" };

static void
window__has_every_action_of_the_design (void **state)
{
  GActionGroup *group = G_ACTION_GROUP (ui_test_window ());

  for (guint i = 0; i < G_N_ELEMENTS (verbs); i++)
    {
      if (!g_action_group_has_action (group, verbs[i]))
        fail_msg ("no action win.%s", verbs[i]);
      assert_null (g_action_group_get_action_parameter_type (group, verbs[i]));
      assert_null (g_action_group_get_action_state_type (group, verbs[i]));
    }
  for (guint i = 0; i < G_N_ELEMENTS (with_parameter); i++)
    {
      const GVariantType *type
          = g_action_group_get_action_parameter_type (group, with_parameter[i]);
      assert_non_null (type);
      assert_true (g_variant_type_equal (type, G_VARIANT_TYPE_STRING));
    }
  for (guint i = 0; i < G_N_ELEMENTS (app_actions); i++)
    if (!g_action_group_has_action (G_ACTION_GROUP (ui_test_app ()), app_actions[i]))
      fail_msg ("no action app.%s", app_actions[i]);
}

static void
window__disables_what_has_nothing_to_act_on (void **state)
{
  GActionGroup *group = G_ACTION_GROUP (ui_test_window ());

  assert_false (g_action_group_get_action_enabled (group, "step-op"));
  assert_false (g_action_group_get_action_enabled (group, "play"));
  assert_false (g_action_group_get_action_enabled (group, "detach"));
  assert_true (g_action_group_get_action_enabled (group, "close"));
  ui_test_open_sample (NULL);
  assert_true (g_action_group_get_action_enabled (group, "step-op"));
  assert_true (g_action_group_get_action_enabled (group, "play"));
  assert_false (g_action_group_get_action_enabled (group, "pause"));
  assert_false (g_action_group_get_action_enabled (group, "detach"));
  assert_false (g_action_group_get_action_enabled (group, "run-to-cursor"));
}

static void
window__states_are_read_only (void **state)
{
  ui_test_open_sample (NULL);
  g_autofree char *before = ui_test_state ("moment");

  g_action_group_change_action_state (G_ACTION_GROUP (ui_test_window ()), "moment",
                                      g_variant_new_string ("1/2/3"));
  g_autofree char *after = ui_test_state ("moment");
  assert_string_equal (before, after);
  g_autofree char *ended = ui_test_state ("state");
  assert_string_equal (ended, "ended");
}

static void
keys__every_row_names_an_action_that_exists (void **state)
{
  guint n;
  const TdKey *keys = td_keys_table (&n);

  assert_true (n > 40);
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *name = NULL;
      g_autoptr (GVariant) target = NULL;
      assert_true (g_action_parse_detailed_name (keys[i].action, &name, &target, NULL));
      gboolean app = g_str_has_prefix (name, "app.");
      GActionGroup *group
          = app ? G_ACTION_GROUP (ui_test_app ()) : G_ACTION_GROUP (ui_test_window ());
      if (!g_action_group_has_action (group, name + 4))
        fail_msg ("key table: no action %s", name);
    }
}

static void
keys__no_key_means_two_things (void **state)
{
  guint n;
  const TdKey *keys = td_keys_table (&n);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < n; i++)
    {
      g_autofree char *all = g_strconcat (keys[i].accels, " ", keys[i].single, NULL);
      g_auto (GStrv) words = g_strsplit (all, " ", -1);
      for (char **word = words; *word; word++)
        {
          guint keyval;
          GdkModifierType modifiers;
          if (!**word)
            continue;
          if (!gtk_accelerator_parse (*word, &keyval, &modifiers))
            fail_msg ("%s: cannot parse %s", keys[i].action, *word);
          if (!g_hash_table_add (seen, g_strdup (*word)))
            fail_msg ("%s is bound twice, again for %s", *word, keys[i].action);
        }
    }
}

static gboolean
is_whole_tape (gpointer path)
{
  TdTapeCheck check;
  return g_file_test (path, G_FILE_TEST_EXISTS) && td_tape_check (path, &check) && check.whole;
}

static void
copy__is_a_whole_recording_with_a_name_of_its_own (void **state)
{
  ui_test_open_sample (NULL);
  const char *path = td_test_tmp ("kept.tdtape");
  td__window_save_copy (ui_test_window (), path);
  ui_test_wait ("the copy", is_whole_tape, (gpointer)path);
  guint n = td_session_get_n_iterations (ui_test_session ());
  ui_test_open (path);
  assert_string_equal (td_session_get_path (ui_test_session ()), path);
  assert_int_equal (td_session_get_n_iterations (ui_test_session ()), n);
  td__window_save_copy (ui_test_window (), "/nowhere/kept.tdtape");
  ui_test_wait ("a line about the failure", ui_test_has_info,
                (gpointer) "/nowhere/kept.tdtape");
}

static void
go_to__takes_a_number_a_link_or_words (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=3&e=5");
  assert_true (td__window_go_to_text (ui_test_window (), " 12 "));
  assert_moment (12, 5);
  assert_true (td__window_go_to_text (ui_test_window (), "i=7&e=2"));
  assert_moment (7, 2);
  assert_true (td__window_go_to_text (ui_test_window (), "softmax_cross"));
  g_autofree char *selected = ui_test_state ("selected");
  assert_int_equal (strlen (selected), 16);
  assert_false (td__window_go_to_text (ui_test_window (), "999999"));
  assert_false (td__window_go_to_text (ui_test_window (), "no such operation"));
  assert_false (td__window_go_to_text (ui_test_window (), "  "));
}

/* ---- outline ---- */

static void
outline__lists_layers_and_operations_of_the_iteration (void **state)
{
  g_autoptr (GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  static const char *const wanted[] = { "block1", "block2",
                                        "head",   "convolution_2d · conv1",
                                        "relu",   "softmax_cross_entropy" };

  ui_test_open_sample (NULL);
  TdOutlinePage *outline = td_workspace_get_outline (ui_test_workspace ());
  td_outline_page_expand_all (outline, TRUE);
  assert_true (td_outline_page_get_n_rows (outline) > 45);
  for (guint i = 0; i < td_outline_page_get_n_rows (outline); i++)
    g_hash_table_add (names, td_outline_page_dup_row_name (outline, i));
  for (guint i = 0; i < G_N_ELEMENTS (wanted); i++)
    if (!g_hash_table_contains (names, wanted[i]))
      fail_msg ("the outline has no row %s", wanted[i]);
}

static void
outline__lists_what_waits_in_backward (void **state)
{
  ui_test_open_sample (NULL);
  TdOutlinePage *outline = td_workspace_get_outline (ui_test_workspace ());
  ui_test_do ("go-to", "i=10&e=5");
  assert_string_equal (td_outline_page_get_waiting (outline), "");
  /* after relu's gradient of block2 the three gradients of conv2 can run */
  ui_test_do ("go-to", "i=10&e=27");
  assert_string_equal (td_outline_page_get_waiting (outline),
                       "28  conv2 convolution_2d_grad_W\n29  conv2 convolution_2d_grad_b\n"
                       "30  conv2 convolution_2d_grad_x");
}

static void
iterations__lists_all_of_them (void **state)
{
  ui_test_open_sample (NULL);
  TdIterationsPage *list = td_workspace_get_iterations (ui_test_workspace ());
  assert_int_equal (td_iterations_page_get_n_rows (list), SAMPLE_ITERATIONS);
}

/* ---- stepping ---- */

static void
step__moves_the_playhead_both_ways (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("first-event", NULL);
  assert_moment (SAMPLE_ITERATIONS - 1, 0);
  ui_test_do ("step-op", NULL);
  ui_test_do ("step-op", NULL);
  assert_moment (SAMPLE_ITERATIONS - 1, 2);
  ui_test_do ("reverse-step-op", NULL);
  assert_moment (SAMPLE_ITERATIONS - 1, 1);
  ui_test_do ("last-event", NULL);
  assert_moment (SAMPLE_ITERATIONS - 1, SAMPLE_N_EVENTS - 1);
}

static void
step__over_passes_a_whole_layer (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=10&e=2");
  ui_test_do ("step-over", NULL);
  assert_moment (10, 5); /* block2 is events 3 to 5 */
  ui_test_do ("reverse-step-over", NULL);
  assert_moment (10, 2);
}

static void
step__passes_the_edge_of_an_iteration_and_returns (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=10&e=0");
  ui_test_do ("last-event", NULL);
  assert_moment (10, SAMPLE_N_EVENTS - 1);
  ui_test_do ("step-op", NULL);
  assert_moment (11, 0);
  ui_test_do ("reverse-step-op", NULL);
  assert_moment (10, SAMPLE_N_EVENTS - 1);
  ui_test_do ("go-to", "i=10&e=0");
  ui_test_do ("reverse-step-op", NULL);
  assert_moment (9, SAMPLE_N_EVENTS - 1);
  ui_test_do ("step-op", NULL);
  assert_moment (10, 0);
}

static void
step__into_backward_shows_the_first_gradient (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=10&e=12");
  ui_test_do ("step-into", NULL);
  assert_moment (10, 13);
  g_autofree char *text = td_workspace_dup_scrubber_text (ui_test_workspace ());
  assert_string_equal (text, "iteration 10 of 59, event 13 of 44, backward");
}

static void
iteration__next_and_previous_keep_the_operation (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=10&e=29");
  ui_test_do ("next-iteration", NULL);
  assert_moment (11, 29);
  ui_test_do ("previous-iteration", NULL);
  ui_test_do ("previous-iteration", NULL);
  assert_moment (9, 29);
}

static void
run_to__goes_to_loss_backward_and_update (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=3&e=0");
  ui_test_do ("run-to-loss", NULL);
  assert_moment (3, 12);
  ui_test_do ("run-to-backward", NULL);
  assert_moment (3, 13);
  ui_test_do ("run-to-update", NULL);
  assert_moment (3, 35);
}

static void
history__goes_back_and_forward (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=5&e=7");
  ui_test_do ("go-to", "i=20&e=8");
  ui_test_do ("back", NULL);
  assert_moment (5, 7);
  ui_test_do ("forward", NULL);
  assert_moment (20, 8);
}

static void
anomaly__next_goes_to_the_first_nan (void **state)
{
  ui_test_open_sample (&(SampleOptions){ .n_iterations = SAMPLE_ITERATIONS, .nan_at = 30 });
  ui_test_do ("go-to", "i=10&e=0");
  ui_test_do ("next-anomaly", NULL);
  TdMoment moment = td_session_get_moment (ui_test_session ());
  assert_int_equal (moment.iteration, 30);
  assert_int_equal (moment.event, 13);
}

/* ---- selection ---- */

static void
selection__is_the_same_in_every_panel (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=59&e=29");
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  guint64 key = td_iteration_get_tape (iteration)->events[3].key;
  td_iteration_unref (iteration);
  g_autofree char *text = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", key);

  ui_test_do ("expand-all", NULL);
  ui_test_do ("select", text);
  ui_test_do ("show-page", "op");
  g_autofree char *selected = ui_test_state ("selected");
  assert_string_equal (selected, text);
  TdInspector *inspector = td_workspace_get_inspector (ui_test_workspace ());
  assert_string_equal (td_inspector_find_fact (inspector, "Operation"), "convolution_2d");
  assert_string_equal (td_inspector_find_fact (inspector, "Layer"), "lenet/block2/conv2");
  assert_string_equal (td_inspector_find_fact (inspector, "Attributes"), "stride=1,1 pad=0,0");
  assert_string_equal (td_inspector_find_fact (inspector, "Called at"), "lenet.c:25");
  TdGraphView *view = td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
  TdSceneRect box;
  assert_true (td_scene_find_key (td_graph_view_get_scene (view), key, &box));
}

/* A layer that is open shows what is in it: conv2 is two layers down. */
static void
graph__opens_down_to_a_depth (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=59&e=3");
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  guint64 key = td_iteration_get_tape (iteration)->events[3].key;
  td_iteration_unref (iteration);
  TdGraphView *view = td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
  TdSceneRect box;
  ui_test_do ("expand-to", "0");
  assert_false (td_scene_find_key (td_graph_view_get_scene (view), key, &box));
  ui_test_do ("expand-to", "9");
  assert_true (td_scene_find_key (td_graph_view_get_scene (view), key, &box));
  ui_test_do ("expand-to", "much"); /* said, and nothing changes */
  assert_true (td_scene_find_key (td_graph_view_get_scene (view), key, &box));
}

/* Of a tape on which two events of iteration 1 were found to have failed, one at its end, one
 * two iterations later. */
static void
inspector__says_which_index_was_wrong_and_when_it_was_found (void **state)
{
  static const struct
  {
    const char *moment, *said;
  } rows[] = {
    { "i=1&e=0", "failed: index 12 outside 0..9 at element 7 of t, found at the end of the "
                 "iteration; backward had run" },
    { "i=1&e=1", NULL },
    { "i=1&e=2", "failed: index 12 outside 0..9 at element 7 of t, found in iteration 3; "
                 "backward had run" },
    { "i=3&e=0", NULL },
  };
  ui_test_open (td_test_source ("tests/golden/tape-1.2-faults.tdtape"));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      ui_test_do ("go-to", rows[i].moment);
      ui_test_do ("show-page", "op");
      ui_test_settle ();
      TdInspector *inspector = td_workspace_get_inspector (ui_test_workspace ());
      assert_string_equal (td_inspector_find_fact (inspector, "Operation"), "relu");
      const char *said = td_inspector_find_fact (inspector, "Result");
      if (rows[i].said)
        assert_string_equal (said, rows[i].said);
      else
        assert_null (said);
      if (i == 2)
        ui_test_save_picture ("late-error.png");
    }
}

static void
inspector__shows_recorded_values (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=59&e=28"); /* conv2's gradient of W: values are kept */
  TdInspector *inspector = td_workspace_get_inspector (ui_test_workspace ());
  const TdTensor *tensor = td_inspector_get_tensor (inspector);
  assert_non_null (tensor);
  assert_int_equal (tensor->n_total, 16 * 6 * 5 * 5);
  assert_non_null (tensor->values);
  assert_true (tensor->values[0] > -0.04 && tensor->values[0] < 0.04);
  assert_string_equal (td_inspector_get_title (inspector), "conv2/W.grad");
}

static void
source__follows_the_playhead (void **state)
{
  ui_test_open_sample (NULL);
  TdSourcePage *source = td_workspace_get_source (ui_test_workspace ());
  ui_test_do ("go-to", "i=59&e=0");
  assert_int_equal (td_source_page_get_line (source), 21);
  assert_string_equal (td_source_page_get_file (source), "lenet.c");
  ui_test_do ("run-to-loss", NULL);
  assert_int_equal (td_source_page_get_line (source), 41);
}

static void
graph__expand_then_collapse_gives_the_same_picture (void **state)
{
  ui_test_open_sample (NULL);
  TdGraphView *view = td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (iteration), &n);
  guint64 key = 0;
  for (guint i = 0; i < n; i++)
    if (strcmp (groups[i].name, "block1") == 0)
      key = groups[i].key;
  td_iteration_unref (iteration);
  assert_true (key != 0);
  td_graph_view_set_expanded (view, key, FALSE);
  guint folded = td_graph_view_get_n_nodes (view);
  g_autofree char *before = td_layout_to_text (td_graph_view_get_layout (view));
  td_graph_view_set_expanded (view, key, TRUE);
  assert_true (td_graph_view_get_n_nodes (view) > folded);
  td_graph_view_set_expanded (view, key, FALSE);
  assert_int_equal (td_graph_view_get_n_nodes (view), folded);
  g_autofree char *after = td_layout_to_text (td_graph_view_get_layout (view));
  assert_string_equal (before, after);
}

/* ---- ends ---- */

static void
end__killed_is_said_and_the_window_stays_usable (void **state)
{
  ui_test_open_sample (&(SampleOptions){ .n_iterations = SAMPLE_ITERATIONS,
                                         .end = SAMPLE_KILLED,
                                         .live_events = 31,
                                         .nan_at = -1 });
  g_autofree char *ended = ui_test_state ("state");
  assert_string_equal (ended, "crashed");
  assert_contains (ui_test_info_text (), "signal 9");
  ui_test_do ("first-event", NULL);
  ui_test_do ("step-op", NULL);
  assert_moment (SAMPLE_ITERATIONS, 1);
}

static void
end__exit_status_is_said (void **state)
{
  ui_test_open_sample (&(SampleOptions){
      .n_iterations = SAMPLE_ITERATIONS, .end = SAMPLE_EXIT_3, .nan_at = -1 });
  assert_contains (ui_test_info_text (), "3");
}

static void
open__bad_files_are_one_clear_page (void **state)
{
  static const struct
  {
    const char *name, *bytes, *title;
  } files[] = { { "garbage.tdtape", "this is no tape at all, only words", "Not a Recording" },
                { "empty.tdtape", "", "" },
                { "missing.tdtape", NULL, "No Such File" } };

  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      const char *path = td_test_tmp (files[i].name);
      if (files[i].bytes)
        td_test_write_file (path, files[i].bytes, strlen (files[i].bytes));
      ui_test_open (path);
      assert_string_equal (ui_test_page (), "message");
      if (*files[i].title)
        assert_string_equal (ui_test_message_title (), files[i].title);
      assert_true (strlen (ui_test_message_title ()) > 0);
    }
}

/* ---- pictures ---- */

static void
window__paints_something_on_every_page (void **state)
{
  static const char *const pages[]
      = { "debug",  "outline", "iterations", "gradients", "schedule", "source", "log",
          "curves", "value",   "gradient",   "op",        "life",     "links",  "memory" };

  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=59&e=28");
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      ui_test_do ("show-page", pages[i]);
      if (!ui_test_has_many_colours (8))
        fail_msg ("page %s is blank", pages[i]);
    }
}

static void
window__is_whole_at_1024x600 (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_resize (1024, 600);
  GtkWidget *content = gtk_widget_get_first_child (GTK_WIDGET (ui_test_workspace ()));
  int minimum;
  gtk_widget_measure (content, GTK_ORIENTATION_HORIZONTAL, -1, &minimum, NULL, NULL, NULL);
  assert_true (minimum <= 1024);
  gtk_widget_measure (content, GTK_ORIENTATION_VERTICAL, 1024, &minimum, NULL, NULL, NULL);
  assert_true (minimum <= 600 - 47); /* less the header bar */
  assert_int_equal (gtk_widget_get_width (content), 1024);
  ui_test_save_picture ("narrow.png");
}

/* The playhead in the middle of backward, as in the design's picture. */
static void
window__draws_itself_in_both_themes (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_resize (1440, 900);
  ui_test_do ("go-to", "i=59&e=28");
  ui_test_set_dark (FALSE);
  ui_test_save_picture ("workspace-light.png");
  ui_test_set_dark (TRUE);
  ui_test_save_picture ("workspace-dark.png");
  assert_true (ui_test_are_bright_and_dark ("workspace-light.png", "workspace-dark.png"));
  ui_test_set_dark (FALSE);
  ui_test_do ("show-page", "memory");
  ui_test_save_picture ("memory.png");
}

static void
window__draws_a_paused_program (void **state)
{
  ui_test_open_sample (&(SampleOptions){ .n_iterations = SAMPLE_ITERATIONS,
                                         .end = SAMPLE_RUNNING,
                                         .live_events = 31,
                                         .nan_at = -1 });
  ui_test_resize (1440, 900);
  ui_test_do ("go-to", "i=60&e=29");
  g_autofree char *text = td_workspace_dup_scrubber_text (ui_test_workspace ());
  assert_string_equal (text, "iteration 60 of 60, event 29 of 30, backward");
  ui_test_do ("show-page", "source");
  ui_test_save_picture ("paused.png");
}

static void
start__offers_its_three_ways_in (void **state)
{
  assert_string_equal (ui_test_page (), "start");
  ui_test_resize (1440, 900);
  assert_true (ui_test_has_many_colours (4));
  ui_test_save_picture ("start.png");
}

static gboolean
lists_recordings (gpointer n)
{
  return td_start_page_get_n_recent (ui_test_start_page ()) >= GPOINTER_TO_UINT (n);
}

static void
start__lists_recent_recordings (void **state)
{
  const SampleOptions killed
      = { .n_iterations = 40, .end = SAMPLE_KILLED, .live_events = 31, .nan_at = -1 };
  ui_test_open_sample (&(SampleOptions){ .n_iterations = 50, .nan_at = 30 });
  const char *path = td_test_tmp ("second.tdtape");
  sample_tape_write (path, &killed);
  ui_test_new_window ();
  ui_test_open (path);
  ui_test_new_window ();
  ui_test_wait ("two recordings", lists_recordings, GUINT_TO_POINTER (2));
  ui_test_resize (1440, 900);
  ui_test_save_picture ("start-recent.png");
}

static void
window__takes_its_help_with_it (void **state)
{
  GtkApplicationWindow *window = GTK_APPLICATION_WINDOW (ui_test_window ());
  gpointer help = gtk_application_window_get_help_overlay (window), self = window;
  assert_non_null (help);
  g_object_add_weak_pointer (help, &help);
  g_object_add_weak_pointer (self, &self);
  ui_test_new_window ();
  assert_null (help);
  assert_null (self);
}

/* Anybody on the bus can activate them. */
static void
window__states_can_be_activated_and_stay (void **state)
{
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_window ()), "moment", NULL);
  g_autofree char *moment = ui_test_state ("moment");
  assert_string_equal (moment, "-1/-1/0");
}

static void
window__is_as_the_last_one_was_left (void **state)
{
  ui_test_resize (1440, 900);
  ui_test_open_sample (NULL);
  assert_true (td_workspace_is_part_shown (ui_test_workspace (), TD_PART_INSPECTOR));
  ui_test_do ("toggle-inspector", NULL);
  ui_test_do ("show-page", "source"); /* in the third place of the dock */
  ui_test_do ("show-page", "memory"); /* the perspective */
  ui_test_new_window ();
  ui_test_open_sample (NULL);
  TdWorkspace *workspace = ui_test_workspace ();
  assert_false (td_workspace_is_part_shown (workspace, TD_PART_INSPECTOR));
  assert_true (td_workspace_is_part_shown (workspace, TD_PART_OUTLINE));
  g_auto (GStrv) names = td_dock_dup_names (td_workspace_get_dock (workspace));
  assert_string_equal (names[2], "source");
  assert_string_equal (td_workspace_get_perspective (workspace), "memory");
}

/* The first label that says `text`, at any depth. */
static GtkWidget *
find_label (GtkWidget *widget, const char *text)
{
  if (GTK_IS_LABEL (widget) && g_str_equal (gtk_label_get_text (GTK_LABEL (widget)), text))
    return widget;
  GtkWidget *found = NULL, *child = gtk_widget_get_first_child (widget);
  for (; child && !found; child = gtk_widget_get_next_sibling (child))
    found = find_label (child, text);
  return found;
}

static double
linear (double c)
{
  return c <= 0.04045 ? c / 12.92 : pow ((c + 0.055) / 1.055, 2.4);
}

/* WCAG 2.1: relative luminance. */
static double
luminance (double r, double g, double b)
{
  return 0.2126 * linear (r) + 0.7152 * linear (g) + 0.0722 * linear (b);
}

static void
outline__column_titles_have_contrast (void **state)
{
  ui_test_open_sample (NULL);
  GtkWidget *label = find_label (GTK_WIDGET (td_workspace_get_outline (ui_test_workspace ())),
                                 "Layer or operation");
  GdkRGBA c;
  double ground = 250 / 255.0; /* window_bg_color of libadwaita's light style */
  assert_non_null (label);
  gtk_style_context_get_color (gtk_widget_get_style_context (label), &c);
  double l = luminance (c.red * c.alpha + ground * (1 - c.alpha),
                        c.green * c.alpha + ground * (1 - c.alpha),
                        c.blue * c.alpha + ground * (1 - c.alpha));
  double contrast = (luminance (ground, ground, ground) + 0.05) / (l + 0.05);
  if (contrast < 4.5)
    fail_msg ("contrast %.2f", contrast);
}

/* Of a program recorded at level values only some iterations have them. */
static void
status__says_values_only_where_there_are_some (void **state)
{
  guint n_with = 0, n_without = 0;
  ui_test_open_sample (&(SampleOptions){ .n_iterations = SAMPLE_ITERATIONS,
                                         .end = SAMPLE_KILLED,
                                         .live_events = 20,
                                         .nan_at = -1 });
  TdSession *session = ui_test_session ();
  static const gint looked_at[] = { 59, 0, 58, 39, 40, 60, 41, 1 };
  for (guint k = 0; k < G_N_ELEMENTS (looked_at); k++)
    {
      gint i = looked_at[k];
      td_session_set_moment (session, i, 3);
      ui_test_settle ();
      assert_moment (i, 3);
      g_autoptr (TdIteration) iteration = td_session_get_current (session);
      const TdTapeIteration *tape = td_iteration_get_tape (iteration);
      const char *status = gtk_label_get_text (GTK_LABEL (ui_test_named ("deck-status")));
      g_autofree char *level = g_strndup (status, strcspn (status, " "));
      assert_int_equal (tape->number, i);
      assert_string_equal (level, tape->n_tensors > 0 ? "values"
                                  : tape->n_stats > 0 ? "stats"
                                                      : "graph");
      n_with += tape->n_tensors > 0;
      n_without += tape->n_tensors == 0;
    }
  assert_true (n_with > 2 && n_without > 2);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (status__says_values_only_where_there_are_some),
    ui_test (window__has_every_action_of_the_design),
    ui_test (window__disables_what_has_nothing_to_act_on),
    ui_test (window__states_are_read_only),
    ui_test (copy__is_a_whole_recording_with_a_name_of_its_own),
    ui_test (go_to__takes_a_number_a_link_or_words),
    ui_test (keys__every_row_names_an_action_that_exists),
    ui_test (keys__no_key_means_two_things),
    ui_test (start__offers_its_three_ways_in),
    ui_test (start__lists_recent_recordings),
    ui_test (outline__lists_layers_and_operations_of_the_iteration),
    ui_test (outline__lists_what_waits_in_backward),
    ui_test (iterations__lists_all_of_them),
    ui_test (step__moves_the_playhead_both_ways),
    ui_test (step__over_passes_a_whole_layer),
    ui_test (step__passes_the_edge_of_an_iteration_and_returns),
    ui_test (step__into_backward_shows_the_first_gradient),
    ui_test (iteration__next_and_previous_keep_the_operation),
    ui_test (run_to__goes_to_loss_backward_and_update),
    ui_test (history__goes_back_and_forward),
    ui_test (anomaly__next_goes_to_the_first_nan),
    ui_test (selection__is_the_same_in_every_panel),
    ui_test (graph__opens_down_to_a_depth),
    ui_test (inspector__says_which_index_was_wrong_and_when_it_was_found),
    ui_test (inspector__shows_recorded_values),
    ui_test (source__follows_the_playhead),
    ui_test (graph__expand_then_collapse_gives_the_same_picture),
    ui_test (end__killed_is_said_and_the_window_stays_usable),
    ui_test (end__exit_status_is_said),
    ui_test (open__bad_files_are_one_clear_page),
    ui_test (window__paints_something_on_every_page),
    ui_test (window__is_whole_at_1024x600),
    ui_test (window__draws_itself_in_both_themes),
    ui_test (window__draws_a_paused_program),
    ui_test (window__takes_its_help_with_it),
    ui_test (window__states_can_be_activated_and_stay),
    ui_test (window__is_as_the_last_one_was_left),
    ui_test (outline__column_titles_have_contrast),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
