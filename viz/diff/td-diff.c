/*
 * Comparing two iterations.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-diff.h"

#include <math.h>
#include <string.h>

#include "scene/td-format.h"
#include "td-align.h"
#include "td-tape.h"

typedef struct
{
  TdDiff *d;
  const TdTapeIteration *a, *b;
  guint8 *taint_a, *taint_b;     /* by variable: depends on something that differs */
  guint8 *differs_a, *differs_b; /* by event: differs itself, or follows from what does */
  const TdTapeStats **stats_a, **stats_b; /* by variable; NULL where there are none */
} Comparison;

/* What an event is, apart from where its line is: operation, layer, phase. Texts, not ids,
 * since the two may come from different tapes. */
static guint64
token_of (const TdIteration *iteration, guint event)
{
  const TdTapeEvent *e = &td_iteration_get_tape (iteration)->events[event];
  guint64 h = 1469598103934665603u;
  const char *texts[] = { td_iteration_get_op_name (iteration, event),
                          td_iteration_get_link_path (iteration, event) };

  for (int i = 0; i < 2; i++)
    for (const char *p = texts[i];; p++)
      {
        h = (h ^ (guint8)*p) * 1099511628211u; /* FNV-1a, the terminating zero included */
        if (!*p)
          break;
      }
  return (h ^ e->phase) * 1099511628211u;
}

static guint64 *
tokens_of (const TdIteration *iteration)
{
  guint n = td_iteration_get_n_events (iteration);
  guint64 *tokens = g_new (guint64, MAX (n, 1));

  for (guint e = 0; e < n; e++)
    tokens[e] = token_of (iteration, e);
  return tokens;
}

/* Among equal neighbours the alignment is free to choose: where it could as well have matched
 * equal keys, do so. A run is moved towards the partner with its key. */
static void
prefer_keys (Comparison *c, const guint64 *ta)
{
  TdDiff *d = c->d;

  for (guint i = 0; i < c->a->n_events; i++)
    {
      gint j = d->b_of_a[i], other = td_iteration_find_event (d->b, c->a->events[i].key);

      if (j < 0 || other < 0 || other == j || d->a_of_b[other] >= 0
          || c->b->events[j].key == c->a->events[i].key)
        continue;
      /* only if the order stays: nothing matched lies between the two partners */
      gint lo = MIN (j, other), hi = MAX (j, other);
      gboolean clear = TRUE;
      for (gint k = lo; k <= hi && clear; k++)
        clear = k == j || d->a_of_b[k] < 0;
      if (!clear || token_of (d->b, (guint)other) != ta[i])
        continue;
      d->a_of_b[j] = -1;
      d->b_of_a[i] = other;
      d->a_of_b[other] = (gint)i;
    }
}

/* Unmatched events with one key are the same call doing something else: relu became sigmoid. */
static void
match_substitutes (Comparison *c)
{
  TdDiff *d = c->d;

  for (guint i = 0; i < c->a->n_events; i++)
    {
      gint j = d->b_of_a[i] < 0 ? td_iteration_find_event (d->b, c->a->events[i].key) : -1;

      if (j < 0 || d->a_of_b[j] >= 0 || c->a->events[i].phase != c->b->events[j].phase)
        continue;
      d->b_of_a[i] = j;
      d->a_of_b[j] = (gint)i;
    }
}

/* ---- what differs ---- */

static char *
shapes_of (const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeEvent *e = &t->events[event];
  GString *s = g_string_new (NULL);

  for (guint k = 0; k < e->n_out; k++)
    {
      g_autofree char *shape
          = td_iteration_dup_shape (iteration, t->outs[e->first_out + k], TRUE);
      g_string_append_printf (s, "%s%s", k > 0 ? ", " : "", shape);
    }
  return g_string_free (s, FALSE);
}

static char *
arrow (const char *a, const char *b)
{
  return g_str_equal (a, b) ? NULL : g_strdup_printf ("%s -> %s", a, b);
}

/* One line about a pair that is not the same call, NULL if it is. */
static char *
call_change (Comparison *c, guint i, guint j)
{
  TdDiff *d = c->d;
  char *what = arrow (td_iteration_get_op_name (d->a, i), td_iteration_get_op_name (d->b, j));

  /* an optimizer's attributes are numbers that change from step to step */
  if (!what && c->a->events[i].phase != TD_TAPE_PHASE_UPDATE)
    what = arrow (td_iteration_get_string (d->a, c->a->events[i].attrs),
                  td_iteration_get_string (d->b, c->b->events[j].attrs));
  if (!what && ((c->a->events[i].flags ^ c->b->events[j].flags) & TD_TAPE_EVENT_FAILED) != 0)
    what = g_strdup (c->a->events[i].flags & TD_TAPE_EVENT_FAILED ? "failed -> done"
                                                                  : "done -> failed");
  return what;
}

/* One line about a pair whose outputs differ in shape or type, NULL if they do not. */
static char *
shape_change (Comparison *c, guint i, guint j)
{
  g_autofree char *a = shapes_of (c->d->a, i), *b = shapes_of (c->d->b, j);

  return arrow (a, b);
}

static gboolean
same_number (double a, double b)
{
  return a == b || (isnan (a) && isnan (b));
}

/* One line about the first number that differs, NULL if none does or one side has none. */
static char *
numeric_change (Comparison *c, guint i, guint j)
{
  const TdTapeEvent *ea = &c->a->events[i], *eb = &c->b->events[j];

  for (guint k = 0; k < MIN (ea->n_out, eb->n_out); k++)
    {
      const TdTapeStats *sa = c->stats_a[c->a->outs[ea->first_out + k]],
                        *sb = c->stats_b[c->b->outs[eb->first_out + k]];
      static const char *const names[]
          = { "nan ", "inf ", "zeros ", "mean ", "l2 ", "min ", "max " };

      if (!sa || !sb)
        continue;
      const double va[] = { (double)sa->n_nan,
                            (double)(sa->n_pos_inf + sa->n_neg_inf),
                            (double)sa->n_zero,
                            sa->mean,
                            sa->l2,
                            sa->min,
                            sa->max };
      const double vb[] = { (double)sb->n_nan,
                            (double)(sb->n_pos_inf + sb->n_neg_inf),
                            (double)sb->n_zero,
                            sb->mean,
                            sb->l2,
                            sb->min,
                            sb->max };
      /* the most telling first: not finite, then the moments, then counts of zeros */
      static const int order[] = { 0, 1, 3, 4, 5, 6, 2 };
      for (gsize m = 0; m < G_N_ELEMENTS (order); m++)
        if (!same_number (va[order[m]], vb[order[m]]))
          return g_strdup_printf ("%s%.9g -> %.9g", names[order[m]], va[order[m]],
                                  vb[order[m]]);
    }
  return NULL;
}

static void
add_item (Comparison *c, TdDiffKind kind, gint a, gint b, gboolean structural, char *what)
{
  TdDiffItem item = { kind, a, b, structural, what };

  g_array_append_val (c->d->items, item);
}

/* Does an event follow from a difference: is its forward twin different, or does it read what
 * is? */
static gboolean
follows (const TdTapeIteration *t, guint event, const guint8 *taint, const guint8 *differs)
{
  const TdTapeEvent *e = &t->events[event];

  if (e->twin >= 0 && differs[e->twin])
    return TRUE;
  for (guint k = 0; k < e->n_in; k++)
    if (taint[t->ins[e->first_in + k]])
      return TRUE;
  return FALSE;
}

static void
mark (const TdTapeIteration *t, guint event, guint8 *taint, guint8 *differs)
{
  const TdTapeEvent *e = &t->events[event];

  differs[event] = 1;
  for (guint k = 0; k < e->n_out; k++)
    taint[t->outs[e->first_out + k]] = 1;
}

static void
compare_pair (Comparison *c, guint i, guint j)
{
  TdDiff *d = c->d;
  gboolean follower = follows (c->a, i, c->taint_a, c->differs_a)
                      || follows (c->b, j, c->taint_b, c->differs_b);
  /* another call is a decision of the program, also behind an earlier difference; shapes,
   * numbers and the passes after the forward one merely follow */
  gboolean decided = c->a->events[i].phase == TD_TAPE_PHASE_FORWARD || !follower;
  char *what = decided ? call_change (c, i, j) : NULL;

  if (!what && !follower)
    what = shape_change (c, i, j);
  if (what)
    add_item (c, TD_DIFF_CHANGED, (gint)i, (gint)j, TRUE, what);
  else if (follower)
    d->n_followers++;
  else
    {
      /* numbers are listed wherever they differ: nothing is hidden behind them */
      what = numeric_change (c, i, j);
      if (what)
        add_item (c, TD_DIFF_CHANGED, (gint)i, (gint)j, FALSE, what);
      else
        d->n_same++;
      return;
    }
  mark (c->a, i, c->taint_a, c->differs_a);
  mark (c->b, j, c->taint_b, c->differs_b);
}

/* An event that only one side has: a difference, or, in the passes after the forward one, what
 * follows from a difference. (In the forward pass two inserted operations are two differences.)
 */
static void
compare_lone (Comparison *c, TdDiffKind kind, guint event)
{
  gboolean in_a = kind == TD_DIFF_ONLY_A;
  const TdTapeIteration *t = in_a ? c->a : c->b;
  guint8 *taint = in_a ? c->taint_a : c->taint_b, *differs = in_a ? c->differs_a : c->differs_b;

  if (t->events[event].phase != TD_TAPE_PHASE_FORWARD && follows (t, event, taint, differs))
    c->d->n_followers++;
  else
    add_item (c, kind, in_a ? (gint)event : -1, in_a ? -1 : (gint)event, TRUE, NULL);
  mark (t, event, taint, differs);
}

/* Walks both sequences in order; lone events of A come before those of B at the same place. */
static void
walk (Comparison *c)
{
  TdDiff *d = c->d;
  guint i = 0, j = 0, n_a = c->a->n_events, n_b = c->b->n_events;

  while (i < n_a || j < n_b)
    if (i < n_a && d->b_of_a[i] < 0)
      compare_lone (c, TD_DIFF_ONLY_A, i++);
    else if (j < n_b && d->a_of_b[j] < 0)
      compare_lone (c, TD_DIFF_ONLY_B, j++);
    else if (i < n_a && j < n_b && d->b_of_a[i] == (gint)j)
      compare_pair (c, i++, j++);
    else
      {
        /* substitutes may cross over one another: the pair is compared where A has it */
        if (i < n_a)
          compare_pair (c, i, (guint)d->b_of_a[i]);
        i += i < n_a;
        j += j < n_b;
      }
}

static const TdTapeStats **
index_stats (const TdTapeIteration *t)
{
  const TdTapeStats **by_var = g_new0 (const TdTapeStats *, MAX (t->n_vars, 1));

  for (guint i = 0; i < t->n_stats; i++)
    if (t->stats[i].var < t->n_vars)
      by_var[t->stats[i].var] = &t->stats[i];
  return by_var;
}

TdDiff *
td_diff_new (TdIteration *a, TdIteration *b)
{
  TdDiff *d = g_new0 (TdDiff, 1);
  Comparison c = { .d = d, .a = td_iteration_get_tape (a), .b = td_iteration_get_tape (b) };
  g_autofree guint64 *ta = tokens_of (a), *tb = tokens_of (b);

  d->a = td_iteration_ref (a);
  d->b = td_iteration_ref (b);
  d->items = g_array_new (FALSE, FALSE, sizeof (TdDiffItem));
  d->b_of_a = g_new (gint32, MAX (c.a->n_events, 1));
  d->a_of_b = g_new (gint32, MAX (c.b->n_events, 1));
  d->first_a = d->first_b = -1;
  d->has_numbers = c.a->n_stats > 0 && c.b->n_stats > 0;
  td__align (ta, (gint)c.a->n_events, tb, (gint)c.b->n_events, d->b_of_a, d->a_of_b);
  prefer_keys (&c, ta);
  match_substitutes (&c);

  c.taint_a = g_malloc0 (MAX (c.a->n_vars, 1));
  c.taint_b = g_malloc0 (MAX (c.b->n_vars, 1));
  c.differs_a = g_malloc0 (MAX (c.a->n_events, 1));
  c.differs_b = g_malloc0 (MAX (c.b->n_events, 1));
  c.stats_a = index_stats (c.a);
  c.stats_b = index_stats (c.b);
  walk (&c);
  if (d->items->len > 0)
    {
      d->first_a = g_array_index (d->items, TdDiffItem, 0).a;
      d->first_b = g_array_index (d->items, TdDiffItem, 0).b;
    }
  g_free (c.taint_a);
  g_free (c.taint_b);
  g_free (c.differs_a);
  g_free (c.differs_b);
  g_free (c.stats_a);
  g_free (c.stats_b);
  return d;
}

void
td_diff_add_versions (TdDiff *d, const TdTapeReader *a, const TdTapeReader *b)
{
  static const char *const keys[]
      = { "version", "version.engine", "version.blas", "version.compiler", "version.libc" };
  g_autoptr (GPtrArray) found = g_ptr_array_new ();

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const char *x = td_tape_reader_info (a, keys[i]), *y = td_tape_reader_info (b, keys[i]);

      if (g_str_equal (x, y))
        continue;
      g_ptr_array_add (found, g_strdup (keys[i]));
      g_ptr_array_add (found, g_strdup (x));
      g_ptr_array_add (found, g_strdup (y));
    }
  if (found->len == 0)
    return;
  g_ptr_array_add (found, NULL);
  g_strfreev (d->versions);
  d->versions = (char **)g_ptr_array_steal (found, NULL);
}

void
td_diff_free (TdDiff *d)
{
  if (!d)
    return;
  for (guint i = 0; i < d->items->len; i++)
    g_free (g_array_index (d->items, TdDiffItem, i).what);
  g_array_unref (d->items);
  td_iteration_unref (d->a);
  td_iteration_unref (d->b);
  g_free (d->b_of_a);
  g_free (d->a_of_b);
  g_strfreev (d->versions);
  g_free (d);
}
