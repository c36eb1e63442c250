/* A child that is killed when it is cancelled: whatever it was about to write lies in the job's
 * folder, which is taken away once the process has gone.
 * SPDX-License-Identifier: MIT */
#include "live/td-job.h"

#include <glib/gi18n-lib.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "live/td-runner.h"

struct _TdJob
{
  GObject parent;
  GSubprocess *process;
  GDataInputStream *lines;
  char *folder, *result, *command;
  GApplication *app; /* held while there is a process */
  double part;       /* said last, with what it was doing */
  char *doing;
  gboolean cancelled, ended;
};

enum
{
  PROGRESS,
  ENDED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdJob, td_job, G_TYPE_OBJECT)

int
td_job_get_signal (TdJob *self)
{
  return g_subprocess_get_if_signaled (self->process)
             ? g_subprocess_get_term_sig (self->process)
             : 0;
}

/* What it wrote to stderr, without its name: it has ended, so nothing more comes. */
static char *
dup_said (TdJob *self)
{
  char text[4096];
  gsize n = 0;
  g_input_stream_read_all (g_subprocess_get_stderr_pipe (self->process), text, sizeof text - 1,
                           &n, NULL, NULL);
  text[n] = '\0';
  char *from = g_str_has_prefix (text, "tapedeck: ") ? text + strlen ("tapedeck: ") : text;
  return g_strchomp (g_utf8_make_valid (from, -1));
}

static char *
dup_failure (TdJob *self)
{
  int number = td_job_get_signal (self);
  if (number)
    return g_strdup_printf (_ ("tapedeck %s was ended by signal %d (%s)"), self->command,
                            number, g_strsignal (number));
  if (g_subprocess_get_exit_status (self->process) == 0)
    return g_strdup ("");
  char *said = dup_said (self);
  if (*said)
    return said;
  g_free (said);
  return g_strdup_printf ("tapedeck %s ended early", self->command);
}

static void
process_ended (GObject *process, GAsyncResult *result, gpointer data)
{
  g_autoptr (TdJob) self = data;
  g_subprocess_wait_finish (G_SUBPROCESS (process), result, NULL);
  if (self->app)
    g_application_release (self->app);
  self->app = NULL;
  if (self->cancelled)
    return;
  self->ended = TRUE;
  g_autofree char *text = dup_failure (self);
  g_signal_emit (self, signals[ENDED], 0, text);
}

static void next_line (TdJob *self);

static void
line_read (GObject *stream, GAsyncResult *result, gpointer data)
{
  g_autoptr (TdJob) self = data;
  g_autofree char *line
      = g_data_input_stream_read_line_finish (G_DATA_INPUT_STREAM (stream), result, NULL, NULL);
  char *end;
  if (!line)
    {
      g_subprocess_wait_async (self->process, NULL, process_ended, g_object_ref (self));
      return;
    }
  guint64 done = g_ascii_strtoull (line, &end, 10);
  guint64 all = g_str_has_prefix (end, " of ") ? g_ascii_strtoull (end + 4, &end, 10) : 0;
  if (all > 0 && (!*end || *end == ' ') && !self->cancelled)
    {
      self->part = CLAMP ((double)done / (double)all, 0, 1);
      g_free (self->doing);
      self->doing = g_strdup (*end ? end + 1 : "");
      g_signal_emit (self, signals[PROGRESS], 0, self->part, self->doing);
    }
  next_line (self);
}

static void
next_line (TdJob *self)
{
  g_data_input_stream_read_line_async (self->lines, G_PRIORITY_DEFAULT_IDLE, NULL, line_read,
                                       g_object_ref (self));
}

/* Where memory is short the system is to take it, and not the window. */
static void
offer_for_memory (TdJob *self)
{
  g_autofree char *path
      = g_strdup_printf ("/proc/%s/oom_score_adj", g_subprocess_get_identifier (self->process));
  FILE *file = fopen (path, "w");
  if (file)
    {
      fputs ("1000", file);
      fclose (file);
    }
}

gboolean
td_job_start (TdJob *self, const char *const *arguments, GError **error)
{
  g_autofree char *tapedeck = td_runner_find_executable ("tapedeck");
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  if (!tapedeck)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                           "tapedeck is not installed beside the app");
      return FALSE;
    }
  g_ptr_array_add (argv, tapedeck);
  for (const char *const *argument = arguments; *argument; argument++)
    g_ptr_array_add (argv, (gpointer)*argument);
  g_ptr_array_add (argv, NULL);
  self->process = g_subprocess_newv (
      (const char *const *)argv->pdata,
      G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, error);
  if (!self->process)
    return FALSE;
  self->command = g_strdup (arguments[0]);
  offer_for_memory (self);
  self->app = g_application_get_default ();
  if (self->app)
    g_application_hold (self->app);
  self->lines = g_data_input_stream_new (g_subprocess_get_stdout_pipe (self->process));
  next_line (self);
  return TRUE;
}

double
td_job_get_part (TdJob *self, const char **doing)
{
  *doing = self->doing ? self->doing : "";
  return self->part;
}

const char *
td_job_get_process (TdJob *self)
{
  return g_subprocess_get_identifier (self->process);
}

const char *
td_job_get_result (TdJob *self)
{
  return self->result;
}

void
td_job_cancel (TdJob *self)
{
  if (self->cancelled || self->ended || !self->process)
    return;
  self->cancelled = TRUE;
  g_subprocess_force_exit (self->process);
  g_object_ref (self); /* who hears of it may drop it */
  g_signal_emit (self, signals[ENDED], 0, NULL);
  g_object_unref (self);
}

void
td_job_drop (TdJob *self, gpointer listener)
{
  if (!self)
    return;
  g_signal_handlers_disconnect_by_data (self, listener);
  td_job_cancel (self);
  g_object_unref (self);
}

static void
td_job_finalize (GObject *object)
{
  TdJob *self = TD_JOB (object);
  g_autoptr (GDir) dir = self->folder ? g_dir_open (self->folder, 0, NULL) : NULL;
  const char *name;
  while (dir && (name = g_dir_read_name (dir)))
    {
      g_autofree char *path = g_build_filename (self->folder, name, NULL);
      g_remove (path);
    }
  if (self->folder)
    g_rmdir (self->folder);
  g_clear_object (&self->lines);
  g_clear_object (&self->process);
  g_free (self->folder);
  g_free (self->result);
  g_free (self->command);
  g_free (self->doing);
  G_OBJECT_CLASS (td_job_parent_class)->finalize (object);
}

static void
td_job_class_init (TdJobClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_job_finalize;
  signals[PROGRESS] = g_signal_new ("progress", TD_TYPE_JOB, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                    NULL, G_TYPE_NONE, 2, G_TYPE_DOUBLE, G_TYPE_STRING);
  signals[ENDED] = g_signal_new ("ended", TD_TYPE_JOB, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                 G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void
td_job_init (TdJob *self)
{
}

TdJob *
td_job_new (const char *parent, GError **error)
{
  g_autoptr (TdJob) self = g_object_new (TD_TYPE_JOB, NULL);
  g_autofree char *folder
      = g_build_filename (parent ? parent : g_get_tmp_dir (), "tapedeck-XXXXXX", NULL);
  if (!g_mkdtemp (folder))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", folder, g_strerror (errno));
      return NULL;
    }
  self->folder = g_steal_pointer (&folder);
  self->result = g_build_filename (self->folder, "made.tdtape", NULL);
  return g_steal_pointer (&self);
}
