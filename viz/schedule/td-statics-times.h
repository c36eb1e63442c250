/*
 * How long each step of a schedule took over many replays.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-statics.h"

G_BEGIN_DECLS

typedef struct
{
  guint n;              /* replays; 0: the step is no event, or was not recorded */
  double mean, sd, p99; /* nanoseconds */
} TdStepTimes;

/** Measure every step over the recorded iterations up to the moment that replayed the
 * function's schedule, at most 256 of the newest. Owner: the caller, c->n_rows of them. */
TdStepTimes *td_statics_times (const TdStatics *all, const TdStaticsFunction *c,
                               guint *n_iterations);
/** What a call's forward costs besides its operations: the time from the call to its end, less
 * that of the operations, for one operation of the code; the least over the calls. */
typedef struct
{
  guint n_static, n_dynamic;    /* calls that were looked at */
  double static_ns, dynamic_ns; /* for one operation */
  gboolean traced;              /* the code was never run but being traced, which costs more */
} TdStaticsOverhead;

#define TD_STATICS_ITERATIONS_MOST 256

/** Measure it over the newest iterations up to the moment, at most so many. */
TdStaticsOverhead td_statics_overhead (const TdStatics *all, const TdStaticsFunction *c,
                                       guint most);
/** "besides itself an operation costs 12 ns replayed (least of 19 calls), 240 ns by code (least
 * of 3)"; NULL where nothing was measured. Owner: the caller. */
char *td_statics_overhead_text (const TdStaticsOverhead *overhead);
/** Which row each event of an iteration was, -1: none. Owner: the caller. */
gint *td__statics_rows_of_events (const TdStaticsFunction *c, const TdTapeIteration *it);

G_END_DECLS
