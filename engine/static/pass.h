/* The passes over a plan, and what they share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "plan.h"

/** Memory of n items, zeroed; never NULL. */
void *td__plan_zeroed (size_t n, size_t bytes);
/** The note that a step is run no more as it was. */
void td__plan_note (TdPlan *p, TdPassKind pass, uint32_t list, uint32_t step, uint32_t other);
/** Take the steps that are marked out of a list. */
void td__plan_remove (TdPlan *p, uint32_t list, const bool *dead);
/** How often steps of all lists touch each value.  *Owner*: the caller, free. */
uint32_t *td__plan_touches (const TdPlan *p);
/** Say whether a step runs a kernel over numbers, or does something else at replay. */
static inline bool
td__step_computes (const TdStep *step)
{
  return step->kind == TD_STEP_FILL || step->kind == TD_STEP_COPY
         || step->kind == TD_STEP_EFFECT || step->kind == TD_STEP_HOST_READ
         || step->kind == TD_STEP_GIVE || step->kind == TD_STEP_GROUP
         || (step->kind == TD_STEP_OP && !(step->cls->flags & TD_OP_VIEW));
}
/** Say whether the step changes its input i in place. */
static inline bool
td__step_writes_input (const TdStep *step, uint32_t i)
{
  return step->kind == TD_STEP_OP && td__bit (step->cls->writes, (int)i);
}

/** What a step does as one kernel over numbers side by side; false: it is none that is known.
 */
bool td__step_tile (const TdSchedule *s, const TdStep *step, TdTileCall *call);
/** Say whether it is dropout, whose random numbers a group can make itself. */
bool td__step_drops (const TdStep *step);

/** Steps whose results nobody uses. */
void td__pass_prune (TdPlan *p);
/** Steps over constants alone: computed now. */
void td__pass_fold (TdPlan *p);
/** The same operation on the same values. */
void td__pass_cse (TdPlan *p);
/** Products with one matrix, and gradients of one variable, over many rows at once. */
void td__pass_batch (TdPlan *p);
/** Matrices that many steps multiply by. */
void td__pass_pack (TdPlan *p);
/** Room for them in the arena, behind all values. */
void td__pass_pack_place (TdPlan *p);
/** Products and convolutions whose results relu or relu_grad takes at once. */
void td__pass_end (TdPlan *p);
/** Sums beside row normalisations and their gradients. */
void td__pass_rows (TdPlan *p);
/** Element-by-element steps, tile by tile. */
void td__pass_fuse (TdPlan *p);
/** Where each value lies.  in_place: results may take the place of an input that dies. */
void td__pass_memory (TdPlan *p, bool in_place, bool overlay);
