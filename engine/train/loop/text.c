/* Text that grows, for the files that extensions write.
 *
 * SPDX-License-Identifier: MIT */
#include "text.h"

#include "../links/object.h"

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

void
td__text_add_xml (TdText *t, const char *text)
{
  for (; *text != '\0'; text++)
    if (strchr ("<>&\"'", *text) != NULL)
      td__text_add (t, "&#%d;", *text);
    else if ((unsigned char)*text >= 0x20)
      td__text_add (t, "%c", *text);
}
