/* The Memory page: in the dock what is in use (events, iterations, blocks); as a perspective of
 * its own also why memory grows, and where it ran out. SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"

#define TD_TYPE_MEMORY_PAGE (td_memory_page_get_type ())
G_DECLARE_FINAL_TYPE (TdMemoryPage, td_memory_page, TD, MEMORY_PAGE, TdPage)

/** Create the page. Owner: the caller. */
TdPage *td_memory_page_new (void);

/** Build the perspective. Owner: floating. */
GtkWidget *td_memory_page_new_perspective (TdMemoryPage *self);
/** Put its cards below each other: there is no room for two. After the above. */
void td_memory_page_set_slim (TdMemoryPage *self, gboolean slim);
