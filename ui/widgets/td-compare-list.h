/* The differences of a comparison, by phase: what a compare page is mainly about. Signal
 * "chosen" (guint row of the comparison) when another one is selected.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "diff/td-compare.h"
#include "td-session.h"

#define TD_TYPE_COMPARE_LIST (td_compare_list_get_type ())
G_DECLARE_FINAL_TYPE (TdCompareList, td_compare_list, TD, COMPARE_LIST, AdwBin)

/** Show the differences of a comparison (NULL: none), whose sides are looked at in these
 * sessions; both must live until the next call. Those of numbers only are shown too if
 * `numbers`. */
void td_compare_list_set_compare (TdCompareList *self, const TdCompare *compare,
                                  TdSession *const *sessions, gboolean numbers);

/** Count the differences on show. */
guint td_compare_list_get_n (TdCompareList *self);
/** Return the row of the first of them; -1: there is none. */
gint td_compare_list_get_first (TdCompareList *self);
/** Return which of them is selected, from 1 on; 0: none. */
guint td_compare_list_get_position (TdCompareList *self);

/** Select the next or, with -1, the previous difference. FALSE: there is none. */
gboolean td_compare_list_step (TdCompareList *self, int direction);

/** Select the difference that is this row of the comparison, if it is one; -1: none. Emits
 * nothing. */
void td_compare_list_select (TdCompareList *self, gint row);

/** Let a widget stand for a row of the comparison, on the side that has it (both: the first),
 * as td_hover_row_set does. */
void td_compare_set_hover (GtkWidget *widget, const TdCompare *compare,
                           TdSession *const *sessions, guint row);

/** Give a label the colour of a mark. */
void td_compare_set_mark_class (GtkWidget *label, TdMark mark);
