/* Programs of the window: starting a model under supervision, connecting to its socket, looking
 * on while it runs, and what is said when it ends. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "pages/td-record-page.h"
#include "live/td-runs.h"
#include "settings/td-settings.h"

/* Of a program that has not come to an operation yet. */
#define WAITING_LINES 4
/* A machine that is very busy may be late with the socket; 10 s are patience enough. */
#define CONNECT_AGAIN_MS 200
#define KEEP_TO_BUDGET_MS 2000
#define MAX_CONNECTS 50

static void
control_closed (TdControlClient *control, TdWindow *self)
{
  if (self->session && !self->runner)
    td_session_set_attached (self->session, FALSE);
  td__window_list_breaks (self);
  td__window_update_actions (self);
}

/* Whatever it stopped at, a run to the cursor is over. */
static void
control_event (TdControlClient *control, JsonObject *event, TdWindow *self)
{
  const char *what = json_object_get_string_member_with_default (event, "event", "");
  if (strcmp (what, "stopped") == 0)
    {
      td__window_end_run_to (self);
      td__window_list_breaks (self);
    }
  else if (strcmp (what, "notice") == 0) /* recording has stopped: the tape may not say so */
    td__window_toast (self,
                      json_object_get_string_member_with_default (event, "text", "A notice"));
}

void
td__window_connect (TdWindow *self, const char *address)
{
  g_autoptr (GError) error = NULL;
  if (self->control && td_control_client_is_open (self->control))
    return;
  g_clear_object (&self->control);
  self->once = 0;
  g_ptr_array_set_size (self->own_breaks, 0);
  self->control = td_control_client_new (address, &error);
  if (self->control)
    {
      g_signal_connect_object (self->control, "closed", G_CALLBACK (control_closed), self, 0);
      g_signal_connect_object (self->control, "event", G_CALLBACK (control_event), self, 0);
      td__window_ask_cost (self);
      if (self->session)
        td_session_set_attached (self->session, TRUE);
    }
  td__window_list_breaks (self);
  td__window_update_actions (self);
}

static void
run_output (TdRunner *runner, const char *line, gboolean is_stderr, TdWindow *self)
{
  td_workspace_append_log (self->workspace, line, is_stderr);
}

static gboolean
connect_to_runner (TdWindow *self)
{
  td__window_connect (self, td_runner_get_address (self->runner));
  if (self->stop && *self->stop) /* the program has it from its start: it is this window's */
    g_ptr_array_add (self->own_breaks, g_strdup (self->stop));
  if (!self->control)
    return FALSE;
  td_control_client_send (self->control, "hello", NULL, NULL); /* who says something stays */
  return TRUE;
}

/* Without its control the program could never be paused: it is tried as long as there is a
 * program that runs. */
static gboolean
connect_again (gpointer data)
{
  TdWindow *self = data;
  TdProgramState state
      = self->session ? td_session_get_state (self->session) : TD_PROGRAM_RUNNING;
  gboolean runs = self->runner && td_runner_is_running (self->runner) && !self->control
                  && (state == TD_PROGRAM_RUNNING || state == TD_PROGRAM_PAUSED);
  if (runs && !connect_to_runner (self) && ++self->n_connects < MAX_CONNECTS)
    return G_SOURCE_CONTINUE;
  self->connecting = 0;
  return G_SOURCE_REMOVE;
}

static void
run_has_tape (TdRunner *runner, TdWindow *self)
{
  gboolean connected = connect_to_runner (self);
  g_autoptr (GFile) file = g_file_new_for_path (td_runner_get_tape (runner));
  if (td__window_open_tape (self, td_runner_get_tape (runner)))
    td__window_remember (file);
  self->n_connects = 1;
  if (!connected && !self->connecting)
    self->connecting = g_timeout_add (CONNECT_AGAIN_MS, connect_again, self);
}

/* A model that never came to an operation has no recording to show: its last words are the
 * page. */
static void
show_early_end (TdWindow *self, int status)
{
  const char *errors = td_runner_get_stderr (self->runner);
  g_autofree char *text = g_strdup (errors);
  g_strchomp (text);
  const char *title = "The Program Ended Before Its First Operation";
  if (strstr (text, "no C compiler"))
    title = "No C Compiler";
  else if (strstr (text, "does not compile"))
    title = "The Model Does Not Compile";
  else if (strstr (text, ": not there: "))
    title = "The Model Needs What Is Not There";
  g_autofree char *shown = NULL;
  if (strlen (text) > 1200)
    text[1200] = '\0';
  shown = g_utf8_make_valid (*text ? text : "It printed nothing.", -1);
  td_window_show_message (self, "dialog-error-symbolic", title, shown, errors);
}

static void
run_ended (TdRunner *runner, int status, TdWindow *self)
{
  if (!self->session)
    {
      g_autofree char *path = g_strdup (td_runner_get_tape (runner));
      g_autoptr (TdSession) session = td_session_open_bounded (path, NULL);
      if (session && td_session_get_n_iterations (session) > 0)
        td__window_open_tape (self, path);
    }
  if (self->session)
    {
      td_session_set_attached (self->session, FALSE);
      td_session_poll (self->session);
    }
  if (!self->session || td_session_get_n_iterations (self->session) == 0)
    show_early_end (self, status);
  td__window_disconnect (self);
  g_clear_object (&self->runner);
  td__window_update_actions (self);
}

/* ---- starting ---- */

/* The windows of the app show these: none of them is cleared away. */
static GPtrArray *
list_open_tapes (void)
{
  GPtrArray *paths = g_ptr_array_new_with_free_func (g_free);
  GApplication *app = g_application_get_default ();
  GList *windows = app ? gtk_application_get_windows (GTK_APPLICATION (app)) : NULL;
  for (; windows; windows = windows->next)
    if (TD_IS_WINDOW (windows->data) && TD_WINDOW (windows->data)->session)
      g_ptr_array_add (paths,
                       g_strdup (td_session_get_path (TD_WINDOW (windows->data)->session)));
  g_ptr_array_add (paths, NULL);
  return paths;
}

/* Clear the oldest runs until the rest takes `room` bytes at most and, unless `keep` is 0, is
 * no more than so many. */
static void
clear_old_runs (TdWindow *self, guint keep, guint64 room)
{
  guint64 budget = g_settings_get_uint64 (td_settings_get (), "runs-budget"), bytes;
  g_autoptr (GPtrArray) open = list_open_tapes ();
  guint n = td_runs_clear (keep, room, (const char *const *)open->pdata, &bytes);
  if (!n)
    return;
  g_autofree char *size = g_format_size (bytes);
  g_autofree char *most = budget ? g_format_size (budget) : g_strdup ("any size");
  g_autofree char *text
      = keep ? g_strdup_printf (
            ngettext ("Cleared %u old run, %s: the newest %u are kept, of %s (Preferences)",
                      "Cleared %u old runs, %s: the newest %u are kept, of %s (Preferences)",
                      n),
            n, size, keep, most)
             : g_strdup_printf (
                 ngettext ("Cleared %u old run, %s: all may take %s (Preferences)",
                           "Cleared %u old runs, %s: all may take %s (Preferences)", n),
                 n, size, most);
  td__window_toast (self, text);
}

/* Before a run there is to be room for all that it may take. */
static void
make_room_for_run (TdWindow *self)
{
  GSettings *settings = td_settings_get ();
  guint64 budget = settings ? g_settings_get_uint64 (settings, "runs-budget") : 0;
  if (settings)
    clear_old_runs (self, g_settings_get_uint (settings, "runs-kept"),
                    budget ? budget - MIN (td_settings_get_run_bytes (), budget / 2) : 0);
}

/* While it runs, together with those of other windows. */
static gboolean
keep_to_budget (gpointer data)
{
  TdWindow *self = data;
  GSettings *settings = td_settings_get ();
  guint64 budget = settings ? g_settings_get_uint64 (settings, "runs-budget") : 0;
  if (budget)
    clear_old_runs (self, 0, budget);
  if (self->runner)
    return G_SOURCE_CONTINUE;
  self->clearing = 0;
  return G_SOURCE_REMOVE;
}

/* A window has one program: what it ran before is told to end, and is heard of no more. */
static void
let_go (TdWindow *self)
{
  td__window_forget_import (self);
  g_clear_handle_id (&self->connecting, g_source_remove);
  g_clear_handle_id (&self->clearing, g_source_remove);
  td__window_disconnect (self);
  if (self->runner)
    {
      g_signal_handlers_disconnect_by_data (self->runner, self);
      td_runner_stop (self->runner);
    }
  g_clear_object (&self->runner);
  g_clear_pointer (&self->stop, g_free);
}

void
td__window_start (TdWindow *self, const TdRunOptions *options)
{
  g_autoptr (GError) error = NULL;
  let_go (self);
  make_room_for_run (self);
  g_autofree char *runs_budget
      = td_settings_get () ? td_settings_dup_bytes ("runs-budget") : NULL;
  TdRunOptions of_window = *options;
  of_window.runs_budget = runs_budget;
  self->runner = td_runner_new (&of_window, &error);
  if (!self->runner)
    {
      td_window_show_message (self, "dialog-error-symbolic",
                              _ ("The Program Cannot Be Started"), error->message,
                              error->message);
      return;
    }
  self->clearing = g_timeout_add (KEEP_TO_BUDGET_MS, keep_to_budget, self);
  self->stop = g_strdup (options->stop);
  g_signal_connect_object (self->runner, "output", G_CALLBACK (run_output), self, 0);
  g_signal_connect_object (self->runner, "tape", G_CALLBACK (run_has_tape), self, 0);
  g_signal_connect_object (self->runner, "ended", G_CALLBACK (run_ended), self, 0);
  g_autofree char *name = g_path_get_basename (options->program);
  g_autofree char *text = g_strdup_printf (
      "%s is being %s.", name,
      g_str_has_suffix (options->program, ".c") ? "compiled and started" : "started");
  td_window_show_message (self, "media-record-symbolic", _ ("Waiting for the First Operation"),
                          text, NULL);
  self->started = g_get_monotonic_time ();
  self->waited = 0;
  gtk_widget_set_visible (self->message_stop, TRUE);
}

/* The last few lines of what a program says. */
static const char *
last_lines (const char *text)
{
  const char *at = text + strlen (text);
  for (int n = 0; at > text; at--)
    if (at[-1] == '\n' && n++ == WAITING_LINES)
      break;
  return at;
}

/* Say on the page how long the program has been waited for, and what it said last. */
static void
update_waiting (TdWindow *self)
{
  int seconds = (int)((g_get_monotonic_time () - self->started) / G_USEC_PER_SEC);
  if (!self->started || !self->runner || seconds == self->waited)
    return;
  self->waited = seconds;
  g_autofree char *said
      = g_utf8_make_valid (last_lines (td_runner_get_stderr (self->runner)), -1);
  g_autofree char *escaped = g_markup_escape_text (said, -1);
  g_autofree char *text = g_strdup_printf (
      "%s (%d s)%s<tt>%s</tt>",
      self->session ? "The program is still loading its data" : "The program is being started",
      seconds, *escaped ? "\n\n" : "", escaped);
  adw_status_page_set_description (self->message, text);
}

/* A model of another program runs twice: what it is like is seen from its first pass, and the
 * second waits for the user at its beginning. */
#define MODEL_ITERATIONS "2"
#define MODEL_PAUSE "1"

/* As the settings say. */
static void
run_model (TdWindow *self, const char *path, const char *const *args)
{
  static const char *const levels[] = { "graph", "stats", "values" };
  GSettings *settings = td_settings_get ();
  int level = settings ? CLAMP (g_settings_get_enum (settings, "level"), 0, 2) : 1;
  gboolean stop = !settings || g_settings_get_boolean (settings, "break-on-error");
  gboolean model = td_runner_is_model (path);
  g_autofree char *tape_budget
      = settings ? g_strdup_printf ("%" G_GUINT64_FORMAT, td_settings_get_run_bytes ()) : NULL;
  g_autofree char *keyframes
      = settings ? g_settings_get_string (settings, "record-keyframes") : NULL;
  g_autofree char *tape_rate = settings ? td_settings_dup_bytes ("tape-rate") : NULL;
  g_autofree char *values_budget = settings ? td_settings_dup_bytes ("values-budget") : NULL;
  const TdRunOptions options = { .program = path,
                                 .args = args,
                                 .level = levels[level],
                                 .tape_budget = tape_budget,
                                 .tape_rate = tape_rate,
                                 .keyframes = keyframes,
                                 .values_budget = values_budget,
                                 .stop = stop ? "error" : NULL,
                                 .iterations = model ? MODEL_ITERATIONS : NULL,
                                 .pause = model ? MODEL_PAUSE : NULL,
                                 .environment = (const char *const *)self->launch_env,
                                 .directory = self->launch_dir };
  td__window_start (self, &options);
}

static void
record_started (TdRecordPage *page, TdWindow *self)
{
  td__window_start (self, td_record_page_get_options (page));
}

void
td_window_show_record (TdWindow *self)
{
  if (!self->record_page)
    {
      self->record_page = td_record_page_new ();
      g_signal_connect (self->record_page, "start", G_CALLBACK (record_started), self);
      gtk_stack_add_named (self->pages, self->record_page, "record");
    }
  td_record_page_set_launch (TD_RECORD_PAGE (self->record_page),
                             (const char *const *)self->launch_env, self->launch_dir);
  gtk_stack_set_visible_child (self->pages, self->record_page);
  gtk_widget_grab_focus (self->record_page);
}

void
td_window_set_launch (TdWindow *self, const char *const *environment, const char *directory)
{
  g_strfreev (self->launch_env);
  self->launch_env = g_strdupv ((char **)environment);
  g_free (self->launch_dir);
  self->launch_dir = g_strdup (directory);
}

void
td_window_run (TdWindow *self, GFile *program, const char *const *args)
{
  g_autofree char *path = g_file_get_path (program);
  if (path)
    run_model (self, path, args);
}

void
td__window_open_attached (TdWindow *self, GFile *tape)
{
  g_autofree char *path = g_file_get_path (tape);
  if (path && td__window_open_tape (self, path))
    td__window_remember (tape);
}

void
td_window_attach (TdWindow *self, GFile *tape, const char *address)
{
  td__window_connect (self, address);
  td__window_open_attached (self, tape);
}

/* ---- looking on ---- */

/* A live view shows the newest whole iteration at most ten times a second. */
#define POLL_INTERVAL_MS 100

/* While a program runs, looking on takes at most this share of one core: a slow machine sees
 * fewer iterations, not a slower training. */
#define LIVE_SHARE 10
#define MAX_PAUSE_US (G_USEC_PER_SEC / 2)

static gint64
cpu_time (void)
{
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (gint64)t.tv_sec * G_USEC_PER_SEC + t.tv_nsec / 1000;
}

static gboolean
poll_session (gpointer data)
{
  TdWindow *self = data;
  gint64 now = g_get_monotonic_time ();
  update_waiting (self);
  if (!self->session
      || (now < self->next_poll && td_session_get_state (self->session) == TD_PROGRAM_RUNNING))
    return G_SOURCE_CONTINUE;
  gint64 cpu = cpu_time ();
  self->next_poll = now + MIN ((cpu - self->last_cpu) * LIVE_SHARE, MAX_PAUSE_US);
  self->last_cpu = cpu;
  td_session_poll (self->session);
  return G_SOURCE_CONTINUE;
}

void
td__window_look_on (TdWindow *self)
{
  self->poll = g_timeout_add (POLL_INTERVAL_MS, poll_session, self);
}
