/* Which elements of an operation's input an element of its output is computed from.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"

G_BEGIN_DECLS

typedef enum
{
  TD_REACH_UNKNOWN, /* any element may count */
  TD_REACH_KNOWN,
} TdReach;

/** Mark in `in` the elements of input `k` of an event that are bad and that elements of its
 * output in `out` are computed from, and in `covered` those elements of the output.
 * *Shapes*: `out` and `covered` of variable `out_var`, `in_bad` and `in` of the input's.
 * Returns TD_REACH_UNKNOWN and marks nothing where it is not known what counts. */
TdReach td__origin_reach (const TdIteration *it, guint event, guint out_var, guint k,
                          const guint8 *out, const guint8 *in_bad, guint8 *in, guint8 *covered);

/** The same where element i is computed from element i, broadcast, whatever the operation is
 * called. */
TdReach td__origin_reach_elements (const TdIteration *it, guint event, guint out_var, guint k,
                                   const guint8 *out, const guint8 *in_bad, guint8 *in,
                                   guint8 *covered);

/** Say whether a bad element of an input always makes a bad one of the output. */
gboolean td__origin_passes_on (const char *op, gboolean is_inf);
/** Say whether element i of the output is computed from element i of the inputs, broadcast. */
gboolean td__origin_is_elementwise (const char *op);

G_END_DECLS
