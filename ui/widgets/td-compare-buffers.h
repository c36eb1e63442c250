/* Buffers over the events of both sides, on one scale. Signal "pressed-key" (int side, guint64
 * key) when a buffer was clicked.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "diff/td-compare.h"
#include "td-session.h"

#define TD_TYPE_COMPARE_BUFFERS (td_compare_buffers_get_type ())
G_DECLARE_FINAL_TYPE (TdCompareBuffers, td_compare_buffers, TD, COMPARE_BUFFERS, GtkWidget)

/** Show a comparison (NULL: nothing), whose sides are looked at in these sessions; both must
 * live until the next call. */
void td_compare_buffers_set_compare (TdCompareBuffers *self, const TdCompare *compare,
                                     TdSession *const *sessions);

/** Draw again: moment or selection changed. */
void td_compare_buffers_invalidate (TdCompareBuffers *self);

/** Return the picture of a side; NULL: nothing is compared. Owner: the widget. */
TdScene *td_compare_buffers_get_scene (TdCompareBuffers *self, TdSide side);
