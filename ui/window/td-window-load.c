/* A recording that is large is read by a worker: the window goes on meanwhile, that it reads is
 * on show after a second, and what was on show before stays when it is cancelled.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

#include "graph/td-graph.h"

#define SHOW_MS 1000
#define PULSE_MS 100

/* The iteration that is shown first, and what its graph is made of, are read here too: what the
 * main loop does with them is drawing. */
static void
read_tape (GTask *task, gpointer window, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;
  TdSession *session = td_session_open_bounded (data, &error);
  if (!session)
    {
      g_task_return_error (task, error);
      return;
    }
  g_autoptr (TdIteration) iteration = td_session_get_current (session);
  if (iteration)
    td_iteration_get_graph (iteration);
  g_task_return_pointer (task, session, g_object_unref);
}

static gboolean
pulse (gpointer data)
{
  TdWindow *self = data;
  gtk_progress_bar_pulse (self->message_progress);
  return G_SOURCE_CONTINUE;
}

static gboolean
show (gpointer data)
{
  TdWindow *self = data;
  td__window_show_opening (self, _ ("Reading the recording"));
  self->importing = g_timeout_add (PULSE_MS, pulse, self);
  return G_SOURCE_REMOVE;
}

/* In a turn of its own: pages are filled in the one before. */
static gboolean
show_session (gpointer data)
{
  TdWindow *self = data;
  self->importing = 0;
  td__window_forget_load (self);
  td__window_show_session (self);
  self->loaded (self, self->import_path, TRUE);
  return G_SOURCE_REMOVE;
}

static void
loaded (GObject *source, GAsyncResult *result, gpointer data)
{
  TdWindow *self = TD_WINDOW (source);
  GTask *task = G_TASK (result);
  g_autoptr (GError) error = NULL;
  g_autoptr (TdSession) session = g_task_propagate_pointer (task, &error);
  const char *tape = g_task_get_task_data (task);
  if (g_task_get_cancellable (task) != self->loading)
    return; /* cancelled, or another is on its way; the window may be closed */
  g_clear_handle_id (&self->importing, g_source_remove);
  if (session)
    {
      td__window_take_session (self, tape, session, NULL);
      self->importing = g_idle_add (show_session, self);
      return;
    }
  td__window_forget_load (self);
  td__window_take_session (self, tape, NULL, error);
  self->loaded (self, self->import_path, FALSE);
}

static gboolean
is_small (const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFileInfo) info
      = g_file_query_info (file, G_FILE_ATTRIBUTE_STANDARD_SIZE, 0, NULL, NULL);
  return !info || g_file_info_get_size (info) <= (goffset)TD_SESSION_SMALL_BYTES;
}

void
td__window_load (TdWindow *self, const char *path, const char *tape, TdLoaded done)
{
  td__window_forget_import (self);
  if (is_small (tape))
    {
      done (self, path, td__window_open_tape (self, tape));
      return;
    }
  self->loading = g_cancellable_new ();
  g_free (self->import_path);
  self->import_path = g_strdup (path);
  self->loaded = done;
  g_autoptr (GTask) task = g_task_new (self, self->loading, loaded, NULL);
  g_task_set_task_data (task, g_strdup (tape), g_free);
  g_task_run_in_thread (task, read_tape);
  if (self->import_shown) /* what came before took its time already */
    show (self);
  else
    self->importing = g_timeout_add (SHOW_MS, show, self);
}
