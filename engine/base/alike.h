/* Commands that the ranks of one machine take alike, in the file in which they say where they
 * are (whereabouts.h): who is told to go on, or to stop, writes it there, and each rank takes
 * it at its next event.  Changes, of breakpoints, are taken at once and in their order, so that
 * all ranks have the same; there is room for so many in a run.  Moves, how far the program is
 * to run, are a ring: of what a rank has not come to, the newest counts.
 *
 * A place of the program is a number that ranks which run the same have in common: how many
 * calls for all ranks it has come to, in the upper half, and in the lower twice the number of
 * the event since that it stands before, from 1 on; one less where it stands after the one
 * before.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "whereabouts.h"

/** What a supervisor asks its program about a change that all were told: "alike 7". */
#define TD_ALIKE_ASK "alike "
/** Begins the move of a rank that has stopped for a reason of its own, which follows. */
#define TD_ALIKE_HALT "halt "

enum
{
  TD_ALIKE_TEXT = 272,
  TD_ALIKE_PATH = 240,
  TD_ALIKE_MOVES = 64,
  TD_ALIKE_CHANGES = 512
};

typedef struct
{
  _Atomic uint64_t whole; /* its number, from 1 on, once all of it is there */
  _Atomic uint64_t until; /* where ranks stop that run freely; 0: the first of them will say */
  uint64_t from;          /* where the rank stood that was told; 0: none stood */
  int64_t iteration;      /* of that place, as its layer and phase */
  uint32_t phase;
  int32_t rank; /* that was told */
  char path[TD_ALIKE_PATH], text[TD_ALIKE_TEXT];
} TdAlikeMove;

typedef struct
{
  _Atomic uint64_t whole;
  char text[TD_ALIKE_TEXT];
} TdAlikeChange;

typedef struct
{
  _Atomic uint64_t news; /* one up with each of both, once it is whole */
  _Atomic uint64_t n_moves, n_changes;
  TdAlikeMove moves[TD_ALIKE_MOVES];
  TdAlikeChange changes[TD_ALIKE_CHANGES];
} TdAlike;

/** The part of the file that is theirs; NULL: there is no file. */
TdAlike *td__alike_of (const TdWhere *w);

/** Does the text say how far a program is to run? */
bool td__alike_is_move (const char *text);
/** Tell all ranks to move: from where this one stands, or else the one that stands furthest
 * behind. */
void td__alike_tell (const TdWhere *w, const char *text);

/** Write a move behind the `after` that there are; false: there are more by now. */
bool td__alike_put_move (TdAlike *t, uint64_t after, const TdAlikeMove *move);
/** Find the move of that number, from 1 on.  *Errors*: NULL, it is not whole yet; `lost`: it
 * has been written over. */
TdAlikeMove *td__alike_move (TdAlike *t, uint64_t number, bool *lost);

/** Write a change, and its number.  *Errors*: false, there is no room for more. */
bool td__alike_put_change (TdAlike *t, const char *text, uint64_t *number);
/** Its text; NULL: it is not whole yet, or there is none. */
const char *td__alike_change (TdAlike *t, uint64_t number);

/** Does that rank take commands: it runs here, and has begun? */
bool td__alike_takes_part (const TdWhere *w, int rank);
