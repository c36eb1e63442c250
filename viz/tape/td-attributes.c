/*
 * Where one attribute of a text ends and the next one begins.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-attributes.h"

/* Does a name with "=" begin here? */
static gboolean
begins (const char *at)
{
  gsize n = strspn (at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

  return n > 0 && at[n] == '=';
}

char **
td_attributes_split (const char *text)
{
  GPtrArray *parts = g_ptr_array_new ();
  const char *from = text;
  gint depth = 0;

  for (const char *at = text; *from; at++)
    {
      depth += *at != '\0' && strchr ("([{", *at) != NULL;
      depth -= *at != '\0' && strchr (")]}", *at) != NULL;
      if (*at != '\0' && (*at != ' ' || depth > 0 || !begins (at + 1)))
        continue;
      g_ptr_array_add (parts, g_strchomp (g_strndup (from, (gsize)(at - from))));
      from = *at ? at + 1 : at;
    }
  g_ptr_array_add (parts, NULL);
  return (char **)(void *)g_ptr_array_free (parts, FALSE);
}
