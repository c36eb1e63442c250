/* A PyTorch program that runs while the window looks on, in this process: paused and stepped it
 * is followed by the playhead, as one of the engine is.  Runs with the Python that
 * TD_TEST_TORCH names, else with python3; skipped where that has no PyTorch.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "window/td-window-private.h"

static void
run_script (void)
{
  const char *args[] = { "-n", "1000000", NULL };
  const char *python = td_test_python ("torch");
  g_autoptr (GFile) file
      = g_file_new_for_path (td_test_source ("tests/models/life/torch/gpt.py"));
  g_auto (GStrv) environment
      = g_environ_setenv (g_get_environ (), "TAPEDECK_PYTHON", python, TRUE);
  environment = g_environ_setenv (environment, "PYTHONDONTWRITEBYTECODE", "1", TRUE);
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

/* What is shown says itself that the program stands there: state and head may come from a tape
 * that grows between the two. */
static gboolean
stands_at (TdMoment moment)
{
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = iteration ? td_iteration_get_tape (iteration) : NULL;
  gboolean stands = tape && (gint64)tape->number == moment.iteration && tape->stop.stopped
                    && (gint)tape->stop.event == moment.event + 1;
  g_clear_pointer (&iteration, td_iteration_unref);
  return stands;
}

/* The program stands somewhere else than before, and the playhead is there. */
static gboolean
stands_elsewhere (gpointer data)
{
  const TdMoment *before = data;
  if (!is_state ((gpointer) "paused"))
    return FALSE;
  TdMoment head = td_session_get_head (ui_test_session ());
  TdMoment moment = td_session_get_moment (ui_test_session ());
  return (head.iteration != before->iteration || head.event != before->event)
         && moment.iteration == head.iteration && moment.event == head.event
         && stands_at (moment);
}

static void
pause_script (void)
{
  run_script ();
  ui_test_wait ("three iterations", has_iterations, GUINT_TO_POINTER (3));
  ui_test_wait ("a program that can be paused", can_pause, NULL);
  TdMoment nowhere = { -1, -1 };
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", stands_elsewhere, &nowhere);
}

/* Do a step of the live program and wait until the playhead has followed. */
static void
live_step (const char *action)
{
  TdMoment before = td_session_get_head (ui_test_session ());
  ui_test_do (action, NULL);
  ui_test_wait (action, stands_elsewhere, &before);
}

static const TdTapeEvent *
event_at_playhead (void)
{
  static TdTapeEvent event;
  TdMoment moment = td_session_get_moment (ui_test_session ());
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  assert_true (moment.event >= 0 && (guint32)moment.event < tape->n_events);
  event = tape->events[moment.event];
  td_iteration_unref (iteration);
  return &event;
}

static gboolean
has_values (gpointer unused)
{
  const TdTensor *tensor
      = td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ()));
  return tensor && tensor->values;
}

/* Select what the event at the playhead has made. */
static void
select_made (void)
{
  TdMoment moment = td_session_get_moment (ui_test_session ());
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  const TdTapeEvent *event = &tape->events[moment.event];
  assert_int_equal (event->n_out, 1);
  guint64 made = tape->vars[tape->outs[event->first_out]].key;
  td_iteration_unref (iteration);
  g_autofree char *key = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", made);
  ui_test_do ("select", key);
}

/* Backward begins with the gradient of the loss by itself, which autograd alone holds. */
static void
live_torch__reads_a_gradient_of_the_paused_program (void **state)
{
  pause_script ();
  live_step ("run-to-backward");
  live_step ("step-op");
  select_made ();
  ui_test_wait ("values of the gradient", has_values, NULL);
  const TdTensor *tensor
      = td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ()));
  assert_int_equal (tensor->n_values, 1);
  assert_true (tensor->values[0] == 1);
  ui_test_settle ();
  ui_test_save_picture ("live-torch.png");
}

static void
live_torch__steps_in_backward_and_goes_on (void **state)
{
  pause_script ();
  live_step ("run-to-backward");
  TdMoment a = td_session_get_moment (ui_test_session ());
  live_step ("step-op");
  TdMoment b = td_session_get_moment (ui_test_session ());
  assert_int_equal (event_at_playhead ()->phase, TD_TAPE_PHASE_BACKWARD);
  assert_int_equal (b.iteration, a.iteration);
  assert_int_equal (b.event, a.event + 1);
  live_step ("step-into");
  ui_test_do ("reverse-step-op", NULL);
  assert_moment (b.iteration, b.event); /* over what has happened */
  assert_true (is_state ((gpointer) "paused"));
  ui_test_do ("step-op", NULL);
  assert_moment (b.iteration, b.event + 1);
  live_step ("run-to-update");
  live_step ("next-iteration");
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, b.iteration + 1);
  guint now = td_session_get_n_iterations (ui_test_session ());
  ui_test_do ("play", NULL);
  ui_test_wait ("more iterations", has_iterations, GUINT_TO_POINTER (now + 5));
  assert_true (is_state ((gpointer) "running"));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (live_torch__steps_in_backward_and_goes_on),
    ui_test (live_torch__reads_a_gradient_of_the_paused_program),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
