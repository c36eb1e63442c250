/* Journeys from outside: the app as its own process on its own display and bus, driven by
 * actions over D-Bus and by keys through X, seen through its exported states.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample-tape.h"

#define NAME "io.github.tapedeck.Tapedeck"
#define WINDOW "/io/github/tapedeck/Tapedeck/window/1"

static GDBusConnection *bus;
static GSubprocess *app;

/* ---- seeing ---- */

/* The window's action as it is described on the bus: enabled, and its state as text ("" none).
 */
static gboolean
describe (const char *action, gboolean *enabled, char **state)
{
  g_autoptr (GVariant) reply = g_dbus_connection_call_sync (
      bus, NAME, WINDOW, "org.gtk.Actions", "Describe", g_variant_new ("(s)", action), NULL,
      G_DBUS_CALL_FLAGS_NO_AUTO_START, td_test_patience_ms (), NULL, NULL);
  g_autoptr (GVariantIter) states = NULL;
  g_autoptr (GVariant) value = NULL;
  if (!reply)
    return FALSE;
  g_variant_get (reply, "((bgav))", enabled, NULL, &states);
  g_variant_iter_next (states, "v", &value);
  *state = value ? g_variant_dup_string (value, NULL) : g_strdup ("");
  return TRUE;
}

static char *
dup_state (const char *name)
{
  gboolean enabled;
  char *state = NULL;
  return describe (name, &enabled, &state) ? state : g_strdup ("");
}

static void
get_moment (gint64 *iteration, int *event)
{
  g_autofree char *text = dup_state ("moment");
  g_auto (GStrv) parts = g_strsplit (text, "/", 3);
  *iteration = parts[0] ? g_ascii_strtoll (parts[0], NULL, 10) : -1;
  *event = parts[0] && parts[1] ? atoi (parts[1]) : -1;
}

static gboolean
wake (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

typedef gboolean (*Condition) (const char *argument);

/* Ask again whenever the app says that something changed, and ten times a second. */
static void
wait_until (const char *what, Condition met, const char *argument)
{
  gint64 until = g_get_monotonic_time () + td_test_patience_ms () * (gint64)1000;
  guint timer = g_timeout_add (100, wake, NULL);
  while (!met (argument))
    {
      if (g_get_monotonic_time () > until)
        {
          g_autofree char *state = dup_state ("state");
          g_autofree char *moment = dup_state ("moment");
          fail_msg ("waited in vain for %s %s (state %s, moment %s)", what,
                    argument ? argument : "", state, moment);
        }
      g_main_context_iteration (NULL, TRUE);
    }
  g_source_remove (timer);
}

static gboolean
is_state (const char *wanted)
{
  g_autofree char *state = dup_state ("state");
  return g_str_equal (state, wanted);
}

static gboolean
is_moment (const char *wanted)
{
  g_autofree char *moment = dup_state ("moment");
  return g_str_equal (moment, wanted);
}

static gboolean
moment_is_not (const char *old)
{
  return !is_moment (old);
}

static gboolean
is_enabled (const char *action)
{
  gboolean enabled = FALSE;
  g_autofree char *state = NULL;
  return describe (action, &enabled, &state) && enabled;
}

static gboolean
has_selection (const char *unused)
{
  g_autofree char *selected = dup_state ("selected");
  return *selected != '\0';
}

static gboolean
has_iteration (const char *number)
{
  gint64 iteration;
  int event;
  get_moment (&iteration, &event);
  return iteration >= g_ascii_strtoll (number, NULL, 10);
}

static gboolean
file_exists (const char *path)
{
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* ---- doing ---- */

static void
act (const char *action, const char *parameter)
{
  GVariantBuilder parameters;
  g_autoptr (GError) error = NULL;
  wait_until ("the action", is_enabled, action);
  g_variant_builder_init (&parameters, G_VARIANT_TYPE ("av"));
  if (parameter)
    g_variant_builder_add (&parameters, "v", g_variant_new_string (parameter));
  g_autoptr (GVariant) reply = g_dbus_connection_call_sync (
      bus, NAME, WINDOW, "org.gtk.Actions", "Activate",
      g_variant_new ("(sava{sv})", action, &parameters, NULL), NULL,
      G_DBUS_CALL_FLAGS_NO_AUTO_START, td_test_patience_ms (), NULL, &error);
  if (!reply)
    fail_msg ("%s: %s", action, error->message);
}

/* A key as the user presses it, to the window that has the focus of X. */
static void
press (const char *key)
{
  g_autofree char *command = g_strdup_printf (
      "id=$(xdotool search --sync --onlyvisible --class tapedeck | tail -1) && "
      "xdotool windowfocus --sync $id && xdotool key %s",
      key);
  const char *const argv[] = { "sh", "-c", command, NULL };
  TdTestChild child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
start_app (const char *const *arguments)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  g_ptr_array_add (argv, (gpointer)td_test_program ("app/tapedeck-app"));
  for (; *arguments; arguments++)
    g_ptr_array_add (argv, (gpointer)*arguments);
  g_ptr_array_add (argv, NULL);
  app = g_subprocess_newv ((const char *const *)argv->pdata, G_SUBPROCESS_FLAGS_STDOUT_SILENCE,
                           &error);
  if (!app)
    fail_msg ("%s", error->message);
}

static void
start_model (void)
{
  td_test_program ("app/tapedeck");
  start_app ((const char *const[]){ "--run", td_test_source ("tests/ui/models/train.c"),
                                    td_test_tmp ("pid"), NULL });
  wait_until ("a running program", is_state, "running");
  wait_until ("iteration", has_iteration, "5");
}

static void
pause_model (void)
{
  start_model ();
  act ("pause", NULL);
  wait_until ("a paused program", is_state, "paused");
}

/* A program goes on when its window is killed: end it, and its supervisor with it. */
static void
end_model (void)
{
  g_autofree char *text = NULL;
  pid_t pid = 0;

  if (g_file_get_contents (td_test_tmp ("pid"), &text, NULL, NULL))
    pid = (pid_t)atoi (text);
  if (pid > 0)
    kill (pid, SIGKILL);
}

static int
teardown (void **state)
{
  if (app)
    {
      g_subprocess_force_exit (app);
      g_subprocess_wait (app, NULL, NULL);
    }
  g_clear_object (&app);
  end_model ();
  return td_test_teardown (state);
}

/* ---- journeys ---- */

static void
journey__open_a_model_and_watch_it_run (void **state)
{
  start_model ();
  wait_until ("iteration", has_iteration, "50");
  assert_true (is_enabled ("pause"));
  assert_true (is_enabled ("detach"));
}

static void
journey__pause_and_step_over_an_operation (void **state)
{
  pause_model ();
  for (int i = 0; i < 3; i++)
    {
      g_autofree char *before = dup_state ("moment");
      press ("F12");
      wait_until ("a moment after", moment_is_not, before);
    }
  g_autofree char *before = dup_state ("moment");
  press ("F7");
  wait_until ("a moment after", moment_is_not, before);
  assert_true (is_state ("paused"));
}

static void
journey__step_into_backward_and_back (void **state)
{
  gint64 iteration, again;
  int event, before;
  pause_model ();
  g_autofree char *here = dup_state ("moment");
  act ("run-to-backward", NULL);
  wait_until ("a moment after", moment_is_not, here);
  get_moment (&iteration, &event);
  press ("F8");
  g_autofree char *first = g_strdup_printf ("%" G_GINT64_FORMAT "/%d/0", iteration, event + 1);
  wait_until ("moment", is_moment, first);
  press ("shift+F12");
  g_autofree char *back = g_strdup_printf ("%" G_GINT64_FORMAT "/%d/0", iteration, event);
  wait_until ("moment", is_moment, back);
  assert_true (is_state ("paused"));
  get_moment (&again, &before);
  assert_int_equal (again, iteration);
}

static void
journey__jump_to_another_iteration (void **state)
{
  pause_model ();
  act ("go-to", "i=2&e=1");
  wait_until ("moment", is_moment, "2/1/0");
  press ("alt+Page_Down");
  wait_until ("moment", is_moment, "3/1/0");
  press ("alt+Left");
  wait_until ("moment", is_moment, "2/1/0");
}

static void
journey__open_a_saved_tape_and_select_a_node (void **state)
{
  const SampleOptions options = { .n_iterations = 20, .nan_at = -1 };
  const char *path = td_test_tmp ("sample.tdtape");
  const char *picture = td_test_tmp ("graph.svg");
  size_t n;

  sample_tape_write (path, &options);
  start_app ((const char *const[]){ path, NULL });
  wait_until ("an ended program", is_state, "ended");
  act ("go-to", "i=7&e=3");
  wait_until ("moment", is_moment, "7/3/0");
  act ("expand-all", NULL);
  act ("select", "softmax_cross_entropy");
  wait_until ("a selection", has_selection, NULL);
  act ("run-to-cursor", NULL);
  wait_until ("moment", is_moment, "7/12/0");
  act ("save-picture", picture);
  wait_until ("the picture", file_exists, picture);
  char *svg = td_test_read_file (picture, &n);
  assert_contains (svg, "softmax_cross_entropy");
  free (svg);
}

static void
journey__model_killed_and_the_window_goes_on (void **state)
{
  size_t n;
  start_model ();
  char *pid = td_test_read_file (td_test_tmp ("pid"), &n);
  assert_int_equal (kill ((pid_t)atoi (pid), SIGKILL), 0);
  free (pid);
  wait_until ("a crash", is_state, "crashed");
  act ("go-to", "i=1&e=0");
  wait_until ("moment", is_moment, "1/0/0");
  act ("step-op", NULL);
  wait_until ("moment", is_moment, "1/1/0");
  assert_false (is_enabled ("pause"));
}

static gboolean
is_longer (const char *path)
{
  static gint64 first;
  GStatBuf info;
  gint64 size = g_stat (path, &info) == 0 ? info.st_size : 0;
  if (!first)
    first = size;
  return size > first;
}

static char *
dup_log_of_run (void)
{
  g_autofree char *runs = g_build_filename (g_get_user_state_dir (), "tapedeck", "runs", NULL);
  gint64 pid = g_ascii_strtoll (g_subprocess_get_identifier (app), NULL, 10);
  g_autofree char *mine = g_strdup_printf ("-%" G_GINT64_FORMAT, pid);
  g_autoptr (GDir) dir = g_dir_open (runs, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name (dir)))
    if (g_str_has_suffix (name, mine))
      return g_build_filename (runs, name, "stdout.log", NULL);
  return g_strdup ("");
}

/* It stood at a breakpoint of the app, and it prints: neither may hurt when the app is gone. */
static void
journey__detach_and_quit_and_the_program_goes_on (void **state)
{
  size_t n;
  pause_model ();
  act ("go-to", "i=2&e=0");
  act ("select", "relu");
  act ("toggle-breakpoint", NULL);
  char *text = td_test_read_file (td_test_tmp ("pid"), &n);
  pid_t pid = (pid_t)atoi (text);
  free (text);
  g_autofree char *log = dup_log_of_run ();
  act ("detach", NULL);
  act ("close", NULL);
  g_subprocess_wait (app, NULL, NULL);
  assert_int_equal (g_subprocess_get_exit_status (app), 0);
  wait_until ("what the program prints", is_longer, log);
  assert_int_equal (kill (pid, 0), 0);
  assert_true (getsid (pid) != getsid (0)); /* nor would the end of a terminal hurt */
  assert_int_equal (kill (pid, SIGTERM), 0);
}

static gboolean
has_ended (const char *pid)
{
  return kill ((pid_t)atoi (pid), 0) != 0;
}

static void
both_end (int signal)
{
  size_t n;
  char *pid = td_test_read_file (td_test_tmp ("pid"), &n);
  g_subprocess_send_signal (app, signal);
  g_subprocess_wait (app, NULL, NULL);
  assert_true (g_subprocess_get_if_exited (app));
  wait_until ("the end of the program", has_ended, pid);
  free (pid);
}

/* Ctrl+C in the terminal reaches the app alone: it takes the program with it. */
static void
journey__interrupt_ends_the_app_and_its_program (void **state)
{
  start_model ();
  both_end (SIGINT);
}

/* A program that stands would stand for ever. */
static void
journey__termination_ends_the_app_and_a_program_that_is_paused (void **state)
{
  pause_model ();
  both_end (SIGTERM);
}

/* The loop wakes up for it: conditions are looked at again. */
static void
changed (GDBusConnection *connection, const char *sender, const char *path,
         const char *interface, const char *signal, GVariant *parameters, gpointer data)
{
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (journey__open_a_model_and_watch_it_run, td_test_setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (journey__pause_and_step_over_an_operation, td_test_setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (journey__step_into_backward_and_back, td_test_setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (journey__jump_to_another_iteration, td_test_setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (journey__open_a_saved_tape_and_select_a_node,
                                     td_test_setup, teardown),
    cmocka_unit_test_setup_teardown (journey__model_killed_and_the_window_goes_on,
                                     td_test_setup, teardown),
    cmocka_unit_test_setup_teardown (journey__interrupt_ends_the_app_and_its_program,
                                     td_test_setup, teardown),
    cmocka_unit_test_setup_teardown (
        journey__termination_ends_the_app_and_a_program_that_is_paused, td_test_setup,
        teardown),
    cmocka_unit_test_setup_teardown (journey__detach_and_quit_and_the_program_goes_on,
                                     td_test_setup, teardown),
  };
  bus = g_bus_get_sync (G_BUS_TYPE_SESSION, NULL, NULL);
  if (!bus || !g_find_program_in_path ("xdotool"))
    return 77;
  if (g_getenv ("TD_TEST_FILTER"))
    cmocka_set_test_filter (g_getenv ("TD_TEST_FILTER"));
  g_dbus_connection_signal_subscribe (bus, NAME, "org.gtk.Actions", "Changed", WINDOW, NULL,
                                      G_DBUS_SIGNAL_FLAGS_NONE, changed, NULL, NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
