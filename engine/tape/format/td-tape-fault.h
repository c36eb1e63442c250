/* What the tape says of errors that were found after their operation had run: prose and record.
 * Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

/* A device that computes by itself checks indices (labels, words, places of rows) as it comes
 * to them.  A bad one is taken for none, and the program gets the error when it reads or waits,
 * or at the end of an iteration: others have run by then.  A FAULT frame, in DEFS, refers to
 * the event whose index it was: `event` of `iteration`, which may be one that was stored long
 * ago.  The program got the error in iteration `found_iteration`, when `found_event` of that
 * one's events had run.  A NOTICE that names the same event goes before it, with the error's
 * text.
 *
 * In iterations that readers return such an event has the flags TD_TAPE_EVENT_FAILED and
 * TD_TAPE_EVENT_FAULT: it has outputs all the same, and others have used them.  The iteration
 * and its summary have TD_TAPE_ITERATION_ERROR.  An event that is not there, or was not
 * recorded (TD_TAPE_NONE), makes no difference to its iteration. */

typedef struct
{
  uint64_t iteration, found_iteration;
  uint64_t time_ns;              /* when the program got the error */
  int64_t value, limit, element; /* `value`, not in 0 .. limit - 1, at that element */
  uint32_t event;                /* TD_TAPE_NONE: not known */
  uint32_t found_event;
  uint32_t operand;        /* string: the input's name, "t" */
  uint32_t text, op, site; /* as in NOTICE */
} TdTapeFault;
static_assert (sizeof (TdTapeFault) == 72, "TdTapeFault changed size");
