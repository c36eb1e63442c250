/*
 * The table twin of the memory picture: text, CSV, JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scene/td-json.h"
#include "td-memory.h"
#include "td-pools.h"

static const char *
name_of (const TdIteration *iteration, guint step)
{
  return step < td_iteration_get_n_events (iteration)
             ? td_iteration_get_op_name (iteration, step)
             : "end";
}

static void
print_json (const TdIteration *iteration, const TdMemoryProfile *p, TdSink *sink)
{
  TdJson j;

  td_json_init (&j, sink->text);
  td_json_begin_object (&j);
  td_json_member_int (&j, "peak_bytes", (gint64)p->peak_bytes);
  td_pools_add_json (&j, iteration);
  td_json_key (&j, "events");
  td_json_begin_array (&j);
  for (guint i = 0; i < p->n_steps; i++)
    {
      td_json_begin_object (&j);
      td_json_member_int (&j, "event", i);
      td_json_member_string (&j, "op", name_of (iteration, i));
      td_json_member_int (&j, "total", (gint64)p->total[i]);
      for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        td_json_member_int (&j, td_tape_category_name ((unsigned)c), (gint64)p->bytes[c][i]);
      td_json_end_object (&j);
      td_sink_row (sink);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
}

static void
print_csv (const TdIteration *iteration, const TdMemoryProfile *p, TdSink *sink)
{
  GString *out = sink->text;

  g_string_append (out, "event,op,total");
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    g_string_append_printf (out, ",%s", td_tape_category_name ((unsigned)c));
  g_string_append_c (out, '\n');
  for (guint i = 0; i < p->n_steps; i++)
    {
      g_string_append_printf (out, "%u,", i);
      td_csv_append (out, name_of (iteration, i));
      g_string_append_printf (out, ",%" G_GUINT64_FORMAT, p->total[i]);
      for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        g_string_append_printf (out, ",%" G_GUINT64_FORMAT, p->bytes[c][i]);
      g_string_append_c (out, '\n');
      td_sink_row (sink);
    }
}

/* A column of bytes: from row to row most of them stay the same. */
typedef struct
{
  const guint64 *bytes; /* by step */
  int width;
  gboolean has_last;
  guint64 last;
  char cell[2 * TD_FORMAT_SIZE]; /* of `last` */
} Column;

static Column
column_new (const guint64 *bytes, int width)
{
  return (Column){ .bytes = bytes, .width = width };
}

static void
column_append (Column *c, guint step, GString *out)
{
  char text[TD_FORMAT_SIZE];

  if (!c->has_last || c->bytes[step] != c->last)
    {
      c->has_last = TRUE;
      c->last = c->bytes[step];
      g_snprintf (c->cell, sizeof c->cell, "  %*s", c->width, td_format_bytes (text, c->last));
    }
  g_string_append (out, c->cell);
}

static void
print_text (const TdIteration *iteration, const TdMemoryProfile *p, TdSink *sink)
{
  GString *out = sink->text;
  Column columns[TD_TAPE_N_CATEGORIES + 1];
  guint n = 0;
  char text[TD_FORMAT_SIZE];

  columns[n++] = column_new (p->total, 9);
  g_string_append_printf (out, "peak %s\n%9s  %-28s  %9s",
                          td_format_bytes (text, p->peak_bytes), "event", "op", "total");
  for (int i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    {
      const int c = td_category_order[i];
      gboolean any = FALSE;

      for (guint step = 0; step < p->n_steps && !any; step++)
        any = p->bytes[c][step] > 0;
      if (!any)
        continue;
      g_string_append_printf (out, "  %13s", td_category_label (c));
      columns[n++] = column_new (p->bytes[c], 13);
    }
  g_string_append_c (out, '\n');
  for (guint i = 0; i < p->n_steps; i++)
    {
      g_string_append_printf (out, "%9u  %-28.28s", i, name_of (iteration, i));
      for (guint c = 0; c < n; c++)
        column_append (&columns[c], i, out);
      g_string_append_c (out, '\n');
      td_sink_row (sink);
    }
  td_pools_append_text (out, iteration);
}

void
td_memory_events_print (const TdIteration *iteration, const TdMemoryProfile *profile,
                        const char *format, TdSink *sink)
{
  if (g_str_equal (format, "json"))
    print_json (iteration, profile, sink);
  else if (g_str_equal (format, "csv"))
    print_csv (iteration, profile, sink);
  else
    print_text (iteration, profile, sink);
}
