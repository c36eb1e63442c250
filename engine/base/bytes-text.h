/* A number of bytes for people.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/** "1.50 MB": decimal, three digits.  *Returns*: `out`. */
const char *td__bytes_text (uint64_t bytes, char out[32]);
