/* The first pictures of a window that opens, one in a turn of the main loop: made in one frame,
 * they and what else is drawn first take longer than it may be deaf.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/** Call `make` in a turn of its own, after those that wait already, and have the widget drawn
 * then. Once for each widget, however often it is asked; not at all if it is not on show by
 * then. */
void td_draw_later (GtkWidget *widget, void (*make) (GtkWidget *widget));
