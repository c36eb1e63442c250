/* Operations of the iteration at the playhead that match an expression: a view of the dock.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"

#define TD_TYPE_FILTER_VIEW (td_filter_view_get_type ())
G_DECLARE_FINAL_TYPE (TdFilterView, td_filter_view, TD, FILTER_VIEW, GtkWidget)

/** Create the view. Owner: floating. */
GtkWidget *td_filter_view_new (void);

void td_filter_view_set_session (TdFilterView *self, TdSession *session);

/** Put the cursor into the entry. */
void td_filter_view_focus (TdFilterView *self);

/** Show what matches this expression (graph/td-filter.h). */
void td_filter_view_set_text (TdFilterView *self, const char *text);

/** Count the operations that match. */
guint td_filter_view_get_n (TdFilterView *self);
/** Return what is said beside the entry: how many there are, or what was not understood. */
const char *td_filter_view_get_message (TdFilterView *self);
/** Do what choosing row i does: select its operation. */
void td_filter_view_choose (TdFilterView *self, guint i);
