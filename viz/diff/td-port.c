/*
 * A port check: paired layers, and how far their numbers lie apart.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>
#include <math.h>
#include <string.h>

#include "td-port-private.h"

TdPortLayer *
td__port_layer (const TdPort *self, guint side, guint layer)
{
  return g_ptr_array_index (self->side[side].layers, layer);
}

/* ---- numbers ---- */

/* Keep the two values if they are the farthest apart so far, measured by what is allowed. */
static void
look_at (TdPortNumbers *n, const TdPortTolerance *tolerance, const char *what, double a,
         double b, double size, double *worst)
{
  const double apart = isnan (a) && isnan (b) ? 0 : fabs (a - b);
  const double allowed = tolerance->atol + tolerance->rtol * size;
  const double share = allowed > 0 ? apart / allowed : apart > 0 ? HUGE_VAL : 0;

  if (n->what && !(share > *worst) && !isnan (share))
    return;
  *worst = isnan (share) ? HUGE_VAL : share;
  n->what = what;
  n->value[0] = a;
  n->value[1] = b;
  n->apart = size > 0 ? apart / size : apart;
}

/* All of these are the same however the elements lie. */
static TdPortNumbers
compare (const TdTapeStats *a, const TdTapeStats *b, const TdPortTolerance *tolerance)
{
  TdPortNumbers n = { .verdict = TD_PORT_UNKNOWN };
  double worst = 0, root, largest;

  if (!a || !b)
    return n;
  if (a->n != b->n)
    {
      n = (TdPortNumbers){ TD_PORT_DIFFERS, "elements", { (double)a->n, (double)b->n }, 1 };
      return n;
    }
  root = MAX (a->l2, b->l2) / sqrt (MAX ((double)a->n, 1));
  largest = MAX (MAX (fabs (a->min), fabs (a->max)), MAX (fabs (b->min), fabs (b->max)));
  look_at (&n, tolerance, "l2", a->l2, b->l2, MAX (a->l2, b->l2), &worst);
  look_at (&n, tolerance, "mean", a->mean, b->mean, root, &worst);
  look_at (&n, tolerance, "min", a->min, b->min, largest, &worst);
  look_at (&n, tolerance, "max", a->max, b->max, largest, &worst);
  if (a->n_nan != b->n_nan)
    {
      n.what = "NaN";
      n.value[0] = (double)a->n_nan;
      n.value[1] = (double)b->n_nan;
      worst = HUGE_VAL;
    }
  n.verdict = worst > 1 ? TD_PORT_DIFFERS : TD_PORT_SAME;
  return n;
}

/* ---- parameters ---- */

/* 2: the same sizes; 1: the other way round; 0: others. */
static guint
likeness (const TdPortParameter *a, const TdPortParameter *b)
{
  gboolean same = a->ndim == b->ndim, turned = same && a->ndim > 1;

  for (guint d = 0; d < a->ndim; d++)
    {
      same = same && a->dims[d] == b->dims[d];
      turned = turned && a->dims[d] == b->dims[a->ndim - 1 - d];
    }
  return same ? 2 : turned ? 1 : 0;
}

/* A parameter's counterpart is the first that is as large and not taken: weights come before
 * biases on either side. */
static void
pair_parameters (TdPort *self, TdPortPair *p)
{
  const GArray *own[2] = { td__port_layer (self, 0, p->layer[0])->parameters,
                           td__port_layer (self, 1, p->layer[1])->parameters };
  g_autofree gboolean *taken = g_new0 (gboolean, own[1]->len + 1);

  for (guint i = 0; i < own[0]->len; i++)
    {
      const TdPortParameter *a = &g_array_index (own[0], TdPortParameter, i);
      TdPortGradient g = { .parameter = { (gint)i, -1 } };
      guint best = 0;

      for (guint j = 0; j < own[1]->len; j++)
        {
          const TdPortParameter *b = &g_array_index (own[1], TdPortParameter, j);
          const guint like = taken[j] ? 0 : likeness (a, b);

          if (like > best)
            {
              best = like;
              g.parameter[1] = (gint)j;
              g.transposed = like == 1;
              g.numbers = compare (a->gradient, b->gradient, &self->tolerance);
            }
        }
      if (best > 0)
        {
          const TdPortParameter *b
              = &g_array_index (own[1], TdPortParameter, (guint)g.parameter[1]);

          taken[g.parameter[1]] = TRUE;
          if (!a->gradient != !b->gradient) /* what no gradient reaches has none */
            g.numbers = (TdPortNumbers){ .verdict = TD_PORT_DIFFERS,
                                         .what = a->gradient ? "only A has a gradient"
                                                             : "only B has a gradient" };
        }
      else
        g.numbers = (TdPortNumbers){ .verdict = TD_PORT_DIFFERS, .what = "only in A" };
      g_array_append_val (p->gradients, g);
    }
  for (guint j = 0; j < own[1]->len; j++)
    if (!taken[j])
      {
        TdPortGradient g = { .parameter = { -1, (gint)j },
                             .numbers = { .verdict = TD_PORT_DIFFERS, .what = "only in B" } };

        g_array_append_val (p->gradients, g);
      }
}

static void
compare_pair (TdPort *self, guint a, guint b)
{
  TdPortPair p
      = { .layer = { a, b }, .gradients = g_array_new (FALSE, TRUE, sizeof (TdPortGradient)) };

  p.out = compare (td__port_layer (self, 0, a)->stats, td__port_layer (self, 1, b)->stats,
                   &self->tolerance);
  pair_parameters (self, &p);
  if (p.out.verdict == TD_PORT_DIFFERS && self->forward < 0)
    self->forward = (gint)self->pairs->len;
  for (guint i = 0; i < p.gradients->len; i++)
    if (g_array_index (p.gradients, TdPortGradient, i).numbers.verdict == TD_PORT_DIFFERS)
      self->backward = (gint)self->pairs->len; /* the last one forward is the first backward */
  g_array_append_val (self->pairs, p);
}

/* ---- the whole ---- */

static void
pair_clear (gpointer data)
{
  g_array_unref (((TdPortPair *)data)->gradients);
}

static gboolean
has_numbers (const TdPort *self)
{
  for (guint i = 0; i < self->pairs->len; i++)
    if (g_array_index (self->pairs, TdPortPair, i).out.verdict != TD_PORT_UNKNOWN)
      return TRUE;
  return FALSE;
}

TdPort *
td_port_new (TdIteration *a, TdIteration *b, TdTapeReader *reader_a, TdTapeReader *reader_b,
             const char *names, TdPortTolerance tolerance, GError **error)
{
  g_autoptr (TdPort) self = g_new0 (TdPort, 1);
  TdIteration *iterations[2] = { a, b };
  TdTapeReader *readers[2] = { reader_a, reader_b };

  self->tolerance = tolerance;
  self->forward = self->backward = -1;
  self->pairs = g_array_new (FALSE, TRUE, sizeof (TdPortPair));
  g_array_set_clear_func (self->pairs, pair_clear);
  for (guint s = 0; s < 2; s++)
    {
      td__port_side_read (&self->side[s], iterations[s], readers[s]);
      self->partner[s] = g_new (gint, self->side[s].layers->len + 1);
      for (guint i = 0; i < self->side[s].layers->len; i++)
        self->partner[s][i] = -1;
    }
  if (!names)
    td__port_guess (self);
  else if (!td__port_take_names (self, names, error))
    return NULL;
  for (guint i = 0; i < self->side[0].layers->len; i++)
    if (self->partner[0][i] >= 0)
      compare_pair (self, i, (guint)self->partner[0][i]);
  if (has_numbers (self))
    return g_steal_pointer (&self);
  if (self->pairs->len > 0)
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "no layer has statistics on both sides: both are to be recorded at level stats");
  else
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "no layer of A is one of B: %u and %u layers, by the sizes of their parameters",
        self->side[0].layers->len, self->side[1].layers->len);
  return NULL;
}

void
td_port_free (TdPort *self)
{
  if (!self)
    return;
  for (guint s = 0; s < 2; s++)
    {
      td__port_side_clear (&self->side[s]);
      g_free (self->partner[s]);
    }
  g_array_unref (self->pairs);
  g_free (self);
}

gboolean
td_port_differs (const TdPort *self)
{
  gboolean differs = self->forward >= 0 || self->backward >= 0;

  for (guint s = 0; s < 2; s++)
    for (guint i = 0; i < self->side[s].layers->len; i++)
      if (self->partner[s][i] < 0 && td__port_layer (self, s, i)->parameters->len > 0)
        differs = TRUE;
  return differs;
}
