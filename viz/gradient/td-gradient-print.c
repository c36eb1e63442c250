/*
 * The table twins of the gradients' heat map: text, CSV, JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "scene/td-json.h"
#include "td-gradient-private.h"

/* The number that a cell stands for; missing ones are left to the caller. */
static double
cell_value (TdCell cell, double norm)
{
  switch (cell)
    {
    case TD_CELL_NAN:
      return NAN;
    case TD_CELL_PLUS_INF:
      return INFINITY;
    case TD_CELL_MINUS_INF:
      return -INFINITY;
    case TD_CELL_VALUE:
    case TD_CELL_MISSING:
    case TD_CELL_EMPTY:
      break;
    }
  return norm;
}

static void
print_json (const TdGradientTable *t, GArray *columns, gint64 last, GString *out)
{
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_key (&j, "iterations");
  td_json_begin_array (&j);
  for (guint c = 0; c < columns->len; c++)
    td_json_int (&j, g_array_index (columns, gint64, c));
  td_json_end_array (&j);
  td_json_key (&j, "parameters");
  td_json_begin_array (&j);
  for (guint r = 0; r < t->rows->len; r++)
    {
      td_json_begin_object (&j);
      td_json_key (&j, "id");
      td_json_id (&j, td_gradient_table_key (t, r));
      td_json_member_string (&j, "path", td_gradient_table_path (t, r));
      td_json_key (&j, "l2");
      td_json_begin_array (&j);
      for (guint c = 0; c < columns->len; c++)
        {
          double norm;
          TdCell cell
              = td_gradient_table_norm (t, r, g_array_index (columns, gint64, c), &norm);

          if (cell == TD_CELL_MISSING)
            td_json_null (&j);
          else
            td_json_double (&j, cell_value (cell, norm));
        }
      td_json_end_array (&j);
      td_json_member_string (&j, "missing", td_gradient_table_missing (t, r, last));
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
}

static void
print_table (const TdGradientTable *t, GArray *columns, gint64 last, gboolean csv, GString *out)
{
  char text[TD_FORMAT_SIZE];

  g_string_append_printf (out, csv ? "parameter" : "%-24s", "parameter");
  for (guint c = 0; c < columns->len; c++)
    g_string_append_printf (out, csv ? ",%" G_GINT64_FORMAT : "  %9" G_GINT64_FORMAT,
                            g_array_index (columns, gint64, c));
  g_string_append_c (out, '\n');
  for (guint r = 0; r < t->rows->len; r++)
    {
      if (csv)
        td_csv_append (out, td_gradient_table_path (t, r));
      else
        g_string_append_printf (out, "%-24s", td_gradient_table_path (t, r));
      for (guint c = 0; c < columns->len; c++)
        {
          double norm;
          TdCell cell
              = td_gradient_table_norm (t, r, g_array_index (columns, gint64, c), &norm);

          norm = cell_value (cell, norm);
          if (!csv)
            {
              td_format_honest (text, norm,
                                cell == TD_CELL_MISSING ? TD_HONEST_MISSING : TD_HONEST_EXACT);
              /* pad by characters, not by bytes */
              g_string_append_printf (out, "  %*s%s",
                                      (int)MAX (0, 9 - g_utf8_strlen (text, -1)), "", text);
            }
          else
            {
              g_string_append_c (out, ',');
              if (cell != TD_CELL_MISSING)
                g_string_append_printf (out, "%.9g", norm);
            }
        }
      const char *why = csv ? NULL : td_gradient_table_missing (t, r, last);
      if (why)
        g_string_append_printf (out, "  missing: %s", why);
      g_string_append_c (out, '\n');
    }
}

char *
td_gradient_print (const TdGradientTable *table, gint64 last, guint n_columns,
                   const char *format)
{
  g_autoptr (GArray) columns = td__gradient_columns (table, last, n_columns);
  GString *out = g_string_new (NULL);

  if (g_str_equal (format, "json"))
    print_json (table, columns, last, out);
  else
    print_table (table, columns, last, g_str_equal (format, "csv"), out);
  return g_string_free (out, FALSE);
}
