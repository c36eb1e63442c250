/* The state of one run of a schedule's list, which the files that replay share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "entry.h"

typedef struct TdReplay
{
  TdInstance *i;
  TdReadyList *list;
  TdBackward *b; /**< NULL in forward */
  TdVar **given; /**< backward, by value: gradients for outside that were made */
  bool *added;   /**< by value: a kernel has accumulated into it */
  TdMiss *miss;
  struct
  {
    const TdStep *step;
    TdVar *v;
  } * effects; /**< to run at the end, if the run succeeds */
  uint32_t n_effects;
  bool observed;               /**< an event was reported for each operation */
  struct TdCheck *check;       /**< of a verified call, or NULL */
  uint32_t waiting, n_waiting; /**< capture.c: the first deferred step, and how many are */
} TdReplay;

/** Run a traced backward. */
TdStatus td__replay_backward (TdInstance *i, TdBackward *b, uint32_t which);

/** Backward where no traced one fits: through an ordinary graph.  (expand.c) */
TdStatus td__replay_expand (TdInstance *i, TdBackward *b);
/** Make the graph before any backward, which is traced when it comes. */
void td__replay_expand_now (TdInstance *i, TdOp *call);
/** Say whether more than one result of a call is in the graph: one may be made of another. */
bool td__replay_has_several_results (const TdOp *call);
/** The instance of a call in the graph; NULL: it has lost it. */
TdInstance *td__replay_instance_or_null (const TdOp *call);

/** Run one step.  Returns an error after td__fail. */
TdStatus td__replay_one (TdReplay *p, TdReady *r);
/** Run a group.  Its gradients for outside have been allocated. */
TdStatus td__replay_group (const TdReplay *p, const TdReady *r);

/* keeps.c */
/** From now on whoever asks what keeps memory is told of the calls in the graph. */
void td__replay_tells_what_it_keeps (void);

/* waiting.c */
/** No call by this schedule had a backward: the graph is made before anything is written that
 * the forward reads. */
void td__replay_waits (TdInstance *i, TdOp *call);

/* unwritten.c */
/** Say whether the call's graph, where it is made once more, needs this array as it is. */
bool td__replay_needs (const TdInstance *i, const TdBuffer *b);
/** Nothing that the code's own graph would have kept has been written since the call. */
bool td__replay_is_unwritten (const TdInstance *i);
/** Fail for what a backward needs and was written.  every: it runs the forward again. */
TdStatus td__replay_unwritten (const TdInstance *i, bool every);

/* outputs.c */
/** A node of the graph for a node of the schedule, without a function.  *Owner*: the caller. */
TdNode *td__replay_node (const TdSchedule *s, uint32_t node);
/** A variable for a node, over this buffer.  *Owner*: the innermost scope. */
TdVar *td__replay_var (const TdSchedule *s, uint32_t node, TdBuffer *buffer,
                       const TdSite *site);
/** A copy of a value as it is now; NULL after td__fail. */
TdVar *td__replay_snapshot (const TdReplay *p, uint32_t node, const TdSite *site);
/** Allocate the gradients for outside that the step makes. */
TdStatus td__replay_open (TdReplay *p, TdReady *r);
/** Propagate a gradient to a variable outside. */
TdStatus td__replay_propagate (TdReplay *p, const TdReady *r);

/* observe.c */
/** Run the list and report an event for every operation. */
TdStatus td__replay_observed (TdReplay *p);
/** Begin a call: under an observer, make the nodes that its events refer to. */
void td__observe_forward (TdReplay *p, TdVar *const *in);
void td__observe_backward (TdReplay *p);
/** Use the node that events referred to for the variable of a result. */
void td__observe_output (TdInstance *i, uint32_t node, TdNode *n);

/* overwritten.c */
/** A call begins that somebody looks at: none of its values is there. */
void td__overwritten_begin (TdInstance *i);
/** A step has been done; runs: it has computed its results. */
void td__overwritten_note (TdInstance *i, const TdStep *step, bool runs);
/** Say whether an array is a part of the arena that shows its value no longer, or not yet. */
bool td__overwritten (const TdBuffer *b);

/* inside.c */
/** The event of a group begins: from here on a debugger can look inside. */
void td__inside_begin (const TdReplay *p, const TdReady *r);
/** The group runs now. */
void td__inside_runs (void);
void td__inside_end (void);
