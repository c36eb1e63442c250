/* What refers to what, of all that outlived its iteration: prose and record.  Included by
 * td-tape.h.  SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* The sections OBJECTS and REFERENCES of an iteration are the graph behind the section HELD, at
 * the same moment: handles, operations that ran with their graph kept, and arrays.
 *
 * A handle refers to its array, to the operation that made it, and to its gradient.  An
 * operation refers to the operations that made its inputs, and to the arrays that it saved for
 * backward.  Arrays are those that HELD counts: no parameters of the first iteration, nothing
 * from before it; handles that keep none of all that are left out.  Something is freed when
 * nothing refers to it any more, and a handle that is a root only when its holder gives it up:
 * so what a handle alone keeps, what several keep together, and the way of references from one
 * to the other can all be seen from here.
 *
 * The references of object i are references[objects[i].first_reference] and on, up to those of
 * the next object (the last: up to the end); each is the index of an object.  Roots come
 * first; then every object comes in order of its distance from a root.
 *
 * At most TD_TAPE_MAX_OBJECTS are written; an object of which a reference is left out for that
 * reason has the flag CUT.  Iterations that have HELD have these sections only now and then:
 * when there is little to say, when what there is has grown by a third, or when enough has
 * happened since. */

#define TD_TAPE_MAX_OBJECTS 65536

typedef enum
{
  TD_TAPE_OBJECT_HANDLE,
  TD_TAPE_OBJECT_OPERATION,
  TD_TAPE_OBJECT_ARRAY,
  TD_TAPE_N_OBJECTS
} TdTapeObjectKind;

/** Flags of an object. */
enum
{
  TD_TAPE_OBJECT_ROOT = 1 << 0, /* of a handle: held by the program, a link, a scope ... */
  TD_TAPE_OBJECT_CUT = 1 << 1,  /* it refers to more than what is listed */
  TD_TAPE_OBJECT_ELSEWHERE
  = 1 << 2 /* of an array: something that is not listed has it as well */
};

/** OBJECTS: one object. */
typedef struct
{
  uint64_t id;          /* of a variable: the handle's, an operation's output, the array's */
  uint64_t iteration;   /* that made it; TD_TAPE_NO_ID: made before the first */
  uint64_t bytes;       /* of an array */
  uint32_t site, opdef; /* that made it; 0: unknown, no operation */
  uint32_t holder_site; /* of a handle: where it is held (td_retain); 0: unknown */
  uint32_t name;        /* string: of a handle */
  uint32_t first_reference; /* among the references */
  uint8_t kind;             /* TdTapeObjectKind */
  uint8_t holder;           /* of a handle: TdTapeHolder */
  uint8_t category;         /* of an array: TdTapeCategory */
  uint8_t flags;
} TdTapeObject;
static_assert (sizeof (TdTapeObject) == 48, "TdTapeObject changed size");
