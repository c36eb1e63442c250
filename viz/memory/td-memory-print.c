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

static char *
print_json (const TdIteration *iteration, const TdMemoryProfile *p)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  td_json_init (&j, out);
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
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}

static char *
print_csv (const TdIteration *iteration, const TdMemoryProfile *p)
{
  GString *out = g_string_new ("event,op,total");

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
    }
  return g_string_free (out, FALSE);
}

static char *
print_text (const TdIteration *iteration, const TdMemoryProfile *p)
{
  GString *out = g_string_new (NULL);
  gboolean any[TD_TAPE_N_CATEGORIES] = { 0 };
  char text[TD_FORMAT_SIZE];

  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    for (guint i = 0; i < p->n_steps && !any[c]; i++)
      any[c] = p->bytes[c][i] > 0;
  g_string_append_printf (out, "peak %s\n%9s  %-28s  %9s",
                          td_format_bytes (text, p->peak_bytes), "event", "op", "total");
  for (int i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    if (any[td_category_order[i]])
      g_string_append_printf (out, "  %13s", td_category_label (td_category_order[i]));
  g_string_append_c (out, '\n');
  for (guint i = 0; i < p->n_steps; i++)
    {
      g_string_append_printf (out, "%9u  %-28.28s  %9s", i, name_of (iteration, i),
                              td_format_bytes (text, p->total[i]));
      for (int k = 0; k < TD_TAPE_N_CATEGORIES; k++)
        if (any[td_category_order[k]])
          g_string_append_printf (out, "  %13s",
                                  td_format_bytes (text, p->bytes[td_category_order[k]][i]));
      g_string_append_c (out, '\n');
    }
  td_pools_append_text (out, iteration);
  return g_string_free (out, FALSE);
}

char *
td_memory_events_print (const TdIteration *iteration, const TdMemoryProfile *profile,
                        const char *format)
{
  if (g_str_equal (format, "json"))
    return print_json (iteration, profile);
  if (g_str_equal (format, "csv"))
    return print_csv (iteration, profile);
  return print_text (iteration, profile);
}
