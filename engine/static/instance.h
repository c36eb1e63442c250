/* An instance: the memory and the prepared calls of one schedule in use.
 *
 * One call that is to be followed by its backward has an instance of its own until its graph
 * dies, so that several calls in one iteration keep what each of them saved.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "plan.h"

typedef enum
{
  TD_INSTANCE_FREE,
  TD_INSTANCE_IN_FORWARD,
  TD_INSTANCE_AWAITING, /**< backward may come */
  TD_INSTANCE_RELEASED  /**< td_static_end_forward: the next call may take it */
} TdInstanceState;

/** A step whose operands are filled in. */
typedef struct TdReady
{
  TdRun run; /**< first */
  const TdStep *step;
  bool opens;     /**< an output is a gradient that leaves: it needs memory first */
  bool *packed;   /**< it multiplies by a matrix that is packed then; NULL: by none */
  uint32_t place; /**< of the step in the list */
  uint32_t last;  /**< GIVE: the last step of the list that reads that gradient */
} TdReady;

/** An operand of a value whose memory is another at every call. */
typedef struct TdPatch
{
  TdTensor *tensor;
  uint32_t value;
} TdPatch;

/** A list, ready to run. */
typedef struct TdReadyList
{
  const TdSteps *steps;
  TdReady *ready; /**< of those steps that compute, in order */
  uint32_t n_ready;
  bool short_products; /**< for which waking threads one by one does not pay */
  uint32_t *at;        /**< by step: its place in ready, or TD_ABSENT */
  TdTensor *tensors;
  TdPatch *patches; /**< sorted by value */
  uint32_t n_patches;
  uint32_t *patch_at; /**< by value: the first of its patches; n_values + 1 entries */
  uint32_t *bound;    /**< values that lie elsewhere at every call, but gradients that leave */
  uint32_t n_bound;
  char *attrs; /**< copies of those with a random key */
  TdRngKey **keys;
  uint64_t *key_at;
  uint32_t n_keys;
  struct TdCaptures *captures; /**< NULL: none yet, or none to be had */
} TdReadyList;

struct TdEntry;

/** A variable's array that the forward writes. */
typedef struct TdWrite
{
  uint32_t external;
  const TdSite *site;
} TdWrite;

typedef struct TdInstance
{
  struct TdInstance *next;
  struct TdEntry *entry;
  TdPlan *plan;
  uint32_t refs; /**< of the entry's list and of the graph's operation */
  uint8_t state;
  bool backward_done; /**< what was saved is overwritten */
  uint64_t generation;
  TdBuffer *arena; /**< NULL while nothing needs it */
  char **address;  /**< by value */
  TdReadyList forward, *backwards;
  bool *packed; /**< by packed matrix: it is, in this run */
  TdWrite *writes;
  uint32_t n_writes;
  void **room;          /**< for pointers to each external and each output twice */
  TdVar **given;        /**< by value: gradients of the backward that runs */
  bool *added;          /**< by value: a kernel added it to what was there */
  const TdReady **kept; /**< by external: the GIVE whose gradient is still read, or NULL */
  /* the call that uses it */
  TdRngKey key;
  uint64_t first_id;
  TdBuffer **externals; /**< held while backward may come */
  uint32_t *versions;
  TdBuffer **outputs; /**< by output: held likewise */
  const TdSite *site;
  struct TdShadow *shadow; /**< of a verified call: the code's graph, to compare backward */
  /* while somebody looks (observe.c) */
  TdNode **nodes;    /**< by node: what events name; NULL: not yet */
  bool *nodes_owned; /**< by node: made for that */
  TdBuffer **slices; /**< by value: parts of the arena, as arrays */
} TdInstance;

typedef struct TdShadow TdShadow;
void td__shadow_free (TdShadow *shadow); /* verify-backward.c */

/** A new one, free.  NULL after td__fail_memory. */
TdInstance *td__instance_new (struct TdEntry *entry, TdPlan *plan, const TdSite *site);
void td__instance_unref (TdInstance *i);
/** Forget what events named. */
void td__observe_drop (TdInstance *i);
/** Forget the CUDA graphs of a list. */
void td__captures_free (TdReadyList *list);
/** Let go of the arrays that it held for backward. */
void td__instance_drop (TdInstance *i);
/** Point every operand of a value at memory. */
static inline void
td__instance_bind (TdInstance *i, TdReadyList *list, uint32_t value, void *memory)
{
  i->address[value] = memory;
  for (uint32_t k = list->patch_at[value]; k < list->patch_at[value + 1]; k++)
    list->patches[k].tensor->data = memory;
}
