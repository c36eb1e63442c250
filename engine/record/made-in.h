/* The iterations that made the arrays of a group that outlived them, up to as many as are
 * counted.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape-held.h"

typedef struct
{
  uint32_t n;
  uint32_t numbers[TD_TAPE_MAX_HELD_ITERATIONS];
} TdMadeIn;

/** Count an iteration, unless it is counted. Arrays of one mostly come one after another. */
static inline void
td__made_in_add (TdMadeIn *made, uint64_t iteration)
{
  if (made->n == TD_TAPE_MAX_HELD_ITERATIONS)
    return;
  for (uint32_t i = made->n; i-- > 0;)
    if (made->numbers[i] == (uint32_t)iteration)
      return;
  made->numbers[made->n++] = (uint32_t)iteration;
}

static inline void
td__made_in_join (TdMadeIn *made, const TdMadeIn *more)
{
  for (uint32_t i = 0; i < more->n; i++)
    td__made_in_add (made, more->numbers[i]);
}
