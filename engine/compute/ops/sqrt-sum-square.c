/* The length of x over axes, its L2 norm.
 *
 * The gradient x / y has no value where the norm is 0; it is taken as 0 there, the subgradient
 * of least length.  (A composition of square, sum and sqrt would give NaN.)
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
infer (TdOpCall *call)
{
  if (!td__is_float (call->in[0].dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point x expected");
  return td__infer_reduce (call);
}

static TdStatus
forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  TdTensor *y = &call->out[0];
  const uint32_t axes = td__reduce_mask (call->attrs, call->in[0].shape->ndim);
  const TdStatus status
      = d->ops->reduce (d, TD_REDUCE_SUM_SQUARES, axes, &call->in[0], y, false);

  return status != TD_OK ? status : d->ops->unary (d, TD_UNARY_SQRT, 0, 0, y, y);
}

/* x is 0 wherever y is: adding 1 to y there leaves 0. */
static TdStatus
backward (TdBackward *b)
{
  TdVar *y = td_backward_output (b, 0);
  TdVar *divisor = td_add (y, td__equal (y, td__number_like (y, 0)));
  TdVar *share = td_div (b->gy[0], divisor);

  b->gx[0] = td_mul (td_backward_input (b, 0), td__reduce_unsqueeze (b, share));
  return TD_OK;
}

const TdOpClass td__sqrt_sum_square_class = {
  .name = "sqrt_sum_square",
  .label = "SqrtSumSquare",
  .group = "math",
  .formula = "(sum of x^2 over axis) ** 0.5",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_in = 1,
  .retain_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TdReduceAttrs),
  .attrs = td__reduce_attrs,
  .n_attrs = 2,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TD_OP_FUNCTIONS_REDUCE (sqrt_sum_square)
