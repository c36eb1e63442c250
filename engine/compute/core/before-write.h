/* Arrays that are about to be written: whoever still needs the numbers takes them before.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Asked before an array of a variable is written; NULL: nobody waits for one.
 * (static/waiting.c) */
extern void (*td__before_write) (const TdBuffer *b);

static inline void
td__will_be_written (const TdBuffer *b)
{
  if (TD_UNLIKELY (td__before_write != NULL))
    td__before_write (b);
}
