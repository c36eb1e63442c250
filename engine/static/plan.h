/* A plan: the steps that really run, and where each value lies in memory.
 *
 * It starts as a copy of a schedule, which passes then change.  For every step of the trace
 * that a pass removed or changed there is a note of which pass that was.  Attributes and
 * effects are shared with the schedule.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "schedule.h"
#include "compute/cpu/tiles.h"

/** Switches of the passes: the options of td_static_new. */
typedef struct TdPassSwitches
{
  bool prune, fold, cse, batch, pack, fuse, in_place, plan, graphs;
} TdPassSwitches;

typedef enum
{
  TD_PASS_PRUNE,    /**< dead: nothing uses its results */
  TD_PASS_FOLD,     /**< constant: computed once */
  TD_PASS_CSE,      /**< the same as step `other` */
  TD_PASS_BATCH,    /**< runs as one with step `other` of its list */
  TD_PASS_PACK,     /**< multiplies by packed matrix `other` */
  TD_PASS_FUSE,     /**< runs in group `other` */
  TD_PASS_IN_PLACE, /**< its result overwrites value `other`, an input */
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

/** A group of fused steps.  Either elementwise steps that run tile by tile, so that the values
 * between them stay in the L1 cache; or, where `tiles` is NULL, one kernel of the member `main`
 * that does the work of the others too: a product or convolution with an epilogue, or a row
 * normalisation with a sum (`rows`). */
typedef struct TdGroup
{
  TdStep *members;
  uint32_t n_members;
  uint32_t *interior; /**< values that live only in the tile */
  uint32_t n_interior;
  int64_t size;        /**< elements */
  uint32_t *externals; /**< by output: the external whose gradient it may accumulate into; or
                            TD_ABSENT */
  TdTiles *tiles;
  bool relu;      /**< a product's epilogue is relu */
  uint32_t above; /**< or relu_grad, by the sign of this input of the group; else TD_ABSENT */
  uint32_t added; /**< a convolution adds this input before its epilogue; else TD_ABSENT */
  bool rows;      /**< a row normalisation or its gradient, with the addend `added` */
  uint32_t main;
  uint32_t sum; /**< with `rows`: the output that is the sum; else TD_ABSENT */
} TdGroup;

/** A matrix that several steps of a list multiply by.  The first of them packs it. */
typedef struct TdPack
{
  uint32_t list, value;
  bool tb;
  int64_t n, k;
  size_t offset, bytes; /**< in the arena, after the values */
} TdPack;

/** Values that are contiguous in memory, and the value that is all of them together. */
typedef struct TdValueBlock
{
  uint32_t value;
  uint32_t *parts; /**< in order */
  uint32_t n_parts;
} TdValueBlock;

/** The lifetime of a value: first and last step in a list, both included.  first > last: none.
 */
typedef struct TdLife
{
  uint32_t first, last;
} TdLife;

typedef struct TdPlan
{
  uint32_t refs;   /**< of the entry and of each instance */
  uint32_t number; /**< in reports to observers; 0: not reported yet */
  TdPassSwitches switches;
  bool graphs;     /**< steps are launched as CUDA graphs where that is possible */
  TdSchedule *s;   /**< tables and lists as the passes left them */
  TdGroup *groups; /**< of TD_STEP_GROUP steps, whose `external` is the index */
  uint32_t n_groups;
  TdPack *packs;
  uint32_t n_packs;
  TdValueBlock *blocks;
  uint32_t n_blocks;
  uint32_t *block; /**< by value: the block of which it is a part, or several parts; NULL: no
                      blocks */
  size_t *inner;   /**< by value: its offset in that block, in bytes */
  uint32_t n_trace_values;    /**< values from here on were added by passes: parts of blocks */
  uint32_t n_trace_constants; /**< constants from here on were added by folding */
  size_t *offsets;            /**< by value: in the arena; SIZE_MAX: it is not in the arena */
  size_t arena_bytes;
  size_t lower_bound; /**< the most bytes that live at once: no plan needs less */
  TdLife *lives;      /**< by list and value: lives[list * n_values + value] */
  uint32_t *home;     /**< by value: the value whose memory it uses, itself unless in place */
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
/** Say whether a value stands for several parts of its block, or for one under another shape.
 */
static inline bool
td__plan_covers (const TdPlan *p, uint32_t value)
{
  return value >= p->n_trace_values;
}
/** Say whether part k of its block belongs to it. */
static inline bool
td__plan_covers_part (const TdPlan *p, uint32_t value, uint32_t k)
{
  const size_t at = p->inner[p->blocks[p->block[value]].parts[k]];

  return at >= p->inner[value] && at < p->inner[value] + p->s->values[value].bytes;
}
