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

/** What a condition is asked about. */
typedef struct
{
  const TdControlPlace *place; /**< of the event; NULL: there is none */
  bool failed;                 /**< after an error */
  int64_t iteration;
  int rank; /**< of the program, 0 where it is alone */
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
/** Can it hold on one rank and not on another that runs the same: by values, bytes or rank? */
bool td__break_tells_ranks_apart (const TdBreak *b);
/** Is there a rank of these n on which it could hold, if all else were so? */
bool td__break_has_rank (const TdBreak *b, int n_ranks);
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
