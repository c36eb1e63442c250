/* Hooks from the inside: what is registered where, and how it is called.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"
#include "../links/object.h"

struct TdHook
{
  TdObject object;
  const TdHookClass *cls;
  const char *name;
  void *self;
  int busy;  /**< calls of it that run */
  bool dead; /**< freed while it ran: goes when it returns */
};

/** One place where a hook is registered. */
typedef struct TdHookEntry
{
  TdHook *hook;        /**< NULL: unregistered while hooks ran */
  const char *op_name; /**< only operations of this name */
  uint64_t op_id;      /**< only this operation */
  uint64_t link_id;    /**< only this link */
} TdHookEntry;

/** A link call whose backward a hook wants to see; ids of its operations are first to last. */
typedef struct TdLinkRecord
{
  uint64_t link_id, first, last;
  const TdPath *path;
  const TdSite *site;
  int n_in, n_out;
  uint64_t *nodes;     /**< ids: of the inputs, then of the outputs */
  const TdOp *creator; /**< of an output: while its id is creator_id, the graph lives */
  uint64_t creator_id;
} TdLinkRecord;

/** Everything registered in the process. */
typedef struct TdHooks
{
  TdHookEntry *entries;
  int n, capacity;
  int suspended;         /**< how many hooks run that are not hooked themselves */
  int running;           /**< how many calls iterate over entries */
  TdLinkRecord *records; /**< in order of their last operation */
  size_t n_records, records_capacity;
  int walks; /**< backwards that go through records, which stay where they are meanwhile */
} TdHooks;

extern TdHooks td__hooks;
extern const TdHookTable td__hook_table;

/* link-backward.c, as in TdHookTable */
TdLinkWalk *td__hooks_backward_begin (void);
void td__hooks_backward_reach (TdLinkWalk *walk, const TdOp *op, void *const *touched,
                               size_t n_touched);
void td__hooks_backward_made (TdLinkWalk *walk, const TdOp *op, TdVar *const *gx);
void td__hooks_backward_end (TdLinkWalk *walk, TdStatus status);
void td__hooks_link_record (uint64_t link_id, const TdPath *path, const TdSite *site,
                            uint64_t first, TdVar *const *in, int n_in, TdVar *const *out,
                            int n_out);

/** What constructors return that failed. */
TdHook *td__hook_inert (void);
/** Set TdEngine.hooks as what is registered asks for. */
void td__hooks_refresh (void);
/** Call a hook's function of a link at one moment; those of everything and of this link. */
void td__hooks_link (TdMoment moment, uint64_t link_id, TdLinkCall *call);
/** Forget what is registered: td_finish. */
void td__hooks_finish (void);
void td__hooks_records_clear (void);
/** Enter and leave a hook: what it does is outside the model's own course. */
typedef struct TdHookFrame
{
  TdScope *scope;
  const TdSite *site, *call_site;
  const TdPath *path;
  const TdOp *twin;
  uint64_t twin_id;
  uint32_t order;
  TdPhase phase;
  int enable_backprop;
} TdHookFrame;
TdHookFrame td__hook_enter (TdHook *hook, bool own_graph);
void td__hook_leave (TdHook *hook, TdHookFrame *frame, bool own_graph);
