/* p x + (1 - p) y; and bias and scale, which bring a smaller operand under some axes of a
 * larger.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

static const char *const names[] = { "p", "x", "y" };

static TdStatus
infer (TdOpCall *call)
{
  TdStatus status = td__check_floats (call, 7);

  for (int i = 1; status == TD_OK && i < 3; i++)
    status = td__check_same_shape (call, 0, i);
  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdTensor *p = &call->in[0];
  TdDevice *d = call->device;
  TdTensor rest = td__carve_like (p);
  TdStatus status = td__carve (call, &rest, 1);

  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_RSUB_SCALAR, 1, 0, p, &rest);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, &rest, &call->in[2], &rest, false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, p, &call->in[1], &call->out[0], false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_ADD, &call->out[0], &rest, &call->out[0], false);
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  TdVar *p = td_backward_input (b, 0), *g = b->gy[0];

  if (td_backward_needs (b, 0))
    b->gx[0] = td_mul (g, td_sub (td_backward_input (b, 1), td_backward_input (b, 2)));
  if (td_backward_needs (b, 1))
    b->gx[1] = td_mul (g, p);
  if (td_backward_needs (b, 2))
    b->gx[2] = td_mul (g, td_rsub_scalar (p, 1));
  return TD_OK;
}

/* *Source*: chainer.functions.linear_interpolate. */
const TdOpClass td__linear_interpolate_class = {
  .name = "linear_interpolate",
  .label = "LinearInterpolate",
  .group = "math",
  .formula = "p x + (1 - p) y",
  .n_in_min = 3,
  .n_in_max = 3,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .retain_in = 7,
  .in_names = names,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_linear_interpolate_at (TdVar *p, TdVar *x, TdVar *y, const TdSite *site)
{
  return td__apply3 (&td__linear_interpolate_class, NULL, site, p, x, y);
}

TdVar *
td_linear_interpolate (TdVar *p, TdVar *x, TdVar *y)
{
  return td_linear_interpolate_at (p, x, y, NULL);
}

/* --- bias and scale --- */

/* y under x's axes `axis` .. axis + y.ndim - 1, of size 1 elsewhere; NULL after an error. */
static TdVar *
under_axes (const char *op, TdVar *x, TdVar *y, int axis, const TdSite *site)
{
  static const char *const operands[] = { "x", "y" };
  TdVar *in[] = { x, y };
  TdShape xs = td_shape (x), ys = td_shape (y), shape = { xs.ndim, { 0 } };
  const int first = axis < 0 ? axis + xs.ndim : axis;
  bool fits = first >= 0 && first + ys.ndim <= xs.ndim;

  for (int i = 0; i < xs.ndim && fits; i++)
    {
      const bool mine = i >= first && i < first + ys.ndim;

      shape.dim[i] = mine ? ys.dim[i - first] : 1;
      fits = !mine || shape.dim[i] == xs.dim[i];
    }
  if (fits)
    return td_reshape_at (y, shape, site);
  td__compose_fail (TD_ERR_SHAPE, op, site, operands, in, 2,
                    "x.shape[axis:axis + y.ndim] == y.shape expected, got axis %d", axis);
  return NULL;
}

/* *Source*: chainer.functions.bias, scale. */
#define UNDER_FUNCTION(name, combine, Options, DEFAULTS)                                       \
  TdVar *td_##name##_at (TdVar *x, TdVar *y, Options o, const TdSite *site)                    \
  {                                                                                            \
    TdVar *placed;                                                                             \
                                                                                               \
    if (td_poisoned (x) || td_poisoned (y))                                                    \
      return combine (x, y, site);                                                             \
    placed = under_axes (#name, x, y, o.axis, site);                                           \
    return placed != NULL ? combine (x, placed, site) : td__poison ();                         \
  }                                                                                            \
  TdVar *td_##name##_ (TdVar *x, TdVar *y, const Options *options)                             \
  {                                                                                            \
    return td_##name##_at (x, y, options != NULL ? *options : (Options){ DEFAULTS }, NULL);    \
  }

UNDER_FUNCTION (bias, td_add_at, TdAxisOpt, TD_AXIS_DEFAULTS)
UNDER_FUNCTION (scale, td_mul_at, TdAxisOpt, TD_AXIS_DEFAULTS)
