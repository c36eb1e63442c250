/*
 * Collecting gradient norms by parameter and iteration.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-gradient-private.h"

/* A program that runs for ever brings more columns than are ever looked at. */
#define MAX_COLUMNS 512
/* How far to look for an update beside an iteration without one. */
#define MAX_AROUND 8

static gint
by_first_event (gconstpointer a, gconstpointer b, gpointer data)
{
  const TdGradientTable *t = data;
  guint i = *(const guint *)a, k = *(const guint *)b;
  guint x = g_array_index (t->rows, TdGradientRow, i).first_event;
  guint y = g_array_index (t->rows, TdGradientRow, k).first_event;

  return x != y ? (x > y) - (x < y) : (i > k) - (i < k);
}

void
td__gradient_sort_rows (TdGradientTable *t)
{
  g_array_set_size (t->order, t->rows->len);
  for (guint i = 0; i < t->rows->len; i++)
    g_array_index (t->order, guint, i) = i;
  g_array_sort_with_data (t->order, by_first_event, t);
}

TdGradientTable *
td_gradient_table_new (TdTapeReader *reader)
{
  TdGradientTable *t = g_new0 (TdGradientTable, 1);

  t->rows = g_array_new (FALSE, TRUE, sizeof (TdGradientRow));
  t->order = g_array_new (FALSE, FALSE, sizeof (guint));
  t->row_of_path = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  t->columns
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, td__gradient_column_free);
  t->taken = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  t->gone = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  for (guint i = 0; reader && i < td_tape_reader_n_parameters (reader); i++)
    {
      const TdTapeParameter *p = td_tape_reader_parameter (reader, i);

      if (!(p->flags & TD_TAPE_PARAMETER_PERSISTENT)) /* nothing is to reach those */
        td__gradient_row (t, td_tape_reader_string (reader, p->path), p->key);
    }
  td__gradient_sort_rows (t);
  return t;
}

void
td_gradient_table_free (TdGradientTable *t)
{
  if (!t)
    return;
  for (guint i = 0; i < t->rows->len; i++)
    g_free (g_array_index (t->rows, TdGradientRow, i).path);
  g_array_unref (t->rows);
  g_array_unref (t->order);
  g_hash_table_unref (t->row_of_path);
  g_hash_table_unref (t->columns);
  g_hash_table_unref (t->taken);
  g_hash_table_unref (t->gone);
  g_free (t);
}

guint
td__gradient_row (TdGradientTable *t, const char *path, guint64 key)
{
  gpointer found;
  TdGradientRow row = { g_strdup (path), key, G_MAXUINT };

  if (g_hash_table_lookup_extended (t->row_of_path, path, NULL, &found))
    {
      g_free (row.path);
      return GPOINTER_TO_UINT (found);
    }
  g_hash_table_insert (t->row_of_path, g_strdup (path), GUINT_TO_POINTER (t->rows->len));
  g_array_append_val (t->rows, row);
  return t->rows->len - 1;
}

static const char *
iteration_string (gconstpointer data, guint32 id)
{
  return td_iteration_get_string (data, id);
}

static const char *
iteration_path (gconstpointer data, guint32 id)
{
  return td_iteration_get_path_name (data, id);
}

static const char *
iteration_op (gconstpointer data, const TdTapeEvent *event)
{
  return td_iteration_get_op_name (data, (guint)(event - td_iteration_get_tape (data)->events));
}

static const char *
reader_string (gconstpointer data, guint32 id)
{
  return td_tape_reader_string (data, id);
}

static const char *
reader_path (gconstpointer data, guint32 id)
{
  return td_tape_reader_path_text (data, id);
}

static const char *
reader_op (gconstpointer data, const TdTapeEvent *event)
{
  return td_tape_reader_op_name (data, event->opdef);
}

void
td_gradient_table_add (TdGradientTable *table, const TdIteration *iteration)
{
  TdGradientNames names = { iteration_string, iteration_path, iteration_op, iteration };
  const TdTapeIteration *t = td_iteration_get_tape (iteration);

  td__gradient_add_column (table, t, t->flags, !td_iteration_is_complete (iteration), &names);
}

/* What was thinned since it was read cannot be gone to any more. */
static void
forget_thinned (TdGradientTable *table, TdTapeReader *reader, gint64 at)
{
  TdTapeSummaries s = td_tape_reader_summaries (reader);
  gint64 newest = s.n > 0 ? (gint64)s.rows[s.n - 1].number : -1;
  GHashTableIter iter;
  gpointer key;

  g_hash_table_iter_init (&iter, table->columns);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    {
      gint64 number = *(gint64 *)key;
      gint64 row = td_tape_reader_find (reader, (guint64)number);

      /* the one that runs has no summary yet */
      if (number != at && number <= newest
          && (row < 0 || !td_tape_reader_stored (reader, (guint32)row)))
        g_hash_table_iter_remove (&iter);
    }
}

/* Of the columns, those that are shown stay; others come again when they are looked at. */
static void
forget_columns (TdGradientTable *table, const TdGradientAxis *axis, gint64 at)
{
  GHashTableIter iter;
  gpointer key;

  if (g_hash_table_size (table->columns) < MAX (4 * axis->n, MAX_COLUMNS))
    return;
  g_hash_table_iter_init (&iter, table->columns);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    {
      gint64 number = *(gint64 *)key;
      gint c = td__gradient_axis_find (axis, number);

      if (number != at && (c < 0 || axis->shown[c] != number))
        g_hash_table_iter_remove (&iter);
    }
}

/* Reads an iteration that ended, unless the table has it as it ended. FALSE: there was nothing
 * to read. */
static gboolean
load_one (TdGradientTable *table, TdTapeReader *reader, gint64 number)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &number);
  TdGradientNames names = { reader_string, reader_path, reader_op, reader };
  TdTapeSummary row;
  char error[160];

  if ((c && !c->partial) || number < 0
      || !td_tape_reader_look_up (reader, (guint64)number, &row))
    return FALSE;
  const TdTapeIteration *t = td_tape_iteration_load_row (reader, &row, error, sizeof error);
  if (!t)
    return FALSE;
  td__gradient_add_column (table, t, row.flags, FALSE, &names);
  td_tape_iteration_free (t);
  return TRUE;
}

static gboolean
is_sought (const TdGradientTable *table, gint64 number)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &number);

  return c && c->sought != G_MAXUINT;
}

/* Learns from the iterations nearest to this one which variables are gradients. What follows on
 * an update that was left out has one, mostly; a program without an optimizer has none. */
static void
learn_around (TdGradientTable *table, TdTapeReader *reader, gint64 number)
{
  const TdGradientNames names = { reader_string, reader_path, reader_op, reader };
  const TdTapeSummaries s = td_tape_reader_summaries (reader);
  const gint64 at = td_tape_reader_find (reader, (guint64)number);
  char error[160];

  for (gint64 far = 1; at >= 0 && far <= MAX_AROUND; far++)
    for (gint64 i = at - far; i <= at + far; i += 2 * far)
      {
        const TdTapeIteration *t = NULL;

        if (i >= 0 && i < s.n && g_hash_table_size (table->taken) == 0)
          t = td_tape_iteration_load_row (reader, &s.rows[i], error, sizeof error);
        if (!t)
          continue;
        td__gradient_learn (table, t, &names);
        td_tape_iteration_free (t);
      }
  table->looked_around = TRUE;
}

/* Reads again what was read before it was known which variables are gradients. */
static void
load_sought (TdGradientTable *table, TdTapeReader *reader, gint64 number)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &number);

  if (!c || c->partial || c->sought >= g_hash_table_size (table->taken))
    return;
  g_hash_table_remove (table->columns, &number);
  load_one (table, reader, number);
}

void
td_gradient_table_load (TdGradientTable *table, TdTapeReader *reader,
                        const TdGradientRange *range, gint64 at)
{
  td_gradient_table_load_until (table, reader, range, at, G_MAXINT64);
}

gboolean
td_gradient_table_load_until (TdGradientTable *table, TdTapeReader *reader,
                              const TdGradientRange *range, gint64 at, gint64 until_us)
{
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_new (range, range->n);

  forget_thinned (table, reader, at);
  td__gradient_axis_choose (axis, table, reader);
  forget_columns (table, axis, at);
  load_one (table, reader, at);
  for (guint c = axis->n; c-- > 0;) /* the newest are looked at first */
    if (load_one (table, reader, axis->shown[c]) && c > 0 && g_get_monotonic_time () > until_us)
      return FALSE;
  for (guint c = 0; c < axis->n; c++)
    if (g_hash_table_size (table->taken) == 0 && !table->looked_around
        && is_sought (table, axis->shown[c]))
      learn_around (table, reader, axis->shown[c]);
  for (guint c = 0; c < axis->n; c++)
    load_sought (table, reader, axis->shown[c]);
  return TRUE;
}

guint
td_gradient_table_n_rows (const TdGradientTable *table)
{
  return table->rows->len;
}

static const TdGradientRow *
stored (const TdGradientTable *table, guint row)
{
  return &g_array_index (table->rows, TdGradientRow, g_array_index (table->order, guint, row));
}

const char *
td_gradient_table_path (const TdGradientTable *table, guint row)
{
  return stored (table, row)->path;
}

guint64
td_gradient_table_key (const TdGradientTable *table, guint row)
{
  return stored (table, row)->key;
}

TdCell
td_gradient_table_norm (const TdGradientTable *table, guint row, gint64 iteration, double *norm)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);

  *norm = NAN;
  row = g_array_index (table->order, guint, row);
  if (!c || row >= c->n)
    return TD_CELL_MISSING;
  *norm = c->norm[row];
  return c->cell[row];
}

TdMissing
td__gradient_missing (const TdGradientTable *table, guint row, gint64 iteration)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);

  row = g_array_index (table->order, guint, row);
  return c && row < c->n ? (TdMissing)c->missing[row] : TD_MISSING_NO;
}

/* One of several optimizers that take turns updates it in iterations of its own. */
static gboolean
is_updated_elsewhere (const TdGradientTable *table, guint row)
{
  GHashTableIter iter;
  gpointer column;

  row = g_array_index (table->order, guint, row);
  g_hash_table_iter_init (&iter, table->columns);
  while (g_hash_table_iter_next (&iter, NULL, &column))
    {
      const TdGradientColumn *c = column;

      if (c->updated && row < c->n && c->missing[row] == TD_MISSING_NO)
        return TRUE;
    }
  return FALSE;
}

const char *
td_gradient_table_missing (const TdGradientTable *table, guint row, gint64 iteration)
{
  TdMissing missing = td__gradient_missing (table, row, iteration);
  static const char *const reasons[] = {
    [TD_MISSING_NO] = NULL,
    [TD_MISSING_UNUSED] = "not used in the forward pass, so no gradient reached it",
    [TD_MISSING_CUT] = "used, but no gradient reached it: the path from the loss is cut",
    [TD_MISSING_UNHELD] = "no optimizer updated it",
  };

  if (missing == TD_MISSING_UNHELD && is_updated_elsewhere (table, row))
    return "not updated in this iteration, only in others";
  return reasons[missing];
}

TdCell
td__gradient_born (const TdGradientTable *table, guint row, gint64 iteration, double *norm)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);

  *norm = NAN;
  row = g_array_index (table->order, guint, row);
  if (!c || row >= c->n)
    return TD_CELL_MISSING;
  *norm = c->born[row];
  return c->born_cell[row];
}

gboolean
td__gradient_is_rounding (const TdGradientTable *table, guint row, gint64 iteration)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);

  row = g_array_index (table->order, guint, row);
  return c && row < c->n && c->rounding[row];
}

const TdSpread *
td__gradient_spread (const TdGradientTable *table, guint row, gint64 iteration, guint of)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);
  const TdSpread *spread;

  row = g_array_index (table->order, guint, row);
  if (!c || row >= c->n || !c->spread)
    return NULL;
  spread = &c->spread[row * TD_N_SPREADS + of];
  return spread->is_known ? spread : NULL;
}

guint64
td__gradient_n_elements (const TdGradientTable *table, guint row, gint64 iteration)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);

  row = g_array_index (table->order, guint, row);
  return c && row < c->n ? c->n_elements[row] : 0;
}

gboolean
td__gradient_updated (const TdGradientTable *table, gint64 iteration)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);

  return c && c->updated;
}

TdGradientClip
td_gradient_table_clip (const TdGradientTable *table, gint64 iteration)
{
  const TdGradientColumn *c = g_hash_table_lookup (table->columns, &iteration);

  return c ? c->clip : (TdGradientClip){ 0 };
}

guint
td__gradient_count_clipped (const TdGradientTable *table, const GArray *columns,
                            guint *n_clipped)
{
  guint n_known = 0;

  *n_clipped = 0;
  for (guint i = 0; i < columns->len; i++)
    {
      TdGradientClip clip = td_gradient_table_clip (table, g_array_index (columns, gint64, i));

      n_known += clip.n_hooked > 0 && clip.known;
      *n_clipped += clip.n_hooked > 0 && clip.known && clip.clipped;
    }
  return n_known;
}

gboolean
td__gradient_knows_norms (const TdGradientTable *table, const GArray *columns)
{
  double norm;

  for (guint c = 0; c < columns->len; c++)
    for (guint row = 0; row < table->rows->len; row++)
      if (td_gradient_table_norm (table, row, g_array_index (columns, gint64, c), &norm)
          != TD_CELL_MISSING)
        return TRUE;
  return FALSE;
}

char *
td__gradient_dup_skipped (const TdGradientTable *table, const GArray *columns)
{
  guint n_skipped = 0, n = 0, n_last = 0;
  gint64 since = -1;

  for (guint i = 0; i < columns->len; i++)
    {
      gint64 number = g_array_index (columns, gint64, i);
      const TdGradientColumn *c = g_hash_table_lookup (table->columns, &number);

      if (!c || !(c->skipped || c->updated))
        continue;
      n++;
      n_skipped += c->skipped;
      n_last = c->skipped ? n_last + 1 : 0;
      since = n_last == 1 ? number : since;
    }
  if (n_last >= 3)
    return g_strdup_printf ("Updates are skipped since iteration %" G_GINT64_FORMAT
                            ": gradients are not finite under the loss scale",
                            since);
  if (2 * n_skipped > n)
    return g_strdup_printf (
        "%u of %u updates were skipped: gradients were not finite under the "
        "loss scale",
        n_skipped, n);
  return NULL;
}

gboolean
td__gradient_why_nothing (const TdGradientTable *table, const GArray *columns,
                          const char **title, const char **text)
{
  gboolean updated = FALSE;

  *title = *text = NULL;
  for (guint c = 0; c < columns->len; c++)
    updated |= td__gradient_updated (table, g_array_index (columns, gint64, c));
  if (table->rows->len == 0)
    {
      *title = "No parameters";
      *text = "The program has not announced any parameter yet.";
    }
  else if (columns->len == 0)
    {
      *title = "No gradients recorded";
      *text = "Record with --level stats to see norms by iteration.";
    }
  else if (!updated && !td__gradient_knows_norms (table, columns))
    {
      *title = "No optimizer update in these iterations";
      *text = "Gradients are known by where an optimizer takes them, or by the graph where "
              "that is plain and their numbers are recorded.";
    }
  return *title != NULL;
}
