/* What rows of parameters are called: as short as tells them apart.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-gradient-private.h"

#include <string.h>

/* The last parts of a path, as many as asked for. */
static const char *
last_parts (const char *path, guint n)
{
  const char *at = path + strlen (path);

  for (; at > path; at--)
    if (at[-1] == '/' && n-- == 1)
      break;
  return at;
}

GPtrArray *
td__gradient_name_rows (const TdGradientTable *table)
{
  const guint n = td_gradient_table_n_rows (table);
  GPtrArray *names = g_ptr_array_sized_new (n);
  gboolean longer = TRUE;

  for (guint r = 0; r < n; r++)
    g_ptr_array_add (names, (gpointer)last_parts (td_gradient_table_path (table, r), 2));
  for (guint parts = 3; longer; parts++)
    {
      g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
      g_autoptr (GHashTable) twice = g_hash_table_new (g_str_hash, g_str_equal);

      for (guint r = 0; r < n; r++)
        if (!g_hash_table_add (seen, names->pdata[r]))
          g_hash_table_add (twice, names->pdata[r]);
      longer = FALSE;
      for (guint r = 0; r < n; r++)
        {
          const char *path = td_gradient_table_path (table, r);

          if (names->pdata[r] == path || !g_hash_table_contains (twice, names->pdata[r]))
            continue;
          names->pdata[r] = (gpointer)last_parts (path, parts);
          longer = TRUE;
        }
    }
  return names;
}
