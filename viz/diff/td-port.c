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

const TdPortPair *
td__port_get_pair (const TdPort *self, guint i)
{
  return &g_array_index (self->pairs, TdPortPair, i);
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
compare_stats (const TdTapeStats *a, const TdTapeStats *b, const TdPortTolerance *tolerance)
{
  TdPortNumbers n = { .verdict = TD_PORT_UNKNOWN };
  double worst = 0, root, largest;

  if (!a || !b)
    return n;
  n.n = a->n;
  if (a->n != b->n)
    {
      n.verdict = TD_PORT_DIFFERS;
      n.what = "elements";
      n.value[0] = (double)a->n;
      n.value[1] = (double)b->n;
      n.apart = 1;
      n.elements = TD_PORT_OTHER_SHAPES;
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

/* Elements say more than statistics, which say whether it is worth while to look. */
static TdPortNumbers
compare (const TdPort *self, const TdPortArray *a, const TdPortArray *b, gboolean may_turn)
{
  TdPortNumbers n = compare_stats (a->stats, b->stats, &self->tolerance);

  if (n.verdict != TD_PORT_UNKNOWN && n.elements != TD_PORT_OTHER_SHAPES)
    td__port_compare_elements (self, a, b, may_turn, &n);
  if (n.verdict != TD_PORT_UNKNOWN)
    for (guint s = 0; s < 2; s++)
      n.source[s] = td__port_source (&self->side[s], s == 0 ? a : b);
  return n;
}

/* ---- parameters ---- */

/* 3: the same sizes; 2: the other way round; 1: as many elements; 0: others. */
static guint
likeness (const TdPortParameter *a, const TdPortParameter *b)
{
  gboolean same = a->ndim == b->ndim, turned = same && a->ndim > 1;

  for (guint d = 0; d < a->ndim; d++)
    {
      same = same && a->dims[d] == b->dims[d];
      turned = turned && a->dims[d] == b->dims[a->ndim - 1 - d];
    }
  return same ? 3 : turned ? 2 : td__port_count (a) == td__port_count (b);
}

/* What a reference does not have is not missing: it was not asked for. */
static gboolean
is_reference (const TdPort *self, guint side)
{
  return self->side[side].source.is_reference;
}

/* One of a side alone, or whose gradient is. */
static TdPortNumbers
alone (const TdPort *self, const TdPortPair *p, const TdPortParameter *const of[2])
{
  static const char *const only[2] = { "only in A", "only in B" };
  static const char *const reached[2] = { "only A has a gradient", "only B has a gradient" };
  static const char *const updated[2] = { "only A is updated", "only B is updated" };
  TdPortNumbers n = { .verdict = TD_PORT_DIFFERS };

  for (guint s = 0; s < 2; s++)
    {
      const TdPortLayer *layer = td__port_layer (self, s, p->layer[s]);

      if (of[s] && of[s]->gradient.var >= 0)
        n.what = !of[!s]                                  ? only[s]
                 : of[!s]->known == TD_PORT_GRADIENT_LEFT ? updated[s]
                                                          : reached[s];
      else if (of[s] && !of[!s])
        n.what = only[s];
      n.source[s] = td__port_source (
          &self->side[s], of[s] && of[s]->gradient.var >= 0 ? &of[s]->gradient : &layer->out);
    }
  return n;
}

/* What is not known of a side is no difference: of a reference what it does not name, of a tape
 * a gradient that no optimizer spoke of.  What one side's optimizer updates and the other's
 * does not is one. */
static gboolean
is_open (const TdPort *self, const TdPortParameter *const of[2], guint side)
{
  if (is_reference (self, side))
    return TRUE;
  if (!of[side] || of[side]->known == TD_PORT_GRADIENT_NONE)
    return FALSE;
  return of[side]->known != TD_PORT_GRADIENT_LEFT || is_reference (self, !side)
         || of[!side]->known != TD_PORT_GRADIENT_TAKEN;
}

/* What no gradient reaches has none. */
static TdPortNumbers
compare_gradients (const TdPort *self, const TdPortPair *p, const TdPortParameter *a,
                   const TdPortParameter *b)
{
  const TdPortParameter *const of[2] = { a, b };
  const TdPortNumbers unknown = { .verdict = TD_PORT_UNKNOWN };
  TdPortNumbers n;

  for (guint s = 0; s < 2; s++)
    if (!of[s] || (of[s]->gradient.var < 0 && of[!s] && of[!s]->gradient.var >= 0))
      return is_open (self, of, s) ? unknown : alone (self, p, of);
  n = compare (self, &a->gradient, &b->gradient, TRUE);
  if (n.elements != TD_PORT_COMPARED)
    n.turned = likeness (a, b) == 2;
  return n;
}

const TdPortParameter *
td__port_parameter (const TdPort *self, const TdPortPair *p, guint side, gint i)
{
  return i < 0 ? NULL
               : &g_array_index (td__port_layer (self, side, p->layer[side])->parameters,
                                 TdPortParameter, (guint)i);
}

/* What speaks for a pair of parameters: the name, else the sizes.  A reference may have laid it
 * out flat; one that is called so and has other sizes is a mistake that can be shown if both
 * have gradients. */
static guint
speaks_for (const TdPort *self, const TdPortParameter *a, const TdPortParameter *b)
{
  const gboolean named = strcmp (a->name, b->name) == 0;
  const guint like = likeness (a, b);

  if (named && like == 0)
    return a->gradient.var >= 0 && b->gradient.var >= 0;
  if (named)
    return 4 + like;
  return like > 1 || is_reference (self, 0) || is_reference (self, 1) ? like : 0;
}

/* A parameter's counterpart is called as it is and as large, else the first that is as large
 * and not taken: weights come before biases on either side. */
static gint
find_counterpart (const TdPort *self, const TdPortPair *p, guint i, const gboolean *taken)
{
  const TdPortParameter *a = td__port_parameter (self, p, 0, (gint)i);
  const guint n = td__port_layer (self, 1, p->layer[1])->parameters->len;
  guint best = 0;
  gint found = -1;

  for (guint j = 0; j < n; j++)
    {
      const TdPortParameter *b = td__port_parameter (self, p, 1, (gint)j);
      const guint like = taken[j] ? 0 : speaks_for (self, a, b);

      if (like > best)
        {
          best = like;
          found = (gint)j;
        }
    }
  return found;
}

static void
add_gradient (TdPort *self, TdPortPair *p, gint a, gint b)
{
  TdPortGradient g
      = { .parameter = { a, b },
          .numbers = compare_gradients (self, p, td__port_parameter (self, p, 0, a),
                                        td__port_parameter (self, p, 1, b)) };

  g_array_append_val (p->gradients, g);
}

static void
pair_parameters (TdPort *self, TdPortPair *p)
{
  const guint n[2] = { td__port_layer (self, 0, p->layer[0])->parameters->len,
                       td__port_layer (self, 1, p->layer[1])->parameters->len };
  g_autofree gboolean *taken = g_new0 (gboolean, n[1] + 1);

  for (guint i = 0; i < n[0]; i++)
    {
      const gint j = find_counterpart (self, p, i, taken);

      if (j >= 0)
        taken[j] = TRUE;
      add_gradient (self, p, (gint)i, j);
    }
  for (guint j = 0; j < n[1]; j++)
    if (!taken[j])
      add_gradient (self, p, -1, (gint)j);
}

static gboolean
differs_backward (const TdPortPair *p)
{
  for (guint i = 0; i < p->gradients->len; i++)
    if (g_array_index (p->gradients, TdPortGradient, i).numbers.verdict == TD_PORT_DIFFERS)
      return TRUE;
  return p->gradient.verdict == TD_PORT_DIFFERS;
}

static void
compare_pair (TdPort *self, guint a, guint b)
{
  TdPortPair p
      = { .layer = { a, b }, .gradients = g_array_new (FALSE, TRUE, sizeof (TdPortGradient)) };
  const TdPortLayer *x = td__port_layer (self, 0, a), *y = td__port_layer (self, 1, b);

  p.out = compare (self, &x->out, &y->out, FALSE);
  p.gradient = compare (self, &x->gradient, &y->gradient, FALSE);
  pair_parameters (self, &p);
  if (p.out.verdict == TD_PORT_DIFFERS && self->forward < 0)
    self->forward = (gint)self->pairs->len;
  if (differs_backward (&p))
    self->backward = (gint)self->pairs->len; /* the last one forward is the first backward */
  g_array_append_val (self->pairs, p);
}

/* ---- the whole ---- */

static void
numbers_clear (TdPortNumbers *n)
{
  g_free (n->source[0]);
  g_free (n->source[1]);
}

static void
pair_clear (gpointer data)
{
  TdPortPair *p = data;

  for (guint i = 0; i < p->gradients->len; i++)
    numbers_clear (&g_array_index (p->gradients, TdPortGradient, i).numbers);
  g_array_unref (p->gradients);
  numbers_clear (&p->out);
  numbers_clear (&p->gradient);
}

static gboolean
has_numbers (const TdPort *self)
{
  for (guint i = 0; i < self->pairs->len; i++)
    {
      const TdPortPair *p = td__port_get_pair (self, i);

      if (p->out.verdict != TD_PORT_UNKNOWN || p->gradient.verdict != TD_PORT_UNKNOWN)
        return TRUE;
      for (guint k = 0; k < p->gradients->len; k++)
        if (g_array_index (p->gradients, TdPortGradient, k).numbers.n > 0)
          return TRUE;
    }
  return FALSE;
}

static void
prepare (TdPort *self, const TdPortSource *const sources[2])
{
  self->forward = self->backward = -1;
  self->pairs = g_array_new (FALSE, TRUE, sizeof (TdPortPair));
  self->notes = g_ptr_array_new_with_free_func (g_free);
  g_array_set_clear_func (self->pairs, pair_clear);
  for (guint s = 0; s < 2; s++)
    {
      td__port_side_read (&self->side[s], sources[s]);
      self->partner[s] = g_new (gint, self->side[s].layers->len + 1);
      for (guint i = 0; i < self->side[s].layers->len; i++)
        self->partner[s][i] = -1;
    }
  self->how = g_new0 (TdPortHow, self->side[0].layers->len + 1);
}

/* In the order of a program that ran; a file of arrays may be sorted. */
static void
compare_all (TdPort *self)
{
  const guint lead = is_reference (self, 0) && !is_reference (self, 1);

  for (guint i = 0; i < self->side[lead].layers->len; i++)
    if (self->partner[lead][i] >= 0)
      compare_pair (self, lead == 0 ? i : (guint)self->partner[1][i],
                    lead == 0 ? (guint)self->partner[0][i] : i);
}

TdPort *
td_port_new (const TdPortSource *a, const TdPortSource *b, const char *names,
             TdPortTolerance tolerance, GError **error)
{
  g_autoptr (TdPort) self = g_new0 (TdPort, 1);

  self->tolerance = tolerance;
  prepare (self, (const TdPortSource *const[2]){ a, b });
  if (!names)
    td__port_guess (self);
  else if (!td__port_take_names (self, names, error))
    return NULL;
  compare_all (self);
  td__port_note (self);
  if (has_numbers (self))
    return g_steal_pointer (&self);
  if (self->pairs->len > 0)
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
        "no layer has statistics on both sides: both are to be recorded at level stats");
  else
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                 "no layer of A is one of B: %u and %u layers, by their names and the sizes of "
                 "their parameters",
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
  g_free (self->how);
  g_array_unref (self->pairs);
  g_ptr_array_unref (self->notes);
  g_free (self);
}

gboolean
td__port_is_alone (const TdPort *self, guint side, guint layer)
{
  return self->partner[side][layer] < 0 && !is_reference (self, !side)
         && td__port_layer (self, side, layer)->parameters->len > 0;
}

gboolean
td_port_differs (const TdPort *self)
{
  gboolean differs = self->forward >= 0 || self->backward >= 0;

  for (guint s = 0; s < 2; s++)
    for (guint i = 0; i < self->side[s].layers->len; i++)
      differs = differs || td__port_is_alone (self, s, i);
  return differs;
}
