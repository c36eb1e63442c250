/* What GTK 4.8 forgets, and complains of later.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/* From now on, in all windows.  Called once, after GTK was initialised. */
void td_gtk_amend (void);
