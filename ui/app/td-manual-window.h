/* The manual beside the window that it was asked for from. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/** Show a topic of the manual (`td_manual_names`; else the first), over `parent`, where its
 * links to lessons lead. Owner: GTK; a parent has one, which is shown again. */
GtkWindow *td_manual_window_show (GtkWindow *parent, const char *topic);
