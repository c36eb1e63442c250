/* What is told to who records about other ranks: when this process waits for them, and sums of
 * what all of them must have in common.  The house of ranks tells it; here are only the words.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** What is waited for.  The tape has the same numbers. */
typedef enum
{
  TD_WAIT_MEET, /**< all say what they are about to do */
  TD_WAIT_BCAST,
  TD_WAIT_SUM,
  TD_WAIT_GATHER,
  TD_WAIT_EXCHANGE,
  TD_WAIT_SEND,
  TD_WAIT_RECEIVE
} TdWaitKind;

/** One time that this process waits for others. */
typedef struct TdWait
{
  uint64_t comm, seq; /**< of the communicator and its call: the same on all its ranks */
  const char *call;   /**< static: "td_comm_bcast" */
  const TdSite *site; /**< NULL: the engine's present site */
  size_t bytes;       /**< of this rank's part */
  int rank, size;     /**< of the communicator */
  int peer;           /**< root or partner; -1: none */
  TdWaitKind kind;
  bool whole;  /**< of all ranks that were started */
  bool failed; /**< when it ends: ranks differ, or one could not take part */
  /** Of one that ran behind other work, and is told of when it has ended: its begin and end by
   * the observer's clock; else zeros. */
  uint64_t behind[2];
} TdWait;

/** What a sum is of.  The tape has the same numbers. */
typedef enum
{
  TD_RANK_SUM_PARAMETER,
  TD_RANK_SUM_PERSISTENT,
  TD_RANK_SUM_STATE,
  TD_RANK_SUM_GRADIENT,
  TD_RANK_SUM_MEAN,
  TD_RANK_SUM_NUMBER
} TdRankSumKind;

/** An array, or a number, that ranks are compared by. */
typedef struct TdRankSum
{
  TdRankSumKind kind;
  const char *path; /**< "l1/W"; state: which of them, "m", or NULL */
  const char *state;
  uint64_t sum[2];
  double number;         /**< NUMBER; else element `at` */
  uint64_t at, size;     /**< elements */
  uint64_t not_finite;   /**< NaN and infinite elements */
  int n_averaged;        /**< MEAN: the ranks that it is of */
  const TdSite *written; /**< PARAMETER, STATE: what wrote it between the update before and this
                          * one; GRADIENT that is not finite: what made it, or wrote it last;
                          * NULL: nothing, or nobody knows */
  bool spoiled;          /**< and: it was not finite then */
  bool half;             /**< and: it came as 16 bits a number */
  bool absent;           /**< this rank has no such gradient, or */
  bool left_out;         /**< it has one, which is of other weights than rank 0's */
} TdRankSum;

/** Is somebody there who wants sums? */
static inline bool
td__rank_sums_wanted (void)
{
  TdObserver *o = td__engine.observer;

  return TD_UNLIKELY (o != NULL) && o->rank_sum != NULL && o->rank_sum (o, NULL);
}
