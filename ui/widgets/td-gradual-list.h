/* A list of the rows of another one, the first of them at once and the others little by little.
 * A list or table of GTK makes the widgets of some 200 rows, however few are in sight, and for
 * nine columns that is longer than the window may be deaf; so they are made in several turns of
 * the main loop. Rows stand where they stand in the other list. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#define TD_TYPE_GRADUAL_LIST (td_gradual_list_get_type ())
G_DECLARE_FINAL_TYPE (TdGradualList, td_gradual_list, TD, GRADUAL_LIST, GObject)

/** Create the list. Owner: takes `model`; the caller. */
GListModel *td_gradual_list_new (GListModel *model);

/** Of a selection over such a list: have the row at `position` now, so that it can be scrolled
 * to. */
void td_gradual_list_reach (GtkSingleSelection *selection, guint position);
/** The same, and select it; GTK_INVALID_LIST_POSITION: none. */
void td_gradual_list_select (GtkSingleSelection *selection, guint position);
