/* The cure of nan.c: the logarithm of a softmax in one operation.
 *
 * SPDX-License-Identifier: MIT */
#define CURED
#include "nan.c"
