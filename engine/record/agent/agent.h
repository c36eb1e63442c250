/* Control of the running model: pause, step, breakpoints, reads of live arrays.
 *
 * The model's own thread does all of it, at operation boundaries only: the supervisor raises a
 * flag in shared memory, the next operation sees it, reads the commands from the control socket
 * and, when stopped, waits there.  See PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/observer.h"
#include "control.h"
#include "graph-watch.h"

struct TdRecorder;
struct TdNode;

typedef struct TdAgent TdAgent;
typedef struct TdAgentRanks TdAgentRanks;

/** What the recorder tells the agent, which it knows by this table alone. */
typedef struct
{
  void (*before) (TdAgent *a, const TdEvent *event);
  void (*after) (TdAgent *a, const TdEvent *event);
  void (*iteration) (TdAgent *a, int64_t number);
  /** An iteration of the program ends; what is on the tape of it is not closed yet. */
  void (*ends) (TdAgent *a, int64_t number, const TdSite *site);
  /** A guard of a static function did not hold. */
  void (*guard) (TdAgent *a, const TdStaticEvent *event);
  /** A list of a static function begins or ends. */
  void (*run) (TdAgent *a, const TdStaticRun *run);
  /** A variable is cut from what made it. */
  void (*cut) (TdAgent *a, const struct TdNode *node, const TdSite *site);
  /** `fault`: the error is of an event that was over; NULL: of the last. */
  void (*error) (TdAgent *a, const TdError *error, const TdAsyncFault *fault);
  void (*free) (TdAgent *a);
} TdAgentTable;

/** Calls of static functions in the iteration, by the operations that ran in them. */
typedef struct
{
  struct
  {
    uint64_t after, last; /* engine ids of operations: those behind `after` */
  } * items;
  size_t n, capacity;
  unsigned depth;
  uint64_t last_node; /* made in one of them */
} TdStaticCalls;

struct TdAgent
{
  TdControl control;
  const TdAgentTable *calls;
  struct TdRecorder *recorder;
  char reason[512];
  const TdEventPlace *fault; /**< of the error it stops for, when that is not the last event */
  TdGraphWatch graphs;
  TdStaticCalls statics;
  uint64_t allocated;   /**< bytes, since the last event began */
  bool cuts;            /**< the last event of forward ran without backprop, and cut an edge */
  int64_t ended;        /**< the iteration whose end was looked at last; -1: none */
  uint64_t live_at_end; /**< bytes, there */

  /* of a rank, by memory that all ranks of the run share */
  TdAgentRanks *ranks;          /**< NULL: it is none (together.h) */
  const _Atomic uint64_t *news; /**< how much has come for all; NULL: it is none */
  uint64_t news_seen;
  _Atomic uint64_t *begun; /**< where the others see how far this one is */
  uint64_t n_calls;        /**< for all ranks, that it has come to */
  uint64_t n_events;       /**< at the last of these, since the program began */
};

/** Stop at a breakpoint that holds, with what has happened as one line. */
void td__agent_stop_at (TdAgent *a, TdBreak *b, const char *op, const TdSite *site,
                        const char *what, bool after);
/** What any condition is asked about now; `place` is filled in from the event, if there is one.
 */
TdBreakMoment td__agent_moment (const TdEvent *e, TdControlPlace *place);

/* At other times than events (agent-moments.c). */

/** Does this event cut an edge, as the first of those that follow each other?  Asked of each.
 */
bool td__agent_cuts (TdAgent *a, const TdEvent *e);
/** Add it to the iteration's graph. */
void td__agent_watch (TdAgent *a, const TdEvent *e);
void td__agent_ends (TdAgent *a, int64_t number, const TdSite *site);
void td__agent_guard (TdAgent *a, const TdStaticEvent *event);
void td__agent_run (TdAgent *a, const TdStaticRun *run);
void td__agent_cut (TdAgent *a, const struct TdNode *node, const TdSite *site);

/** pause: the iteration before whose first event it stops, as text, or NULL. */
TdAgent *td__agent_new (struct TdRecorder *recorder, int fd, const char *breaks,
                        const char *pause);
static inline bool
td__agent_attention (const TdAgent *a)
{
  return a->control.alert
         || atomic_load_explicit (&a->control.page->attention, memory_order_relaxed) != 0
         || (a->news != NULL
             && atomic_load_explicit (a->news, memory_order_relaxed) != a->news_seen);
}

/** Where a rank is, as a number that is the same on all that run the same: n_events is how many
 * it has run. */
static inline uint64_t
td__agent_place_at (const TdAgent *a, uint64_t n_events)
{
  return a->n_calls << 32 | (uint32_t)(2 * (n_events - a->n_events) + 2);
}

/** Let the other ranks see how far this one is. */
static inline void
td__agent_show_place (TdAgent *a, uint64_t n_events)
{
  if (a->begun != NULL)
    atomic_store_explicit (a->begun, td__agent_place_at (a, n_events), memory_order_relaxed);
}

/** An event begins; returns whether the agent is to look at it. */
static inline bool
td__agent_begins (TdAgent *a, uint64_t n_events)
{
  td__agent_show_place (a, n_events);
  return td__agent_attention (a);
}

/** It comes to a call for all ranks: the number-th. */
static inline void
td__agent_calls_all (TdAgent *a, uint64_t number, uint64_t n_events)
{
  a->n_calls = number;
  a->n_events = n_events;
  td__agent_show_place (a, n_events);
}
