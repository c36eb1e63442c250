/* A plan: the list that really runs, and where each value lies.
 *
 * It begins as a copy of a schedule; passes change the copy.  Attributes and effects stay the
 * schedule's.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "schedule.h"

/** Switches of the passes: the options of td_static_new. */
typedef struct TdPassSwitches
{
  bool prune, fold, cse, fuse, in_place, plan;
} TdPassSwitches;

/** Element-by-element steps that run tile by tile: what is between them never leaves L1. */
typedef struct TdGroup
{
  TdStep *members;
  uint32_t n_members;
  uint32_t *interior; /**< values that live in the tile only */
  uint32_t n_interior;
  int64_t size; /**< elements */
} TdGroup;

typedef struct TdPlan
{
  uint32_t refs;   /**< of the entry and of each instance */
  TdSchedule *s;   /**< tables and lists as the passes left them */
  TdGroup *groups; /**< of TD_STEP_GROUP steps: step.external is the place */
  uint32_t n_groups;
  size_t *offsets; /**< by value: in the arena; SIZE_MAX: not there */
  size_t arena_bytes;
  size_t lower_bound; /**< no plan needs less: the most that lives at once */
  uint32_t n_pruned, n_folded, n_merged, n_fused, n_in_place;
} TdPlan;

TdPlan *td__plan_new (const TdSchedule *s, const TdPassSwitches *switches);
void td__plan_unref (TdPlan *p);
