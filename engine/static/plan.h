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
  bool prune, fold, cse, batch, pack, fuse, in_place, plan, graphs;
} TdPassSwitches;

typedef enum
{
  TD_PASS_PRUNE,    /**< nobody uses its results */
  TD_PASS_FOLD,     /**< always the same numbers: computed once */
  TD_PASS_CSE,      /**< the same as step `other` */
  TD_PASS_BATCH,    /**< runs as one with step `other` of its list */
  TD_PASS_PACK,     /**< multiplies by packed matrix `other` */
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

/** Element-by-element steps that run tile by tile: what is between them never leaves L1.  Or
 * (`tiles` is NULL then) one operation, the member `main`, that does what the others do: a
 * product or convolution and what is done to each of its numbers, or a kernel of rows (`rows`).
 */
typedef struct TdGroup
{
  TdStep *members;
  uint32_t n_members;
  uint32_t *interior; /**< values that live in the tile only */
  uint32_t n_interior;
  int64_t size;        /**< elements */
  uint32_t *externals; /**< by output: it may add to that external's gradient; or TD_ABSENT */
  TdTiles *tiles;
  bool relu;      /**< of a product: relu is its end */
  uint32_t above; /**< or relu_grad, of this input of the group; else TD_ABSENT */
  uint32_t added; /**< of a convolution: before that it adds this input; else TD_ABSENT */
  bool rows;      /**< it is no product: a row normalisation or its gradient, and `added` */
  uint32_t main;
  uint32_t sum; /**< of rows: this output is what was added up; else TD_ABSENT */
} TdGroup;

/** A matrix that several steps of a list multiply by, packed at the first of them. */
typedef struct TdPack
{
  uint32_t list, value;
  bool tb;
  int64_t n, k;
  size_t offset, bytes; /**< in the arena, behind the values */
} TdPack;

/** Values that lie side by side, and the value that is all of them. */
typedef struct TdValueBlock
{
  uint32_t value;
  uint32_t *parts; /**< in order */
  uint32_t n_parts;
} TdValueBlock;

/** When a value is in use: places in a list, both included.  first > last: never. */
typedef struct TdLife
{
  uint32_t first, last;
} TdLife;

typedef struct TdPlan
{
  uint32_t refs;   /**< of the entry and of each instance */
  uint32_t number; /**< as observers are told; 0: not yet */
  TdPassSwitches switches;
  bool graphs;     /**< steps are launched as CUDA graphs where that is possible */
  TdSchedule *s;   /**< tables and lists as the passes left them */
  TdGroup *groups; /**< of TD_STEP_GROUP steps: step.external is the place */
  uint32_t n_groups;
  TdPack *packs;
  uint32_t n_packs;
  TdValueBlock *blocks;
  uint32_t n_blocks;
  uint32_t *block; /**< by value: where it is a part, or some parts; NULL: there are none */
  size_t *inner;   /**< by value: bytes from where its block begins */
  uint32_t n_trace_values; /**< those from here on are the plan's own: some parts of blocks */
  uint32_t n_trace_constants; /**< those from here on are the plan's own: folded */
  size_t *offsets;            /**< by value: in the arena; SIZE_MAX: not there */
  size_t arena_bytes;
  size_t lower_bound; /**< no plan needs less: the most that lives at once */
  TdLife *lives;      /**< by list and value: lives[list * n_values + value] */
  uint32_t *home;     /**< by value: the value whose memory it has; itself but in place */
  TdPassNote *notes;
  uint32_t n_notes;
  uint32_t n_pruned, n_folded, n_merged, n_batched, n_packed, n_fused, n_in_place;
} TdPlan;

TdPlan *td__plan_new (const TdSchedule *s, const TdPassSwitches *switches);
void td__plan_unref (TdPlan *p);
/** The list that runs in forward (0) or in backward `list` - 1. */
static inline TdSteps *
td__plan_list (const TdPlan *p, uint32_t list)
{
  return list == 0 ? &p->s->forward : &p->s->backwards[list - 1].list;
}
/** The block that a value lies in, or TD_ABSENT. */
static inline uint32_t
td__plan_block (const TdPlan *p, uint32_t value)
{
  return p->block != NULL ? p->block[value] : TD_ABSENT;
}
/** Say whether a value is one or several parts of its block, seen as one. */
static inline bool
td__plan_covers (const TdPlan *p, uint32_t value)
{
  return value >= p->n_trace_values;
}
/** Say whether part k of its block is in it. */
static inline bool
td__plan_covers_part (const TdPlan *p, uint32_t value, uint32_t k)
{
  const size_t at = p->inner[p->blocks[p->block[value]].parts[k]];

  return at >= p->inner[value] && at < p->inner[value] + p->s->values[value].bytes;
}
