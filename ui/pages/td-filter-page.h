/* Operations of the iteration at the playhead that match an expression: a view of the dock.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"

#define TD_TYPE_FILTER_PAGE (td_filter_page_get_type ())
G_DECLARE_FINAL_TYPE (TdFilterPage, td_filter_page, TD, FILTER_PAGE, GtkWidget)

/** Create the view. Owner: floating. */
GtkWidget *td_filter_page_new (void);

void td_filter_page_set_session (TdFilterPage *self, TdSession *session);

/** Put the cursor into the entry. */
void td_filter_page_focus (TdFilterPage *self);

/** Show what matches this expression (graph/td-filter.h). */
void td_filter_page_set_text (TdFilterPage *self, const char *text);

/** Count the operations that match. */
guint td_filter_page_get_n (TdFilterPage *self);
/** Return what is said beside the entry: how many there are, or what was not understood. */
const char *td_filter_page_get_message (TdFilterPage *self);
/** Do what choosing row i does: select its operation. */
void td_filter_page_choose (TdFilterPage *self, guint i);
