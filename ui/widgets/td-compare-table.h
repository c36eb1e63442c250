/* Every operation of both sides with its time and bytes on each. Signal "chosen" (guint row of
 * the comparison) when another row is selected.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "diff/td-compare.h"
#include "td-session.h"

#define TD_TYPE_COMPARE_TABLE (td_compare_table_get_type ())
G_DECLARE_FINAL_TYPE (TdCompareTable, td_compare_table, TD, COMPARE_TABLE, GtkWidget)

/** Show a comparison (NULL: none), whose sides are looked at in these sessions; both must live
 * until the next call. */
void td_compare_table_set_compare (TdCompareTable *self, const TdCompare *compare,
                                   TdSession *const *sessions);

/** Select a row; -1: none. Emits nothing. */
void td_compare_table_select (TdCompareTable *self, gint row);
