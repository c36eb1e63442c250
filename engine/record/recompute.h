/* Recomputing an iteration: the operations of a keyframe are run again on what the tape says
 * they were given, and a tape of that one iteration is written, with every value in it.
 *
 * The program has no part in it: its control flow is what was recorded.  The same operations on
 * the same numbers by the same library give the same bits; each result is held against what the
 * tape has of it, statistics and values, and the first that differs is named.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct
{
  const char *tape, *out;
  uint64_t iteration;
  bool overwrite; /**< out may be an older tape */
  /** Optional: so many of n events were run. */
  void (*progress) (void *user, uint32_t done, uint32_t n);
  void *user;
  const volatile sig_atomic_t *cancel; /**< looked at between two events; may be NULL */
} TdRecomputeOptions;

typedef enum
{
  TD_RECOMPUTE_EQUAL,   /**< all that the tape can be held against is the same */
  TD_RECOMPUTE_DIFFERS, /**< the tape was written; text names the first that is not */
  TD_RECOMPUTE_REFUSED, /**< the iteration cannot be run again; text says why */
  TD_RECOMPUTE_CANCELLED,
  TD_RECOMPUTE_FAILED /**< a file that cannot be read or written; text */
} TdRecomputeOutcome;

typedef struct
{
  uint32_t n_events;   /**< that were run */
  uint32_t n_compared; /**< arrays that the tape knows something of */
  uint32_t n_bitwise;  /**< of those: all elements of */
  uint32_t n_differ;
  char text[768]; /**< one line, or "" */
} TdRecomputeResult;

/** Run it.  The engine must have begun, on the host, with nothing recorded.  Only after EQUAL
 * and DIFFERS is there a new file at `out`. */
TdRecomputeOutcome td_recompute (const TdRecomputeOptions *options, TdRecomputeResult *result);
