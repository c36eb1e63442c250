/* log (sum (exp (x))) over axes, without overflow.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
logsumexp_infer (TdOpCall *call)
{
  if (!td__is_float (call->in[0].dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point x expected");
  return td__infer_reduce (call);
}

static TdStatus
logsumexp_forward (TdOpCall *call)
{
  return call->device->ops->reduce (call->device, TD_REDUCE_LOGSUMEXP,
                                    td__reduce_mask (call->attrs, call->in[0].shape->ndim),
                                    &call->in[0], &call->out[0], false);
}

/* gy exp (x - y), the softmax. */
static TdStatus
logsumexp_backward (TdBackward *b)
{
  TdVar *y = td__reduce_unsqueeze (b, td_backward_output (b, 0));
  TdVar *gy = td__reduce_unsqueeze (b, b->gy[0]);

  b->gx[0] = td_mul (gy, td_exp (td_sub (td_backward_input (b, 0), y)));
  return TD_OK;
}

const TdOpClass td__logsumexp_class = {
  .name = "logsumexp",
  .label = "LogSumExp",
  .group = "math",
  .formula = "log (sum (exp (x))) over axis",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_in = 1,
  .retain_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TdReduceAttrs),
  .attrs = td__reduce_attrs,
  .n_attrs = 2,
  .infer = logsumexp_infer,
  .forward = logsumexp_forward,
  .backward = logsumexp_backward,
};

TD_OP_FUNCTIONS_REDUCE (logsumexp)
