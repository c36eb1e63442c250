/* The build of a shape while it is going on: what the files share that make one.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "assembler-private.h"

#include <string.h>

/* A name or a flag that a variable got after it was made. */
typedef struct
{
  uint32_t var, nth; /* which of all changes */
  uint32_t name;
  uint8_t flags; /* to be set */
  bool named;    /* else it keeps its name */
} TdBuildChange;

/* The build in progress. */
struct TdBuild
{
  TdAssembler *a;
  TdShape *shape;
  TdIdMap var_of; /* engine id -> variable */
  TdIdMap counts; /* how often a place was met */
  TdList stack;   /* uint32_t: open spans */
  bool failed;
  /* of a very large iteration: what is asked for at random is not packed */
  TdList keys;             /* uint64_t, of each event */
  TdList twins;            /* uint8_t, of each event: which backward events it has */
  TdList changes;          /* TdBuildChange */
  TdIdMap type_at;         /* by hash: into the shape's type_words */
  bool scattered;          /* the shape's `own` does not say it all */
  uint32_t n_grads_so_far; /* whose update has come */
};

/* The packed rows of one of a shape's arrays; NULL: it is not packed. */
#define ROWS(shape, array) ((shape)->packed != NULL ? (shape)->packed->array : NULL)

static inline uint32_t
td__build_count (const TdList *plain, const TdTapeRows *packed)
{
  return packed != NULL ? td_tape_rows_count (packed) : plain->n;
}

/* As many are in one of a shape's arrays. */
#define COUNT(shape, array) td__build_count (&(shape)->array, ROWS (shape, array))

static inline uint32_t
td__build_n_events (const TdBuild *b)
{
  return COUNT (b->shape, events);
}

/** Make what the shape is on the tape, as far as it has come. */
void td__build_fill (TdBuild *b);
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

/** Free of it what is not variables, which are asked for later. */
void td__packed_free_events (TdTapePacked *p);

/** Make `at` of the shape. */
void td__shape_index (TdShape *s);
