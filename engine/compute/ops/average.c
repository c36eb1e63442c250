/* Weighted mean over axes, made of products and sums as in Chainer.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"

static TdVar *
sum_over (TdVar *v, const TdAverageOpt *o, const TdSite *site)
{
  return td__reduce (&td__sum_class, v, o->axes, o->axes != NULL ? o->n_axes : -1, o->keepdims,
                     site);
}

/* Weights of one axis, under x's axes. */
static TdVar *
along_axis (TdVar *weights, const TdShape *x, int axis, const TdSite *site)
{
  TdShape shape = { x->ndim, { 0 } };

  for (int i = 0; i < x->ndim; i++)
    shape.dim[i] = i == axis ? x->dim[i] : 1;
  return td_reshape_at (weights, shape, site);
}

/* *Source*: chainer.functions.average. */
TdVar *
td_average_at (TdVar *x, TdAverageOpt o, const TdSite *site)
{
  static const char *const names[] = { "x", "weights" };
  TdVar *weights = o.weights, *operands[] = { x, weights };
  TdShape xs, ws;
  int axis = -1;

  if (weights == NULL)
    return td__reduce (&td__mean_class, x, o.axes, o.axes != NULL ? o.n_axes : -1, o.keepdims,
                       site);
  if (td_poisoned (x) || td_poisoned (weights))
    return td_mul_at (x, weights, site);
  xs = td_shape (x);
  ws = td_shape (weights);
  if (td_shape_equal (&xs, &ws))
    return td_div_at (sum_over (td_mul_at (x, weights, site), &o, site),
                      sum_over (weights, &o, site), site);
  if (o.axes != NULL && o.n_axes == 1)
    axis = td__axis (o.axes[0], xs.ndim);
  if (axis < 0 || ws.ndim != 1 || ws.dim[0] != xs.dim[axis])
    return td__compose_fail (TD_ERR_SHAPE, "average", site, names, operands, 2,
                             "weights.shape == x.shape, or (x.shape[axis]) with one axis, "
                             "expected");
  return td_div_at (
      sum_over (td_mul_at (x, along_axis (weights, &xs, axis, site), site), &o, site),
      td_sum_at (weights, site), site);
}

TdVar *
td_average_ (TdVar *x, const TdAverageOpt *options)
{
  return td_average_at (x, options != NULL ? *options : (TdAverageOpt){ TD_AVERAGE_DEFAULTS },
                        NULL);
}
