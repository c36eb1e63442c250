/* Lines that are evaluated where a program stands: every array that a GPT of LIFE still has is
 * read from it, as code and with static functions, and is what the recording has of the same
 * moment.  SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <signal.h>
#include <string.h>

#include "gradient/td-evaluate.h"
#include "window/td-window-private.h"

static TdEvaluatePage *
page (void)
{
  return td_workspace_get_evaluate (ui_test_workspace ());
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
is_enabled (gpointer action)
{
  return g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), action);
}

static gboolean
moment_differs (gpointer before)
{
  g_autofree char *now = ui_test_state ("moment");
  return !g_str_equal (now, before);
}

static gboolean
is_answered (gpointer unused)
{
  return !td_evaluate_page_is_reading (page ());
}

static gboolean
exists (gpointer path)
{
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* The supervisor of the program on show, or NULL. */
static GSubprocess *supervisor;

static int
stop_supervisor (void **state)
{
  if (supervisor)
    {
      g_subprocess_send_signal (supervisor, SIGTERM);
      g_subprocess_wait (supervisor, NULL, NULL);
    }
  g_clear_object (&supervisor);
  return ui_test_teardown (state);
}

/* Start a GPT with room for all its values, attach, and pause it. how: "static=1", or "torch"
 * for that of PyTorch. */
static void
pause_gpt (const char *level, const char *how)
{
  const gboolean torch = g_str_equal (how, "torch");
  const char *tape = td_test_tmp ("gpt.tdtape"), *tapedeck = td_test_program ("app/tapedeck");
  const char *const gpt[] = { tapedeck,
                              "run",
                              "-o",
                              tape,
                              "--level",
                              level,
                              "--tape-rate",
                              "0",
                              "--values-budget",
                              "0",
                              "--pause", /* its tape does not grow before it is looked at */
                              "3",
                              td_test_build ("tests/life/l03-gpt"),
                              "iterations=1000000",
                              "layers=4",
                              how,
                              NULL };
  const char *const script[] = { tapedeck,
                                 "run",
                                 "-o",
                                 tape,
                                 "--level",
                                 level,
                                 td_test_source ("tests/models/life/torch/gpt.py"),
                                 "-n",
                                 "1000000",
                                 NULL };
  if (torch)
    g_setenv ("TAPEDECK_PYTHON", td_test_python ("torch"), TRUE);
  supervisor
      = g_subprocess_newv (torch ? script : gpt, G_SUBPROCESS_FLAGS_STDOUT_SILENCE, NULL);
  assert_non_null (supervisor);
  g_autofree char *name
      = g_strdup_printf ("tapedeck/%s.sock", g_subprocess_get_identifier (supervisor));
  g_autofree char *address = g_build_filename (g_getenv ("XDG_RUNTIME_DIR"), name, NULL);
  ui_test_wait ("the control socket", exists, address);
  ui_test_wait ("the tape", exists, (gpointer)tape);
  g_autoptr (GFile) file = g_file_new_for_path (tape);
  td_window_attach (ui_test_window (), file, address);
  ui_test_wait ("three iterations", has_iterations, GUINT_TO_POINTER (3));
  if (torch)
    {
      ui_test_wait ("a program that can be paused", is_enabled, (gpointer) "pause");
      ui_test_do ("pause", NULL);
    }
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

static void
live_step (const char *action)
{
  g_autofree char *before = ui_test_state ("moment");
  ui_test_do (action, NULL);
  ui_test_wait (action, moment_differs, before);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

static const char *
evaluate (const char *text)
{
  td_evaluate_page_enter (page (), text);
  ui_test_wait (text, is_answered, NULL);
  return td_evaluate_page_get_answer (page ());
}

/* A line that was evaluated where the program stood. */
typedef struct
{
  TdMoment at;
  char *text, *answer;
  gboolean is_read;
} Line;

static void
line_free (gpointer data)
{
  Line *line = data;
  g_free (line->text);
  g_free (line->answer);
  g_free (line);
}

/* What comes of the array, to the last digit that is printed. */
static void
ask (const char *name, GPtrArray *lines)
{
  Line *line = g_new (Line, 1);
  line->at = td_session_get_moment (ui_test_session ());
  line->text = g_strdup_printf ("sum (%s) + 3 * norm (%s)", name, name);
  line->answer = g_strdup (evaluate (line->text));
  line->is_read = td_evaluate_page_get_n_read (page ()) > 0;
  g_ptr_array_add (lines, line);
}

/* What is recorded of that moment; NULL: nothing.  The iteration has ended. */
static char *
dup_recorded (const Line *line)
{
  TdSession *session = ui_test_session ();
  g_autoptr (TdIteration) iteration
      = td_session_load_iteration (session, line->at.iteration, NULL);
  TdEvaluateSource source
      = { td_session_get_reader (session), iteration, line->at.event, NULL, NULL };
  assert_non_null (iteration);
  TdTensor *result = td_evaluate (line->text, &source, NULL);
  char *said = result ? td_evaluate_print (result) : NULL;
  td_tensor_free (result);
  return said;
}

static void
compare (const GPtrArray *lines)
{
  guint n_read = 0, n_same = 0;
  for (guint i = 0; i < lines->len; i++)
    {
      const Line *line = g_ptr_array_index (lines, i);
      g_autofree char *recorded = dup_recorded (line);
      if (line->is_read && recorded && !g_str_equal (line->answer, recorded))
        fail_msg ("iteration %d, event %d: %s is %s, recorded %s", (int)line->at.iteration,
                  line->at.event, line->text, line->answer, recorded);
      n_read += line->is_read;
      n_same += line->is_read && recorded;
    }
  print_message ("%u lines, %u read, %u of them recorded, too\n", lines->len, n_read, n_same);
  assert_true (n_same >= 200 && n_same == n_read);
}

/* What events up to the playhead have made and read. */
static void
ask_for_all (GPtrArray *lines)
{
  g_autoptr (TdIteration) iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  TdMoment moment = td_session_get_moment (ui_test_session ());
  assert_true (moment.event < (gint)tape->n_events);
  for (gint e = 0; e <= moment.event; e++)
    if (tape->events[e].n_out > 0)
      {
        g_autofree char *name = g_strdup_printf ("#%d", e);
        ask (name, lines);
      }
  for (guint p = 0; p < tape->n_grads; p++)
    {
      const char *of = td_iteration_get_string (iteration, tape->grads[p].path);
      g_autofree char *name = g_strdup_printf ("\"%s\"", *of == '/' ? of + 1 : of);
      if (!g_str_equal (of, "?")) /* it has no name */
        ask (name, lines);
    }
}

static void
compare_on_the_way (const char *how)
{
  static const char *const ways[] = { "run-to-backward", "step-over",      "run-to-update",
                                      "step-op",         "next-iteration", "step-op" };
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (line_free);
  pause_gpt ("values", how);
  live_step ("next-iteration");
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    {
      live_step (ways[i]);
      ask_for_all (lines);
    }
  live_step ("next-iteration");
  live_step ("next-iteration");
  compare (lines);
}

static void
live_evaluate__of_code_is_what_is_recorded (void **state)
{
  compare_on_the_way ("static=0");
}

static void
live_evaluate__of_static_functions_is_what_is_recorded (void **state)
{
  compare_on_the_way ("static=1");
}

static void
torch_evaluate__is_what_is_recorded (void **state)
{
  compare_on_the_way ("torch");
}

/* Level stats has no values at all. */
static void
live_evaluate__asks_the_program_alone_where_it_stands (void **state)
{
  pause_gpt ("stats", "static=0");
  live_step ("next-iteration");
  live_step ("run-to-backward");
  ui_test_do ("evaluate", NULL);
  TdMoment head = td_session_get_head (ui_test_session ());
  g_autofree char *last = g_strdup_printf ("#%d", head.event),
                  *zero = g_strdup_printf ("#%d - #%d + wte/W * 0", head.event, head.event);
  assert_null (strstr (evaluate (last), "not recorded"));
  assert_int_equal (td_evaluate_page_get_n_read (page ()), 1);
  assert_contains (evaluate (zero), "0 to 0");
  assert_int_equal (td_evaluate_page_get_n_read (page ()), 2);
  ui_test_settle ();
  ui_test_save_picture ("live-evaluate.png");
  evaluate ("wte/nothing");
  assert_contains (td_evaluate_page_get_answer (page ()), "nothing here is called");

  /* elsewhere it is asked nothing */
  ui_test_do ("reverse-step-op", NULL);
  assert_contains (evaluate ("norm (wte/W)"), "not recorded at this moment");
  assert_int_equal (td_evaluate_page_get_n_read (page ()), 0);
  ui_test_do ("step-op", NULL);

  /* who goes on does not get the numbers of another moment */
  td_evaluate_page_enter (page (), "norm (wte/W)");
  assert_true (td_evaluate_page_is_reading (page ()));
  ui_test_do ("reverse-step-op", NULL);
  ui_test_wait ("an answer", is_answered, NULL);
  assert_contains (td_evaluate_page_get_answer (page ()), "went on before");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (live_evaluate__of_code_is_what_is_recorded, ui_test_setup,
                                     stop_supervisor),
    cmocka_unit_test_setup_teardown (live_evaluate__of_static_functions_is_what_is_recorded,
                                     ui_test_setup, stop_supervisor),
    cmocka_unit_test_setup_teardown (torch_evaluate__is_what_is_recorded, ui_test_setup,
                                     stop_supervisor),
    cmocka_unit_test_setup_teardown (live_evaluate__asks_the_program_alone_where_it_stands,
                                     ui_test_setup, stop_supervisor),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
