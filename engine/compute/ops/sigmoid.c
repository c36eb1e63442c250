/* 1 / (1 + exp (-x)) and its gradient gy y (1 - y).
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
sigmoid_forward (TdOpCall *call)
{
  return call->device->ops->unary (call->device, TD_UNARY_SIGMOID, 0, 0, &call->in[0],
                                   &call->out[0]);
}

static TdVar *
sigmoid_grad (TdVar *y, TdVar *gy)
{
  return td__apply2 (&td__sigmoid_grad_class, NULL, NULL, y, gy);
}

static TdStatus
sigmoid_backward (TdBackward *b)
{
  td_backward_into (b, 0);
  b->gx[0] = sigmoid_grad (td_backward_output (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__sigmoid_class = {
  .name = "sigmoid",
  .label = "Sigmoid",
  .group = "activation",
  .formula = "1 / (1 + exp (-x))",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .retain_out = 1,
  .in_names = td__names_x,
  .infer = td__infer_float,
  .forward = sigmoid_forward,
  .backward = sigmoid_backward,
};

static TdStatus
sigmoid_grad_forward (TdOpCall *call)
{
  return call->device->ops->binary (call->device, TD_BINARY_SIGMOID_GRAD, &call->in[0],
                                    &call->in[1], &call->out[0], call->accumulate);
}

/* d/dy is gy (1 - 2 y); in gy it is linear. */
static TdStatus
sigmoid_grad_backward (TdBackward *b)
{
  if (td_backward_needs (b, 0))
    b->gx[0] = td_mul (td_mul (b->gy[0], td_backward_input (b, 1)),
                       td_rsub_scalar (td_mul_scalar (td_backward_input (b, 0), 2), 1));
  if (td_backward_needs (b, 1))
    b->gx[1] = sigmoid_grad (td_backward_input (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__sigmoid_grad_class = {
  .name = "sigmoid_grad",
  .label = "SigmoidGrad",
  .group = "activation",
  .formula = "gy y (1 - y)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,
  .retain_in = 3,
  .in_names = td__names_ygy,
  .infer = td__infer_float_twins,
  .forward = sigmoid_grad_forward,
  .backward = sigmoid_grad_backward,
};

TD_OP_FUNCTIONS_1 (sigmoid)
