/* How much larger than usual the user wants text: the views that draw their text themselves
 * follow it. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

/** Return 1 for text as large as designed, 2 for text twice as large. */
double td_text_scale_get (GtkWidget *widget);
/** Call `changed` with `object` when it changes, for as long as the object lives. */
void td_text_scale_watch (gpointer object, GCallback changed);

G_END_DECLS
