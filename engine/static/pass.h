/* The passes over a plan, and helpers that they share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "plan.h"

/** Memory of n items, zeroed; never NULL. */
void *td__plan_zeroed (size_t n, size_t bytes);
/** Note what a pass did to a step of the trace. */
void td__plan_note (TdPlan *p, TdPassKind pass, uint32_t list, uint32_t step, uint32_t other);
/** Remove the marked steps from a list. */
void td__plan_remove (TdPlan *p, uint32_t list, const bool *dead);
/** Count how often the steps of all lists read or write each value.  *Owner*: the caller, free.
 */
uint32_t *td__plan_touches (const TdPlan *p);
/** Say whether a step runs a kernel over numbers, or does something else at replay. */
static inline bool
td__step_computes (const TdStep *step)
{
  return step->kind == TD_STEP_FILL || step->kind == TD_STEP_COPY
         || step->kind == TD_STEP_EFFECT || step->kind == TD_STEP_HOST_READ
         || step->kind == TD_STEP_PROPAGATE || step->kind == TD_STEP_GROUP
         || (step->kind == TD_STEP_OP && !(step->cls->flags & TD_OP_VIEW));
}
/** Say whether the step changes its input i in place. */
static inline bool
td__step_writes_input (const TdStep *step, uint32_t i)
{
  return step->kind == TD_STEP_OP && td__bit (step->cls->writes, (int)i);
}

/** Find the elementwise kernel of a step; false: it has none. */
bool td__step_tile (const TdSchedule *s, const TdStep *step, TdTileCall *call);
/** Say whether the step is dropout, whose mask a group can make itself. */
bool td__step_drops (const TdStep *step);

/** Dead code elimination. */
void td__pass_prune (TdPlan *p);
/** Constant folding. */
void td__pass_fold (TdPlan *p);
/** Common subexpression elimination. */
void td__pass_cse (TdPlan *p);
/** Batching: products that share a matrix, and contributions to one gradient. */
void td__pass_batch (TdPlan *p);
/** Packing of weight matrices. */
void td__pass_pack (TdPlan *p);
/** Place packed matrices in the arena, after all values. */
void td__pass_pack_place (TdPlan *p);
/** Epilogue fusion: relu or relu_grad after a product or convolution. */
void td__pass_end (TdPlan *p);
/** Fusion of row normalisations, or their gradients, with a sum next to them. */
void td__pass_rows (TdPlan *p);
/** Fusion of elementwise steps. */
void td__pass_fuse (TdPlan *p);
/** Memory planning.  in_place: a result may overwrite an input that is not read again. */
void td__pass_memory (TdPlan *p, bool in_place, bool overlay);
