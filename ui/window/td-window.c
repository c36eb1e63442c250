/* The window: builds its parts, opens recordings, starts and attaches programs, says what goes
 * on in title, info bar and pages. Actions are in td-window-actions.c.
 *
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <string.h>
#include <time.h>

#include "pages/td-picture-page.h"
#include "pages/td-start-page.h"
#include "schedule/td-curve.h"
#include "tape/td-devices.h"
#include "settings/td-keys.h"
#include "settings/td-settings.h"

#define MIN_WIDTH 1024
#define MIN_HEIGHT 600

G_DEFINE_FINAL_TYPE (TdWindow, td_window, ADW_TYPE_APPLICATION_WINDOW)

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
  adw_toast_overlay_add_toast (self->toasts, toast);
}

static void
copy_details (GtkButton *button, TdWindow *self)
{
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)),
                          self->message_details ? self->message_details : "");
  td__window_toast (self, "Copied");
}

/* ---- title and state ---- */

static const char *const state_names[] = { "running", "paused", "ended", "crashed" };

static const char *
phase_name (TdIteration *iteration, gint event)
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
          self->title, page && page == self->record_page ? "Record a Program" : name);
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
    where = g_strdup ("Waiting for the first operation");
  else if (state == TD_PROGRAM_PAUSED && head.iteration == moment.iteration)
    where = g_strdup_printf ("Iteration %" G_GINT64_FORMAT ", paused in %s", moment.iteration,
                             phase_name (iteration, head.event));
  else
    where = g_strdup_printf ("Iteration %" G_GINT64_FORMAT ", %s · %s", moment.iteration,
                             phase_name (iteration, moment.event), state_names[state]);
  g_autofree char *devices = iteration ? td_devices_dup_summary (iteration) : NULL;
  g_autofree char *subtitle
      = devices ? g_strdup_printf ("%s · %s", where, devices) : g_strdup (where);
  g_clear_pointer (&iteration, td_iteration_unref);
  g_autofree char *valid = g_utf8_make_valid (name, -1);
  adw_window_title_set_title (self->title, valid);
  adw_window_title_set_subtitle (self->title, subtitle);
  gtk_window_set_title (GTK_WINDOW (self), valid);
}

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

/* What stopped it, and the error that it came to last. */
static char *
dup_message (TdWindow *self, const char *reason)
{
  const char *error = NULL;
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
  td__window_set_state (self, "state", state_names[state]);
  reason = reason ? reason : "";
  if (needs_message (state, reason))
    {
      g_autofree char *message = dup_message (self, reason);
      td__window_show_info (
          self, state == TD_PROGRAM_CRASHED ? GTK_MESSAGE_ERROR : GTK_MESSAGE_INFO, message);
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

/* ---- session ---- */

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
  TdWindow *self = TD_WINDOW (data);
  gint64 now = g_get_monotonic_time ();
  td__window_update_waiting (self);
  if (!self->session
      || (now < self->next_poll && td_session_get_state (self->session) == TD_PROGRAM_RUNNING))
    return G_SOURCE_CONTINUE;
  gint64 cpu = cpu_time ();
  self->next_poll = now + MIN ((cpu - self->last_cpu) * LIVE_SHARE, MAX_PAUSE_US);
  self->last_cpu = cpu;
  td_session_poll (self->session);
  return G_SOURCE_CONTINUE;
}

TdSession *
td_window_get_session (TdWindow *self)
{
  return self->session;
}

static void
set_session (TdWindow *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
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
  g_autoptr (TdSession) session = td_session_open_bounded (path, &error);
  if (!session)
    {
      show_open_error (self, path, error->message);
      return FALSE;
    }
  if (self->runner || self->control)
    td_session_set_attached (session, TRUE);
  set_session (self, session);
  if (td_session_get_n_iterations (session) == 0 && self->started)
    ; /* the page says so already */
  else if (td_session_get_n_iterations (session) == 0 && (self->runner || self->control))
    td_window_show_message (self, "media-record-symbolic", "Waiting for the First Operation",
                            "The program has started and is still loading its data.", NULL);
  else if (td_session_get_n_iterations (session) == 0)
    td_window_show_message (self, "dialog-information-symbolic", "Nothing Was Recorded",
                            "The recording holds no iteration.", NULL);
  else
    gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->workspace));
  if (td_session_is_snapshot (session)) /* all that it has is there */
    td_workspace_show_page (self->workspace, "memory");
  td__window_update_actions (self);
  return TRUE;
}

void
td__window_remember (GFile *file)
{
  g_autofree char *uri = g_file_get_uri (file);
  g_autofree char *app = g_strdup ("tapedeck");
  g_autofree char *command = g_strdup ("tapedeck %f");
  g_autofree char *mime = g_strdup ("application/vnd.tapedeck.tape");
  GtkRecentData data = { .mime_type = mime, .app_name = app, .app_exec = command };
  gtk_recent_manager_add_full (gtk_recent_manager_get_default (), uri, &data);
}

/* ---- building ---- */

static GtkWidget *
icon_button (const char *icon, const char *action, const char *words)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (button), action);
  g_autofree char *key = td_keys_get_label (action);
  g_autofree char *tip = key ? g_strdup_printf ("%s (%s)", words, key) : g_strdup (words);
  gtk_widget_set_tooltip_text (button, tip);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, words,
                                  -1);
  return button;
}

static GMenuModel *
new_menu (void)
{
  static const struct
  {
    int section;
    const char *label, *action;
  } items[] = {
    { 0, "_New Window", "app.new-window" },
    { 0, "_Open…", "app.open" },
    { 0, "_Record a Program…", "app.record" },
    { 1, "_Find…", "win.find" },
    { 1, "Fi_lter Operations…", "win.filter" },
    { 1, "_Go To…", "win.go-to-place" },
    { 1, "_Save a Copy…", "win.save-copy" },
    { 1, "_Export Picture…", "win.export" },
    { 1, "_Note at the Playhead…", "win.note" },
    { 1, "_Watch the Selection", "win.watch" },
    { 1, "Co_mpare With…", "win.compare" },
    { 1, "Copy _Differences", "win.copy-differences" },
    { 1, "_Expand Everything", "win.expand-all" },
    { 2, "Lower _Dock", "win.toggle-dock" },
    { 2, "D_etach", "win.detach" },
    { 2, "_Verify Static Functions", "win.verify-static" },
    { 2, "Run Static Functions D_ynamically", "win.run-dynamically" },
    { 2, "R_un Static Functions by Schedule", "win.run-statically" },
    { 3, "_Preferences", "app.preferences" },
    { 3, "_Keyboard Shortcuts", "win.show-help-overlay" },
    { 3, "_About Tapedeck", "app.about" },
  };
  GMenu *menu = g_menu_new ();
  GMenu *section = NULL;
  int current = -1;
  for (guint i = 0; i < G_N_ELEMENTS (items); i++)
    {
      if (items[i].section != current)
        {
          g_clear_object (&section);
          section = g_menu_new ();
          g_menu_append_section (menu, NULL, G_MENU_MODEL (section));
          current = items[i].section;
        }
      g_menu_append (section, items[i].label, items[i].action);
    }
  g_clear_object (&section);
  return G_MENU_MODEL (menu);
}

static void
build_header (TdWindow *self)
{
  AdwHeaderBar *bar = ADW_HEADER_BAR (adw_header_bar_new ());
  self->header = GTK_WIDGET (bar);
  self->title = ADW_WINDOW_TITLE (adw_window_title_new ("Tapedeck", ""));
  adw_header_bar_set_title_widget (bar, GTK_WIDGET (self->title));

  self->open_button = gtk_button_new_with_label ("Open…");
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->open_button), "app.open");
  adw_header_bar_pack_start (bar, self->open_button);
  self->work_start = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_box_append (GTK_BOX (self->work_start),
                  icon_button ("sidebar-show-symbolic", "win.toggle-outline", "Outline"));
  self->live_mark = gtk_image_new_from_icon_name ("media-record-symbolic");
  gtk_widget_add_css_class (self->live_mark, "td-live");
  gtk_widget_set_tooltip_text (self->live_mark, "The program is being recorded");
  gtk_box_append (GTK_BOX (self->work_start), self->live_mark);
  self->progress = GTK_PROGRESS_BAR (gtk_progress_bar_new ());
  gtk_progress_bar_set_show_text (self->progress, TRUE);
  gtk_widget_set_valign (GTK_WIDGET (self->progress), GTK_ALIGN_CENTER);
  gtk_widget_set_size_request (GTK_WIDGET (self->progress), 96, -1);
  gtk_widget_add_css_class (GTK_WIDGET (self->progress), "td-progress");
  gtk_box_append (GTK_BOX (self->work_start), GTK_WIDGET (self->progress));
  gtk_widget_set_tooltip_text (GTK_WIDGET (self->progress), "How far training is");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->progress),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, "How far training is", -1);
  GtkWidget *history = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_add_css_class (history, "linked");
  gtk_box_append (GTK_BOX (history),
                  icon_button ("go-previous-symbolic", "win.back", "Back in history"));
  gtk_box_append (GTK_BOX (history),
                  icon_button ("go-next-symbolic", "win.forward", "Forward in history"));
  gtk_box_append (GTK_BOX (self->work_start), history);
  adw_header_bar_pack_start (bar, self->work_start);

  self->work_end
      = icon_button ("sidebar-show-right-symbolic", "win.toggle-inspector", "Inspector");
  adw_header_bar_pack_end (bar, self->work_end);
  GtkWidget *menu = gtk_menu_button_new ();
  gtk_menu_button_set_icon_name (GTK_MENU_BUTTON (menu), "open-menu-symbolic");
  gtk_menu_button_set_primary (GTK_MENU_BUTTON (menu), TRUE);
  g_autoptr (GMenuModel) model = new_menu ();
  gtk_menu_button_set_menu_model (GTK_MENU_BUTTON (menu), model);
  gtk_widget_set_tooltip_text (menu, "Main Menu");
  gtk_accessible_update_property (GTK_ACCESSIBLE (menu), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  "Main Menu", -1);
  adw_header_bar_pack_end (bar, menu);
  self->find_button = icon_button ("edit-find-symbolic", "win.find", "Find");
  adw_header_bar_pack_end (bar, self->find_button);
  self->perspectives = td_workspace_new_switcher (self->workspace);
  adw_header_bar_pack_end (bar, self->perspectives);
}

static void
page_changed (TdWindow *self)
{
  gboolean working = gtk_stack_get_visible_child (self->pages) == GTK_WIDGET (self->workspace);
  gtk_widget_set_visible (self->open_button, !working);
  gtk_widget_set_visible (self->work_start, working);
  gtk_widget_set_visible (self->work_end, working);
  gtk_widget_set_visible (self->find_button, working);
  gtk_widget_set_visible (self->perspectives, working);
  td__window_update_title (self);
}

static void
info_response (GtkInfoBar *bar, int response, gpointer data)
{
  gtk_info_bar_set_revealed (bar, FALSE);
}

static void
build_info_bar (TdWindow *self)
{
  self->info_bar = gtk_info_bar_new ();
  gtk_info_bar_set_show_close_button (GTK_INFO_BAR (self->info_bar), TRUE);
  gtk_info_bar_set_revealed (GTK_INFO_BAR (self->info_bar), FALSE);
  self->info_label = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_wrap (self->info_label, TRUE);
  gtk_label_set_xalign (self->info_label, 0);
  gtk_widget_set_margin_start (GTK_WIDGET (self->info_label), 12);
  gtk_info_bar_add_child (GTK_INFO_BAR (self->info_bar), GTK_WIDGET (self->info_label));
  g_signal_connect (self->info_bar, "response", G_CALLBACK (info_response), NULL);
}

static void
stop_program (TdWindow *self)
{
  if (self->runner)
    td_runner_stop (self->runner);
}

static void
build_message (TdWindow *self)
{
  self->message = ADW_STATUS_PAGE (adw_status_page_new ());
  GtkWidget *buttons = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  gtk_widget_set_halign (buttons, GTK_ALIGN_CENTER);
  self->message_copy = gtk_button_new_with_label ("Copy Details");
  gtk_widget_add_css_class (self->message_copy, "pill");
  g_signal_connect (self->message_copy, "clicked", G_CALLBACK (copy_details), self);
  gtk_box_append (GTK_BOX (buttons), self->message_copy);
  self->message_stop = gtk_button_new_with_mnemonic ("_Stop");
  gtk_widget_add_css_class (self->message_stop, "pill");
  gtk_widget_set_visible (self->message_stop, FALSE);
  g_signal_connect_swapped (self->message_stop, "clicked", G_CALLBACK (stop_program), self);
  gtk_box_append (GTK_BOX (buttons), self->message_stop);
  GtkWidget *open = gtk_button_new_with_label ("Open…");
  gtk_widget_add_css_class (open, "pill");
  gtk_actionable_set_action_name (GTK_ACTIONABLE (open), "app.open");
  gtk_box_append (GTK_BOX (buttons), open);
  adw_status_page_set_child (self->message, buttons);
}

static void
start_page_open (GtkWidget *page, GFile *file, TdWindow *self)
{
  td_window_open (self, file);
}

static void
td_window_dispose (GObject *object)
{
  TdWindow *self = TD_WINDOW (object);
  GtkShortcutsWindow *help
      = gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (self));
  if (help) /* GTK leaves it on its list; busy with a key it ends later, and looks for us then
             */
    {
      g_object_set_data_full (G_OBJECT (help), "of", g_object_ref (self), g_object_unref);
      gtk_window_destroy (GTK_WINDOW (help));
    }
  g_clear_handle_id (&self->poll, g_source_remove);
  g_clear_handle_id (&self->playing, g_source_remove);
  g_clear_handle_id (&self->connecting, g_source_remove);
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  if (self->workspace)
    {
      td_workspace_set_session (self->workspace, NULL);
      td_workspace_set_notebook (self->workspace, NULL, NULL);
    }
  g_clear_object (&self->notebook);
  g_clear_object (&self->session);
  g_clear_object (&self->control);
  if (self->runner) /* it lives on until the program has ended */
    td_runner_stop (self->runner);
  g_clear_object (&self->runner);
  g_clear_pointer (&self->own_breaks, g_ptr_array_unref);
  g_clear_pointer (&self->launch_env, g_strfreev);
  g_clear_pointer (&self->launch_dir, g_free);
  g_clear_pointer (&self->stop, g_free);
  g_clear_pointer (&self->message_details, g_free);
  self->workspace = NULL;
  G_OBJECT_CLASS (td_window_parent_class)->dispose (object);
}

static gboolean
td_window_close_request (GtkWindow *window)
{
  if (td__window_ask_to_close (TD_WINDOW (window)))
    return TRUE;
  return GTK_WINDOW_CLASS (td_window_parent_class)->close_request (window);
}

static void
td_window_class_init (TdWindowClass *klass)
{
  GTK_WINDOW_CLASS (klass)->close_request = td_window_close_request;
  G_OBJECT_CLASS (klass)->dispose = td_window_dispose;
}

/* What is kept from one window to the next; without a schema nothing is. */
static void
bind_settings (TdWindow *self)
{
  GSettings *settings = td_settings_get ();
  if (!settings)
    {
      gtk_window_set_default_size (GTK_WINDOW (self), 1440, 900);
      return;
    }
  g_settings_bind (settings, "window-width", self, "default-width", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind (settings, "window-height", self, "default-height", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind (settings, "window-maximized", self, "maximized", G_SETTINGS_BIND_DEFAULT);
  td_workspace_bind_settings (self->workspace, settings);
}

static void
td_window_init (TdWindow *self)
{
  self->own_breaks = g_ptr_array_new_with_free_func (g_free);
  self->workspace = TD_WORKSPACE (td_workspace_new ());
  g_signal_connect (td_workspace_get_inspector (self->workspace), "read",
                    G_CALLBACK (td__window_read_live), self);
  g_signal_connect (td_inspector_get_inside (td_workspace_get_inspector (self->workspace)),
                    "look", G_CALLBACK (td__window_look_inside), self);
  self->pages = GTK_STACK (gtk_stack_new ());
  self->start_page = td_start_page_new ();
  g_signal_connect (self->start_page, "open", G_CALLBACK (start_page_open), self);
  build_header (self);
  build_info_bar (self);
  build_message (self);
  gtk_stack_add_named (self->pages, self->start_page, "start");
  gtk_stack_add_named (self->pages, GTK_WIDGET (self->message), "message");
  gtk_stack_add_named (self->pages, GTK_WIDGET (self->workspace), "workspace");
  gtk_widget_set_vexpand (GTK_WIDGET (self->pages), TRUE);
  g_signal_connect_swapped (self->pages, "notify::visible-child", G_CALLBACK (page_changed),
                            self);

  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append (GTK_BOX (box), self->header);
  gtk_box_append (GTK_BOX (box), self->info_bar);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->pages));
  self->toasts = ADW_TOAST_OVERLAY (adw_toast_overlay_new ());
  adw_toast_overlay_set_child (self->toasts, box);
  adw_application_window_set_content (ADW_APPLICATION_WINDOW (self), GTK_WIDGET (self->toasts));

  td__window_add_actions (self);
  g_autoptr (GtkShortcutsWindow) help = td_keys_new_window ();
  gtk_application_window_set_help_overlay (GTK_APPLICATION_WINDOW (self), help);
  bind_settings (self);
  gtk_widget_set_size_request (GTK_WIDGET (self), MIN_WIDTH, MIN_HEIGHT);
  self->poll = g_timeout_add (POLL_INTERVAL_MS, poll_session, self);
  page_changed (self);
  td__window_update_actions (self);
}

TdWindow *
td_window_new (GtkApplication *app)
{
  return g_object_new (TD_TYPE_WINDOW, "application", app, NULL);
}
