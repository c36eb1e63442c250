/*
 * What is new and gone between two snapshots, as text and as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-memory-compare.h"

#include <string.h>

static void
add_row (const TdMemoryCompareRow *row, TdJson *j)
{
  td_json_begin_object (j);
  td_json_member_string (j, "place", row->place);
  td_json_member_string (j, "device", row->device);
  td_json_member_int (j, "bytes_a", (gint64)row->bytes[0]);
  td_json_member_int (j, "bytes_b", (gint64)row->bytes[1]);
  td_json_member_int (j, "new", row->n_new);
  td_json_member_int (j, "new_bytes", (gint64)row->new_bytes);
  td_json_member_int (j, "gone", row->n_gone);
  td_json_member_int (j, "gone_bytes", (gint64)row->gone_bytes);
  if (row->stack > 0)
    td_json_member_int (j, "stack", row->stack - 1);
  td_json_end_object (j);
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
  td_json_member_bool (&j, "by_stack", self->by_stack);
  td_json_key (&j, "places");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->n; i++)
    add_row (&self->rows[i], &j);
  td_json_end_array (&j);
  if (self->by_stack)
    td_stack_table_write (self->stacks, &j);
  td_json_end_object (&j);
  g_string_append_c (out, '\n');
}

static void
print_row (const TdMemoryCompare *self, guint i, gboolean whole, GString *out)
{
  const TdMemoryCompareRow *row = &self->rows[i];
  g_autofree char *apart = td_memory_compare_apart (self, i, FALSE);
  char a[TD_FORMAT_SIZE], b[TD_FORMAT_SIZE];

  g_string_append_printf (out, "%6u %10s %6u %10s  %s · %s\n", row->n_new,
                          td_format_bytes (a, row->new_bytes), row->n_gone,
                          td_format_bytes (b, row->gone_bytes), row->device, row->place);
  if (whole)
    {
      g_autoptr (GArray) frames = td_stack_table_list (self->stacks, row->stack);
      g_autofree char *text = td_stack_frames_print (frames, "          ");

      g_string_append (out, text);
    }
  else if (apart)
    g_string_append_printf (out, "%37s  through %s\n", "", apart);
}

char *
td_memory_compare_sentence (const TdMemoryCompare *self)
{
  GString *out = g_string_new (NULL);
  guint64 bytes[2] = { 0 };
  guint n[2] = { 0 };
  char a[TD_FORMAT_SIZE], b[TD_FORMAT_SIZE];

  g_string_append_printf (out, "%s, then %s", td_format_bytes (a, self->bytes[0]),
                          td_format_bytes (b, self->bytes[1]));
  for (guint i = 0; i < self->n; i++)
    {
      bytes[0] += self->rows[i].new_bytes;
      bytes[1] += self->rows[i].gone_bytes;
      n[0] += self->rows[i].n_new;
      n[1] += self->rows[i].n_gone;
    }
  if (self->n == 0)
    g_string_append (out, ": the same blocks");
  else
    g_string_append_printf (out, ": %u %s new, %s; %u gone, %s", n[0],
                            td_plural (n[0], "block", "blocks"), td_format_bytes (a, bytes[0]),
                            n[1], td_format_bytes (b, bytes[1]));
  return g_string_free (out, FALSE);
}

static void
print_text (const TdMemoryCompare *self, gboolean whole, GString *out)
{
  g_autofree char *sentence = td_memory_compare_sentence (self);

  g_string_append_printf (out, "%s\n", sentence);
  if (self->n == 0)
    return;
  g_string_append_printf (out, "%6s %10s %6s %10s  place\n", "new", "", "gone", "");
  for (guint i = 0; i < self->n; i++)
    print_row (self, i, whole, out);
  if (self->n_same > 0)
    g_string_append_printf (out, "%u other %s the same blocks in both\n", self->n_same,
                            self->by_stack
                                ? td_plural (self->n_same, "stack has", "stacks have")
                                : td_plural (self->n_same, "place has", "places have"));
}

char *
td_memory_compare_print (const TdMemoryCompare *self, const char *format, gboolean whole)
{
  GString *out = g_string_new (NULL);

  if (strcmp (format, "json") == 0)
    print_json (self, out);
  else
    print_text (self, whole, out);
  return g_string_free (out, FALSE);
}
