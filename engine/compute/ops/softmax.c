/* Softmax along an axis, and its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

const TdAttr td__softmax_attrs[] = {
  { "axis", TD_ATTR_INT, offsetof (TdSoftmaxAttrs, axis), 0, 0, "1" },
};

TdStatus
td__softmax_infer (TdOpCall *call)
{
  const int axis = ((const TdSoftmaxAttrs *)call->attrs)->axis;
  const TdShape *x = call->in[0].shape;
  const TdStatus status = td__check_floats (call, 1);

  if (status != TD_OK)
    return status;
  if (axis < 0 || axis >= x->ndim)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "-x.ndim <= axis < x.ndim expected");
  if (x->dim[axis] < 1)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.shape[%d] >= 1 expected, got 0", axis);
  return td__out_like (call, 0, 0);
}

TdStatus
td__softmax_grad_infer (TdOpCall *call)
{
  const int axis = ((const TdSoftmaxAttrs *)call->attrs)->axis;
  TdStatus status = td__check_floats (call, 3);

  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 1);
  if (status == TD_OK && (axis < 0 || axis >= call->in[0].shape->ndim))
    status = td_op_fail_operands (call, TD_ERR_SHAPE, "0 <= axis < y.ndim expected");
  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

TdStatus
td__softmax_run (TdOpCall *call, TdSoftmaxKind kind)
{
  return call->device->ops->softmax (call->device, kind,
                                     ((const TdSoftmaxAttrs *)call->attrs)->axis, &call->in[0],
                                     call->n_in > 1 ? &call->in[1] : NULL, &call->out[0]);
}

TdVar *
td__softmax_apply (const TdOpClass *cls, TdVar *x, int axis, const TdSite *site)
{
  TdSoftmaxAttrs attrs = { axis };

  /* An axis out of range stays as it is, for infer to refuse. */
  if (axis < 0 && !td_poisoned (x) && axis + td_ndim (x) >= 0)
    attrs.axis += td_ndim (x);
  return td__apply1 (cls, &attrs, site, x);
}

static TdStatus
forward (TdOpCall *call)
{
  return td__softmax_run (call, TD_SOFTMAX);
}

static TdStatus
backward (TdBackward *b)
{
  b->gx[0] = td__apply2 (&td__softmax_grad_class, b->attrs, NULL, td_backward_output (b, 0),
                         b->gy[0]);
  return TD_OK;
}

const TdOpClass td__softmax_class = {
  .name = "softmax",
  .label = "Softmax",
  .group = "activation",
  .formula = "exp (x) / sum (exp (x))",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TdSoftmaxAttrs),
  .attrs = td__softmax_attrs,
  .n_attrs = 1,
  .infer = td__softmax_infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_forward (TdOpCall *call)
{
  return td__softmax_run (call, TD_SOFTMAX_GRAD);
}

/* gx = y (gy - s), s = sum (y gy).  With v the gradient of gx:
 * in gy: y (v - sum (v y)), the same operation; in y: v (gy - s) - gy sum (v y). */
static TdStatus
grad_backward (TdBackward *b)
{
  const int axis = ((const TdSoftmaxAttrs *)b->attrs)->axis;
  TdVar *y = td_backward_input (b, 0), *gy = td_backward_input (b, 1), *v = b->gy[0];

  if (td_backward_needs (b, 0))
    {
      TdVar *s = td_sum_axes (td_mul (y, gy), &axis, 1, true);
      TdVar *vy = td_sum_axes (td_mul (v, y), &axis, 1, true);

      b->gx[0] = td_sub (td_mul (v, td_sub (gy, s)), td_mul (gy, vy));
    }
  if (td_backward_needs (b, 1))
    b->gx[1] = td__apply2 (&td__softmax_grad_class, b->attrs, NULL, y, v);
  return TD_OK;
}

const TdOpClass td__softmax_grad_class = {
  .name = "softmax_grad",
  .label = "SoftmaxGrad",
  .group = "activation",
  .formula = "y (gy - sum (y gy))",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 3,
  .in_names = td__names_ygy,
  .attrs_size = sizeof (TdSoftmaxAttrs),
  .attrs = td__softmax_attrs,
  .n_attrs = 1,
  .infer = td__softmax_grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_softmax_at (TdVar *x, TdSoftmaxOpt options, const TdSite *site)
{
  return td__softmax_apply (&td__softmax_class, x, options.axis, site);
}

TdVar *
td_softmax_ (TdVar *x, const TdSoftmaxOpt *options)
{
  return td__softmax_apply (&td__softmax_class, x, options != NULL ? options->axis : 1, NULL);
}
