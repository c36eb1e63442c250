/* Help on the page that has the keyboard. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include "settings/td-help.h"

void
td_window_show_help (TdWindow *self)
{
  GtkShortcutsWindow *help
      = gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (self));
  gboolean open = gtk_stack_get_visible_child (self->pages) == GTK_WIDGET (self->workspace);
  const char *fallback = open ? td_workspace_get_perspective (self->workspace) : "start";
  GtkWidget *focus = gtk_root_get_focus (GTK_ROOT (self));
  td_help_show_page (help, td_help_find_page (open ? focus : NULL, fallback));
  gtk_window_present (GTK_WINDOW (help));
}
