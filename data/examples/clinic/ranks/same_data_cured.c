/* The cure of same_data.c: each rank reads its share.
 *
 * SPDX-License-Identifier: MIT */
#define CURED
#include "same_data.c"
