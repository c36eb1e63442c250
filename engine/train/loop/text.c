/* Text that grows, and numbers as Python writes them.
 *
 * SPDX-License-Identifier: MIT */
#include "text.h"

#include "json.h"
#include "../links/object.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
td__text_add (TdText *t, const char *format, ...)
{
  va_list args;
  int n;

  va_start (args, format);
  n = vsnprintf (NULL, 0, format, args);
  va_end (args);
  if (n < 0)
    return;
  if (t->n + (size_t)n + 1 > t->room)
    {
      t->room = 2 * (t->n + (size_t)n + 1);
      t->text = td__xrealloc (t->text, t->room);
    }
  va_start (args, format);
  vsnprintf (t->text + t->n, (size_t)n + 1, format, args);
  va_end (args);
  t->n += (size_t)n;
}

static void
put_bytes (void *to, const char *text, size_t n)
{
  td__text_add (to, "%.*s", (int)n, text);
}

void
td__text_add_json (TdText *t, const char *text)
{
  td__json_put_string (put_bytes, t, text, strlen (text));
}

void
td__text_add_xml (TdText *t, const char *text)
{
  for (; *text != '\0'; text++)
    if (strchr ("<>&\"'", *text) != NULL)
      td__text_add (t, "&#%d;", *text);
    else if ((unsigned char)*text >= 0x20)
      td__text_add (t, "%c", *text);
}

void
td__text_add_number (TdText *t, double value, bool is_whole)
{
  char digits[40];

  if (isnan (value))
    td__text_add (t, "NaN");
  else if (isinf (value))
    td__text_add (t, "%sInfinity", value < 0 ? "-" : "");
  else if (is_whole)
    td__text_add (t, "%lld", (long long)value);
  else
    {
      int precision = 0, exponent;

      do
        snprintf (digits, sizeof digits, "%.*e", precision, value);
      while (strtod (digits, NULL) != value && ++precision < 17);
      exponent = (int)strtol (strchr (digits, 'e') + 1, NULL, 10);
      if (exponent < -4 || exponent >= 16)
        td__text_add (t, "%s", digits);
      else
        td__text_add (t, "%.*f", precision > exponent ? precision - exponent : 1, value);
    }
}
