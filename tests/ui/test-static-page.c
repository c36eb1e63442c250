/* The Schedule panel's page of static functions: at each moment what the tape says of them.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "widgets/td-scene-view.h"

/* What the page shows now, as text. */
static char *
dump (void)
{
  ui_test_do ("show-page", "schedule");
  TdSceneView *view = ui_test_panel_scene_view ("schedule", "static");
  assert_non_null (td_scene_view_get_scene (view));
  return td_scene_dump (td_scene_view_get_scene (view));
}

static void
schedule_panel__shows_the_static_schedule_at_the_playhead (void **state)
{
  g_autofree char *bytes = NULL, *shown = NULL, *before = NULL, *after = NULL;
  const char *path = td_test_tmp ("static.tdtape");
  gsize n;

  assert_true (
      g_file_get_contents (td_test_source ("tests/golden/tape-1.1.tdtape"), &bytes, &n, NULL));
  assert_true (g_file_set_contents (path, bytes, (gssize)n, NULL));
  ui_test_resize (1600, 900);
  ui_test_open (path);
  ui_test_do ("go-to", "i=1&e=0");
  shown = dump ();
  assert_contains (shown,
                   "scheduled, 2 calls replayed, 1 by code, unverified since iteration 1");
  assert_contains (shown, "2 steps fused");
  assert_contains (shown, "x (4, 8)"); /* a guard */
  ui_test_save_picture ("static.png");
  ui_test_do ("go-to", "i=0&e=0");
  before = dump ();
  assert_contains (before, "tracing, 0 calls replayed, 1 by code");
  assert_contains (before, "no schedule yet");
  ui_test_do ("go-to", "i=2&e=0");
  after = dump ();
  assert_contains (after, "invalid, 2 calls replayed, 1 by code");
}

static void
schedule_panel__says_when_there_is_no_static_function (void **state)
{
  g_autofree char *shown = NULL;

  ui_test_open_sample (NULL);
  shown = dump ();
  assert_contains (shown, "No static function");
}

/* There is no program to ask in a recording that was opened. */
static void
static_actions__are_for_programs_that_run (void **state)
{
  GActionGroup *group = G_ACTION_GROUP (ui_test_window ());
  static const char *const names[] = { "verify-static", "run-dynamically", "run-statically" };

  ui_test_open_sample (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      assert_true (g_action_group_has_action (group, names[i]));
      assert_false (g_action_group_get_action_enabled (group, names[i]));
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (schedule_panel__shows_the_static_schedule_at_the_playhead),
    ui_test (schedule_panel__says_when_there_is_no_static_function),
    ui_test (static_actions__are_for_programs_that_run),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("static", tests, NULL, NULL);
}
