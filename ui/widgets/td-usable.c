/* GTK takes the keyboard from a widget that becomes insensitive, but tells nothing to one that
 * is insensitive: an entry thought that it still had it, its cursor blinked, and GTK complained
 * of that.  Here it loses the keyboard first. SPDX-License-Identifier: MIT */
#include "widgets/td-usable.h"

void
td_widget_set_usable (GtkWidget *widget, gboolean usable)
{
  GtkRoot *root = gtk_widget_get_root (widget);
  GtkWidget *focus = root ? gtk_root_get_focus (root) : NULL;

  if (!usable && focus && (focus == widget || gtk_widget_is_ancestor (focus, widget)))
    gtk_root_set_focus (root, NULL);
  gtk_widget_set_sensitive (widget, usable);
}
