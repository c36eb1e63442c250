/* A shape while it is being made: what assemble-shape.c, assemble-packed.c and assemble-vars.c
 * share.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "assembler-private.h"

/** A name or flags that a variable got after it was made. */
typedef struct
{
  uint32_t var;
  uint32_t nth; /* in the order in which they came */
  uint32_t name;
  uint8_t flags; /* to be set */
  bool named;    /* else it keeps its name */
} TdBuildChange;

struct TdBuild
{
  TdAssembler *a;
  TdShape *shape;
  TdIdMap var_of; /* engine id -> variable */
  TdIdMap counts; /* how often a key was met, before it got its number */
  TdList stack;   /* uint32_t: open spans */
  bool failed;    /* there was no memory: what is there is not whole */

  /* Of a very large iteration: what is asked for in any order is not packed. */
  TdList keys;             /* uint64_t, of each event */
  TdList twins;            /* uint8_t, of each event: which backward events it has */
  TdList changes;          /* TdBuildChange */
  TdIdMap type_at;         /* by hash: into the shape's type_words */
  bool scattered;          /* `own` of the shape does not say where all variables are */
  uint32_t n_grads_so_far; /* gradients whose update has come */
};

/** The packed rows of one of a shape's arrays; NULL: it is not packed. */
#define ROWS(shape, array) ((shape)->packed != NULL ? (shape)->packed->array : NULL)

static inline uint32_t
td__build_count (const TdList *plain, const TdTapeRows *packed)
{
  return packed != NULL ? td_tape_rows_count (packed) : plain->n;
}

/** How many rows one of a shape's arrays has. */
#define COUNT(shape, array) td__build_count (&(shape)->array, ROWS (shape, array))

static inline uint32_t
td__build_n_events (const TdBuild *b)
{
  return COUNT (b->shape, events);
}

/** Fill in `it` of the shape, what the tape has of it, as far as the build has come. */
void td__build_fill (TdBuild *b);
/** Free all but the shape. */
void td__build_clear (TdBuild *b);

/** Note the type of a variable that is packed.  Returns false when there is no memory. */
bool td__build_note_type (TdBuild *b, const TdTapeVar *v, const int64_t *dims);
/** Change a variable that is packed, before the next look at it. */
void td__build_change (TdBuild *b, const TdBuildChange *change);
/** Make a change at once. */
static inline void
td__build_apply (const TdBuildChange *change, TdTapeVar *v)
{
  v->flags |= change->flags;
  if (change->named)
    v->name = change->name;
}

/** Free all of it but variables, which later iterations ask for. */
void td__packed_free_events (TdTapePacked *p);

/** Fill in `at` of the shape: its variables by id. */
void td__shape_index (TdShape *s);
