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

/* GTK leaves it on its list; busy with a key it would outlive us, and look for us. */
void
td__window_drop_help (TdWindow *self)
{
  GtkShortcutsWindow *help
      = gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (self));
  g_clear_handle_id (&self->renewing_help, g_source_remove);
  if (!help)
    return;
  g_object_ref (help);
  gtk_window_destroy (GTK_WINDOW (help));
  g_object_run_dispose (G_OBJECT (help));
  g_object_unref (help);
}

/* A new one for each page: one that has been on the screen, and is told of another page when it
 * is not, is never given back (GTK 4.8, 1 MB). */
static void
set_help (TdWindow *self, const char *page)
{
  g_autoptr (GtkShortcutsWindow) help = td_help_new_window (page);
  td__window_drop_help (self);
  gtk_application_window_set_help_overlay (GTK_APPLICATION_WINDOW (self), help);
}

void
td__window_add_help (TdWindow *self)
{
  set_help (self, NULL);
}

static gboolean
renew_help (gpointer data)
{
  TdWindow *self = data;
  self->renewing_help = 0;
  set_help (self, NULL);
  return G_SOURCE_REMOVE;
}

/* The next time it lists all keys again. */
static void
visible_changed (GtkWidget *help, GParamSpec *spec, TdWindow *self)
{
  if (!gtk_widget_get_visible (help) && !self->renewing_help
      && gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (self))
             == GTK_SHORTCUTS_WINDOW (help))
    self->renewing_help = g_idle_add (renew_help, self);
}

void
td__run_page_keys (TdWindow *self, const char *parameter)
{
  set_help (self, find_page (self));
  GtkShortcutsWindow *help
      = gtk_application_window_get_help_overlay (GTK_APPLICATION_WINDOW (self));
  g_signal_connect_object (help, "notify::visible", G_CALLBACK (visible_changed), self, 0);
  gtk_window_present (GTK_WINDOW (help));
}
