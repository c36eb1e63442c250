/* Tips of widgets that say something else now and then.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/** Give a widget this tip (NULL: none), unless it has it: at each tip that is set GTK asks the
 * display server where the pointer is, and waits for the answer. */
void td_tip_set (GtkWidget *widget, const char *text);
