/* Hooks from the inside: what is registered where, and how it is called.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../core/core.h"
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

/** What constructors return that failed. */
TdHook *td__hook_inert (void);
/** Set TdEngine.hooks as what is registered asks for. */
void td__hooks_refresh (void);
/** Call a hook's function of a link at one moment; those of everything and of this link. */
void td__hooks_link (TdMoment moment, uint64_t link_id, TdLinkCall *call);
/** Say whether a call of this link is anybody's business. */
bool td__hooks_link_wanted (uint64_t link_id);
/** Remember a link call's operations first .. last for backward, if a hook wants it. */
void td__hooks_link_record (uint64_t link_id, const TdPath *path, const TdSite *site,
                            uint64_t first, TdVar *const *in, int n_in, TdVar *const *out,
                            int n_out);
/** A link goes: its hooks hear `deleted`. */
void td__hooks_link_gone (TdLink *link, uint64_t link_id);
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
