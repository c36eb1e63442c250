/* Who holds memory, on the tape from format 1.2 on: prose and record.  Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* The section HELD of an iteration says what is still there at its end, after its own scope has
 * closed, and was made in it or in an earlier one: arrays of variables and those that
 * operations keep for backward; not parameters and optimizers' state of the first iteration,
 * nothing from before it.  Arrays are put together to groups: made at the same place by the
 * same operation, in the same category, and kept by handles that were made and are held at the
 * same places.  An array that several handles keep alive is on the account of one of them, a
 * handle of the program where there is one.
 *
 * The largest groups come first, at most TD_TAPE_MAX_HELD.  Last, flagged OTHERS, stands the
 * sum of all other groups, also where there are none.  An iteration with the section has the
 * flag HELD, also in its summary.  One without it holds what the one before it held, or was not
 * looked at, because a look costs about what it finds. */

#define TD_TAPE_MAX_HELD 64
#define TD_TAPE_MAX_HELD_ITERATIONS 64 /* of a group; as many or more */

/** Flags of a group. */
enum
{
  TD_TAPE_HELD_OTHERS = 1 << 0,  /* all groups that are not listed one by one */
  TD_TAPE_HELD_IN_GRAPH = 1 << 1 /* kept by the graph behind the handle, not by itself */
};

/** HELD: one group. */
typedef struct
{
  uint64_t bytes;                 /* of all arrays */
  uint64_t oldest;                /* the iteration that made the oldest */
  uint32_t n_objects;             /* arrays */
  uint32_t n_iterations;          /* that made them, up to TD_TAPE_MAX_HELD_ITERATIONS */
  uint32_t site, opdef;           /* that made them; 0: unknown, no operation */
  uint32_t held_site, held_opdef; /* that made the handles */
  uint32_t holder_site;           /* where they are held (td_retain); 0: unknown */
  uint32_t name;                  /* string: of the handles; 0: none, or not all the same */
  uint8_t category, holder, flags, reserved;
  uint32_t reserved2;
} TdTapeHeld;
static_assert (sizeof (TdTapeHeld) == 56, "TdTapeHeld changed size");
