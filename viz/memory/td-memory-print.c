/*
 * The table twins of the memory pictures: text, CSV, JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scene/td-json.h"
#include "td-memory.h"
#include "td-pools.h"

/* One table: a first column with a number (and a text), a total, and the categories. */
typedef struct
{
  const char *first;  /* "event" or "iteration" */
  const char *second; /* "op", or NULL */
  guint n;
  guint64 *const *bytes;
  const guint64 *total;
  const gboolean *known;
  const TdIteration *iteration; /* whose pools are printed too; or NULL */
} Table;

typedef struct
{
  gint64 number;
  const char *text;
} RowHead;

typedef RowHead (*RowHeadFunc) (gconstpointer data, guint row);

static char *
print_json (const Table *t, RowHeadFunc head, gconstpointer data, guint64 peak)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_int (&j, "peak_bytes", (gint64)peak);
  if (t->iteration)
    td_pools_add_json (&j, t->iteration);
  td_json_key (&j, t->second ? "events" : "iterations");
  td_json_begin_array (&j);
  for (guint i = 0; i < t->n; i++)
    {
      RowHead h = head (data, i);

      td_json_begin_object (&j);
      td_json_member_int (&j, t->first, h.number);
      if (t->second)
        td_json_member_string (&j, t->second, h.text);
      td_json_member_int (&j, "total", (gint64)t->total[i]);
      for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        {
          td_json_key (&j, td_tape_category_name ((unsigned)c));
          if (t->known && !t->known[i])
            td_json_null (&j);
          else
            td_json_int (&j, (gint64)t->bytes[c][i]);
        }
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}

static char *
print_csv (const Table *t, RowHeadFunc head, gconstpointer data)
{
  GString *out = g_string_new (t->first);

  if (t->second)
    g_string_append_printf (out, ",%s", t->second);
  g_string_append (out, ",total");
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    g_string_append_printf (out, ",%s", td_tape_category_name ((unsigned)c));
  g_string_append_c (out, '\n');
  for (guint i = 0; i < t->n; i++)
    {
      RowHead h = head (data, i);

      g_string_append_printf (out, "%" G_GINT64_FORMAT, h.number);
      if (t->second)
        {
          g_string_append_c (out, ',');
          td_csv_append (out, h.text);
        }
      g_string_append_printf (out, ",%" G_GUINT64_FORMAT, t->total[i]);
      for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        if (t->known && !t->known[i])
          g_string_append_c (out, ',');
        else
          g_string_append_printf (out, ",%" G_GUINT64_FORMAT, t->bytes[c][i]);
      g_string_append_c (out, '\n');
    }
  return g_string_free (out, FALSE);
}

static char *
print_text (const Table *t, RowHeadFunc head, gconstpointer data, guint64 peak)
{
  GString *out = g_string_new (NULL);
  gboolean any[TD_TAPE_N_CATEGORIES] = { 0 };
  char text[TD_FORMAT_SIZE];

  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    for (guint i = 0; i < t->n && !any[c]; i++)
      any[c] = t->bytes[c][i] > 0;
  g_string_append_printf (out, "peak %s\n%9s", td_format_bytes (text, peak), t->first);
  if (t->second)
    g_string_append_printf (out, "  %-28s", t->second);
  g_string_append_printf (out, "  %9s", "total");
  for (int i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    if (any[td_category_order[i]])
      g_string_append_printf (out, "  %13s", td_category_label (td_category_order[i]));
  g_string_append_c (out, '\n');
  for (guint i = 0; i < t->n; i++)
    {
      RowHead h = head (data, i);

      g_string_append_printf (out, "%9" G_GINT64_FORMAT, h.number);
      if (t->second)
        g_string_append_printf (out, "  %-28.28s", h.text);
      g_string_append_printf (out, "  %9s", td_format_bytes (text, t->total[i]));
      for (int k = 0; k < TD_TAPE_N_CATEGORIES; k++)
        if (any[td_category_order[k]])
          g_string_append_printf (
              out, "  %13s",
              t->known && !t->known[i]
                  ? "-"
                  : td_format_bytes (text, t->bytes[td_category_order[k]][i]));
      g_string_append_c (out, '\n');
    }
  if (t->iteration)
    td_pools_append_text (out, t->iteration);
  return g_string_free (out, FALSE);
}

static char *
print (const Table *t, RowHeadFunc head, gconstpointer data, guint64 peak, const char *format)
{
  if (g_str_equal (format, "json"))
    return print_json (t, head, data, peak);
  if (g_str_equal (format, "csv"))
    return print_csv (t, head, data);
  return print_text (t, head, data, peak);
}

static RowHead
event_head (gconstpointer data, guint row)
{
  const TdIteration *iteration = data;

  return (RowHead){ row, row < td_iteration_get_n_events (iteration)
                             ? td_iteration_get_op_name (iteration, row)
                             : "end" };
}

char *
td_memory_events_print (const TdIteration *iteration, const TdMemoryProfile *profile,
                        const char *format)
{
  Table t
      = { "event", "op", profile->n_steps, profile->bytes, profile->total, NULL, iteration };

  return print (&t, event_head, iteration, profile->peak_bytes, format);
}

static RowHead
iteration_head (gconstpointer data, guint row)
{
  const TdMemoryHistory *h = data;

  return (RowHead){ h->iteration[row], NULL };
}

char *
td_memory_history_print (const TdMemoryHistory *h, const char *format)
{
  Table t = { "iteration", NULL, h->n, h->bytes, h->peak, h->known, NULL };
  guint64 peak = 0;

  for (guint i = 0; i < h->n; i++)
    peak = MAX (peak, h->peak[i]);
  return print (&t, iteration_head, h, peak, format);
}
