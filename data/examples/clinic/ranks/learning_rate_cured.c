/* The cure of learning_rate.c: all ranks lower it.
 *
 * SPDX-License-Identifier: MIT */
#define CURED
#include "learning_rate.c"
