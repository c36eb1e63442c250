/* The window itself, which all others of this folder stand on: what it says in title, info bar,
 * toasts and on its page of messages, which of its actions can be done now, and its end. It is
 * put together in td-window-build.c.
 *
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

#include "pages/td-picture-page.h"
#include "schedule/td-curve.h"
#include "tape/td-devices.h"

G_DEFINE_FINAL_TYPE (TdWindow, td_window, ADW_TYPE_APPLICATION_WINDOW)

TdSession *
td_window_get_session (TdWindow *self)
{
  return self->session;
}

gboolean
td_window_is_empty (TdWindow *self)
{
  return !self->session && !self->runner && !self->control && !self->import && !self->loading;
}

/* ---- which actions can be done ---- */

static guint
find_conditions (TdWindow *self)
{
  if (!self->session)
    return TD_NEEDS_NO_RECORDING;
  guint met = TD_NEEDS_RECORDING, n_selected;
  TdProgramState state = td_session_get_state (self->session);
  gboolean live = self->control && td_control_client_is_open (self->control)
                  && (state == TD_PROGRAM_RUNNING || state == TD_PROGRAM_PAUSED);
  TdIteration *iteration = td_session_get_current (self->session);
  gboolean events = iteration && td_iteration_get_n_events (iteration) > 0;
  g_clear_pointer (&iteration, td_iteration_unref);
  gboolean running = (live && state == TD_PROGRAM_RUNNING) || self->playing;
  met |= events ? TD_NEEDS_EVENTS : 0;
  /* a program that stands before its first operation has iterations before it */
  met |= events || live || td_session_get_n_iterations (self->session) > 1 ? TD_NEEDS_STEPPABLE
                                                                           : 0;
  td_session_get_selection (self->session, &n_selected);
  met |= n_selected ? TD_NEEDS_SELECTION : 0;
  met |= live ? TD_NEEDS_LIVE : 0;
  met |= running ? TD_NEEDS_RUNNING : 0;
  met |= !running && (events || live) ? TD_NEEDS_PLAYABLE : 0;
  met |= self->lesson_step >= 0 ? TD_NEEDS_LESSON : 0;
  met |= self->lesson_step > 0 ? TD_NEEDS_LESSON_BEFORE : 0;
  met |= td_session_can_go_back (self->session) ? TD_NEEDS_PAST : 0;
  met |= td_session_can_go_forward (self->session) ? TD_NEEDS_FUTURE : 0;
  return met;
}

void
td__window_update_actions (TdWindow *self)
{
  guint met = find_conditions (self);
  for (guint i = 0; i < self->n_actions; i++)
    {
      GAction *action = g_action_map_lookup_action (G_ACTION_MAP (self), self->actions[i].name);
      g_simple_action_set_enabled (G_SIMPLE_ACTION (action),
                                   (self->actions[i].needs & ~met) == 0
                                       && self->actions[i].run);
    }
  gtk_widget_set_visible (self->live_mark, (met & TD_NEEDS_LIVE) != 0);
}

void
td__window_set_state (TdWindow *self, const char *name, const char *value)
{
  GAction *action = g_action_map_lookup_action (G_ACTION_MAP (self), name);
  g_simple_action_set_state (G_SIMPLE_ACTION (action), g_variant_new_string (value));
}

/* ---- messages ---- */

void
td_window_show_message (TdWindow *self, const char *icon, const char *title, const char *text,
                        const char *details)
{
  g_autofree char *escaped = g_markup_escape_text (text ? text : "", -1);
  adw_status_page_set_icon_name (self->message, icon);
  adw_status_page_set_title (self->message, title);
  adw_status_page_set_description (self->message, escaped);
  g_free (self->message_details);
  self->message_details = g_strdup (details);
  gtk_widget_set_visible (self->message_copy, details && *details);
  gtk_widget_set_visible (self->message_stop, FALSE);
  gtk_widget_set_visible (self->message_cancel, FALSE);
  gtk_widget_set_visible (self->message_again, FALSE);
  gtk_widget_set_visible (GTK_WIDGET (self->message_progress), FALSE);
  self->started = 0;
  gtk_stack_set_visible_child_name (self->pages, "message");
  td__window_update_actions (self);
}

void
td__window_show_info (TdWindow *self, GtkMessageType type, const char *text)
{
  gtk_label_set_text (self->info_label, text);
  gtk_info_bar_set_message_type (GTK_INFO_BAR (self->info_bar), type);
  gtk_info_bar_set_revealed (GTK_INFO_BAR (self->info_bar), TRUE);
}

void
td__window_toast (TdWindow *self, const char *text)
{
  g_autofree char *escaped = g_markup_escape_text (text, -1);
  AdwToast *toast = adw_toast_new (escaped);
  adw_toast_set_timeout (toast, 4);
  if (gtk_stack_get_visible_child (self->pages) == GTK_WIDGET (self->workspace))
    td_workspace_add_toast (self->workspace, toast);
  else
    adw_toast_overlay_add_toast (self->toasts, toast);
}

void
td__window_remember (GFile *file)
{
  g_autofree char *uri = g_file_get_uri (file);
  g_autofree char *app = g_strdup ("tapedeck");
  g_autofree char *command = g_strdup ("tapedeck %f");
  gboolean is_folder = g_file_query_file_type (file, 0, NULL) == G_FILE_TYPE_DIRECTORY;
  g_autofree char *mime
      = g_strdup (is_folder ? "inode/directory" : "application/vnd.tapedeck.tape");
  GtkRecentData data = { .mime_type = mime, .app_name = app, .app_exec = command };
  gtk_recent_manager_add_full (gtk_recent_manager_get_default (), uri, &data);
}

/* ---- title ---- */

const char *
td__window_state_name (TdProgramState state)
{
  static const char *const names[] = { "running", "paused", "ended", "crashed" };
  return names[state];
}

const char *
td__window_phase_name (TdIteration *iteration, gint event)
{
  static const char *const names[] = { "forward", "backward", "backward", "update" };
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  if (tape->flags & TD_TAPE_ITERATION_SNAPSHOT)
    return "memory snapshot";
  if (event < 0 || (guint32)event >= tape->n_events)
    return "forward";
  return names[MIN (tape->events[event].phase, 3)];
}

/* Shown while the program runs, if it has a progress bar and so a total. */
static void
update_progress (TdWindow *self)
{
  TdProgramState state
      = self->session ? td_session_get_state (self->session) : TD_PROGRAM_ENDED;
  gboolean live = state == TD_PROGRAM_RUNNING || state == TD_PROGRAM_PAUSED;
  double rate = live ? td_curves_progress (td_session_get_curves (self->session)) : -1;
  gtk_widget_set_visible (GTK_WIDGET (self->progress), rate >= 0);
  if (rate < 0)
    return;
  g_autofree char *text = g_strdup_printf (rate < 0.1 ? "%.1f %%" : "%.0f %%", rate * 100);
  gtk_progress_bar_set_fraction (self->progress, rate);
  gtk_progress_bar_set_text (self->progress, text);
}

void
td__window_update_title (TdWindow *self)
{
  update_progress (self);
  if (!self->session)
    {
      GtkWidget *page = gtk_stack_get_visible_child (self->pages);
      const char *name = "Tapedeck";
      if (page && page == self->picture_page)
        name = td_picture_page_get_name (TD_PICTURE_PAGE (page));
      gtk_window_set_title (GTK_WINDOW (self), name);
      adw_window_title_set_title (
          self->title, page && page == self->record_page ? _ ("Record a Program") : name);
      adw_window_title_set_subtitle (self->title, "");
      return;
    }
  TdMoment moment = td_session_get_moment (self->session);
  TdProgramState state = td_session_get_state (self->session);
  TdMoment head = td_session_get_head (self->session);
  const char *name = td_session_get_name (self->session);
  g_autofree char *where = NULL;
  TdIteration *iteration = td_session_get_current (self->session);
  if (!iteration)
    where = g_strdup (state <= TD_PROGRAM_PAUSED ? _ ("Waiting for the first operation")
                                                 : _ ("Ended before the first operation"));
  else if (state == TD_PROGRAM_PAUSED && head.iteration == moment.iteration)
    where = g_strdup_printf ("Iteration %" G_GINT64_FORMAT ", paused in %s", moment.iteration,
                             td__window_phase_name (iteration, head.event));
  else
    where = g_strdup_printf ("Iteration %" G_GINT64_FORMAT ", %s · %s", moment.iteration,
                             td__window_phase_name (iteration, moment.event),
                             td__window_state_name (state));
  g_autofree char *devices = iteration ? td_devices_dup_summary (iteration) : NULL;
  g_autofree char *subtitle
      = devices ? g_strdup_printf ("%s · %s", where, devices) : g_strdup (where);
  g_clear_pointer (&iteration, td_iteration_unref);
  guint n_ranks = td_tape_reader_header (td_session_get_reader (self->session))->n_ranks;
  g_autofree char *of_rank
      = n_ranks > 1 ? g_strdup_printf (
            "%s · rank %u of %u", name,
            td_tape_reader_header (td_session_get_reader (self->session))->rank, n_ranks)
                    : g_strdup (name);
  g_autofree char *valid = g_utf8_make_valid (of_rank, -1);
  adw_window_title_set_title (self->title, valid);
  adw_window_title_set_subtitle (self->title, subtitle);
  gtk_window_set_title (GTK_WINDOW (self), valid);
}

/* ---- life ---- */

/* Who waits for an answer holds the window: each of them gets one. */
void
td__window_disconnect (TdWindow *self)
{
  g_autoptr (TdControlClient) control = g_steal_pointer (&self->control);
  if (!control)
    return;
  g_signal_handlers_disconnect_by_data (control, self);
  td_control_client_close (control);
  td__window_list_breaks (self);
}

static void
td_window_dispose (GObject *object)
{
  TdWindow *self = TD_WINDOW (object);
  td__window_drop_help (self);
  g_clear_handle_id (&self->poll, g_source_remove);
  g_clear_handle_id (&self->playing, g_source_remove);
  g_clear_handle_id (&self->connecting, g_source_remove);
  td__window_end_cost (self);
  g_clear_weak_pointer (&self->panel);
  g_clear_handle_id (&self->clearing, g_source_remove);
  g_clear_handle_id (&self->importing, g_source_remove);
  td_job_drop (g_steal_pointer (&self->recompute), self);
  td_job_drop (g_steal_pointer (&self->import), self);
  if (self->loading)
    g_cancellable_cancel (self->loading);
  g_clear_object (&self->loading);
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  if (self->workspace)
    {
      td_workspace_set_session (self->workspace, NULL);
      td_workspace_set_notebook (self->workspace, NULL, NULL);
    }
  g_clear_object (&self->notebook);
  g_clear_object (&self->session);
  self->workspace = NULL;
  td__window_disconnect (self);
  if (self->runner) /* it lives on until the program has ended */
    td_runner_stop (self->runner);
  g_clear_object (&self->runner);
  g_clear_pointer (&self->own_breaks, g_ptr_array_unref);
  g_clear_pointer (&self->launch_env, g_strfreev);
  g_clear_pointer (&self->launch_dir, g_free);
  g_clear_pointer (&self->stop, g_free);
  g_clear_pointer (&self->message_details, g_free);
  g_clear_pointer (&self->import_path, g_free);
  G_OBJECT_CLASS (td_window_parent_class)->dispose (object);
}

static void
td_window_class_init (TdWindowClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_window_dispose;
}

static void
td_window_init (TdWindow *self)
{
  self->own_breaks = g_ptr_array_new_with_free_func (g_free);
  self->lesson_step = -1;
}
