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
print_number (GString *out, TdCell cell, double norm, gboolean csv)
{
  char text[TD_FORMAT_SIZE];

  norm = cell_value (cell, norm);
  if (csv)
    {
      g_string_append_c (out, ',');
      if (cell != TD_CELL_MISSING)
        g_string_append_printf (out, "%.9g", norm);
      return;
    }
  td_format_honest (text, norm, cell == TD_CELL_MISSING ? TD_HONEST_MISSING : TD_HONEST_EXACT);
  /* pad by characters, not by bytes */
  g_string_append_printf (out, "  %*s%s", (int)MAX (0, 9 - g_utf8_strlen (text, -1)), "", text);
}

/* ---- clipping ---- */

typedef struct
{
  guint n_hooked; /* columns with a clipping hook */
  guint n_known, n_clipped;
} Clipping;

static Clipping
count_clipping (const TdGradientTable *t, GArray *columns)
{
  Clipping k = { 0 };

  for (guint c = 0; c < columns->len; c++)
    k.n_hooked += td_gradient_table_clip (t, g_array_index (columns, gint64, c)).n_hooked > 0;
  k.n_known = td__gradient_count_clipped (t, columns, &k.n_clipped);
  return k;
}

/* The norm of a column before or after clipping; TD_CELL_MISSING: not known, or none. */
static TdCell
clip_norm (const TdGradientTable *t, gint64 iteration, gboolean after, double *norm)
{
  TdGradientClip clip = td_gradient_table_clip (t, iteration);

  *norm = after ? clip.l2_after : clip.l2_before;
  if (clip.n_hooked == 0 || !clip.known)
    return TD_CELL_MISSING;
  return after ? clip.after : clip.before;
}

static void
print_clipping_json (const TdGradientTable *t, GArray *columns, TdJson *j)
{
  static const char *const names[] = { "l2_before", "l2_after" };
  Clipping k = count_clipping (t, columns);

  td_json_key (j, "clipping");
  if (k.n_hooked == 0)
    {
      td_json_null (j);
      return;
    }
  td_json_begin_object (j);
  for (int after = 0; after < 2; after++)
    {
      td_json_key (j, names[after]);
      td_json_begin_array (j);
      for (guint c = 0; c < columns->len; c++)
        {
          double norm;
          TdCell cell = clip_norm (t, g_array_index (columns, gint64, c), after, &norm);

          if (cell == TD_CELL_MISSING)
            td_json_null (j);
          else
            td_json_double (j, cell_value (cell, norm));
        }
      td_json_end_array (j);
    }
  td_json_key (j, "clipped");
  td_json_begin_array (j);
  for (guint c = 0; c < columns->len; c++)
    {
      TdGradientClip clip = td_gradient_table_clip (t, g_array_index (columns, gint64, c));

      if (clip.n_hooked > 0 && clip.known)
        td_json_bool (j, clip.clipped);
      else
        td_json_null (j);
    }
  td_json_end_array (j);
  td_json_member_int (j, "n_known", k.n_known);
  td_json_member_int (j, "n_clipped", k.n_clipped);
  td_json_end_object (j);
}

static void
print_clipping (const TdGradientTable *t, GArray *columns, gboolean csv, GString *out)
{
  static const char *const names[] = { "(norm before clipping)", "(norm after clipping)" };
  Clipping k = count_clipping (t, columns);

  for (int after = 0; after < 2 && k.n_hooked > 0; after++)
    {
      g_string_append_printf (out, csv ? "%s" : "%-24s", names[after]);
      for (guint c = 0; c < columns->len; c++)
        {
          double norm;
          TdCell cell = clip_norm (t, g_array_index (columns, gint64, c), after, &norm);

          print_number (out, cell, norm, csv);
        }
      g_string_append_c (out, '\n');
    }
  if (csv || k.n_hooked == 0)
    return;
  if (k.n_known > 0)
    g_string_append_printf (out, "clipped in %u of %u %s (%.3g %%)\n", k.n_clipped, k.n_known,
                            td_plural (k.n_known, "iteration", "iterations"),
                            100.0 * k.n_clipped / k.n_known);
  if (k.n_known < k.n_hooked)
    g_string_append_printf (out,
                            "clipping of %u iteration%s is not known: record with --level "
                            "stats\n",
                            k.n_hooked - k.n_known, k.n_hooked - k.n_known == 1 ? "" : "s");
}

/* ---- why nothing, and what the columns are ---- */

/* In one line; NULL: there is something. Owner: the caller. */
static char *
why_nothing (const TdGradientTable *t, GArray *columns)
{
  const char *title, *text;

  return td__gradient_why_nothing (t, columns, &title, &text)
             ? g_strdup_printf ("%s. %s", title, text)
             : NULL;
}

/* As a row without numbers: the file stays a table. */
static void
print_why_csv (const char *why, guint n_columns, GString *out)
{
  g_autofree char *field = g_strdup_printf ("(%s)", why);

  td_csv_append (out, field);
  for (guint c = 0; c < n_columns; c++)
    g_string_append_c (out, ',');
  g_string_append_c (out, '\n');
}

static void
print_axis_json (const TdGradientAxis *axis, GArray *columns, TdJson *j)
{
  td_json_key (j, "axis");
  td_json_begin_object (j);
  td_json_member_int (j, "first", axis->first);
  td_json_member_int (j, "last", axis->last);
  td_json_member_int (j, "iterations_per_column", axis->width);
  td_json_member_int (j, "n_columns", axis->n);
  td_json_member_int (j, "n_empty", axis->n - columns->len);
  td_json_end_object (j);
}

static void
print_axis (const TdGradientAxis *axis, GArray *columns, GString *out)
{
  guint n_empty = axis->n - columns->len;

  if (axis->width > 1)
    g_string_append_printf (out,
                            "each column is one of %" G_GINT64_FORMAT
                            " iterations: the first with a NaN or an infinity, else the "
                            "newest\n",
                            axis->width);
  if (n_empty > 0 && columns->len > 0)
    g_string_append_printf (out,
                            "%u of %u columns left out: none of their iterations is "
                            "stored whole\n",
                            n_empty, axis->n);
}

/* ---- the table ---- */

static void
print_json (const TdGradientTable *t, const TdGradientAxis *axis, GArray *columns, gint64 at,
            GString *out)
{
  g_autofree char *why = why_nothing (t, columns);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_key (&j, "iterations");
  td_json_begin_array (&j);
  for (guint c = 0; c < columns->len; c++)
    td_json_int (&j, g_array_index (columns, gint64, c));
  td_json_end_array (&j);
  print_axis_json (axis, columns, &j);
  td_json_member_string (&j, "reason", why);
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
      td_json_member_string (&j, "missing", td_gradient_table_missing (t, r, at));
      td_json_end_object (&j);
    }
  td_json_end_array (&j);
  print_clipping_json (t, columns, &j);
  td_json_end_object (&j);
}

static void
print_table (const TdGradientTable *t, const TdGradientAxis *axis, GArray *columns, gint64 at,
             gboolean csv, GString *out)
{
  g_autofree char *why_none = why_nothing (t, columns);

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

          print_number (out, cell, norm, csv);
        }
      const char *why = csv ? NULL : td_gradient_table_missing (t, r, at);
      if (why)
        g_string_append_printf (out, "  missing: %s", why);
      g_string_append_c (out, '\n');
    }
  print_clipping (t, columns, csv, out);
  if (why_none && csv)
    print_why_csv (why_none, columns->len, out);
  else if (why_none)
    g_string_append_printf (out, "%s\n", why_none);
  if (!csv)
    print_axis (axis, columns, out);
}

char *
td_gradient_print (const TdGradientTable *table, const TdGradientRange *range, gint64 at,
                   const char *format)
{
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_of (table, range, range->n);
  g_autoptr (GArray) columns = td__gradient_axis_list (axis);
  GString *out = g_string_new (NULL);

  if (g_str_equal (format, "json"))
    print_json (table, axis, columns, at, out);
  else
    print_table (table, axis, columns, at, g_str_equal (format, "csv"), out);
  return g_string_free (out, FALSE);
}
