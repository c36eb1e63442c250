/* A list model of numbers: a row object, which knows only where it stands, is made for what is
 * on screen. SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#define TD_TYPE_INDEX_ROW (td_index_row_get_type ())
G_DECLARE_FINAL_TYPE (TdIndexRow, td_index_row, TD, INDEX_ROW, GObject)

#define TD_TYPE_INDEX_LIST (td_index_list_get_type ())
G_DECLARE_FINAL_TYPE (TdIndexList, td_index_list, TD, INDEX_LIST, GObject)

/** Create an empty list. Owner: caller. */
TdIndexList *td_index_list_new (void);

/** Say how many rows there are now; all of them are new. */
void td_index_list_reset (TdIndexList *self, guint n);

/** Say how many rows there are now; those from `from` on are new. */
void td_index_list_resize (TdIndexList *self, guint n, guint from);

/** Return where a row stands. */
guint td_index_row_get (TdIndexRow *row);
