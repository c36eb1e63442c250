/* The recording on show: opening it, and what follows in the window when its playhead, its
 * selection or its program moves.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

/* ---- what changes ---- */

static void
moment_changed (TdWindow *self)
{
  TdMoment moment = td_session_get_moment (self->session);
  g_autofree char *text = g_strdup_printf ("%" G_GINT64_FORMAT "/%d/%d", moment.iteration,
                                           moment.event, moment.rank);
  td__window_set_state (self, "moment", text);
  td__window_update_title (self);
  td__window_update_actions (self);
}

static void
selection_changed (TdWindow *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  g_autofree char *text
      = n ? g_strdup_printf ("%016" G_GINT64_MODIFIER "x", keys[0]) : g_strdup ("");
  td__window_set_state (self, "selected", text);
  td__window_update_actions (self);
}

/* A step and a clean end need no message; whatever else stopped the program does. */
static gboolean
needs_message (TdProgramState state, const char *reason)
{
  if (state == TD_PROGRAM_CRASHED)
    return TRUE;
  if (g_str_has_prefix (reason, "before ") && !strstr (reason, "breakpoint"))
    return FALSE; /* where a step led to, which is seen */
  return state != TD_PROGRAM_RUNNING && *reason && strcmp (reason, "ended") != 0
         && strcmp (reason, "step") != 0 && strcmp (reason, "pause") != 0;
}

/* A crash is looked at where it happened. */
static void
go_to_head (TdWindow *self)
{
  TdMoment head = td_session_get_head (self->session);
  if (head.iteration >= 0)
    td_session_set_moment (self->session, head.iteration, head.event);
}

/* Why the tape holds less than the program did; NULL: it holds all. */
static const char *
find_loss (TdWindow *self)
{
  for (guint i = td_session_get_n_notices (self->session); i-- > 0;)
    if (td_session_get_notice (self->session, i)->is_loss)
      return td_session_get_notice (self->session, i)->text;
  return NULL;
}

/* What went wrong beside this program: a rank does not come. */
static const char *
find_others (TdWindow *self)
{
  for (guint i = td_session_get_n_notices (self->session); i-- > 0;)
    if (td_session_get_notice (self->session, i)->is_of_others)
      return td_session_get_notice (self->session, i)->text;
  return NULL;
}

/* What stopped it, and the error that it came to last, or what was lost. */
static char *
dup_message (TdWindow *self, const char *reason)
{
  const char *error = find_loss (self);
  for (guint i = 0; i < td_session_get_n_notices (self->session); i++)
    if (td_session_get_notice (self->session, i)->is_error)
      error = td_session_get_notice (self->session, i)->text;
  if (!*reason)
    reason = "The recording ends without saying how the program ended";
  g_autofree char *text = error && !strstr (reason, error)
                              ? g_strdup_printf ("%s · %s", reason, error)
                              : g_strdup (reason);
  return g_utf8_make_valid (text, -1);
}

/* Where a device found an error after others had run, the program stands elsewhere: what is in
 * error is selected. */
static void
select_fault (TdWindow *self, const char *reason)
{
  const TdNotice *last = NULL;
  for (guint i = 0; i < td_session_get_n_notices (self->session); i++)
    if (td_session_get_notice (self->session, i)->is_error)
      last = td_session_get_notice (self->session, i);
  if (!last || !g_str_has_prefix (reason, last->text) || reason[strlen (last->text)] != ';')
    return;
  g_autoptr (TdIteration) iteration
      = td_session_load_iteration (self->session, last->iteration, NULL);
  const TdTapeIteration *tape = iteration ? td_iteration_get_tape (iteration) : NULL;
  if (!tape || tape->n_faults == 0)
    return;
  const guint32 event = tape->faults[tape->n_faults - 1].event;
  if (event < tape->n_events)
    td_session_select (self->session, tape->events[event].key);
}

static void
head_changed (TdWindow *self)
{
  TdProgramState state = td_session_get_state (self->session);
  const char *reason = td_session_get_reason (self->session);
  td__window_set_state (self, "state", td__window_state_name (state));
  reason = reason ? reason : "";
  if (needs_message (state, reason))
    {
      g_autofree char *message = dup_message (self, reason);
      td__window_show_info (
          self, state == TD_PROGRAM_CRASHED ? GTK_MESSAGE_ERROR : GTK_MESSAGE_INFO, message);
    }
  else if (find_loss (self))
    {
      g_autofree char *text
          = g_strdup_printf (_ ("This recording is not whole: %s"), find_loss (self));
      g_autofree char *valid = g_utf8_make_valid (text, -1);
      td__window_show_info (self, GTK_MESSAGE_WARNING, valid);
    }
  else if (find_others (self))
    {
      g_autofree char *valid = g_utf8_make_valid (find_others (self), -1);
      td__window_show_info (self, GTK_MESSAGE_WARNING, valid);
    }
  else
    gtk_info_bar_set_revealed (GTK_INFO_BAR (self->info_bar), FALSE);
  gboolean crashed_now = state == TD_PROGRAM_CRASHED && self->last_state != state;
  if (state == TD_PROGRAM_PAUSED && self->last_state != state)
    select_fault (self, reason);
  self->last_state = state;
  if (crashed_now)
    go_to_head (self);
  td__window_update_title (self);
  td__window_update_actions (self);
}

static void
iterations_changed (TdWindow *self)
{
  if (gtk_stack_get_visible_child (self->pages) != GTK_WIDGET (self->workspace)
      && td_session_get_n_iterations (self->session) > 0)
    gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->workspace));
  td__window_update_title (self);
  td__window_update_actions (self);
}

/* ---- opening ---- */

static void
set_session (TdWindow *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  td__window_forget_recompute (self);
  g_set_object (&self->session, session);
  td_workspace_set_session (self->workspace, session);
  if (!session)
    {
      td__window_open_notebook (self);
      return;
    }
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (moment_changed), self);
  g_signal_connect_swapped (session, "selection-changed", G_CALLBACK (selection_changed), self);
  g_signal_connect_swapped (session, "head-changed", G_CALLBACK (head_changed), self);
  g_signal_connect_swapped (session, "notices-changed", G_CALLBACK (head_changed), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (iterations_changed),
                            self);
  g_signal_connect_swapped (session, "follow-changed", G_CALLBACK (td__window_update_actions),
                            self);
  g_signal_connect_swapped (session, "history-changed", G_CALLBACK (td__window_update_actions),
                            self);
  self->last_state = TD_PROGRAM_RUNNING;
  td__window_update_rank_list (self);
  moment_changed (self);
  selection_changed (self);
  head_changed (self);
  td__window_open_notebook (self);
}

/* The title of the page follows from what the reader says; its line is the text. */
static void
show_open_error (TdWindow *self, const char *path, const char *line)
{
  const char *title = "This Recording Cannot Be Read";
  if (strstr (line, "made with tape format"))
    title = "Made with a Newer Tapedeck";
  else if (strstr (line, "not a tape"))
    title = "Not a Recording";
  else if (!g_file_test (path, G_FILE_TEST_EXISTS))
    title = "No Such Recording";
  td_window_show_message (self, "dialog-warning-symbolic", title, line, line);
}

gboolean
td__window_open_tape (TdWindow *self, const char *path)
{
  g_autoptr (GError) error = NULL;
  td__window_forget_import (self);
  g_autoptr (TdSession) session = td_session_open_bounded (path, &error);
  if (!td__window_take_session (self, path, session, error))
    return FALSE;
  td__window_show_session (self);
  return TRUE;
}

gboolean
td__window_take_session (TdWindow *self, const char *path, TdSession *session,
                         const GError *error)
{
  if (!session)
    {
      show_open_error (self, path, error->message);
      return FALSE;
    }
  if (self->runner || self->control)
    td_session_set_attached (session, TRUE);
  set_session (self, session);
  return TRUE;
}

void
td__window_show_session (TdWindow *self)
{
  TdSession *session = self->session;
  if (td_session_get_n_iterations (session) == 0 && self->started)
    ; /* the page says so already */
  else if (td_session_get_n_iterations (session) == 0 && (self->runner || self->control))
    td_window_show_message (self, "media-record-symbolic",
                            _ ("Waiting for the First Operation"),
                            _ ("The program has started and is still loading its data."), NULL);
  else if (td_session_get_n_iterations (session) == 0)
    td_window_show_message (self, "dialog-information-symbolic", _ ("Nothing Was Recorded"),
                            _ ("The recording holds no iteration."), NULL);
  else
    gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->workspace));
  if (td_session_is_snapshot (session)) /* all that it has is there */
    td_workspace_show_page (self->workspace, "memory");
  if (td_session_is_trace (session))
    td_workspace_show_picture (self->workspace, "schedule", "timeline");
  td__window_update_actions (self);
}
