/* The table of dynamic and static graphs, with what was measured in the recordings on show.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "diff/td-kinds.h"

#define TD_TYPE_KINDS_VIEW (td_kinds_view_get_type ())
G_DECLARE_FINAL_TYPE (TdKindsView, td_kinds_view, TD, KINDS_VIEW, GtkWidget)

/** Show a table; the titles name the two recordings. NULL: nothing. */
void td_kinds_view_show (TdKindsView *self, const TdKinds *kinds, const char *title_a,
                         const char *title_b);
