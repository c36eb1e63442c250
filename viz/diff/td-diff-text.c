/*
 * A difference in words: a pair's title and what differs in it, one sentence for all, a list.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "scene/td-format.h"
#include "tape/td-attributes.h"
#include "td-diff-private.h"
#include "td-tape.h"

static const TdTapeIteration *
tape_of (const TdDiff *d, guint side)
{
  return td_iteration_get_tape (d->side[side]);
}

static const TdTapeEvent *
event_of (const TdDiff *d, const TdDiffPair *p, guint side)
{
  return &tape_of (d, side)->events[p->event[side]];
}

static const char *
op_of (const TdDiff *d, const TdDiffPair *p, guint side)
{
  return td_iteration_get_op_name (d->side[side], (guint)p->event[side]);
}

const char *
td_diff_kind_glyph (TdDiffKind kind)
{
  static const char *const glyphs[] = { "=", "~", "−", "+", "⇄" };

  return kind < TD_DIFF_N_KINDS ? glyphs[kind] : "?";
}

const char *
td_diff_kind_name (TdDiffKind kind)
{
  static const char *const names[] = { "same", "changed", "removed", "added", "fused" };

  return kind < TD_DIFF_N_KINDS ? names[kind] : "?";
}

char *
td_diff_dup_side (const TdDiff *d, guint side)
{
  if (!d->same_run)
    return g_strdup (side == TD_DIFF_A ? "A" : "B");
  return g_strdup_printf ("Iteration %" G_GINT64_FORMAT,
                          td_iteration_get_number (d->side[side]));
}

/* ---- titles ---- */

static char *
dup_members (const TdDiff *d, const TdDiffPair *p, guint side)
{
  GString *s = g_string_new (NULL);
  guint n;
  const guint32 *events = td_diff_get_events (d, p, side, &n);

  for (guint i = 0; i < n; i++)
    g_string_append_printf (s, "%s%s", i > 0 ? " + " : "",
                            td_iteration_get_op_name (d->side[side], events[i]));
  return g_string_free (s, FALSE);
}

char *
td_diff_dup_title (const TdDiff *d, const TdDiffPair *p)
{
  if (td__diff_member_of (d, p))
    return g_strdup (td__diff_member_of (d, p)->title);
  if (p->kind == TD_DIFF_FUSED)
    return dup_members (d, p, p->fused_side);
  if (p->event[0] < 0 || p->event[1] < 0)
    return g_strdup (op_of (d, p, p->event[0] < 0));
  if (p->aspects & TD_DIFF_OPERATION)
    return g_strdup_printf ("%s → %s", op_of (d, p, 0), op_of (d, p, 1));
  return g_strdup (op_of (d, p, 0));
}

/* ---- what differs ---- */

static void
add (GString *s, const char *label, const char *a, const char *b)
{
  g_string_append_printf (s, "%s%s%s → %s", s->len > 0 ? "; " : "", label, *a ? a : "none",
                          *b ? b : "none");
}

static char *
dup_shapes (const TdDiff *d, const TdDiffPair *p, guint side)
{
  const TdTapeIteration *t = tape_of (d, side);
  const TdTapeEvent *e = event_of (d, p, side);
  GString *s = g_string_new (NULL);

  for (guint k = 0; k < e->n_out; k++)
    {
      g_autofree char *shape
          = td_iteration_dup_shape (d->side[side], t->outs[e->first_out + k], TRUE);
      g_string_append_printf (s, "%s%s", k > 0 ? ", " : "", shape);
    }
  return g_string_free (s, FALSE);
}

/* Only those that differ: "ratio=0.5 → ratio=0.3". */
void
td__diff_append_attributes (GString *s, const char *a, const char *b)
{
  g_auto (GStrv) wa = td_attributes_split (a), wb = td_attributes_split (b);

  if (g_strv_length (wa) != g_strv_length (wb))
    {
      add (s, "", a, b);
      return;
    }
  for (guint i = 0; wa[i]; i++)
    if (!g_str_equal (wa[i], wb[i]))
      {
        const char *value = strchr (wb[i], '=');

        add (s, "", wa[i], value && value[1] ? value + 1 : wb[i]);
      }
}

/* Something a reader knows a variable by. */
static char *
dup_var (const TdDiff *d, guint side, guint var)
{
  const TdTapeVar *v = &tape_of (d, side)->vars[var];
  const char *name = td_iteration_get_var_name (d->side[side], var);

  if (v->producer < 0)
    {
      const char *path = td_iteration_get_path_name (d->side[side], v->path);

      if (*path && *name)
        return g_strdup_printf ("%s/%s", path, name);
      return *name ? g_strdup (name) : td_iteration_dup_shape (d->side[side], var, FALSE);
    }
  g_autofree char *site = td_iteration_dup_site (d->side[side], (guint)v->producer);
  return g_strdup_printf ("%s%s%s",
                          td_iteration_get_op_name (d->side[side], (guint)v->producer),
                          *site ? " of " : "", site);
}

static void
add_input (GString *s, const TdDiff *d, guint va, guint vb)
{
  const TdTapeVar *x = &tape_of (d, 0)->vars[va], *y = &tape_of (d, 1)->vars[vb];

  if (x->producer >= 0 && y->producer >= 0 && d->partner[0][x->producer] == y->producer
      && x->out_index == y->out_index)
    return;
  g_autofree char *a = dup_var (d, 0, va), *b = dup_var (d, 1, vb);
  if (!g_str_equal (a, b))
    add (s, "reads ", a, b);
  else if (x->producer >= 0 && y->producer >= 0) /* the same call, another time */
    g_string_append_printf (s, "%sreads %s, event %d → %d", s->len > 0 ? "; " : "", a,
                            x->producer, y->producer);
  else if (x->producer < 0 && y->producer < 0 && x->key != y->key)
    g_string_append_printf (s, "%sreads another %s", s->len > 0 ? "; " : "", a);
}

static void
add_inputs (GString *s, const TdDiff *d, const TdDiffPair *p)
{
  const TdTapeEvent *ea = event_of (d, p, 0), *eb = event_of (d, p, 1);
  const TdDiffMember *member = td__diff_member_of (d, p);

  for (guint i = 0; member && i < member->n_reads; i += 2)
    add_input (s, d, member->reads[i], member->reads[i + 1]);
  if (member && member->n_reads > 0)
    return;
  if (ea->n_in != eb->n_in)
    {
      g_string_append_printf (s, "%sinputs %u → %u", s->len > 0 ? "; " : "", ea->n_in,
                              eb->n_in);
      return;
    }
  for (guint k = 0; k < ea->n_in; k++)
    add_input (s, d, tape_of (d, 0)->ins[ea->first_in + k],
               tape_of (d, 1)->ins[eb->first_in + k]);
}

/* The input whose size differs, where that is where it comes from. */
static void
add_leaf_shapes (GString *s, const TdDiff *d, const TdDiffPair *p)
{
  const TdTapeEvent *ea = event_of (d, p, 0), *eb = event_of (d, p, 1);

  for (guint k = 0; k < MIN (ea->n_in, eb->n_in); k++)
    {
      guint va = tape_of (d, 0)->ins[ea->first_in + k],
            vb = tape_of (d, 1)->ins[eb->first_in + k];
      g_autofree char *a = NULL, *b = NULL, *label = NULL;

      if (tape_of (d, 0)->vars[va].producer >= 0 || tape_of (d, 1)->vars[vb].producer >= 0)
        continue;
      a = td_iteration_dup_shape (d->side[0], va, TRUE);
      b = td_iteration_dup_shape (d->side[1], vb, TRUE);
      if (g_str_equal (a, b))
        continue;
      const char *name = td_iteration_get_var_name (d->side[0], va);
      label = *name ? g_strdup_printf ("%s ", name) : g_strdup ("input ");
      add (s, label, a, b);
    }
}

/* ---- numbers ---- */

static void
append_index (GString *s, const TdDiff *d, const TdDiffPair *p, const TdDiffNumbers *n)
{
  const TdTapeIteration *t = tape_of (d, 0);
  const TdTapeVar *v = &t->vars[t->outs[event_of (d, p, 0)->first_out + n->output]];
  gint64 rest = n->first, at[TD_TAPE_MAX_NDIM] = { 0 };

  for (guint k = MIN (v->ndim, TD_TAPE_MAX_NDIM); k-- > 0;)
    if (t->dims[v->first_dim + k] > 0)
      {
        at[k] = rest % t->dims[v->first_dim + k];
        rest /= t->dims[v->first_dim + k];
      }
  g_string_append_c (s, '(');
  for (guint k = 0; k < MIN (v->ndim, TD_TAPE_MAX_NDIM); k++)
    g_string_append_printf (s, "%s%" G_GINT64_FORMAT, k > 0 ? ", " : "", at[k]);
  g_string_append_c (s, ')');
}

static void
append_values (GString *s, const TdDiff *d, const TdDiffPair *p, const TdDiffNumbers *n)
{
  g_string_append_printf (
      s, "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " differ, by at most %.3g", n->n_differ,
      n->n, n->max_abs);
  if (n->max_ulp == G_MAXUINT64)
    g_string_append (s, " (NaN on one side)");
  else
    g_string_append_printf (s, " (%" G_GUINT64_FORMAT " ulp)", n->max_ulp);
  g_string_append (s, ", first at ");
  append_index (s, d, p, n);
  g_string_append_printf (s, ": %.9g → %.9g", n->first_value[0], n->first_value[1]);
}

/* The most telling first: not finite, then the moments, then counts of zeros. */
static void
append_stats (GString *s, const TdDiffNumbers *n)
{
  const TdTapeStats *a = n->stats[0], *b = n->stats[1];
  const struct
  {
    const char *name;
    double a, b;
  } rows[] = {
    { "nan", (double)a->n_nan, (double)b->n_nan },
    { "inf", (double)(a->n_pos_inf + a->n_neg_inf), (double)(b->n_pos_inf + b->n_neg_inf) },
    { "mean", a->mean, b->mean },
    { "l2", a->l2, b->l2 },
    { "min", a->min, b->min },
    { "max", a->max, b->max },
    { "variance", a->m2, b->m2 },
    { "zeros", (double)a->n_zero, (double)b->n_zero },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].a != rows[i].b && !(isnan (rows[i].a) && isnan (rows[i].b)))
      {
        g_string_append_printf (s, "%s %.9g → %.9g", rows[i].name, rows[i].a, rows[i].b);
        return;
      }
}

static void
add_numbers (GString *s, const TdDiff *d, const TdDiffPair *p)
{
  guint n;
  const TdDiffNumbers *numbers = td_diff_get_numbers (d, p, &n);

  for (guint k = 0; k < n; k++)
    if (numbers[k].differ)
      {
        if (s->len > 0)
          g_string_append (s, "; ");
        if (numbers[k].has_values)
          append_values (s, d, p, &numbers[k]);
        else
          append_stats (s, &numbers[k]);
        return;
      }
}

char *
td_diff_dup_what (const TdDiff *d, const TdDiffPair *p)
{
  GString *s = g_string_new (NULL);

  if (p->event[0] < 0 || p->event[1] < 0)
    g_string_append_printf (s, "no counterpart in %s", p->event[0] < 0 ? "A" : "B");
  else
    {
      if (td__diff_member_of (d, p))
        g_string_append (s, td__diff_member_of (d, p)->what);
      if (p->kind == TD_DIFF_FUSED)
        g_string_append_printf (s, "%s%u → %u", s->len > 0 ? "; " : "",
                                p->fused_side == TD_DIFF_A ? p->n_fused : 1,
                                p->fused_side == TD_DIFF_A ? 1 : p->n_fused);
      if (p->aspects & TD_DIFF_OPERATION)
        add (s, "", op_of (d, p, 0), op_of (d, p, 1));
      if (p->aspects & TD_DIFF_LINK)
        add (s, "", td_iteration_get_link_path (d->side[0], (guint)p->event[0]),
             td_iteration_get_link_path (d->side[1], (guint)p->event[1]));
      if (p->aspects & TD_DIFF_ORDER)
        g_string_append_printf (s, "%sruns as event %d instead of %d", s->len > 0 ? "; " : "",
                                p->event[1], p->event[0]);
      if ((p->aspects & (TD_DIFF_ATTRIBUTES | TD_DIFF_NUMBERS)) && p->kind != TD_DIFF_FUSED
          && !(p->aspects & TD_DIFF_OPERATION))
        td__diff_append_attributes (
            s, td_iteration_get_string (d->side[0], event_of (d, p, 0)->attrs),
            td_iteration_get_string (d->side[1], event_of (d, p, 1)->attrs));
      if (p->aspects & TD_DIFF_INPUTS)
        add_inputs (s, d, p);
      if (p->aspects & (TD_DIFF_SHAPE | TD_DIFF_DTYPE))
        {
          g_autofree char *a = dup_shapes (d, p, 0), *b = dup_shapes (d, p, 1);

          add_leaf_shapes (s, d, p);
          if (!g_str_equal (a, b))
            add (s, "", a, b);
        }
      if (p->aspects & TD_DIFF_GRAPH)
        g_string_append_printf (s, "%sleaves no graph in %s", s->len > 0 ? "; " : "",
                                event_of (d, p, 0)->flags & TD_TAPE_EVENT_NO_BACKPROP ? "A"
                                                                                      : "B");
      if (p->aspects & TD_DIFF_FAILED)
        g_string_append_printf (s, "%s%s", s->len > 0 ? "; " : "",
                                event_of (d, p, 0)->flags & TD_TAPE_EVENT_FAILED
                                    ? "failed → done"
                                    : "done → failed");
      /* another call has other numbers: that says nothing */
      if ((p->aspects & TD_DIFF_NUMBERS) && p->kind != TD_DIFF_FUSED
          && !(p->aspects & (TD_DIFF_OPERATION | TD_DIFF_LINK | TD_DIFF_SHAPE | TD_DIFF_DTYPE)))
        add_numbers (s, d, p);
    }
  return g_string_free (s, FALSE);
}

/* ---- the sentence ---- */

static void
append_count (GString *s, const char *before, guint n, const char *one, const char *many)
{
  g_string_append_printf (s, "%s%u %s", before, n, n == 1 ? one : many);
}

/* "1 operation changed, 2 added" and "3 gradients follow". */
static void
append_counts (GString *s, const TdDiff *d)
{
  static const TdDiffKind order[]
      = { TD_DIFF_CHANGED, TD_DIFF_REMOVED, TD_DIFF_ADDED, TD_DIFF_FUSED };
  guint gradients
      = d->n_followers[TD_TAPE_PHASE_BACKWARD] + d->n_followers[TD_TAPE_PHASE_ACCUMULATE];
  const guint follow[] = { d->n_followers[TD_TAPE_PHASE_FORWARD], gradients,
                           d->n_followers[TD_TAPE_PHASE_UPDATE] };
  static const char *const one[] = { "operation", "gradient", "update" }, *const many[] = {
    "operations", "gradients", "updates"
  };
  gboolean first = TRUE;
  guint total = 0;

  for (guint i = 0; i < G_N_ELEMENTS (order); i++)
    {
      guint n = d->n_kind[order[i]] - (order[i] == TD_DIFF_CHANGED ? d->n_numbers_only : 0);

      if (n == 0)
        continue;
      if (first)
        append_count (s, "", n, "operation", "operations");
      else
        g_string_append_printf (s, ", %u", n);
      g_string_append_printf (s, " %s", td_diff_kind_name (order[i]));
      first = FALSE;
    }
  if (d->n_numbers_only > 0)
    append_count (s, ", ", d->n_numbers_only, "with other numbers", "with other numbers");
  for (guint i = 0; i < G_N_ELEMENTS (follow); i++)
    if (follow[i] > 0)
      {
        gboolean last = i == 2 || follow[2] == 0;

        append_count (s, total > 0 && last ? " and " : ", ", follow[i], one[i], many[i]);
        total += follow[i];
      }
  if (total > 0)
    g_string_append_printf (s, " follow%s", total == 1 ? "s" : "");
}

static gboolean
is_structural (const TdDiffPair *p)
{
  return p->kind != TD_DIFF_CHANGED || (p->aspects & ~(TD_DIFF_NUMBERS | TD_DIFF_MODE));
}

/* A group that computes with something else comes before those that are only fused. */
static const TdDiffPair *
first_structural (const TdDiff *d)
{
  const TdDiffPair *first = NULL;

  for (guint i = 0; i < d->n_items; i++)
    {
      const TdDiffPair *p = &d->pairs[d->items[i]];

      if (!is_structural (p))
        continue;
      if (p->kind != TD_DIFF_FUSED)
        return first ? first : p;
      if (td__diff_member_of (d, p))
        return p;
      first = first ? first : p;
    }
  return first;
}

static char *
numbers_sentence (const TdDiff *d)
{
  const TdDiffPair *p = &d->pairs[d->items[0]];
  g_autofree char *site = td_diff_dup_site (d, p, TD_DIFF_A), *what = td_diff_dup_what (d, p);

  return g_strdup_printf ("The same %u %s; %u with other numbers, first %s%s%s: %s.",
                          d->totals[0].n_events,
                          td_plural (d->totals[0].n_events, "operation", "operations"),
                          d->n_items, op_of (d, p, 0), *site ? " at " : "", site, what);
}

/* Where nothing else does: "relu added at model.c:12". */
static void
append_first (GString *s, const TdDiff *d, const TdDiffPair *p)
{
  g_autofree char *title = td_diff_dup_title (d, p), *what = td_diff_dup_what (d, p);
  g_autofree char *site_a = td_diff_dup_site (d, p, 0), *site_b = td_diff_dup_site (d, p, 1);
  const char *site = *site_b ? site_b : site_a;
  char *more = strstr (what, "; ");

  if (more)
    *more = '\0'; /* the rest is in the list */
  g_string_append (s, title);
  if (p->kind != TD_DIFF_CHANGED && !td__diff_member_of (d, p))
    g_string_append_printf (s, " %s", td_diff_kind_name (p->kind));
  else if (!(p->aspects & TD_DIFF_OPERATION) && *what)
    g_string_append_printf (s, " %s", what);
  if (*site && d->cause.kind != TD_DIFF_CAUSE_BRANCH)
    {
      g_string_append_printf (s, " at %s", site);
      if (*site_a && *site_b && !g_str_equal (site_a, site_b))
        g_string_append_printf (s, " (%s in A)", site_a);
    }
}

char *
td_diff_sentence (const TdDiff *d)
{
  const TdDiffPair *p = first_structural (d);
  GString *s;

  if (d->n_items == 0)
    return g_strdup_printf ("The same %u %s%s%s.", d->totals[0].n_events,
                            td_plural (d->totals[0].n_events, "operation", "operations"),
                            d->has_numbers ? " with the same numbers" : "",
                            d->has_values ? ", element by element" : "");
  if (!p)
    return numbers_sentence (d);
  s = g_string_new (NULL);
  if (d->cause.kind != TD_DIFF_CAUSE_NONE)
    {
      g_autofree char *side = td_diff_dup_side (d, TD_DIFF_B);

      g_string_append_printf (s, "%s %s: ", side, d->cause.text);
    }
  append_first (s, d, p);
  g_string_append (s, "; ");
  append_counts (s, d);
  g_string_append_c (s, '.');
  return g_string_free (s, FALSE);
}

/* ---- the list ---- */

static void
append_totals (GString *s, const TdDiff *d)
{
  g_autofree char *times = td_diff_dup_times (d);

  for (guint side = 0; side < 2; side++)
    {
      const TdDiffTotals *t = &d->totals[side];
      char ns[TD_FORMAT_SIZE], op_ns[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE],
          peak[TD_FORMAT_SIZE];

      g_string_append_printf (
          s, "%s: iteration %" G_GINT64_FORMAT ", %u %s (%u forward, %u backward)",
          side == TD_DIFF_A ? "A" : "B", td_iteration_get_number (d->side[side]), t->n_events,
          td_plural (t->n_events, "operation", "operations"), t->n_phase[TD_TAPE_PHASE_FORWARD],
          t->n_phase[TD_TAPE_PHASE_BACKWARD]);
      if (t->n_static > 0)
        g_string_append_printf (s, ", %u of them static", t->n_static);
      g_string_append_printf (s, ", %s in operations of %s, %s written, peak %s\n",
                              td_format_ns (op_ns, t->op_ns), td_format_ns (ns, t->ns),
                              td_format_bytes (bytes, t->bytes),
                              td_format_bytes (peak, t->peak_bytes));
    }
  g_string_append_printf (s, "times: %s\n", times);
}

static void
append_item (GString *s, const TdDiff *d, const TdDiffPair *p)
{
  guint side = p->event[0] < 0 ? TD_DIFF_B : TD_DIFF_A;
  g_autofree char *title = td_diff_dup_title (d, p), *what = td_diff_dup_what (d, p);
  g_autofree char *site_a = td_diff_dup_site (d, p, 0), *site_b = td_diff_dup_site (d, p, 1);
  char event[2][16];

  for (guint k = 0; k < 2; k++)
    g_snprintf (event[k], sizeof event[k], p->event[k] < 0 ? "none" : "%d", p->event[k]);
  /* arrows have three bytes: pad by characters */
  g_string_append_printf (s, "%s %-9s %4s → %-4s  %s%*s  %-20s %s%s%s%s%s\n",
                          td_diff_kind_glyph (p->kind),
                          td_tape_phase_name (event_of (d, p, side)->phase), event[0], event[1],
                          title, (int)MAX (0, 28 - g_utf8_strlen (title, -1)), "",
                          td_iteration_get_link_path (d->side[side], (guint)p->event[side]),
                          *site_a ? site_a : site_b,
                          *site_a && *site_b && !g_str_equal (site_a, site_b) ? " → " : "",
                          *site_a && *site_b && !g_str_equal (site_a, site_b) ? site_b : "",
                          *what ? "  " : "", what);
}

char *
td__diff_print_text (const TdDiff *d)
{
  GString *s = g_string_new (NULL);
  g_autofree char *sentence = td_diff_sentence (d);

  for (char **v = d->versions; v && *v; v += 3)
    g_string_append_printf (s, "%s: %s in A, %s in B\n", v[0], *v[1] ? v[1] : "unknown",
                            *v[2] ? v[2] : "unknown");
  g_string_append_printf (s, "%s\n", sentence);
  append_totals (s, d);
  for (guint i = 0; i < d->n_items; i++)
    append_item (s, d, &d->pairs[d->items[i]]);
  return g_string_free (s, FALSE);
}
