/*
 * What one iteration says of the gradients: one entry per parameter.
 *
 * An optimizer enters every parameter that it updates, and fills in zeros where no gradient is.
 * Who reads those zeros sees a parameter that is dead, or with noise or decay added one that is
 * alive; so what is missing is found by who wrote the gradient, not by its numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-gradient-private.h"

/* The iteration while a column is made of it; all by variable. */
typedef struct
{
  TdGradientTable *table;
  TdGradientColumn *c;
  const TdTapeIteration *t;
  const TdGradientNames *names;
  guint *first_reader; /* see first_readers */
  gint *writer;        /* the last event that wrote it, before the update; -1: none */
  const TdTapeStats **last, **born; /* the last word, and that before the update */
  gint *copied;                     /* the variable whose copy it is, before hooks; -1: none */
  double *scale;                    /* that the update took off, 1 where it did not */
  gboolean has_backward;
} Source;

static gboolean
is_update (const TdTapeIteration *t, guint32 event)
{
  return event < t->n_events && t->events[event].phase == TD_TAPE_PHASE_UPDATE;
}

/* Finds for each variable the first operation of the forward pass that read it, and as which
 * argument, as one number that sorts; G_MAXUINT if none did. Owner: the caller. */
static guint *
first_readers (const TdTapeIteration *t)
{
  guint *first = g_new (guint, MAX (t->n_vars, 1));

  memset (first, 0xff, MAX (t->n_vars, 1) * sizeof *first);
  for (guint e = t->n_events; e-- > 0;)
    if (t->events[e].phase == TD_TAPE_PHASE_FORWARD)
      for (guint k = 0; k < t->events[e].n_in; k++)
        first[t->ins[t->events[e].first_in + k]] = e * 256 + MIN (k, 255u);
  return first;
}

static void
find_writers (Source *s)
{
  const TdTapeIteration *t = s->t;

  s->writer = g_new (gint, MAX (t->n_vars, 1));
  memset (s->writer, 0xff, MAX (t->n_vars, 1) * sizeof *s->writer);
  for (guint e = 0; e < t->n_events; e++)
    {
      s->has_backward |= t->events[e].phase == TD_TAPE_PHASE_BACKWARD;
      for (guint k = 0; k < t->events[e].n_out && !is_update (t, e); k++)
        s->writer[t->outs[t->events[e].first_out + k]] = (gint)e;
    }
}

/* The last word on a variable that was written more than once, and the last before an operation
 * of the update, a hook's, wrote there too. */
static void
find_stats (Source *s)
{
  const TdTapeIteration *t = s->t;

  s->last = g_new0 (const TdTapeStats *, MAX (t->n_vars, 1));
  s->born = g_new0 (const TdTapeStats *, MAX (t->n_vars, 1));
  for (guint i = 0; i < t->n_stats; i++)
    if (t->stats[i].var < t->n_vars)
      {
        s->last[t->stats[i].var] = &t->stats[i];
        if (!is_update (t, t->stats[i].event))
          s->born[t->stats[i].var] = &t->stats[i];
      }
}

/* What an update does to gradients before its hooks: a copy in float32, and the loss scale
 * taken off. */
static void
find_made_ready (Source *s)
{
  const TdTapeIteration *t = s->t;

  s->copied = g_new (gint, MAX (t->n_vars, 1));
  memset (s->copied, 0xff, MAX (t->n_vars, 1) * sizeof *s->copied);
  s->scale = g_new (double, MAX (t->n_vars, 1));
  for (guint v = 0; v < t->n_vars; v++)
    s->scale[v] = 1;
  for (guint e = 0; e < t->n_events; e++)
    {
      const TdTapeEvent *event = &t->events[e];
      const char *op = is_update (t, e) ? s->names->op (s->names->data, event) : "", *scale;

      if (g_str_equal (op, "copy_converted") && event->n_in == 2)
        s->copied[t->ins[event->first_in]] = (gint)t->ins[event->first_in + 1];
      if (g_str_equal (op, "unscale") && event->n_in > 0
          && (scale = strstr (s->names->string (s->names->data, event->attrs), "scale=")))
        s->scale[t->ins[event->first_in]] = g_ascii_strtod (scale + 6, NULL);
    }
}

static void
source_begin (Source *s)
{
  s->first_reader = first_readers (s->t);
  find_writers (s);
  find_stats (s);
  find_made_ready (s);
}

static void
source_end (Source *s)
{
  g_free (s->first_reader);
  g_free (s->writer);
  g_free (s->last);
  g_free (s->born);
  g_free (s->copied);
  g_free (s->scale);
}

static TdCell
cell_of (const TdTapeStats *stats)
{
  if (!stats)
    return TD_CELL_MISSING;
  if (stats->n_nan > 0)
    return TD_CELL_NAN;
  if (stats->n_pos_inf + stats->n_neg_inf > 0)
    return stats->n_pos_inf >= stats->n_neg_inf ? TD_CELL_PLUS_INF : TD_CELL_MINUS_INF;
  return TD_CELL_VALUE;
}

/* ---- what is missing ---- */

/* What backward made of which an update took a copy; mostly the gradient itself. */
static guint32
made_by_backward (const Source *s, guint32 gradient)
{
  return s->copied[gradient] >= 0 ? (guint32)s->copied[gradient] : gradient;
}

/* Whether a kernel of backward added to the gradient of this parameter in place: the tape does
 * not say to which array, but whose operation it is of. */
static gboolean
is_added_to (const Source *s, guint32 parameter)
{
  const TdTapeIteration *t = s->t;

  for (guint e = 0; e < t->n_events; e++)
    if (t->events[e].flags & TD_TAPE_EVENT_ACCUMULATED && t->events[e].twin >= 0)
      for (guint k = 0; k < t->events[t->events[e].twin].n_in; k++)
        if (t->ins[t->events[t->events[e].twin].first_in + k] == parameter)
          return TRUE;
  return FALSE;
}

/* Whether nothing but the update itself made this gradient: its zeros, which lie there since an
 * update before where the program does not clear gradients, and may have grown by what hooks
 * add. Of what was there before, numbers tell it too. */
static gboolean
is_filled (const Source *s, const TdTapeGrad *g)
{
  guint32 gradient = made_by_backward (s, g->gradient);
  const TdTapeVar *v = &s->t->vars[gradient];
  const TdTapeStats *stats = s->born[gradient] ? s->born[gradient] : s->last[gradient];
  gboolean zero = stats && stats->n_zero == stats->n && (v->flags & TD_TAPE_VAR_EXTERNAL) != 0,
           by_update = v->site != 0 && g->event < s->t->n_events
                       && v->site == s->t->events[g->event].site;

  if (s->writer[gradient] >= 0 || v->producer >= 0 || !s->has_backward)
    return FALSE;
  return (zero || by_update) && !is_added_to (s, g->parameter);
}

/* Nothing is said of an iteration without an update: nobody looked for gradients yet. What no
 * optimizer enters is of none, or of one that had no turn in this iteration. */
static void
begin_missing (Source *s)
{
  g_autoptr (GHashTable) row_of_key = g_hash_table_new (g_int64_hash, g_int64_equal);

  memset (s->c->missing, s->c->updated ? TD_MISSING_UNHELD : TD_MISSING_NO, s->c->n);
  for (guint i = 0; i < s->c->n; i++)
    g_hash_table_insert (row_of_key, &g_array_index (s->table->rows, TdGradientRow, i).key,
                         GUINT_TO_POINTER (i + 1));
  for (guint v = 0; v < s->t->n_vars; v++)
    {
      guint row = GPOINTER_TO_UINT (g_hash_table_lookup (row_of_key, &s->t->vars[v].key));

      if (row == 0 || s->first_reader[v] == G_MAXUINT)
        continue;
      TdGradientRow *r = &g_array_index (s->table->rows, TdGradientRow, row - 1);
      r->first_event = MIN (r->first_event, s->first_reader[v]);
    }
}

static TdMissing
why_missing (const Source *s, const TdTapeGrad *g)
{
  if (g->gradient < s->t->n_vars && !is_filled (s, g))
    return TD_MISSING_NO;
  return s->first_reader[g->parameter] == G_MAXUINT ? TD_MISSING_UNUSED : TD_MISSING_CUT;
}

/* ---- what is there ---- */

static gboolean
is_sum (const char *op)
{
  return g_str_equal (op, "sum") || g_str_equal (op, "sum_to");
}

/* Whether a gradient is the rest that rounding leaves of a sum that is 0: of a bias before a
 * normalization, or of a key's before softmax. A sum of numbers without such a reason is about
 * as long as they are together. */
static gboolean
is_rounding (const Source *s, guint32 gradient, double l2)
{
  static const double steps[] = { [TD_TAPE_F32] = 1.2e-7,
                                  [TD_TAPE_F64] = 2.3e-16,
                                  [TD_TAPE_F16] = 9.8e-4,
                                  [TD_TAPE_BF16] = 7.9e-3 };
  const TdTapeVar *v = &s->t->vars[gradient];
  gint writer = s->writer[gradient];

  if (writer < 0 || v->dtype >= G_N_ELEMENTS (steps) || s->t->events[writer].n_in != 1
      || !is_sum (s->names->op (s->names->data, &s->t->events[writer])))
    return FALSE;
  const TdTapeStats *summed = s->last[s->t->ins[s->t->events[writer].first_in]];
  return summed && summed->l2 > 0 && l2 > 0 && l2 < 16 * steps[v->dtype] * summed->l2;
}

/* In 65535 parts, one at least of what is there at all. */
static guint16
parts_of (guint64 n, guint64 all)
{
  double share = (double)n / (double)MAX (all, 1);

  return n > 0 ? (guint16)CLAMP (round (share * 65535), 1, 65535) : 0;
}

static void
fill_spread (Source *s, guint row, guint of, const TdTapeStats *stats)
{
  TdSpread *spread;

  if (!stats || stats->n == 0)
    return;
  if (!s->c->spread)
    s->c->spread = g_new0 (TdSpread, s->c->n * TD_N_SPREADS);
  spread = &s->c->spread[row * TD_N_SPREADS + of];
  spread->is_known = TRUE;
  spread->zero = parts_of (stats->n_zero, stats->n);
  spread->bad = parts_of (stats->n_nan + stats->n_pos_inf + stats->n_neg_inf, stats->n);
  for (guint k = 0; k < TD_TAPE_STATS_BINS; k++)
    spread->bin[k] = parts_of (stats->bins[k], stats->n_sampled);
}

static void
fill_row (Source *s, guint row, const TdTapeGrad *g)
{
  TdGradientColumn *c = s->c;
  const TdTapeStats *last, *born;
  guint32 made;

  c->missing[row] = why_missing (s, g);
  fill_spread (s, row, TD_SPREAD_WEIGHT, s->last[g->parameter]);
  if (g->gradient >= s->t->n_vars)
    return;
  made = made_by_backward (s, g->gradient);
  last = s->last[g->gradient];
  born = c->missing[row] == TD_MISSING_NO ? s->born[made] : NULL;
  c->cell[row] = cell_of (last);
  c->norm[row] = last ? last->l2 : 0;
  c->n_elements[row] = last ? last->n : 0;
  c->born_cell[row] = cell_of (born);
  c->born[row]
      = born && !is_rounding (s, made, born->l2) ? born->l2 / s->scale[g->gradient] : 0;
  fill_spread (s, row, TD_SPREAD_GRADIENT, born);
  c->rounding[row] = born && born->l2 > 0 && c->born[row] == 0;
}

/* ---- the column ---- */

/* Returns the row of an optimizer's entry, -1 when it names no parameter. The key of a
 * parameter whose size came late is that of its variable, not the one that was announced. */
static gint
row_of (const Source *s, const TdTapeGrad *g)
{
  const char *path = g->path != 0 ? s->names->string (s->names->data, g->path) : "?";

  if (g->parameter >= s->t->n_vars || g_str_equal (path, "?"))
    return -1;
  guint row = td__gradient_row (s->table, path, s->t->vars[g->parameter].key);
  g_array_index (s->table->rows, TdGradientRow, row).key = s->t->vars[g->parameter].key;
  return (gint)row;
}

static TdGradientColumn *
column_new (guint n)
{
  TdGradientColumn *c = g_new0 (TdGradientColumn, 1);

  c->n = n;
  c->norm = g_new0 (double, MAX (n, 1));
  c->cell = g_malloc (MAX (n, 1));
  c->missing = g_malloc0 (MAX (n, 1));
  c->n_elements = g_new0 (guint64, MAX (n, 1));
  c->born = g_new0 (double, MAX (n, 1));
  c->born_cell = g_malloc (MAX (n, 1));
  c->rounding = g_malloc0 (MAX (n, 1));
  memset (c->born_cell, TD_CELL_MISSING, n);
  memset (c->cell, TD_CELL_MISSING, n);
  return c;
}

void
td__gradient_column_free (gpointer data)
{
  TdGradientColumn *c = data;

  g_free (c->norm);
  g_free (c->cell);
  g_free (c->missing);
  g_free (c->n_elements);
  g_free (c->born);
  g_free (c->born_cell);
  g_free (c->rounding);
  g_free (c->spread);
  g_free (c);
}

/* ---- what no optimizer took ---- */

/* What is under a loss scale is left out: without an update nothing says how large it is. */
static void
learn (const Source *s)
{
  for (guint i = 0; i < s->t->n_grads; i++)
    {
      gint row = row_of (s, &s->t->grads[i]);
      guint32 gradient = s->t->grads[i].gradient;

      if (row < 0 || gradient >= s->t->n_vars || s->scale[gradient] != 1)
        continue;
      guint32 made = made_by_backward (s, gradient);
      g_hash_table_insert (s->table->taken, g_memdup2 (&s->t->vars[made].key, sizeof (guint64)),
                           GINT_TO_POINTER (row));
    }
}

void
td__gradient_learn (TdGradientTable *table, const TdTapeIteration *t,
                    const TdGradientNames *names)
{
  Source s = { .table = table, .t = t, .names = names };

  source_begin (&s);
  learn (&s);
  source_end (&s);
}

/* Owner: the caller; its keys are the iteration's. */
static GHashTable *
vars_by_key (const TdTapeIteration *t)
{
  GHashTable *vars = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint v = 0; v < t->n_vars; v++)
    g_hash_table_insert (vars, (gpointer)&t->vars[v].key, GUINT_TO_POINTER (v + 1));
  return vars;
}

/* A number is shown, but rules do not judge it: more may be added to it before it is taken, and
 * what an update before has left in it may still be there. What is no number stays none. */
static void
leave_to_look_at (TdGradientColumn *c, guint row)
{
  if (c->born_cell[row] != TD_CELL_VALUE)
    return;
  c->born_cell[row] = TD_CELL_MISSING;
  c->born[row] = 0;
  c->rounding[row] = FALSE;
}

/* The row of a parameter by its name, -1 where it has none: no optimizer has said its key. */
static gint
row_of_var (const Source *s, guint v)
{
  const TdTapeVar *var = &s->t->vars[v];
  gpointer row;

  if (var->path == 0 || var->name == 0 || var->producer >= 0)
    return -1;
  g_autofree char *path = g_strdup_printf ("%s/%s", s->names->path (s->names->data, var->path),
                                           s->names->string (s->names->data, var->name));
  return g_hash_table_lookup_extended (s->table->row_of_path, path, NULL, &row)
             ? GPOINTER_TO_INT (row)
             : -1;
}

/* Without any optimizer the graph says which variable is a parameter's gradient, mostly.
 * Another iteration that has an update says more: it is still sought. */
static void
fill_inferred (Source *s)
{
  g_autofree guint32 *gradient = td__gradient_infer (s->t);

  for (guint v = 0; v < s->t->n_vars; v++)
    {
      const gint row = row_of_var (s, v);

      if (row < 0 || (guint)row >= s->c->n)
        continue;
      TdGradientRow *r = &g_array_index (s->table->rows, TdGradientRow, row);
      r->key = s->t->vars[v].key;
      r->first_event = MIN (r->first_event, s->first_reader[v]);
      if (gradient[v] == TD_TAPE_NONE)
        continue;
      fill_row (
          s, (guint)row,
          &(TdTapeGrad){ .event = TD_TAPE_NONE, .parameter = v, .gradient = gradient[v] });
      leave_to_look_at (s->c, (guint)row);
    }
}

/* Of an iteration without an update, which a program leaves out where its numbers are bad: the
 * gradients are the variables that optimizers took in other iterations. */
static void
fill_not_taken (Source *s)
{
  g_autoptr (GHashTable) vars = vars_by_key (s->t);
  gboolean found = FALSE;

  for (guint v = 0; v < s->t->n_vars; v++)
    {
      gpointer row;

      if (!s->last[v]
          || !g_hash_table_lookup_extended (s->table->taken, &s->t->vars[v].key, NULL, &row))
        continue;
      guint64 key = g_array_index (s->table->rows, TdGradientRow, GPOINTER_TO_UINT (row)).key;
      guint parameter = GPOINTER_TO_UINT (g_hash_table_lookup (vars, &key));
      if (parameter == 0 || (s->writer[v] < 0 && !is_added_to (s, parameter - 1)))
        continue;
      fill_row (
          s, GPOINTER_TO_UINT (row),
          &(TdTapeGrad){ .event = TD_TAPE_NONE, .parameter = parameter - 1, .gradient = v });
      leave_to_look_at (s->c, GPOINTER_TO_UINT (row));
      found = TRUE;
    }
  if (!found && !s->c->partial) /* what backward goes on with is not known before its end */
    fill_inferred (s);
  s->c->sought = found ? G_MAXUINT : g_hash_table_size (s->table->taken);
}

/* ---- the whole of it ---- */

/* An optimizer with loss scaling says its scale after each update, done or skipped. */
static gboolean
says_scale (const TdTapeIteration *t, const TdGradientNames *names)
{
  for (guint i = 0; i < t->n_reports; i++)
    if (g_str_equal (names->string (names->data, t->reports[i].key), "loss_scale"))
      return TRUE;
  return FALSE;
}

void
td__gradient_add_column (TdGradientTable *table, const TdTapeIteration *t, guint32 flags,
                         gboolean partial, const TdGradientNames *names)
{
  Source s = { .table = table, .t = t, .names = names };
  gint64 *number = g_new (gint64, 1);

  gboolean updated = FALSE;

  *number = (gint64)t->number;
  /* what an update copies or takes the scale off is entered too, also where it is skipped then
   */
  for (guint i = 0; i < t->n_grads; i++)
    updated |= row_of (&s, &t->grads[i]) >= 0;
  s.c = column_new (table->rows->len);
  s.c->updated = updated;
  s.c->skipped = !updated && says_scale (t, names);
  s.c->partial = partial;
  s.c->flags = flags;
  source_begin (&s);
  begin_missing (&s);
  for (guint i = 0; i < t->n_grads; i++)
    {
      gint row = row_of (&s, &t->grads[i]);

      if (row >= 0)
        fill_row (&s, (guint)row, &t->grads[i]);
    }
  learn (&s);
  s.c->sought = G_MAXUINT;
  if (!updated && !s.c->skipped && s.has_backward)
    fill_not_taken (&s);
  source_end (&s);
  s.c->clip = td__gradient_clip (t, names);
  g_hash_table_replace (table->columns, number, s.c);
  td__gradient_sort_rows (table);
}
