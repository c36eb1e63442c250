/*
 * Two arrays element by element, whichever way round each one lies: axes of size 1 come and go,
 * neighbouring axes may be one axis, and others may stand in another order. Where several
 * orders are possible the one is meant that fits best.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-diff-private.h"
#include "td-port-private.h"

#define MOST_ORDERS 120 /* of axes that are tried */

/* An array in memory. */
typedef struct
{
  double *values;
  gint64 dims[TD_TAPE_MAX_NDIM], steps[TD_TAPE_MAX_NDIM]; /* without axes of size 1 */
  guint ndim;
  TdTapeTensorRecord record;
  gint64 n;
} Elements;

/* What an order of axes comes to. */
typedef struct
{
  double share; /* of what is allowed, of the worst element */
  gint64 at[2];
  guint64 n_beyond;
} Found;

typedef struct
{
  const TdPortTolerance *tolerance;
  Elements side[2];
  double size; /* root of the mean square, of the larger one */
  Found best;
  gboolean any, turned;
  guint tried;
} Check;

/* ---- reading ---- */

static void
find_axes (Elements *e)
{
  gint64 step = 1;

  for (guint d = e->record.ndim; d-- > 0; step *= e->record.dims[d])
    if (e->record.dims[d] != 1)
      {
        memmove (e->dims + 1, e->dims, e->ndim * sizeof *e->dims);
        memmove (e->steps + 1, e->steps, e->ndim * sizeof *e->steps);
        e->dims[0] = e->record.dims[d];
        e->steps[0] = step;
        e->ndim++;
      }
}

/* Does the tape's record have as many elements as its axes promise? */
static gboolean
is_whole (const Elements *e)
{
  guint64 n = 1;

  for (guint d = 0; d < e->record.ndim; d++)
    if (e->record.dims[d] < 0 || !g_uint64_checked_mul (&n, n, (guint64)e->record.dims[d]))
      return FALSE;
  return n == (guint64)e->n;
}

static gboolean
read_elements (TdTapeReader *reader, const TdTapeTensorRef *ref, Elements *e)
{
  g_autofree guint8 *bytes = g_try_malloc (ref->bytes + 1);
  gint64 got = bytes ? td_tape_tensor_read (reader, ref, &e->record, bytes, 0, ref->bytes) : -1;
  const gsize size = got >= 0 ? td_tape_dtype_bytes (e->record.dtype) : 0;

  if (size == 0 || (guint64)got != e->record.bytes || e->record.ndim > TD_TAPE_MAX_NDIM)
    return FALSE;
  e->n = got / (gint64)size;
  if (!is_whole (e))
    return FALSE;
  find_axes (e);
  e->values = g_try_new (double, e->n + 1);
  for (gint64 i = 0; e->values && i < e->n; i++)
    {
      gint64 place;

      e->values[i] = td__diff_element (e->record.dtype, bytes + i * (gint64)size, &place);
    }
  return e->values != NULL;
}

static double
root_mean_square (const Elements *e)
{
  double sum = 0;
  gint64 n = 0;

  for (gint64 i = 0; i < e->n; i++)
    if (isfinite (e->values[i]))
      {
        sum += e->values[i] * e->values[i];
        n++;
      }
  return n > 0 ? sqrt (sum / (double)n) : 0;
}

/* ---- one order of axes ---- */

static double
size_of (const Check *c, double x, double y)
{
  return MAX (MAX (fabs (x), fabs (y)), c->size);
}

/* How much of what is allowed lies between two elements. */
static double
share_of (const Check *c, double x, double y)
{
  double allowed;

  if (x == y || (isnan (x) && isnan (y)))
    return 0;
  if (!isfinite (x) || !isfinite (y))
    return HUGE_VAL;
  allowed = c->tolerance->atol + c->tolerance->rtol * size_of (c, x, y);
  return allowed > 0 ? fabs (x - y) / allowed : HUGE_VAL;
}

/* Go through A row by row, and through B by `steps` along A's axes. */
static void
try_steps (Check *c, const gint64 *steps, gboolean turned)
{
  const Elements *a = &c->side[0], *b = &c->side[1];
  gint64 at[TD_TAPE_MAX_NDIM] = { 0 }, j = 0;
  Found found = { .share = -1 };

  for (gint64 i = 0; i < a->n; i++)
    {
      const double share = share_of (c, a->values[i], b->values[j]);

      found.n_beyond += share > 1;
      if (share > found.share)
        {
          found.share = share;
          found.at[0] = i;
          found.at[1] = j;
          if (c->any && share > c->best.share)
            return; /* another order fits better */
        }
      for (guint d = a->ndim; d-- > 0;)
        {
          j += steps[d];
          if (++at[d] < a->dims[d])
            break;
          j -= steps[d] * at[d];
          at[d] = 0;
        }
    }
  if (c->any && found.share == c->best.share && found.n_beyond >= c->best.n_beyond)
    return;
  c->any = TRUE;
  c->best = found;
  c->turned = turned;
}

/* All orders of B's axes that have A's sizes, from A's axis `d` on. */
static void
try_orders (Check *c, guint d, guint taken, gint64 *steps, gboolean turned)
{
  const Elements *a = &c->side[0], *b = &c->side[1];

  if (d == a->ndim)
    {
      c->tried++;
      try_steps (c, steps, turned);
      return;
    }
  for (guint k = 0; k < b->ndim && c->tried < MOST_ORDERS; k++)
    if (!(taken & 1u << k) && b->dims[k] == a->dims[d])
      {
        steps[d] = b->steps[k];
        try_orders (c, d + 1, taken | 1u << k, steps, turned || k != d);
        if (c->any && c->best.share <= 1)
          return; /* they agree */
      }
}

/* ---- shapes ---- */

static gboolean
same_axes (const Elements *a, const Elements *b)
{
  return a->ndim == b->ndim && memcmp (a->dims, b->dims, a->ndim * sizeof *a->dims) == 0;
}

/* Have they the same sizes, in whatever order? */
static gboolean
same_sizes (const Elements *a, const Elements *b)
{
  guint taken = 0;

  if (a->ndim != b->ndim)
    return FALSE;
  for (guint d = 0; d < a->ndim; d++)
    {
      guint k = 0;

      while (k < b->ndim && (taken & 1u << k || b->dims[k] != a->dims[d]))
        k++;
      if (k == b->ndim)
        return FALSE;
      taken |= 1u << k;
    }
  return TRUE;
}

/* Is each axis of one some neighbouring axes of the other? */
static gboolean
is_reshaped (const Elements *a, const Elements *b)
{
  guint i = 0, j = 0;

  while (i < a->ndim && j < b->ndim)
    {
      const guint from_a = i, from_b = j;
      gint64 x = a->dims[i++], y = b->dims[j++];

      while (x != y)
        if (x < y && i < a->ndim)
          x *= a->dims[i++];
        else if (y < x && j < b->ndim)
          y *= b->dims[j++];
        else
          return FALSE;
      if (i - from_a > 1 && j - from_b > 1)
        return FALSE;
    }
  return i == a->ndim && j == b->ndim;
}

static gboolean
try_all (Check *c, gboolean may_turn)
{
  Elements *a = &c->side[0], *b = &c->side[1];
  gint64 steps[TD_TAPE_MAX_NDIM];

  if (same_axes (a, b) && !may_turn)
    try_steps (c, b->steps, FALSE);
  else if (same_sizes (a, b))
    try_orders (c, 0, 0, steps, FALSE);
  else if (is_reshaped (a, b))
    try_steps (c, a->steps, FALSE);
  return c->any;
}

/* ---- the whole ---- */

static void
put_index (const Elements *e, gint64 at, gint64 *index)
{
  for (guint d = e->record.ndim; d-- > 0; at /= MAX (e->record.dims[d], 1))
    index[d] = at % MAX (e->record.dims[d], 1);
}

static void
take_best (const Check *c, TdPortNumbers *n)
{
  const double x = c->side[0].values[c->best.at[0]], y = c->side[1].values[c->best.at[1]];
  const double size = size_of (c, x, y);

  n->elements = TD_PORT_COMPARED;
  n->verdict = c->best.share > 1 ? TD_PORT_DIFFERS : TD_PORT_SAME;
  n->what = "element";
  n->value[0] = x;
  n->value[1] = y;
  n->apart = c->best.share <= 0 ? 0 : size > 0 ? fabs (x - y) / size : fabs (x - y);
  n->n = (guint64)c->side[0].n;
  n->n_beyond = c->best.n_beyond;
  n->turned = c->turned;
  for (guint s = 0; s < 2; s++)
    {
      n->ndim[s] = c->side[s].record.ndim;
      put_index (&c->side[s], c->best.at[s], n->index[s]);
    }
}

void
td__port_compare_elements (const TdPort *self, const TdPortArray *a, const TdPortArray *b,
                           gboolean may_turn, TdPortNumbers *n)
{
  const TdPortArray *const arrays[2] = { a, b };
  Check c = { .tolerance = &self->tolerance };
  gboolean have[2];

  for (guint s = 0; s < 2; s++)
    have[s] = arrays[s]->tensor
              && read_elements (self->side[s].source.reader, arrays[s]->tensor, &c.side[s]);
  if (!have[0] || !have[1])
    n->elements = have[0]   ? TD_PORT_MISSING_B
                  : have[1] ? TD_PORT_MISSING_A
                            : TD_PORT_MISSING_BOTH;
  else if (c.side[0].n != c.side[1].n || c.side[0].n == 0)
    n->elements = TD_PORT_OTHER_SHAPES;
  else
    {
      c.size = MAX (root_mean_square (&c.side[0]), root_mean_square (&c.side[1]));
      if (try_all (&c, may_turn))
        take_best (&c, n);
      else
        n->elements = TD_PORT_OTHER_SHAPES;
    }
  g_free (c.side[0].values);
  g_free (c.side[1].values);
}
