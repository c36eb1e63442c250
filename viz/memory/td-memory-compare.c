/*
 * Blocks of two snapshots by the places that allocated them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-memory-compare.h"

#include "scene/td-json.h"
#include "tape/td-devices.h"

#include <string.h>

/* Owner: the caller. */
static char *
dup_place (const TdIteration *iteration, const TdMemoryBlock *block)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  gint var = block->key ? td_iteration_find_var (iteration, block->key) : -1;
  guint32 line = 0;
  const char *file
      = var >= 0 ? td_iteration_get_site (iteration, t->vars[var].site, &line) : "";

  /* the whole path: two files of one name are two places */
  return file && *file ? g_strdup_printf ("%s:%u", file, line) : g_strdup ("?");
}

static TdMemoryCompareRow *
find_row (GHashTable *rows, const char *device, const char *place)
{
  g_autofree char *key = g_strconcat (device, "\n", place, NULL);
  TdMemoryCompareRow *row = g_hash_table_lookup (rows, key);

  if (row)
    return row;
  row = g_new0 (TdMemoryCompareRow, 1);
  row->device = g_strdup (device);
  row->place = g_strdup (place);
  g_hash_table_insert (rows, g_steal_pointer (&key), row);
  return row;
}

/* Blocks of one side by what makes two the same; and its bytes, which are added to the rows. */
static GHashTable *
take_side (TdMemoryCompare *self, GHashTable *rows, const TdIteration *iteration, guint side)
{
  g_autoptr (GArray) blocks = td_memory_blocks_at (iteration, -1);
  GHashTable *known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < blocks->len; i++)
    {
      const TdMemoryBlock *block = &g_array_index (blocks, TdMemoryBlock, i);
      g_autofree char *device = td_devices_dup_name (iteration, block->device);
      g_autofree char *place = dup_place (iteration, block);
      TdMemoryCompareRow *row = find_row (rows, device, place);

      row->bytes[side] += block->bytes;
      self->bytes[side] += block->bytes;
      g_hash_table_insert (known,
                           g_strdup_printf ("%" G_GINT64_MODIFIER "x %" G_GUINT64_FORMAT
                                            " %s\n%s",
                                            block->address, block->bytes, device, place),
                           row);
      row->n_new += side == 1;
      row->new_bytes += side == 1 ? block->bytes : 0;
      row->n_gone += side == 0;
      row->gone_bytes += side == 0 ? block->bytes : 0;
    }
  return known;
}

/* What both have is neither new nor gone. */
static void
take_same (GHashTable *a, GHashTable *b)
{
  GHashTableIter iter;
  gpointer key, value;

  g_hash_table_iter_init (&iter, a);
  while (g_hash_table_iter_next (&iter, &key, &value))
    if (g_hash_table_contains (b, key))
      {
        TdMemoryCompareRow *row = value;
        guint64 bytes = g_ascii_strtoull (strchr (key, ' ') + 1, NULL, 10);

        row->n_new--;
        row->n_gone--;
        row->new_bytes -= bytes;
        row->gone_bytes -= bytes;
      }
}

static int
grown_first (gconstpointer a, gconstpointer b)
{
  const TdMemoryCompareRow *x = a, *y = b;
  gint64 grown[2]
      = { (gint64)(x->bytes[1] - x->bytes[0]), (gint64)(y->bytes[1] - y->bytes[0]) };

  if (grown[0] != grown[1])
    return grown[0] > grown[1] ? -1 : 1;
  return strcmp (x->place, y->place);
}

static void
row_clear (TdMemoryCompareRow *row)
{
  g_free (row->place);
  g_free (row->device);
}

TdMemoryCompare *
td_memory_compare_new (const TdIteration *a, const TdIteration *b)
{
  TdMemoryCompare *self = g_new0 (TdMemoryCompare, 1);
  g_autoptr (GHashTable) rows = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr (GHashTable) first = take_side (self, rows, a, 0);
  g_autoptr (GHashTable) second = take_side (self, rows, b, 1);
  GArray *differ = g_array_new (FALSE, FALSE, sizeof (TdMemoryCompareRow));
  GHashTableIter iter;
  gpointer value;

  take_same (first, second);
  g_hash_table_iter_init (&iter, rows);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      TdMemoryCompareRow *row = value;

      if (row->n_new > 0 || row->n_gone > 0)
        g_array_append_val (differ, *row);
      else
        {
          self->n_same++;
          row_clear (row);
        }
    }
  g_array_sort (differ, grown_first);
  self->n = differ->len;
  self->rows = (TdMemoryCompareRow *)(gpointer)g_array_free (differ, FALSE);
  return self;
}

void
td_memory_compare_free (TdMemoryCompare *self)
{
  if (!self)
    return;
  for (guint i = 0; i < self->n; i++)
    row_clear (&self->rows[i]);
  g_free (self->rows);
  g_free (self);
}

static void
print_json (const TdMemoryCompare *self, GString *out)
{
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_bool (&j, "same", self->n == 0);
  td_json_member_int (&j, "bytes_a", (gint64)self->bytes[0]);
  td_json_member_int (&j, "bytes_b", (gint64)self->bytes[1]);
  td_json_member_int (&j, "places_same", self->n_same);
  td_json_key (&j, "places");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->n; i++)
    {
      const TdMemoryCompareRow *row = &self->rows[i];

      td_json_begin_object (&j);
      td_json_member_string (&j, "place", row->place);
      td_json_member_string (&j, "device", row->device);
      td_json_member_int (&j, "bytes_a", (gint64)row->bytes[0]);
      td_json_member_int (&j, "bytes_b", (gint64)row->bytes[1]);
      td_json_member_int (&j, "new", row->n_new);
      td_json_member_int (&j, "new_bytes", (gint64)row->new_bytes);
      td_json_member_int (&j, "gone", row->n_gone);
      td_json_member_int (&j, "gone_bytes", (gint64)row->gone_bytes);
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
  g_string_append_c (out, '\n');
}

static void
print_text (const TdMemoryCompare *self, GString *out)
{
  char a[TD_FORMAT_SIZE], b[TD_FORMAT_SIZE];

  g_string_append_printf (out, "%s, then %s", td_format_bytes (a, self->bytes[0]),
                          td_format_bytes (b, self->bytes[1]));
  if (self->n == 0)
    {
      g_string_append (out, ": the same blocks\n");
      return;
    }
  g_string_append_printf (out, "\n%6s %10s %6s %10s  place\n", "new", "", "gone", "");
  for (guint i = 0; i < self->n; i++)
    {
      const TdMemoryCompareRow *row = &self->rows[i];

      g_string_append_printf (out, "%6u %10s %6u %10s  %s · %s\n", row->n_new,
                              td_format_bytes (a, row->new_bytes), row->n_gone,
                              td_format_bytes (b, row->gone_bytes), row->device, row->place);
    }
  if (self->n_same > 0)
    g_string_append_printf (out, "%u other %s have the same blocks in both\n", self->n_same,
                            td_plural (self->n_same, "place", "places"));
}

char *
td_memory_compare_print (const TdMemoryCompare *self, const char *format)
{
  GString *out = g_string_new (NULL);

  if (strcmp (format, "json") == 0)
    print_json (self, out);
  else
    print_text (self, out);
  return g_string_free (out, FALSE);
}
