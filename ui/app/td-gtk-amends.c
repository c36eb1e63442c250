/* What GTK 4.8 forgets, and complains of later.
 * SPDX-License-Identifier: MIT */
#include "app/td-gtk-amends.h"

/* What GTK calls the tooltip that is shown or due; it takes it away itself where a display is
 * closed. */
#define TOOLTIP "gdk-display-current-tooltip"

/* A tooltip is shown half a second after the pointer has come to rest.  One that is due is
 * forgotten when a window goes, but not when a popover does: a surface that is no longer there
 * was asked where the pointer is.  A timer of its own may hold it, and it can be disposed once
 * only: those few are kept. */
static gboolean
forget_tooltip (GSignalInvocationHint *hint, guint n_values, const GValue *values,
                gpointer data)
{
  static GSList *disposed;
  GtkWidget *widget = g_value_get_object (values);
  GObject *display = G_OBJECT (gtk_widget_get_display (widget));
  GObject *tooltip = g_object_get_data (display, TOOLTIP);

  (void)hint, (void)n_values, (void)data;
  if (!tooltip || !(GTK_IS_POPOVER (widget) || GTK_IS_WINDOW (widget)))
    return TRUE;
  if (tooltip->ref_count == 1)
    {
      g_object_set_data (display, TOOLTIP, NULL);
      return TRUE;
    }
  disposed = g_slist_prepend (disposed, g_object_steal_data (display, TOOLTIP));
  g_object_run_dispose (tooltip);
  return TRUE;
}

/* An entry on a page that is no longer shown keeps the keyboard, and its cursor blinks on, also
 * where something is selected since. */
static gboolean
take_keyboard (GSignalInvocationHint *hint, guint n_values, const GValue *values, gpointer data)
{
  GtkWidget *widget = g_value_get_object (values);
  GtkRoot *root = GTK_IS_TEXT (widget) ? gtk_widget_get_root (widget) : NULL;

  (void)hint, (void)n_values, (void)data;
  if (root && gtk_root_get_focus (root) == widget)
    gtk_root_set_focus (root, NULL);
  return TRUE;
}

void
td_gtk_amend (void)
{
  g_type_class_unref (g_type_class_ref (GTK_TYPE_WIDGET)); /* whose signals there are now */
  if (gtk_get_minor_version () == 8) /* it relies on more than what is promised */
    g_signal_add_emission_hook (g_signal_lookup ("unrealize", GTK_TYPE_WIDGET), 0,
                                forget_tooltip, NULL, NULL);
  g_signal_add_emission_hook (g_signal_lookup ("unmap", GTK_TYPE_WIDGET), 0, take_keyboard,
                              NULL, NULL);
}
