/* The noun that goes with a number. SPDX-License-Identifier: MIT */
#include "plural.h"

const char *
td_plural (uint64_t n, const char *one, const char *many)
{
  return n == 1 ? one : many;
}
