/* Division by the Euclidean norm along axes.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

#include <float.h>
#include <string.h>

typedef struct
{
  double eps;
  int axes[TD_MAX_DIMS];
  int n_axes;
} Attrs;

static const TdAttr attr_table[] = {
  { "eps", TD_ATTR_DOUBLE, offsetof (Attrs, eps), 0, 0, "1e-05" },
  { "axis", TD_ATTR_INTS, offsetof (Attrs, axes), 0, offsetof (Attrs, n_axes), "1" },
};

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const int ndim = call->in[0].shape->ndim;
  const TdStatus status = td__check_floats (call, 1);
  uint32_t seen = 0;

  for (int i = 0; status == TD_OK && i < a->n_axes; i++)
    {
      const int axis = td__axis (a->axes[i], ndim);

      if (axis < 0 || (seen >> axis & 1))
        return td_op_fail_operands (
            call, TD_ERR_SHAPE, "different axes, -x.ndim <= axis < x.ndim, expected, got %d",
            a->axes[i]);
      seen |= 1u << axis;
    }
  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdDeviceOps *ops = call->device->ops;
  TdDevice *d = call->device;
  TdShape shape = *call->in[0].shape;
  TdTensor norm = { NULL, &shape, 0, call->in[0].dtype };
  uint32_t mask = 0;
  TdStatus status;

  for (int i = 0; i < a->n_axes; i++)
    mask |= 1u << td__axis (a->axes[i], shape.ndim);
  for (int i = 0; i < shape.ndim; i++)
    if (mask >> i & 1)
      shape.dim[i] = 1;
  norm.size = td__size (&shape);
  norm.data = td_op_workspace (call, (size_t)norm.size * td_dtype_bytes (norm.dtype));
  if (norm.data == NULL)
    return TD_ERR_MEMORY;
  status = ops->reduce (d, TD_REDUCE_SUM_SQUARES, mask, &call->in[0], &norm, false);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_SQRT, 0, 0, &norm, &norm);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_ADD_SCALAR, a->eps, 0, &norm, &norm);
  if (status == TD_OK)
    status = ops->binary (d, TD_BINARY_DIV, &call->in[0], &norm, &call->out[0], false);
  return status;
}

/* y = x / n, n = r + eps, r = |x|: gx = (gy n - x sum (gy x) / r) / n^2; where r is 0 so is the
 * second term. */
static TdStatus
backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  TdVar *x = td_backward_input (b, 0), *gy = b->gy[0];
  TdVar *r = td_sqrt (td_maximum (td_sum_axes (td_square (x), a->axes, a->n_axes, true),
                                  td__number_like (x, FLT_MIN)));
  TdVar *n = td_add_scalar (r, a->eps);
  TdVar *along = td_div (td_sum_axes (td_mul (x, gy), a->axes, a->n_axes, true), r);

  b->gx[0] = td_div (td_sub (td_mul (gy, n), td_mul (x, along)), td_square (n));
  return TD_OK;
}

/* *Source*: chainer.functions.normalize. */
const TdOpClass td__normalize_class = {
  .name = "normalize",
  .label = "NormalizeL2",
  .group = "normalization",
  .formula = "x / (|x| + eps)",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_in = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 2,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_normalize_at (TdVar *x, double eps, const int *axes, int n_axes, const TdSite *site)
{
  Attrs attrs;

  if (n_axes < 0 || n_axes > TD_MAX_DIMS)
    {
      td__fail (TD_ERR_ARG, "normalize", site, "0 to %d axes expected, got %d", TD_MAX_DIMS,
                n_axes);
      return td__poison ();
    }
  memset (&attrs, 0, sizeof attrs);
  attrs.eps = eps;
  attrs.n_axes = 1;
  attrs.axes[0] = 1;
  if (axes != NULL)
    {
      attrs.n_axes = n_axes;
      for (int i = 0; i < n_axes; i++)
        attrs.axes[i] = axes[i];
    }
  return td__apply1 (&td__normalize_class, &attrs, site, x);
}

TdVar *
td_normalize (TdVar *x, double eps, const int *axes, int n_axes)
{
  return td_normalize_at (x, eps, axes, n_axes, NULL);
}
