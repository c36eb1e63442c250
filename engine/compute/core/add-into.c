/* add_into: the gradient accumulation that runs in place, an event of its own.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

static const char *const names[] = { "sum", "addend" };

static TdStatus
infer (TdOpCall *call)
{
  if (!td__same_shape (call->in[0].shape, call->in[1].shape)
      || call->in[0].dtype != call->in[1].dtype)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "a gradient of the collected one's shape and dtype expected");
  return TD_OK;
}

static TdStatus
forward (TdOpCall *call)
{
  TdTensor sum = call->in[0];

  return call->device->ops->binary (call->device, TD_BINARY_ADD, &call->in[0], &call->in[1],
                                    &sum, false);
}

/* sum += addend.  *Source*: the accumulation of chainer/_backprop_utils.py. */
const TdOpClass td__add_into_class = {
  .name = "add_into",
  .label = "_ += _",
  .group = "gradient",
  .formula = "sum + addend, in place",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 0,
  .flags = TD_OP_ELEMENTWISE | TD_OP_STATEFUL | TD_OP_NO_GRAD,
  .writes = 1,
  .in_names = names,
  .infer = infer,
  .forward = forward,
};
