/* The program of producer-first.c, as its test calls it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/** Write a tape as a program of version 0.1.0 does.  0, or 1 with a line in `error`. */
int producer_first (const char *path, char *error, size_t n);
