/* The cure of killed.c: it lives.
 *
 * SPDX-License-Identifier: MIT */
#define CURED
#include "killed.c"
