/* The Ranks page: what it says of ranks that part, that it leads there, and of one rank.
 * SPDX-License-Identifier: MIT */
#include "planted-ranks.h"
#include "ui-test.h"

static void
part (PlantedStep *step)
{
  if (step->rank == 2 && step->iteration >= 3)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->sum[0] ^= 1;
}

static char *
dump (const char *picture)
{
  return td_scene_dump (td_scene_view_get_scene (ui_test_panel_scene_view ("ranks", picture)));
}

static gboolean
says_parted (gpointer data)
{
  g_autofree char *text = dump ("findings");
  return strstr (text, "rank 2 parted in iteration 3") != NULL;
}

/* Open one tape of four, which finds its siblings. */
static void
open_ranks (void)
{
  PlantedRun run = { .plant = part };
  g_autofree char *path = g_build_filename (planted_write (&run), "rank-0.tdtape", NULL);
  ui_test_open (path);
  ui_test_do ("show-page", "ranks");
  ui_test_wait ("the finding", says_parted, NULL);
}

static void
ranks__of_one_tape_are_its_siblings_too (void **state)
{
  open_ranks ();
  ui_test_resize (1200, 900);
  ui_test_settle ();
  g_autofree char *text = dump ("findings");
  assert_contains (text, "Rank 3");
  assert_contains (text, "error");
  ui_test_save_picture ("ranks-findings");
}

static void
ranks__shows_the_iteration_at_the_playhead (void **state)
{
  open_ranks ();
  td_session_set_moment (ui_test_session (), 3, 0);
  ui_test_settle ();
  g_autofree char *matrix = dump ("matrix");
  assert_contains (matrix, "iteration 3");
  assert_contains (matrix, "stroke=error");
  ui_test_save_picture ("ranks-matrix");
  td_session_set_moment (ui_test_session (), 2, 0);
  ui_test_settle ();
  g_autofree char *well = dump ("matrix");
  assert_contains (well, "iteration 2");
  assert_not_contains (well, "stroke=error");
  g_autofree char *ladder = dump ("ladder");
  assert_contains (ladder, "td_opt_update");
  ui_test_save_picture ("ranks-ladder");
  g_autofree char *lanes = dump ("lanes");
  assert_contains (lanes, "waits for others");
  ui_test_save_picture ("ranks-lanes");
}

static void
ranks__finding_leads_to_its_iteration (void **state)
{
  open_ranks ();
  td_session_set_moment (ui_test_session (), 0, 0);
  TdSceneView *view = ui_test_panel_scene_view ("ranks", "findings");
  ui_test_settle ();
  TdSceneHit hit;
  assert_true (td_scene_hit (td_scene_view_get_scene (view), 100, 20, 6, &hit));
  g_signal_emit_by_name (view, "pressed", &hit, 100.0, 20.0);
  ui_test_settle ();
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 3);
}

static void
ranks__of_a_recording_of_one_say_so (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("show-page", "ranks");
  ui_test_settle ();
  g_autofree char *text = dump ("findings");
  assert_contains (text, "This recording has one rank");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (ranks__of_one_tape_are_its_siblings_too),
    ui_test (ranks__shows_the_iteration_at_the_playhead),
    ui_test (ranks__finding_leads_to_its_iteration),
    ui_test (ranks__of_a_recording_of_one_say_so),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
