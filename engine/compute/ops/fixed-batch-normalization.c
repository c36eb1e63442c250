/* Batch normalisation with a given mean and variance, for evaluation.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

typedef struct
{
  double eps;
} Attrs;

static const TdAttr attr_table[] = {
  { "eps", TD_ATTR_DOUBLE, offsetof (Attrs, eps), 0, 0, "2e-05" },
};
static const char *const names[] = { "x", "gamma", "beta", "mean", "var" };

static TdStatus
infer (TdOpCall *call)
{
  TdStatus status = td__check_mixed (call, 31, 1);

  if (status == TD_OK && call->in[0].shape->ndim < 2)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim >= 2 expected, got %d",
                                call->in[0].shape->ndim);
  for (int i = 1; status == TD_OK && i < 5; i++)
    status = td__check_vector (call, i, 0, 1);
  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

static TdStatus
forward (TdOpCall *call)
{
  const double params[] = { ((const Attrs *)call->attrs)->eps };

  return call->device->ops->batch_norm (call->device, TD_BATCH_NORM_FIXED, params, call->in, 5,
                                        call->out, 1);
}

/* y = gamma (x - mean) s + beta with s = (var + eps)^-1/2, all five free. */
static TdStatus
backward (TdBackward *b)
{
  const TdShape *shape = td_backward_in_shape (b, 0);
  const TdDtype dtype = td__moments_dtype (td_backward_in_dtype (b, 0));
  TdVar *x = td__in_dtype (td_backward_input (b, 0), dtype);
  TdVar *gamma = td__in_dtype (td_backward_input (b, 1), dtype);
  TdVar *gy = td__in_dtype (b->gy[0], dtype);
  TdVar *mean = td__in_dtype (td_backward_input (b, 3), dtype);
  TdVar *v = td_add_scalar (td__in_dtype (td_backward_input (b, 4), dtype),
                            ((const Attrs *)b->attrs)->eps);
  TdVar *s = td_pow_scalar (v, -0.5), *scale = td_mul (gamma, s);

  if (td_backward_needs (b, 0))
    b->gx[0] = td_mul (gy, td__per_channel (scale, shape));
  if (td_backward_needs (b, 2))
    b->gx[2] = td__channel_sum (gy);
  if (td_backward_needs (b, 3))
    b->gx[3] = td_neg (td_mul (scale, td__channel_sum (gy)));
  if (td_backward_needs (b, 1) || td_backward_needs (b, 4))
    {
      TdVar *moment = td__channel_sum (td_mul (gy, td_sub (x, td__per_channel (mean, shape))));

      if (td_backward_needs (b, 1))
        b->gx[1] = td_mul (moment, s);
      if (td_backward_needs (b, 4))
        b->gx[4]
            = td_mul_scalar (td_mul (td_mul (moment, gamma), td_pow_scalar (v, -1.5)), -0.5);
    }
  for (int i = 0; i < 5; i++)
    if (b->gx[i] != NULL)
      b->gx[i] = td__in_dtype (b->gx[i], td_backward_in_dtype (b, i));
  return TD_OK;
}

/* *Source*: chainer.functions.fixed_batch_normalization. */
const TdOpClass td__fixed_batch_normalization_class = {
  .name = "fixed_batch_normalization",
  .label = "FixedBatchNormalization",
  .group = "normalization",
  .formula = "(x - mean) / sqrt (var + eps) gamma + beta",
  .n_in_min = 5,
  .n_in_max = 5,
  .n_out = 1,
  .flags = TD_OP_LAYOUTS,
  .retain_in = 1 | 2 | 8 | 16,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 1,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_fixed_batch_normalization_at (TdVar *x, TdVar *gamma, TdVar *beta, TdVar *mean, TdVar *var,
                                 double eps, const TdSite *site)
{
  const Attrs attrs = { eps };
  TdVar *in[] = { x, gamma, beta, mean, var };

  return td__applyn (&td__fixed_batch_normalization_class, &attrs, site, in, 5);
}

TdVar *
td_fixed_batch_normalization (TdVar *x, TdVar *gamma, TdVar *beta, TdVar *mean, TdVar *var,
                              double eps)
{
  return td_fixed_batch_normalization_at (x, gamma, beta, mean, var, eps, NULL);
}
