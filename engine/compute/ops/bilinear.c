/* y_l = sum_jk e1_j e2_k W_jkl (+ e1 V1 + e2 V2 + b): the layer of neural tensor networks. Axes
 * of e1 and e2 after the first are one.  All pairs of features are made first, so that the sum
 * is a product of matrices.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"
#include "layers.h"

static const char *const names[] = { "e1", "e2", "W", "V1", "V2", "b" };

static int64_t
features (const TdShape *e)
{
  int64_t n = 1;

  for (int i = 1; i < e->ndim; i++)
    n *= e->dim[i];
  return n;
}

static TdStatus
infer (TdOpCall *call)
{
  const TdShape *W = call->in[2].shape;
  TdStatus status = td__check_floats (call, 63);
  TdShape y = { 2, { 0 } };

  if (status == TD_OK && call->n_in != 3 && call->n_in != 6)
    return td_op_fail_operands (call, TD_ERR_ARG, "V1, V2 and b, or none of them, expected");
  for (int i = 0; status == TD_OK && i < 2; i++)
    if (call->in[i].shape->ndim < 2)
      return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.ndim >= 2 expected, got %d", names[i],
                                  call->in[i].shape->ndim);
  if (status == TD_OK)
    status = td__check_ndim (call, 2, 3);
  if (status == TD_OK)
    status = td__check_sizes (call, 0, 0, 1, 0);
  for (int i = 0; status == TD_OK && i < 2; i++)
    if (features (call->in[i].shape) != W->dim[i])
      return td_op_fail_operands (
          call, TD_ERR_SHAPE, "prod (%s.shape[1:]) == W.shape[%d] expected, got %lld != %lld",
          names[i], i, (long long)features (call->in[i].shape), (long long)W->dim[i]);
  for (int i = 3; status == TD_OK && i < call->n_in && i < 5; i++)
    {
      status = td__check_ndim (call, i, 2);
      if (status == TD_OK)
        status = td__check_sizes (call, i, 0, 2, i - 3);
      if (status == TD_OK)
        status = td__check_sizes (call, i, 1, 2, 2);
    }
  if (status == TD_OK && call->n_in == 6)
    status = td__check_vector (call, 5, 2, 2);
  if (status != TD_OK)
    return status;
  y.dim[0] = call->in[0].shape->dim[0];
  y.dim[1] = W->dim[2];
  return td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  const int64_t *W = call->in[2].shape->dim, n = call->out[0].shape->dim[0];
  const bool linear = call->n_in == 6;
  TdShape left = TD_SHAPE (n, W[0], 1), right = TD_SHAPE (n, 1, W[1]);
  TdShape both = TD_SHAPE (n, W[0], W[1]);
  TdTensor e1 = call->in[0], e2 = call->in[1], *y = &call->out[0];
  TdTensor pairs = { .shape = &both, .size = n * W[0] * W[1], .dtype = e1.dtype };
  TdGemm g = { .m = n, .n = W[2], .batch = 1, .alpha = 1, .beta = linear ? 1 : 0 };
  TdStatus status = TD_OK;

  pairs.data = td_op_workspace (call, (size_t)pairs.size * td_dtype_bytes (pairs.dtype));
  if (pairs.data == NULL)
    return TD_ERR_MEMORY;
  e1.shape = &left;
  e2.shape = &right;
  if (linear)
    {
      const TdStrides rows = { 0, { 0, 1 } };

      status = d->ops->strided (d, TD_STRIDED_READ, &call->in[5], &rows, y);
    }
  for (int i = 0; status == TD_OK && linear && i < 2; i++)
    {
      g.k = W[i];
      status = d->ops->gemm (d, &g, &call->in[i], &call->in[3 + i], y);
    }
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, &e1, &e2, &pairs, false);
  g.k = W[0] * W[1];
  return status != TD_OK ? status : d->ops->gemm (d, &g, &pairs, &call->in[2], y);
}

/* Operand i as (n, 1, k) or (n, j, 1), to be multiplied into (n, j, k). */
static TdVar *
side (TdBackward *b, int i)
{
  const int64_t n = td_backward_in_shape (b, 0)->dim[0];
  const int64_t size = td_backward_in_shape (b, 2)->dim[i];

  return td_reshape (td_backward_input (b, i),
                     i == 0 ? TD_SHAPE (n, size, 1) : TD_SHAPE (n, 1, size));
}

/* The gradient of W, of all pairs' shares. */
static TdVar *
grad_of_W (TdBackward *b)
{
  const TdShape *W = td_backward_in_shape (b, 2);
  const TdShape rows = TD_SHAPE (td_backward_in_shape (b, 0)->dim[0], W->dim[0] * W->dim[1]);
  TdVar *pairs = td_reshape (td_mul (side (b, 0), side (b, 1)), rows);

  return td_reshape (td_matmul (pairs, b->gy[0], true, false), *W);
}

/* The gradient of e1 or e2: what their pairs get, times the other, and what V gives. */
static TdVar *
grad_of_side (TdBackward *b, int i)
{
  const TdShape *W = td_backward_in_shape (b, 2), *e = td_backward_in_shape (b, i);
  const int64_t n = e->dim[0], pairs = W->dim[0] * W->dim[1];
  const int other[] = { 2 - i };
  TdVar *matrix = td_reshape (td_backward_input (b, 2), TD_SHAPE (pairs, W->dim[2]));
  TdVar *g = td_reshape (td_matmul (b->gy[0], matrix, false, true),
                         TD_SHAPE (n, W->dim[0], W->dim[1]));

  g = td_sum_axes (td_mul (g, side (b, 1 - i)), other, 1, false);
  if (b->n_in == 6)
    g = td_add (g, td_matmul (b->gy[0], td_backward_input (b, 3 + i), false, true));
  return e->ndim == 2 ? g : td_reshape (g, *e);
}

static TdStatus
backward (TdBackward *b)
{
  const int64_t n = td_backward_in_shape (b, 0)->dim[0];
  const TdShape *W = td_backward_in_shape (b, 2);
  const int rows[] = { 0 };

  for (int i = 0; i < 2; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = grad_of_side (b, i);
  if (td_backward_needs (b, 2))
    b->gx[2] = grad_of_W (b);
  for (int i = 0; b->n_in == 6 && i < 2; i++)
    if (td_backward_needs (b, 3 + i))
      b->gx[3 + i] = td_matmul (td_reshape (td_backward_input (b, i), TD_SHAPE (n, W->dim[i])),
                                b->gy[0], true, false);
  if (b->n_in == 6 && td_backward_needs (b, 5))
    b->gx[5] = td_sum_axes (b->gy[0], rows, 1, false);
  return TD_OK;
}

/* *Source*: chainer.functions.bilinear. */
const TdOpClass td__bilinear_class = {
  .name = "bilinear",
  .label = "BilinearFunction",
  .group = "connection",
  .formula = "sum of e1 e2 W over pairs + e1 V1 + e2 V2 + b",
  .n_in_min = 3,
  .n_in_max = 6,
  .n_out = 1,
  .retain_in = 31,
  .in_names = names,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_bilinear_at (TdVar *e1, TdVar *e2, TdVar *W, TdVar *V1, TdVar *V2, TdVar *b,
                const TdSite *site)
{
  TdVar *in[] = { e1, e2, W, V1, V2, b };

  if (V1 == NULL && V2 == NULL && b == NULL)
    return td__applyn (&td__bilinear_class, NULL, site, in, 3);
  if (V1 == NULL || V2 == NULL || b == NULL)
    return td__compose_fail (TD_ERR_ARG, "bilinear", site, names, in, 6,
                             "V1, V2 and b, or none of them, expected");
  return td__applyn (&td__bilinear_class, NULL, site, in, 6);
}

TdVar *
td_bilinear (TdVar *e1, TdVar *e2, TdVar *W, TdVar *V1, TdVar *V2, TdVar *b)
{
  return td_bilinear_at (e1, e2, W, V1, V2, b, NULL);
}
