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
  /** `fault`: the error is of an event that was over; NULL: of the last. */
  void (*error) (TdAgent *a, const TdError *error, const TdAsyncFault *fault);
  void (*free) (TdAgent *a);
} TdAgentTable;

struct TdAgent
{
  TdControl control;
  const TdAgentTable *calls;
  struct TdRecorder *recorder;
  char reason[512];
  const TdEventPlace *fault; /**< of the error it stops for, when that is not the last event */

  /* of a rank, by memory that all ranks of the run share */
  TdAgentRanks *ranks;          /**< NULL: it is none (together.h) */
  const _Atomic uint64_t *news; /**< how much has come for all; NULL: it is none */
  uint64_t news_seen;
  _Atomic uint64_t *begun; /**< where the others see how far this one is */
  uint64_t n_calls;        /**< for all ranks, that it has come to */
  uint64_t n_events;       /**< at the last of these, since the program began */
};

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
