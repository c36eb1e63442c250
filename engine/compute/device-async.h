/* Results that a device delivers asynchronously: statistics, times, bad indices.  The host asks
 * without waiting and polls for the results later.  Included by device.h.
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

/** Which event or copy a request is about.  The device returns it unchanged with the result. */
typedef struct TdAsyncOf
{
  uint64_t iteration, variable;
  uint32_t event;
  uint32_t copy; /**< number of a copy in the iteration, from 1 on; 0: it is about an event */
} TdAsyncOf;
typedef enum
{
  TD_ASYNC_STATS,
  TD_ASYNC_TIME
} TdAsyncWhat;
typedef struct TdAsyncResult
{
  TdAsyncOf of;
  TdStatus status; /**< not TD_OK: the device has failed, and there is no result */
  TdAsyncWhat what;
  TdStats stats;
  bool exact;      /**< times of the kernels themselves, not between events in the stream */
  uint64_t zero;   /**< the argument of time_zero: names the mark that times count from */
  double since_ns; /**< from the mark before to this one; below 0: not known */
  double start_ns, duration_ns; /**< start, counted from the mark; below 0: before it */
  uint8_t stream;               /**< 0: computing, 1: copies */
} TdAsyncResult;
/** Whether a request for statistics was accepted, or why not. */
typedef enum
{
  TD_ASYNC_TAKEN,
  TD_ASYNC_BEHIND,    /**< too many requests are queued */
  TD_ASYNC_CAPTURED,  /**< a graph is being captured: there are no values before it is launched
                       */
  TD_ASYNC_TOO_LARGE, /**< more elements than one launch can read */
  TD_ASYNC_NO_ROOM,   /**< no memory for the results */
  TD_ASYNC_LOST,      /**< the device has failed */
  TD_ASYNC_N_REFUSALS
} TdAsyncRefusal;
typedef enum
{
  TD_ASYNC_LOOK, /**< return the results that are there */
  TD_ASYNC_SEND, /**< besides, launch the requests that are queued */
  TD_ASYNC_WAIT  /**< wait for all results */
} TdAsyncHow;

/** The first bad index that an asynchronous check has found. */
typedef struct TdBadIndex
{
  uint32_t place; /**< the argument of check_index_async */
  uint64_t run;   /**< how often the check has run at that place, from 1 on */
  int64_t at, value;
} TdBadIndex;
enum
{
  TD_INDEX_PLACES = 1024
};
