/*
 * Lines of a table of names, and the sizes by which layers are known: see td-port-names.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-names.h"

static gint
by_size (gconstpointer a, gconstpointer b)
{
  const gint64 x = *(const gint64 *)a, y = *(const gint64 *)b;

  return x < y ? -1 : x > y;
}

guint64
td__names_token (gint64 *dims, guint n)
{
  guint64 hash = 14695981039346656037u;

  qsort (dims, n, sizeof *dims, by_size);
  for (guint d = 0; d < n; d++)
    hash = (hash ^ (guint64)dims[d]) * 1099511628211u;
  return hash;
}

guint
td__names_words (char *line, const char **words, guint most)
{
  guint n = 0;

  line[strcspn (line, "#")] = '\0';
  for (char *at = line;;)
    {
      at += strspn (at, " \t\r\v\f");
      if (!*at)
        return n;
      if (n < most)
        words[n] = at;
      n++;
      at += strcspn (at, " \t\r\v\f");
      if (*at)
        *at++ = '\0';
    }
}
