/* A port check as a table: each layer of A, what it is called on B, and how far apart the two
 * are forward and backward, the first that differs marked; above it what was found, and what is
 * not known, and beside that how they are compared. Signal "chosen" (guint row of the check)
 * when another row is selected. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "diff/td-port.h"
#include "widgets/td-compare-limits.h"

#define TD_TYPE_COMPARE_LAYERS (td_compare_layers_get_type ())
G_DECLARE_FINAL_TYPE (TdCompareLayers, td_compare_layers, TD, COMPARE_LAYERS, GtkWidget)

/** Show a check, which lives until the next call; NULL: none, and why, one sentence. */
void td_compare_layers_show (TdCompareLayers *self, const TdPort *port, const char *why);

/** Select a row; -1: none. Emits nothing. */
void td_compare_layers_select (TdCompareLayers *self, gint row);

/** Return what stands above the table: two sentences, and what is not known, a line each.
 * Owner: the widget. */
const char *td_compare_layers_get_text (TdCompareLayers *self);
/** Return the limits beside that. Owner: the widget. */
TdCompareLimits *td_compare_layers_get_limits (TdCompareLayers *self);
/** Return what a row shows in a column, from 0 on; NULL: there is none. Owner: the caller. */
char *td_compare_layers_dup_cell (TdCompareLayers *self, guint row, guint column);
