/* The noun that goes with a number.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/** Return `one` with 1, `many` with any other number: "1 array", "0 arrays". */
const char *td_plural (uint64_t n, const char *one, const char *many);
