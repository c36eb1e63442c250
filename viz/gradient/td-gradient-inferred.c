/*
 * Gradients that no optimizer takes, of a program that updates by itself or not at all: a tape
 * says of what backward computes only of which operation it is.
 *
 * What the backward of an operation makes, in the shape of one leaf that the operation read,
 * and that backward goes no further with, is that leaf's gradient; so is the sum of several.
 * Where that is not plain, as of two leaves of one shape, nothing is said.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-gradient-private.h"

typedef struct
{
  const TdTapeIteration *t;
  guint32 *leaf;      /* by variable: the leaf whose gradient it may be, or TD_TAPE_NONE */
  gboolean *goes_on;  /* by variable: backward reads it */
  guint32 *gradient;  /* by leaf: the one that is left, or TD_TAPE_NONE */
  gboolean *is_plain; /* by leaf */
  gint *twin;         /* by variable: whose backward made it; -1: it is plain already */
  gint *first, *next; /* backward events by their twin: the last one first; -1 */
} Inference;

static gboolean
is_alike (const TdTapeIteration *t, guint32 a, guint32 b)
{
  const TdTapeVar *x = &t->vars[a], *y = &t->vars[b];

  return x->dtype == y->dtype && x->ndim == y->ndim
         && memcmp (t->dims + x->first_dim, t->dims + y->first_dim, x->ndim * sizeof *t->dims)
                == 0;
}

/* Does an operation's own backward read what it made? Then it is none of its gradients. */
static gboolean
is_between (const Inference *f, guint32 op, guint32 v)
{
  const TdTapeIteration *t = f->t;

  for (gint e = f->first[op]; e >= 0; e = f->next[e])
    for (guint k = 0; k < t->events[e].n_in; k++)
      if (t->ins[t->events[e].first_in + k] == v)
        return TRUE;
  return FALSE;
}

/* Every input of this shape got a gradient. */
static gboolean
all_have_one (const Inference *f, guint32 op, guint32 like)
{
  const TdTapeIteration *t = f->t;
  guint n_in = 0, n_made = 0;

  for (guint k = 0; k < t->events[op].n_in; k++)
    n_in += is_alike (t, t->ins[t->events[op].first_in + k], like);
  for (gint e = f->first[op]; e >= 0; e = f->next[e])
    for (guint k = 0; k < t->events[e].n_out; k++)
      {
        const guint32 v = t->outs[t->events[e].first_out + k];

        n_made += is_alike (t, v, like) && !is_between (f, op, v);
      }
  return n_made == n_in;
}

/* The one leaf of this shape that an operation read; TD_TAPE_NONE: none, or several. */
static guint32
only_leaf (const TdTapeIteration *t, const TdTapeEvent *op, guint32 like)
{
  guint32 found = TD_TAPE_NONE;

  for (guint k = 0; k < op->n_in; k++)
    {
      const guint32 v = t->ins[op->first_in + k];

      if (v == found || t->vars[v].producer >= 0 || !is_alike (t, v, like))
        continue;
      if (found != TD_TAPE_NONE)
        return TD_TAPE_NONE;
      found = v;
    }
  return found;
}

/* Does one operation make the gradients of the first inputs, each in its place? */
static gboolean
is_in_order (const Inference *f, const TdTapeEvent *e)
{
  const TdTapeIteration *t = f->t;
  const TdTapeEvent *op = e->twin >= 0 ? &t->events[e->twin] : NULL;

  if (!op || e->n_out < 2 || e->n_out > op->n_in || &t->events[f->first[e->twin]] != e
      || f->next[e - t->events] >= 0)
    return FALSE;
  for (guint k = 0; k < e->n_out; k++)
    if (!is_alike (t, t->outs[e->first_out + k], t->ins[op->first_in + k]))
      return FALSE;
  return TRUE;
}

/* Of one leaf all that an event sums up, TD_TAPE_NONE where it is no such sum. */
static guint32
summed_leaf (const Inference *f, const TdTapeEvent *e)
{
  const TdTapeIteration *t = f->t;
  const guint32 first = e->n_in > 1 ? f->leaf[t->ins[e->first_in]] : TD_TAPE_NONE;

  for (guint k = 1; k < e->n_in; k++)
    if (f->leaf[t->ins[e->first_in + k]] != first)
      return TD_TAPE_NONE;
  return first;
}

static guint32
leaf_at (const TdTapeIteration *t, gint op, guint k)
{
  const guint32 v = t->ins[t->events[op].first_in + k];

  return t->vars[v].producer < 0 ? v : TD_TAPE_NONE;
}

static void
look_at_event (Inference *f, const TdTapeEvent *e)
{
  const TdTapeIteration *t = f->t;
  const guint32 sum = summed_leaf (f, e);
  const gboolean in_order = is_in_order (f, e);

  for (guint k = 0; k < e->n_in; k++)
    f->goes_on[t->ins[e->first_in + k]] = TRUE;
  for (guint k = 0; k < e->n_out; k++)
    {
      const guint32 v = t->outs[e->first_out + k];

      f->twin[v] = sum != TD_TAPE_NONE || in_order ? -1 : e->twin;
      if (in_order)
        f->leaf[v] = leaf_at (t, e->twin, k);
      else if (sum != TD_TAPE_NONE)
        f->leaf[v] = is_alike (t, v, sum) ? sum : TD_TAPE_NONE;
      else if (e->twin >= 0)
        f->leaf[v] = only_leaf (t, &t->events[e->twin], v);
    }
  /* A kernel that adds to an array: the tape does not say to which. */
  if (e->flags & TD_TAPE_EVENT_ACCUMULATED && e->twin >= 0)
    for (guint k = 0; k < t->events[e->twin].n_in; k++)
      f->is_plain[t->ins[t->events[e->twin].first_in + k]] = FALSE;
}

/* What is left of each leaf, which has to be one. */
static void
settle (Inference *f)
{
  for (guint32 v = 0; v < f->t->n_vars; v++)
    {
      const guint32 leaf = f->leaf[v];

      if (leaf == TD_TAPE_NONE || f->goes_on[v])
        continue;
      if (f->twin[v] >= 0 && !all_have_one (f, (guint32)f->twin[v], v))
        f->is_plain[leaf] = FALSE;
      if (f->gradient[leaf] != TD_TAPE_NONE)
        f->is_plain[leaf] = FALSE;
      f->gradient[leaf] = v;
    }
  for (guint32 v = 0; v < f->t->n_vars; v++)
    if (!f->is_plain[v])
      f->gradient[v] = TD_TAPE_NONE;
}

static void
find_twins (Inference *f)
{
  memset (f->first, 0xff, MAX (f->t->n_events, 1) * sizeof *f->first);
  for (guint e = 0; e < f->t->n_events; e++)
    {
      const gint32 twin = f->t->events[e].twin;

      if (f->t->events[e].phase != TD_TAPE_PHASE_BACKWARD || twin < 0)
        continue;
      f->next[e] = f->first[twin];
      f->first[twin] = (gint)e;
    }
}

guint32 *
td__gradient_infer (const TdTapeIteration *t)
{
  const guint n = MAX (t->n_vars, 1), n_events = MAX (t->n_events, 1);
  Inference f = { .t = t,
                  .leaf = g_new (guint32, n),
                  .goes_on = g_new0 (gboolean, n),
                  .gradient = g_new (guint32, n),
                  .is_plain = g_new (gboolean, n),
                  .twin = g_new (gint, n),
                  .first = g_new (gint, n_events),
                  .next = g_new (gint, n_events) };

  for (guint v = 0; v < n; v++)
    {
      f.leaf[v] = f.gradient[v] = TD_TAPE_NONE;
      f.is_plain[v] = TRUE;
      f.twin[v] = -1;
    }
  find_twins (&f);
  for (guint e = 0; e < t->n_events; e++)
    if (t->events[e].phase == TD_TAPE_PHASE_BACKWARD)
      look_at_event (&f, &t->events[e]);
  settle (&f);
  g_free (f.leaf);
  g_free (f.goes_on);
  g_free (f.is_plain);
  g_free (f.twin);
  g_free (f.first);
  g_free (f.next);
  return f.gradient;
}
