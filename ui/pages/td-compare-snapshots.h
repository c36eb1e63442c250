/* Two memory snapshots on the compare page, which have no graphs: a table of the stacks of
 * which blocks are new or gone, and the stack of the row that is selected. Signal "found": what
 * it is of is known now. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "memory/td-memory-compare.h"
#include "td-session.h"
#include "widgets/td-call-stack.h"

#define TD_TYPE_COMPARE_SNAPSHOTS (td_compare_snapshots_get_type ())
G_DECLARE_FINAL_TYPE (TdCompareSnapshots, td_compare_snapshots, TD, COMPARE_SNAPSHOTS,
                      GtkWidget)

/** Compare what is alive at the ends of two snapshots, at once or in a thread; both NULL: show
 * nothing. What is shown already stays. `session` (may be NULL) has sources. */
void td_compare_snapshots_set (TdCompareSnapshots *self, TdIteration *a, TdIteration *b,
                               TdSession *session);

/** Return the comparison; NULL: it is still being made, or nothing is compared. Owner: the
 * widget. */
const TdMemoryCompare *td_compare_snapshots_get (TdCompareSnapshots *self);
/** Say whether anything is compared. */
gboolean td_compare_snapshots_is_set (TdCompareSnapshots *self);

/** Select the next or, with -1, the previous row. FALSE: there is none. */
gboolean td_compare_snapshots_step (TdCompareSnapshots *self, int direction);
/** Return which row is selected, from 1 on; 0: none. */
guint td_compare_snapshots_get_position (TdCompareSnapshots *self);
TdCallStack *td_compare_snapshots_get_stack (TdCompareSnapshots *self);
