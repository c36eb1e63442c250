/* An instance: the memory and the prepared calls of a plan in use.
 *
 * A call whose backward may follow keeps its instance until its graph is freed.  So several
 * calls in one iteration each have the values that they saved for backward.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "plan.h"

typedef enum
{
  TD_INSTANCE_FREE,
  TD_INSTANCE_IN_FORWARD,
  TD_INSTANCE_AWAITING, /**< backward may come */
  TD_INSTANCE_RELEASED  /**< td_static_end_forward: the next call may reuse it */
} TdInstanceState;

/** A step whose operands are filled in. */
typedef struct TdReady
{
  TdRun run; /**< first */
  const TdStep *step;
  bool opens;     /**< an output is a gradient for outside, allocated before the step runs */
  bool *packed;   /**< whether the packed matrix that it uses is packed; NULL: it uses none */
  uint32_t place; /**< of the step in the list */
  uint32_t last;  /**< of a gradient that is propagated: the last step that reads it */
} TdReady;

/** An operand that has to be set at every call, as its value's memory changes. */
typedef struct TdPatch
{
  TdTensor *tensor;
  uint32_t value;
} TdPatch;

/** A list, ready to run. */
typedef struct TdReadyList
{
  const TdSteps *steps;
  TdReady *ready; /**< the steps that compute, in order */
  uint32_t n_ready;
  bool short_products; /**< products too short to wake threads for each */
  uint32_t *at;        /**< by step: its place in ready, or TD_ABSENT */
  TdTensor *tensors;
  TdPatch *patches; /**< sorted by value */
  uint32_t n_patches;
  uint32_t *patch_at; /**< by value: the first of its patches; n_values + 1 entries */
  uint32_t *bound;    /**< values whose memory changes, but no gradients for outside */
  uint32_t n_bound;
  char *attrs; /**< copies of attributes that contain random keys */
  TdRngKey **keys;
  uint64_t *key_at;
  uint32_t n_keys;
  struct TdCaptures *captures; /**< NULL: none yet, or not possible */
} TdReadyList;

struct TdEntry;

/** An external variable that the forward writes, and where. */
typedef struct TdWrite
{
  uint32_t external;
  const TdSite *site;
} TdWrite;

/** When a value was written, by a count of all writes of the run; 0: not yet. */
typedef struct TdWritten
{
  uint64_t by;    /**< a step that wrote its memory */
  uint64_t there; /**< since when it is there: by, or what it is made of where no step runs */
} TdWritten;

typedef struct TdInstance
{
  struct TdInstance *next;
  struct TdEntry *entry;
  TdPlan *plan;
  uint32_t refs; /**< from the entry's list and the operation in the graph */
  uint8_t state;
  bool backward_done; /**< backward has run: saved values are overwritten */
  bool cut;           /**< td_unchain cut a result off whose graph cannot be made any more */
  uint64_t generation;
  TdBuffer *arena; /**< NULL while no call uses it */
  char **address;  /**< by value */
  TdReadyList forward, *backwards;
  bool *packed; /**< by packed matrix: it has been packed in this run */
  TdWrite *writes;
  uint32_t n_writes;
  void **room;   /**< scratch for two pointers to each external and output */
  TdVar **given; /**< by value: gradients for outside, in the present backward */
  bool *added;   /**< by value: a kernel has accumulated into it */
  const TdReady *
      *kept; /**< by external: the step whose propagated gradient is still read, or NULL */
  /* the call that uses it */
  TdRngKey key;
  uint64_t first_id;
  TdBuffer **externals; /**< references, kept while backward may run */
  uint32_t *versions;
  TdBuffer **outputs; /**< by output: the same */
  uint32_t *out_versions;
  const TdSite *site;
  struct TdCodeGraph *code_graph; /**< of a verified call, to verify backward */
  struct TdSavedState *before; /**< what the call changed outside, as it was: its graph may be
                                  made once more */
  uint32_t n_before;
  TdOp *call; /**< in the graph, while it waits for the first backward: waiting.c */
  struct TdInstance *next_waiting;
  /* while somebody looks (observe.c) */
  TdNode **nodes;     /**< by node: what events refer to; NULL: not made yet */
  bool *nodes_owned;  /**< by node: it was made only for events */
  TdBuffer **slices;  /**< by value: parts of the arena, as arrays */
  TdWritten *written; /**< by value (overwritten.c) */
  uint64_t n_written;
  struct TdInstance *next_observed;
} TdInstance;

typedef struct TdCodeGraph TdCodeGraph;
void td__code_graph_free (TdCodeGraph *code_graph); /* verify-backward.c */
void td__replay_waits_no_more (TdInstance *i);      /* waiting.c */

/** Make an idle instance.  NULL after td__fail_memory. */
TdInstance *td__instance_new (struct TdEntry *entry, TdPlan *plan, const TdSite *site);
void td__instance_unref (TdInstance *i);
/** Drop the nodes that were made for events. */
void td__observe_drop (TdInstance *i);
/** Nobody asks any more which of its values are there. */
void td__overwritten_end (TdInstance *i);
/** Forget the CUDA graphs of a list. */
void td__captures_free (TdReadyList *list);
/** Drop the references that were kept for backward. */
void td__instance_drop (TdInstance *i);
/** Point every operand of a value at memory. */
static inline void
td__instance_bind (TdInstance *i, TdReadyList *list, uint32_t value, void *memory)
{
  i->address[value] = memory;
  for (uint32_t k = list->patch_at[value]; k < list->patch_at[value + 1]; k++)
    list->patches[k].tensor->data = memory;
}
