/* The start page: record, open, attach; lessons; recent recordings.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#define TD_TYPE_START_PAGE (td_start_page_get_type ())
G_DECLARE_FINAL_TYPE (TdStartPage, td_start_page, TD, START_PAGE, AdwBin)

/** Create the page. Emits "open" (GFile) when a lesson or a recording is chosen. Owner:
 * floating. */
GtkWidget *td_start_page_new (void);

/** Read the list of recent recordings again. */
void td_start_page_refresh (TdStartPage *self);

/** Count the recordings on show. */
guint td_start_page_get_n_recent (TdStartPage *self);
