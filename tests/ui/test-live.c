/* Programs that run while the window looks on, in this process: models are compiled and started
 * by `tapedeck run`, stepped through its socket, and end in every way a program can.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Start tests/ui/models/NAME.c with a place for its process id and the way it shall end. */
static void
run_model (const char *name, const char *end)
{
  g_autofree char *relative = g_strdup_printf ("tests/ui/models/%s.c", name);
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source (relative));
  const char *args[] = { td_test_tmp ("pid"), end, NULL };
  g_auto (GStrv) environment = g_get_environ ();

  td_test_program ("app/tapedeck");
  td_window_set_launch (ui_test_window (), (const char *const *)environment, td_test_tmp (""));
  td_window_run (ui_test_window (), file, args);
}

static gboolean
is_state (gpointer wanted)
{
  g_autofree char *state = ui_test_state ("state");
  return ui_test_session () && g_str_equal (state, wanted);
}

static gboolean
has_iterations (gpointer n)
{
  TdSession *session = ui_test_session ();
  return session && td_session_get_n_iterations (session) >= GPOINTER_TO_UINT (n);
}

static gboolean
can_pause (gpointer unused)
{
  return g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), "pause");
}

static gboolean
shows_message (gpointer unused)
{
  return g_str_equal (ui_test_page (), "message")
         && !strstr (ui_test_message_title (), "Waiting");
}

static gboolean
moment_differs (gpointer before)
{
  g_autofree char *now = ui_test_state ("moment");
  return !g_str_equal (now, before);
}

static void
pause_model (void)
{
  run_model ("train", NULL);
  ui_test_wait ("ten iterations", has_iterations, GUINT_TO_POINTER (10));
  ui_test_wait ("a program that can be paused", can_pause, NULL);
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

/* Do a step of the live program and wait until the playhead has followed. */
static void
live_step (const char *action)
{
  g_autofree char *before = ui_test_state ("moment");
  ui_test_do (action, NULL);
  ui_test_wait (action, moment_differs, before);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

static int
phase_at_playhead (void)
{
  TdMoment moment = td_session_get_moment (ui_test_session ());
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  assert_true (moment.event >= 0 && (guint32)moment.event < tape->n_events);
  int phase = tape->events[moment.event].phase;
  td_iteration_unref (iteration);
  return phase;
}

static void
live__pauses_steps_and_continues (void **state)
{
  pause_model ();
  TdMoment a = td_session_get_moment (ui_test_session ());
  live_step ("step-op");
  TdMoment b = td_session_get_moment (ui_test_session ());
  assert_true (b.iteration > a.iteration || b.event == a.event + 1);
  live_step ("next-iteration");
  TdMoment c = td_session_get_moment (ui_test_session ());
  assert_true (c.iteration > b.iteration);
  ui_test_do ("play", NULL);
  ui_test_wait ("a running program", is_state, (gpointer) "running");
  ui_test_wait ("more iterations", has_iterations,
                GUINT_TO_POINTER (td_session_get_n_iterations (ui_test_session ()) + 50));
}

static void
live__steps_into_backward_and_back_over_what_was_recorded (void **state)
{
  pause_model ();
  live_step ("run-to-backward");
  live_step ("step-into");
  assert_int_equal (phase_at_playhead (), TD_TAPE_PHASE_BACKWARD);
  TdMoment before = td_session_get_moment (ui_test_session ());
  ui_test_do ("reverse-step-op", NULL);
  TdMoment after = td_session_get_moment (ui_test_session ());
  assert_int_equal (after.event, before.event - 1);
  assert_int_equal (after.iteration, before.iteration);
  /* the program itself did not move */
  assert_true (is_state ((gpointer) "paused"));
  ui_test_do ("step-op", NULL); /* over the recording again, up to where the program is */
  assert_moment (before.iteration, before.event);
}

static gboolean
has_values (gpointer unused)
{
  const TdTensor *tensor
      = td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ()));
  return tensor && tensor->values;
}

/* Level `stats` records no values: they come from the program that stands still. */
static void
live__reads_values_of_the_paused_program (void **state)
{
  static const float x[] = { -0.75f, -0.5f, -0.25f, 0, 0.25f, 0.5f, 0.75f, 1 };
  pause_model ();
  live_step ("next-iteration");
  live_step ("step-op");
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  guint64 input = 0;
  assert_true (tape->n_events > 0 && tape->events[0].n_in == 2);
  input = tape->vars[tape->ins[tape->events[0].first_in + 1]].key;
  td_iteration_unref (iteration);
  g_autofree char *key = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", input);
  ui_test_do ("select", key);
  ui_test_wait ("values of the input", has_values, NULL);
  const TdTensor *tensor
      = td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ()));
  assert_int_equal (tensor->n_values, 8);
  for (guint i = 0; i < 8; i++)
    assert_true (tensor->values[i] == x[i]);
}

static void
live__shows_what_the_model_prints (void **state)
{
  run_model ("train", NULL);
  ui_test_wait ("ten iterations", has_iterations, GUINT_TO_POINTER (10));
  g_autofree char *text = td_log_view_dup_text (td_workspace_get_log (ui_test_workspace ()));
  assert_contains (text, "iteration 0");
}

static void
live__killed_model_is_said_and_the_window_stays_usable (void **state)
{
  size_t n;
  run_model ("train", NULL);
  ui_test_wait ("ten iterations", has_iterations, GUINT_TO_POINTER (10));
  char *pid = td_test_read_file (td_test_tmp ("pid"), &n);
  assert_int_equal (kill ((pid_t)atoi (pid), SIGKILL), 0);
  free (pid);
  ui_test_wait ("a crash", is_state, (gpointer) "crashed");
  assert_contains (ui_test_info_text (), "signal 9");
  ui_test_do ("go-to", "i=3&e=0");
  ui_test_do ("step-op", NULL);
  assert_moment (3, 1);
}

static void
live__every_end_is_said (void **state)
{
  static const struct
  {
    const char *end, *state, *words;
  } ends[] = { { "exit3", "ended", "3" },
               { "abort", "crashed", "signal 6" },
               { "segv", "crashed", "signal 11" },
               { "memory", NULL, "out of memory" } };

  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    {
      ui_test_new_window ();
      run_model ("train", ends[i].end);
      if (ends[i].state)
        ui_test_wait (ends[i].end, is_state, (gpointer)ends[i].state);
      ui_test_wait ("a line about the end", ui_test_has_info, (gpointer)ends[i].words);
      ui_test_do ("first-event", NULL);
      assert_string_equal (ui_test_page (), "workspace");
    }
}

static gboolean
is_gone (gpointer pid)
{
  return kill (GPOINTER_TO_INT (pid), 0) != 0;
}

/* Without anybody to ask, closing ends the program, also one that stands still. */
static void
close__ends_the_program (void **state)
{
  size_t n;
  pause_model ();
  char *text = td_test_read_file (td_test_tmp ("pid"), &n);
  int pid = atoi (text);
  free (text);
  assert_int_equal (kill (pid, 0), 0);
  ui_test_new_window ();
  ui_test_wait ("the end of the program", is_gone, GINT_TO_POINTER (pid));
}

static gboolean
exists (gpointer path)
{
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* A program that somebody started in a terminal: attach, pause, let it go, and it runs on. */
static void
attach__controls_a_foreign_program_and_leaves_it_running (void **state)
{
  const char *tape = td_test_tmp ("foreign.tdtape");
  const char *program = td_test_program ("app/tapedeck");
  g_autoptr (GSubprocess) supervisor = g_subprocess_new (
      G_SUBPROCESS_FLAGS_STDOUT_SILENCE, NULL, program, "run", "-o", tape, "--level", "stats",
      td_test_source ("tests/ui/models/train.c"), td_test_tmp ("pid"), NULL);
  assert_non_null (supervisor);
  g_autofree char *name
      = g_strdup_printf ("tapedeck/%s.sock", g_subprocess_get_identifier (supervisor));
  g_autofree char *address = g_build_filename (g_get_user_runtime_dir (), name, NULL);
  ui_test_wait ("the control socket", exists, address);
  ui_test_wait ("the tape", exists, (gpointer)tape);

  g_autoptr (GFile) file = g_file_new_for_path (tape);
  td_window_attach (ui_test_window (), file, address);
  ui_test_wait ("a program that can be paused", can_pause, NULL);
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
  live_step ("next-iteration");
  ui_test_do ("detach", NULL);
  guint before = td_session_get_n_iterations (ui_test_session ());
  ui_test_wait ("more iterations", has_iterations, GUINT_TO_POINTER (before + 20));
  assert_false (
      g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), "pause"));
  g_subprocess_send_signal (supervisor, SIGTERM);
  g_subprocess_wait (supervisor, NULL, NULL);
}

static void
model__that_does_not_compile_is_a_page_with_file_and_line (void **state)
{
  run_model ("bad", NULL);
  ui_test_wait ("a page about the error", shows_message, NULL);
  assert_string_equal (ui_test_message_title (), "The Model Does Not Compile");
  assert_contains (ui_test_message_text (), "bad.c:9");
  assert_contains (ui_test_message_text (), "undeclared_name");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (model__that_does_not_compile_is_a_page_with_file_and_line),
    ui_test (live__shows_what_the_model_prints),
    ui_test (live__pauses_steps_and_continues),
    ui_test (live__steps_into_backward_and_back_over_what_was_recorded),
    ui_test (live__reads_values_of_the_paused_program),
    ui_test (live__killed_model_is_said_and_the_window_stays_usable),
    ui_test (live__every_end_is_said),
    ui_test (close__ends_the_program),
    ui_test (attach__controls_a_foreign_program_and_leaves_it_running),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
