/* Programs that run while the window looks on, in this process: models are compiled and started
 * by `tapedeck run`, stepped through its socket, and end in every way a program can.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <glib/gstdio.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schedule/td-curve.h"
#include "window/td-window-private.h"

/* Start tests/ui/models/NAME.c with a place for its process id, the way it shall end, and the
 * folder for its socket. */
static void
run_model_in (const char *name, const char *end, const char *runtime)
{
  g_autofree char *relative = g_strdup_printf ("tests/ui/models/%s.c", name);
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source (relative));
  const char *args[] = { td_test_tmp ("pid"), end, NULL };
  g_auto (GStrv) environment
      = g_environ_setenv (g_get_environ (), "XDG_RUNTIME_DIR", runtime, TRUE);

  td_test_program ("app/tapedeck");
  td_window_set_launch (ui_test_window (), (const char *const *)environment, td_test_tmp (""));
  td_window_run (ui_test_window (), file, args);
}

static void
run_model (const char *name, const char *end)
{
  run_model_in (name, end, g_getenv ("XDG_RUNTIME_DIR"));
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
pause_running (void)
{
  ui_test_wait ("a program that can be paused", can_pause, NULL);
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
}

static void
pause_model (void)
{
  run_model ("train", NULL);
  ui_test_wait ("ten iterations", has_iterations, GUINT_TO_POINTER (10));
  pause_running ();
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

static gboolean
status_says (gpointer words)
{
  return strstr (gtk_label_get_text (GTK_LABEL (ui_test_named ("deck-status"))), words) != NULL;
}

/* As the supervisor says it, and what it says less often. */
static void
live__says_what_recording_costs_and_what_is_lost (void **state)
{
  const TdCost waits = { .cost_ns = 30, .ran_ns = 1000, .n_waits = 3, .tape_bytes = 1000 },
               lost = { .tape_bytes = 1000, .is_lost = TRUE };
  GtkWidget *status;
  run_model ("train", NULL);
  ui_test_wait ("ten iterations", has_iterations, GUINT_TO_POINTER (10));
  ui_test_wait ("a cost in the deck", status_says, (gpointer) " · recording ");
  status = ui_test_named ("deck-status");
  assert_non_null (strstr (gtk_label_get_text (GTK_LABEL (status)), " %"));
  assert_non_null (strstr (gtk_widget_get_tooltip_text (status), "of the program's time"));
  assert_non_null (strstr (gtk_widget_get_tooltip_text (status), "The tape has "));
  assert_non_null (strstr (gtk_widget_get_tooltip_text (status), "No record was lost"));
  ui_test_save_picture ("live-cost.png");
  pause_running ();
  td__window_end_cost (ui_test_window ());
  td_workspace_set_cost (ui_test_workspace (), &waits);
  assert_true (status_says ((gpointer) " · recording 3.0 % · waited 3 times"));
  td_workspace_set_cost (ui_test_workspace (), &lost);
  assert_true (status_says ((gpointer) " · recording lost"));
  assert_non_null (
      strstr (gtk_widget_get_tooltip_text (status), "Nothing is recorded any more"));
}

/* The program listens in a folder where the window does not look; the socket comes there once
 * the window has the tape and has looked in vain. */
static void
live__connects_though_the_socket_comes_late (void **state)
{
  const char *theirs = td_test_tmp ("theirs"), *ours = td_test_tmp ("ours");
  assert_int_equal (mkdir (theirs, 0700), 0);
  assert_int_equal (mkdir (ours, 0700), 0);
  g_setenv ("XDG_RUNTIME_DIR", ours, TRUE);
  run_model_in ("train", NULL, theirs);
  ui_test_wait ("ten iterations", has_iterations, GUINT_TO_POINTER (10));
  assert_false (can_pause (NULL));
  const char *address = td_runner_get_address (ui_test_window ()->runner);
  g_autofree char *name = g_path_get_basename (address);
  g_autofree char *socket = g_build_filename (theirs, "tapedeck", name, NULL);
  assert_int_equal (g_rename (socket, address), 0);
  pause_running ();
  live_step ("step-op");
}

/* As after su: what is set is another user's, or a folder that nobody can write to. */
static void
live__steps_where_the_runtime_folder_cannot_be_used (void **state)
{
  const char *folder = td_test_tmp ("not-ours");
  assert_int_equal (mkdir (folder, 0700), 0);
  if (getuid () == 0)
    assert_int_equal (chown (folder, 65534, 65534), 0);
  else
    assert_int_equal (chmod (folder, 0500), 0);
  g_setenv ("XDG_RUNTIME_DIR", folder, TRUE);
  pause_model ();
  live_step ("step-op");
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

/* Do a step, of the program or over what was recorded. FALSE: there was nowhere to go. */
static gboolean
step_anywhere (const char *action)
{
  TdMoment at = td_session_get_moment (ui_test_session ());
  TdMoment head = td_session_get_head (ui_test_session ());
  g_autofree char *before = ui_test_state ("moment");
  ui_test_do (action, NULL);
  if (!g_str_has_prefix (action, "reverse") && !g_str_has_prefix (action, "previous")
      && at.iteration == head.iteration && at.event == head.event)
    {
      ui_test_wait (action, moment_differs, before);
      ui_test_wait ("a paused program", is_state, (gpointer) "paused");
      return TRUE;
    }
  return moment_differs (before);
}

/* The program stops before an operation, also before the first of an iteration. */
static void
live__the_reverses_of_any_steps_lead_back (void **state)
{
  static const char *const pairs[][2] = { { "step-op", "reverse-step-op" },
                                          { "step-over", "reverse-step-over" },
                                          { "step-into", "reverse-step-into" },
                                          { "next-iteration", "previous-iteration" } };
  guint edges = 0;
  pause_model ();
  for (guint32 seed = 1; seed <= 4; seed++)
    {
      g_autoptr (GRand) random = g_rand_new_with_seed (seed);
      guint done[20][2], n = 0;
      g_autofree char *start = ui_test_state ("moment");
      for (guint k = 0; k < G_N_ELEMENTS (done); k++)
        {
          guint pair = (guint)g_rand_int_range (random, 0, G_N_ELEMENTS (pairs));
          guint back = g_rand_int_range (random, 0, 4) == 0;
          if (step_anywhere (pairs[pair][back]))
            done[n][0] = pair, done[n++][1] = back;
          edges += td_session_get_moment (ui_test_session ()).event == -1;
        }
      while (n-- > 0)
        step_anywhere (pairs[done[n][0]][!done[n][1]]);
      g_autofree char *end = ui_test_state ("moment");
      if (strcmp (start, end) != 0)
        fail_msg ("seed %u: %s instead of %s", seed, end, start);
    }
  assert_true (edges > 2); /* it stood before the first operation, too */
}

/* Pause, and select an operation of an iteration that is whole. */
static void
select_op_of_paused_model (const char *op)
{
  pause_model ();
  TdMoment head = td_session_get_head (ui_test_session ());
  g_autofree char *link = g_strdup_printf ("i=%" G_GINT64_FORMAT "&e=0", head.iteration - 1);
  ui_test_do ("go-to", link);
  ui_test_do ("select", op);
}

static const char *
op_at_playhead (void)
{
  static char name[64];
  TdMoment moment = td_session_get_moment (ui_test_session ());
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  assert_true (moment.event >= 0
               && (guint)moment.event < td_iteration_get_n_events (iteration));
  g_strlcpy (name, td_iteration_get_op_name (iteration, (guint)moment.event), sizeof name);
  td_iteration_unref (iteration);
  return name;
}

/* Let the program run and see that nothing stops it any more. */
static void
run_freely (void)
{
  guint now = td_session_get_n_iterations (ui_test_session ());
  ui_test_do ("play", NULL);
  ui_test_wait ("more iterations", has_iterations, GUINT_TO_POINTER (now + 50));
  assert_true (is_state ((gpointer) "running"));
}

static gboolean
stands_elsewhere (gpointer data)
{
  const TdMoment *before = data;
  TdMoment head = td_session_get_head (ui_test_session ());
  return is_state ((gpointer) "paused")
         && (head.iteration != before->iteration || head.event != before->event);
}

/* Do what lets the program run, and wait until it has stopped again. */
static void
run_and_stop (const char *action)
{
  TdMoment before = td_session_get_head (ui_test_session ());
  ui_test_do (action, NULL);
  ui_test_wait (action, stands_elsewhere, &before);
}

typedef struct
{
  gint64 n;
  gboolean known;
} Count;

static void
count_breaks (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Count *count = data;
  JsonArray *breaks = answer && json_object_has_member (answer, "breaks")
                          ? json_object_get_array_member (answer, "breaks")
                          : NULL;
  count->n = breaks ? (gint64)json_array_get_length (breaks) : -1;
  count->known = TRUE;
}

static gboolean
is_known (gpointer count)
{
  return ((Count *)count)->known;
}

/* Ask the program, as another client, how many breakpoints it has. */
static gint64
n_breaks (const char *address)
{
  Count count = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (TdControlClient) control = td_control_client_new (address, &error);
  assert_non_null (control);
  td_control_client_send (control, "breaks", count_breaks, &count);
  ui_test_wait ("the list of breakpoints", is_known, &count);
  td_control_client_close (control);
  return count.n;
}

/* Commands of two clients have no order: ask until the answer is `n`. */
static void
assert_n_breaks (const char *address, gint64 n)
{
  gint64 now = n_breaks (address);
  for (int i = 0; i < 500 && now != n; i++)
    now = n_breaks (address);
  assert_int_equal (now, n);
}

static void
live__second_toggle_takes_the_breakpoint_back (void **state)
{
  select_op_of_paused_model ("relu");
  const char *address = td_runner_get_address (ui_test_window ()->runner);
  gint64 before = n_breaks (address);
  ui_test_do ("toggle-breakpoint", NULL);
  for (int i = 0; i < 3; i++)
    run_and_stop ("play"); /* it stops there in each iteration */
  assert_n_breaks (address, before + 1);
  ui_test_do ("toggle-breakpoint", NULL);
  assert_n_breaks (address, before);
  run_freely ();
}

static void
live__runs_to_the_cursor_once (void **state)
{
  select_op_of_paused_model ("relu");
  const char *address = td_runner_get_address (ui_test_window ()->runner);
  gint64 before = n_breaks (address);
  run_and_stop ("run-to-cursor");
  assert_string_equal (op_at_playhead (), "mul"); /* the one before it ran last */
  assert_n_breaks (address, before);
  run_freely ();
}

/* In the middle of an iteration the picture is whole: what is to come is taken from the
 * iteration before, and is no part of what can be stepped to. */
static void
live__shows_what_is_still_to_come (void **state)
{
  pause_model ();
  live_step ("next-iteration");
  live_step ("run-to-backward");
  live_step ("step-into");
  TdMoment moment = td_session_get_moment (ui_test_session ());
  g_autoptr (TdIteration) now = td_session_get_current (ui_test_session ());
  g_autoptr (TdIteration) whole
      = td_session_load_iteration (ui_test_session (), moment.iteration - 1, NULL);
  g_autoptr (TdIteration) expected = td_session_get_expected (ui_test_session ());
  guint n_run = td_iteration_get_n_events (now);
  assert_true (n_run < td_iteration_get_n_events (whole));
  assert_int_equal (td_iteration_get_n_events (expected), td_iteration_get_n_events (whole));
  assert_int_equal (td_iteration_get_n_run (expected), n_run);
  assert_int_equal (td_iteration_get_number (expected), moment.iteration);
  assert_false (td_iteration_is_complete (expected));

  TdOutlinePage *outline = td_workspace_get_outline (ui_test_workspace ());
  td_outline_page_expand_all (outline, TRUE);
  guint n_rows = td_outline_page_get_n_rows (outline);
  assert_true (n_rows >= td_iteration_get_n_events (whole));
  assert_true (*td_outline_page_get_waiting (outline)); /* which can run next is known */
  ui_test_wait_for_layout ();
  ui_test_save_picture ("to-come.png");

  ui_test_do ("last-event", NULL); /* the last that ran */
  assert_moment (moment.iteration, (gint)n_run - 1);
  live_step ("next-iteration"); /* it ended as was expected, and another begins */
  ui_test_do ("play", NULL);
  ui_test_wait ("a running program", is_state, (gpointer) "running");
}

static gboolean
shows_progress (gpointer unused)
{
  return gtk_widget_get_mapped (GTK_WIDGET (ui_test_window ()->progress))
         && gtk_progress_bar_get_fraction (ui_test_window ()->progress) > 0.0005;
}

/* A trainer that says how long it will train is seen to come nearer. */
static void
live__shows_how_far_a_trainer_is (void **state)
{
  run_model ("train", NULL);
  ui_test_wait ("ten iterations", has_iterations, GUINT_TO_POINTER (10));
  assert_false (gtk_widget_get_visible (GTK_WIDGET (ui_test_window ()->progress)));
  ui_test_new_window ();
  run_model ("trainer", NULL);
  ui_test_wait ("progress", shows_progress, NULL);
  ui_test_save_picture ("progress.png");
  TdCurves *curves = td_session_get_curves (ui_test_session ());
  double fraction = gtk_progress_bar_get_fraction (ui_test_window ()->progress);
  assert_true (fraction <= 1 && fraction <= td_curves_progress (curves) + 0.001);
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

static gboolean
log_has (gpointer words)
{
  g_autofree char *text = td_log_page_dup_text (td_workspace_get_log (ui_test_workspace ()));
  return strstr (text, words) != NULL;
}

static void
live__shows_what_the_model_prints (void **state)
{
  run_model ("train", NULL);
  ui_test_wait ("what the model prints", log_has, (gpointer) "iteration 0\n");
  ui_test_wait ("more of it", log_has, (gpointer) "iteration 2000\n");
  g_autofree char *text = td_log_page_dup_text (td_workspace_get_log (ui_test_workspace ()));
  const char *before = strstr (text, "iteration 1000\n");
  assert_non_null (before); /* in the order in which it was printed */
  assert_true (before < strstr (text, "iteration 2000\n"));
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

#ifdef __SANITIZE_ADDRESS__
/* Of the sanitizer's library; gcc's packages have no header for it. */
size_t __sanitizer_get_current_allocated_bytes (void);
#endif

/* What the window holds: the blocks that are allocated. Not the memory that it has: pictures
 * shared with the X server come and go (5 MB, measured), and a sanitizer keeps what was freed
 * to see who still uses it (20 MB). */
static gsize
held_bytes (void)
{
#ifdef __SANITIZE_ADDRESS__
  return __sanitizer_get_current_allocated_bytes ();
#else
  struct mallinfo2 all = mallinfo2 ();
  return all.uordblks + all.hblkhd;
#endif
}

/* However long it runs: what is kept of iterations has a bound. Measured with the bounds as
 * they are (131,072 summaries, 65,536 values of a curve): 65 MB of heap at 200,000 iterations,
 * 71 MB at 2,900,000, of which most are the cache. Here the bounds are low, so that they are
 * reached. */
#define FIRST_ITERATIONS 60000
#define WATCHED_ITERATIONS 240000
#define FLAT_BYTES (4 << 20) /* 180,000 summaries of 64 bytes would be 11 MB */

static gboolean
has_come_to (gpointer iteration)
{
  return td_session_get_head (ui_test_session ()).iteration >= GPOINTER_TO_INT (iteration);
}

static void
live__memory_is_flat_however_long_the_program_runs (void **state)
{
  run_model ("train", NULL);
  ui_test_wait ("2000 iterations", has_iterations, GUINT_TO_POINTER (2000));
  TdSession *session = ui_test_session ();
  td_session_set_cache_bytes (session, 1 << 20);
  td_tape_reader_bound (td_session_get_reader (session), 4096);
  td_curves_set_limit (td_session_get_curves (session), 2048);
  ui_test_wait ("the first iterations", has_come_to, GINT_TO_POINTER (FIRST_ITERATIONS));
  assert_in_range (td_session_get_n_iterations (session), 1024, 4097);
  gint64 first = td_session_get_head (session).iteration;
  gsize before = held_bytes ();
  ui_test_wait ("the last iterations", has_come_to,
                GINT_TO_POINTER (first + WATCHED_ITERATIONS - FIRST_ITERATIONS));
  gint64 last = td_session_get_head (session).iteration;
  gsize after = held_bytes ();
  print_message ("held: %.1f MB at %" G_GINT64_FORMAT
                 " iterations, %.1f MB at %" G_GINT64_FORMAT "\n",
                 (double)before / 1e6, first, (double)after / 1e6, last);
  assert_true (after < before + FLAT_BYTES);
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
  g_autofree char *address = g_build_filename (g_getenv ("XDG_RUNTIME_DIR"), name, NULL);
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

/* What the program prints outlives the app: a file, and not a pipe into it. */
static void
detach__leaves_no_pipe_and_no_breakpoint (void **state)
{
  size_t n;
  select_op_of_paused_model ("relu");
  g_autofree char *address = g_strdup (td_runner_get_address (ui_test_window ()->runner));
  char *text = td_test_read_file (td_test_tmp ("pid"), &n);
  int pid = atoi (text);
  free (text);
  ui_test_do ("toggle-breakpoint", NULL);
  assert_n_breaks (address, 2); /* and the one on errors */
  for (int fd = 1; fd <= 2; fd++)
    {
      g_autofree char *link = g_strdup_printf ("/proc/%d/fd/%d", pid, fd);
      g_autofree char *target = g_file_read_link (link, NULL);
      assert_non_null (target);
      assert_true (g_file_test (target, G_FILE_TEST_IS_REGULAR));
    }
  ui_test_do ("detach", NULL);
  guint before = td_session_get_n_iterations (ui_test_session ());
  ui_test_wait ("more iterations", has_iterations, GUINT_TO_POINTER (before + 20));
  assert_n_breaks (address, 0);
  ui_test_new_window ();
  assert_int_equal (kill (pid, 0), 0);
  assert_n_breaks (address, 0); /* its supervisor answers, too */
  assert_int_equal (kill (pid, SIGTERM), 0);
  ui_test_wait ("the end of the program", is_gone, GINT_TO_POINTER (pid));
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

/* The picture is there from a first pass; the second waits for its first step. */
static void
model__of_another_program_is_whole_and_waits (void **state)
{
  g_autoptr (GFile) file
      = g_file_new_for_path (td_test_source ("tests/golden/onnx/pictures.onnx"));
  td_test_program ("app/tapedeck");
  td_window_open (ui_test_window (), file);
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
  assert_int_equal (td_session_get_n_iterations (ui_test_session ()), 2);
  TdMoment moment = td_session_get_moment (ui_test_session ());
  assert_int_equal (moment.iteration, 1);
  assert_int_equal (moment.event, -1); /* nothing of it has run, and of the first pass all */
  g_autoptr (TdIteration) first = td_session_load_iteration (ui_test_session (), 0, NULL);
  assert_true (td_iteration_get_tape (first)->n_events > 20);
  live_step ("step-op");
  assert_int_equal (td_session_get_moment (ui_test_session ()).event, 0);
  assert_int_equal (phase_at_playhead (), TD_TAPE_PHASE_FORWARD);
  ui_test_do ("play", NULL);
  ui_test_wait ("the end of the program", is_state, (gpointer) "ended");
  assert_int_equal (td_session_get_n_iterations (ui_test_session ()), 2);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (model__that_does_not_compile_is_a_page_with_file_and_line),
    ui_test (model__of_another_program_is_whole_and_waits),
    ui_test (live__shows_what_the_model_prints),
    ui_test (live__pauses_steps_and_continues),
    ui_test (live__says_what_recording_costs_and_what_is_lost),
    ui_test (live__connects_though_the_socket_comes_late),
    ui_test (live__steps_where_the_runtime_folder_cannot_be_used),
    ui_test (live__steps_into_backward_and_back_over_what_was_recorded),
    ui_test (live__the_reverses_of_any_steps_lead_back),
    ui_test (live__second_toggle_takes_the_breakpoint_back),
    ui_test (live__runs_to_the_cursor_once),
    ui_test (live__shows_how_far_a_trainer_is),
    ui_test (live__shows_what_is_still_to_come),
    ui_test (live__reads_values_of_the_paused_program),
    ui_test (live__killed_model_is_said_and_the_window_stays_usable),
    ui_test (live__memory_is_flat_however_long_the_program_runs),
    ui_test (live__every_end_is_said),
    ui_test (close__ends_the_program),
    ui_test (detach__leaves_no_pipe_and_no_breakpoint),
    ui_test (attach__controls_a_foreign_program_and_leaves_it_running),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
