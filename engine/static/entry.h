/* A static function and the entries of its cache; an entry is one trace with its guards, its
 * plan and the instances of that.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "instance.h"
#include "trace.h"
#include "tapedeck-static.h"

/** Who reads the array of an output again in backward. */
typedef enum
{
  TD_READ_BY_NONE,
  TD_READ_BY_CODE, /**< its graph keeps it, no traced backward reads it */
  TD_READ_BY_BACKWARD
} TdReadBy;

typedef struct TdEntry
{
  struct TdEntry *next;
  uint32_t refs; /**< of the cache and of each instance */
  TdStatic *owner;
  uint32_t function; /**< number of the static function, also after that is freed */
  TdSchedule *schedule;
  TdGuards *guards;
  TdTrace *trace; /**< a trace whose backward has not run yet, or NULL */
  TdPlan *plan;   /**< NULL until the first replay, and when a new backward was traced */
  TdInstance *instances;
  uint32_t n_instances;
  bool keeps_graph;  /**< it was traced with enable_backprop */
  bool own_backward; /**< of an operation of the program's own, which may read what it likes */
  bool double_backprop;
  bool reads_host; /**< the code reads numbers, and may branch on them */
  bool
      reads_state; /**< what it computes depends on what it changes outside, as it was before */
  uint32_t *op_out;   /**< by output: its place among the graph operation's, or TD_ABSENT */
  bool *reads;        /**< by external: some backward reads its array */
  uint8_t *reads_out; /**< by output: likewise, a TdReadBy */
  int64_t iteration;  /**< it was traced in */
  uint64_t n_replays, last_use;
  uint32_t number;            /**< its plan's, in reports to observers; 0: not reported yet */
  uint64_t n_uses, verify_at; /**< calls by it since the trace, which is call 1; the next of
                                 them that the function verifies by itself */
} TdEntry;

TdEntry *td__entry_ref (TdEntry *e);
void td__entry_unref (TdEntry *e);
/** Memory of its instances. */
size_t td__entry_bytes (const TdEntry *e);

enum
{
  TD_MAX_BACKWARDS = 8 /* traced ones of one schedule */
};

/** A difference was found: the code runs until it has been the same again for a while. */
typedef struct TdDoubt
{
  bool on;
  uint32_t n_equal, needed; /**< calls in a row whose code was the same, and that it takes */
  uint64_t wait, gap;       /**< calls until the code is looked at again, and after that */
} TdDoubt;

/** Traces that no replay follows cost time: after a few of them the code runs as it is. */
typedef struct TdHopeless
{
  uint32_t n;         /**< traces, or tries, since the last replay */
  uint64_t wait, gap; /**< calls until the next, and after that */
  bool reported;
} TdHopeless;

enum
{
  TD_STATIC_BY_ITSELF = -1, /* TdStaticOpt.verify */
  TD_STATIC_AS_IS = -1,     /* TdEngine.static_verify */
  TD_KEYS = 8               /* arguments and modes that are remembered */
};

/** A static function: the code and its cache of schedules. */
struct TdStatic
{
  TdStatic *next; /**< of all */
  TdStaticFn fn;
  void *self;
  TdStaticOpt options;
  const char *name;
  const TdSite *site;
  const TdSite *called_at; /**< the last call */
  const char **proved;     /**< side effects that were reported: each once */
  uint32_t n_proved;
  const char *aside; /**< why the last call asked for no schedule; NULL: it did */
  uint32_t number;   /**< 1, 2 ... in the order of td_static_new */
  bool reported;     /**< the observer knows of it */
  TdEntry *entries;
  uint32_t n_entries;
  TdStaticInfo info;
  TdMiss miss; /**< the last one */
  char miss_text[800], alone_text[400];
  TdWatch *watches; /**< memory that the program registered; only name, site, memory, bytes */
  uint32_t n_watches, n_refusals;
  bool reported_nested;
  bool verify_next;      /**< td_static_verify_next */
  int64_t equal_at;      /**< iteration in which schedule and code were last found equal */
  int64_t equal_before;  /**< and that before it: backward is compared later */
  uint64_t n_unverified; /**< replays since the last trace or verification */
  TdStatic **owner;      /**< who points to it, or NULL */
  TdDoubt doubt;
  TdTrace *looked_at; /**< of code that ran in place of a schedule: they wait for backward */
  TdHopeless hopeless;
  uint64_t keys[TD_KEYS]; /**< of the schedules that left a cache of one: trust.c */
  uint32_t n_keys;
  bool keeps_several; /**< they came again */
};

/** What a trace is for. */
typedef enum
{
  TD_TRACE_FOR_ENTRY,
  TD_TRACE_FOR_VERIFICATION, /**< to be compared with a schedule that runs then */
  TD_TRACE_FOR_NUMBERS,      /**< likewise, with its arrays */
  TD_TRACE_FOR_DOUBT /**< to be compared with the one before: its results are handed out */
} TdTraceFor;

typedef enum
{
  TD_VERIFY_NOT,
  TD_VERIFY_STEPS,    /**< the code's steps and what it brings are those of the schedule */
  TD_VERIFY_BACKWARD, /**< and the numbers of backward */
  TD_VERIFY_CODE, /**< the code runs in place of the schedule, its backward too: the steps of
                       both, without a second graph beside the schedule's memory */
  TD_VERIFY_ALL   /**< all numbers, also those of backward */
} TdVerify;

/* static.c, for verify.c */
/** Run the code and trace it.  NULL if it failed (status), or no schedule can be made of it. */
TdTrace *td__static_trace (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                           const TdSite *site, TdTraceFor what, TdStatus *status);
/** Free a trace that is to be no entry, with its schedule and guards. */
void td__static_untrace (TdTrace *t);
/** Make an entry of a trace. */
void td__static_install (TdStatic *s, TdTrace *t);
void td__static_evict (TdStatic *s, TdEntry *e);
/** Evict for the entry that comes next: a cache holds one, and several where what left it comes
 * again. */
void td__cache_make_room (TdStatic *s, const TdEntry *next);
/** Evict what can never be replayed again. */
void td__cache_drop_dead (TdStatic *s);
/** Evict the oldest beyond the option cache_bytes, but not `keep`. */
void td__cache_keep_within (TdStatic *s, const TdEntry *keep);
void td__static_remember (TdStatic *s, const TdMiss *miss, const TdSite *call);
/** Return an idle instance, or a new one; NULL after td__fail_memory. */
TdInstance *td__static_instance (TdStatic *s, TdEntry *entry, const TdSite *site);
/* verify.c */
TdStatus td__verify_call (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out,
                          int n_out, const TdSite *site, TdVerify how);
/** Run the code in a scope of its own. */
TdStatus td__static_run_code (TdStatic *s, TdVar *const *in, int n_in, TdVar **out, int n_out,
                              const TdSite *site, TdStaticRunKind kind);
/** A call's results are those of the code. */
void td__static_count_code (TdStatic *s);
/** On stderr, from this verbosity_level on. */
void td__static_say (const TdStatic *s, int level, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* trust.c */
/** A call by this entry begins: how is it verified? */
TdVerify td__verify_due (TdStatic *s, TdEntry *entry);
/** Say whether the function chooses by itself what it verifies. */
bool td__verify_by_itself (const TdStatic *s);
/** Code and schedule differ, as the last miss says. */
void td__doubt_begin (TdStatic *s);
/** Note that schedule and code are known to be equal in this iteration. */
void td__static_is_equal (TdStatic *s);
/** A call in doubt: the code, whose results are handed out. */
TdStatus td__doubt_call (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out,
                         int n_out, const TdSite *site);
/** A verified call by TD_VERIFY_CODE. */
TdStatus td__look_at_code (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out,
                           int n_out, const TdSite *site);
/** Free the traces whose backward will not come any more, or all. */
void td__look_no_more (TdStatic *s, bool all);
/** Code and schedule differ: keep, count and report it, and say it where every call, or every
 * so many, are verified. */
void td__verify_differs (TdStatic *s, const TdEntry *entry, const TdMiss *miss,
                         const TdSite *site);
/** No schedule fits: say whether a trace is worth the time. */
bool td__hopeless_traces (TdStatic *s);
/** A call asks for no schedule, by config, hooks or option: say why.  (trust.c) */
void td__static_set_aside (TdStatic *s, const TdSite *site);
/** A schedule leaves a cache of one for another: say whether it came before, so that both are
 * to be kept. */
bool td__keys_alternate (TdStatic *s, const TdEntry *left, const TdEntry *next);

/** Backward of a call that was verified. (verify-backward.c) */
TdStatus td__verify_backward (TdInstance *i, TdBackward *b, uint32_t which);
/** The same where no traced backward fits and the trace was interpreted: ys are its results,
 * gys their gradients.  False: they differ, and backward went on through the code's graph. */
bool td__verify_graph (TdInstance *i, TdBackward *b, TdVar **ys, TdVar **gys, int n_y,
                       TdStatus *status);

struct TdCheck;
/** False for NULL, freed ones and other threads, after td__fail. */
bool td__static_usable (const TdStatic *s, const char *call, const TdSite *site);
/** Run the schedule.  out are poisoned on error. */
TdStatus td__replay_forward (TdEntry *entry, TdInstance *instance, TdVar *const *in,
                             TdVar **out, const TdSite *site, TdMiss *miss,
                             struct TdCheck *check);
/** Run the trace operation by operation through the engine, as an ordinary call with a graph.
 * Its operations have the ids of a call that began at first_id, though events have new ones.
 * again: the call has run once, so that effects and changes of state are skipped.  vars: filled
 * with the variable of each node. */
TdStatus td__interpret (const TdSchedule *s, TdVar *const *externals, TdRngKey key,
                        uint64_t first_id, bool again, TdVar **vars);
extern const TdOpClass td__static_class;
void td__observe_finish (void);

/** A copy of what a run changes outside (running means, for example), to undo that run. */
typedef struct TdSavedState
{
  TdBuffer *buffer;
  void *bytes;
  uint32_t version;
  uint8_t dtype;
} TdSavedState;
/** Copy the externals that steps write; returns how many. */
uint32_t td__state_save (const TdSchedule *s, TdVar *const *externals, TdSavedState **saved);
/** Put the copies back, with the numbers of the changes, and keep them. */
void td__state_put_back (const TdSavedState *saved, uint32_t n);
/** Say whether what the steps compute depends on such an external as it was before. */
bool td__state_is_read (const TdSchedule *s);
/** Free the copies, and put them back first if asked. */
void td__state_restore (TdSavedState *saved, uint32_t n, bool back);
