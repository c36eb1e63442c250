/* The window and a run of several ranks: it opens their folder while they run, is connected to
 * the one on show, and what it does all of them do.
 *
 * test-live-ranks TAPEDECK MODEL: MODEL is tests/ranks/stepped.c, built.
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpi-here.h"
#include "ui-test.h"

#define N 3

static const char *tapedeck, *model;
static pid_t launcher;

static gboolean
all_have_tapes (gpointer folder)
{
  for (int r = 0; r < N; r++)
    {
      g_autofree char *name = g_strdup_printf ("%s/rank-%d.tdtape", (char *)folder, r);
      if (!g_file_test (name, G_FILE_TEST_EXISTS))
        return FALSE;
    }
  return TRUE;
}

static gboolean
is_in_state (gpointer wanted)
{
  g_autofree char *state = ui_test_state ("state");
  return g_str_equal (state, wanted);
}

static void
start (const char *options)
{
  g_autofree char *folder = g_strdup (td_test_tmp ("tapes"));
  g_autofree char *line = g_strdup_printf ("exec %s run -q -n %d -o %s %s %s 2>/dev/null",
                                           tapedeck, N, folder, options, model);
  launcher = fork ();
  if (launcher == 0)
    {
      execl ("/bin/sh", "sh", "-c", line, (char *)NULL);
      _exit (127);
    }
  ui_test_wait ("the tapes of all ranks", all_have_tapes, folder);
  ui_test_open (folder);
  ui_test_wait ("the program to stand", is_in_state, (gpointer) "paused");
}

static int
teardown (void **state)
{
  if (launcher > 0)
    {
      kill (launcher, SIGTERM);
      waitpid (launcher, NULL, 0);
    }
  launcher = 0;
  return ui_test_teardown (state);
}

typedef struct
{
  gint64 iteration;
  gint event;
} Place;

static gboolean
stands_there (gpointer data)
{
  const Place *place = data;
  TdMoment head = td_session_get_head (ui_test_session ());
  return td_session_get_state (ui_test_session ()) == TD_PROGRAM_PAUSED
         && head.iteration == place->iteration && head.event == place->event;
}

static void
show (const char *rank)
{
  g_autofree char *name = g_strdup_printf ("rank-%s.tdtape", rank);
  ui_test_do ("rank", rank);
  assert_true (g_str_has_suffix (td_session_get_path (ui_test_session ()), name));
}

static void
ranks__that_run_are_stepped_from_the_window_together (void **state)
{
  Place place = { 5, 0 };
  start ("--pause 5");
  ui_test_do ("step-op", NULL);
  ui_test_wait ("rank 0 behind its first operation", stands_there, &place);
  ui_test_do ("step-op", NULL);
  place.event = 1;
  ui_test_wait ("rank 0 at the next operation", stands_there, &place);
  for (int r = 1; r < N; r++)
    {
      g_autofree char *rank = g_strdup_printf ("%d", r);
      show (rank);
      ui_test_wait ("the other rank at the same operation", stands_there, &place);
    }
  ui_test_do ("next-iteration", NULL); /* by the last of them */
  ui_test_wait ("the program to stand", is_in_state, (gpointer) "paused");
  ui_test_do ("step-op", NULL);
  place = (Place){ 6, 0 };
  ui_test_wait ("the last rank in iteration 6", stands_there, &place);
  show ("0");
  ui_test_wait ("rank 0 with it", stands_there, &place);
  ui_test_save_picture ("ranks-live");
}

static void
ranks__that_run_are_paused_from_the_window_at_one_operation (void **state)
{
  start ("--pause 3");
  ui_test_do ("play", NULL);
  ui_test_wait ("the program to run", is_in_state, (gpointer) "running");
  ui_test_do ("pause", NULL);
  ui_test_wait ("the program to stand", is_in_state, (gpointer) "paused");
  TdMoment head = td_session_get_head (ui_test_session ());
  Place place = { head.iteration, head.event };
  for (int r = 1; r < N; r++)
    {
      g_autofree char *rank = g_strdup_printf ("%d", r);
      show (rank);
      ui_test_wait ("the other rank at the same operation", stands_there, &place);
    }
}

#define live_test(f) cmocka_unit_test_setup_teardown (f, ui_test_setup, teardown)

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    live_test (ranks__that_run_are_stepped_from_the_window_together),
    live_test (ranks__that_run_are_paused_from_the_window_at_one_operation),
  };

  if (argc != 3)
    return 1;
  tapedeck = argv[1];
  model = argv[2];
  if (!mpi_here ())
    return 77;
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
