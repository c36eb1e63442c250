/* How tests of the device cuda:0 look at the tape that they made.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape-reader.h"

/** A finished tape, every byte of which is in order.  Errors: the test fails with what is
 * wrong. Owner: the caller. */
TdTapeReader *far_tape_open (const char *path);
/** The pool of that device (0: the host) and kind at an iteration's end; NULL: none. */
const TdTapePool *far_tape_pool (const TdTapeIteration *it, uint32_t device, unsigned kind);
