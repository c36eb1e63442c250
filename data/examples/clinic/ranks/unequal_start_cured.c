/* The cure of unequal_start.c: all ranks get rank 0's weights before the first iteration.
 *
 * SPDX-License-Identifier: MIT */
#define CURED
#include "unequal_start.c"
