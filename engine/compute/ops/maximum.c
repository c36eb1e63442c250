/* The larger and the smaller of two; NaN wins.  Where both are equal, the gradient goes to a.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#define FORWARD(name, kind)                                                                    \
  static TdStatus name##_forward (TdOpCall *call)                                              \
  {                                                                                            \
    return call->device->ops->binary (call->device, kind, &call->in[0], &call->in[1],          \
                                      &call->out[0], call->accumulate);                        \
  }

FORWARD (maximum, TD_BINARY_MAXIMUM)
FORWARD (minimum, TD_BINARY_MINIMUM)

/* b_wins is 1 where b was taken. */
static TdStatus
share (TdBackward *b, TdVar *b_wins)
{
  TdVar *zero = td__number_like (b->gy[0], 0);

  if (td_backward_needs (b, 0))
    b->gx[0] = td__grad_to_input (b, 0, td_where (b_wins, zero, b->gy[0]));
  if (td_backward_needs (b, 1))
    b->gx[1] = td__grad_to_input (b, 1, td_where (b_wins, b->gy[0], zero));
  return TD_OK;
}

static TdStatus
maximum_backward (TdBackward *b)
{
  return share (b, td__less (td_backward_input (b, 0), td_backward_input (b, 1)));
}

static TdStatus
minimum_backward (TdBackward *b)
{
  return share (b, td__less (td_backward_input (b, 1), td_backward_input (b, 0)));
}

#define EXTREME_CLASS(op_name, op_label, text)                                                 \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "math",                                                                           \
    .formula = text,                                                                           \
    .n_in_min = 2,                                                                             \
    .n_in_max = 2,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,                                            \
    .retain_in = 3,                                                                            \
    .in_names = td__names_ab,                                                                  \
    .infer = td__infer_number_pair,                                                            \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  TD_OP_FUNCTIONS_2 (op_name)

EXTREME_CLASS (maximum, "Maximum", "max (a, b)")
EXTREME_CLASS (minimum, "Minimum", "min (a, b)")
