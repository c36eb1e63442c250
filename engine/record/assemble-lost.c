/* An iteration that there is no memory for: it is cut off, and the tape says where.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <inttypes.h>
#include <stdio.h>

void
td__lose_rest (TdAssembler *a)
{
  if (!a->state.in_iteration)
    return;
  a->full = true;
  a->flags |= TD_TAPE_ITERATION_LOST;
}

void
td__tell_lost (TdAssembler *a, uint32_t n_kept)
{
  char text[120];
  TdTapeNotice notice = { .iteration = a->begin.number,
                          .event = TD_TAPE_NONE,
                          .kind = TD_TAPE_NOTICE_RECORDING,
                          .status = TD_TAPE_NOTICE_LOST };

  if (n_kept == 0)
    snprintf (text, sizeof text,
              "no memory for iteration %" PRIu64 ": none of its operations is on the tape",
              a->begin.number);
  else
    snprintf (text, sizeof text,
              "no memory for all of iteration %" PRIu64 ": only operations up to %" PRIu32
              " are on the tape",
              a->begin.number, n_kept - 1);
  notice.text = td_tape_writer_string (a->w, text);
  td_tape_writer_notice (a->w, &notice);
}
