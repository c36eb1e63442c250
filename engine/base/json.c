/* Text as JSON has it: see json.h.  SPDX-License-Identifier: MIT */
#include "json.h"

#include "utf8.h"

#include <stdio.h>
#include <string.h>

enum
{
  MAX_ESCAPE = 7 /* \u0000 and its end */
};

/* What stands for a character of `length` bytes, 0: of none; NULL: it stands for itself. */
static const char *
escaped (const char *at, size_t length, char escape[MAX_ESCAPE])
{
  const unsigned char *s = (const unsigned char *)at;

  if (length == 0)
    return "\xef\xbf\xbd";
  if (*at == '"' || *at == '\\')
    snprintf (escape, MAX_ESCAPE, "\\%c", *at);
  else if (*at == '\n' || *at == '\t')
    snprintf (escape, MAX_ESCAPE, "\\%c", *at == '\n' ? 'n' : 't');
  else if (td__utf8_is_control (at, length))
    snprintf (escape, MAX_ESCAPE, "\\u%04x", s[length - 1]); /* in two bytes: 0xc2 and itself */
  else
    return NULL;
  return escape;
}

void
td__json_put_string (TdJsonPut put, void *to, const char *text, size_t n)
{
  size_t from = 0, at = 0;

  put (to, "\"", 1);
  while (at < n)
    {
      char escape[MAX_ESCAPE];
      const size_t length = td__utf8_length (text + at, n - at);
      const char *instead = escaped (text + at, length, escape);

      if (instead != NULL)
        {
          put (to, text + from, at - from);
          put (to, instead, strlen (instead));
          from = at + (length > 0 ? length : 1);
        }
      at += length > 0 ? length : 1;
    }
  put (to, text + from, at - from);
  put (to, "\"", 1);
}

const char *
td__json_quote (const char *text, char *out, size_t size)
{
  size_t n = strlen (text), used = 1;

  out[0] = '"';
  for (size_t at = 0; at < n;)
    {
      char escape[MAX_ESCAPE];
      const size_t length = td__utf8_length (text + at, n - at);
      const char *instead = escaped (text + at, length, escape), *put = text + at;
      const size_t n_put = instead != NULL ? strlen (instead) : length;

      if (used + n_put + 2 > size)
        break;
      memcpy (out + used, instead != NULL ? instead : put, n_put);
      used += n_put;
      at += length > 0 ? length : 1;
    }
  out[used++] = '"';
  out[used] = '\0';
  return out;
}
