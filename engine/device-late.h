/* What a device is asked without waiting for it, and answers later: statistics, times, bad
 * indices.  Included by device.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tapedeck-op.h"

/** Moments and counts of an array, and a histogram of exponents. */
typedef struct TdStats
{
  uint64_t n, n_sampled, n_zero, n_nan, n_pos_inf, n_neg_inf;
  double min, max, mean, m2, sum_squares;
  uint32_t exponent[32]; /* finite and not 0: bin k holds 2^(k-24) <= |x| < 2^(k-23), clamped */
} TdStats;

/** What an answer is about that a device gives later; handed back as it was given. */
typedef struct TdLateOf
{
  uint64_t iteration, variable;
  uint32_t event;
  uint32_t copy; /**< a copy of the iteration, counted from 1; 0: an event */
} TdLateOf;
typedef enum
{
  TD_LATE_STATS,
  TD_LATE_TIME
} TdLateWhat;
typedef struct TdLate
{
  TdLateOf of;
  TdStatus status; /**< not TD_OK: the device has failed, and there is no answer */
  TdLateWhat what;
  TdStats stats;
  bool exact;                   /**< times are the kernels' own */
  uint64_t zero;                /**< what time_zero was given */
  double since_ns;              /**< that mark after the one before; below 0: not known */
  double start_ns, duration_ns; /**< from that mark on; before it: below 0 */
  uint8_t stream;               /**< 0: of computing, 1: of copies */
} TdLate;
/** Why an array gets no statistics; what is lost with the device is none. */
typedef enum
{
  TD_LATE_TAKEN,
  TD_LATE_BEHIND,    /**< too much waits already */
  TD_LATE_CAPTURED,  /**< its numbers come when what is captured now is launched */
  TD_LATE_TOO_LARGE, /**< more elements than one launch looks at */
  TD_LATE_NO_ROOM,   /**< no memory for it */
  TD_LATE_LOST,      /**< the device has failed */
  TD_LATE_N_REFUSALS
} TdLateRefusal;
typedef enum
{
  TD_LATE_LOOK, /**< what is there now */
  TD_LATE_SEND, /**< also let the device begin with what it has been asked */
  TD_LATE_WAIT  /**< wait for all of it */
} TdLateHow;

/** The first bad index of a check that nobody waited for. */
typedef struct TdBadIndex
{
  uint32_t place; /**< that check_index_later was given */
  uint64_t run;   /**< which run of the checks of that place, 1 for the first */
  int64_t at, value;
} TdBadIndex;
enum
{
  TD_INDEX_PLACES = 1024
};
