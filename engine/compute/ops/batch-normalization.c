/* Batch normalisation by the batch's own mean and variance.  Outputs 1 and 2 are the mean and
 * 1 / standard deviation, for backward only; running statistics are written in place.  Beside
 * an x in halves, gamma, beta and the running statistics may be f32; the moments are.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

typedef struct
{
  double eps, decay;
} Attrs;

static const TdAttr attr_table[] = {
  { "eps", TD_ATTR_DOUBLE, offsetof (Attrs, eps), 0, 0, "2e-05" },
  { "decay", TD_ATTR_DOUBLE, offsetof (Attrs, decay), 0, 0, "0.9" },
};
static const char *const names[] = { "x", "gamma", "beta", "running_mean", "running_var" };
static const char *const grad_names[] = { "x", "gamma", "gy", "mean", "inv_std" };

static TdStatus
check_operands (const TdOpCall *call, uint32_t vectors)
{
  TdStatus status = td__check_mixed (call, 31, 31 & ~vectors);

  if (status == TD_OK && call->in[0].shape->ndim < 2)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim >= 2 expected, got %d",
                                call->in[0].shape->ndim);
  for (int i = 1; status == TD_OK && i < call->n_in; i++)
    if (vectors >> i & 1)
      status = td__check_vector (call, i, 0, 1);
  return status;
}

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdStatus status = check_operands (call, 30);

  if (status == TD_OK && call->n_in == 4)
    return td_op_fail (call, TD_ERR_ARG, "running_mean and running_var expected together");
  if (status == TD_OK && !(a->eps > 0 && a->decay >= 0 && a->decay <= 1))
    return td_op_fail (call, TD_ERR_ARG, "eps > 0 and 0 <= decay <= 1 expected, got %g and %g",
                       a->eps, a->decay);
  if (status == TD_OK && call->in[0].size == 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "an x that is not empty expected");
  if (status == TD_OK)
    status = td__out_like (call, 0, 0);
  for (int i = 1; status == TD_OK && i < 3; i++)
    status = td_op_out (call, i, td__moments_dtype (call->in[0].dtype), call->in[1].shape);
  return status;
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const double params[] = { a->eps, a->decay };

  return call->device->ops->batch_norm (call->device, TD_BATCH_NORM_TRAIN, params, call->in,
                                        call->n_in, call->out, 3);
}

static TdStatus
backward (TdBackward *b)
{
  TdVar *in[5], *gx[3];
  TdStatus status;

  if (b->gy[0] == NULL)
    return TD_OK;
  in[0] = td_backward_input (b, 0);
  in[1] = td_backward_input (b, 1);
  in[2] = b->gy[0];
  in[3] = td_backward_output (b, 1);
  in[4] = td_backward_output (b, 2);
  status = td_apply (&td__batch_normalization_grad_class, b->attrs, in, 5, gx, 3);
  for (int i = 0; i < 3; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = gx[i];
  return status;
}

/* *Source*: chainer.functions.batch_normalization. */
const TdOpClass td__batch_normalization_class = {
  .name = "batch_normalization",
  .label = "BatchNormalization",
  .group = "normalization",
  .formula = "(x - mean) / std gamma + beta",
  .n_in_min = 3,
  .n_in_max = 5,
  .n_out = 3,
  .flags = TD_OP_STATEFUL | TD_OP_LAYOUTS,
  .retain_in = 3,
  .retain_out = 6,
  .no_grad_in = 8 | 16,
  .writes = 8 | 16,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 2,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_infer (TdOpCall *call)
{
  TdStatus status = check_operands (call, 2 | 8 | 16);

  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 2);
  if (status == TD_OK)
    status = td__out_like (call, 0, 0);
  for (int i = 1; status == TD_OK && i < 3; i++)
    status = td__out_like (call, i, 1);
  return status;
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return call->device->ops->batch_norm (call->device, TD_BATCH_NORM_GRAD, NULL, call->in, 5,
                                        call->out, 3);
}

/* The gradient of the gradient.  With h = (x - mean) s, m elements a channel, A = sum (gy h)
 * and B = sum (gy):  gx = gamma s (gy - (h A + B) / m), ggamma = A, gbeta = B.  v, vg, vb are
 * the gradients of these.  Mean and s are computed anew, as functions of x, so that higher
 * gradients are right too. */
static TdStatus
grad_backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  const TdDtype dtype = td__moments_dtype (td_backward_in_dtype (b, 0));
  TdVar *x = td__in_dtype (td_backward_input (b, 0), dtype);
  TdVar *gamma = td__in_dtype (td_backward_input (b, 1), dtype);
  TdVar *gy = td__in_dtype (td_backward_input (b, 2), dtype);
  const TdShape shape = td_shape (x);
  const double m = (double)td_size (x) / (double)shape.dim[1]; /* of an x that was lost: NaN */
  TdVar *v = b->gy[0] != NULL ? td__in_dtype (b->gy[0], dtype) : td_zeros_like (x);
  TdVar *vg = b->gy[1] != NULL ? td__in_dtype (b->gy[1], dtype) : td_zeros_like (gamma);
  TdVar *vb = b->gy[2] != NULL ? td__in_dtype (b->gy[2], dtype) : td_zeros_like (gamma);
  TdVar *mean = td_div_scalar (td__channel_sum (x), m);
  TdVar *centred = td_sub (x, td__per_channel (mean, &shape));
  TdVar *var = td_div_scalar (td__channel_sum (td_square (centred)), m);
  TdVar *s = td_pow_scalar (td_add_scalar (var, a->eps), -0.5),
        *S = td__per_channel (s, &shape);
  TdVar *h = td_mul (centred, S);
  TdVar *A = td__channel_sum (td_mul (gy, h)), *B = td__channel_sum (gy);
  TdVar *inner = td_sub (gy, td_div_scalar (td_add (td_mul (h, td__per_channel (A, &shape)),
                                                    td__per_channel (B, &shape)),
                                            m));
  TdVar *scale = td_mul (gamma, s), *v_sum = td__channel_sum (v),
        *vh_sum = td__channel_sum (td_mul (v, h));
  TdVar *r = td__channel_sum (td_mul (v, inner)); /* sum (v gx) / (gamma s) */
  TdVar *tA = td_sub (vg, td_div_scalar (td_mul (scale, vh_sum), m)); /* of A */
  TdVar *tB = td_sub (vb, td_div_scalar (td_mul (scale, v_sum), m));  /* of B */

  if (td_backward_needs (b, 1))
    b->gx[1] = td_mul (s, r);
  if (td_backward_needs (b, 2))
    b->gx[2] = td_add (
        td_add (td_mul (td__per_channel (tA, &shape), h), td__per_channel (tB, &shape)),
        td_mul (td__per_channel (scale, &shape), v));
  if (td_backward_needs (b, 0))
    {
      /* of h, then through h = (x - mean) s; s also stands before the bracket in gx */
      TdVar *th
          = td_sub (td_mul (td__per_channel (tA, &shape), gy),
                    td_mul (td__per_channel (td_div_scalar (td_mul (scale, A), m), &shape), v));
      TdVar *of_std = td_add (td_mul (scale, r), td__channel_sum (td_mul (th, h)));
      TdVar *through = td_div_scalar (td_add (td__per_channel (td__channel_sum (th), &shape),
                                              td_mul (h, td__per_channel (of_std, &shape))),
                                      m);

      b->gx[0] = td_mul (S, td_sub (th, through));
    }
  for (int i = 0; i < 3; i++)
    if (b->gx[i] != NULL)
      b->gx[i] = td__in_dtype (b->gx[i], td_backward_in_dtype (b, i));
  return TD_OK;
}

const TdOpClass td__batch_normalization_grad_class = {
  .name = "batch_normalization_grad",
  .label = "BatchNormalizationGrad",
  .group = "normalization",
  .formula = "gamma / std (gy - (h sum (gy h) + sum (gy)) / m)",
  .n_in_min = 5,
  .n_in_max = 5,
  .n_out = 3,
  .flags = TD_OP_LAYOUTS,
  .retain_in = 7,
  .no_grad_in = 8 | 16,
  .in_names = grad_names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 2,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_batch_normalization_at (TdVar *x, TdVar *gamma, TdVar *beta, TdBatchNormOpt o,
                           const TdSite *site)
{
  const Attrs attrs = { o.eps, o.decay };
  TdVar *in[] = { x, gamma, beta, o.running_mean, o.running_var }, *out[3];
  const bool runs = td_config ()->train && !td__engine.recomputing
                    && (o.running_mean != NULL || o.running_var != NULL);

  td__apply_at (&td__batch_normalization_class, &attrs, in,
                !runs                                             ? 3
                : o.running_mean != NULL && o.running_var != NULL ? 5
                                                                  : 4,
                out, 3, site);
  return out[0];
}

TdVar *
td_batch_normalization_ (TdVar *x, TdVar *gamma, TdVar *beta, const TdBatchNormOpt *options)
{
  const TdBatchNormOpt defaults = { TD_BATCH_NORM_DEFAULTS };

  return td_batch_normalization_at (x, gamma, beta, options != NULL ? *options : defaults,
                                    NULL);
}
