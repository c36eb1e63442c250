/* The search for an origin, from inside.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-origin-reach.h"
#include "tape/td-origin.h"

G_BEGIN_DECLS

/** What is known of a variable as an event finds it. */
typedef struct
{
  gint writer;              /* the event that wrote it last; -1: none of this iteration */
  const TdTapeStats *stats; /* as of then; NULL: not recorded */
  gboolean given;           /* the program wrote these numbers, no event */
  gboolean added;           /* the writer has an output of its own, which is all of it */
} TdVersion;

typedef enum
{
  TD_STATE_CLEAN,
  TD_STATE_BAD,
  TD_STATE_UNKNOWN
} TdState;

/** Find what `var` is just before `event` (n_events: at the end). */
TdVersion td__origin_version (const TdIteration *it, guint var, gint event);
TdState td__origin_state (const TdTapeStats *stats, TdBad bad);
/** Read which elements are bad, one byte each; NULL: they are not recorded, all of them.
 * Owner: the caller. */
guint8 *td__origin_bad_elements (TdSession *session, const TdIteration *it, guint var,
                                 const TdTapeStats *stats, TdBad bad, guint64 *n);
/** Read one element; FALSE: it is not recorded. */
gboolean td__origin_element (TdSession *session, const TdIteration *it, guint var,
                             const TdTapeStats *stats, guint64 i, double *value);
/** Name an event, or a variable, as the user does. Owner: the caller. */
char *td__origin_dup_event_name (const TdIteration *it, guint event);
char *td__origin_dup_var_name (const TdIteration *it, guint var);
/** Put name, place, note and sentence into an origin that is found; `it` is its iteration. */
void td__origin_describe (TdOrigin *origin, const TdIteration *it, const char *missing);

G_END_DECLS
