/* x W' + b: the affine map of a fully connected layer.  Axes of x after the first, or the first
 * few, are one.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"
#include "layers.h"

static const char *const names[] = { "x", "W", "b" };

static TdStatus
infer (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape, *W = call->in[1].shape;
  TdStatus status = td__check_floats (call, 7);
  int64_t features = 1;
  TdShape y = { 2, { 0 } };

  if (status == TD_OK && x->ndim < 2)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim >= 2 expected, got %d", x->ndim);
  if (status == TD_OK)
    status = td__check_ndim (call, 1, 2);
  if (status == TD_OK && call->n_in == 3)
    status = td__check_vector (call, 2, 1, 0);
  if (status != TD_OK)
    return status;
  for (int i = 1; i < x->ndim; i++)
    features *= x->dim[i];
  if (features != W->dim[1])
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "%s == W.shape[1] expected, got %lld != %lld",
                                x->ndim == 2 ? "x.shape[1]" : "prod (x.shape[1:])",
                                (long long)features, (long long)W->dim[1]);
  y.dim[0] = x->dim[0];
  y.dim[1] = W->dim[0];
  return td_op_out (call, 0, call->in[0].dtype, &y);
}

/* Without a pass of its own: the bias is added at the product's end, or written to every row
 * first, and the product added to it. */
static TdStatus
forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  const TdShape *W = call->in[1].shape;
  TdTensor *y = &call->out[0];
  const bool first = call->n_in == 3 && !td__bit (d->ops->ends_products, y->dtype);
  TdGemm g = { .tb = true,
               .m = y->shape->dim[0],
               .n = W->dim[0],
               .k = W->dim[1],
               .batch = 1,
               .alpha = 1,
               .beta = first ? 1 : 0 };

  if (call->end != NULL)
    g.end = *call->end;
  if (call->n_in == 3 && !first)
    g.end.bias = &call->in[2];
  if (first)
    {
      const TdStrides rows = { 0, { 0, 1 } };
      const TdStatus status = d->ops->strided (d, TD_STRIDED_READ, &call->in[2], &rows, y);

      if (status != TD_OK)
        return status;
    }
  return d->ops->gemm (d, &g, &call->in[0], &call->in[1], y);
}

static TdStatus
backward (TdBackward *b)
{
  const TdShape *x_shape = td_backward_in_shape (b, 0);
  const int rows[] = { 0 };

  if (td_backward_needs (b, 0))
    {
      TdVar *W = td_backward_input (b, 1);

      if (x_shape->ndim == 2)
        td_backward_into (b, 0);
      b->gx[0] = td_matmul (b->gy[0], W, false, false);
      if (x_shape->ndim != 2)
        b->gx[0] = td_reshape (b->gx[0], *x_shape);
    }
  if (td_backward_needs (b, 1))
    {
      TdVar *x = td_backward_input (b, 0);
      const TdShape matrix = TD_SHAPE (x_shape->dim[0], td_backward_in_shape (b, 1)->dim[1]);

      if (x_shape->ndim != 2)
        x = td_reshape (x, matrix);
      td_backward_into (b, 1);
      b->gx[1] = td_matmul (b->gy[0], x, true, false);
    }
  if (b->n_in == 3 && td_backward_needs (b, 2))
    {
      td_backward_into (b, 2);
      b->gx[2] = td_sum_axes (b->gy[0], rows, 1, false);
    }
  return TD_OK;
}

/* *Source*: chainer.functions.linear. */
const TdOpClass td__linear_class = {
  .name = "linear",
  .label = "LinearFunction",
  .group = "connection",
  .formula = "x W' + b",
  .n_in_min = 2,
  .n_in_max = 3,
  .n_out = 1,
  .flags = TD_OP_ENDS,
  .retain_in = 3,
  .in_names = names,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_linear_at (TdVar *x, TdVar *W, TdVar *b, const TdSite *site)
{
  return b != NULL ? td__apply3 (&td__linear_class, NULL, site, x, W, b)
                   : td__apply2 (&td__linear_class, NULL, site, x, W);
}

TdVar *
td_linear (TdVar *x, TdVar *W, TdVar *b)
{
  return td_linear_at (x, W, b, NULL);
}

/* Rows are one axis for the operation, and several again behind it. */
TdVar *
td_linear_axes_at (TdVar *x, TdVar *W, TdVar *b, int n_batch_axes, const TdSite *site)
{
  TdVar *operands[] = { x, W, b };
  TdShape shape, rows = { 2, { 1, 1 } };

  if (td__dead (x) || n_batch_axes == 1)
    return td_linear_at (x, W, b, site);
  shape = td_shape (x);
  if (n_batch_axes < 1 || n_batch_axes >= shape.ndim)
    return td__compose_fail (TD_ERR_SHAPE, "linear", site, names, operands, 3,
                             "0 < n_batch_axes < x.ndim expected, got %d", n_batch_axes);
  for (int i = 0; i < shape.ndim; i++)
    rows.dim[i >= n_batch_axes] *= shape.dim[i];
  x = td_linear_at (td_reshape_at (x, rows, site), W, b, site);
  if (td_poisoned (x))
    return x;
  shape.ndim = n_batch_axes + 1;
  shape.dim[n_batch_axes] = td_shape (x).dim[1];
  return td_reshape_at (x, shape, site);
}

TdVar *
td_linear_axes (TdVar *x, TdVar *W, TdVar *b, int n_batch_axes)
{
  return td_linear_axes_at (x, W, b, n_batch_axes, NULL);
}
