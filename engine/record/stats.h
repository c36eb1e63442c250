/* Statistics of an array for the tape: moments, zeros, NaN, Inf, histogram of exponents.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

#define TD_STATS_SAMPLED 4096 /* so many of such an array: bins to 1.6 % of the whole */
#define TD_STATS_SAMPLE 65536 /* above this many elements the histogram is from a sample */

/** Compute the statistics of `n` contiguous elements; counts and moments are exact, the
 * histogram of large arrays comes from a stride sample with a start chosen by `seed`. */
void td_stats_compute (const void *data, unsigned dtype, uint64_t n, uint64_t seed,
                       TdTapeStats *stats);
