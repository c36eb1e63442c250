/* Numbers on the command line.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Read the first `n` characters as a number: digits and nothing else, and none after them. */
bool td_parse_number (const char *text, unsigned long n, uint64_t *value);
