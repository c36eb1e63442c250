/* Numbers on the command line: see number.h.
 *
 * SPDX-License-Identifier: MIT */
#include "number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
td_parse_number (const char *text, unsigned long n, uint64_t *value)
{
  errno = 0;
  *value = strtoull (text, NULL, 10);
  return n > 0 && strspn (text, "0123456789") == n && errno == 0;
}
