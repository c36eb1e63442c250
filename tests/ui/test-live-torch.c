/* A PyTorch program that runs while the window looks on, in this process: paused and stepped it
 * is followed by the playhead, as one of the engine is.  Runs with the Python that
 * TD_TEST_TORCH names, else with python3; skipped where that has no PyTorch.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "window/td-window-private.h"

static void
run_python (const char *script, const char *const *args)
{
  const char *python = td_test_python ("torch");
  g_autoptr (GFile) file = g_file_new_for_path (script);
  g_auto (GStrv) environment
      = g_environ_setenv (g_get_environ (), "TAPEDECK_PYTHON", python, TRUE);
  environment = g_environ_setenv (environment, "PYTHONDONTWRITEBYTECODE", "1", TRUE);
  td_test_program ("app/tapedeck");
  td_window_set_launch (ui_test_window (), (const char *const *)environment, td_test_tmp (""));
  td_window_run (ui_test_window (), file, args);
}

static void
run_script (void)
{
  const char *args[] = { "-n", "1000000", NULL };
  run_python (td_test_source ("tests/models/life/torch/gpt.py"), args);
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

static const char *
op_at_playhead (void)
{
  static char name[64];
  TdMoment moment = td_session_get_moment (ui_test_session ());
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  g_strlcpy (name, td_iteration_get_op_name (iteration, (guint)moment.event), sizeof name);
  td_iteration_unref (iteration);
  return name;
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

/* Trains, waits for somebody to say go (with operators: before each it listens), makes a NaN
 * that reaches nobody, and writes what the gradient of its first weight was then, and its
 * weights in the end. */
static const char NAN_SCRIPT[]
    = "import json, os, sys, time, torch\n"
      "torch.manual_seed(3)\n"
      "torch.set_num_threads(1)\n"
      "net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, "
      "1))\n"
      "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
      "for i in range(60):\n"
      "    y = net(torch.randn(6, 3))\n"
      "    if i == 40:\n"
      "        while not os.path.exists(sys.argv[1] + '.go'):\n"
      "            time.sleep(0.01); torch.zeros(1)\n"
      "        y.detach().mul(float('nan'))\n"
      "    opt.zero_grad()\n"
      "    y.pow(2).mean().backward()\n"
      "    if i == 40:\n"
      "        with open(sys.argv[1] + '.gradient', 'w') as file:\n"
      "            file.write('%.17g' % net[0].weight.grad.double().sum().item())\n"
      "    opt.step()\n"
      "with open(sys.argv[1] + '.part', 'w') as file:\n"
      "    json.dump([p.double().flatten().tolist() for p in net.parameters()], file)\n"
      "os.rename(sys.argv[1] + '.part', sys.argv[1])\n";

static GtkWidget *
first_entry (GtkWidget *widget)
{
  GtkWidget *found = GTK_IS_ENTRY (widget) ? widget : NULL;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child && !found;
       child = gtk_widget_get_next_sibling (child))
    found = first_entry (child);
  return found;
}

static gboolean
has_break (gpointer text)
{
  TdBreaksPage *page = td_workspace_get_breaks (ui_test_workspace ());
  for (guint i = 0; i < 10; i++)
    {
      g_autofree char *row = td_breaks_page_dup_row (page, i);
      if (row && g_str_equal (row, text))
        return TRUE;
    }
  return FALSE;
}

static gboolean
is_answered (gpointer page)
{
  return !td_evaluate_page_is_reading (page);
}

static gboolean
is_there (gpointer path)
{
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* Select what the event at the playhead has read as its second. */
static void
select_second (void)
{
  TdMoment moment = td_session_get_moment (ui_test_session ());
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  const TdTapeEvent *event = &tape->events[moment.event];
  assert_int_equal (event->n_in, 2);
  guint64 read = tape->vars[tape->ins[event->first_in + 1]].key;
  td_iteration_unref (iteration);
  g_autofree char *key = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", read);
  ui_test_do ("select", key);
}

/* It stops at the NaN by a breakpoint of the window, says a gradient as PyTorch has it, and
 * ends with the weights of a run that nobody has looked at. */
static void
live_torch__stops_at_a_nan_and_ends_as_if_alone (void **state)
{
  g_autofree char *script = g_strdup (td_test_tmp ("nan.py")),
                  *alone = g_strdup (td_test_tmp ("alone")),
                  *shown = g_strdup (td_test_tmp ("shown"));
  g_autofree char *alone_go = g_strconcat (alone, ".go", NULL),
                  *shown_go = g_strconcat (shown, ".go", NULL),
                  *said = g_strconcat (shown, ".gradient", NULL);
  const char *const plain[] = { td_test_python ("torch"), script, alone, NULL };
  const char *const args[] = { shown, NULL };
  int status = -1;
  (void)state;
  td_test_write_file (script, NAN_SCRIPT, strlen (NAN_SCRIPT));
  td_test_write_file (alone_go, "", 0);
  assert_true (g_spawn_sync (NULL, (char **)plain, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                             NULL, &status, NULL));
  assert_int_equal (status, 0);
  run_python (script, args);
  ui_test_wait ("three iterations", has_iterations, GUINT_TO_POINTER (3));
  ui_test_do ("break-when", NULL);
  ui_test_settle ();
  GtkWidget *entry = first_entry (GTK_WIDGET (td_workspace_get_breaks (ui_test_workspace ())));
  gtk_editable_set_text (GTK_EDITABLE (entry), "nan");
  g_signal_emit_by_name (entry, "activate");
  ui_test_wait ("a breakpoint", has_break, (gpointer) "on, nan, stopped 0 times");
  td_test_write_file (shown_go, "", 0);
  ui_test_wait ("a stop", has_break, (gpointer) "on, nan, stopped once");
  ui_test_wait ("a paused program", is_state, (gpointer) "paused");
  TdMoment nan = td_session_get_head (ui_test_session ());
  assert_int_equal (nan.iteration, 40);
  assert_string_equal (op_at_playhead (), "mul");
  live_step ("run-to-update");
  live_step ("step-op"); /* the weight's, which takes its gradient */
  ui_test_wait ("the gradient as PyTorch has it", is_there, said);
  g_autofree char *text = td_test_read_file (said, NULL);
  double wanted = g_ascii_strtod (text, NULL);
  assert_true (wanted != 0);
  select_second ();
  ui_test_wait ("values of the gradient", has_values, NULL);
  const TdTensor *tensor
      = td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ()));
  TdEvaluatePage *page = td_workspace_get_evaluate (ui_test_workspace ());
  double sum = 0;
  for (guint64 i = 0; i < tensor->n_values; i++)
    sum += tensor->values[i];
  assert_int_equal (tensor->n_values, 12);
  assert_true (ABS (sum - wanted) < 1e-12);
  ui_test_save_picture ("live-torch-nan.png");
  td_evaluate_page_enter (page, "sum (\"0/weight.grad\")");
  ui_test_wait ("an answer", is_answered, page);
  assert_int_equal (td_evaluate_page_get_n_read (page), 1);
  const char *answer = td_evaluate_page_get_answer (page);
  gboolean minus = g_str_has_prefix (answer, "−"); /* as minus signs are printed */
  double evaluated = g_ascii_strtod (minus ? answer + strlen ("−") : answer, NULL);
  print_message ("%s, as PyTorch has it %s\n", answer, text);
  assert_true (ABS ((minus ? -evaluated : evaluated) - wanted) < 1e-11 * ABS (wanted));
  ui_test_do ("play", NULL);
  ui_test_wait ("its end", is_there, shown);
  g_autofree char *a = td_test_read_file (alone, NULL), *b = td_test_read_file (shown, NULL);
  assert_string_equal (a, b);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (live_torch__steps_in_backward_and_goes_on),
    ui_test (live_torch__reads_a_gradient_of_the_paused_program),
    ui_test (live_torch__stops_at_a_nan_and_ends_as_if_alone),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
