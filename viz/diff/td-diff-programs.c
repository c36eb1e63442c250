/*
 * What the two sides depend on besides their operations: versions, and the sources as they were
 * recorded, whose lines are mapped where a file was edited in between.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-align.h"
#include "td-diff-private.h"

const char *
td__base_name (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash ? slash + 1 : path;
}

static void
compare_versions (TdComparison *c)
{
  static const char *const keys[]
      = { "version", "version.engine", "version.blas", "version.compiler", "version.libc" };
  g_autoptr (GPtrArray) found = g_ptr_array_new ();

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const char *a = td_tape_reader_info (c->reader[0], keys[i]),
                 *b = td_tape_reader_info (c->reader[1], keys[i]);

      if (g_str_equal (a, b))
        continue;
      g_ptr_array_add (found, g_strdup (keys[i]));
      g_ptr_array_add (found, g_strdup (a));
      g_ptr_array_add (found, g_strdup (b));
    }
  if (found->len == 0)
    return;
  g_ptr_array_add (found, NULL);
  c->d->versions = (char **)g_ptr_array_steal (found, NULL);
}

/* ---- lines ---- */

static GArray *
hash_lines (const TdTapeSource *source)
{
  GArray *lines = g_array_new (FALSE, FALSE, sizeof (guint64));
  const char *end = source->text + source->bytes;

  for (const char *p = source->text; p < end; p++)
    {
      guint64 h = 0xcbf29ce484222325u;

      for (; p < end && *p != '\n'; p++)
        if (!g_ascii_isspace (*p)) /* an indented line is the same line */
          h = (h ^ (guint8)*p) * 0x100000001b3u;
      g_array_append_val (lines, h);
    }
  return lines;
}

static TdLineMap *
map_lines (const TdTapeSource *a, const TdTapeSource *b)
{
  g_autoptr (GArray) la = hash_lines (a);
  g_autoptr (GArray) lb = hash_lines (b);
  TdLineMap *map = g_new0 (TdLineMap, 1);
  g_autofree gint32 *b_of_a = g_new (gint32, la->len + 1);
  g_autofree gint32 *a_of_b = g_new (gint32, lb->len + 1);

  map->name = g_strdup (td__base_name (a->path));
  map->n = la->len;
  map->line_in_b = g_new0 (guint32, la->len + 1);
  td__align ((const guint64 *)(void *)la->data, (gint)la->len,
             (const guint64 *)(void *)lb->data, (gint)lb->len, b_of_a, a_of_b);
  for (guint i = 0; i < la->len; i++)
    {
      map->line_in_b[i] = b_of_a[i] >= 0 ? (guint32)b_of_a[i] + 1 : 0;
      if (map->first == 0 && b_of_a[i] != (gint32)i)
        map->first = i + 1;
    }
  if (map->first == 0)
    map->first = la->len + 1;
  return map;
}

void
td__line_map_free (gpointer data)
{
  TdLineMap *map = data;

  g_free (map->name);
  g_free (map->line_in_b);
  g_free (map);
}

guint
td__line_in_b (const TdComparison *c, const char *file, guint line)
{
  const char *name = td__base_name (file);

  for (guint i = 0; i < c->maps->len; i++)
    {
      const TdLineMap *map = g_ptr_array_index (c->maps, i);

      if (g_str_equal (map->name, name))
        return line > 0 && line <= map->n ? map->line_in_b[line - 1] : 0;
    }
  return line;
}

static void
compare_sources (TdComparison *c)
{
  c->d->same_program
      = g_str_equal (td__base_name (td_tape_reader_info (c->reader[0], "program")),
                     td__base_name (td_tape_reader_info (c->reader[1], "program")));
  for (guint i = 0; i < td_tape_reader_n_sources (c->reader[0]); i++)
    for (guint k = 0; k < td_tape_reader_n_sources (c->reader[1]); k++)
      {
        TdTapeSource a = td_tape_reader_source (c->reader[0], i),
                     b = td_tape_reader_source (c->reader[1], k);

        if (!g_str_equal (td__base_name (a.path), td__base_name (b.path))
            || (a.bytes == b.bytes && memcmp (a.text, b.text, a.bytes) == 0))
          continue;
        c->d->same_program = FALSE;
        g_ptr_array_add (c->maps, map_lines (&a, &b));
      }
}

void
td__diff_programs (TdComparison *c)
{
  if (!c->reader[0] || !c->reader[1])
    {
      c->d->same_run = c->d->same_program = !c->reader[0] && !c->reader[1];
      return;
    }
  c->d->same_run = memcmp (td_tape_reader_header (c->reader[0])->uuid,
                           td_tape_reader_header (c->reader[1])->uuid, 16)
                   == 0;
  if (c->d->same_run)
    c->d->same_program = TRUE;
  else
    {
      compare_versions (c);
      compare_sources (c);
    }
}
