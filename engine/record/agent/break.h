/* Breakpoints: conditions on events, of programs of any kind.  The language is at the top of
 * break.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TdBreak TdBreak;

/** An event of a program, as far as control asks for it. */
typedef struct
{
  const char *op;
  const char *path; /**< of its layer; "": it is in none */
  const char *file; /**< NULL: not known */
  int line;
  uint32_t phase; /**< TdTapePhase */
} TdControlPlace;

/** When a condition is asked.  At an event all are; else those with a word for it. */
typedef enum
{
  TD_BREAK_AT_EVENT,
  TD_BREAK_AT_END,   /**< of an iteration: its events are over, what it made is given back */
  TD_BREAK_AT_GUARD, /**< one of a static function did not hold */
  TD_BREAK_AT_CUT    /**< the program cuts a variable from what made it */
} TdBreakWhen;

/** What a condition is asked about. */
typedef struct
{
  TdBreakWhen when;
  const TdControlPlace *place; /**< of the event; NULL: there is none */
  bool failed;                 /**< after an error */
  int64_t iteration;
  int rank; /**< of the program, 0 where it is alone */
  uint64_t live_bytes;
  uint64_t pool_bytes;      /**< that the pool has of its device */
  uint64_t allocated_bytes; /**< by the event; after it only */
  bool cuts;                /**< the event cuts an edge: it runs without backprop */
  bool changed;             /**< the iteration's graph is not that of the one before */
  bool held;                /**< the one before has left something that is still there */
  bool grows_known;         /**< the iteration before had an end, too */
  int64_t grown_bytes;      /**< live bytes since that end */
  uint64_t n_nan, n_inf;    /**< of the outputs; after an event only */
  double norm;              /**< largest Euclidean norm of an output */
  bool after;               /**< it is after the event */
  bool measured;            /**< and its outputs were looked at */
} TdBreakMoment;

/** Parse `error`, `exact error`, `nan`, `inf`, `op == relu && iteration > 3`, `norm(grad) > 10`
 * ... *Errors*: NULL, with one line in `error`. */
TdBreak *td__break_parse (const char *text, char *error, size_t size);
void td__break_free (TdBreak *b);
bool td__break_holds (const TdBreak *b, const TdBreakMoment *moment);
/** Whether it could hold, if values are what they may be. */
bool td__break_may_hold (const TdBreak *b, const TdBreakMoment *moment);
/** Whether it needs the values of every output. */
bool td__break_needs_values (const TdBreak *b);
/** Whether it is asked after the event only: for values, or for what the event allocated. */
bool td__break_comes_after (const TdBreak *b);
/** Whether it has a word for what is asked at that time. */
bool td__break_asked_at (const TdBreak *b, TdBreakWhen when);
/** Whether it compares the graphs of iterations. */
bool td__break_compares_graphs (const TdBreak *b);
/** Whether it asks what has outlived an iteration. */
bool td__break_asks_for_held (const TdBreak *b);
/** The first of its words that only a program of the engine can answer; NULL: there is none. */
const char *td__break_of_engine (const TdBreak *b);
/** Can it hold on one rank and not on another that runs the same: by values, bytes or rank? */
bool td__break_tells_ranks_apart (const TdBreak *b);
/** Is there a rank of these n on which it could hold, if all else were so? */
bool td__break_has_rank (const TdBreak *b, int n_ranks);
/** Does it ask whether a call failed, and so that the program is to stop right there? */
bool td__break_on_error (const TdBreak *b);
bool td__break_exactly (const TdBreak *b);
/** Is an event to be looked at for it?  Not where it asks for errors, guards and ends of
 * iterations alone. */
bool td__break_looks_at_events (const TdBreak *b);
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
