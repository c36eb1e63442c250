/* Verification: the code runs beside the schedule, and both are compared.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "entry.h"

/** One verified call. */
typedef struct TdCheck
{
  const TdEntry *entry;
  TdTrace *shadow; /**< of the code, with its arrays kept */
  TdMiss *miss;    /**< the first difference; its guard is NULL while there is none */
  TdSavedState *before, *after;
  uint32_t n_before, n_after;
  TdRngKey key, key_after;
} TdCheck;

/** Compare two traces of one code, step by step; says false and what differs, with both lines.
 */
bool td__check_traces (const TdSchedule *then, const TdSchedule *now, TdMiss *miss);
/** A step of the schedule ran: are its results those of the code?  Never fails the call. */
void td__check_step (TdCheck *c, const TdInstance *i, const TdStep *step);
/** The schedule ran: compare its results, state and random numbers. */
void td__check_end (TdCheck *c, const TdInstance *i);
