/*
 * The rows, marks and totals of a comparison.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-compare.h"

#include <string.h>

/* ---- rows ---- */

static TdMark
mark_of (const TdDiffPair *pair)
{
  static const TdMark marks[TD_DIFF_N_KINDS] = { [TD_DIFF_SAME] = TD_MARK_NONE,
                                                 [TD_DIFF_CHANGED] = TD_MARK_CHANGED,
                                                 [TD_DIFF_REMOVED] = TD_MARK_REMOVED,
                                                 [TD_DIFF_ADDED] = TD_MARK_ADDED,
                                                 [TD_DIFF_FUSED] = TD_MARK_FUSED };
  guint structure = pair->aspects & ~(guint)(TD_DIFF_NUMBERS | TD_DIFF_MODE);

  if (pair->kind == TD_DIFF_CHANGED && !structure)
    return TD_MARK_NUMBERS;
  return marks[pair->kind];
}

static void
mark_events (TdCompare *self, const TdDiffPair *pair, TdMark mark)
{
  for (guint side = 0; side < TD_N_SIDES; side++)
    {
      guint n = 0;
      const guint32 *events
          = pair->event[side] >= 0 ? td_diff_get_events (self->diff, pair, side, &n) : NULL;

      for (guint i = 0; i < n; i++)
        {
          self->numbers[side][events[i]] = (guint8)mark;
          if (mark != TD_MARK_NUMBERS)
            self->marks[side][events[i]] = (guint8)mark;
        }
    }
}

static void
make_rows (TdCompare *self)
{
  const TdDiff *d = self->diff;

  for (guint i = 0; i < d->n_pairs; i++)
    {
      const TdDiffPair *pair = &d->pairs[i];
      TdSide side = pair->event[TD_SIDE_A] >= 0 ? TD_SIDE_A : TD_SIDE_B;
      guint phase = td_iteration_get_tape (d->side[side])->events[pair->event[side]].phase;

      self->rows[i] = (TdCompareRow){ .event = { pair->event[0], pair->event[1] },
                                      .item = -1,
                                      .phase = MIN (phase, TD_TAPE_N_PHASES - 1) };
    }
  for (guint i = 0; i < d->n_items; i++)
    {
      const TdDiffPair *pair = &d->pairs[d->items[i]];
      TdMark mark = mark_of (pair);

      self->rows[d->items[i]].item = (gint)i;
      self->rows[d->items[i]].mark = mark;
      mark_events (self, pair, mark);
      self->n_structural += mark != TD_MARK_NUMBERS;
      self->n_numeric += mark == TD_MARK_NUMBERS;
    }
}

TdCompare *
td_compare_new (TdIteration *a, TdIteration *b, TdTapeReader *reader_a, TdTapeReader *reader_b)
{
  TdCompare *self = g_new0 (TdCompare, 1);

  self->diff = td_diff_new (a, b, reader_a, reader_b);
  self->n_rows = self->diff->n_pairs;
  self->rows = g_new (TdCompareRow, MAX (self->n_rows, 1));
  for (guint side = 0; side < TD_N_SIDES; side++)
    {
      guint n = MAX (td_iteration_get_n_events (self->diff->side[side]), 1);

      self->of[side] = self->diff->side[side];
      self->marks[side] = g_new0 (guint8, n);
      self->numbers[side] = g_new0 (guint8, n);
    }
  make_rows (self);
  return self;
}

TdCompare *
td_compare_new_of_files (TdIteration *a, const char *path_a, TdIteration *b, const char *path_b)
{
  const char *paths[] = { path_a, path_b };
  TdTapeReader *readers[2];
  char error[256];
  for (int side = 0; side < 2; side++)
    readers[side] = *paths[side] != '\0'
                        ? td_tape_reader_open_bounded (paths[side], 1, error, sizeof error)
                        : NULL;
  TdCompare *compare
      = td_compare_new (a, b, readers[0], readers[g_str_equal (path_a, path_b) ? 0 : 1]);
  for (int side = 0; side < 2; side++)
    if (readers[side] != NULL)
      td_tape_reader_free (readers[side]);
  return compare;
}

void
td_compare_free (TdCompare *self)
{
  if (!self)
    return;
  for (guint side = 0; side < TD_N_SIDES; side++)
    {
      g_free (self->marks[side]);
      g_free (self->numbers[side]);
    }
  g_free (self->rows);
  td_diff_unref (self->diff);
  g_free (self);
}

gint
td_compare_counterpart (const TdCompare *self, TdSide side, gint event)
{
  if (event < 0 || (guint)event >= td_iteration_get_n_events (self->of[side]))
    return -1;
  return self->diff->partner[side][event];
}

gint
td_compare_find_row (const TdCompare *self, TdSide side, gint event)
{
  return event >= 0 ? td_diff_get_pair (self->diff, side, (guint)event) : -1;
}

/* ---- words ---- */

char *
td_compare_row_name (const TdCompare *self, guint row)
{
  g_autofree char *title = td_diff_dup_title (self->diff, &self->diff->pairs[row]);

  return g_utf8_make_valid (title, -1);
}

static void
append_events (const TdCompare *self, GString *text, guint row, TdSide side)
{
  const TdDiffPair *pair = &self->diff->pairs[row];
  guint n = 0;
  const guint32 *events
      = pair->event[side] >= 0 ? td_diff_get_events (self->diff, pair, side, &n) : NULL;

  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? ", " : "", events[i]);
  if (n == 0)
    g_string_append (text, "none");
}

char *
td_compare_row_events (const TdCompare *self, guint row)
{
  GString *text = g_string_new (NULL);

  append_events (self, text, row, TD_SIDE_A);
  g_string_append (text, " → ");
  append_events (self, text, row, TD_SIDE_B);
  return g_string_free (text, FALSE);
}

char *
td_compare_row_detail (const TdCompare *self, guint row)
{
  const TdDiffPair *pair = &self->diff->pairs[row];
  TdSide side = pair->event[TD_SIDE_A] >= 0 ? TD_SIDE_A : TD_SIDE_B;
  g_autofree char *site = td_diff_dup_site (self->diff, pair, side),
                  *what = td_diff_dup_what (self->diff, pair),
                  *title = td_diff_dup_title (self->diff, pair);
  const char *parts[]
      = { td_iteration_get_link_path (self->of[side], (guint)pair->event[side]), site, what };
  GString *text = g_string_new (NULL);
  char *valid;

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      /* what is missing is said by the mark, another operation by the name */
      gboolean known = i < 2 || (pair->kind == TD_DIFF_CHANGED && strcmp (what, title) != 0);

      if (*parts[i] && known)
        g_string_append_printf (text, "%s%s", text->len ? " · " : "", parts[i]);
    }
  valid = g_utf8_make_valid (text->str, -1);
  g_string_free (text, TRUE);
  return valid;
}

guint64
td_compare_row_ns (const TdCompare *self, guint row, TdSide side)
{
  return self->rows[row].event[side] >= 0 ? self->diff->pairs[row].ns[side] : 0;
}

guint64
td_compare_row_bytes (const TdCompare *self, guint row, TdSide side)
{
  return self->rows[row].event[side] >= 0 ? self->diff->pairs[row].bytes[side] : 0;
}

/* ---- numbers ---- */

static const char *
format_change (char out[TD_FORMAT_SIZE], guint64 a, guint64 b,
               const char *(*format) (char out[TD_FORMAT_SIZE], guint64 n))
{
  char text[TD_FORMAT_SIZE];

  if (a == b)
    g_strlcpy (out, "0", TD_FORMAT_SIZE);
  else
    {
      format (text, a > b ? a - b : b - a);
      g_snprintf (out, TD_FORMAT_SIZE, "%s%.30s", a > b ? "−" : "+", text);
    }
  return out;
}

const char *
td_compare_format_ns (char out[TD_FORMAT_SIZE], guint64 a, guint64 b)
{
  return format_change (out, a, b, td_format_ns);
}

const char *
td_compare_format_bytes (char out[TD_FORMAT_SIZE], guint64 a, guint64 b)
{
  return format_change (out, a, b, td_format_bytes);
}

/* With its share, unless that says nothing, and what the numbers are. */
static void
append_cost (GString *text, guint64 a, guint64 b, gboolean with_share, const char *what,
             const char *(*format) (char out[TD_FORMAT_SIZE], guint64 n))
{
  char from[TD_FORMAT_SIZE], to[TD_FORMAT_SIZE];
  double share = with_share && a > 0 ? 100 * ((double)b - (double)a) / (double)a : 0;
  const char *sign = share < 0 ? "−" : "+", *between = *what ? ", " : "";

  format (from, a);
  format (to, b);
  g_string_append (text, from);
  if (strcmp (from, to) != 0)
    g_string_append_printf (text, " → %s", to);
  if (ABS (share) >= 0.5)
    g_string_append_printf (text, " (%s%.0f %%%s%s)", sign, ABS (share), between, what);
  else if (*what)
    g_string_append_printf (text, " (%s)", what);
}

char *
td_compare_cost (const TdCompare *self)
{
  const TdDiffTotals *a = &self->diff->totals[TD_SIDE_A], *b = &self->diff->totals[TD_SIDE_B];
  g_autofree char *times = td_diff_dup_times (self->diff);
  GString *text = g_string_new (NULL);

  if (a->n_events == b->n_events)
    g_string_append_printf (text, "%u %s in ", a->n_events,
                            td_plural (a->n_events, "operation", "operations"));
  else
    g_string_append_printf (text, "%u → %u %s in ", a->n_events, b->n_events,
                            td_plural (b->n_events, "operation", "operations"));
  append_cost (text, a->op_ns, b->op_ns, td_diff_has_medians (self->diff), times, td_format_ns);
  g_string_append (text, ", peak ");
  append_cost (text, a->peak_bytes, b->peak_bytes, TRUE, "", td_format_bytes);
  return g_string_free (text, FALSE);
}

/* ---- as text ---- */

static void
print_text_row (const TdCompare *self, GString *out, guint i)
{
  const TdCompareRow *row = &self->rows[i];
  g_autofree char *name = td_compare_row_name (self, i),
                  *detail = td_compare_row_detail (self, i),
                  *events = td_compare_row_events (self, i);
  char ns[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];

  g_string_append_printf (out, "%s %-8s %-14s %-36s %12s %12s  %s\n",
                          row->mark == TD_MARK_NONE ? " " : td_mark_looks[row->mark].glyph,
                          td_tape_phase_name (row->phase), events, name,
                          td_compare_format_ns (ns, td_compare_row_ns (self, i, TD_SIDE_A),
                                                td_compare_row_ns (self, i, TD_SIDE_B)),
                          td_compare_format_bytes (bytes,
                                                   td_compare_row_bytes (self, i, TD_SIDE_A),
                                                   td_compare_row_bytes (self, i, TD_SIDE_B)),
                          detail);
}

static void
append_event (GString *out, gint event)
{
  if (event >= 0)
    g_string_append_printf (out, "%d", event);
  g_string_append_c (out, ',');
}

static void
print_csv_row (const TdCompare *self, GString *out, guint i)
{
  const TdCompareRow *row = &self->rows[i];
  g_autofree char *name = td_compare_row_name (self, i),
                  *detail = td_compare_row_detail (self, i);

  g_string_append_printf (out, "%s,%s,", td_mark_looks[row->mark].name,
                          td_tape_phase_name (row->phase));
  td_csv_append (out, name);
  g_string_append_c (out, ',');
  td_csv_append (out, detail);
  g_string_append_c (out, ',');
  append_event (out, row->event[TD_SIDE_A]);
  append_event (out, row->event[TD_SIDE_B]);
  for (int side = 0; side < TD_N_SIDES; side++)
    g_string_append_printf (out, "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "%s",
                            td_compare_row_ns (self, i, (TdSide)side),
                            td_compare_row_bytes (self, i, (TdSide)side), side ? "\n" : ",");
}

char *
td_compare_print (const TdCompare *self, const char *format, gboolean everything)
{
  gboolean csv = strcmp (format, "csv") == 0;
  GString *out = g_string_new (NULL);

  if (csv)
    g_string_append (out,
                     "mark,phase,operation,where,event_a,event_b,ns_a,bytes_a,ns_b,bytes_b\n");
  else
    {
      g_autofree char *sentence = td_diff_sentence (self->diff), *cost = td_compare_cost (self);

      g_string_append_printf (out, "%s\n%s\n", sentence, cost);
    }
  for (guint i = 0; i < self->n_rows; i++)
    if (everything || self->rows[i].item >= 0)
      (csv ? print_csv_row : print_text_row) (self, out, i);
  return g_string_free (out, FALSE);
}
