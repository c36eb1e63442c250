/* max (x, 0) and its gradient.  NaN stays: a mistake upstream is not hidden here.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
relu_forward (TdOpCall *call)
{
  return call->device->ops->unary (call->device, TD_UNARY_RELU, 0, 0, &call->in[0],
                                   &call->out[0]);
}

static TdVar *
relu_grad (TdVar *y, TdVar *gy)
{
  return td__apply2 (&td__relu_grad_class, NULL, NULL, y, gy);
}

static TdStatus
relu_backward (TdBackward *b)
{
  td_backward_into (b, 0);
  b->gx[0] = relu_grad (td_backward_output (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__relu_class = {
  .name = "relu",
  .label = "ReLU",
  .group = "activation",
  .formula = "max (x, 0)",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .retain_out = 1,
  .in_names = td__names_x,
  .infer = td__infer_float,
  .forward = relu_forward,
  .backward = relu_backward,
};

static TdStatus
relu_grad_forward (TdOpCall *call)
{
  return call->device->ops->binary (call->device, TD_BINARY_RELU_GRAD, &call->in[0],
                                    &call->in[1], &call->out[0], call->accumulate);
}

/* The gradient is a step in y: nothing comes back to it. */
static TdStatus
relu_grad_backward (TdBackward *b)
{
  if (td_backward_needs (b, 1))
    b->gx[1] = relu_grad (td_backward_input (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__relu_grad_class = {
  .name = "relu_grad",
  .label = "ReLUGrad2",
  .group = "activation",
  .formula = "y > 0 ? gy : 0",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,
  .retain_in = 1,
  .no_grad_in = 1,
  .in_names = td__names_ygy,
  .infer = td__infer_float_twins,
  .forward = relu_grad_forward,
  .backward = relu_grad_backward,
};

TD_OP_FUNCTIONS_1 (relu)
