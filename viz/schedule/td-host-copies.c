/*
 * Copies between the host and devices: what the tape's COPIES say, a row for each line of the
 * program, way and reason.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-format.h"
#include "td-host-copies.h"

static TdHostCopy *
row_of (TdHostCopies *c, GHashTable *rows, const TdIteration *iteration, const TdTapeCopy *copy)
{
  g_autofree char *key = g_strdup_printf ("%u %u %u %u %u", copy->way, copy->why, copy->device,
                                          copy->flags, copy->site);
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (rows, key));
  TdHostCopy *row;

  if (at > 0)
    return &c->rows[at - 1];
  row = &c->rows[c->n_rows++];
  g_hash_table_insert (rows, g_steal_pointer (&key), GUINT_TO_POINTER (c->n_rows));
  *row = (TdHostCopy){ .way = copy->way,
                       .why = copy->why,
                       .device = copy->device,
                       .flags = copy->flags,
                       .event = copy->event,
                       .site = td_iteration_dup_place (iteration, copy->site) };
  return row;
}

TdHostCopies *
td_host_copies_new (const TdIteration *iteration)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  g_autoptr (GHashTable) rows = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  TdHostCopies *c = g_new0 (TdHostCopies, 1);

  c->rows = g_new0 (TdHostCopy, MAX (tape->n_copies, 1));
  for (guint i = 0; i < tape->n_copies; i++)
    {
      const TdTapeCopy *copy = &tape->copies[i];
      TdHostCopy *row = row_of (c, rows, iteration, copy);

      row->n++;
      row->bytes += copy->bytes;
      c->n[copy->way]++;
      c->bytes[copy->way] += copy->bytes;
    }
  return c;
}

void
td_host_copies_free (TdHostCopies *c)
{
  if (!c)
    return;
  for (guint i = 0; i < c->n_rows; i++)
    g_free (c->rows[i].site);
  g_free (c->rows);
  g_free (c);
}

void
td_host_copies_print (const TdHostCopies *c, GString *out)
{
  char up[TD_FORMAT_SIZE], down[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];

  if (c->n_rows == 0)
    return;
  g_string_append_printf (
      out, "copies of the host: %u to devices, %s; %u to the host, %s\n",
      c->n[TD_TAPE_COPY_TO_DEVICE], td_format_bytes (up, c->bytes[TD_TAPE_COPY_TO_DEVICE]),
      c->n[TD_TAPE_COPY_TO_HOST], td_format_bytes (down, c->bytes[TD_TAPE_COPY_TO_HOST]));
  for (guint i = 0; i < c->n_rows; i++)
    {
      const TdHostCopy *row = &c->rows[i];

      g_string_append_printf (
          out, "%6u  %-9s %-5s %6u × %10s%s%s%s%s\n", row->event,
          td_tape_copy_way_name (row->way), td_tape_copy_why_name (row->why), row->n,
          td_format_bytes (bytes, row->bytes), *row->site ? "  " : "", row->site,
          row->flags & TD_TAPE_COPY_BEFORE ? "  before it began" : "",
          row->flags & TD_TAPE_COPY_UNUSED ? "  never used" : "");
    }
}

void
td_host_copies_print_json (const TdHostCopies *c, TdJson *j)
{
  td_json_begin_object (j);
  td_json_member_int (j, "to_device", c->n[TD_TAPE_COPY_TO_DEVICE]);
  td_json_member_int (j, "to_device_bytes", (gint64)c->bytes[TD_TAPE_COPY_TO_DEVICE]);
  td_json_member_int (j, "to_host", c->n[TD_TAPE_COPY_TO_HOST]);
  td_json_member_int (j, "to_host_bytes", (gint64)c->bytes[TD_TAPE_COPY_TO_HOST]);
  td_json_key (j, "rows");
  td_json_begin_array (j);
  for (guint i = 0; i < c->n_rows; i++)
    {
      const TdHostCopy *row = &c->rows[i];

      td_json_begin_object (j);
      td_json_member_int (j, "event", row->event);
      td_json_member_string (j, "way", td_tape_copy_way_name (row->way));
      td_json_member_string (j, "why", td_tape_copy_why_name (row->why));
      td_json_member_int (j, "device", row->device);
      td_json_member_int (j, "n", row->n);
      td_json_member_int (j, "bytes", (gint64)row->bytes);
      td_json_member_string (j, "site", row->site);
      td_json_member_bool (j, "before", (row->flags & TD_TAPE_COPY_BEFORE) != 0);
      td_json_member_bool (j, "unused", (row->flags & TD_TAPE_COPY_UNUSED) != 0);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_end_object (j);
}
