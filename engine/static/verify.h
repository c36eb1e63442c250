/* Verification: the code runs beside the schedule, and both are compared.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "entry.h"

/** One verified call. */
typedef struct TdCheck
{
  const TdEntry *entry;
  TdTrace *code_trace; /**< of the code, with its arrays kept */
  TdMiss *miss;        /**< the first difference; its guard is NULL while there is none */
  TdSavedState *before, *after;
  uint32_t n_before, n_after;
  TdRngKey key, key_after;
  TdInstance *instance; /**< that ran the schedule */
} TdCheck;

/* verify-steps.c */
/** What a step is: the name of its operation, "a new array" ... */
const char *td__check_kind (const TdStep *step);
/** "mlp.c:31", or "?".  *Owner*: text. */
const char *td__check_place (const TdSite *site, char *text, size_t size);
/** Compare two traces of one code, step by step; says false and what differs, with both lines.
 */
bool td__check_traces (const TdSchedule *then, const TdSchedule *now, TdMiss *miss);
/** Compare two lists of one backward: operations, lines, attributes and what the code brings;
 * says false and the first that is another.  What depends on who holds a gradient (copies, sums
 * in place) is left out. */
bool td__check_lists (const TdSchedule *then, const TdSteps *list_then, const TdSchedule *now,
                      const TdSteps *list_now, TdMiss *miss);

/* verify.c */
/** A step of the schedule ran: are its results those of the code?  Never fails the call. */
void td__check_step (TdCheck *c, const TdInstance *i, const TdStep *step);
/** The schedule ran: compare its results, state and random numbers. */
void td__check_end (TdCheck *c, const TdInstance *i);
/** Say false, and of which variable what. */
bool td__check_says (TdMiss *miss, const char *name, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/** Compare a gradient in host memory, to so many units of its largest number; 0: bit for bit.
 */
bool td__check_gradient (TdMiss *miss, const void *replayed, const void *code, const TdNode *n,
                         const char *name, uint32_t units);

/* verify-backward.c */
/** The code's graph of a verified call, until its backward.  *Owner*: takes the trace and the
 * array of results, which are held. */
TdCodeGraph *td__code_graph_new (TdTrace *trace, TdVar **outs, uint32_t n_outs);
