/* `tapedeck recompute` as a child of the window. It says its progress a line each; its tape
 * lies in a folder of its own, which goes with this object.
 * SPDX-License-Identifier: MIT */
#include "live/td-recompute.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "live/td-runner.h"

struct _TdRecompute
{
  GObject parent;
  GSubprocess *process;
  GDataInputStream *lines;
  char *folder, *result;
  gboolean cancelled, ended;
};

enum
{
  PROGRESS,
  ENDED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdRecompute, td_recompute, G_TYPE_OBJECT)

/* What it wrote to stderr, without its name: it has ended, so nothing more comes. */
static char *
dup_said (TdRecompute *self)
{
  char text[4096];
  gsize n = 0;
  g_input_stream_read_all (g_subprocess_get_stderr_pipe (self->process), text, sizeof text - 1,
                           &n, NULL, NULL);
  text[n] = '\0';
  char *from = g_str_has_prefix (text, "tapedeck: ") ? text + strlen ("tapedeck: ") : text;
  return g_strchomp (g_utf8_make_valid (from, -1));
}

static void
process_ended (GObject *process, GAsyncResult *result, gpointer data)
{
  g_autoptr (TdRecompute) self = data;
  g_subprocess_wait_finish (G_SUBPROCESS (process), result, NULL);
  self->ended = TRUE;
  gboolean good = g_subprocess_get_if_exited (self->process)
                  && g_subprocess_get_exit_status (self->process) == 0;
  g_autofree char *said = good || self->cancelled ? NULL : dup_said (self);
  const char *text = self->cancelled ? NULL
                     : good          ? ""
                     : said && *said ? said
                                     : "tapedeck recompute ended early";
  g_signal_emit (self, signals[ENDED], 0, text);
}

static void next_line (TdRecompute *self);

static void
line_read (GObject *stream, GAsyncResult *result, gpointer data)
{
  g_autoptr (TdRecompute) self = data;
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
  if (all > 0 && !*end)
    g_signal_emit (self, signals[PROGRESS], 0, CLAMP ((double)done / (double)all, 0, 1));
  next_line (self);
}

static void
next_line (TdRecompute *self)
{
  g_data_input_stream_read_line_async (self->lines, G_PRIORITY_DEFAULT_IDLE, NULL, line_read,
                                       g_object_ref (self));
}

void
td_recompute_cancel (TdRecompute *self)
{
  self->cancelled = TRUE;
  if (!self->ended)
    g_subprocess_send_signal (self->process, SIGTERM);
}

void
td_recompute_drop (TdRecompute *self, gpointer listener)
{
  if (!self)
    return;
  g_signal_handlers_disconnect_by_data (self, listener);
  td_recompute_cancel (self);
  g_object_unref (self);
}

const char *
td_recompute_get_result (TdRecompute *self)
{
  return self->result;
}

static void
td_recompute_finalize (GObject *object)
{
  TdRecompute *self = TD_RECOMPUTE (object);
  if (self->result)
    g_remove (self->result);
  if (self->folder)
    g_rmdir (self->folder);
  g_clear_object (&self->lines);
  g_clear_object (&self->process);
  g_free (self->folder);
  g_free (self->result);
  G_OBJECT_CLASS (td_recompute_parent_class)->finalize (object);
}

static void
td_recompute_class_init (TdRecomputeClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_recompute_finalize;
  signals[PROGRESS] = g_signal_new ("progress", TD_TYPE_RECOMPUTE, G_SIGNAL_RUN_LAST, 0, NULL,
                                    NULL, NULL, G_TYPE_NONE, 1, G_TYPE_DOUBLE);
  signals[ENDED] = g_signal_new ("ended", TD_TYPE_RECOMPUTE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void
td_recompute_init (TdRecompute *self)
{
}

TdRecompute *
td_recompute_new (const char *tape, gint64 iteration, GError **error)
{
  g_autofree char *tapedeck = td_runner_find_executable ("tapedeck");
  g_autofree char *number = g_strdup_printf ("%" G_GINT64_FORMAT, iteration);
  g_autoptr (TdRecompute) self = g_object_new (TD_TYPE_RECOMPUTE, NULL);
  if (!tapedeck)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                           "tapedeck is not installed beside the app");
      return NULL;
    }
  self->folder = g_dir_make_tmp ("tapedeck-XXXXXX", error);
  if (!self->folder)
    return NULL;
  self->result = g_build_filename (self->folder, "again.tdtape", NULL);
  self->process
      = g_subprocess_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE,
                          error, tapedeck, "recompute", tape, "--iteration", number,
                          "--progress", "--quiet", "-o", self->result, NULL);
  if (!self->process)
    return NULL;
  self->lines = g_data_input_stream_new (g_subprocess_get_stdout_pipe (self->process));
  next_line (self);
  return g_steal_pointer (&self);
}
