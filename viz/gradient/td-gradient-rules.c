/*
 * The rules for gradients: read from their text, and applied to the table.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-gradient-rules.h"

#include <math.h>
#include <gio/gio.h>

#include "scene/td-format.h"
#include "td-gradient-private.h"

#define MIN_HISTORY 3 /* norms that a median is made of, at least */

static const struct
{
  const char *name;
  double usual, least, most;
} rules_known[TD_N_RULES] = {
  [TD_RULE_VANISHING] = { "vanishing", 1e-4, 1e-300, 1 },
  [TD_RULE_EXPLODING] = { "exploding", 100, 1, 1e300 },
  [TD_RULE_DEAD] = { "dead", 5, 1, 1e6 },
  [TD_RULE_MISSING] = { "missing", 1, 1, 1 },
  [TD_RULE_NOT_UPDATED] = { "not-updated", 1, 1, 1 },
};

const char *
td_gradient_rule_name (TdGradientRule rule)
{
  return rules_known[rule].name;
}

/* ---- the text ---- */

static gboolean
parse_limit (const char *word, TdGradientRule rule, double *limit, GError **error)
{
  char *end;

  if (g_str_equal (word, "off") || g_str_equal (word, "on"))
    {
      *limit = g_str_equal (word, "on") ? rules_known[rule].usual : 0;
      return TRUE;
    }
  *limit = g_ascii_strtod (word, &end);
  if (end != word && !*end && *limit >= rules_known[rule].least
      && *limit <= rules_known[rule].most && (rule != TD_RULE_DEAD || *limit == floor (*limit)))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
               rules_known[rule].least == rules_known[rule].most
                   ? "\"%s\" is no limit for %s: it is on or off"
                   : "\"%s\" is no limit for %s: it takes %s from %g to %g, on or off",
               word, rules_known[rule].name,
               rule == TD_RULE_DEAD ? "a whole number" : "a number", rules_known[rule].least,
               rules_known[rule].most);
  return FALSE;
}

static gboolean
parse_rule (const char *text, TdGradientRules *rules, GError **error)
{
  g_auto (GStrv) words = g_strsplit (text, " ", 2);

  for (guint rule = 0; rule < TD_N_RULES; rule++)
    if (g_str_equal (words[0], rules_known[rule].name))
      return parse_limit (words[1] ? g_strstrip (words[1]) : "", (TdGradientRule)rule,
                          &rules->limit[rule], error);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
               "There is no rule \"%s\": they are vanishing, exploding, dead, missing and "
               "not-updated",
               words[0]);
  return FALSE;
}

gboolean
td_gradient_rules_parse (const char *text, TdGradientRules *rules, GError **error)
{
  g_autofree char *line = g_strdelimit (g_strdup (text), "\t\n\v\f\r", ' ');
  g_auto (GStrv) parts = g_strsplit (line, ",", -1); /* an error quotes them, in one line */
  TdGradientRules read;

  for (guint rule = 0; rule < TD_N_RULES; rule++)
    read.limit[rule] = rules_known[rule].usual;
  for (char **part = parts; *part; part++)
    if (*g_strstrip (*part) && !parse_rule (*part, &read, error))
      return FALSE;
  *rules = read;
  return TRUE;
}

/* ---- the rules ---- */

/* What the rules look at: the iterations on show. */
typedef struct
{
  const TdGradientTable *table;
  const GArray *columns; /* gint64 */
  GArray *largest;       /* by column: Largest */
} Search;

typedef struct
{
  double value;
  guint row;
} Largest;

static gint64
iteration_of (const Search *s, guint column)
{
  return g_array_index (s->columns, gint64, column);
}

/* Of an element, in the root of the mean of squares. FALSE: not known, or no number. */
static gboolean
get_size (const Search *s, guint row, guint column, double *size)
{
  guint64 n = td__gradient_n_elements (s->table, row, iteration_of (s, column));
  TdCell cell = td__gradient_born (s->table, row, iteration_of (s, column), size);

  *size /= sqrt ((double)MAX (n, 1));
  return cell == TD_CELL_VALUE;
}

static gint
by_value (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double
median_of (const GArray *norms)
{
  g_autoptr (GArray) sorted = g_array_copy ((GArray *)norms);

  g_array_sort (sorted, by_value);
  return g_array_index (sorted, double, sorted->len / 2);
}

/* Whether a norm is far above those before it, or is not finite. `median`: 0 where too few are
 * known; `norms` takes it up, unless it is. */
static gboolean
is_outlier (TdCell cell, double norm, double limit, GArray *norms, double *median)
{
  *median = norms->len >= MIN_HISTORY ? median_of (norms) : 0;
  if (cell != TD_CELL_VALUE || (*median > 0 && norm > limit * *median))
    return TRUE;
  g_array_append_val (norms, norm);
  return FALSE;
}

/* One that explodes is no measure for the others. */
static void
find_largest (Search *s, double limit)
{
  s->largest = g_array_new (FALSE, TRUE, sizeof (Largest));
  g_array_set_size (s->largest, s->columns->len);
  for (guint row = 0; row < td_gradient_table_n_rows (s->table); row++)
    {
      g_autoptr (GArray) norms = g_array_new (FALSE, FALSE, sizeof (double));

      for (guint c = 0; c < s->columns->len; c++)
        {
          Largest *largest = &g_array_index (s->largest, Largest, c);
          double size, median;

          if (get_size (s, row, c, &size)
              && !is_outlier (TD_CELL_VALUE, size, limit, norms, &median)
              && size > largest->value)
            *largest = (Largest){ size, row };
        }
    }
}

static gboolean
vanishes (const Search *s, double limit, TdGradientFinding *f)
{
  double worst = HUGE_VAL;

  for (guint c = 0; c < s->columns->len; c++)
    {
      const Largest *largest = &g_array_index (s->largest, Largest, c);
      double size;

      if (!get_size (s, f->row, c, &size) || largest->value <= 0)
        continue;
      f->n_known++;
      if (size == 0 || size >= limit * largest->value) /* 0 is another rule's */
        continue;
      f->n++;
      if (size / largest->value >= worst)
        continue;
      worst = size / largest->value;
      f->iteration = iteration_of (s, c);
      f->value = size;
      f->measure = largest->value;
      f->other = (gint)largest->row;
    }
  return 2 * f->n > f->n_known;
}

static gboolean
explodes (const Search *s, double limit, TdGradientFinding *f)
{
  g_autoptr (GArray) norms = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint c = 0; c < s->columns->len; c++)
    {
      double norm, median;
      TdCell cell = td__gradient_born (s->table, f->row, iteration_of (s, c), &norm);

      if (cell == TD_CELL_MISSING || cell == TD_CELL_EMPTY)
        continue;
      f->n_known++;
      f->is_over = cell == TD_CELL_VALUE;
      if (!is_outlier (cell, norm, limit, norms, &median) || f->n++ > 0)
        continue;
      f->iteration = iteration_of (s, c);
      f->value = norm;
      f->measure = median;
      f->is_infinite = cell != TD_CELL_VALUE;
    }
  return f->n > 0;
}

static gboolean
is_dead (const Search *s, double limit, TdGradientFinding *f)
{
  for (guint c = s->columns->len; c-- > 0 && f->n_known < (guint)limit;)
    {
      double size;

      if (!get_size (s, f->row, c, &size))
        continue;
      f->n_known++;
      f->n += size == 0;
      f->iteration = iteration_of (s, c);
      f->is_rounding |= td__gradient_is_rounding (s->table, f->row, f->iteration);
    }
  return f->n_known >= (guint)limit && f->n == f->n_known;
}

/* Counts the iterations with an update in which `missing` says why, of those in which one of
 * the others of `of` does: bits by TdMissing. */
static gboolean
is_always (const Search *s, guint missing, guint of, TdGradientFinding *f)
{
  for (guint c = 0; c < s->columns->len; c++)
    {
      gint64 iteration = iteration_of (s, c);
      guint why = 1u << td__gradient_missing (s->table, f->row, iteration);

      if (!td__gradient_updated (s->table, iteration) || !(why & of))
        continue;
      f->n_known++;
      f->n += (why & missing) != 0;
      if (why & missing)
        f->iteration = iteration;
    }
  return f->n_known > 0 && f->n == f->n_known;
}

/* Iterations in which another optimizer had its turn say nothing of this. */
static gboolean
is_missing (const Search *s, double limit, TdGradientFinding *f)
{
  const guint missing = 1u << TD_MISSING_UNUSED | 1u << TD_MISSING_CUT;

  return is_always (s, missing, missing | 1u << TD_MISSING_NO, f);
}

static gboolean
is_not_updated (const Search *s, double limit, TdGradientFinding *f)
{
  return is_always (s, 1u << TD_MISSING_UNHELD, ~0u, f);
}

static gint
by_rule (gconstpointer a, gconstpointer b)
{
  const TdGradientFinding *x = a, *y = b;
  double p = x->measure > 0 ? x->value / x->measure : 0,
         q = y->measure > 0 ? y->value / y->measure : 0;

  if (x->rule != y->rule)
    return (x->rule > y->rule) - (x->rule < y->rule);
  if (x->rule == TD_RULE_VANISHING && p != q)
    return (p > q) - (p < q);
  if (x->rule == TD_RULE_EXPLODING && x->iteration != y->iteration)
    return (x->iteration > y->iteration) - (x->iteration < y->iteration);
  return (x->row > y->row) - (x->row < y->row);
}

GArray *
td_gradient_find (const TdGradientTable *table, const TdGradientRange *range,
                  const TdGradientRules *rules)
{
  static gboolean (*const checks[TD_N_RULES]) (const Search *, double, TdGradientFinding *) = {
    [TD_RULE_VANISHING] = vanishes,
    [TD_RULE_EXPLODING] = explodes,
    [TD_RULE_DEAD] = is_dead,
    [TD_RULE_MISSING] = is_missing,
    [TD_RULE_NOT_UPDATED] = is_not_updated,
  };
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_of (table, range, range->n);
  g_autoptr (GArray) columns = td__gradient_axis_list (axis);
  GArray *found = g_array_new (FALSE, FALSE, sizeof (TdGradientFinding));
  Search s = { table, columns, NULL };

  find_largest (&s, rules->limit[TD_RULE_EXPLODING] > 0 ? rules->limit[TD_RULE_EXPLODING]
                                                        : rules_known[TD_RULE_EXPLODING].usual);
  for (guint rule = 0; rule < TD_N_RULES; rule++)
    for (guint row = 0; rules->limit[rule] > 0 && row < td_gradient_table_n_rows (table); row++)
      {
        TdGradientFinding f = { .rule = (TdGradientRule)rule, .row = row, .other = -1 };

        if (checks[rule](&s, rules->limit[rule], &f))
          g_array_append_val (found, f);
      }
  g_array_sort (found, by_rule);
  g_array_unref (s.largest);
  return found;
}

/* ---- in words ---- */

char *
td_gradient_finding_text (const TdGradientTable *table, const TdGradientFinding *f)
{
  char value[TD_FORMAT_SIZE], ratio[TD_FORMAT_SIZE];
  const char *iterations = td_plural (f->n_known, "iteration", "iterations");

  td_format_value (value, f->value);
  td_format_value (ratio, f->measure > 0 ? f->value / f->measure : 0);
  switch (f->rule)
    {
    case TD_RULE_VANISHING:
      return g_strdup_printf ("in %u of %u %s; least at %" G_GINT64_FORMAT
                              ": %s of %s (%s an element)",
                              f->n, f->n_known, iterations, f->iteration, ratio,
                              td_gradient_table_path (table, (guint)f->other), value);
    case TD_RULE_EXPLODING:
      if (f->is_infinite)
        return g_strdup_printf (f->is_over
                                    ? "in %u of %u %s; first not finite at %" G_GINT64_FORMAT
                                    : "in %u of %u %s; not finite from %" G_GINT64_FORMAT " on",
                                f->n, f->n_known, iterations, f->iteration);
      return g_strdup_printf ("in %u of %u %s; at %" G_GINT64_FORMAT
                              ": %s times its median before (norm %s)",
                              f->n, f->n_known, iterations, f->iteration, ratio, value);
    case TD_RULE_DEAD:
      return g_strdup_printf ("0%s in the last %u %s, from %" G_GINT64_FORMAT " on%s",
                              f->is_rounding ? " but for rounding" : "", f->n,
                              td_plural (f->n, "iteration", "iterations"), f->iteration,
                              f->is_rounding ? ": what it adds is taken out again, as by a "
                                               "normalization or a softmax"
                                             : "");
    case TD_RULE_MISSING:
    case TD_RULE_NOT_UPDATED:
    case TD_N_RULES:
    default:
      return g_strdup_printf ("in %u %s: %s", f->n, iterations,
                              td_gradient_table_missing (table, f->row, f->iteration));
    }
}
