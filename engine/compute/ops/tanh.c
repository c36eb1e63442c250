/* Hyperbolic tangent and its gradient gy (1 - y y).
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
tanh_forward (TdOpCall *call)
{
  return call->device->ops->unary (call->device, TD_UNARY_TANH, 0, 0, &call->in[0],
                                   &call->out[0]);
}

static TdVar *
tanh_grad (TdVar *y, TdVar *gy)
{
  return td__apply2 (&td__tanh_grad_class, NULL, NULL, y, gy);
}

static TdStatus
tanh_backward (TdBackward *b)
{
  td_backward_into (b, 0);
  b->gx[0] = tanh_grad (td_backward_output (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__tanh_class = {
  .name = "tanh",
  .label = "Tanh",
  .group = "activation",
  .formula = "tanh (x)",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .retain_out = 1,
  .in_names = td__names_x,
  .infer = td__infer_float,
  .forward = tanh_forward,
  .backward = tanh_backward,
};

static TdStatus
tanh_grad_forward (TdOpCall *call)
{
  return call->device->ops->binary (call->device, TD_BINARY_TANH_GRAD, &call->in[0],
                                    &call->in[1], &call->out[0], call->accumulate);
}

/* d/dy is -2 y gy; in gy it is linear. */
static TdStatus
tanh_grad_backward (TdBackward *b)
{
  if (td_backward_needs (b, 0))
    b->gx[0] = td_mul (td_mul (b->gy[0], td_backward_input (b, 1)),
                       td_mul_scalar (td_backward_input (b, 0), -2));
  if (td_backward_needs (b, 1))
    b->gx[1] = tanh_grad (td_backward_input (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__tanh_grad_class = {
  .name = "tanh_grad",
  .label = "TanhGrad",
  .group = "activation",
  .formula = "gy (1 - y y)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,
  .retain_in = 3,
  .in_names = td__names_ygy,
  .infer = td__infer_float_twins,
  .forward = tanh_grad_forward,
  .backward = tanh_grad_backward,
};

TD_OP_FUNCTIONS_1 (tanh)
