/* Tips of widgets: they are set where they change, and nowhere else.
 * SPDX-License-Identifier: MIT */
#include "settings/td-tip.h"

void
td_tip_set (GtkWidget *widget, const char *text)
{
  if (g_strcmp0 (gtk_widget_get_tooltip_text (widget), text) != 0)
    gtk_widget_set_tooltip_text (widget, text);
}
