/* Lifetimes of a schedule's values, for the writer and for the check.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

/** The steps in which a value is used first and last; TD_TAPE_NO_GROUP: in none. */
typedef struct
{
  uint32_t first, last;
} TapeLife;

/** Compute the lifetimes of all values, over all lists.  Operands and nodes must be in range.
 */
void td__tape_schedule_lives (const TdTapeSchedule *s, TapeLife *life);
