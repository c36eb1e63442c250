/*
 * Copies between the host and devices: what the tape's COPIES say, a row for each line of the
 * program, way and reason.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-format.h"
#include "tape/td-devices.h"
#include "td-host-copies.h"

static TdHostCopy *
row_of (TdHostCopies *c, GHashTable *rows, const TdIteration *iteration, const TdTapeCopy *copy)
{
  guint flags = copy->flags & ~(guint)TD_TAPE_COPY_TIMED;
  g_autofree char *key = g_strdup_printf ("%u %u %u %u %u", copy->way, copy->why, copy->device,
                                          flags, copy->site);
  guint at = GPOINTER_TO_UINT (g_hash_table_lookup (rows, key));
  TdHostCopy *row;

  if (at > 0)
    return &c->rows[at - 1];
  row = &c->rows[c->n_rows++];
  g_hash_table_insert (rows, g_steal_pointer (&key), GUINT_TO_POINTER (c->n_rows));
  *row = (TdHostCopy){ .way = copy->way,
                       .why = copy->why,
                       .device = copy->device,
                       .flags = flags,
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

  c->iteration = iteration;
  c->rows = g_new0 (TdHostCopy, MAX (tape->n_copies, 1));
  for (guint i = 0; i < tape->n_copies; i++)
    {
      const TdTapeCopy *copy = &tape->copies[i];
      TdHostCopy *row = row_of (c, rows, iteration, copy);

      row->n++;
      row->bytes += copy->bytes;
      row->ns += copy->duration_ns;
      row->device_ns += copy->device_duration_ns;
      c->ns[copy->way] += copy->duration_ns;
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

guint64
td_host_copy_start (const TdIteration *iteration, const TdTapeCopy *copy)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  guint last = t->n_events - 1;

  if (copy->flags & (TD_TAPE_COPY_TIMED | TD_TAPE_COPY_BEFORE))
    return copy->start_ns;
  if (t->n_events == 0 || !t->event_start_ns)
    return 0;
  return copy->event < t->n_events ? t->event_start_ns[copy->event]
                                   : t->event_start_ns[last] + t->event_duration_ns[last];
}

const TdTapeCopy *
td_host_copy_of_event (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  guint from = 0, to = t->n_copies;

  while (from < to) /* they are in the order of events */
    if (t->copies[from + (to - from) / 2].event < event)
      from += (to - from) / 2 + 1;
    else
      to = from + (to - from) / 2;
  for (; from < t->n_copies && t->copies[from].event == event; from++)
    if (t->copies[from].why == TD_TAPE_COPY_OP)
      return &t->copies[from];
  return NULL;
}

char *
td_host_copy_describe (const TdIteration *iteration, const TdTapeCopy *copy)
{
  const gboolean up = copy->way == TD_TAPE_COPY_TO_DEVICE;
  char bytes[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE];
  g_autofree char *device = td_devices_dup_name (iteration, copy->device);
  g_autofree char *site = td_iteration_dup_place (iteration, copy->site);
  GString *text = g_string_new (NULL);

  g_string_printf (text, "%s: %s to %s · %s", td_tape_copy_why_name (copy->why),
                   up ? "host" : device, up ? device : "host",
                   td_format_bytes (bytes, copy->bytes));
  if (copy->flags & TD_TAPE_COPY_TIMED)
    g_string_append_printf (text, up ? " · %s of the host" : " · the host waited %s",
                            td_format_ns (ns, copy->duration_ns));
  else if (copy->flags & TD_TAPE_COPY_UNUSED)
    g_string_append (text, " · sent ahead, never used");
  else
    g_string_append (text, " · not timed");
  if (copy->device_kind != TD_TAPE_DEVICE_TIME_NONE)
    g_string_append_printf (text, " · %s on the device, %s what it computes, %s",
                            td_format_ns (ns, copy->device_duration_ns),
                            copy->device_stream != 0 ? "beside" : "between",
                            copy->device_kind == TD_TAPE_DEVICE_TIME_EXACT ? "exact"
                                                                           : "sampled");
  if (copy->flags & TD_TAPE_COPY_BEFORE)
    g_string_append (text, " · before the iteration");
  if (*site)
    g_string_append_printf (text, " · %s", site);
  return g_string_free (text, FALSE);
}

/* ", 12 µs of the host", or nothing. */
static void
put_time (GString *out, const char *before, guint64 ns, const char *after)
{
  char text[TD_FORMAT_SIZE];

  if (ns > 0)
    g_string_append_printf (out, "%s%s%s", before, td_format_ns (text, ns), after);
}

void
td_host_copies_print (const TdHostCopies *c, GString *out)
{
  char up[TD_FORMAT_SIZE], down[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];

  if (c->n_rows == 0)
    return;
  g_string_append_printf (out, "copies of the host: %u to devices, %s",
                          c->n[TD_TAPE_COPY_TO_DEVICE],
                          td_format_bytes (up, c->bytes[TD_TAPE_COPY_TO_DEVICE]));
  put_time (out, ", ", c->ns[TD_TAPE_COPY_TO_DEVICE], " of the host");
  g_string_append_printf (out, "; %u to the host, %s", c->n[TD_TAPE_COPY_TO_HOST],
                          td_format_bytes (down, c->bytes[TD_TAPE_COPY_TO_HOST]));
  put_time (out, ", which waited ", c->ns[TD_TAPE_COPY_TO_HOST], "");
  g_string_append_c (out, '\n');
  for (guint i = 0; i < c->n_rows; i++)
    {
      const TdHostCopy *row = &c->rows[i];

      g_string_append_printf (
          out, "%6u  %-9s %-5s %6u × %10s%s%s%s%s", row->event,
          td_tape_copy_way_name (row->way), td_tape_copy_why_name (row->why), row->n,
          td_format_bytes (bytes, row->bytes), *row->site ? "  " : "", row->site,
          row->flags & TD_TAPE_COPY_BEFORE ? "  before it began" : "",
          row->flags & TD_TAPE_COPY_UNUSED ? "  never used" : "");
      put_time (out, "  ", row->ns, "");
      put_time (out, "  ", row->device_ns, " on the device");
      g_string_append_c (out, '\n');
    }
}

void
td_host_copy_print_csv (const TdIteration *iteration, const TdTapeCopy *copy, GString *out)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  g_autofree char *site = td_iteration_dup_place (iteration, copy->site);

  g_string_append_printf (out, "%u,,,,%" G_GUINT64_FORMAT ",", copy->event,
                          td_host_copy_start (iteration, copy));
  if (copy->flags & TD_TAPE_COPY_TIMED)
    g_string_append_printf (out, "%" G_GUINT64_FORMAT, copy->duration_ns);
  g_string_append_printf (out, ",%" G_GUINT64_FORMAT ",,%s,%s,%u,", copy->bytes,
                          td_tape_copy_way_name (copy->way), td_tape_copy_why_name (copy->why),
                          copy->device);
  td_csv_append (out, site);
  g_string_append_printf (out, ",%016" G_GINT64_MODIFIER "x,%d,%d",
                          copy->var < t->n_vars ? t->vars[copy->var].key : 0,
                          (copy->flags & TD_TAPE_COPY_BEFORE) != 0,
                          (copy->flags & TD_TAPE_COPY_UNUSED) != 0);
  if (copy->device_kind == TD_TAPE_DEVICE_TIME_NONE)
    g_string_append (out, ",,,,");
  else
    g_string_append_printf (out, ",%s,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%u",
                            copy->device_kind == TD_TAPE_DEVICE_TIME_EXACT ? "exact"
                                                                           : "sampled",
                            (gint64)copy->device_start_ns, (gint64)copy->device_duration_ns,
                            (guint)copy->device_stream);
}

static void
print_each (const TdIteration *iteration, TdJson *j)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  td_json_begin_array (j);
  for (guint i = 0; i < t->n_copies; i++)
    {
      const TdTapeCopy *copy = &t->copies[i];
      g_autofree char *site = td_iteration_dup_place (iteration, copy->site);

      td_json_begin_object (j);
      td_json_member_int (j, "event", copy->event);
      td_json_member_string (j, "way", td_tape_copy_way_name (copy->way));
      td_json_member_string (j, "why", td_tape_copy_why_name (copy->why));
      td_json_member_int (j, "device", copy->device);
      td_json_member_int (j, "bytes", (gint64)copy->bytes);
      td_json_member_string (j, "site", site);
      td_json_key (j, "array");
      td_json_id (j, copy->var < t->n_vars ? t->vars[copy->var].key : 0);
      td_json_member_int (j, "start_ns", (gint64)td_host_copy_start (iteration, copy));
      if (copy->flags & TD_TAPE_COPY_TIMED)
        td_json_member_int (j, "ns", (gint64)copy->duration_ns);
      else
        td_json_member_bool (j, "measured", FALSE);
      if (copy->device_kind != TD_TAPE_DEVICE_TIME_NONE)
        {
          td_json_member_string (j, "device_time",
                                 copy->device_kind == TD_TAPE_DEVICE_TIME_EXACT ? "exact"
                                                                                : "sampled");
          td_json_member_int (j, "device_start_ns", (gint64)copy->device_start_ns);
          td_json_member_int (j, "device_ns", (gint64)copy->device_duration_ns);
          td_json_member_int (j, "device_stream", copy->device_stream);
        }
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

void
td_host_copies_print_json (const TdHostCopies *c, TdJson *j)
{
  td_json_begin_object (j);
  td_json_member_int (j, "to_device", c->n[TD_TAPE_COPY_TO_DEVICE]);
  td_json_member_int (j, "to_device_bytes", (gint64)c->bytes[TD_TAPE_COPY_TO_DEVICE]);
  td_json_member_int (j, "to_host", c->n[TD_TAPE_COPY_TO_HOST]);
  td_json_member_int (j, "to_host_bytes", (gint64)c->bytes[TD_TAPE_COPY_TO_HOST]);
  td_json_member_int (j, "to_device_ns", (gint64)c->ns[TD_TAPE_COPY_TO_DEVICE]);
  td_json_member_int (j, "to_host_ns", (gint64)c->ns[TD_TAPE_COPY_TO_HOST]);
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
      td_json_member_int (j, "ns", (gint64)row->ns);
      td_json_member_int (j, "device_ns", (gint64)row->device_ns);
      td_json_member_string (j, "site", row->site);
      td_json_member_bool (j, "before", (row->flags & TD_TAPE_COPY_BEFORE) != 0);
      td_json_member_bool (j, "unused", (row->flags & TD_TAPE_COPY_UNUSED) != 0);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_key (j, "copies");
  print_each (c->iteration, j);
  td_json_end_object (j);
}
