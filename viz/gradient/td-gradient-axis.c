/*
 * Which iterations the columns of the gradients are of, and which one of them each shows.
 *
 * A column's iterations are a power of two: when a run grows, two columns become one, and what
 * that shows is what one of the two showed. Nothing is loaded anew.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-gradient-private.h"

/* ---- ranges ---- */

TdGradientRange
td_gradient_range_run (TdTapeReader *reader, gint64 at)
{
  TdTapeSummaries s = td_tape_reader_summaries (reader);
  TdGradientRange range = { .first = at, .last = at, .n = TD_GRADIENT_COLUMNS };

  if (s.n > 0)
    {
      range.first = MIN (at, (gint64)s.rows[0].number);
      range.last = MAX (at, (gint64)s.rows[s.n - 1].number);
    }
  return range;
}

TdGradientRange
td_gradient_range_newest (TdTapeReader *reader, gint64 at, guint n)
{
  TdGradientRange range = td_gradient_range_run (reader, at);

  range.last = at;
  range.first = MAX (range.first, at - (gint64)MAX (n, 1) + 1);
  range.n = MAX (n, 1);
  return range;
}

TdGradientRange
td_gradient_range_narrow (TdGradientRange range, TdRange to)
{
  gint64 first = MAX (range.first, to.first), last = MIN (range.last, to.end - 1);

  if (!td_range_is_all (to) && first <= last)
    {
      range.first = first;
      range.last = last;
    }
  return range;
}

/* ---- columns ---- */

TdGradientAxis *
td__gradient_axis_new (const TdGradientRange *range, guint max)
{
  TdGradientAxis *a = g_new0 (TdGradientAxis, 1);
  gint64 n = MAX (range->last - range->first, 0) + 1;

  max = MAX (1, MIN (max, range->n));
  a->first = range->first;
  a->last = range->first + n - 1;
  for (a->width = 1; (n - 1) / a->width + 1 > (gint64)max;)
    a->width *= 2;
  a->n = (guint)((n - 1) / a->width + 1);
  a->shown = g_new (gint64, a->n);
  for (guint c = 0; c < a->n; c++)
    a->shown[c] = -1;
  return a;
}

void
td__gradient_axis_free (TdGradientAxis *axis)
{
  g_free (axis->shown);
  g_free (axis);
}

gint
td__gradient_axis_find (const TdGradientAxis *axis, gint64 iteration)
{
  if (iteration < axis->first || iteration > axis->last)
    return -1;
  return (gint)((iteration - axis->first) / axis->width);
}

GArray *
td__gradient_axis_list (const TdGradientAxis *axis)
{
  GArray *list = g_array_new (FALSE, FALSE, sizeof (gint64));

  for (guint c = 0; c < axis->n; c++)
    if (axis->shown[c] >= 0)
      g_array_append_val (list, axis->shown[c]);
  return list;
}

/* ---- what they show ---- */

static guint
rank_of (guint32 flags)
{
  return flags & TD_TAPE_ITERATION_NAN ? 2 : flags & TD_TAPE_ITERATION_INF ? 1 : 0;
}

/* Whether an iteration is shown rather than the one that is: a finding before none, and where
 * it began; of the others the newest. */
static gboolean
is_rather (gint64 a, guint rank_a, gint64 b, guint rank_b)
{
  if (b < 0 || rank_a != rank_b)
    return b < 0 || rank_a > rank_b;
  return rank_a > 0 ? a < b : a > b;
}

/* Asking the file is slow where all of a long run was thinned: once for each is enough. */
static gboolean
is_there (TdGradientTable *table, TdTapeReader *reader, guint32 i)
{
  const TdTapeSummary *row = &td_tape_reader_summaries (reader).rows[i];
  gint64 number = (gint64)row->number;
  gpointer seq;

  if (g_hash_table_lookup_extended (table->gone, &number, NULL, &seq)
      && GPOINTER_TO_UINT (seq) == row->seq)
    return FALSE;
  if (td_tape_reader_stored (reader, i))
    return TRUE;
  g_hash_table_insert (table->gone, g_memdup2 (&number, sizeof number),
                       GUINT_TO_POINTER (row->seq));
  return FALSE;
}

void
td__gradient_axis_choose (TdGradientAxis *axis, TdGradientTable *table, TdTapeReader *reader)
{
  TdTapeSummaries s = td_tape_reader_summaries (reader);
  g_autofree guint8 *ranks = g_malloc0 (axis->n);

  /* from the newest on: of most columns the first that is looked at is the one */
  for (guint32 i = s.n; i-- > 0;)
    {
      gint64 number = (gint64)s.rows[i].number;
      gint c = td__gradient_axis_find (axis, number);
      guint rank = rank_of (s.rows[i].flags);

      if (c < 0 || !is_rather (number, rank, axis->shown[c], ranks[c])
          || !is_there (table, reader, i))
        continue;
      axis->shown[c] = number;
      ranks[c] = (guint8)rank;
    }
}

TdGradientAxis *
td__gradient_axis_of (const TdGradientTable *table, const TdGradientRange *range, guint max)
{
  TdGradientAxis *axis = td__gradient_axis_new (range, max);
  g_autofree guint8 *ranks = g_malloc0 (axis->n);
  GHashTableIter iter;
  gpointer key, value;

  g_hash_table_iter_init (&iter, table->columns);
  while (g_hash_table_iter_next (&iter, &key, &value))
    {
      gint64 number = *(gint64 *)key;
      gint c = td__gradient_axis_find (axis, number);
      guint rank = rank_of (((TdGradientColumn *)value)->flags);

      if (c < 0 || !is_rather (number, rank, axis->shown[c], ranks[c]))
        continue;
      axis->shown[c] = number;
      ranks[c] = (guint8)rank;
    }
  return axis;
}
