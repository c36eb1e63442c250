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
/** Return the variable that an operation made, where an event reads another one for it, else
 * `var`: a replay may report a view before what it shows is made, when its own numbers are
 * those of an earlier call, and hands gradients on as variables that nothing made. */
guint td__origin_behind (const TdIteration *it, guint var, gint event);
/** Say whether an event writes an input in place and does not read it. */
gboolean td__origin_fills (const TdIteration *it, guint event, guint k);
/** Say whether an input of a replayed event is only ever filled with one number. */
gboolean td__origin_is_filled (TdSession *session, const TdIteration *it, guint event, guint k);
TdState td__origin_state (const TdTapeStats *stats, TdBad bad);
/** Read which elements are bad, one byte each; NULL: they are not recorded, all of them.
 * Owner: the caller. */
guint8 *td__origin_bad_elements (TdSession *session, const TdIteration *it,
                                 const TdTapeStats *stats, TdBad bad, guint64 *n);
/** Read one element; FALSE: it is not recorded. */
gboolean td__origin_element (TdSession *session, const TdIteration *it,
                             const TdTapeStats *stats, guint64 i, double *value);
/** How what is bad in an input of a fused operation comes to one of its outputs. */
typedef struct
{
  gboolean is_read;    /* the output is computed from it, as far as is known */
  gboolean passes;     /* what is bad in it always makes something bad there */
  gboolean by_element; /* element i is computed from element i, broadcast */
} TdOriginWay;

/** Say whether an event is a call that failed: it has no numbers, unless what was wrong was
 * found after it ran. */
gboolean td__origin_made_nothing (const TdIteration *it, guint event);
/** Say whether an event is operations of a static function that ran as one. */
gboolean td__origin_is_group (const TdIteration *it, guint event);
TdOriginWay td__origin_group_way (TdSession *session, const TdIteration *it, guint event,
                                  guint out_var, guint k, TdBad bad);
/** Say which operations those are, and that their own results are not recorded. Owner: the
 * caller. */
char *td__origin_dup_inside (TdSession *session, const TdIteration *it, guint event);
/** Name an event, or a variable, as the user does. Owner: the caller. */
char *td__origin_dup_event_name (const TdIteration *it, guint event);
char *td__origin_dup_var_name (const TdIteration *it, guint var);
/** Put name, place, note and sentence into an origin that is found; `it` is its iteration. */
void td__origin_describe (TdOrigin *origin, TdSession *session, const TdIteration *it,
                          const char *missing);

G_END_DECLS
