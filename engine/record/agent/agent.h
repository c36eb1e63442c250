/* Control of the running model: pause, step, breakpoints, reads of live arrays.
 *
 * The model's own thread does all of it, at operation boundaries only: the supervisor raises a
 * flag in shared memory, the next operation sees it, reads the commands from the control socket
 * and, when stopped, waits there.  See PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>

#include "compute/core/observer.h"

struct TdRecorder;
struct TdNode;

/** In the ring's first page, behind its head: what the supervisor and the model tell each other
 * without a system call. */
#define TD_CONTROL_OFFSET 2048
typedef struct
{
  _Atomic uint32_t attention; /**< supervisor: commands are waiting in the socket */
  _Atomic uint32_t stopped;   /**< model: it stands */
} TdControlPage;

typedef enum
{
  TD_STEP_NONE,      /**< run */
  TD_STEP_OP,        /**< stop before the next event */
  TD_STEP_OVER,      /**< ... outside the layer of this one */
  TD_STEP_OUT,       /**< ... outside the layer around it */
  TD_STEP_ITERATION, /**< ... of the next iteration */
  TD_STEP_BACKWARD,  /**< ... of the backward phase */
  TD_STEP_UPDATE     /**< ... of the update phase */
} TdStepKind;

typedef struct TdBreak TdBreak;
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
  const TdAgentTable *calls;
  struct TdRecorder *recorder;
  TdControlPage *page;
  int fd;
  bool alert; /**< stepping, or breakpoints but those on errors: look at every event */
  TdStepKind step;
  const TdPath *step_path; /**< the layer that a step is relative to */
  int64_t step_iteration;
  TdPhase step_phase;
  TdBreak **breaks;
  int n_breaks, next_break_id;
  bool needs_stats; /**< a breakpoint looks at values */
  bool stop_next;   /**< an error or a value asked to stop before the next event */
  char reason[512];
  const TdEventPlace *fault; /**< of the error it stops for, when that is not the last event */
};

TdAgent *td__agent_new (struct TdRecorder *recorder, int fd, const char *breaks);
static inline bool
td__agent_attention (const TdAgent *a)
{
  return a->alert || atomic_load_explicit (&a->page->attention, memory_order_relaxed) != 0;
}

/* Breakpoints (break.c). */

/** What a condition is asked about. */
typedef struct
{
  const TdEvent *event; /**< NULL at an iteration's begin */
  const TdError *error; /**< NULL but after an error */
  int64_t iteration;
  uint64_t live_bytes;
  uint64_t n_nan, n_inf; /**< of the outputs; after an event only */
  double norm;           /**< largest Euclidean norm of an output */
  bool after;            /**< values are known */
} TdBreakMoment;

/** Parse `error`, `exact error`, `nan`, `inf`, `op == relu && iteration > 3`, `norm(grad) > 10`
 * ... *Errors*: NULL, with one line in `error`. */
TdBreak *td__break_parse (const char *text, char *error, size_t size);
void td__break_free (TdBreak *b);
bool td__break_holds (const TdBreak *b, const TdBreakMoment *moment);
/** Whether it could hold, if values are what they may be. */
bool td__break_may_hold (const TdBreak *b, const TdBreakMoment *moment);
/** Whether it needs the values of every output, or can be asked before the event. */
bool td__break_needs_values (const TdBreak *b);
/** Does it ask whether a call failed, and so that the program is to stop right there? */
bool td__break_on_error (const TdBreak *b);
bool td__break_exactly (const TdBreak *b);
/** Is that all it asks?  Then no event needs to be looked at for it. */
bool td__break_errors_only (const TdBreak *b);
const char *td__break_text (const TdBreak *b);
int td__break_id (const TdBreak *b);
void td__break_set_id (TdBreak *b, int id);
/** One that is not enabled holds nowhere, and costs nothing. */
bool td__break_enabled (const TdBreak *b);
void td__break_enable (TdBreak *b, bool enabled);
/** How often the program has stopped there. */
uint64_t td__break_hits (const TdBreak *b);
void td__break_hit (TdBreak *b);
/** b goes to old's place: its number, and whether it is enabled; it is counted anew. */
void td__break_take_over (TdBreak *b, const TdBreak *old);
