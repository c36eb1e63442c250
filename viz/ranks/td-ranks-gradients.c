/*
 * Gradients before and after their mean: what is not finite and what made it, whether the mean
 * is that of the gradients, who has none, and ranks whose gradients are the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "diff/td-diff.h"
#include "td-ranks-private.h"

#define SAME_STEPS 3         /* so many in which all gradients are equal */
#define TOLERANCE 1e-5       /* relative to the sum of magnitudes */
#define HALF_TOLERANCE 0.008 /* of bfloat16's 8 bits, rounded once for each rank */
#define HALF_LEAST 6e-8      /* of float16 */

struct TdRanksGradients
{
  gint64 last;
  gboolean not_finite, left_out, wrong_mean, absent;
  guint *same;         /* by pair of places: steps in a row with equal gradients */
  gint64 *same_from;   /* the first of them */
  gboolean *same_said; /* by place */
};

TdRanksGradients *
td__ranks_gradients_new (const TdRanks *self)
{
  TdRanksGradients *g = g_new0 (TdRanksGradients, 1);

  g->last = -1;
  g->same = g_new0 (guint, self->n * self->n);
  g->same_from = g_new0 (gint64, self->n * self->n);
  g->same_said = g_new0 (gboolean, self->n);
  return g;
}

static const TdSumKey *
key_at (const TdSumTable *table, guint key)
{
  return &g_array_index (table->keys, TdSumKey, key);
}

static gboolean
is_absent (const TdTapeRankSum *s)
{
  return (s->flags & TD_TAPE_SUM_ABSENT) != 0;
}

/* ---- not finite ---- */

/* The first operation whose numbers have it, -1: none does. */
static gint
find_maker (const TdIteration *it)
{
  for (guint e = 0; it && e < td_iteration_get_n_events (it); e++)
    if (td_iteration_is_anomaly (it, e))
      return (gint)e;
  return -1;
}

static gboolean
has_not_finite (const TdTapeStats *s)
{
  return s->n_nan > 0 || s->n_pos_inf > 0 || s->n_neg_inf > 0;
}

static gboolean
reads_not_finite (const TdTapeIteration *it, const TdTapeEvent *e)
{
  for (guint i = 0; i < it->n_stats; i++)
    for (guint k = 0; k < e->n_in && has_not_finite (&it->stats[i]); k++)
      if (it->ins[e->first_in + k] == it->stats[i].var)
        return TRUE;
  return FALSE;
}

/* What a call of several ranks brings was another's, where this rank gave nothing of it. */
static gboolean
has_received (TdRanks *self, guint place, gint64 number)
{
  g_autoptr (TdIteration) it = td__ranks_load (self, place, number);
  gint maker = find_maker (it);

  return maker >= 0 && td_diff_is_call_of_ranks (td_iteration_get_op_name (it, (guint)maker))
         && !reads_not_finite (td_iteration_get_tape (it),
                               &td_iteration_get_tape (it)->events[maker]);
}

/* An array that the program wrote to after the update before, and spoiled; NULL: none. */
static const TdTapeRankSum *
find_spoiled (const TdRankIteration *it)
{
  for (guint i = 0; i < it->n_sums; i++)
    if (it->sums[i].flags & TD_TAPE_SUM_SPOILED)
      return &it->sums[i];
  return NULL;
}

/* "rank 1 had written NaN or infinite elements into `b` at train.c:80". NULL: it had not. */
static char *
dup_spoiled (TdRanks *self, guint place, const TdRankIteration *it, char **site)
{
  const TdTapeRankSum *s = find_spoiled (it);

  *site = s ? td__ranks_dup_site (self, place, s->n_averaged) : NULL;
  if (!*site)
    return NULL;
  return g_strdup_printf ("rank %u had written NaN or infinite elements into `%s` at %s",
                          self->tapes[place].open.rank, td__ranks_text (self, place, s->path),
                          *site);
}

/* "made by exp at train.c:88", or why that is not known; then where this gradient was made. */
static char *
dup_maker (TdRanks *self, guint place, gint64 number, const TdTapeRankSum *gradient,
           char **site)
{
  g_autoptr (TdIteration) it = td__ranks_load (self, place, number);
  gint maker = find_maker (it);
  g_autofree char *path = NULL;
  const char *layer;

  *site = NULL;
  if (maker >= 0
      && (td_iteration_get_tape (it)->events[maker].phase == TD_TAPE_PHASE_UPDATE
          || td_diff_is_call_of_ranks (td_iteration_get_op_name (it, (guint)maker))))
    maker = -1; /* it only took the gradient */
  if (maker < 0)
    *site = td__ranks_dup_site (self, place, gradient->n_averaged);
  if (!it || td_iteration_get_tape (it)->n_stats == 0)
    return g_strdup_printf (
        "what made it first is not on the tape (record with --level stats)%s%s",
        *site ? "; the gradient was made, or written last, at " : "", *site ? *site : "");
  if (maker < 0 && *site)
    return g_strdup_printf (
        "no operation's numbers have it: it was written into the gradient at %s", *site);
  if (maker < 0)
    return g_strdup ("no operation's numbers have it: it came with the gradient's last step");
  path = td_iteration_dup_site (it, (guint)maker);
  layer = td_iteration_get_link_path (it, (guint)maker);
  *site = *path ? g_path_get_basename (path) : NULL;
  return g_strdup_printf ("first in %s%s%s%s%s%s", td_iteration_get_op_name (it, (guint)maker),
                          *layer ? " (" : "", layer, *layer ? ")" : "", *site ? " at " : "",
                          *site ? *site : "");
}

/* Loss scaling tries scales that are too large and leaves the update out: no parameter takes
 * anything from that step. */
static gboolean
is_left_out (const TdRanks *self, const TdSumTable *table)
{
  gboolean scaled = FALSE;

  for (guint key = 0; key < table->n; key++)
    for (guint i = 0; i < self->n; i++)
      {
        const TdTapeRankSum *s = td__sum_table_get (table, key, i);

        if (s && key_at (table, key)->kind == TD_TAPE_SUM_NUMBER)
          scaled
              = scaled
                || (strstr (key_at (table, key)->path, "scale") && td__rank_sum_number (s) > 1);
        if (s && key_at (table, key)->kind == TD_TAPE_SUM_PARAMETER && s->n_not_finite > 0)
          return FALSE;
      }
  return scaled;
}

/* How many iterations before this one its gradients were made: double buffering. */
static gint64
staleness (const TdSumTable *table, guint place)
{
  for (guint key = 0; key < table->n; key++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, place);

      if (s && key_at (table, key)->kind == TD_TAPE_SUM_NUMBER
          && strcmp (key_at (table, key)->path, "staleness") == 0)
        return (gint64)td__rank_sum_number (s);
    }
  return 0;
}

/* Ranks that only received it, in a call of several, are none of those it began on; where all
 * say so, or nothing is known, all stay. Returns how many have left. */
static guint
leave_origins (TdRanks *self, const TdRankRow *row, const TdSumTable *table, gboolean *bad)
{
  g_autofree gboolean *origins = g_new0 (gboolean, self->n);
  guint n = 0, n_origins = 0;

  for (guint i = 0; i < self->n; i++)
    {
      origins[i] = bad[i] && !has_received (self, i, row->of[i]->number - staleness (table, i));
      n += bad[i];
      n_origins += origins[i];
    }
  if (n_origins == 0 || n_origins == n)
    return 0;
  memcpy (bad, origins, self->n * sizeof *bad);
  return n - n_origins;
}

/* The first place with an element of this gradient that is not finite, -1: none. */
static gint
find_not_finite (const TdRanks *self, const TdSumTable *table, guint key, const gboolean *bad)
{
  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, i);

      if (bad[i] && s && key_at (table, key)->kind == TD_TAPE_SUM_GRADIENT
          && s->n_not_finite > 0)
        return (gint)i;
    }
  return -1;
}

/* Has a rank one from this key on? Once it is in a parameter, which all ranks have, gradients
 * of a second update in the same step have it on all of them: that says nothing. */
static gboolean
brings_not_finite (const TdSumTable *table, guint key, guint place)
{
  for (; key < table->n; key++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, place);

      if (!s || s->n_not_finite == 0)
        continue;
      if (key_at (table, key)->kind == TD_TAPE_SUM_GRADIENT)
        return TRUE;
      if (key_at (table, key)->kind == TD_TAPE_SUM_PARAMETER)
        return FALSE;
    }
  return FALSE;
}

/* What that rank did to a parameter by hand, and one with finite gradients did not. */
static char *
dup_hand (TdRanks *self, const TdRankRow *row, const gboolean *bad, guint place, char **site)
{
  gint other = -1;

  for (guint i = 0; i < self->n; i++)
    other = other < 0 && !bad[i] && row->of[i] ? (gint)i : other;
  return td__ranks_dup_parameter_write (self, row, NULL, other, place, site);
}

/* The first that went into an update, and the first that did not. */
static void
say_not_finite (TdRanksGradients *g, TdRanks *self, const TdRankRow *row,
                const TdSumTable *table, guint key)
{
  gboolean left_out = is_left_out (self, table),
           *said = left_out ? &g->left_out : &g->not_finite;
  g_autofree gboolean *bad = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL, *maker = NULL, *when = NULL, *wrote = NULL;
  char *site = NULL;
  gint first = -1;
  gint64 stale;
  guint n_bad = 0, n_received;
  const TdTapeRankSum *s;
  TdRanksFinding *f;
  char count[TD_FORMAT_SIZE];

  if (*said)
    return;
  *said = TRUE;
  for (guint i = 0; i < self->n; i++)
    bad[i] = brings_not_finite (table, key, i);
  n_received = leave_origins (self, row, table, bad);
  for (guint i = 0; i < self->n; i++)
    n_bad += bad[i];
  for (; key < table->n && (first = find_not_finite (self, table, key, bad)) < 0; key++)
    ;
  s = td__sum_table_get (table, key, (guint)first);
  stale = staleness (table, (guint)first);
  maker = stale == 0 ? dup_spoiled (self, (guint)first, row->of[first], &site) : NULL;
  if (!maker)
    maker = dup_maker (self, (guint)first, row->of[first]->number - stale, s, &site);
  wrote = stale == 0 ? dup_hand (self, row, bad, (guint)first, &site) : NULL;
  names = td__ranks_dup_names (self, bad);
  when = td__ranks_dup_when (row->number, g->last);
  f = td__ranks_add (self, TD_RANKS_NOT_FINITE, left_out ? TD_RANKS_NOTE : TD_RANKS_ERROR,
                     row->number, bad);
  f->after = g->last;
  f->array = g_strdup (key_at (table, key)->path);
  f->site = site;
  f->sentence = g_strdup_printf (
      "%s %s %s: the gradient of `%s` has %s NaN or infinite %s before the mean%s%s%s; %s%s%s",
      names, n_bad < self->n ? "parted" : "went wrong together", when, f->array,
      td_format_count (count, (gint64)s->n_not_finite),
      td_plural (s->n_not_finite, "element", "elements"),
      n_bad > 1 ? " on the first of them" : "",
      left_out ? "; loss scaling left this update out" : "",
      stale ? "; it was made in the iteration before" : "", maker, wrote ? wrote : "",
      n_received ? "; the other ranks got it by a call of all" : "");
  if (!left_out)
    f->advice
        = g_strdup ("The mean gives it to all ranks: mend the operation, or clip before it");
}

/* What ranks brought to the mean: is it on the tapes, and is something of it not finite? */
static gboolean
has_own_gradients (const TdRanks *self, const TdSumTable *table, gboolean *not_finite)
{
  gboolean found = FALSE;

  *not_finite = FALSE;
  for (guint key = 0; key < table->n; key++)
    for (guint i = 0; key_at (table, key)->kind == TD_TAPE_SUM_GRADIENT && i < self->n; i++)
      {
        const TdTapeRankSum *s = td__sum_table_get (table, key, i);

        found = found || s;
        *not_finite = *not_finite || (s && s->n_not_finite > 0);
      }
  return found;
}

/* What wrote it on the first rank that has it, where another one has not. */
static char *
dup_writer (TdRanks *self, const TdRankRow *row, const char *path, const gboolean *bad,
            char **site)
{
  gint one = -1, other = -1;

  for (guint i = 0; i < self->n; i++)
    if (row->of[i])
      {
        one = one < 0 && bad[i] ? (gint)i : one;
        other = other < 0 && !bad[i] ? (gint)i : other;
      }
  if (one < 0 || other < 0)
    return g_strdup ("");
  return td__ranks_dup_written (self, row, path, (guint)other, (guint)one, site);
}

/* Tapes of a framework that averages where nobody can look: whose it is, they do not say,
 * unless all had finite ones before. */
static void
say_mean_not_finite (TdRanksGradients *g, TdRanks *self, const TdRankRow *row,
                     const TdSumTable *table, guint key, const TdTapeRankSum *s)
{
  g_autofree gboolean *bad = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL, *when = td__ranks_dup_when (row->number, g->last),
                  *writer = NULL;
  gboolean not_finite, own = has_own_gradients (self, table, &not_finite);
  TdRanksFinding *f;
  guint n_bad = 0;
  char count[TD_FORMAT_SIZE];

  if (not_finite)
    return; /* it came from there */
  g->not_finite = TRUE;
  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeRankSum *of = td__sum_table_get (table, key, i);

      n_bad += bad[i] = of && of->n_not_finite > 0;
    }
  names = td__ranks_dup_names (self, bad);
  f = td__ranks_add (self, TD_RANKS_NOT_FINITE, TD_RANKS_ERROR, row->number, bad);
  f->after = g->last;
  f->array = g_strdup (key_at (table, key)->path);
  writer = own ? dup_writer (self, row, f->array, bad, &f->site) : NULL;
  f->sentence = g_strdup_printf ("%s went wrong%s %s: the gradient of `%s` has %s NaN "
                                 "or infinite %s after the mean; %s%s",
                                 names, n_bad > 1 ? " together" : "", when, f->array,
                                 td_format_count (count, (gint64)s->n_not_finite),
                                 td_plural (s->n_not_finite, "element", "elements"),
                                 own ? "before it no rank's had one"
                                     : "which rank brought them is not on the tapes",
                                 writer ? writer : "");
  f->advice = g_strdup (own ? "Mend what is done to .grad between backward and step"
                            : "Record at level stats, and look on each rank's tape where the "
                              "first NaN was made (tapedeck show --view origin)");
}

/* ---- the mean ---- */

/* Do 16 bits hold it, of either half format? */
static gboolean
fits_half (double x)
{
  union
  {
    float f;
    guint32 bits;
  } u = { .f = (float)x };

  return (double)u.f == x && ((u.bits & 0xffffu) == 0 || (u.bits & 0x1fffu) == 0);
}

typedef struct
{
  guint n, n_there; /* rows; those that are there */
  double sum, magnitude;
  gboolean half;
} Terms;

/* The gradients that a mean is of. FALSE: some are not on the tapes, or not finite. */
static gboolean
add_terms (const TdRanks *self, const TdSumTable *table, guint key, guint64 at, Terms *t)
{
  memset (t, 0, sizeof *t);
  t->half = TRUE;
  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, i);

      t->n += s != NULL;
      if (!s || is_absent (s))
        continue;
      if (s->at != at || !isfinite (s->sample))
        return FALSE;
      t->n_there++;
      t->sum += s->sample;
      t->magnitude += fabs (s->sample);
      t->half = t->half && fits_half (s->sample);
    }
  return TRUE;
}

/* Half precision on the way shows in how few bytes the sums took. */
static gboolean
is_sent_as_half (const TdRankIteration *it)
{
  guint64 bytes = 0, elements = 0;

  for (guint i = 0; i < it->n_waits; i++)
    if (it->waits[i].wait == TD_TAPE_WAIT_SUM)
      bytes += it->waits[i].bytes;
  for (guint i = 0; i < it->n_sums; i++)
    if (it->sums[i].kind == TD_TAPE_SUM_MEAN && !is_absent (&it->sums[i]))
      elements += it->sums[i].size;
  return bytes > 0 && bytes < 3 * elements;
}

static gint
find_gradient (const TdSumTable *table, const TdSumKey *mean)
{
  for (guint key = 0; key < table->n; key++)
    {
      const TdSumKey *other = key_at (table, key);

      if (other->kind == TD_TAPE_SUM_GRADIENT && other->path == mean->path
          && other->turn == mean->turn && other->group == mean->group)
        return (gint)key;
    }
  return -1;
}

/* "it is their sum", where the mean is a multiple that says what went wrong. */
static const char *
explain_ratio (double ratio, guint n)
{
  if (fabs (ratio - n) < 1e-3 * n)
    return ": it is their sum";
  if (fabs (ratio * n - 1) < 1e-3)
    return ": it was divided twice";
  return "";
}

/* A tape of a framework has the gradient of a step, which the program may have clipped since.
 */
static void
check_mean (TdRanksGradients *g, TdRanks *self, const TdRankRow *row, const TdSumTable *table,
            guint key, guint place, const TdTapeRankSum *mean)
{
  gint gradient = find_gradient (table, key_at (table, key));
  double expected, allowed;
  g_autofree char *when = NULL;
  g_autofree gboolean *all = NULL;
  char got[TD_FORMAT_SIZE], wanted[TD_FORMAT_SIZE];
  TdRanksFinding *f;
  Terms t;

  if (gradient < 0 || mean->n_averaged == 0 || !isfinite (mean->sample)
      || td__ranks_is_of_framework (self, place)
      || !add_terms (self, table, (guint)gradient, mean->at, &t)
      || (mean->n_averaged != t.n && mean->n_averaged != t.n_there))
    return;
  expected = t.sum / mean->n_averaged;
  allowed = TOLERANCE * t.magnitude / mean->n_averaged + 1e-30;
  if (fabs (mean->sample - expected) <= allowed)
    return;
  if ((mean->flags & TD_TAPE_SUM_HALF) || is_sent_as_half (row->of[place])
      || (t.half && fits_half (mean->sample)))
    allowed = HALF_TOLERANCE * t.magnitude + HALF_LEAST * t.n;
  if (fabs (mean->sample - expected) <= allowed)
    return;
  g->wrong_mean = TRUE;
  all = g_new0 (gboolean, self->n);
  for (guint i = 0; i < self->n; i++)
    all[i] = td__sum_table_get (table, key, i) != NULL;
  when = td__ranks_dup_when (row->number, g->last);
  f = td__ranks_add (self, TD_RANKS_MEAN_CHECK, TD_RANKS_ERROR, row->number, all);
  f->after = g->last;
  f->array = g_strdup (key_at (table, key)->path);
  f->sentence = g_strdup_printf (
      "The mean of the gradients of `%s` is wrong %s: element %" G_GUINT64_FORMAT
      " is %s on rank %u, and should be %s, the mean of %u ranks'%s",
      f->array, when, mean->at, td_format_digits (got, mean->sample, 9),
      self->tapes[place].open.rank, td_format_digits (wanted, expected, 9), mean->n_averaged,
      explain_ratio (mean->sample / expected, mean->n_averaged));
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_DIVIDE));
}

/* ---- who has none ---- */

static void
say_absent (TdRanksGradients *g, TdRanks *self, const TdRankRow *row, const TdSumTable *table,
            guint key)
{
  g_autofree gboolean *absent = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL, *when = NULL;
  guint n_there = 0, n = 0;
  TdRanksFinding *f;

  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, i);

      /* what was left out is there: an update that sends rank 0's weights leaves the others'
       * out */
      absent[i] = s && is_absent (s) && !(s->flags & TD_TAPE_SUM_LEFT_OUT);
      n_there += s && !absent[i];
      n += absent[i];
    }
  if (n == 0 || n_there == 0) /* nobody has one: a layer that was not used */
    return;
  g->absent = TRUE;
  names = td__ranks_dup_names_do (self, absent, " has", " have");
  when = td__ranks_dup_when (row->number, g->last);
  f = td__ranks_add (self, TD_RANKS_ABSENT, TD_RANKS_WARNING, row->number, absent);
  f->after = g->last;
  f->array = g_strdup (key_at (table, key)->path);
  f->sentence
      = g_strdup_printf ("%s no gradient of `%s` %s, where %u other %s one", names, f->array,
                         when, n_there, td_plural (n_there, "rank has", "ranks have"));
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_USE_ALL));
}

/* ---- the same examples ---- */

/* Are all gradients of two ranks the same bits, and not all zero? */
static gboolean
are_same (const TdSumTable *table, guint a, guint b)
{
  gboolean something = FALSE;

  for (guint key = 0; key < table->n; key++)
    {
      const TdTapeRankSum *x = td__sum_table_get (table, key, a),
                          *y = td__sum_table_get (table, key, b);

      if (key_at (table, key)->kind != TD_TAPE_SUM_GRADIENT || (!x && !y))
        continue;
      if (!x || !y || is_absent (x) != is_absent (y) || x->sum[0] != y->sum[0]
          || x->sum[1] != y->sum[1] || x->n_not_finite > 0)
        return FALSE;
      something = something || (!is_absent (x) && x->sample != 0);
    }
  return something;
}

static void
say_same (TdRanksGradients *g, TdRanks *self, guint a)
{
  g_autofree gboolean *same = g_new0 (gboolean, self->n);
  g_autofree char *names = NULL;
  TdRanksFinding *f;
  gint64 from = G_MAXINT64;

  same[a] = TRUE;
  for (guint b = a + 1; b < self->n; b++)
    if (g->same[a * self->n + b] >= SAME_STEPS)
      {
        same[b] = g->same_said[b] = TRUE;
        from = MIN (from, g->same_from[a * self->n + b]);
      }
  g->same_said[a] = TRUE;
  names = td__ranks_dup_names_do (self, same, "", " compute the same");
  f = td__ranks_add (self, TD_RANKS_SAME_DATA, TD_RANKS_WARNING, from, same);
  f->sentence = g_strdup_printf ("%s: all their gradients were equal, bit for bit, before the "
                                 "mean from iteration %" G_GINT64_FORMAT " on",
                                 names, from);
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_DEAL_OUT));
}

static void
look_for_same (TdRanksGradients *g, TdRanks *self, const TdRankRow *row,
               const TdSumTable *table)
{
  for (guint a = 0; a < self->n; a++)
    {
      gboolean many = FALSE;

      for (guint b = a + 1; b < self->n; b++)
        {
          guint *same = &g->same[a * self->n + b];

          if (!row->of[a] || !row->of[b] || row->of[a]->n_sums == 0 || row->of[b]->n_sums == 0)
            continue;
          *same = are_same (table, a, b) ? *same + 1 : 0;
          if (*same == 1)
            g->same_from[a * self->n + b] = row->number;
          many = many || (*same >= SAME_STEPS && !g->same_said[b]);
        }
      if (many && !g->same_said[a])
        say_same (g, self, a);
    }
}

/* ---- */

static void
look_at_key (TdRanksGradients *g, TdRanks *self, const TdRankRow *row, const TdSumTable *table,
             guint key)
{
  guint8 kind = key_at (table, key)->kind;
  gboolean checked = FALSE;

  for (guint i = 0; i < self->n; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (table, key, i);

      if (!s)
        continue;
      if (kind == TD_TAPE_SUM_GRADIENT && s->n_not_finite > 0 && !g->not_finite)
        say_not_finite (g, self, row, table, key);
      if (kind == TD_TAPE_SUM_MEAN && s->n_not_finite > 0 && !g->not_finite
          && (td__ranks_is_of_framework (self, i)
              || find_gradient (table, key_at (table, key)) < 0))
        say_mean_not_finite (g, self, row, table, key, s);
      if (kind == TD_TAPE_SUM_MEAN && !is_absent (s) && !checked && !g->wrong_mean)
        {
          checked = TRUE; /* of the others it is enough that they have the same */
          check_mean (g, self, row, table, key, i, s);
        }
      self->n_means += kind == TD_TAPE_SUM_MEAN;
    }
  if (kind == TD_TAPE_SUM_GRADIENT && !g->absent)
    say_absent (g, self, row, table, key);
}

void
td__ranks_gradients_look (TdRanksGradients *g, TdRanks *self, const TdRankRow *row,
                          const TdSumTable *table)
{
  if (table->n == 0)
    return;
  for (guint key = 0; key < table->n; key++)
    look_at_key (g, self, row, table, key);
  look_for_same (g, self, row, table);
  g->last = row->number;
}

void
td__ranks_gradients_end (TdRanksGradients *g, TdRanks *self)
{
  (void)self;
  g_free (g->same);
  g_free (g->same_from);
  g_free (g->same_said);
  g_free (g);
}
