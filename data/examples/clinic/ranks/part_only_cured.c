/* The cure of part_only.c: both optimizers update by the mean of all ranks' gradients.
 *
 * SPDX-License-Identifier: MIT */
#define CURED
#include "part_only.c"
