/* One run of a schedule's list, as replay.c and observe.c share it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "entry.h"

typedef struct TdPlay
{
  TdInstance *i;
  TdReadyList *list;
  TdBackward *b; /**< NULL in forward */
  TdVar **given; /**< by value: gradients that were made, of backward */
  bool *added;   /**< by value: a kernel added it to what was there */
  TdMiss *miss;
  struct
  {
    const TdStep *step;
    TdVar *v;
  } * effects; /**< to be had when all is well */
  uint32_t n_effects;
  bool observed;               /**< events were told, and numbered, one by one */
  struct TdCheck *check;       /**< of a verified call, or NULL */
  struct TdTaken *taken;       /**< gradients go there instead of to the externals; or NULL */
  uint32_t waiting, n_waiting; /**< capture.c: the first ready step that is not launched yet,
                                  and how many are to be */
} TdPlay;

/** Gradients that a backward made and did not give yet, in order. */
typedef struct TdTaken
{
  struct
  {
    uint32_t external;
    bool ours; /**< made by the schedule */
    TdVar *g;
  } * items;
  uint32_t n;
} TdTaken;

void td__taken_add (TdTaken *taken, uint32_t external, TdVar *g, bool ours);

/** Run a traced backward; taken may be NULL. */
TdStatus td__replay_backward (TdInstance *i, TdBackward *b, uint32_t which, TdTaken *taken);

/** Run one step; failed after td__fail. */
TdStatus td__play_one (TdPlay *p, TdReady *r);
/** Run a group; its gradients have memory. */
TdStatus td__play_group (const TdPlay *p, const TdReady *r);

/* give.c */
/** A node of the graph for a node of the schedule, without a function.  *Owner*: the caller. */
TdNode *td__play_node (const TdSchedule *s, uint32_t node);
/** A variable for a node, over this buffer.  *Owner*: the innermost scope. */
TdVar *td__play_var (const TdSchedule *s, uint32_t node, TdBuffer *buffer, const TdSite *site);
/** A copy of a value as it is now; NULL after td__fail. */
TdVar *td__play_snapshot (const TdPlay *p, uint32_t node, const TdSite *site);
/** Give the gradients that it makes memory. */
TdStatus td__play_open (TdPlay *p, TdReady *r);
/** Hand a gradient to an external. */
TdStatus td__play_give (TdPlay *p, const TdReady *r);

/* observe.c */
/** Run the list with an event for every operation. */
TdStatus td__play_observed (TdPlay *p);
/** A call begins: its variables get their places in the graph, if anybody looks. */
void td__observe_forward (TdPlay *p, TdVar *const *in);
void td__observe_backward (TdPlay *p);
/** The variable of a result is the one that the events named. */
void td__observe_output (TdInstance *i, uint32_t node, TdNode *n);

/* inside.c */
/** The event of a group is told from here on: what is in it can be looked at. */
void td__inside_begin (const TdPlay *p, const TdReady *r);
/** It runs now. */
void td__inside_runs (void);
void td__inside_end (void);
