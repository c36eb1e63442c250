/* The size of the user's text, from the resolution that GTK makes text for.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-text-scale.h"

#define USUAL_DPI 96.0
#define LEAST 0.5
#define MOST 4.0

/* GTK has the large text of the desktop's settings in the resolution that text is made for. */
double
td_text_scale_get (GtkWidget *widget)
{
  int dpi = -1; /* in 1024ths; -1: not set */

  g_object_get (gtk_widget_get_settings (widget), "gtk-xft-dpi", &dpi, NULL);
  return dpi > 0 ? CLAMP (dpi / 1024.0 / USUAL_DPI, LEAST, MOST) : 1.0;
}

void
td_text_scale_watch (gpointer object, GCallback changed)
{
  g_signal_connect_object (gtk_settings_get_default (), "notify::gtk-xft-dpi", changed, object,
                           G_CONNECT_SWAPPED);
}
