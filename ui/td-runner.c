/* The supervised run as the app sees it.
 * SPDX-License-Identifier: MIT */
#include "td-runner.h"

#include "td-control-client.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_STDERR_BYTES 16384
#define TAPE_POLL_MS 50

struct _TdRunner
{
  GObject parent;
  GSubprocess *process;
  char *tape;
  char *address;
  GString *errors;
  guint tape_poll;
  int streams_open;
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

/* From the desktop there is no working directory worth the name: each run gets one. */
static char *
make_run_directory (const char *program)
{
  g_autofree char *base = g_path_get_basename (program);
  if (g_str_has_suffix (base, ".c"))
    base[strlen (base) - 2] = '\0';
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree char *stamp = g_date_time_format (now, "%Y%m%d-%H%M%S");
  g_autofree char *name = g_strdup_printf ("%s-%s-%d", base, stamp, (int)getpid ());
  char *path = g_build_filename (g_get_user_state_dir (), "tapedeck", "runs", name, NULL);
  for (int i = 2; g_file_test (path, G_FILE_TEST_EXISTS); i++)
    {
      g_free (path);
      g_autofree char *again = g_strdup_printf ("%s-%d", name, i);
      path = g_build_filename (g_get_user_state_dir (), "tapedeck", "runs", again, NULL);
    }
  g_mkdir_with_parents (path, 0700);
  return path;
}

static void
maybe_ended (TdRunner *self)
{
  if (!self->exited || self->streams_open > 0)
    return;
  int status = g_subprocess_get_status (self->process);
  g_clear_handle_id (&self->tape_poll, g_source_remove);
  g_signal_emit (self, signals[ENDED], 0, status);
}

static void
process_ended (GObject *process, GAsyncResult *result, gpointer data)
{
  TdRunner *self = data;
  g_subprocess_wait_finish (G_SUBPROCESS (process), result, NULL);
  self->exited = TRUE;
  maybe_ended (self);
  g_object_unref (self);
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

static void read_stream (TdRunner *self, GDataInputStream *stream);

/* What the model prints goes to the log and on to whoever started the app. */
static void
line_read (GObject *source, GAsyncResult *result, gpointer data)
{
  TdRunner *self = data;
  GDataInputStream *stream = G_DATA_INPUT_STREAM (source);
  gboolean is_stderr = g_object_get_data (source, "is-stderr") != NULL;
  g_autofree char *line = g_data_input_stream_read_line_finish (stream, result, NULL, NULL);
  if (!line)
    {
      self->streams_open--;
      maybe_ended (self);
      g_object_unref (self);
      return;
    }
  if (is_stderr)
    {
      g_string_append_printf (self->errors, "%s\n", line);
      if (self->errors->len > KEPT_STDERR_BYTES)
        g_string_erase (self->errors, 0, (gssize)(self->errors->len - KEPT_STDERR_BYTES));
    }
  fprintf (is_stderr ? stderr : stdout, "%s\n", line);
  fflush (is_stderr ? stderr : stdout);
  g_autofree char *text = g_utf8_make_valid (line, -1);
  g_signal_emit (self, signals[OUTPUT], 0, text, is_stderr);
  read_stream (self, stream);
  g_object_unref (self);
}

static void
read_stream (TdRunner *self, GDataInputStream *stream)
{
  g_data_input_stream_read_line_async (stream, G_PRIORITY_DEFAULT_IDLE, NULL, line_read,
                                       g_object_ref (self));
}

static void
watch_stream (TdRunner *self, GInputStream *pipe, gboolean is_stderr)
{
  g_autoptr (GDataInputStream) stream = g_data_input_stream_new (pipe);
  if (is_stderr)
    g_object_set_data (G_OBJECT (stream), "is-stderr", GINT_TO_POINTER (1));
  self->streams_open++;
  read_stream (self, stream);
}

TdRunner *
td_runner_new (const char *program, const char *const *args, const char *level,
               const char *const *environment, const char *directory, GError **error)
{
  g_autofree char *tapedeck = td_runner_find_executable ("tapedeck");
  if (!tapedeck)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                           "The command tapedeck is not installed beside the app.");
      return NULL;
    }
  g_autofree char *run_dir = make_run_directory (program);
  g_autoptr (TdRunner) self = g_object_new (TD_TYPE_RUNNER, NULL);
  self->tape = g_build_filename (run_dir, "run.tdtape", NULL);

  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (
      G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
  if (environment)
    g_subprocess_launcher_set_environ (launcher, (char **)environment);
  g_subprocess_launcher_set_cwd (launcher, directory ? directory : run_dir);
  const char *const head[]
      = { tapedeck, "run", "-o", self->tape, "--level", level, "--quiet", program };
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  for (guint i = 0; i < G_N_ELEMENTS (head); i++)
    g_ptr_array_add (argv, (gpointer)head[i]);
  for (; args && *args; args++)
    g_ptr_array_add (argv, (gpointer)*args);
  g_ptr_array_add (argv, NULL);
  self->process
      = g_subprocess_launcher_spawnv (launcher, (const char *const *)argv->pdata, error);
  if (!self->process)
    return NULL;
  g_autofree char *socket_name
      = g_strdup_printf ("%s.sock", g_subprocess_get_identifier (self->process));
  g_autofree char *folder = td_control_folder ();
  self->address = g_build_filename (folder, socket_name, NULL);
  watch_stream (self, g_subprocess_get_stdout_pipe (self->process), FALSE);
  watch_stream (self, g_subprocess_get_stderr_pipe (self->process), TRUE);
  self->tape_poll = g_timeout_add (TAPE_POLL_MS, look_for_tape, self);
  g_subprocess_wait_async (self->process, NULL, process_ended, g_object_ref (self));
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
  return !self->exited;
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
  if (self->process)
    td_runner_stop (self);
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
}
