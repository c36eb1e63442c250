/* What a keyframe adds to an iteration, so that it can be run again without its program: prose
 * and record.  Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* An iteration with the flag KEYFRAME says all that its operations were given.  Arrays that
 * came from outside (weights, the optimizer's state, a batch, labels, a gradient to begin with)
 * and those that the program wrote to on the way are tensors with the flag BEFORE: so they were
 * when the event after TdTapeTensorRef.event read them first.  Random numbers need nothing
 * more: where in its stream an operation draws is one of its attributes.
 *
 * The section CALLS has one element for each event that has attributes or adds to its output,
 * in the order of events.  CALL_WORDS has the attributes as the engine of this version keeps
 * them in memory, byte for byte, which the text of an event's attributes does not promise. */

/** Flags of TdTapeTensorRef. */
enum
{
  TD_TAPE_TENSOR_BEFORE = 1 << 0 /* as it was before the event that follows */
};

/** CALLS: of one event. */
typedef struct
{
  uint32_t event;
  uint32_t into;       /* var that it adds to (TD_TAPE_EVENT_ACCUMULATED); TD_TAPE_NONE: none,
                          or none of this iteration */
  uint32_t first_word; /* of its attributes, in CALL_WORDS */
  uint32_t n_bytes;
} TdTapeCall;
static_assert (sizeof (TdTapeCall) == 16, "TdTapeCall changed size");
