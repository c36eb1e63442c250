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

/** Measure every step over the recorded iterations up to the moment that replayed the chain's
 * schedule, at most 256 of the newest. Owner: the caller, c->n_rows of them. */
TdStepTimes *td_statics_times (const TdStatics *all, const TdStaticsChain *c,
                               guint *n_iterations);
/** Which row each event of an iteration was, -1: none. Owner: the caller. */
gint *td__statics_rows_of_events (const TdStaticsChain *c, const TdTapeIteration *it);

G_END_DECLS
