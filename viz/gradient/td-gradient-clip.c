/*
 * What clipping did to the gradients of an iteration: nothing but the statistics that the tape
 * has of them before and after the operations of the clipping hooks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-gradient-private.h"

/* A norm over several arrays, as far as it is finite. */
typedef struct
{
  double squares;
  guint64 n_nan, n_inf;
} Norm;

static void
norm_add (Norm *norm, const TdTapeStats *s)
{
  norm->squares += s->l2 * s->l2;
  norm->n_nan += s->n_nan;
  norm->n_inf += s->n_pos_inf + s->n_neg_inf;
}

static TdCell
norm_value (const Norm *norm, double *l2)
{
  *l2 = sqrt (norm->squares);
  return norm->n_nan > 0 ? TD_CELL_NAN : norm->n_inf > 0 ? TD_CELL_PLUS_INF : TD_CELL_VALUE;
}

/* Whether all elements are finite or not as before, and the extremes are the same numbers: what
 * is scaled or cut off moves at least one of them. */
static gboolean
is_unchanged (const TdTapeStats *a, const TdTapeStats *b)
{
  return a->n_nan == b->n_nan && a->n_pos_inf == b->n_pos_inf && a->n_neg_inf == b->n_neg_inf
         && (a->min == b->min || (isnan (a->min) && isnan (b->min)))
         && (a->max == b->max || (isnan (a->max) && isnan (b->max)));
}

static gboolean
is_clipping (const TdTapeEvent *e, const TdGradientNames *names)
{
  const char *op;

  if (e->phase != TD_TAPE_PHASE_UPDATE || e->n_in == 0
      || (e->flags & TD_TAPE_EVENT_FAILED) != 0)
    return FALSE;
  op = names->op (names->data, e);
  return g_str_equal (op, "gradient_clipping") || g_str_equal (op, "gradient_hard_clipping");
}

/* Per variable, as indices into the statistics plus one: the last seen, those before its first
 * clipping and after its last. */
typedef struct
{
  guint last, before, after;
} Seen;

TdGradientClip
td__gradient_clip (const TdTapeIteration *t, const TdGradientNames *names)
{
  TdGradientClip clip = { .known = TRUE };
  g_autofree Seen *seen = NULL;
  g_autofree guint *clips = NULL; /* by event: the variable that it clips, plus one */
  guint n_clippings = 0, n_told = 0;
  Norm before = { 0 }, after = { 0 };

  clips = g_new0 (guint, MAX (t->n_events, 1));
  for (guint e = 0; e < t->n_events; e++)
    if (is_clipping (&t->events[e], names))
      {
        clips[e] = t->ins[t->events[e].first_in] + 1;
        n_clippings++;
      }
  if (n_clippings == 0)
    return clip;
  seen = g_new0 (Seen, MAX (t->n_vars, 1));
  for (guint i = 0; i < t->n_stats; i++)
    {
      const TdTapeStats *s = &t->stats[i];
      Seen *v = &seen[s->var];

      if (s->event < t->n_events && clips[s->event] == s->var + 1 && v->last > 0)
        {
          clip.clipped |= !is_unchanged (&t->stats[v->last - 1], s);
          if (v->before == 0)
            v->before = v->last;
          v->after = i + 1;
          n_told++;
        }
      v->last = i + 1;
    }
  clip.known = n_told == n_clippings;
  for (guint e = 0; e < t->n_events; e++)
    if (clips[e] > 0)
      {
        Seen *v = &seen[clips[e] - 1];

        clip.n_hooked += v->last != G_MAXUINT; /* each gradient once */
        if (v->last != G_MAXUINT && v->before > 0)
          {
            norm_add (&before, &t->stats[v->before - 1]);
            norm_add (&after, &t->stats[v->after - 1]);
          }
        v->last = G_MAXUINT;
      }
  clip.before = norm_value (&before, &clip.l2_before);
  clip.after = norm_value (&after, &clip.l2_after);
  return clip;
}
