/* Loops, which C does not show: turns of equal code among the things that one call does, and
 * turns that differ a little from them, as the first one often does.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "graph/td-layers-implied.h"

/** One thing that a call does: an operation, or another call. */
typedef struct
{
  gint32 layer; /* -1: an operation */
  gint32 event; /* the operation, or the first one inside */
  guint32 n_ops;
  guint64 token; /* equal for equal code: site and operation of all that is in it */
} TdLoopItem;

/** One turn of a loop. */
typedef struct
{
  guint first, n; /* of the items */
  gboolean differs;
} TdLoopTurn;

typedef struct
{
  guint first, n;   /* of the items */
  guint first_turn; /* of the turns */
  guint n_turns, n_differ;
  guint equal; /* one of the turns that do not differ */
} TdLoop;

typedef struct
{
  GArray *loops; /* TdLoop, in order; none overlaps another */
  GArray *turns; /* TdLoopTurn */
} TdLoops;

/** Find the loops among `n` items of one call. More than half of a loop's turns are equal.
 * Owner: the caller, td__loops_clear(). */
void td__loops_find (TdLoops *self, TdIteration *iteration, const TdLayer *layers,
                     const TdLoopItem *items, guint n);
void td__loops_clear (TdLoops *self);

static inline const TdLoopTurn *
td__loop_turn (const TdLoops *self, const TdLoop *loop, guint turn)
{
  return &g_array_index (self->turns, TdLoopTurn, loop->first_turn + turn);
}
