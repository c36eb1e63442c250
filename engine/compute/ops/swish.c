/* x sigmoid (beta x), with a beta for each place of a row; and prelu, which has a slope for
 * each.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

#include <math.h>

static const char *const swish_names[] = { "x", "beta" };
static const char *const prelu_names[] = { "x", "W" };

/* The second input has the sizes of x's axes 1, 2 ... */
static TdStatus
infer (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape, *p = call->in[1].shape;
  const char *name = call->cls->in_names[1];
  TdStatus status = td__check_floats (call, 3);

  if (status == TD_OK && p->ndim >= x->ndim)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.ndim < x.ndim expected, got %d and %d",
                                name, p->ndim, x->ndim);
  for (int i = 0; status == TD_OK && i < p->ndim; i++)
    status = td__check_sizes (call, 1, i, 0, i + 1);
  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

/* A parameter's shape under x's axes. */
static TdShape
under (const TdShape *p, int ndim)
{
  TdShape shape = { ndim, { 0 } };

  for (int i = 0; i < ndim; i++)
    shape.dim[i] = i >= 1 && i <= p->ndim ? p->dim[i - 1] : 1;
  return shape;
}

static TdVar *
parameter_of (TdBackward *b)
{
  return td_reshape (td_backward_input (b, 1),
                     under (td_backward_in_shape (b, 1), td_backward_in_shape (b, 0)->ndim));
}

/* Sum a gradient of x's shape to the parameter's. */
static TdVar *
to_parameter (TdBackward *b, TdVar *g)
{
  const TdShape *p = td_backward_in_shape (b, 1);

  return td_reshape (td_sum_to (g, under (p, td_backward_in_shape (b, 0)->ndim)), *p);
}

static TdStatus
swish_forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  TdShape shape = under (call->in[1].shape, call->in[0].shape->ndim);
  TdTensor beta = call->in[1], *y = &call->out[0];
  TdStatus status;

  beta.shape = &shape;
  status = d->ops->binary (d, TD_BINARY_MUL, &call->in[0], &beta, y, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_SIGMOID, 0, 0, y, y);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, &call->in[0], y, y, false);
  return status;
}

/* In x it is the slope of z sigmoid (z) at z = beta x; in beta x^2 sigmoid' (z). */
static TdStatus
swish_backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0), *gy = b->gy[0];
  TdVar *z = td_mul (x, parameter_of (b));

  if (td_backward_needs (b, 0))
    b->gx[0] = td__apply2 (&td__silu_grad_class, NULL, NULL, z, gy);
  if (td_backward_needs (b, 1))
    {
      TdVar *s = td_sigmoid (z);
      TdVar *bell = td_mul (s, td_rsub_scalar (s, 1));

      b->gx[1] = to_parameter (b, td_mul (td_mul (gy, td_square (x)), bell));
    }
  return TD_OK;
}

/* max (x, 0) + W min (x, 0). */
static TdStatus
prelu_forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  TdShape shape = under (call->in[1].shape, call->in[0].shape->ndim);
  TdTensor W = call->in[1], low = td__carve_like (&call->in[0]), *y = &call->out[0];
  TdStatus status = td__carve (call, &low, 1);

  W.shape = &shape;
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_CLIP, -INFINITY, 0, &call->in[0], &low);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, &low, &W, &low, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_RELU, 0, 0, &call->in[0], y);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_ADD, y, &low, y, false);
  return status;
}

static TdStatus
prelu_backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0), *gy = b->gy[0];

  if (td_backward_needs (b, 0))
    b->gx[0]
        = td_where (td__less (x, td__number_like (x, 0)), td_mul (gy, parameter_of (b)), gy);
  if (td_backward_needs (b, 1))
    b->gx[1] = to_parameter (b, td_mul (gy, td_clip (x, -INFINITY, 0)));
  return TD_OK;
}

#define PARAMETER_CLASS(op_name, op_label, text, names)                                        \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "activation",                                                                     \
    .formula = text,                                                                           \
    .n_in_min = 2,                                                                             \
    .n_in_max = 2,                                                                             \
    .n_out = 1,                                                                                \
    .retain_in = 3,                                                                            \
    .in_names = names,                                                                         \
    .infer = infer,                                                                            \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  TD_OP_FUNCTIONS_2 (op_name)

/* *Source*: chainer.functions.swish, prelu. */
PARAMETER_CLASS (swish, "Swish", "x sigmoid (beta x)", swish_names)
PARAMETER_CLASS (prelu, "PReLUFunction", "x < 0 ? W x : x", prelu_names)

static TdVar *
maxout_fail (TdVar *x, int pool_size, int axis, const TdSite *site)
{
  static const char *const names[] = { "x" };

  return td__compose_fail (
      TD_ERR_SHAPE, "maxout", site, names, &x, 1,
      "x.shape[axis] %% pool_size == 0 expected, got axis %d, pool_size %d", axis, pool_size);
}

/* *Source*: chainer.functions.maxout. */
TdVar *
td_maxout_at (TdVar *x, int pool_size, TdAxisOpt o, const TdSite *site)
{
  TdShape shape, pooled = { 0 };
  int axis;

  if (td_poisoned (x))
    return td_identity_at (x, site);
  shape = td_shape (x);
  axis = td__axis (o.axis, shape.ndim);
  if (axis < 0 || pool_size < 1 || shape.dim[axis] % pool_size != 0
      || shape.ndim == TD_MAX_DIMS)
    return maxout_fail (x, pool_size, o.axis, site);
  for (int i = 0; i < shape.ndim; i++)
    {
      pooled.dim[pooled.ndim++] = i == axis ? shape.dim[i] / pool_size : shape.dim[i];
      if (i == axis)
        pooled.dim[pooled.ndim++] = pool_size;
    }
  axis++;
  return td_max_axes_at (td_reshape_at (x, pooled, site), &axis, 1, false, site);
}

TdVar *
td_maxout_ (TdVar *x, int pool_size, const TdAxisOpt *options)
{
  return td_maxout_at (x, pool_size,
                       options != NULL ? *options : (TdAxisOpt){ TD_AXIS_DEFAULTS }, NULL);
}
