/* How layers are compared: how far their numbers may lie apart, as part of their size and as
 * such, and a button for the table of their names. Signals "changed" when a limit is another
 * one, "names" when the button is pressed.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "diff/td-port.h"

#define TD_TYPE_COMPARE_LIMITS (td_compare_limits_get_type ())
G_DECLARE_FINAL_TYPE (TdCompareLimits, td_compare_limits, TD, COMPARE_LIMITS, GtkWidget)

GtkWidget *td_compare_limits_new (void);

/** Return the limits in force: the last ones that were numbers. */
TdPortTolerance td_compare_limits_get (TdCompareLimits *self);

/** Write a limit into its field, as if it had been typed: 0 rtol, 1 atol. What is no number
 * that is not below 0 is marked, and changes nothing. */
void td_compare_limits_type (TdCompareLimits *self, guint field, const char *text);
/** Say whether what a field has is marked. */
gboolean td_compare_limits_is_wrong (TdCompareLimits *self, guint field);
