/* Runs `tapedeck recompute` for one iteration of a tape, and watches it: how far it is, how it
 * ended. SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#define TD_TYPE_RECOMPUTE (td_recompute_get_type ())
G_DECLARE_FINAL_TYPE (TdRecompute, td_recompute, TD, RECOMPUTE, GObject)

/** Start it. Signals: "progress" (double, 0 to 1), and once "ended" (text: what it said that is
 * not well, "" when all came out equal, NULL when it was cancelled). Owner: caller; the last
 * reference ends the process and takes its tape away. Errors: NULL and `error`. */
TdRecompute *td_recompute_new (const char *tape, gint64 iteration, GError **error);

/** Ask it to end: SIGTERM. */
void td_recompute_cancel (TdRecompute *self);

/** End it, and tell `listener` nothing more. Owner: takes `self`; NULL is allowed. */
void td_recompute_drop (TdRecompute *self, gpointer listener);

/** Return the tape that it writes, which is there when it has ended well, or with differences.
 * Owner: the object. */
const char *td_recompute_get_result (TdRecompute *self);
