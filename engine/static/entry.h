/* An entry of a chain's cache: one trace with its guards, plan and instances; and the chain.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "instance.h"
#include "trace.h"
#include "../tapedeck-static.h"

typedef struct TdEntry
{
  struct TdEntry *next;
  uint32_t refs; /**< of the cache and of each instance */
  TdStatic *owner;
  uint32_t chain; /**< the owner's number, for good */
  TdSchedule *schedule;
  TdGuards *guards;
  TdTrace *trace; /**< that waits for backward, or NULL */
  TdPlan *plan;   /**< NULL until the first replay, and when a new backward was traced */
  TdInstance *instances;
  uint32_t n_instances;
  bool keeps_graph; /**< it was traced with a graph */
  bool double_backprop;
  bool reads_host;   /**< the code decides by numbers it reads */
  uint32_t *op_out;  /**< by output: its place among the graph operation's, or TD_ABSENT */
  bool *reads;       /**< by external: some backward reads its array */
  int64_t iteration; /**< it was traced in */
  uint64_t n_replays, last_use;
  uint32_t number; /**< of its plan, as observers are told; 0: none yet */
} TdEntry;

TdEntry *td__entry_ref (TdEntry *e);
void td__entry_unref (TdEntry *e);

enum
{
  TD_MAX_BACKWARDS = 8 /* traced ones of one schedule */
};

/** A static chain: a function and its cache of schedules. */
struct TdStatic
{
  TdStatic *next; /**< of all */
  TdStaticFn fn;
  void *self;
  TdStaticOpt options;
  const char *name;
  const TdSite *site;
  const char **proved; /**< names of what the code was seen to do besides, told once each */
  uint32_t n_proved;
  uint32_t number; /**< 1, 2 ... in the order of td_static_new */
  bool told;       /**< the observer knows of it */
  TdEntry *entries;
  uint32_t n_entries;
  TdStaticInfo info;
  TdMiss miss; /**< the last one */
  char miss_text[600], alone_text[400];
  TdWatch *watches; /**< memory that the program registered; only name, site, memory, bytes */
  uint32_t n_watches, n_refusals;
  bool told_nested;
  bool own_arguments;    /**< the code was seen to use arguments as such only */
  bool verify_next;      /**< td_static_verify_next */
  uint64_t n_unverified; /**< replays since the last trace or verification */
  TdStatic **owner;      /**< who points to it, or NULL */
};

/* static.c, for verify.c */
/** Run the code and trace it.  NULL where no schedule can be made of it, or it failed: status.
 */
TdTrace *td__static_trace (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                           const TdSite *site, bool keeps, TdStatus *status);
/** Free a trace that is to be no entry, with its schedule and guards. */
void td__static_untrace (TdTrace *t);
/** Make an entry of a trace. */
void td__static_install (TdStatic *s, TdTrace *t);
void td__static_evict (TdStatic *s, TdEntry *e);
void td__static_remember (TdStatic *s, const TdMiss *miss, const TdSite *call);
/** An instance that is free, or a new one; NULL after td__fail_memory. */
TdInstance *td__static_instance (TdStatic *s, TdEntry *entry, const TdSite *site);
/* verify.c */
bool td__verify_due (const TdStatic *s);
TdStatus td__verify_call (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out,
                          int n_out, const TdSite *site);

/** Backward of a call that was verified. (verify-backward.c) */
TdStatus td__verify_backward (TdInstance *i, TdBackward *b, uint32_t which);

struct TdCheck;
/** Run the schedule.  out are poisoned on error. */
TdStatus td__replay_forward (TdEntry *entry, TdInstance *instance, TdVar *const *in,
                             TdVar **out, const TdSite *site, TdMiss *miss,
                             struct TdCheck *check);
/** Run the trace operation by operation through the engine: an ordinary call and graph.
 * again: its effects and state were had already.  vars: by node, filled; NULL: not wanted. */
TdStatus td__interpret (const TdSchedule *s, TdVar *const *externals, TdRngKey key, bool again,
                        TdVar **vars);
extern const TdOpClass td__static_class;
void td__observe_finish (void);

/** State as it was: what a second run, or one that is undone, must leave as it is. */
typedef struct TdSavedState
{
  TdBuffer *buffer;
  void *bytes;
  uint32_t version;
} TdSavedState;
/** Copy the externals that steps write; returns how many. */
uint32_t td__state_save (const TdSchedule *s, TdVar *const *externals, TdSavedState **saved);
/** Free the copies, and put them back first if asked. */
void td__state_restore (TdSavedState *saved, uint32_t n, bool back);
