/* What outlived its iteration and who keeps it, told at ends of iterations.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "recorder.h"

TdHoldings *td__holdings_new (void);
void td__holdings_free (TdHoldings *h);
/** An iteration begins, whose first node will have this id. */
void td__holdings_begin (TdHoldings *h, uint64_t iteration, uint64_t first_id);
/** An iteration of n_events ends, and its scope is closed: write HELD, unless that would cost
 * more than the events since the last time allow. */
void td__holdings_mark (TdHoldings *h, TdRecorder *r, uint64_t n_events);
