/* The session: opening, following, history, selection, verbs across iterations, the end of
 * programs. SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "td-synthetic-tape.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/td-graph.h"
#include "schedule/td-curve.h"
#include "tape/td-iteration-cache.h"
#include "td-session.h"

typedef struct
{
  TdTapeWriter *w;
  const char *path;
} Tape;

static Tape
tape_without_program (gint pid)
{
  Tape tape = { NULL, td_test_tmp ("run.tdtape") };
  char error[256] = "";
  TdTapeWriterOptions options = { .size = sizeof options, .path = tape.path, .pid = pid };

  tape.w = td_tape_writer_new (&options, error, sizeof error);
  assert_string_equal (error, "");
  return tape;
}

static Tape
tape_new (gint pid)
{
  Tape tape = tape_without_program (pid);

  td_tape_writer_info (tape.w, "program", "/home/x/lenet.c");
  return tape;
}

static void
write_lenet (Tape *tape, guint64 number)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (number);

  td_synthetic_write (tape->w, it);
}

static TdSession *
open_session (const Tape *tape)
{
  GError *error = NULL;
  TdSession *session = td_session_open_bounded (tape->path, &error);

  assert_null (error);
  assert_non_null (session);
  return session;
}

static void
count (TdSession *session, gpointer data)
{
  (void)session;
  (*(guint *)data)++;
}

static void
session__opens_on_the_loss_of_the_last_whole_iteration (void **state)
{
  Tape tape = tape_new (0);
  TdTapeEnd end = { 0 };
  TdSession *session;
  TdMoment moment;

  for (guint i = 0; i < 5; i++)
    write_lenet (&tape, i);
  td_tape_writer_end (tape.w, &end);
  td_tape_writer_free (tape.w);
  session = open_session (&tape);
  moment = td_session_get_moment (session);
  assert_int_equal (moment.iteration, 4);
  assert_int_equal (moment.event, 12); /* softmax_cross_entropy; 13 begins backward */
  assert_int_equal (td_session_get_state (session), TD_PROGRAM_ENDED);
  assert_string_equal (td_session_get_reason (session), "ended");
  assert_string_equal (td_session_get_name (session), "lenet");
  assert_int_equal (td_session_get_n_iterations (session), 5);
  assert_false (td_session_get_follow (session));
  g_object_unref (session);
  (void)state;
}

/* A program that stands in the middle of an iteration is expected to go on as it did before. */
static void
session__expects_what_the_iteration_before_did (void **state)
{
  Tape tape = tape_new (getpid ());
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  const TdTapeIteration *a, *b;
  TdSession *session;

  for (guint i = 0; i < 3; i++)
    write_lenet (&tape, i);
  td_synthetic_write_live (tape.w, it, 7, "step");
  session = open_session (&tape);
  td_session_set_attached (session, TRUE);
  assert_int_equal (td_session_get_state (session), TD_PROGRAM_PAUSED);
  g_autoptr (TdIteration) now = td_session_get_current (session);
  g_autoptr (TdIteration) expected = td_session_get_expected (session);
  g_autoptr (TdIteration) before = td_session_load_iteration (session, 2, NULL);
  assert_int_equal (td_iteration_get_n_events (now), 7);
  assert_int_equal (td_iteration_get_n_events (expected), 45);
  assert_int_equal (td_iteration_get_n_run (expected), 7);
  assert_int_equal (td_iteration_get_n_run (before), 45);
  assert_int_equal (td_iteration_get_number (expected), 3);
  a = td_iteration_get_tape (now);
  b = td_iteration_get_tape (expected);
  for (guint e = 0; e < 45; e++)
    {
      assert_true (b->events[e].key == td_iteration_get_tape (before)->events[e].key);
      assert_true (b->event_duration_ns[e] == (e < 7 ? a->event_duration_ns[e] : 0));
      assert_string_equal (td_iteration_get_op_name (expected, e),
                           td_iteration_get_op_name (before, e));
    }
  assert_ptr_equal (td_iteration_new_expected (before, now), NULL); /* nothing is to come */
  g_object_unref (session);
  td_tape_writer_free (tape.w);
  (void)state;
}

/* A window that looks on for ever: the list is a sample, and every iteration is still found. */
static void
session__bounded_one_loads_what_its_list_dropped (void **state)
{
  enum
  {
    N = 140000 /* the list holds 131,072 */
  };
  Tape tape = tape_new (0);
  const TdTapeEvent none[1] = { 0 };
  TdTapeIteration it = { .size = sizeof it, .events = none };
  TdTapeReport report = { .key = td_tape_writer_string (tape.w, "loss") };
  TdTapeEnd end = { 0 };
  g_autoptr (GError) error = NULL;
  TdSession *session;
  guint n;
  gint64 iteration;
  double lo, hi;

  for (guint i = 0; i < N; i++)
    {
      it.number = report.iteration = i;
      report.value = i == 777 ? 1000 : 1;
      td_tape_writer_report (tape.w, &report);
      td_tape_writer_iteration (tape.w, &it);
    }
  td_tape_writer_end (tape.w, &end);
  td_tape_writer_free (tape.w);
  session = td_session_open_bounded (tape.path, &error);
  assert_non_null (session);
  n = td_session_get_n_iterations (session);
  assert_in_range (n, 10000, 131072);
  assert_int_equal (td_session_get_iteration_number (session, n - 1), N - 1);
  assert_int_equal (td_session_get_last_complete (session), N - 1);
  for (gint64 number = 1; number < N; number += 9973)
    {
      g_autoptr (TdIteration) loaded = td_session_load_iteration (session, number, &error);
      assert_null (error);
      assert_int_equal (td_iteration_get_number (loaded), number);
      td_session_set_moment (session, number, -1);
      assert_int_equal (td_session_get_moment (session).iteration, number);
    }
  /* the curves were folded and kept the spike */
  TdCurves *curves = td_session_get_curves (session);
  assert_in_range (td_curves_length (curves, 0), 1000, 65537);
  td_curves_range (curves, 0, 0, td_curves_length (curves, 0), &lo, &hi);
  assert_true (lo == 1 && hi == 1000);
  td_curves_get (curves, 0, td_curves_length (curves, 0) - 1, &iteration, &lo);
  assert_in_range (iteration, N - 8, N - 1);
  g_object_unref (session);
  (void)state;
}

static void
session__says_what_killed_the_program_and_where (void **state)
{
  Tape tape = tape_new (0);
  TdTapeOpdef opdef = { .n_in = 1 };
  TdTapeEnd end = { .status = -1, .signal = 9, .running = 1 };
  g_autoptr (TdIteration) it = td_synthetic_lenet (1);
  TdSession *session;

  write_lenet (&tape, 0);
  td_synthetic_write_live (tape.w, it, 7, NULL);
  opdef.name = td_tape_writer_string (tape.w, "relu");
  end.last_op = td_tape_writer_opdef (tape.w, &opdef);
  end.last_site = td_tape_writer_site (tape.w, "model.c", 42, "main");
  td_tape_writer_end (tape.w, &end);
  td_tape_writer_free (tape.w);
  session = open_session (&tape);
  assert_int_equal (td_session_get_state (session), TD_PROGRAM_CRASHED);
  assert_string_equal (td_session_get_reason (session),
                       "killed by signal 9 (Killed) in relu at model.c:42");
  /* it opens where it happened */
  assert_int_equal (td_session_get_moment (session).iteration, 1);
  assert_int_equal (td_session_get_moment (session).event, 6);
  g_object_unref (session);
  (void)state;
}

static void
session__without_an_end_and_without_a_process_is_a_crash (void **state)
{
  pid_t pid = fork ();
  Tape tape;
  TdSession *session;

  if (pid == 0)
    _exit (0);
  waitpid (pid, NULL, 0);
  tape = tape_new (pid);
  write_lenet (&tape, 0);
  td_tape_writer_free (tape.w);
  session = open_session (&tape);
  assert_int_equal (td_session_get_state (session), TD_PROGRAM_CRASHED);
  g_object_unref (session);
  (void)state;
}

static void
session__takes_the_name_of_the_program_when_the_tape_says_it (void **state)
{
  Tape tape = tape_without_program (getpid ());
  TdSession *session;

  td_tape_writer_flush (tape.w);
  session = open_session (&tape);
  assert_string_equal (td_session_get_name (session), "run");
  td_tape_writer_info (tape.w, "program", "models/net.c");
  write_lenet (&tape, 0);
  assert_true (td_session_poll (session));
  assert_string_equal (td_session_get_name (session), "net");
  g_object_unref (session);
  td_tape_writer_free (tape.w);
  (void)state;
}

static void
session__follows_a_program_that_runs_and_pauses (void **state)
{
  Tape tape = tape_new (getpid ());
  g_autoptr (TdIteration) next = td_synthetic_lenet (2);
  guint moments = 0, heads = 0, iterations = 0;
  TdSession *session;

  write_lenet (&tape, 0);
  session = open_session (&tape);
  g_signal_connect (session, "moment-changed", G_CALLBACK (count), &moments);
  g_signal_connect (session, "head-changed", G_CALLBACK (count), &heads);
  g_signal_connect (session, "iterations-changed", G_CALLBACK (count), &iterations);
  assert_int_equal (td_session_get_state (session), TD_PROGRAM_RUNNING);
  assert_true (td_session_get_follow (session));
  assert_false (td_session_poll (session));

  write_lenet (&tape, 1);
  assert_true (td_session_poll (session));
  assert_int_equal (td_session_get_moment (session).iteration, 1);
  assert_int_equal (moments, 1);
  assert_true (heads > 0 && iterations > 0);

  td_synthetic_write_live (tape.w, next, 20, "breakpoint 2: op linear");
  assert_true (td_session_poll (session));
  assert_int_equal (td_session_get_state (session), TD_PROGRAM_PAUSED);
  assert_string_equal (td_session_get_reason (session), "breakpoint 2: op linear");
  assert_int_equal (td_session_get_head (session).iteration, 2);
  assert_int_equal (td_session_get_head (session).event, 19);
  assert_int_equal (td_session_get_n_iterations (session), 3);
  {
    g_autoptr (TdIteration) it = td_session_get_current (session);

    assert_int_equal (td_iteration_get_n_events (it), 20);
    assert_false (td_iteration_is_complete (it));
    assert_string_equal (td_iteration_get_op_name (it, 3), "convolution_2d");
  }
  /* looking back unties it; the head goes on alone */
  td_session_set_moment (session, 0, 3);
  assert_false (td_session_get_follow (session));
  td_synthetic_write (tape.w, next);
  assert_true (td_session_poll (session));
  assert_int_equal (td_session_get_moment (session).iteration, 0);
  assert_int_equal (td_session_get_head (session).event, 44);
  {
    g_autoptr (TdIteration) it = td_session_load_iteration (session, 2, NULL);

    assert_int_equal (td_iteration_get_n_events (it), 45); /* not what was cached at 20 */
    assert_true (td_iteration_is_complete (it));
  }
  td_session_set_follow (session, TRUE);
  assert_int_equal (td_session_get_moment (session).iteration, 2);
  g_object_unref (session);
  td_tape_writer_free (tape.w);
  (void)state;
}

static void
session__remembers_where_it_was (void **state)
{
  Tape tape = tape_new (0);
  TdSession *session;

  for (guint i = 0; i < 3; i++)
    write_lenet (&tape, i);
  td_tape_writer_free (tape.w);
  session = open_session (&tape);
  td_session_set_moment (session, 0, 10);
  td_session_set_moment (session, 0, 11); /* a step: the same place in history */
  td_session_set_moment (session, 1, 40);
  assert_true (td_session_can_go_back (session));
  assert_false (td_session_can_go_forward (session));
  td_session_go_back (session);
  assert_int_equal (td_session_get_moment (session).iteration, 0);
  assert_int_equal (td_session_get_moment (session).event, 11);
  td_session_go_forward (session);
  assert_int_equal (td_session_get_moment (session).event, 40);
  td_session_go_back (session);
  td_session_set_moment (session, 2, 5); /* a new way: the old one is gone */
  assert_false (td_session_can_go_forward (session));
  /* beyond the end there is nothing to look at */
  td_session_set_moment (session, 2, 500);
  assert_int_equal (td_session_get_moment (session).event, 44);
  td_session_set_moment (session, 77, 0);
  assert_int_equal (td_session_get_moment (session).iteration, 2);
  g_object_unref (session);
  (void)state;
}

static void
session__selects_keys_in_order_and_once (void **state)
{
  TdIteration *its[] = { td_synthetic_lenet (0) };
  TdSession *session = td_session_new_for_iterations (its, 1);
  const guint64 keys[] = { 7, 9, 7, 0 };
  guint changes = 0, n;

  g_signal_connect (session, "selection-changed", G_CALLBACK (count), &changes);
  td_session_select_many (session, keys, 4);
  assert_int_equal (td_session_get_selection (session, &n)[1], 9);
  assert_int_equal (n, 2);
  td_session_select_many (session, &keys[1], 1);
  assert_false (td_session_is_selected (session, 7));
  td_session_select (session, 9);
  assert_int_equal (changes, 2); /* nothing changed the second time */
  td_session_select (session, 0);
  td_session_get_selection (session, &n);
  assert_int_equal (n, 0);
  g_object_unref (session);
  (void)state;
}

static void
session__goes_to_the_same_operation_of_the_next_iteration (void **state)
{
  TdIteration *its[]
      = { td_synthetic_lstm (0, 5, FALSE, TRUE), td_synthetic_lstm (1, 3, FALSE, TRUE) };
  TdSession *session = td_session_new_for_iterations (its, 2);
  char *message;

  td_session_set_moment (session, 0, 20);
  assert_true (td_session_go (session, TD_VERB_ITERATION, 1, &message));
  assert_null (message);
  assert_int_equal (td_session_get_moment (session).iteration, 1);
  assert_int_equal (td_session_get_moment (session).event, 20);
  assert_false (td_session_go (session, TD_VERB_ITERATION, 1, &message));
  assert_string_equal (message, "This is the last recorded iteration");
  g_free (message);
  td_session_set_moment (session, 0, 70); /* of the fifth step */
  assert_true (td_session_go (session, TD_VERB_ITERATION, 1, &message));
  assert_contains (message, "is not in iteration 1");
  g_free (message);
  assert_true (td_session_go (session, TD_VERB_LOSS, 1, NULL));
  assert_true (td_session_go (session, TD_VERB_BACKWARD, 1, NULL));
  assert_true (td_session_go (session, TD_VERB_UPDATE, 1, NULL));
  assert_true (td_session_go (session, TD_VERB_END, -1, NULL));
  assert_int_equal (td_session_get_moment (session).event, 0);
  g_object_unref (session);
  (void)state;
}

static const TdVerb steps[] = { TD_VERB_STEP_OP, TD_VERB_STEP_OVER, TD_VERB_STEP_INTO,
                                TD_VERB_STEP_OUT, TD_VERB_ITERATION };

static void
session__steps_go_on_over_the_edge_of_an_iteration_and_back (void **state)
{
  TdIteration *its[] = { td_synthetic_lenet (0), td_synthetic_lenet (1) };
  TdSession *session = td_session_new_for_iterations (its, 2);
  gint last = (gint)td_iteration_get_n_events (its[0]) - 1;

  for (guint i = 0; i < 3; i++) /* op, over, into */
    {
      td_session_set_moment (session, 0, last);
      assert_true (td_session_go (session, steps[i], 1, NULL));
      assert_int_equal (td_session_get_moment (session).iteration, 1);
      assert_true (td_session_go (session, steps[i], -1, NULL));
      assert_int_equal (td_session_get_moment (session).iteration, 0);
      assert_int_equal (td_session_get_moment (session).event, last);
    }
  /* and where no step led to the edge */
  td_session_set_moment (session, 1, 0);
  assert_true (td_session_go (session, TD_VERB_STEP_OP, -1, NULL));
  assert_int_equal (td_session_get_moment (session).iteration, 0);
  assert_int_equal (td_session_get_moment (session).event, last);
  td_session_set_moment (session, 1, last);
  assert_false (td_session_go (session, TD_VERB_STEP_OP, 1, NULL));
  td_session_set_moment (session, 0, 0);
  assert_false (td_session_go (session, TD_VERB_STEP_OP, -1, NULL));
  g_object_unref (session);
  (void)state;
}

/* Over a layer lead several steps, from before it and from inside: no reverse of a step knows
 * by the moment alone where it came from. */
static void
session__the_reverses_of_any_steps_lead_back (void **state)
{
  TdIteration *its[] = { td_synthetic_lenet (0), td_synthetic_lstm (1, 5, FALSE, TRUE),
                         td_synthetic_lstm (2, 3, FALSE, TRUE), td_synthetic_lenet (3) };
  TdSession *session = td_session_new_for_iterations (its, 4);

  for (guint32 seed = 1; seed <= 400; seed++)
    {
      g_autoptr (GRand) random = g_rand_new_with_seed (seed);
      gint i = g_rand_int_range (random, 0, 4), n = 0;
      struct
      {
        TdVerb verb;
        gint direction;
      } done[40];
      TdMoment start;

      td_session_set_moment (
          session, i, g_rand_int_range (random, 0, (gint)td_iteration_get_n_events (its[i])));
      start = td_session_get_moment (session);
      for (gint k = g_rand_int_range (random, 1, 40); k > 0; k--)
        {
          TdVerb verb = steps[g_rand_int_range (random, 0, G_N_ELEMENTS (steps))];
          gint direction = g_rand_int_range (random, 0, 3) ? 1 : -1;
          char *message;

          if (td_session_go (session, verb, direction, &message))
            {
              done[n].verb = verb;
              done[n++].direction = direction;
            }
          g_free (message);
        }
      while (n-- > 0)
        assert_true (td_session_go (session, done[n].verb, -done[n].direction, NULL));
      if (td_session_get_moment (session).iteration != start.iteration
          || td_session_get_moment (session).event != start.event)
        fail_msg ("seed %u: %d instead of %d", seed, td_session_get_moment (session).event,
                  start.event);
    }
  g_object_unref (session);
  (void)state;
}

static void
session__finds_the_next_anomaly_in_later_iterations (void **state)
{
  Tape tape = tape_new (0);
  TdSession *session;
  char *message;

  write_lenet (&tape, 0);
  write_lenet (&tape, 1);
  {
    TdSynthetic *s = td_synthetic_new (2);
    guint x = td_synthetic_input (s, "x", TD_SHAPE (4));

    x = TD_OP (s, "exp", 1, TD_SHAPE (4), x);
    TD_OP (s, "log", 2, TD_SHAPE (4), x);
    td_synthetic_nan (s);
    {
      g_autoptr (TdIteration) it = td_synthetic_finish (s);

      td_synthetic_write (tape.w, it);
    }
  }
  td_tape_writer_free (tape.w);
  session = open_session (&tape);
  td_session_set_moment (session, 0, 4);
  assert_true (td_session_go (session, TD_VERB_ANOMALY, 1, &message));
  assert_int_equal (td_session_get_moment (session).iteration, 2);
  assert_int_equal (td_session_get_moment (session).event, 1);
  assert_false (td_session_go (session, TD_VERB_ANOMALY, 1, &message));
  assert_string_equal (message, "No anomaly after this moment");
  g_free (message);
  g_object_unref (session);
  (void)state;
}

/* An error that a device found later, in an iteration that is in memory already: it is an
 * anomaly of its event, is red in the graph, and says what had run by then. */
static void
session__shows_what_was_found_later_at_its_event (void **state)
{
  Tape tape = tape_new (0);
  TdTapeFault fault
      = { .iteration = 1, .value = 12, .limit = 10, .element = 7, .event = 3, .site = 1 };
  TdSession *session;
  char *message;

  for (guint64 i = 0; i < 3; i++)
    write_lenet (&tape, i);
  td_tape_writer_flush (tape.w);
  session = open_session (&tape);
  {
    g_autoptr (TdIteration) it = td_session_load_iteration (session, 1, NULL);

    assert_false (td_iteration_is_anomaly (it, 3));
    assert_null (td_iteration_dup_fault (it, 3));
  }
  fault.found_iteration = 2;
  fault.operand = td_tape_writer_string (tape.w, "t");
  td_tape_writer_fault (tape.w, &fault);
  td_tape_writer_flush (tape.w);
  assert_true (td_session_poll (session));
  td_session_set_moment (session, 0, 4);
  assert_true (td_session_go (session, TD_VERB_ANOMALY, 1, &message));
  assert_int_equal (td_session_get_moment (session).iteration, 1);
  assert_int_equal (td_session_get_moment (session).event, 3);
  {
    g_autoptr (TdIteration) it = td_session_load_iteration (session, 1, NULL);
    g_autoptr (TdFold) fold = td_fold_new_depth (td_iteration_get_graph (it), 9);
    g_autoptr (TdVizView) view
        = td_viz_view_new (td_iteration_get_graph (it), fold, TD_VIEW_ALL);
    g_autofree char *text = td_iteration_dup_fault (it, 3);
    const gint node = td_viz_view_find_event (view, 3);
    guint n_failed = 0;

    assert_string_equal (text, "failed: index 12 outside 0..9 at element 7 of t, found in "
                               "iteration 2; backward and update had run");
    for (guint i = 0; i < view->n_nodes; i++)
      n_failed += view->nodes[i].failed;
    assert_int_equal (n_failed, 1);
    assert_true (node >= 0 && view->nodes[node].failed);
    assert_null (td_iteration_dup_fault (it, 4));
  }
  td_tape_writer_free (tape.w);
  g_object_unref (session);
  (void)state;
}

static void
note_loaded (TdSession *session, gint64 number, gpointer data)
{
  (void)session;
  *(gint64 *)data = number;
}

static void
session__loads_in_a_worker (void **state)
{
  Tape tape = tape_new (0);
  TdSession *session;
  gint64 loaded = -1;

  for (guint i = 0; i < 4; i++)
    write_lenet (&tape, i);
  td_tape_writer_free (tape.w);
  session = open_session (&tape);
  g_signal_connect (session, "iteration-loaded", G_CALLBACK (note_loaded), &loaded);
  assert_null (td_session_get_iteration (session, 1));
  while (loaded < 0)
    g_main_context_iteration (NULL, TRUE);
  assert_int_equal (loaded, 1);
  {
    g_autoptr (TdIteration) it = td_session_get_iteration (session, 1);

    assert_non_null (it);
    assert_int_equal (td_iteration_get_number (it), 1);
  }
  td_session_get_iteration (session, 2); /* and go while it is at work */
  g_object_unref (session);
  (void)state;
}

static void
session__iterations_outlive_it (void **state)
{
  Tape tape = tape_new (0);
  TdSession *session;
  TdIteration *it;

  write_lenet (&tape, 0);
  td_tape_writer_free (tape.w);
  session = open_session (&tape);
  it = td_session_load_iteration (session, 0, NULL);
  g_object_unref (session);
  assert_string_equal (td_iteration_get_op_name (it, 12), "softmax_cross_entropy");
  assert_non_null (td_iteration_get_graph (it));
  td_iteration_unref (it);
  (void)state;
}

static void
session__refuses_what_is_no_tape_in_one_line (void **state)
{
  const char *path = td_test_tmp ("garbage.tdtape");
  GError *error = NULL;

  td_test_write_file (path, "this is not a tape", 18);
  assert_null (td_session_open_bounded (path, &error));
  assert_contains (error->message, "garbage.tdtape: ");
  assert_null (strchr (error->message, '\n'));
  g_clear_error (&error);
  assert_null (td_session_open_bounded (td_test_tmp ("missing.tdtape"), &error));
  assert_non_null (error);
  g_clear_error (&error);
  (void)state;
}

static void
cache__drops_what_was_not_looked_at_longest (void **state)
{
  g_autoptr (TdIteration) a = td_synthetic_lenet (1);
  g_autoptr (TdIteration) b = td_synthetic_lenet (2);
  g_autoptr (TdIteration) c = td_synthetic_lenet (3);
  gsize one = td_iteration_get_size (a);
  TdIterationCache *cache = td__iteration_cache_new (2 * one + one / 2);
  gboolean stale;

  td__iteration_cache_put (cache, a);
  td__iteration_cache_put (cache, b);
  assert_ptr_equal (td__iteration_cache_get (cache, 1, NULL), a);
  td__iteration_cache_put (cache, c);
  assert_null (td__iteration_cache_get (cache, 2, NULL));
  assert_ptr_equal (td__iteration_cache_get (cache, 1, NULL), a);
  assert_int_equal (td__iteration_cache_get_bytes (cache), 2 * one);
  td__iteration_cache_set_stale (cache, 3);
  assert_ptr_equal (td__iteration_cache_get (cache, 3, &stale), c);
  assert_true (stale);
  td__iteration_cache_free (cache);
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (session__opens_on_the_loss_of_the_last_whole_iteration),
    td_test (session__expects_what_the_iteration_before_did),
    td_test (session__bounded_one_loads_what_its_list_dropped),
    td_test (session__says_what_killed_the_program_and_where),
    td_test (session__without_an_end_and_without_a_process_is_a_crash),
    td_test (session__takes_the_name_of_the_program_when_the_tape_says_it),
    td_test (session__follows_a_program_that_runs_and_pauses),
    td_test (session__remembers_where_it_was),
    td_test (session__selects_keys_in_order_and_once),
    td_test (session__goes_to_the_same_operation_of_the_next_iteration),
    td_test (session__steps_go_on_over_the_edge_of_an_iteration_and_back),
    td_test (session__the_reverses_of_any_steps_lead_back),
    td_test (session__finds_the_next_anomaly_in_later_iterations),
    td_test (session__shows_what_was_found_later_at_its_event),
    td_test (session__loads_in_a_worker),
    td_test (session__iterations_outlive_it),
    td_test (session__refuses_what_is_no_tape_in_one_line),
    td_test (cache__drops_what_was_not_looked_at_longest),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
