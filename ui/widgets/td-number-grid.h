/* A tensor as a table of numbers: only the cells in sight are made, so that its size does not
 * matter. The arrow keys move a cell's frame, whose place and value are what a screen reader is
 * told. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "gradient/td-tensor.h"

#define TD_TYPE_NUMBER_GRID (td_number_grid_get_type ())
G_DECLARE_FINAL_TYPE (TdNumberGrid, td_number_grid, TD, NUMBER_GRID, GtkWidget)

/** Create a table with the accessible name `label`, to be put into a scrolled window. Signal
 * "cell-changed": the frame moved, or the numbers changed. Owner: floating. */
GtkWidget *td_number_grid_new (const char *label);
/** Show a tensor; NULL: none. Owner: takes a reference. */
void td_number_grid_set_tensor (TdNumberGrid *self, TdTensor *tensor);
/** Return the element that is framed; FALSE: there is none. */
gboolean td_number_grid_get_element (TdNumberGrid *self, guint64 *element);
/** Frame an element and scroll to it. */
void td_number_grid_go_to (TdNumberGrid *self, gint64 row, gint64 col);
