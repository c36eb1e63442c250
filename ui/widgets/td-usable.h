/* Widgets that can be used or not.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/* gtk_widget_set_sensitive, behind which no cursor blinks on: see td-usable.c. */
void td_widget_set_usable (GtkWidget *widget, gboolean usable);
