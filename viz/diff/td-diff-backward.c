/*
 * Counterparts after the forward pass. A backward operation belongs to a forward one, its twin;
 * among those of one twin it is known by its role: what it reads of the forward operation, what
 * of the gradients, and whose gradient it makes. Order and name alone would pair the product
 * that makes the gradient for x with the one for W.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-diff-private.h"
#include "td-tape.h"

/* Families with more pairs than this are paired in order. */
#define MAX_PAIRS (1 << 16)
/* How far an operation is followed through others of its family. */
#define MAX_DEPTH 4

typedef struct
{
  TdComparison *c;
  const guint64 *const *loose;
  guint64 *gives[2]; /* by variable: the parameter whose gradient it is, as a hash; 0: none */
  GArray *family[2]; /* guint32: lone events of one twin */
} Backward;

typedef struct
{
  guint32 a, b;
  gint score, apart; /* apart: how far their places in their families are */
} Candidate;

static const TdTapeEvent *
event_of (const TdComparison *c, guint side, guint event)
{
  return &c->t[side]->events[event];
}

/* ---- whose gradient ---- */

static void
index_gradients (Backward *w, guint side)
{
  const TdTapeIteration *t = w->c->t[side];

  w->gives[side] = g_new0 (guint64, MAX (t->n_vars, 1));
  for (guint i = 0; i < t->n_grads; i++)
    if (t->grads[i].gradient < t->n_vars)
      w->gives[side][t->grads[i].gradient]
          = 1 | g_str_hash (td_iteration_get_string (w->c->d->side[side], t->grads[i].path))
            | (guint64)1 << 32;
}

static guint64
parameter_of (const Backward *w, guint side, guint event)
{
  const TdTapeIteration *t = w->c->t[side];
  const TdTapeEvent *e = &t->events[event];

  for (guint k = 0; k < e->n_out; k++)
    if (w->gives[side][t->outs[e->first_out + k]])
      return w->gives[side][t->outs[e->first_out + k]];
  return 0;
}

/* ---- roles ---- */

typedef enum
{
  ROLE_GRADIENT, /* that arrives, from other operations or from the program */
  ROLE_FORWARD,  /* an input or output of the forward operation */
  ROLE_OWN,      /* made by another of the family */
} Role;

static Role
role_of (const Backward *w, guint side, const TdTapeEvent *e, guint var)
{
  const TdTapeIteration *t = w->c->t[side];
  gint maker = t->vars[var].producer;
  const TdTapeEvent *forward = e->twin >= 0 ? &t->events[e->twin] : NULL;

  for (guint k = 0; forward && k < forward->n_in; k++)
    if (t->ins[forward->first_in + k] == var)
      return ROLE_FORWARD;
  if (maker >= 0 && t->events[maker].phase == TD_TAPE_PHASE_FORWARD)
    return ROLE_FORWARD;
  if (maker >= 0 && t->events[maker].phase == TD_TAPE_PHASE_BACKWARD
      && t->events[maker].twin == e->twin)
    return ROLE_OWN;
  return ROLE_GRADIENT;
}

/* Which input (from 0 on) or output (from -1 on) of its twin a variable is. */
static gint
place_in_twin (const TdComparison *c, guint side, const TdTapeEvent *e, guint var)
{
  const TdTapeIteration *t = c->t[side];
  const TdTapeEvent *forward = e->twin >= 0 ? &t->events[e->twin] : NULL;

  for (guint k = 0; forward && k < forward->n_in; k++)
    if (t->ins[forward->first_in + k] == var)
      return (gint)k;
  for (guint k = 0; forward && k < forward->n_out; k++)
    if (t->outs[forward->first_out + k] == var)
      return -1 - (gint)k;
  return G_MAXINT;
}

static gboolean
same_forward (const TdComparison *c, const TdTapeEvent *ea, guint var_a, const TdTapeEvent *eb,
              guint var_b)
{
  gboolean grouped = (ea->twin >= 0 && c->group[0][ea->twin] >= 0)
                     || (eb->twin >= 0 && c->group[1][eb->twin] >= 0);
  gint a = place_in_twin (c, 0, ea, var_a), b = place_in_twin (c, 1, eb, var_b);

  if (!grouped && a != G_MAXINT && b != G_MAXINT)
    return a == b;
  return td__diff_same_var (c, var_a, var_b);
}

static gint
compare_roles (const Backward *w, guint a, guint b, guint depth)
{
  const TdComparison *c = w->c;
  const TdTapeEvent *ea = event_of (c, 0, a), *eb = event_of (c, 1, b);
  gint score = ea->n_in == eb->n_in ? 1 : -2;

  for (guint k = 0; k < MIN (ea->n_in, eb->n_in); k++)
    {
      guint va = c->t[0]->ins[ea->first_in + k], vb = c->t[1]->ins[eb->first_in + k];
      Role ra = role_of (w, 0, ea, va), rb = role_of (w, 1, eb, vb);

      if (ra != rb)
        score -= ra == ROLE_FORWARD || rb == ROLE_FORWARD ? 4 : 1;
      else if (ra == ROLE_GRADIENT)
        score += 2;
      else if (ra == ROLE_FORWARD)
        score += same_forward (c, ea, va, eb, vb) ? 3 : -3;
      else if (c->d->partner[0][c->t[0]->vars[va].producer] == c->t[1]->vars[vb].producer)
        score += 3;
      else if (depth > 0)
        score += compare_roles (w, (guint)c->t[0]->vars[va].producer,
                                (guint)c->t[1]->vars[vb].producer, depth - 1)
                         > 0
                     ? 2
                     : -2;
    }
  return score;
}

static gboolean
same_shape (const TdComparison *c, const TdTapeEvent *ea, const TdTapeEvent *eb)
{
  const TdTapeVar *a, *b;

  if (ea->n_out == 0 || eb->n_out == 0)
    return ea->n_out == eb->n_out;
  a = &c->t[0]->vars[c->t[0]->outs[ea->first_out]];
  b = &c->t[1]->vars[c->t[1]->outs[eb->first_out]];
  return a->ndim == b->ndim
         && memcmp (c->t[0]->dims + a->first_dim, c->t[1]->dims + b->first_dim,
                    a->ndim * sizeof (gint64))
                == 0;
}

/* How well one stands for the other; 0 and below: not at all. */
static gint
score_of (const Backward *w, guint a, guint b, gboolean same_name)
{
  const TdComparison *c = w->c;
  const TdTapeEvent *ea = event_of (c, 0, a), *eb = event_of (c, 1, b);
  guint64 pa = parameter_of (w, 0, a), pb = parameter_of (w, 1, b);
  gint score;

  if (ea->phase != eb->phase || (w->loose[0][a] == w->loose[1][b]) != same_name)
    return 0;
  score = compare_roles (w, a, b, MAX_DEPTH);
  if (pa && pb)
    score += pa == pb ? 6 : -12;
  else if (pa || pb)
    score -= 3;
  score += same_shape (c, ea, eb) ? 2 : -1;
  score += g_str_equal (td_iteration_get_string (c->d->side[0], ea->attrs),
                        td_iteration_get_string (c->d->side[1], eb->attrs))
               ? 2
               : -1;
  score += ea->order == eb->order;
  return score;
}

/* ---- families ---- */

static void
collect_twins (Backward *w, guint side, guint forward)
{
  guint n;
  const gint32 *twins = td_iteration_get_twins (w->c->d->side[side], forward, &n);

  for (guint k = 0; k < n; k++)
    if (td__diff_is_lone (w->c, side, (guint32)twins[k]))
      g_array_append_val (w->family[side], twins[k]);
}

static gint
by_score (gconstpointer x, gconstpointer y)
{
  const Candidate *a = x, *b = y;

  if (a->score != b->score)
    return b->score - a->score;
  if (a->apart != b->apart)
    return a->apart - b->apart;
  return a->a != b->a ? (gint)a->a - (gint)b->a : (gint)a->b - (gint)b->b;
}

static void
pair_by_role (Backward *w, gboolean same_name)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Candidate));
  const guint32 *a = (const guint32 *)(const void *)w->family[0]->data,
                *b = (const guint32 *)(const void *)w->family[1]->data;

  for (guint i = 0; i < w->family[0]->len; i++)
    for (guint j = 0; j < w->family[1]->len; j++)
      {
        Candidate x
            = { a[i], b[j], score_of (w, a[i], b[j], same_name), ABS ((gint)i - (gint)j) };

        if (x.score > 0)
          g_array_append_val (all, x);
      }
  g_array_sort (all, by_score);
  for (guint i = 0; i < all->len; i++)
    {
      const Candidate *x = &g_array_index (all, Candidate, i);

      if (td__diff_is_lone (w->c, 0, x->a) && td__diff_is_lone (w->c, 1, x->b))
        td__diff_pair (w->c, (gint)x->a, (gint)x->b);
    }
}

/* A loop that calls one operation's backward thousands of times: in order, by name. */
static void
pair_in_order (Backward *w)
{
  guint next = 0;

  for (guint i = 0; i < w->family[0]->len; i++)
    for (guint j = next; j < MIN (w->family[1]->len, next + 64); j++)
      {
        guint32 a = g_array_index (w->family[0], guint32, i),
                b = g_array_index (w->family[1], guint32, j);

        if (w->loose[0][a] != w->loose[1][b])
          continue;
        td__diff_pair (w->c, (gint)a, (gint)b);
        next = j + 1;
        break;
      }
}

/* Calls `pair` with the families of each two counterparts, or of a group and its one. */
static void
each_family (Backward *w, void (*pair) (Backward *w))
{
  TdComparison *c = w->c;

  for (guint a = 0; a < c->t[0]->n_events; a++)
    {
      gint b = c->d->partner[0][a], group = c->group[0][a];

      if (b < 0)
        continue;
      g_array_set_size (w->family[0], 0);
      g_array_set_size (w->family[1], 0);
      if (group < 0)
        {
          collect_twins (w, 0, a);
          collect_twins (w, 1, (guint)b);
        }
      else
        {
          const TdFusedGroup *g = &g_array_index (c->groups, TdFusedGroup, group);

          if (g->side == TD_DIFF_A && c->d->partner[1][b] != (gint)a)
            continue; /* once, at the last member */
          for (guint i = 0; i < g->n; i++)
            collect_twins (w, g->side, g_array_index (c->fused, guint32, g->first + i));
          collect_twins (w, 1 - g->side, (guint)g->event);
        }
      if (w->family[0]->len > 0 && w->family[1]->len > 0)
        pair (w);
    }
}

static void
pair_same (Backward *w)
{
  if ((gsize)w->family[0]->len * w->family[1]->len > MAX_PAIRS)
    pair_in_order (w);
  else
    pair_by_role (w, TRUE);
}

/* A group of the backward is known by its last member, which has the group's twin. */
static void
open_groups (Backward *w, TdDiffReach reach)
{
  for (guint side = 0; side < 2; side++)
    for (guint i = 0; i < w->family[side]->len; i++)
      {
        guint32 fused = g_array_index (w->family[side], guint32, i);
        gboolean done
            = !td__diff_is_lone (w->c, side, fused) || !td__diff_is_fused (w->c, side, fused);

        for (guint k = 0; k < w->family[1 - side]->len && !done; k++)
          done = td__diff_open_group (w->c, side, fused,
                                      g_array_index (w->family[1 - side], guint32, k), reach);
      }
}

/* What is sure comes first, so that a guess takes no member from it. */
static void
open_linked (Backward *w)
{
  open_groups (w, TD_DIFF_LINKED);
}

static void
open_twins (Backward *w)
{
  open_groups (w, TD_DIFF_OF_ONE_TWIN);
}

static void
open_near (Backward *w)
{
  open_groups (w, TD_DIFF_NEAR);
}

/* Another operation in the same role: a replaced activation has another gradient. */
static void
pair_substitutes (Backward *w)
{
  if ((gsize)w->family[0]->len * w->family[1]->len <= MAX_PAIRS)
    pair_by_role (w, FALSE);
}

/* Groups whose twin has no counterpart, or that have none: the nearest in order. */
static void
open_rest (Backward *w)
{
  TdComparison *c = w->c;

  for (guint side = 0; side < 2; side++)
    {
      guint32 from = 0;

      for (guint e = 0; e < c->t[side]->n_events; e++)
        if (event_of (c, side, e)->phase != TD_TAPE_PHASE_FORWARD
            && td__diff_is_lone (c, side, e) && td__diff_is_fused (c, side, e))
          for (guint32 k = from; k < c->t[1 - side]->n_events; k++)
            if (td__diff_is_lone (c, 1 - side, k)
                && event_of (c, 1 - side, k)->phase != TD_TAPE_PHASE_FORWARD
                && td__diff_open_group (c, side, e, k, TD_DIFF_NEAR))
              {
                from = k + 1;
                break;
              }
    }
}

void
td__diff_match_backward (TdComparison *c, const guint64 *const loose[2])
{
  Backward w = { .c = c, .loose = loose };

  for (guint s = 0; s < 2; s++)
    {
      index_gradients (&w, s);
      w.family[s] = g_array_new (FALSE, FALSE, sizeof (guint32));
    }
  each_family (&w, pair_same);
  each_family (&w, open_linked);
  each_family (&w, open_twins);
  each_family (&w, open_near);
  open_rest (&w);
  each_family (&w, pair_same); /* of what the groups' members are twins of */
  each_family (&w, pair_substitutes);
  for (guint s = 0; s < 2; s++)
    {
      g_free (w.gives[s]);
      g_array_unref (w.family[s]);
    }
}
