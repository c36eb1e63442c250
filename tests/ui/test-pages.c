/* Pages and their pictures that are asked for by name: by actions, lessons, the command line.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "settings/td-help.h"

/* Asked for before the window knows how small it is: the first size does not fold it away. */
static void
window__that_is_small_shows_what_was_asked_for_first (void **state)
{
  static const struct
  {
    const char *page;
    TdWorkspacePart part;
  } pages[] = { { "gradients", TD_PART_DOCK },
                { "iterations", TD_PART_OUTLINE },
                { "op", TD_PART_INSPECTOR } };
  const SampleOptions usual = { .n_iterations = SAMPLE_ITERATIONS, .nan_at = -1 };
  g_autofree char *path = g_strdup (td_test_tmp ("small.tdtape"));
  sample_tape_write (path, &usual);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      ui_test_new_window ();
      ui_test_resize (900, 600);
      td_window_open (ui_test_window (), file);
      g_action_group_activate_action (G_ACTION_GROUP (ui_test_window ()), "show-page",
                                      g_variant_new_string (pages[i].page));
      ui_test_settle ();
      assert_true (td_workspace_is_part_shown (ui_test_workspace (), pages[i].part));
      assert_true (
          pages[i].part != TD_PART_DOCK
          || td_dock_is_shown (td_workspace_get_dock (ui_test_workspace ()), pages[i].page));
    }
}

/* The same wherever it is asked from. */
static void
window__shows_a_picture_of_a_page (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_resize (1440, 900);
  TdWorkspace *workspace = ui_test_workspace ();
  ui_test_do ("show-page", "compare");
  assert_true (td_workspace_show_picture (workspace, "memory", "iterations"));
  ui_test_settle ();
  assert_true (td_workspace_shows_picture (workspace, "memory", "iterations"));
  assert_false (td_workspace_shows_picture (workspace, "memory", "events"));
  assert_string_equal (td_workspace_get_perspective (workspace), "debug");
  assert_false (td_workspace_show_picture (workspace, "memory", "no-such"));
  assert_false (td_workspace_show_picture (workspace, "no-such", "iterations"));
  assert_true (td_workspace_shows_picture (workspace, "memory", "iterations"));
  ui_test_do ("flame", "time");
  assert_true (td_workspace_shows_picture (workspace, "schedule", "flame"));
  ui_test_do ("explain", NULL);
  assert_true (td_workspace_shows_picture (workspace, "schedule", "explain"));
  assert_false (td_workspace_shows_picture (workspace, "schedule", "flame"));
  td_workspace_set_part_shown (workspace, TD_PART_DOCK, FALSE);
  assert_false (td_workspace_shows_picture (workspace, "schedule", "explain"));
  td_workspace_set_part_shown (workspace, TD_PART_DOCK, TRUE);
}

/* ---- help ---- */

static GtkShortcutsWindow *
help_window (void)
{
  return gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (ui_test_window ()));
}

static int
by_text (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *)a, *(char *const *)b);
}

/* The titles of the groups of the section on show, which GTK moves about. */
static void
list_groups (GtkWidget *widget, const char *section, GPtrArray *titles)
{
  g_autofree char *name = NULL;
  if (GTK_IS_SHORTCUTS_SECTION (widget))
    g_object_get (widget, "section-name", &name, NULL);
  if (name && strcmp (name, section) != 0)
    return;
  if (GTK_IS_SHORTCUTS_GROUP (widget) && gtk_widget_get_visible (widget))
    {
      char *title;
      g_object_get (widget, "title", &title, NULL);
      g_ptr_array_add (titles, title);
    }
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    list_groups (child, section, titles);
}

static char *
dup_groups (void)
{
  g_autofree char *section = NULL;
  g_autoptr (GPtrArray) titles = g_ptr_array_new_with_free_func (g_free);
  ui_test_settle ();
  g_object_get (help_window (), "section-name", &section, NULL);
  list_groups (GTK_WIDGET (help_window ()), section, titles);
  g_ptr_array_sort (titles, by_text);
  g_ptr_array_add (titles, NULL);
  return g_strjoinv ("|", (char **)titles->pdata);
}

static void
press_help (const char *expected)
{
  ui_test_do ("page-keys", NULL);
  g_autofree char *groups = dup_groups ();
  assert_string_equal (groups, expected);
  gtk_window_close (GTK_WINDOW (
      gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (ui_test_window ()))));
  ui_test_settle ();
}

static void
focus (const char *panel, const char *picture)
{
  gtk_widget_grab_focus (GTK_WIDGET (ui_test_panel_scene_view (panel, picture)));
  ui_test_settle ();
}

/* Ctrl+F1 tells of the page that has the keyboard, and lists all of them. */
static void
help__is_of_the_page_that_has_the_keyboard (void **state)
{
  press_help ("Pages|Start Page");
  ui_test_open_sample (NULL);
  ui_test_resize (1440, 900);
  gtk_widget_grab_focus (
      GTK_WIDGET (td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()))));
  press_help ("Graph|Pages");
  focus ("schedule", "order");
  press_help ("Pages|Schedule");
  focus ("schedule", "flame");
  press_help ("Flame Graph|Pages");
  focus ("gradients", "heatmap");
  press_help ("Gradients|Pages");
  gtk_widget_grab_focus (ui_test_named ("events-strip"));
  press_help ("Pages|Strip of Events");
  ui_test_do ("show-page", "memory");
  gtk_widget_grab_focus (ui_test_named ("growth"));
  press_help ("Growth|Pages");
}

/* The list of all keys is as it was, also after a page was told of. */
static void
help__of_keys_lists_them_all (void **state)
{
  static const char all[] = "Graph|Moving in Time|Stepping|Window";
  ui_test_open_sample (NULL);
  ui_test_do ("show-help-overlay", NULL);
  g_autofree char *before = dup_groups ();
  assert_string_equal (before, all);
  gtk_window_close (GTK_WINDOW (
      gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (ui_test_window ()))));
  ui_test_settle ();
  gtk_widget_grab_focus (ui_test_named ("iterations-strip"));
  press_help ("Pages|Strip of Iterations");
  ui_test_do ("show-help-overlay", NULL);
  g_autofree char *after = dup_groups ();
  assert_string_equal (after, all);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (window__that_is_small_shows_what_was_asked_for_first),
    ui_test (window__shows_a_picture_of_a_page),
    ui_test (help__is_of_the_page_that_has_the_keyboard),
    ui_test (help__of_keys_lists_them_all),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
