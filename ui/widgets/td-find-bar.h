/* A bar to search in what a page draws: an entry and how many matches there are.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#define TD_TYPE_FIND_BAR (td_find_bar_get_type ())
G_DECLARE_FINAL_TYPE (TdFindBar, td_find_bar, TD, FIND_BAR, GtkWidget)

/** Create the bar, closed. Signals: "search" (text) as it is typed and by Return, "closed".
 * Owner: floating. */
GtkWidget *td_find_bar_new (const char *label);

/** Show the bar and type into it. */
void td_find_bar_open (TdFindBar *self);
/** Hide the bar. FALSE: it was not open. */
gboolean td_find_bar_close (TdFindBar *self);
/** Say what was found: "2 of 7". */
void td_find_bar_set_words (TdFindBar *self, const char *words);
