/*
 * What explains static functions, as text, as a table and as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "scene/td-json.h"
#include "td-explain-private.h"

#include <math.h>
#include <string.h>

static const char *const section_names[TD_EXPLAIN_N_SECTIONS]
    = { "reason", "break", "difference", "ran_once", "guard", "pass", "remark" };

static char *
dup_place (const TdExplainRow *row)
{
  return row->line > 0 ? g_strdup_printf ("%s:%u", row->file, row->line) : g_strdup ("");
}

/* "+1.20 ms", with a sign; "" where nothing was compared. */
static const char *
cost_text (char out[TD_FORMAT_SIZE], const TdExplainRow *row)
{
  char ns[TD_FORMAT_SIZE];

  g_snprintf (out, TD_FORMAT_SIZE, "%s%s", row->cost_ns < 0 ? "−" : "+",
              td_format_ns (ns, (guint64)fabs (row->cost_ns)));
  return row->n_timed > 0 ? out : "";
}

char *
td_explain_headline (const TdExplain *e, guint function)
{
  const TdExplainCalls *calls = &e->calls[function];
  GString *out = g_string_new (NULL);
  char ns[TD_FORMAT_SIZE];
  double cost = 0;
  guint n = 0;

  for (guint i = 0; i < e->n_rows; i++)
    if (e->rows[i].section == TD_EXPLAIN_REASON && e->rows[i].function == function)
      {
        cost += e->rows[i].cost_ns;
        n += e->rows[i].n_timed;
      }
  g_string_append_printf (out,
                          "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " calls ran the code",
                          calls->n_code, calls->n_code + calls->n_replayed);
  if (n > 0 && cost > 0)
    g_string_append_printf (out, "; forward took %s more than replays",
                            td_format_ns (ns, (guint64)cost));
  if (calls->n_explained < calls->n_code)
    g_string_append_printf (out, "; of %" G_GUINT64_FORMAT " no record is left",
                            calls->n_code - calls->n_explained);
  return g_string_free (out, FALSE);
}

char *
td_explain_row_text (const TdExplainRow *row)
{
  g_autofree char *place = dup_place (row);
  GString *out = g_string_new (row->title);
  char cost[TD_FORMAT_SIZE];

  switch (row->section)
    {
    case TD_EXPLAIN_REASON:
      g_string_append_printf (out, ", %u %s", row->n, td_plural (row->n, "call", "calls"));
      if (*cost_text (cost, row))
        g_string_append_printf (out, ", %s", cost);
      break;
    case TD_EXPLAIN_GUARD:
      g_string_append_printf (out, ", %u %s", row->n, td_plural (row->n, "guard", "guards"));
      if (row->n_misses > 0)
        g_string_append_printf (out, ", failed %u %s", row->n_misses,
                                td_plural (row->n_misses, "time", "times"));
      break;
    case TD_EXPLAIN_PASS:
      g_string_append_printf (out, ", %u steps before, %u after", row->before, row->after);
      break;
    case TD_EXPLAIN_BREAK:
    case TD_EXPLAIN_DIFFERENCE:
    case TD_EXPLAIN_ONCE:
    case TD_EXPLAIN_REMARK:
    case TD_EXPLAIN_N_SECTIONS:
    default:
      break;
    }
  if (row->text && *row->text)
    g_string_append_printf (out, ": %s", row->text);
  if (*place)
    g_string_append_printf (out, ", %s", place);
  if (*row->advice)
    g_string_append_printf (out, ". %s", row->advice);
  return g_string_free (out, FALSE);
}

/* ---- text ---- */

static void
print_reason (GString *out, const TdExplainRow *row, const char *place)
{
  char cost[TD_FORMAT_SIZE];
  const char *text = cost_text (cost, row);

  g_string_append_printf (out, "  %-36s ×%-4u %*s%s  from iteration %" G_GINT64_FORMAT "%s%s\n",
                          row->title, row->n, (int)MAX (0, 10 - g_utf8_strlen (text, -1)), "",
                          text, row->first, *place ? "  " : "", place);
  if (*row->text)
    g_string_append_printf (
        out, "      %s%s%s\n",
        td__explain_cause (row->guard, row->text)->needle[0] ? row->guard : "",
        td__explain_cause (row->guard, row->text)->needle[0] ? ": " : "", row->text);
  g_string_append_printf (out, "      → %s\n", row->advice);
}

static void
print_row (GString *out, const TdExplainRow *row)
{
  g_autofree char *place = dup_place (row);

  switch (row->section)
    {
    case TD_EXPLAIN_REASON:
      print_reason (out, row, place);
      break;
    case TD_EXPLAIN_PASS:
      g_string_append_printf (out, "  %-24s %5u → %-5u %s\n", row->title, row->before,
                              row->after, row->text);
      break;
    case TD_EXPLAIN_REMARK:
      g_string_append_printf (out, "      %5u  %-24s %s%s%s\n", row->step, row->title,
                              row->text, *place ? "  " : "", place);
      break;
    case TD_EXPLAIN_GUARD:
      g_string_append_printf (out, "  %-24s %-18s %s", place, row->title, row->text);
      if (row->n_misses > 0)
        g_string_append_printf (out, "  (failed %u %s)", row->n_misses,
                                td_plural (row->n_misses, "time", "times"));
      g_string_append_c (out, '\n');
      break;
    case TD_EXPLAIN_BREAK:
    case TD_EXPLAIN_DIFFERENCE:
    case TD_EXPLAIN_ONCE:
    case TD_EXPLAIN_N_SECTIONS:
    default:
      g_string_append_printf (out, "  %-24s %s: %s", place, row->title, row->text);
      if (row->first >= 0)
        g_string_append_printf (out, "  iteration %" G_GINT64_FORMAT, row->first);
      if (row->n > 1)
        g_string_append_printf (out, "  ×%u", row->n);
      g_string_append_printf (out, "\n      → %s\n", row->advice);
      break;
    }
}

static void
print_function (GString *out, const TdExplain *e, guint function)
{
  const TdStaticsFunction *c = &e->statics->functions[function];
  g_autofree char *headline = td_explain_headline (e, function);
  const char *title = NULL;

  g_string_append_printf (out, "%s  %s\n%s\n", c->name, c->site, headline);
  for (guint i = 0; i < e->n_rows; i++)
    {
      const TdExplainRow *row = &e->rows[i];

      if (row->function != function)
        continue;
      if (title != td_explain_section_title (row->section)
          && (!title || strcmp (title, td_explain_section_title (row->section)) != 0))
        {
          title = td_explain_section_title (row->section);
          g_string_append_printf (out, "\n%s\n", title);
        }
      print_row (out, row);
    }
}

/* ---- CSV ---- */

static void
print_csv (GString *out, const TdExplain *e, gint function)
{
  g_string_append (out,
                   "function,section,guard,title,calls,traced,code,cost_ns,first,last,file,"
                   "line,before,after,text,advice\n");
  for (guint i = 0; i < e->n_rows; i++)
    {
      const TdExplainRow *row = &e->rows[i];

      if (function >= 0 && (guint)function != row->function)
        continue;
      td_csv_append (out, e->statics->functions[row->function].name);
      g_string_append_printf (out, ",%s,", section_names[row->section]);
      td_csv_append (out, row->guard);
      g_string_append_c (out, ',');
      td_csv_append (out, row->title);
      g_string_append_printf (out, ",%u,%u,%u,", row->n, row->n_traced, row->n_code);
      if (row->n_timed > 0)
        g_string_append_printf (out, "%.0f", row->cost_ns);
      g_string_append_printf (out, ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",", row->first,
                              row->last);
      td_csv_append (out, row->file);
      g_string_append_printf (out, ",%u,%u,%u,", row->line, row->before, row->after);
      td_csv_append (out, row->text ? row->text : "");
      g_string_append_c (out, ',');
      td_csv_append (out, row->advice);
      g_string_append_c (out, '\n');
    }
}

/* ---- JSON ---- */

static void
json_place (TdJson *j, const TdExplainRow *row)
{
  td_json_member_string (j, "file", row->line > 0 ? row->file : NULL);
  td_json_member_int (j, "line", row->line);
}

static void
json_row (TdJson *j, const TdExplainRow *row)
{
  td_json_begin_object (j);
  if (row->section != TD_EXPLAIN_REMARK)
    td_json_member_string (j, "guard", row->guard);
  td_json_member_string (j, "title", row->title);
  td_json_member_string (j, "text", row->text);
  if (row->section == TD_EXPLAIN_PASS)
    {
      td_json_member_int (j, "before", row->before);
      td_json_member_int (j, "after", row->after);
    }
  else
    json_place (j, row);
  if (row->section == TD_EXPLAIN_REMARK)
    td_json_member_int (j, "step", row->step);
  if (row->section == TD_EXPLAIN_REASON)
    {
      td_json_member_int (j, "calls", row->n);
      td_json_member_int (j, "traced", row->n_traced);
      td_json_member_int (j, "code", row->n_code);
      td_json_member_int (j, "timed", row->n_timed);
      td_json_key (j, "cost_ns");
      if (row->n_timed > 0)
        td_json_double (j, row->cost_ns);
      else
        td_json_null (j);
    }
  if (row->section == TD_EXPLAIN_GUARD)
    {
      td_json_member_int (j, "guards", row->n);
      td_json_member_int (j, "failed", row->n_misses);
    }
  if (row->section <= TD_EXPLAIN_ONCE)
    {
      td_json_member_int (j, "first", row->first);
      td_json_member_int (j, "last", row->last);
      td_json_member_string (j, "advice", row->advice);
    }
}

static void
json_function (TdJson *j, const TdExplain *e, guint function)
{
  static const char *const lists[]
      = { "reasons", "breaks", "differences", "ran_once", "guards", "passes" };
  const TdExplainCalls *calls = &e->calls[function];

  td_json_begin_object (j);
  td_json_member_string (j, "name", e->statics->functions[function].name);
  td_json_member_string (j, "site", e->statics->functions[function].site);
  td_json_member_int (j, "schedule", e->statics->functions[function].schedule);
  td_json_member_int (j, "replays", (gint64)calls->n_replayed);
  td_json_member_int (j, "code", (gint64)calls->n_code);
  td_json_member_int (j, "explained", calls->n_explained);
  td_json_member_double (j, "replay_ns", calls->replay_ns);
  for (int list = 0; list < (int)G_N_ELEMENTS (lists); list++)
    {
      td_json_key (j, lists[list]);
      td_json_begin_array (j);
      for (guint i = 0; i < e->n_rows; i++)
        {
          if (e->rows[i].function != function || (int)e->rows[i].section != list)
            continue;
          json_row (j, &e->rows[i]);
          if (list == TD_EXPLAIN_PASS)
            {
              td_json_key (j, "remarks");
              td_json_begin_array (j);
              for (; i + 1 < e->n_rows && e->rows[i + 1].section == TD_EXPLAIN_REMARK; i++)
                {
                  json_row (j, &e->rows[i + 1]);
                  td_json_end_object (j);
                }
              td_json_end_array (j);
            }
          td_json_end_object (j);
        }
      td_json_end_array (j);
    }
  td_json_end_object (j);
}

char *
td_explain_print (const TdExplain *e, gint function, const char *format)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  if (g_str_equal (format, "csv"))
    print_csv (out, e, function);
  else if (g_str_equal (format, "json"))
    {
      td_json_init (&j, out);
      td_json_begin_object (&j);
      td_json_member_int (&j, "iteration", e->statics->iteration);
      td_json_key (&j, "functions");
      td_json_begin_array (&j);
      for (guint i = 0; i < e->statics->n_functions; i++)
        if (function < 0 || (guint)function == i)
          json_function (&j, e, i);
      td_json_end_array (&j);
      td_json_end_object (&j);
    }
  else
    for (guint i = 0; i < e->statics->n_functions; i++)
      if (function < 0 || (guint)function == i)
        {
          g_string_append (out, i > 0 && function < 0 ? "\n" : "");
          print_function (out, e, i);
        }
  return g_string_free (out, FALSE);
}
