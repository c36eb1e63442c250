/* Inside a fused group: a recording names its members and says that their values are not there;
 * a program that stands at the group computes them. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <math.h>
#include <string.h>

#include "window/td-window-private.h"

#define FUSED "mul+tanh+log+exp"
#define N 4

static char *tape; /* recorded once for all tests */

static void
open_tape (void)
{
  if (!tape)
    {
      g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
      g_mkdir_with_parents (folder, 0755);
      tape = g_build_filename (folder, "fused.tdtape", NULL);
      TdTestChild child
          = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "-o", tape,
                         td_test_source ("tests/models/fused.c"), "6", "100");
      assert_child_status (child, 0);
      td_test_child_clear (&child);
    }
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_do ("go-to", "i=4&e=0");
  ui_test_settle ();
}

static TdInspector *
inspector (void)
{
  return td_workspace_get_inspector (ui_test_workspace ());
}

static TdInsidePage *
page (void)
{
  return td_inspector_get_inside (inspector ());
}

static const TdInside *
inside (void)
{
  return td_inside_page_get_inside (page ());
}

static char *
dump (const char *name)
{
  GtkWidget *view = ui_test_find_named (GTK_WIDGET (page ()), name);
  assert_non_null (view);
  TdScene *scene = td_scene_view_get_scene (TD_SCENE_VIEW (view));
  assert_non_null (scene);
  return td_scene_dump (scene);
}

static gboolean
move (int delta)
{
  gboolean taken = FALSE;
  g_signal_emit_by_name (ui_test_find_named (GTK_WIDGET (page ()), "inside"), "moved", delta,
                         &taken);
  ui_test_settle ();
  return taken;
}

static const char *
facts (void)
{
  return gtk_label_get_text (
      GTK_LABEL (ui_test_find_named (GTK_WIDGET (page ()), "inside-facts")));
}

/* Select the group's event in the iteration on show. */
static void
select_group (void)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  for (guint e = 0; e < td_iteration_get_n_events (it); e++)
    if (g_str_has_prefix (td_iteration_get_op_name (it, e), FUSED))
      {
        td_session_select (ui_test_session (), td_iteration_get_tape (it)->events[e].key);
        ui_test_do ("show-page", "inside");
        ui_test_settle ();
        return;
      }
  fail_msg ("the iteration has no group " FUSED);
}

/* ---- a recording ---- */

static void
inside__members_of_a_recorded_group_are_named (void **state)
{
  open_tape ();
  select_group ();
  assert_non_null (inside ());
  assert_true (inside ()->n >= N);
  g_autofree char *list = dump ("inside");
  assert_contains (list, "\"#2\"");
  assert_contains (list, "\"tanh (#1)\"");
  assert_contains (list, "\"log (#2)\"");
  assert_contains (list, "\"(8) float32\"");
  assert_contains (list, "\"fused.c:");
  assert_true (move (1));
  assert_contains (facts (), "#2  tanh (#1):  tanh (x)\n");
  assert_contains (facts (), "fused.c:");
}

/* What stays inside is on no tape: nothing is shown in its place. */
static void
inside__values_of_a_recording_are_said_to_be_missing (void **state)
{
  open_tape ();
  select_group ();
  assert_true (move (1));
  assert_contains (td_inside_page_get_says (page ()), "is not recorded: run the program");
  assert_null (td_inside_page_get_tensor (page ()));
  g_autofree char *value = dump ("inside-value");
  assert_contains (value, "Not Recorded");
  assert_false (inside ()->members[1].known);
  assert_false (
      gtk_widget_get_mapped (ui_test_find_button (GTK_WIDGET (page ()), "Run to It")));
}

/* Another operation has no inside; with the next group the page is there again. */
static void
inside__page_is_there_for_groups_only (void **state)
{
  open_tape ();
  select_group ();
  assert_true (gtk_widget_get_mapped (GTK_WIDGET (page ())));
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  guint other = 0;
  while (strchr (td_iteration_get_op_name (it, other), '+'))
    other++;
  td_session_select (ui_test_session (), td_iteration_get_tape (it)->events[other].key);
  ui_test_settle ();
  assert_null (inside ());
  assert_false (gtk_widget_get_mapped (GTK_WIDGET (page ())));
  assert_false (td_inspector_show_page (inspector (), "inside"));
  select_group ();
  assert_true (gtk_widget_get_mapped (GTK_WIDGET (page ())));
}

static gboolean
is_row_marked (TdSceneView *view, guint step)
{
  g_autofree char *mark = g_strdup_printf ("[row %u]", step);
  g_autofree char *text = td_scene_dump (td_scene_view_get_scene (view));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (strstr (*line, mark) && strstr (*line, "stroke=accent"))
      return TRUE;
  return FALSE;
}

/* A member's row in the schedule is that member in the inspector, and the other way round. */
static void
inside__row_of_the_schedule_is_the_same_member (void **state)
{
  open_tape ();
  ui_test_do ("show-page", "schedule");
  TdSceneView *view = ui_test_panel_scene_view ("schedule", "static");
  select_group ();
  const guint step = inside ()->members[1].step;
  TdScene *scene = td_scene_view_get_scene (view);
  TdSceneHit hit;
  gboolean found = FALSE;
  ui_test_do ("show-page", "value");
  for (double y = 2; y < td_scene_height (scene) && !found; y += 2)
    if (td_scene_hit (scene, 120, y, 0, &hit) && hit.tag == TD_TAG_ROW && hit.data == step)
      {
        g_signal_emit_by_name (view, "pressed", &hit, 120.0, y);
        found = TRUE;
      }
  assert_true (found);
  ui_test_settle ();
  assert_true (gtk_widget_get_mapped (GTK_WIDGET (page ())));
  assert_int_equal (td_inside_page_get_chosen (page ()), 1);
  assert_true (move (-1));
  assert_int_equal (td_session_get_step (ui_test_session ()), step - 1);
  assert_true (is_row_marked (view, step - 1));
  assert_false (is_row_marked (view, step));
}

static int n_asked;

static void
note_question (TdInsidePage *self, int k, guint token, gpointer data)
{
  n_asked++;
}

/* What comes to a question of before is about something else. */
static void
inside__late_answers_are_not_taken (void **state)
{
  open_tape ();
  g_signal_connect (page (), "look", G_CALLBACK (note_question), NULL);
  select_group ();
  n_asked = 0;
  const char *const ops[] = { "mul", "tanh" };
  td_inside_page_take_group (page (), td_inside_page_get_token (page ()) - 1, ops, 2,
                             inside ()->n, TRUE);
  td_inside_page_take_error (page (), td_inside_page_get_token (page ()) - 1, "too late");
  assert_contains (td_inside_page_get_says (page ()), "is not recorded");
  assert_int_equal (n_asked, 0); /* there is no program to ask */
}

static void
inside__page_is_drawn_in_both_themes (void **state)
{
  open_tape ();
  ui_test_do ("show-page", "schedule");
  ui_test_panel_page ("schedule", "static");
  select_group ();
  assert_true (move (1));
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("inside-dark.png");
  assert_true (ui_test_has_many_colours (8));
  ui_test_set_dark (FALSE);
}

/* ---- a program ---- */

static gboolean
is_state (gpointer wanted)
{
  g_autofree char *state = ui_test_state ("state");
  return ui_test_session () && g_str_equal (state, wanted);
}

static gboolean
can_pause (gpointer n)
{
  TdSession *session = ui_test_session ();
  return session && td_session_get_n_iterations (session) >= GPOINTER_TO_UINT (n)
         && g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), "pause");
}

static gboolean
stands_elsewhere (gpointer data)
{
  const TdMoment *before = data;
  TdMoment head = td_session_get_head (ui_test_session ());
  return is_state ((gpointer) "paused")
         && (head.iteration != before->iteration || head.event != before->event);
}

static void
go (const char *action)
{
  TdMoment before = td_session_get_head (ui_test_session ());
  ui_test_do (action, NULL);
  ui_test_wait (action, stands_elsewhere, &before);
}

/* From iteration `bad` on log gets negative numbers. */
static void
pause_program (const char *bad)
{
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source ("tests/models/fused.c"));
  const char *args[] = { "1000000", bad, "1000", NULL };
  g_auto (GStrv) environment = g_get_environ ();
  td_test_program ("app/tapedeck");
  td_window_set_launch (ui_test_window (), (const char *const *)environment, td_test_tmp (""));
  ui_test_resize (1440, 900);
  td_window_run (ui_test_window (), file, args);
  ui_test_wait ("a program that can be paused", can_pause, GUINT_TO_POINTER (8));
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

static gboolean
knows_all (gpointer unused)
{
  for (guint k = 0; inside () && k < inside ()->n; k++)
    if (!inside ()->members[k].known)
      return FALSE;
  return inside () != NULL;
}

static gboolean
has_value (gpointer k)
{
  return td_inside_page_get_chosen (page ()) == GPOINTER_TO_UINT (k)
         && td_inside_page_get_tensor (page ()) != NULL;
}

static gboolean
does_not_stand (gpointer unused)
{
  return strstr (td_inside_page_get_says (page ()), "does not stand at a fused group") != NULL;
}

static double
first_value (guint k)
{
  assert_true (move ((int)k - (int)td_inside_page_get_chosen (page ())));
  ui_test_wait ("the value of a member", has_value, GUINT_TO_POINTER (k));
  const TdTensor *tensor = td_inside_page_get_tensor (page ());
  assert_int_equal (tensor->n_values, 8);
  return tensor->values[0];
}

/* Before the group: of mul, tanh, log, exp of 1 and 0.5 each. */
static void
inside__program_before_a_group_shows_each_member (void **state)
{
  const double want[N] = { 0.5, tanh (0.5), log (tanh (0.5)), tanh (0.5) };
  pause_program ("1000000");
  go ("next-iteration");
  ui_test_do ("show-page", "inside");
  ui_test_wait ("numbers of all members", knows_all, NULL);
  assert_contains (td_inside_page_get_says (page ()), "The program stands at it");
  for (guint k = 0; k < N; k++)
    assert_true (fabs (first_value (k) - want[k]) < 1e-6);
  g_autofree char *list = dump ("inside");
  assert_contains (list, "\"0.462 … 0.462\"");
  ui_test_save_picture ("inside-live.png");
  go ("step-op"); /* over it: what it read may be gone */
  ui_test_wait ("an answer", does_not_stand, NULL);
  assert_non_null (td_inside_page_get_tensor (page ())); /* of exp: it leaves the group */
  assert_true (move (-1));
  assert_null (td_inside_page_get_tensor (page ())); /* of log: it does not */
}

/* Somewhere else nothing is computed, and the way there is one button. */
static void
inside__button_runs_to_the_selected_group (void **state)
{
  pause_program ("1000000");
  go ("run-to-backward");
  g_autofree char *whole = g_strdup_printf ("i=%" G_GINT64_FORMAT "&e=0",
                                            td_session_get_last_complete (ui_test_session ()));
  ui_test_do ("go-to", whole);
  ui_test_settle ();
  select_group ();
  assert_contains (td_inside_page_get_says (page ()), "does not stand at this group");
  assert_null (td_inside_page_get_tensor (page ()));
  GtkWidget *button = ui_test_find_button (GTK_WIDGET (page ()), "Run to It");
  assert_true (gtk_widget_get_mapped (button));
  TdMoment before = td_session_get_head (ui_test_session ());
  g_signal_emit_by_name (button, "clicked");
  ui_test_wait ("the group", stands_elsewhere, &before);
  ui_test_wait ("numbers of all members", knows_all, NULL);
  assert_contains (td_inside_page_get_says (page ()), "The program stands at it");
  assert_false (gtk_widget_get_mapped (button));
}

/* Behind the group, where a NaN stopped the program: which member made it. A refusal is shown
 * as the program words it: it says what to do. */
static void
inside__shows_which_member_made_nan (void **state)
{
  pause_program ("5000"); /* five seconds away, that it is not over before the breakpoint */
  td__window_break (ui_test_window (), "nan");
  go ("play");
  ui_test_do ("show-page", "inside");
  ui_test_wait ("numbers of all members", knows_all, NULL);
  assert_int_equal (inside ()->event, td_session_get_head (ui_test_session ()).event);
  assert_int_equal (inside ()->members[1].n_nan, 0);
  assert_int_equal (inside ()->members[2].n_nan, 8);
  assert_string_equal (inside ()->members[2].op, "log");
  g_autofree char *list = dump ("inside");
  assert_contains (list, "\"8 NaN\"");
  assert_true (fabs (first_value (1) + tanh (0.5)) < 1e-6); /* what log was given */
  ui_test_save_picture ("inside-nan.png");
  td_inside_page_take_error (
      page (), td_inside_page_get_token (page ()),
      "the group has overwritten what it read: stop before it to look inside");
  assert_string_equal (
      td_inside_page_get_says (page ()),
      "The group has overwritten what it read: stop before it to look inside.");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (inside__members_of_a_recorded_group_are_named),
    ui_test (inside__values_of_a_recording_are_said_to_be_missing),
    ui_test (inside__page_is_there_for_groups_only),
    ui_test (inside__row_of_the_schedule_is_the_same_member),
    ui_test (inside__late_answers_are_not_taken),
    ui_test (inside__page_is_drawn_in_both_themes),
    ui_test (inside__program_before_a_group_shows_each_member),
    ui_test (inside__button_runs_to_the_selected_group),
    ui_test (inside__shows_which_member_made_nan),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
