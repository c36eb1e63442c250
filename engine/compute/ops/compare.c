/* Comparisons: 1 where they hold, else 0, in the operands' dtype, as masks are multiplied with.
 * They have no gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#define COMPARE_CLASS(op_name, kind, text)                                                     \
  static TdStatus op_name##_forward (TdOpCall *call)                                           \
  {                                                                                            \
    return call->device->ops->binary (call->device, kind, &call->in[0], &call->in[1],          \
                                      &call->out[0], false);                                   \
  }                                                                                            \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = "_ " text " _",                                                                   \
    .group = "math",                                                                           \
    .formula = "1 where a " text " b, else 0",                                                 \
    .n_in_min = 2,                                                                             \
    .n_in_max = 2,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ELEMENTWISE | TD_OP_NO_GRAD,                                                \
    .in_names = td__names_ab,                                                                  \
    .infer = td__infer_number_pair,                                                            \
    .forward = op_name##_forward,                                                              \
  }

COMPARE_CLASS (equal, TD_BINARY_EQ, "==");
COMPARE_CLASS (greater_equal, TD_BINARY_GE, ">=");
COMPARE_CLASS (greater, TD_BINARY_GT, ">");
COMPARE_CLASS (less_equal, TD_BINARY_LE, "<=");
COMPARE_CLASS (less, TD_BINARY_LT, "<");

TD_OP_FUNCTIONS_2 (equal)
TD_OP_FUNCTIONS_2 (greater_equal)
TD_OP_FUNCTIONS_2 (greater)
TD_OP_FUNCTIONS_2 (less_equal)
TD_OP_FUNCTIONS_2 (less)

TdVar *
td__equal (TdVar *a, TdVar *b)
{
  return td__apply2 (&td__equal_class, NULL, NULL, a, b);
}

TdVar *
td__less (TdVar *a, TdVar *b)
{
  return td__apply2 (&td__less_class, NULL, NULL, a, b);
}
