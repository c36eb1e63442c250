/* One side of a comparison: what it is and costs, its canvas, and what it has no counterpart
 * for. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "diff/td-compare.h"
#include "widgets/td-graph-view.h"

#define TD_TYPE_COMPARE_SIDE (td_compare_side_get_type ())
G_DECLARE_FINAL_TYPE (TdCompareSide, td_compare_side, TD, COMPARE_SIDE, AdwBin)

/** Create a side called `letter`. Owner: floating. */
GtkWidget *td_compare_side_new (const char *letter);

/** Say which actions take this side to the iteration before and after. */
void td_compare_side_set_steps (TdCompareSide *self, const char *back, const char *forward);

/** Return the canvas. Owner: the side. */
TdGraphView *td_compare_side_get_view (TdCompareSide *self);

/** Say what is shown: which iteration, of what, and what it costs (NULL: nothing yet). */
void td_compare_side_set_head (TdCompareSide *self, const char *title, const char *name,
                               const TdDiffTotals *totals);

/** State something over the canvas; NULL: nothing. */
void td_compare_side_state (TdCompareSide *self, const char *text);
/** Return what is stated, NULL: nothing. Owner: the side. */
const char *td_compare_side_get_statement (TdCompareSide *self);
