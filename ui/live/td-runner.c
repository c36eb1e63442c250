/* The supervised run as the app sees it.
 * SPDX-License-Identifier: MIT */
#include "live/td-runner.h"

#include "live/td-control-client.h"
#include "live/td-runs.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_STDERR_BYTES 16384
#define TAPE_POLL_MS 50
#define LOG_POLL_MS 50
#define LOG_ROOM_BYTES 65536
/* Of a program that prints faster than this can be shown, the latest is shown. */
#define MAX_BEHIND_BYTES (1 << 20)
/* A log begins anew when it is this long: a program that prints for ever must not fill a disk.
 */
#define MAX_LOG_BYTES (64 << 20)

/* What the program prints goes to a file and is read from there: a pipe would end with the app,
 * and a program that prints into a pipe without a reader is killed. */
typedef struct
{
  int fd;
  gint64 read;   /* bytes of the file that were read */
  GString *line; /* the beginning of a line */
  gboolean is_stderr;
} Log;

enum
{
  LOG_OUT,
  LOG_ERR,
  N_LOGS
};

struct _TdRunner
{
  GObject parent;
  GSubprocess *process;
  char *tape;
  char *address;
  GString *errors;
  Log logs[N_LOGS];
  guint tape_poll, log_poll;
  gboolean exited;
  gboolean detached;
};

enum
{
  OUTPUT,
  TAPE,
  ENDED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdRunner, td_runner, G_TYPE_OBJECT)

/* In the build tree the executables lie side by side; installed, the app is in
 * libexec/tapedeck. */
char *
td_runner_find_executable (const char *name)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  if (!self)
    return NULL;
  g_autofree char *here = g_path_get_dirname (self);
  const char *const places[] = { "", "../../bin", "../app", "../../app" };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    {
      char *path = g_build_filename (here, places[i], name, NULL);
      if (g_file_test (path, G_FILE_TEST_IS_EXECUTABLE)
          && !g_file_test (path, G_FILE_TEST_IS_DIR))
        return path;
      g_free (path);
    }
  return g_find_program_in_path (name);
}

static gboolean
look_for_tape (gpointer data)
{
  TdRunner *self = data;
  GStatBuf info;
  if (g_stat (self->tape, &info) != 0 || info.st_size == 0)
    return G_SOURCE_CONTINUE;
  self->tape_poll = 0;
  g_signal_emit (self, signals[TAPE], 0);
  return G_SOURCE_REMOVE;
}

/* ---- what it prints ---- */

/* It goes to the log and on to whoever started the app. */
static void
say_line (TdRunner *self, Log *log)
{
  FILE *out = log->is_stderr ? stderr : stdout;
  if (log->is_stderr)
    {
      g_string_append_printf (self->errors, "%s\n", log->line->str);
      if (self->errors->len > KEPT_STDERR_BYTES)
        g_string_erase (self->errors, 0, (gssize)(self->errors->len - KEPT_STDERR_BYTES));
    }
  fprintf (out, "%s\n", log->line->str);
  g_autofree char *text = g_utf8_make_valid (log->line->str, -1);
  g_string_truncate (log->line, 0);
  g_signal_emit (self, signals[OUTPUT], 0, text, log->is_stderr);
}

static void
take_text (TdRunner *self, Log *log, const char *text, gsize n)
{
  while (n)
    {
      const char *end = memchr (text, '\n', n);
      gsize length = end ? (gsize)(end - text) : n;
      g_string_append_len (log->line, text, (gssize)length);
      if (end || log->line->len >= LOG_ROOM_BYTES)
        say_line (self, log);
      length += end ? 1 : 0;
      text += length;
      n -= length;
    }
}

/* The program writes at the end of the file wherever that is. What it writes between the last
 * read and the cut is lost. */
static void
begin_anew_when_long (TdRunner *self, Log *log)
{
  if (log->read < MAX_LOG_BYTES || ftruncate (log->fd, 0) != 0)
    return;
  log->read = 0;
  if (log->line->len)
    say_line (self, log);
  g_string_printf (log->line, "[The log was %d MB long and begins anew.]", MAX_LOG_BYTES >> 20);
  say_line (self, log);
}

static void
read_log (TdRunner *self, Log *log)
{
  char room[LOG_ROOM_BYTES];
  struct stat info;
  if (log->fd < 0 || fstat (log->fd, &info) != 0)
    return;
  if (info.st_size - log->read > MAX_BEHIND_BYTES)
    {
      g_string_assign (log->line, "[…]");
      say_line (self, log);
      log->read = info.st_size - MAX_BEHIND_BYTES;
    }
  while (log->read < info.st_size)
    {
      gssize n = pread (log->fd, room, sizeof room, log->read);
      if (n <= 0)
        break;
      log->read += n;
      take_text (self, log, room, (gsize)n);
    }
  begin_anew_when_long (self, log);
  fflush (log->is_stderr ? stderr : stdout);
}

static void
read_logs (TdRunner *self)
{
  for (int i = 0; i < N_LOGS; i++)
    read_log (self, &self->logs[i]);
}

static gboolean
look_at_logs (gpointer data)
{
  g_autoptr (TdRunner) self = g_object_ref (data);
  read_logs (self);
  return G_SOURCE_CONTINUE;
}

/* The program writes at the end of the file, whoever else does. Returns its descriptor; -1 and
 * `error` on failure. */
static int
open_log (Log *log, const char *folder, const char *name, gboolean is_stderr, GError **error)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  int fd = open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  log->is_stderr = is_stderr;
  log->fd = fd >= 0 ? open (path, O_RDWR | O_CLOEXEC) : -1;
  if (log->fd < 0)
    {
      int why = errno;
      if (fd >= 0)
        close (fd);
      fd = -1;
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (why), "%s: %s", path,
                   g_strerror (why));
    }
  return fd;
}

static gboolean
open_logs (TdRunner *self, GSubprocessLauncher *launcher, const char *folder, GError **error)
{
  int out = open_log (&self->logs[LOG_OUT], folder, "stdout.log", FALSE, error);
  if (out < 0)
    return FALSE;
  g_subprocess_launcher_take_stdout_fd (launcher, out);
  int err = open_log (&self->logs[LOG_ERR], folder, "stderr.log", TRUE, error);
  if (err < 0)
    return FALSE;
  g_subprocess_launcher_take_stderr_fd (launcher, err);
  return TRUE;
}

/* ---- the process ---- */

static void
process_ended (GObject *process, GAsyncResult *result, gpointer data)
{
  TdRunner *self = data;
  g_subprocess_wait_finish (G_SUBPROCESS (process), result, NULL);
  self->exited = TRUE;
  read_logs (self);
  for (int i = 0; i < N_LOGS; i++)
    if (self->logs[i].line->len)
      say_line (self, &self->logs[i]);
  g_clear_handle_id (&self->log_poll, g_source_remove);
  g_clear_handle_id (&self->tape_poll, g_source_remove);
  g_signal_emit (self, signals[ENDED], 0, g_subprocess_get_status (self->process));
  g_object_unref (self);
}

/* ---- options ---- */

static void
add_option (GPtrArray *argv, const char *name, const char *value)
{
  if (!value || !*value)
    return;
  g_ptr_array_add (argv, g_strdup (name));
  g_ptr_array_add (argv, g_strdup (value));
}

gboolean
td_runner_is_script (const char *program)
{
  return g_str_has_suffix (program, ".py");
}

gboolean
td_runner_is_model (const char *program)
{
  return g_str_has_suffix (program, ".onnx");
}

/* What every run is given, by the settings, and only programs of the engine can have. */
static void
add_engine_options (GPtrArray *argv, const TdRunOptions *o)
{
  add_option (argv, "--tape-rate", o->tape_rate);
  add_option (argv, "--values-budget", o->values_budget);
  add_option (argv, "--device", o->device);
  add_option (argv, "--keyframes", o->keyframes);
}

/* `stop` is --stop for a program that the app attends, --break for one in a terminal. */
static GPtrArray *
new_argv (const TdRunOptions *o, const char *tapedeck, const char *tape, const char *stop)
{
  GPtrArray *argv = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (argv, g_strdup (tapedeck));
  g_ptr_array_add (argv, g_strdup ("run"));
  add_option (argv, "-o", tape);
  gboolean script = td_runner_is_script (o->program);
  add_option (argv, "--level", o->level);
  add_option (argv, "--tape-budget", o->tape_budget);
  if (!script)
    add_engine_options (argv, o);
  add_option (argv, "--seed", o->seed);
  add_option (argv, "--iterations", o->iterations);
  add_option (argv, stop, o->stop);
  return argv;
}

static void
add_program (GPtrArray *argv, const TdRunOptions *o)
{
  g_ptr_array_add (argv, g_strdup (o->program));
  for (const char *const *arg = o->args; arg && *arg; arg++)
    g_ptr_array_add (argv, g_strdup (*arg));
}

char *
td_runner_dup_command (const TdRunOptions *options, const char *tape)
{
  g_autoptr (GPtrArray) argv = new_argv (options, "tapedeck", tape, "--break");
  GString *line = g_string_new (NULL);
  add_program (argv, options);
  for (guint i = 0; i < argv->len; i++)
    {
      const char *word = g_ptr_array_index (argv, i);
      gboolean plain
          = *word && !word[strspn (word, G_CSET_A_2_Z G_CSET_a_2_z "0123456789-_./:=,+@")];
      g_autofree char *quoted = plain ? g_strdup (word) : g_shell_quote (word);
      g_string_append_printf (line, "%s%s", i ? " " : "", quoted);
    }
  return g_string_free (line, FALSE);
}

static char *
find_tapedeck (GError **error)
{
  char *tapedeck = td_runner_find_executable ("tapedeck");
  if (!tapedeck)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                         "The command tapedeck is not installed beside the app.");
  return tapedeck;
}

/* --help makes the command say what it thinks of the options, and do nothing. */
gboolean
td_runner_check (const TdRunOptions *options, GError **error)
{
  g_autofree char *tapedeck = find_tapedeck (error);
  g_autofree char *said = NULL;
  if (!tapedeck)
    return FALSE;
  g_autoptr (GPtrArray) argv = new_argv (options, tapedeck, NULL, "--stop");
  g_ptr_array_add (argv, g_strdup ("--help"));
  if (td_runner_is_script (options->program)) /* which not all options go with */
    add_program (argv, options);
  g_ptr_array_add (argv, NULL);
  g_autoptr (GSubprocess) process = g_subprocess_newv (
      (const char *const *)argv->pdata,
      G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_PIPE, error);
  if (!process || !g_subprocess_communicate_utf8 (process, NULL, NULL, NULL, &said, error))
    return FALSE;
  if (g_subprocess_get_if_exited (process) && g_subprocess_get_exit_status (process) == 0)
    return TRUE;
  const char *line
      = g_str_has_prefix (said, "tapedeck: ") ? said + strlen ("tapedeck: ") : said;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "%.*s",
               (int)strcspn (line, "\n"), line);
  return FALSE;
}

/* In a session of its own a program hears nothing of the app's terminal. */
static void
leave_session (gpointer unused)
{
  setsid ();
}

static void
watch (TdRunner *self)
{
  g_autofree char *socket_name
      = g_strdup_printf ("%s.sock", g_subprocess_get_identifier (self->process));
  g_autofree char *folder = td_control_folder ();
  self->address = g_build_filename (folder, socket_name, NULL);
  self->log_poll
      = g_timeout_add_full (G_PRIORITY_DEFAULT_IDLE, LOG_POLL_MS, look_at_logs, self, NULL);
  self->tape_poll = g_timeout_add (TAPE_POLL_MS, look_for_tape, self);
  g_subprocess_wait_async (self->process, NULL, process_ended, g_object_ref (self));
}

TdRunner *
td_runner_new (const TdRunOptions *options, GError **error)
{
  g_autofree char *tapedeck = find_tapedeck (error);
  if (!tapedeck)
    return NULL;
  g_autofree char *run_dir = td_runs_make (options->program);
  g_autoptr (TdRunner) self = g_object_new (TD_TYPE_RUNNER, NULL);
  self->tape = g_build_filename (run_dir, "run.tdtape", NULL);

  g_autoptr (GSubprocessLauncher) launcher
      = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);
  if (!open_logs (self, launcher, run_dir, error))
    return NULL;
  if (options->environment)
    g_subprocess_launcher_set_environ (launcher, (char **)options->environment);
  gboolean elsewhere = options->directory && *options->directory;
  g_subprocess_launcher_set_cwd (launcher, elsewhere ? options->directory : run_dir);
  g_subprocess_launcher_set_child_setup (launcher, leave_session, NULL, NULL);
  g_autoptr (GPtrArray) argv = new_argv (options, tapedeck, self->tape, "--stop");
  if (!td_runner_is_script (options->program))
    {
      add_option (argv, "--runs-budget", options->runs_budget);
      add_option (argv, "--pause", options->pause);
    }
  g_ptr_array_add (argv, g_strdup ("--quiet"));
  add_program (argv, options);
  g_ptr_array_add (argv, NULL);
  self->process
      = g_subprocess_launcher_spawnv (launcher, (const char *const *)argv->pdata, error);
  if (!self->process)
    return NULL;
  watch (self);
  return g_steal_pointer (&self);
}

const char *
td_runner_get_tape (TdRunner *self)
{
  return self->tape;
}

const char *
td_runner_get_address (TdRunner *self)
{
  return self->address;
}

const char *
td_runner_get_stderr (TdRunner *self)
{
  return self->errors->str;
}

gboolean
td_runner_is_running (TdRunner *self)
{
  return !self->exited && !self->detached;
}

void
td_runner_stop (TdRunner *self)
{
  if (!self->exited && !self->detached)
    g_subprocess_send_signal (self->process, SIGTERM);
}

void
td_runner_detach (TdRunner *self)
{
  self->detached = TRUE;
}

static void
td_runner_finalize (GObject *object)
{
  TdRunner *self = TD_RUNNER (object);
  g_clear_handle_id (&self->tape_poll, g_source_remove);
  g_clear_handle_id (&self->log_poll, g_source_remove);
  if (self->process)
    td_runner_stop (self);
  for (int i = 0; i < N_LOGS; i++)
    {
      if (self->logs[i].fd >= 0)
        close (self->logs[i].fd);
      g_string_free (self->logs[i].line, TRUE);
    }
  g_clear_object (&self->process);
  g_free (self->tape);
  g_free (self->address);
  g_string_free (self->errors, TRUE);
  G_OBJECT_CLASS (td_runner_parent_class)->finalize (object);
}

static void
td_runner_class_init (TdRunnerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_runner_finalize;
  signals[OUTPUT] = g_signal_new ("output", TD_TYPE_RUNNER, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_BOOLEAN);
  signals[TAPE] = g_signal_new ("tape", TD_TYPE_RUNNER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 0);
  signals[ENDED] = g_signal_new ("ended", TD_TYPE_RUNNER, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 1, G_TYPE_INT);
}

static void
td_runner_init (TdRunner *self)
{
  self->errors = g_string_new (NULL);
  for (int i = 0; i < N_LOGS; i++)
    self->logs[i] = (Log){ .fd = -1, .line = g_string_new (NULL) };
}
