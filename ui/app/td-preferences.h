/* The preferences window: every row is one setting of the schema.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

/** Create the window over `settings`; NULL (no schema found) shows that. Owner: GTK. */
GtkWidget *td_preferences_new (GtkWindow *parent, GSettings *settings);

/** Make the style manager follow the colour scheme that is set. */
void td_preferences_apply_scheme (GSettings *settings);
