/* a to the power b, element by element with broadcasting.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
pow_forward (TdOpCall *call)
{
  return call->device->ops->binary (call->device, TD_BINARY_POW, &call->in[0], &call->in[1],
                                    &call->out[0], call->accumulate);
}

/* b a^(b-1) and log (a) a^b. */
static TdStatus
pow_backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0), *y = td_backward_input (b, 1);

  if (td_backward_needs (b, 0))
    b->gx[0] = td__grad_to_input (
        b, 0, td_mul (b->gy[0], td_mul (y, td_pow (x, td_add_scalar (y, -1)))));
  if (td_backward_needs (b, 1))
    b->gx[1] = td__grad_to_input (
        b, 1, td_mul (b->gy[0], td_mul (td_log (x), td_backward_output (b, 0))));
  return TD_OK;
}

const TdOpClass td__pow_class = {
  .name = "pow",
  .label = "_ ** _",
  .group = "math",
  .formula = "a ** b",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,
  .retain_in = 3,
  .retain_out = 1,
  .in_names = td__names_ab,
  .infer = td__infer_float_pair,
  .forward = pow_forward,
  .backward = pow_backward,
};

TD_OP_FUNCTIONS_2 (pow)
