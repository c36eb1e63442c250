/* Text into JSON strings: see json.h.
 *
 * SPDX-License-Identifier: MIT */
#include "json.h"

#include <stdio.h>
#include <string.h>

/* The length of the UTF-8 character at s, 0 if there is none. */
static size_t
utf8_length (const unsigned char *s)
{
  size_t n = s[0] < 0x80   ? 1
             : s[0] < 0xC2 ? 0
             : s[0] < 0xE0 ? 2
             : s[0] < 0xF0 ? 3
             : s[0] < 0xF5 ? 4
                           : 0;

  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xC0) != 0x80)
      return 0;
  if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)
      || (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
    return 0;
  return n;
}

const char *
td__json_quote (const char *text, char *out, size_t size)
{
  const unsigned char *s = (const unsigned char *)text;
  size_t used = 0;

  out[used++] = '"';
  while (*s != '\0' && used + 9 < size)
    {
      size_t n = utf8_length (s);

      if (*s == '"' || *s == '\\')
        used += (size_t)sprintf (out + used, "\\%c", *s++);
      else if (*s < ' ' || *s == 0x7F)
        used += (size_t)sprintf (out + used, "\\u%04x", *s++);
      else if (n == 0)
        {
          used += (size_t)sprintf (out + used, "\\ufffd");
          s++;
        }
      else
        {
          memcpy (out + used, s, n);
          used += n;
          s += n;
        }
    }
  out[used++] = '"';
  out[used] = '\0';
  return out;
}
