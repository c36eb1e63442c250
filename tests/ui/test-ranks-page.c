/* The Ranks page: what it says of ranks that part, that it leads there, and of one rank.
 * SPDX-License-Identifier: MIT */
#include <glib/gstdio.h>

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

static GtkWidget *
rank_list (void)
{
  GtkWidget *list = ui_test_find_named (GTK_WIDGET (ui_test_window ()), "rank-list");
  assert_non_null (list);
  return list;
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
ranks__have_their_tables_as_csv (void **state)
{
  static const char *const rows[][2] = { { "matrix", "kind,path,turn,odd,rank 0" },
                                         { "ladder", "number,call,rank,state," },
                                         { "lanes", "rank,kind,start_ns," } };
  open_ranks ();
  td_session_set_moment (ui_test_session (), 2, 0);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_free (dump (rows[i][0])); /* shows it */
      g_autofree char *csv
          = ui_test_dup_csv (GTK_WIDGET (ui_test_panel_scene_view ("ranks", rows[i][0])));
      assert_contains (csv, rows[i][1]);
    }
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
  /* ... on the rank that parted, where its array is updated */
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-2.tdtape"));
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  assert_int_equal (n, 1);
  g_autoptr (TdIteration) iteration = td_session_get_current (ui_test_session ());
  gint event = td_iteration_find_event (iteration, keys[0]);
  assert_int_equal (event, td_session_get_moment (ui_test_session ()).event);
  assert_int_equal (td_iteration_get_tape (iteration)->events[event].phase,
                    TD_TAPE_PHASE_UPDATE);
}

static void
ranks__of_a_folder_open_on_their_page (void **state)
{
  PlantedRun run = { .plant = part };
  g_autofree char *folder = g_strdup (planted_write (&run));
  ui_test_open (folder);
  ui_test_wait ("the finding", says_parted, NULL); /* without being sent there */
  assert_non_null (
      strstr (gtk_window_get_title (GTK_WINDOW (ui_test_window ())), "rank 0 of 4"));
  assert_true (gtk_widget_get_visible (rank_list ()));
}

static gboolean
is_at_the_update_of_l2 (gpointer data)
{
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  TdMoment moment = td_session_get_moment (ui_test_session ());
  if (n != 1 || moment.iteration != 3)
    return FALSE;
  g_autoptr (TdIteration) iteration = td_session_get_current (ui_test_session ());
  gint event = td_iteration_find_event (iteration, keys[0]);
  return event == moment.event
         && td_iteration_get_tape (iteration)->events[event].phase == TD_TAPE_PHASE_UPDATE;
}

static void
ranks__of_a_folder_open_where_they_part (void **state)
{
  PlantedRun run = { .plant = part };
  g_autofree char *folder = g_strdup (planted_write (&run));
  ui_test_open (folder);
  ui_test_wait ("the update of l2/W in iteration 3", is_at_the_update_of_l2, NULL);
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-0.tdtape"));
  ui_test_settle ();
  ui_test_save_picture ("ranks-opened");
  td_session_set_moment (ui_test_session (), 1, 0); /* and nobody is led there twice */
  ui_test_do ("next-rank", NULL);
  ui_test_wait ("the finding, read again", says_parted, NULL);
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 1);
}

/* Who has gone somewhere meanwhile stays there. */
static void
ranks__of_a_folder_lead_nobody_away_who_has_moved (void **state)
{
  PlantedRun run = { .plant = part };
  g_autofree char *folder = g_strdup (planted_write (&run));
  ui_test_open (folder);
  td_session_set_moment (ui_test_session (), 1, 0);
  ui_test_wait ("the finding", says_parted, NULL);
  ui_test_settle ();
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 1);
}

static void
ranks__of_an_empty_folder_say_so (void **state)
{
  const char *folder = td_test_tmp ("nothing");
  assert_int_equal (g_mkdir (folder, 0700), 0);
  ui_test_open (folder);
  assert_string_equal (ui_test_page (), "message");
  assert_string_equal (ui_test_message_title (), "No Ranks in This Folder");
}

/* Where the window was it stays: on the iteration, the operation and what is selected. */
static void
ranks__take_turns_in_the_window (void **state)
{
  open_ranks ();
  td_session_set_moment (ui_test_session (), 2, 1);
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  guint64 key = td_iteration_get_tape (iteration)->events[1].key;
  td_iteration_unref (iteration);
  td_session_select (ui_test_session (), key);
  ui_test_do ("rank", "2");
  assert_non_null (
      strstr (gtk_window_get_title (GTK_WINDOW (ui_test_window ())), "rank 2 of 4"));
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-2.tdtape"));
  assert_moment (2, 1);
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  assert_int_equal (n, 1);
  assert_true (keys[0] == key);
  GtkDropDown *list = GTK_DROP_DOWN (rank_list ());
  assert_int_equal (gtk_drop_down_get_selected (list), 2);
  gtk_drop_down_set_selected (list, 3);
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-3.tdtape"));
  ui_test_do ("next-rank", NULL);
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-0.tdtape"));
  ui_test_do ("previous-rank", NULL);
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-3.tdtape"));
}

/* The list says what is on show, not what was asked for. */
static void
ranks__without_a_recording_are_not_gone_to (void **state)
{
  PlantedRun run = { .plant = part };
  g_autofree char *folder = g_strdup (planted_write (&run));
  g_autofree char *gone = g_build_filename (folder, "rank-1.tdtape", NULL);
  assert_int_equal (g_remove (gone), 0);
  ui_test_open (folder);
  ui_test_do ("rank", "1");
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-0.tdtape"));
  GtkDropDown *list = GTK_DROP_DOWN (rank_list ());
  assert_int_equal (gtk_drop_down_get_selected (list), 0);
  ui_test_do ("rank", "7");
  ui_test_do ("rank", "x");
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), "rank-0.tdtape"));
}

static gboolean
lists_one (gpointer folder)
{
  td_start_page_refresh (ui_test_start_page ());
  return td_start_page_get_n_recent (ui_test_start_page ()) > 0;
}

static void
ranks__are_among_recent_recordings_as_a_folder (void **state)
{
  PlantedRun run = { .plant = part };
  g_autofree char *folder = g_strdup (planted_write (&run));
  ui_test_open (folder);
  ui_test_new_window ();
  ui_test_wait ("the folder among recent recordings", lists_one, folder);
  ui_test_save_picture ("ranks-recent");
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
    ui_test (ranks__have_their_tables_as_csv),
    ui_test (ranks__finding_leads_to_its_iteration),
    ui_test (ranks__of_a_folder_open_on_their_page),
    ui_test (ranks__of_a_folder_open_where_they_part),
    ui_test (ranks__of_a_folder_lead_nobody_away_who_has_moved),
    ui_test (ranks__of_an_empty_folder_say_so),
    ui_test (ranks__take_turns_in_the_window),
    ui_test (ranks__without_a_recording_are_not_gone_to),
    ui_test (ranks__are_among_recent_recordings_as_a_folder),
    ui_test (ranks__of_a_recording_of_one_say_so),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
