/* What the tape says of stacks: prose and record.  Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* A recorder that knows more of a stack than its innermost place keeps it in three sections of
 * an iteration.  STACK_FRAMES is a tree: each element is a call, with the place of the call in
 * `site` and in `outer` the number of the call around it, from 1 on in the order of the
 * section; 0: there is none around it.  `outer` is lower than the element's own number, so that
 * going outwards ends.  A stack is the number of its innermost call: equal stacks are there
 * once, and those that begin alike share what they have in common.
 *
 * EVENT_STACKS has a stack for each event, EXTERNAL_STACKS one for each of EXTERNALS: of what
 * was there before the iteration the allocation is no event of it.  0: it is not known.  Each
 * has as many elements as there are events or externals, or none at all.
 *
 * Of these only memory snapshots of other programs have stacks so far. */

/** STACK_FRAMES: one call. */
typedef struct
{
  uint32_t site;
  uint32_t outer; /* its number; 0: none */
} TdTapeStackFrame;
static_assert (sizeof (TdTapeStackFrame) == 8, "TdTapeStackFrame changed size");
