/* A number of bytes for people, decimal: "1.50 MB".
 *
 * SPDX-License-Identifier: MIT */
#include "bytes-text.h"

#include <stdio.h>

const char *
td__bytes_text (uint64_t bytes, char out[32])
{
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
  double value = (double)bytes;
  unsigned unit = 0;

  while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units)
    {
      value /= 1000;
      unit++;
    }
  snprintf (out, 32, "%.*f %s",
            unit == 0 || value >= 99.95 ? 0
            : value >= 9.995            ? 1
                                        : 2,
            value, units[unit]);
  return out;
}
