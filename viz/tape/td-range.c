/*
 * Ranges of iterations.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tape/td-range.h"

#include <string.h>

gboolean
td_range_is_all (TdRange range)
{
  return range.first >= range.end;
}

gboolean
td_range_has (TdRange range, gint64 iteration)
{
  return td_range_is_all (range) || (iteration >= range.first && iteration < range.end);
}

gboolean
td_range_equal (TdRange a, TdRange b)
{
  return (td_range_is_all (a) && td_range_is_all (b)) || (a.first == b.first && a.end == b.end);
}

/* The count may begin anew in the middle of a tape: what is in between stays. */
void
td_range_find (TdRange range, const TdTapeSummaries *summaries, guint *from, guint *to)
{
  *from = 0;
  *to = summaries->n;
  while (*from < *to && !td_range_has (range, (gint64)summaries->rows[*from].number))
    ++*from;
  while (*to > *from && !td_range_has (range, (gint64)summaries->rows[*to - 1].number))
    --*to;
}

static gboolean
read_number (const char *text, gsize n, gint64 *number)
{
  g_autofree char *digits = g_strndup (text, n);

  return g_ascii_isdigit (*digits)
         && g_ascii_string_to_signed (digits, 10, 0, G_MAXINT64 - 1, number, NULL);
}

gboolean
td_range_parse (const char *text, TdRange *range)
{
  const char *dots = strstr (text, "..");
  gint64 first, last;

  *range = (TdRange){ 0, 0 };
  if (*text == '\0')
    return TRUE;
  if (!dots || !read_number (text, (gsize)(dots - text), &first)
      || !read_number (dots + 2, strlen (dots + 2), &last) || last < first)
    return FALSE;
  *range = (TdRange){ first, last + 1 };
  return TRUE;
}

gboolean
td_range_parse_pair (const char *text, TdRange *range)
{
  gsize n = strcspn (text, ":");
  const char *after = text[n] ? text + n + 1 : "";
  gint64 first = 0, last = G_MAXINT64 - 1;

  *range = (TdRange){ 0, 0 };
  if (*text == '\0' || (n > 0 && !read_number (text, n, &first))
      || (*after && !read_number (after, strlen (after), &last)))
    return FALSE;
  if (text[n] == '\0')
    last = first;
  if (last < first)
    return FALSE;
  *range = (TdRange){ first, last + 1 };
  return TRUE;
}

char *
td_range_describe (TdRange range)
{
  if (td_range_is_all (range))
    return g_strdup ("all iterations");
  if (range.first + 1 == range.end)
    return g_strdup_printf ("iteration %" G_GINT64_FORMAT, range.first);
  return g_strdup_printf ("iterations %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, range.first,
                          range.end - 1);
}
