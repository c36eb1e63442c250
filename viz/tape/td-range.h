/*
 * Iterations from one to another, which panels over the run are narrowed to.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "td-tape-reader.h"

G_BEGIN_DECLS

/** The iterations [first, end), by number; all zero, as any empty one: the whole run. */
typedef struct
{
  gint64 first, end;
} TdRange;

gboolean td_range_is_all (TdRange range);
gboolean td_range_has (TdRange range, gint64 iteration);
/** Say whether both are the same iterations; every range that is the whole run is. */
gboolean td_range_equal (TdRange a, TdRange b);
/** Find the summaries that lie in it, from the first such to the last: [from, to). */
void td_range_find (TdRange range, const TdTapeSummaries *summaries, guint *from, guint *to);
/** Read "10..40", both of them in it, or "" for the whole run. FALSE: it is neither. */
gboolean td_range_parse (const char *text, TdRange *range);
/** Read "10:40", both of them in it, "10:", ":40", ":" or "10". FALSE: it is none of these. */
gboolean td_range_parse_pair (const char *text, TdRange *range);
/** Return "iterations 10 to 40", "iteration 7", or "all iterations". Owner: the caller. */
char *td_range_describe (TdRange range);

G_END_DECLS
