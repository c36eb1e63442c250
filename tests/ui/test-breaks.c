/* The page of breakpoints with a program that runs: what it lists, and what is done on it with
 * the keyboard and the pointer. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "window/td-window-private.h"

static TdBreaksPage *
page (void)
{
  return td_workspace_get_breaks (ui_test_workspace ());
}

static gboolean
is_state (gpointer wanted)
{
  g_autofree char *state = ui_test_state ("state");
  return ui_test_session () && g_str_equal (state, wanted);
}

static gboolean
can_pause (gpointer unused)
{
  return g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), "pause");
}

static void
pause_model (void)
{
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source ("tests/ui/models/train.c"));
  const char *args[] = { td_test_tmp ("pid"), NULL };
  td_test_program ("app/tapedeck");
  td_window_run (ui_test_window (), file, args);
  ui_test_wait ("a program that can be paused", can_pause, NULL);
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

typedef struct
{
  guint row;
  const char *text; /* NULL: there is no such row */
} Wanted;

static gboolean
has_row (gpointer data)
{
  const Wanted *wanted = data;
  g_autofree char *row = td_breaks_page_dup_row (page (), wanted->row);
  return wanted->text ? row && g_str_equal (row, wanted->text) : !row;
}

static void
wait_row (guint row, const char *text)
{
  Wanted wanted = { row, text };
  ui_test_wait (text ? text : "no such row", has_row, &wanted);
}

/* A descendant of this type, the n-th. */
static GtkWidget *
find (GtkWidget *widget, GType type, guint *n)
{
  if (g_type_is_a (G_OBJECT_TYPE (widget), type) && (*n)-- == 0)
    return widget;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    {
      GtkWidget *found = find (child, type, n);
      if (found)
        return found;
    }
  return NULL;
}

static GtkWidget *
part (GType type, guint n)
{
  GtkWidget *found = find (GTK_WIDGET (page ()), type, &n);
  assert_non_null (found);
  return found;
}

/* The button that takes row n away, behind those that entries have themselves. */
static GtkWidget *
remove_button (guint n)
{
  guint left = n;
  for (guint i = 0;; i++)
    {
      GtkWidget *button = part (GTK_TYPE_BUTTON, i);
      if (g_strcmp0 (gtk_widget_get_tooltip_text (button), "Remove the breakpoint") == 0
          && left-- == 0)
        return button;
    }
}

static void
enter (guint entry, const char *text)
{
  GtkWidget *widget = part (GTK_TYPE_ENTRY, entry);
  gtk_widget_grab_focus (widget);
  gtk_editable_set_text (GTK_EDITABLE (widget), text);
  g_signal_emit_by_name (widget, "activate");
}

static void
breaks__are_set_counted_changed_switched_and_removed (void **state)
{
  pause_model ();
  ui_test_do ("break-when", NULL);
  ui_test_settle ();
  wait_row (0, "on, error, stopped 0 times"); /* of the preferences */
  enter (0, "op == ");
  ui_test_settle ();
  enter (0, "op == relu");
  wait_row (1, "on, op == relu, stopped 0 times");
  assert_string_equal (gtk_editable_get_text (GTK_EDITABLE (part (GTK_TYPE_ENTRY, 0))), "");
  ui_test_do ("play", NULL);
  wait_row (1, "on, op == relu, stopped once");
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
  ui_test_do ("play", NULL);
  wait_row (1, "on, op == relu, stopped 2 times");
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
  ui_test_save_picture ("breakpoints.png");
  enter (2, "op == relu && iteration == ");
  enter (2, "op == relu && phase == forward");
  wait_row (1, "on, op == relu && phase == forward, stopped 0 times");
  gtk_switch_set_active (GTK_SWITCH (part (GTK_TYPE_SWITCH, 1)), FALSE);
  wait_row (1, "off, op == relu && phase == forward, stopped 0 times");
  g_signal_emit_by_name (remove_button (1), "clicked");
  wait_row (1, NULL);
  wait_row (0, "on, error, stopped 0 times");
  td_runner_stop (ui_test_window ()->runner);
  wait_row (0, NULL);
}

/* Each is typed, stops the program that goes on, says why, and is taken away again. */
static void
breaks__stop_at_lines_iterations_numbers_and_bytes (void **state)
{
  pause_model ();
  ui_test_do ("break-when", NULL);
  ui_test_settle ();
  wait_row (0, "on, error, stopped 0 times");
  g_autofree char *later = g_strdup_printf (
      "iteration >= %d", (int)td_session_get_head (ui_test_session ()).iteration + 1000);
  g_autofree char *source
      = td_test_read_file (td_test_source ("tests/ui/models/train.c"), NULL);
  guint line = 1;
  for (const char *c = source; c < strstr (source, "td_relu ("); c++)
    line += *c == '\n';
  g_autofree char *place = g_strdup_printf ("line == train.c:%u", line);
  const char *const conditions[]
      = { place, later, "norm > 0.5", "norm(grad) > 0.1", "bytes > 1", "phase == backward" };
  for (guint i = 0; i < G_N_ELEMENTS (conditions); i++)
    {
      g_autofree char *set = g_strdup_printf ("on, %s, stopped 0 times", conditions[i]);
      g_autofree char *hit = g_strdup_printf ("on, %s, stopped once", conditions[i]);
      enter (0, conditions[i]);
      wait_row (1, set);
      ui_test_do ("play", NULL);
      wait_row (1, hit);
      ui_test_wait ("a paused program", is_state, (gpointer) "paused");
      g_signal_emit_by_name (remove_button (1), "clicked");
      wait_row (1, NULL);
    }
}

/* A program that does what conditions of the graph and of memory ask for, again and again. */
static void
pause_events (void)
{
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source ("tests/models/events.c"));
  const char *args[] = { "all", "1000000000", NULL };
  td_test_program ("app/tapedeck");
  td_window_run (ui_test_window (), file, args);
  ui_test_wait ("a program that can be paused", can_pause, NULL);
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

static gboolean
says (gpointer words)
{
  return gtk_info_bar_get_revealed (GTK_INFO_BAR (ui_test_window ()->info_bar))
         && strstr (gtk_label_get_text (ui_test_window ()->info_label), words);
}

/* Each is typed, stops the program at its place and says there what happened. */
static void
breaks__stop_where_the_graph_changes_holds_fails_or_is_cut (void **state)
{
  static const struct
  {
    const char *condition, *words;
  } rows[] = {
    { "graph changed", "is not that of iteration" },
    { "held after iteration", "are still there, most of them made by " },
    { "guard failed", "square cannot be replayed, and runs its code: argument" },
    { "edge cut && op == linear", "no gradient passes" },
    { "growth > 10", "more are alive after iteration" },
    { "alloc > 3M", "exp allocated 4.00 MB" },
    { "pool > 1K", "(breakpoint" },
  };
  pause_events ();
  ui_test_do ("break-when", NULL);
  ui_test_settle ();
  wait_row (0, "on, error, stopped 0 times");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree char *set = g_strdup_printf ("on, %s, stopped 0 times", rows[i].condition);
      g_autofree char *hit = g_strdup_printf ("on, %s, stopped once", rows[i].condition);
      enter (0, rows[i].condition);
      wait_row (1, set);
      ui_test_do ("play", NULL);
      wait_row (1, hit);
      ui_test_wait ("a paused program", is_state, (gpointer) "paused");
      ui_test_wait (rows[i].words, says, (gpointer)rows[i].words);
      if (i == 0 || i == 2)
        {
          g_autofree char *name = g_strdup_printf ("breakpoint-%u.png", i);
          ui_test_settle ();
          ui_test_save_picture (name);
        }
      g_signal_emit_by_name (remove_button (1), "clicked");
      wait_row (1, NULL);
    }
  td_runner_stop (ui_test_window ()->runner);
}

/* What is typed behind && is completed as what stands alone is. */
static void
breaks__completes_the_last_term (void **state)
{
  pause_model ();
  ui_test_do ("break-when", NULL);
  ui_test_settle ();
  GtkEntry *entry = GTK_ENTRY (part (GTK_TYPE_ENTRY, 0));
  GtkEntryCompletion *completion = gtk_entry_get_completion (entry);
  gtk_widget_grab_focus (GTK_WIDGET (entry));
  gtk_editable_set_text (GTK_EDITABLE (entry), "op == relu && gr");
  GtkTreeModel *model = gtk_entry_completion_get_model (completion);
  GtkTreeIter row;
  g_autofree char *phrase = NULL;
  gboolean more = gtk_tree_model_get_iter_first (model, &row);
  for (; more; more = gtk_tree_model_iter_next (model, &row))
    {
      g_free (phrase);
      gtk_tree_model_get (model, &row, 0, &phrase, -1);
      if (g_str_equal (phrase, "graph changed"))
        break;
    }
  gboolean taken = FALSE;
  g_signal_emit_by_name (completion, "match-selected", model, &row, &taken);
  assert_true (taken);
  assert_string_equal (gtk_editable_get_text (GTK_EDITABLE (entry)),
                       "op == relu && graph changed");
  td_runner_stop (ui_test_window ()->runner);
}

/* Whether it thinks that what is typed goes to it. */
static gboolean
has_keyboard (GtkWidget *entry)
{
  GtkWidget *text = GTK_WIDGET (gtk_editable_get_delegate (GTK_EDITABLE (entry)));
  g_autoptr (GListModel) controllers = gtk_widget_observe_controllers (text);
  gboolean has = FALSE;
  for (guint i = 0; i < g_list_model_get_n_items (controllers); i++)
    {
      g_autoptr (GtkEventController) one = g_list_model_get_item (controllers, i);
      has |= GTK_IS_EVENT_CONTROLLER_FOCUS (one)
             && gtk_event_controller_focus_is_focus (GTK_EVENT_CONTROLLER_FOCUS (one));
    }
  return has;
}

static void
breaks__of_a_program_that_ends_give_the_keyboard_back (void **state)
{
  pause_model ();
  ui_test_do ("break-when", NULL);
  ui_test_settle ();
  gtk_widget_grab_focus (part (GTK_TYPE_ENTRY, 0));
  assert_true (has_keyboard (part (GTK_TYPE_ENTRY, 0)));
  td_runner_stop (ui_test_window ()->runner);
  wait_row (0, NULL);
  assert_false (gtk_widget_is_sensitive (part (GTK_TYPE_ENTRY, 0)));
  assert_false (has_keyboard (part (GTK_TYPE_ENTRY, 0)));
}

static void
breaks__of_a_recording_are_none (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("show-page", "breakpoints");
  ui_test_settle ();
  wait_row (0, NULL);
  assert_false (
      g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), "break-when"));
  assert_false (gtk_widget_is_sensitive (part (GTK_TYPE_ENTRY, 0)));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (breaks__are_set_counted_changed_switched_and_removed),
    ui_test (breaks__stop_at_lines_iterations_numbers_and_bytes),
    ui_test (breaks__stop_where_the_graph_changes_holds_fails_or_is_cut),
    ui_test (breaks__completes_the_last_term),
    ui_test (breaks__of_a_program_that_ends_give_the_keyboard_back),
    ui_test (breaks__of_a_recording_are_none),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
