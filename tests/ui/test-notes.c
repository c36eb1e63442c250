/* Notes, watches and the filter: written by an action, kept beside the recording, one click
 * from their moment. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "widgets/td-scene-view.h"
#include "window/td-window-private.h"

static char *
row (gboolean watches, guint i)
{
  return td_notes_page_dup_row (td_workspace_get_notes (ui_test_workspace (), watches), i);
}

static void
note__is_kept_beside_the_recording (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=12&e=7");
  assert_true (td__window_write_note (ui_test_window (), "gradients shrink from here"));
  ui_test_do ("show-page", "notes");
  g_autofree char *text = row (FALSE, 0);
  assert_string_equal (text, "gradients shrink from here, Iteration 12, event 7");
  /* in another window too */
  ui_test_new_window ();
  ui_test_open (td_test_tmp ("sample.tdtape"));
  ui_test_do ("show-page", "notes");
  ui_test_settle ();
  g_autofree char *again = row (FALSE, 0);
  assert_string_equal (again, text);
  ui_test_save_picture ("notes.png");
}

static void
note__leads_back_to_its_moment (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=12&e=7");
  assert_true (td__window_write_note (ui_test_window (), "here"));
  ui_test_do ("go-to", "i=40&e=1");
  ui_test_do ("show-page", "notes");
  GtkWidget *view = GTK_WIDGET (td_workspace_get_notes (ui_test_workspace (), FALSE));
  GtkWidget *list = gtk_widget_get_first_child (gtk_widget_get_first_child (view));
  while (list && !GTK_IS_LIST_BOX (list))
    list = gtk_widget_get_first_child (list);
  assert_non_null (list);
  g_signal_emit_by_name (gtk_list_box_get_row_at_index (GTK_LIST_BOX (list), 0), "activate");
  ui_test_settle ();
  assert_moment (12, 7);
  assert_true (td__window_write_note (ui_test_window (), ""));
  ui_test_settle ();
  assert_null (row (FALSE, 0));
}

static gboolean
is_iterations_strip (GtkWidget *widget)
{
  g_autofree char *dump = NULL;
  TdScene *scene;
  if (!TD_IS_SCENE_VIEW (widget) || !gtk_widget_get_mapped (widget)
      || gtk_widget_get_height (widget) > 60)
    return FALSE;
  scene = td_scene_view_get_scene (TD_SCENE_VIEW (widget));
  dump = scene ? td_scene_dump (scene) : g_strdup ("");
  return strstr (dump, "stroke=curve") != NULL;
}

static GtkWidget *
find_strip (GtkWidget *widget)
{
  GtkWidget *found = is_iterations_strip (widget) ? widget : NULL;
  for (GtkWidget *c = gtk_widget_get_first_child (widget); c && !found;
       c = gtk_widget_get_next_sibling (c))
    found = find_strip (c);
  return found;
}

static void
note__is_a_flag_on_the_strip_of_iterations (void **state)
{
  TdSceneHit hit;
  gboolean there = FALSE;
  double x = 0;
  ui_test_open_sample (NULL);
  GtkWidget *strip = find_strip (GTK_WIDGET (ui_test_window ()));
  assert_non_null (strip);
  g_autofree char *before = td_scene_dump (td_scene_view_get_scene (TD_SCENE_VIEW (strip)));
  assert_null (strstr (before, "[row 0]"));
  ui_test_do ("go-to", "i=12&e=7");
  assert_true (td__window_write_note (ui_test_window (), "gradients shrink from here"));
  ui_test_do ("go-to", "i=40&e=1");
  TdScene *scene = td_scene_view_get_scene (TD_SCENE_VIEW (strip));
  for (; x < td_scene_width (scene) && !there; x += 0.5)
    there = td_scene_hit (scene, x, 5, 0, &hit) && hit.tag == TD_TAG_ROW;
  assert_true (there);
  assert_string_equal (hit.tooltip, "gradients shrink from here");
  assert_int_equal ((int)td_scene_axis_value (scene, x), 12);
  ui_test_save_picture ("flag.png");
  g_signal_emit_by_name (strip, "pressed", &hit, x, 5.0);
  ui_test_settle ();
  assert_moment (12, 7);
}

static void
watch__shows_the_numbers_at_the_playhead (void **state)
{
  GActionGroup *group = G_ACTION_GROUP (ui_test_window ());
  ui_test_open_sample (NULL);
  assert_false (g_action_group_get_action_enabled (group, "watch"));
  ui_test_do ("go-to", "i=12&e=20");
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  gint with_stats = -1;
  for (guint i = 0; i < t->n_stats && with_stats < 0; i++)
    if (t->vars[t->stats[i].var].producer >= 0)
      with_stats = t->vars[t->stats[i].var].producer;
  assert_true (with_stats >= 0);
  guint64 key = t->events[with_stats].key;
  td_session_select (ui_test_session (), key);
  td_iteration_unref (iteration);
  ui_test_do ("watch", NULL);
  g_autofree char *text = row (TRUE, 0);
  assert_non_null (strstr (text, "norm "));
  /* with a curve of the iterations before */
  ui_test_settle ();
  TdScene *curve
      = td_notes_page_get_curve (td_workspace_get_notes (ui_test_workspace (), TRUE), 0);
  assert_non_null (curve);
  g_autofree char *drawn = td_scene_dump (curve);
  assert_non_null (strstr (drawn, "stroke=curve"));
  assert_non_null (strstr (drawn, "fill=accent")); /* here */
  ui_test_save_picture ("watch.png");
  /* its numbers are those of where one is */
  ui_test_do ("go-to", "i=30&e=20");
  g_autofree char *later = row (TRUE, 0);
  assert_non_null (strstr (later, "norm "));
  assert_string_not_equal (text, later);
  ui_test_do ("watch", NULL);
  assert_null (row (TRUE, 0));
}

static void
note__of_another_recording_is_not_shown (void **state)
{
  const SampleOptions usual = { .n_iterations = 4, .nan_at = -1 };
  assert_true (g_file_set_contents (td_test_tmp ("sample.tdnotes"),
                                    "[recording]\nuuid=00\n[note 1]\niteration=1\nevent=1\n"
                                    "text=not mine\n",
                                    -1, NULL));
  ui_test_open_sample (&usual);
  assert_true (ui_test_has_info ((gpointer) "the notes are of another recording"));
  ui_test_do ("show-page", "notes");
  assert_null (row (FALSE, 0));
  assert_false (td__window_write_note (ui_test_window (), "mine"));
  g_autofree char *file = NULL;
  assert_true (g_file_get_contents (td_test_tmp ("sample.tdnotes"), &file, NULL, NULL));
  assert_non_null (strstr (file, "not mine"));
}

static void
filter__lists_what_matches_at_the_playhead (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("filter", NULL);
  TdFilterPage *filter = td_workspace_get_filter (ui_test_workspace ());
  assert_int_equal (td_filter_page_get_n (filter), SAMPLE_N_EVENTS);
  td_filter_page_set_text (filter, "phase == forward");
  assert_int_equal (td_filter_page_get_n (filter), SAMPLE_N_FORWARD);
  assert_string_equal (td_filter_page_get_message (filter), "13 of 45");
  td_filter_page_set_text (filter, "op == relu && phase == forward");
  td_filter_page_choose (filter, 0);
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  assert_int_equal (n, 1);
  gint event = td_iteration_find_event (iteration, keys[0]);
  assert_string_equal (td_iteration_get_op_name (iteration, (guint)event), "relu");
  td_iteration_unref (iteration);
  ui_test_save_picture ("filter.png");
  /* what is not understood is said, and what was found stays */
  guint found = td_filter_page_get_n (filter);
  td_filter_page_set_text (filter, "speed > 3");
  assert_string_equal (td_filter_page_get_message (filter),
                       "There is nothing to compare called speed");
  assert_int_equal (td_filter_page_get_n (filter), found);
}

static void
schedule__has_pages_for_advice_and_buffers (void **state)
{
  static const char *const names[] = { "order", "timeline", "advice", "buffers" };
  ui_test_resize (1440, 900);
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=30&e=20");
  ui_test_do ("show-page", "schedule");
  GtkWidget *stack = ui_test_find_named (GTK_WIDGET (ui_test_workspace ()), "schedule");
  assert_true (GTK_IS_STACK (stack));
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      gtk_stack_set_visible_child_name (GTK_STACK (stack), names[i]);
      ui_test_settle ();
      TdScene *scene = td_scene_view_get_scene (
          TD_SCENE_VIEW (gtk_stack_get_visible_child (GTK_STACK (stack))));
      assert_non_null (scene);
      assert_true (td_scene_n_items (scene) > 3);
      g_autofree char *picture = g_strdup_printf ("schedule-%s.png", names[i]);
      ui_test_save_picture (picture);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (note__is_kept_beside_the_recording),
    ui_test (note__leads_back_to_its_moment),
    ui_test (note__is_a_flag_on_the_strip_of_iterations),
    ui_test (watch__shows_the_numbers_at_the_playhead),
    ui_test (filter__lists_what_matches_at_the_playhead),
    ui_test (schedule__has_pages_for_advice_and_buffers),
    ui_test (note__of_another_recording_is_not_shown),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
