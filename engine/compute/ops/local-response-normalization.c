/* Normalisation of each channel by the squares of its neighbours, and the sum over neighbouring
 * channels that it and its gradient are made with.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

#include <string.h>

typedef struct
{
  int n;
  double k, alpha, beta;
} Attrs;

static const TdAttr attr_table[] = {
  { "n", TD_ATTR_INT, offsetof (Attrs, n), 0, 0, "5" },
  { "k", TD_ATTR_DOUBLE, offsetof (Attrs, k), 0, 0, "2" },
  { "alpha", TD_ATTR_DOUBLE, offsetof (Attrs, alpha), 0, 0, "0.0001" },
  { "beta", TD_ATTR_DOUBLE, offsetof (Attrs, beta), 0, 0, "0.75" },
};
static const TdAttr window_attrs[] = {
  { "n", TD_ATTR_INT, offsetof (Attrs, n), 0, 0, "5" },
};

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdStatus status = td__check_floats (call, 1);

  if (status != TD_OK)
    return status;
  if (call->in[0].shape->ndim < 2)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim >= 2 expected, got %d",
                                call->in[0].shape->ndim);
  if (a->n < 1 || a->n > INT16_MAX)
    return td_op_fail (call, TD_ERR_ARG, "1 <= n <= %d expected, got %d", INT16_MAX, a->n);
  return td__out_like (call, 0, 0);
}

/* y[:, c] = the sum of x[:, c - n / 2 .. c + n / 2]; x may be y.  Workspace: x padded with n /
 * 2 channels of zeros on both sides, and one shifted view of it. */
static TdStatus
window_sum (TdOpCall *call, const TdTensor *x, TdTensor *y)
{
  const int64_t half = ((const Attrs *)call->attrs)->n / 2;
  const TdShape *s = x->shape;
  const TdDeviceOps *ops = call->device->ops;
  const size_t bytes = (size_t)x->size * td_dtype_bytes (x->dtype);
  TdShape wide = *s;
  TdTensor padded = { NULL, &wide, 0, x->dtype }, shifted = *y;
  TdStrides walk = { 0 };
  size_t wide_bytes;
  TdStatus status;

  wide.dim[1] += 2 * half;
  if (x->size == 0)
    return TD_OK;
  if (!td__shape_bytes (&wide, x->dtype, &wide_bytes))
    return td_op_fail (call, TD_ERR_ARG, "n that fits memory expected, got %d",
                       ((const Attrs *)call->attrs)->n);
  padded.size = td__size (&wide);
  padded.data = td_op_workspace (call, wide_bytes + bytes);
  if (padded.data == NULL)
    return TD_ERR_MEMORY;
  shifted.data = (char *)padded.data + wide_bytes;
  td__row_major (&wide, walk.stride);
  walk.offset = half * walk.stride[1];
  status = ops->zero (call->device, padded.data, wide_bytes);
  if (status == TD_OK)
    status = ops->strided (call->device, TD_STRIDED_WRITE, x, &walk, &padded);
  for (int64_t i = 0; status == TD_OK && i <= 2 * half; i++)
    {
      walk.offset = i * walk.stride[1];
      status
          = ops->strided (call->device, TD_STRIDED_READ, &padded, &walk, i == 0 ? y : &shifted);
      if (status == TD_OK && i > 0)
        status = ops->binary (call->device, TD_BINARY_ADD, y, &shifted, y, false);
    }
  return status;
}

static TdStatus
window_forward (TdOpCall *call)
{
  return window_sum (call, &call->in[0], &call->out[0]);
}

/* Neighbourhood is mutual: the sum is its own gradient. */
static TdStatus
window_backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (&td__channel_window_sum_class, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__channel_window_sum_class = {
  .name = "channel_window_sum",
  .label = "ChannelWindowSum",
  .group = "normalization",
  .formula = "y[:, c] = sum of x[:, c - n / 2 .. c + n / 2]",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = window_attrs,
  .n_attrs = 1,
  .infer = infer,
  .forward = window_forward,
  .backward = window_backward,
};

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdDeviceOps *ops = call->device->ops;
  TdDevice *d = call->device;
  TdTensor *y = &call->out[0];
  TdStatus status = ops->unary (d, TD_UNARY_SQUARE, 0, 0, &call->in[0], y);

  if (status == TD_OK)
    status = window_sum (call, y, y);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_MUL_SCALAR, a->alpha, 0, y, y);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_ADD_SCALAR, a->k, 0, y, y);
  if (status == TD_OK)
    status = ops->unary (d, TD_UNARY_POW_SCALAR, -a->beta, 0, y, y);
  if (status == TD_OK)
    status = ops->binary (d, TD_BINARY_MUL, y, &call->in[0], y, false);
  return status;
}

/* y = x u^-beta, u = k + alpha window (x^2):
 * gx = gy u^-beta - 2 alpha beta x window (gy x u^(-beta - 1)). */
static TdStatus
backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  TdVar *x = td_backward_input (b, 0), *gy = b->gy[0];
  TdVar *around = td__apply1 (&td__channel_window_sum_class, a, NULL, td_square (x));
  TdVar *u = td_add_scalar (td_mul_scalar (around, a->alpha), a->k);
  TdVar *falls = td_mul (td_mul (gy, x), td_pow_scalar (u, -a->beta - 1));
  TdVar *through = td__apply1 (&td__channel_window_sum_class, a, NULL, falls);

  b->gx[0] = td_sub (td_mul (gy, td_pow_scalar (u, -a->beta)),
                     td_mul_scalar (td_mul (x, through), 2 * a->alpha * a->beta));
  return TD_OK;
}

/* *Source*: chainer.functions.local_response_normalization. */
const TdOpClass td__local_response_normalization_class = {
  .name = "local_response_normalization",
  .label = "LocalResponseNormalization",
  .group = "normalization",
  .formula = "x / (k + alpha sum of squares of n channels around)^beta",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_in = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 4,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_local_response_normalization_at (TdVar *x, TdLocalResponseOpt o, const TdSite *site)
{
  Attrs attrs;

  memset (&attrs, 0, sizeof attrs);
  attrs.n = o.n;
  attrs.k = o.k;
  attrs.alpha = o.alpha;
  attrs.beta = o.beta;
  return td__apply1 (&td__local_response_normalization_class, &attrs, site, x);
}

TdVar *
td_local_response_normalization_ (TdVar *x, const TdLocalResponseOpt *options)
{
  const TdLocalResponseOpt defaults = { TD_LOCAL_RESPONSE_DEFAULTS };

  return td_local_response_normalization_at (x, options != NULL ? *options : defaults, NULL);
}
