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
};

/** pause: the iteration before whose first event it stops, as text, or NULL. */
TdAgent *td__agent_new (struct TdRecorder *recorder, int fd, const char *breaks,
                        const char *pause);
static inline bool
td__agent_attention (const TdAgent *a)
{
  return a->control.alert
         || atomic_load_explicit (&a->control.page->attention, memory_order_relaxed) != 0;
}
