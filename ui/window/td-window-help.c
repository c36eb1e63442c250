/* Help on the page that has the keyboard. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include "settings/td-help.h"

static const char *
find_page (TdWindow *self)
{
  gboolean open = gtk_stack_get_visible_child (self->pages) == GTK_WIDGET (self->workspace);
  const char *fallback = open ? td_workspace_get_perspective (self->workspace) : "start";
  GtkWidget *focus = gtk_root_get_focus (GTK_ROOT (self));
  return td_help_find_page (open ? focus : NULL, fallback);
}

const char *
td_window_get_help_topic (TdWindow *self)
{
  return td_help_find_topic (find_page (self));
}

void
td__run_page_keys (TdWindow *self, const char *parameter)
{
  GtkShortcutsWindow *help
      = gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (self));
  td_help_show_page (help, find_page (self));
  gtk_window_present (GTK_WINDOW (help));
}
