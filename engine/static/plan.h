/* A plan: the list that really runs, and where each value lies.
 *
 * It begins as a copy of a schedule; passes change the copy, and note of every step of the
 * trace that is not run as it was, which pass it was and why.  Attributes and effects stay the
 * schedule's.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "schedule.h"
#include "../cpu/tiles.h"

/** Switches of the passes: the options of td_static_new. */
typedef struct TdPassSwitches
{
  bool prune, fold, cse, fuse, in_place, plan;
} TdPassSwitches;

typedef enum
{
  TD_PASS_PRUNE,    /**< nobody uses its results */
  TD_PASS_FOLD,     /**< always the same numbers: computed once */
  TD_PASS_CSE,      /**< the same as step `other` */
  TD_PASS_FUSE,     /**< runs in group `other` */
  TD_PASS_IN_PLACE, /**< its result takes the place of value `other`, an input */
  TD_PASS_N
} TdPassKind;

/** What a pass did to a step of the trace. */
typedef struct TdPassNote
{
  uint8_t pass;
  uint32_t list; /**< 0: forward; else 1 + which backward */
  uint32_t step; /**< its place in that list of the trace */
  uint32_t other;
} TdPassNote;

/** Element-by-element steps that run tile by tile: what is between them never leaves L1. */
typedef struct TdGroup
{
  TdStep *members;
  uint32_t n_members;
  uint32_t *interior; /**< values that live in the tile only */
  uint32_t n_interior;
  int64_t size; /**< elements */
  TdTiles *tiles;
} TdGroup;

/** When a value is in use: places in a list, both included.  first > last: never. */
typedef struct TdLife
{
  uint32_t first, last;
} TdLife;

typedef struct TdPlan
{
  uint32_t refs;   /**< of the entry and of each instance */
  TdSchedule *s;   /**< tables and lists as the passes left them */
  TdGroup *groups; /**< of TD_STEP_GROUP steps: step.external is the place */
  uint32_t n_groups;
  uint32_t n_trace_constants; /**< those from here on are the plan's own: folded */
  size_t *offsets;            /**< by value: in the arena; SIZE_MAX: not there */
  size_t arena_bytes;
  size_t lower_bound; /**< no plan needs less: the most that lives at once */
  TdLife *lives;      /**< by list and value: lives[list * n_values + value] */
  uint32_t *home;     /**< by value: the value whose memory it has; itself but in place */
  TdPassNote *notes;
  uint32_t n_notes;
  uint32_t n_pruned, n_folded, n_merged, n_fused, n_in_place;
} TdPlan;

TdPlan *td__plan_new (const TdSchedule *s, const TdPassSwitches *switches);
void td__plan_unref (TdPlan *p);
/** The list that runs in forward (0) or in backward `list` - 1. */
static inline TdSteps *
td__plan_list (const TdPlan *p, uint32_t list)
{
  return list == 0 ? &p->s->forward : &p->s->backwards[list - 1].list;
}
