/* When the arrays of an iteration were freed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

G_BEGIN_DECLS

/** List, by variable, the event before which its array was freed (n_events: after the last of
 * them); TD_TAPE_NONE: it was not, or nobody says so. Owner: the caller, g_free(); NULL:
 * nothing was freed. */
guint32 *td_frees_new (const TdIteration *iteration);

G_END_DECLS
