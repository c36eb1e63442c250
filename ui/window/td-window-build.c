/* The window is put together: header bar, info bar, its pages and actions.
 *
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

#include "pages/td-start-page.h"
#include "settings/td-keys.h"
#include "settings/td-settings.h"

#define MIN_WIDTH 900
#define MIN_HEIGHT 600

/* ---- header ---- */

static GtkWidget *
icon_button (const char *icon, const char *action, const char *words)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (button), action);
  td_keys_set_words (button, action, words);
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
    { 0, N_ ("_New Window"), "app.new-window" },
    { 0, N_ ("_Open…"), "app.open" },
    { 0, N_ ("Open _Folder of Ranks…"), "app.open-folder" },
    { 0, N_ ("_Record a Program…"), "app.record" },
    { 1, N_ ("_Find…"), "win.find" },
    { 1, N_ ("Fi_lter Operations…"), "win.filter" },
    { 1, N_ ("_Go To…"), "win.go-to-place" },
    { 1, N_ ("_Break When…"), "win.break-when" },
    { 1, N_ ("Cop_y Link to This Moment"), "win.copy-link" },
    { 1, N_ ("_Save a Copy…"), "win.save-copy" },
    { 1, N_ ("_Export Picture…"), "win.export" },
    { 1, N_ ("Export _Panel or Table…"), "win.export-panel" },
    { 1, N_ ("Evaluate E_xpression"), "win.evaluate" },
    { 1, N_ ("Save _Values…"), "win.export-values" },
    { 1, N_ ("Recomp_ute This Iteration"), "win.recompute" },
    { 1, N_ ("_Note at the Playhead…"), "win.note" },
    { 1, N_ ("_Watch the Selection"), "win.watch" },
    { 1, N_ ("Co_mpare With…"), "win.compare" },
    { 1, N_ ("Copy _Differences"), "win.copy-differences" },
    { 1, N_ ("_Expand Everything"), "win.expand-all" },
    { 2, N_ ("Lower _Dock"), "win.toggle-dock" },
    { 2, N_ ("D_etach"), "win.detach" },
    { 1, N_ ("Iterations _From Here On"), "win.range-from-here" },
    { 1, N_ ("Iterations Up _To Here"), "win.range-to-here" },
    { 2, N_ ("_What Layers Cost"), "win.flame::time" },
    { 2, N_ ("Explai_n Static Functions"), "win.explain" },
    { 2, N_ ("_Verify Static Functions"), "win.verify-static" },
    { 2, N_ ("Run Static Functions D_ynamically"), "win.run-dynamically" },
    { 2, N_ ("R_un Static Functions by Schedule"), "win.run-statically" },
    { 3, N_ ("_Preferences"), "app.preferences" },
    { 3, N_ ("_Help"), "app.help" },
    { 3, N_ ("_Keyboard Shortcuts"), "win.show-help-overlay" },
    { 3, N_ ("_About Tapedeck"), "app.about" },
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
      g_menu_append (section, _ (items[i].label), items[i].action);
    }
  g_clear_object (&section);
  return G_MENU_MODEL (menu);
}

/* One for all windows: GTK 4.8 never lets go of the sections that a popover was made of, 30 KB
 * with each window. */
static GMenuModel *
get_menu (void)
{
  static GMenuModel *menu;
  if (!menu)
    menu = new_menu ();
  return menu;
}

static void
build_header (TdWindow *self)
{
  AdwHeaderBar *bar = ADW_HEADER_BAR (adw_header_bar_new ());
  self->header = GTK_WIDGET (bar);
  self->title = ADW_WINDOW_TITLE (adw_window_title_new ("Tapedeck", ""));
  adw_header_bar_set_title_widget (bar, GTK_WIDGET (self->title));

  self->open_button = gtk_button_new_with_label (_ ("Open…"));
  gtk_actionable_set_action_name (GTK_ACTIONABLE (self->open_button), "app.open");
  adw_header_bar_pack_start (bar, self->open_button);
  self->work_start = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_box_append (GTK_BOX (self->work_start),
                  icon_button ("sidebar-show-symbolic", "win.toggle-outline", _ ("Outline")));
  self->live_mark = gtk_image_new_from_icon_name ("media-record-symbolic");
  gtk_widget_add_css_class (self->live_mark, "td-live");
  gtk_widget_set_tooltip_text (self->live_mark, _ ("The program is being recorded"));
  gtk_box_append (GTK_BOX (self->work_start), self->live_mark);
  self->progress = GTK_PROGRESS_BAR (gtk_progress_bar_new ());
  gtk_progress_bar_set_show_text (self->progress, TRUE);
  gtk_widget_set_valign (GTK_WIDGET (self->progress), GTK_ALIGN_CENTER);
  gtk_widget_set_size_request (GTK_WIDGET (self->progress), 96, -1);
  gtk_widget_add_css_class (GTK_WIDGET (self->progress), "td-progress");
  gtk_box_append (GTK_BOX (self->work_start), GTK_WIDGET (self->progress));
  gtk_widget_set_tooltip_text (GTK_WIDGET (self->progress), _ ("How far training is"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->progress),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("How far training is"), -1);
  GtkWidget *history = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_widget_add_css_class (history, "linked");
  gtk_box_append (GTK_BOX (history),
                  icon_button ("go-previous-symbolic", "win.back", _ ("Back in history")));
  gtk_box_append (GTK_BOX (history),
                  icon_button ("go-next-symbolic", "win.forward", _ ("Forward in history")));
  gtk_box_append (GTK_BOX (self->work_start), history);
  gtk_box_append (GTK_BOX (self->work_start), td__window_new_rank_list (self));
  adw_header_bar_pack_start (bar, self->work_start);

  self->work_end
      = icon_button ("sidebar-show-right-symbolic", "win.toggle-inspector", _ ("Inspector"));
  adw_header_bar_pack_end (bar, self->work_end);
  GtkWidget *menu = gtk_menu_button_new ();
  gtk_menu_button_set_icon_name (GTK_MENU_BUTTON (menu), "open-menu-symbolic");
  gtk_menu_button_set_primary (GTK_MENU_BUTTON (menu), TRUE);
  gtk_widget_set_name (menu, "main-menu");
  gtk_menu_button_set_menu_model (GTK_MENU_BUTTON (menu), get_menu ());
  gtk_widget_set_tooltip_text (menu, _ ("Main Menu"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (menu), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Main Menu"), -1);
  adw_header_bar_pack_end (bar, menu);
  self->find_button = icon_button ("edit-find-symbolic", "win.find", _ ("Find"));
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
copy_details (GtkButton *button, TdWindow *self)
{
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)),
                          self->message_details ? self->message_details : "");
  td__window_toast (self, _ ("Copied"));
}

static void
stop_program (TdWindow *self)
{
  if (self->runner)
    td_runner_stop (self->runner);
}

/* Hidden until there is something to do with it. */
static GtkWidget *
action_button (GtkWidget *buttons, const char *label, const char *action)
{
  GtkWidget *button = gtk_button_new_with_mnemonic (label);
  gtk_widget_add_css_class (button, "pill");
  gtk_actionable_set_action_name (GTK_ACTIONABLE (button), action);
  gtk_widget_set_visible (button, FALSE);
  gtk_box_append (GTK_BOX (buttons), button);
  return button;
}

static void
build_message (TdWindow *self)
{
  self->message = ADW_STATUS_PAGE (adw_status_page_new ());
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 18);
  gtk_widget_set_halign (box, GTK_ALIGN_CENTER);
  self->message_progress = GTK_PROGRESS_BAR (gtk_progress_bar_new ());
  gtk_widget_set_size_request (GTK_WIDGET (self->message_progress), 360, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->message_progress),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, _ ("How far it is"), -1);
  gtk_widget_set_visible (GTK_WIDGET (self->message_progress), FALSE);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->message_progress));
  GtkWidget *buttons = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  gtk_widget_set_halign (buttons, GTK_ALIGN_CENTER);
  self->message_cancel = action_button (buttons, "_Cancel", "win.cancel-import");
  self->message_again = action_button (buttons, "_Try Again", "win.import-again");
  self->message_copy = gtk_button_new_with_label (_ ("Copy Details"));
  gtk_widget_add_css_class (self->message_copy, "pill");
  g_signal_connect (self->message_copy, "clicked", G_CALLBACK (copy_details), self);
  gtk_box_append (GTK_BOX (buttons), self->message_copy);
  self->message_stop = gtk_button_new_with_mnemonic (_ ("_Stop"));
  gtk_widget_add_css_class (self->message_stop, "pill");
  gtk_widget_set_visible (self->message_stop, FALSE);
  g_signal_connect_swapped (self->message_stop, "clicked", G_CALLBACK (stop_program), self);
  gtk_box_append (GTK_BOX (buttons), self->message_stop);
  gtk_widget_set_visible (action_button (buttons, "Open…", "app.open"), TRUE);
  gtk_box_append (GTK_BOX (box), buttons);
  adw_status_page_set_child (self->message, box);
}

static void
start_page_open (GtkWidget *page, GFile *file, TdWindow *self)
{
  td_window_open (self, file);
}

/* Files and folders that are dragged onto the window. */
static gboolean
dropped (GtkDropTarget *target, const GValue *value, double x, double y, TdWindow *self)
{
  GSList *files = gdk_file_list_get_files (g_value_get_boxed (value));
  if (!files)
    return FALSE;
  GFile **all = g_new0 (GFile *, g_slist_length (files));
  int n = 0;
  for (GSList *item = files; item; item = item->next)
    all[n++] = item->data;
  g_application_open (G_APPLICATION (gtk_window_get_application (GTK_WINDOW (self))), all, n,
                      "");
  g_free (all);
  g_slist_free (files);
  return TRUE;
}

static void
take_drops (TdWindow *self)
{
  GtkDropTarget *target = gtk_drop_target_new (GDK_TYPE_FILE_LIST, GDK_ACTION_COPY);
  g_signal_connect (target, "drop", G_CALLBACK (dropped), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (target));
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
build (TdWindow *self)
{
  self->workspace = TD_WORKSPACE (td_workspace_new ());
  td__window_connect_breaks (self);
  g_signal_connect (td_workspace_get_inspector (self->workspace), "read",
                    G_CALLBACK (td__window_read_live), self);
  g_signal_connect (td_workspace_get_evaluate (self->workspace), "read",
                    G_CALLBACK (td__window_read_to_evaluate), self);
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
  td__window_add_help (self);
  bind_settings (self);
  gtk_widget_set_size_request (GTK_WIDGET (self), MIN_WIDTH, MIN_HEIGHT);
  g_signal_connect (self, "notify::focus-widget", G_CALLBACK (td__window_note_focus), NULL);
  g_signal_connect (self, "close-request", G_CALLBACK (td__window_ask_to_close), NULL);
  take_drops (self);
  td__window_look_on (self);
  page_changed (self);
  td__window_update_actions (self);
}

TdWindow *
td_window_new (GtkApplication *app)
{
  TdWindow *self = g_object_new (TD_TYPE_WINDOW, "application", app, NULL);
  build (self);
  return self;
}
