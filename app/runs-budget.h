/* One budget of bytes for several recordings that run at once.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "record/ring.h"

/** What a tape may have in any case, beside its first iteration: hardly another one. */
#define TD_RUNS_BUDGET_LEAST (256 << 10)

/** Say how large the tape may become that has `bytes` now, so that all recordings beside it, in
 * folders beside its folder and under its name, with their rings and logs, take at most
 * `budget` together.  Those that run agree by their rings: `ring` is ours.  Never less than
 * `bytes`. */
uint64_t td_runs_budget_share (const char *tape, uint64_t budget, TdRing *ring, uint64_t bytes);
