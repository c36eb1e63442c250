/*
 * Which variable of an iteration a name in an expression means.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "tape/td-iteration.h"

G_BEGIN_DECLS

/** Find a variable by its name, its path or the end of that, with ".grad" its gradient, or by
 * "#12" the first output of an event. Of several versions the last one that is there after
 * `event`. Returns -1 and one line where there is none, or the name could mean several. */
gint td__evaluate_find (const TdIteration *iteration, const char *name, gint event,
                        GError **error);

G_END_DECLS
