/* The text of casts to whole numbers, for C programs: see products.c.
 *
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* A number without its fraction, 0 for NaN, and the nearest limit for what is beyond them. */
static int32_t
i32_of (double x)
{
  return x != x               ? 0
         : x <= -2147483648.0 ? INT32_MIN
         : x >= 2147483647.0  ? INT32_MAX
                              : (int32_t)x;
}

/* The same of 64 bits. */
static int64_t
i64_of (double x)
{
  return x != x                        ? 0
         : x <= -9223372036854775808.0 ? INT64_MIN
         : x >= 9223372036854775807.0  ? INT64_MAX
                                       : (int64_t)x;
}
