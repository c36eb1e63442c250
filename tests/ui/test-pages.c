/* Pages and their pictures that are asked for by name: by actions, lessons, the command line.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

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

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (window__that_is_small_shows_what_was_asked_for_first),
    ui_test (window__shows_a_picture_of_a_page),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
