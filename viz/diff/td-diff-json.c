/*
 * A difference as JSON: the members that scripts may rely on, then all that is known.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-diff-private.h"
#include "td-node-json.h"
#include "td-tape.h"

static void
print_aspects (TdJson *j, guint aspects)
{
  static const char *const names[]
      = { "operation", "attributes", "link",    "inputs", "shape", "dtype",
          "failed",    "order",      "numbers", "mode",   "graph" };

  td_json_key (j, "aspects");
  td_json_begin_array (j);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (aspects & (1u << i))
      td_json_string (j, names[i]);
  td_json_end_array (j);
}

static void
print_numbers (const TdDiff *d, TdJson *j, const TdDiffPair *p)
{
  guint n;
  const TdDiffNumbers *numbers = td_diff_get_numbers (d, p, &n);

  td_json_key (j, "numbers");
  td_json_begin_array (j);
  for (guint k = 0; k < n; k++)
    {
      const TdDiffNumbers *x = &numbers[k];

      td_json_begin_object (j);
      td_json_member_int (j, "output", x->output);
      td_json_member_bool (j, "differ", x->differ);
      if (x->has_values)
        {
          td_json_member_bool (j, "bitwise", x->bitwise);
          td_json_member_int (j, "elements", (gint64)x->n);
          td_json_member_int (j, "elements_differ", (gint64)x->n_differ);
          td_json_member_double (j, "max_abs", x->max_abs);
          td_json_key (j, "max_ulp");
          if (x->max_ulp == G_MAXUINT64)
            td_json_string (j, "nan");
          else
            td_json_int (j, (gint64)MIN (x->max_ulp, G_MAXINT64));
          td_json_key (j, "first_index");
          if (x->first < 0)
            td_json_null (j);
          else
            td_json_int (j, x->first);
          if (x->first >= 0)
            {
              td_json_member_double (j, "first_a", x->first_value[0]);
              td_json_member_double (j, "first_b", x->first_value[1]);
            }
        }
      for (guint s = 0; s < 2; s++)
        if (x->stats[s])
          {
            td_json_key (j, s == 0 ? "a" : "b");
            td_json_begin_object (j);
            td_json_member_double (j, "mean", x->stats[s]->mean);
            td_json_member_double (j, "l2", x->stats[s]->l2);
            td_json_member_double (j, "min", x->stats[s]->min);
            td_json_member_double (j, "max", x->stats[s]->max);
            td_json_member_int (j, "nan", (gint64)x->stats[s]->n_nan);
            td_json_member_int (j, "inf",
                                (gint64)(x->stats[s]->n_pos_inf + x->stats[s]->n_neg_inf));
            td_json_member_int (j, "zeros", (gint64)x->stats[s]->n_zero);
            td_json_end_object (j);
          }
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

/* The other side of a pair; for a fused group its members too. */
static void
print_counterpart (const TdDiff *d, TdJson *j, const TdDiffPair *p)
{
  td_json_key (j, "counterpart");
  if (p->event[0] < 0 || p->event[1] < 0)
    {
      td_json_null (j);
      return;
    }
  td_node_json_begin_event (j, d->side[1], (guint)p->event[1]);
  td_json_end_object (j);
  if (p->kind != TD_DIFF_FUSED)
    return;
  for (guint s = 0; s < 2; s++)
    {
      guint n;
      const guint32 *events = td_diff_get_events (d, p, s, &n);

      td_json_key (j, s == 0 ? "events_a" : "events_b");
      td_json_begin_array (j);
      for (guint i = 0; i < n; i++)
        td_json_int (j, events[i]);
      td_json_end_array (j);
    }
}

static void
print_pair (const TdDiff *d, TdJson *j, const TdDiffPair *p)
{
  guint side = p->event[0] >= 0 ? TD_DIFF_A : TD_DIFF_B;
  g_autofree char *what = td_diff_dup_what (d, p), *title = td_diff_dup_title (d, p);

  td_node_json_begin_event (j, d->side[side], (guint)p->event[side]);
  td_json_member_string (j, "title", title);
  td_json_member_string (j, "what", what);
  td_json_member_bool (j, "structural",
                       p->kind != TD_DIFF_CHANGED
                           || (p->aspects & ~(TD_DIFF_NUMBERS | TD_DIFF_MODE)) != 0);
  print_aspects (j, p->aspects);
  print_counterpart (d, j, p);
  print_numbers (d, j, p);
  td_json_end_object (j);
}

static void
print_list (const TdDiff *d, TdJson *j, const char *key, TdDiffKind kind)
{
  td_json_key (j, key);
  td_json_begin_array (j);
  for (guint i = 0; i < d->n_items; i++)
    if (d->pairs[d->items[i]].kind == kind)
      print_pair (d, j, &d->pairs[d->items[i]]);
  td_json_end_array (j);
}

static void
print_totals (const TdDiff *d, TdJson *j)
{
  td_json_key (j, "totals");
  td_json_begin_object (j);
  for (guint s = 0; s < 2; s++)
    {
      const TdDiffTotals *t = &d->totals[s];

      td_json_key (j, s == 0 ? "a" : "b");
      td_json_begin_object (j);
      td_json_member_int (j, "iteration", td_iteration_get_number (d->side[s]));
      td_json_member_int (j, "ops", t->n_events);
      for (guint p = 0; p < TD_TAPE_N_PHASES; p++)
        td_json_member_int (j, td_tape_phase_name (p), t->n_phase[p]);
      td_json_member_int (j, "static", t->n_static);
      td_json_member_int (j, "ns", (gint64)t->ns);
      td_json_member_int (j, "op_ns", (gint64)t->op_ns);
      td_json_member_int (j, "bytes", (gint64)t->bytes);
      td_json_member_int (j, "peak_bytes", (gint64)t->peak_bytes);
      td_json_end_object (j);
    }
  td_json_member_int (j, "n_a", d->totals[0].n_times);
  td_json_member_int (j, "n_b", d->totals[1].n_times);
  td_json_end_object (j);
}

static void
print_first (const TdDiff *d, TdJson *j)
{
  td_json_key (j, "first_divergence");
  if (d->n_items == 0)
    {
      td_json_null (j);
      return;
    }
  const TdDiffPair *p = &d->pairs[d->items[0]];
  guint side = p->event[0] >= 0 ? TD_DIFF_A : TD_DIFF_B;
  g_autofree char *site = td_diff_dup_site (d, p, side);

  td_json_begin_object (j);
  td_json_member_string (j, "site", site);
  td_json_member_string (j, "op",
                         td_iteration_get_op_name (d->side[side], (guint)p->event[side]));
  for (guint s = 0; s < 2; s++)
    {
      g_autofree char *own = td_diff_dup_site (d, p, s);

      td_json_member_string (j, s == 0 ? "site_a" : "site_b", p->event[s] >= 0 ? own : NULL);
    }
  td_json_end_object (j);
}

static void
print_cause (const TdDiff *d, TdJson *j)
{
  static const char *const names[] = { "none", "branch", "loop", "read", "source" };

  td_json_key (j, "cause");
  if (d->cause.kind == TD_DIFF_CAUSE_NONE)
    {
      td_json_null (j);
      return;
    }
  g_autofree char *site
      = g_strdup_printf ("%s:%u", td__base_name (d->cause.file), d->cause.line);
  td_json_begin_object (j);
  td_json_member_string (j, "kind", names[d->cause.kind]);
  td_json_member_string (j, "site", site);
  td_json_member_string (j, "text", d->cause.text);
  td_json_end_object (j);
}

static void
print_versions (const TdDiff *d, TdJson *j)
{
  td_json_key (j, "versions");
  td_json_begin_array (j);
  for (char **v = d->versions; v && *v; v += 3)
    {
      td_json_begin_object (j);
      td_json_member_string (j, "key", v[0]);
      td_json_member_string (j, "a", v[1]);
      td_json_member_string (j, "b", v[2]);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

char *
td_diff_print (const TdDiff *d, const char *format)
{
  GString *out;
  g_autofree char *sentence = NULL;
  TdJson j;
  guint followers = 0;

  if (!g_str_equal (format, "json"))
    return td__diff_print_text (d);
  sentence = td_diff_sentence (d);
  for (guint p = 0; p < TD_TAPE_N_PHASES; p++)
    followers += d->n_followers[p];
  out = g_string_new (NULL);
  td_json_init (&j, out);
  td_json_begin_object (&j);
  print_versions (d, &j);
  td_json_member_bool (&j, "same", td_diff_is_same (d));
  td_json_member_bool (&j, "same_structure", td_diff_is_same_structure (d));
  td_json_member_string (&j, "sentence", sentence);
  print_first (d, &j);
  print_cause (d, &j);
  print_totals (d, &j);
  print_list (d, &j, "only_a", TD_DIFF_REMOVED);
  print_list (d, &j, "only_b", TD_DIFF_ADDED);
  print_list (d, &j, "changed", TD_DIFF_CHANGED);
  print_list (d, &j, "fused", TD_DIFF_FUSED);
  td_json_member_int (&j, "followers", followers);
  td_json_member_int (&j, "matched", d->n_kind[TD_DIFF_SAME]);
  td_json_member_bool (&j, "numbers_compared", d->has_numbers);
  td_json_member_bool (&j, "values_compared", d->has_values);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}
