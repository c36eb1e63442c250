/* Recompute This Iteration: the operations of the iteration on show are run again in a process
 * of their own, and its values are shown where none are recorded.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

static void
show_progress (TdWindow *self, double part)
{
  td_inspector_set_recomputing (td_workspace_get_inspector (self->workspace), part);
}

static void
progressed (TdJob *recompute, double part, const char *doing, TdWindow *self)
{
  show_progress (self, part);
}

/* Also with differences there are values, and a line says what is not the same. */
static void
ended (TdJob *recompute, const char *text, TdWindow *self)
{
  g_autoptr (GError) error = NULL;
  const char *result = td_job_get_result (recompute);
  gboolean any = text && g_file_test (result, G_FILE_TEST_EXISTS)
                 && td_session_take_recomputed (self->session, result, &error);
  show_progress (self, -1);
  if (error)
    td__window_show_info (self, GTK_MESSAGE_ERROR, error->message);
  else if (text && *text)
    td__window_show_info (self, any ? GTK_MESSAGE_WARNING : GTK_MESSAGE_ERROR, text);
  else
    td__window_toast (self, text ? _ ("Recomputed: all as it was") : _ ("Cancelled"));
  td__window_forget_recompute (self);
}

void
td__window_forget_recompute (TdWindow *self)
{
  if (!self->recompute)
    return;
  td_job_drop (g_steal_pointer (&self->recompute), self);
  show_progress (self, -1);
}

void
td__run_recompute (TdWindow *self, const char *parameter)
{
  g_autoptr (GError) error = NULL;
  if (self->recompute || !td_session_get_path (self->session))
    return;
  self->recompute = td_recompute_new (td_session_get_path (self->session),
                                      td_session_get_moment (self->session).iteration, &error);
  if (!self->recompute)
    {
      td__window_show_info (self, GTK_MESSAGE_ERROR, error->message);
      return;
    }
  show_progress (self, 0);
  g_signal_connect (self->recompute, "progress", G_CALLBACK (progressed), self);
  g_signal_connect (self->recompute, "ended", G_CALLBACK (ended), self);
}

void
td__run_cancel_recompute (TdWindow *self, const char *parameter)
{
  if (self->recompute)
    td_job_cancel (self->recompute);
}
