/* Functions of one variable whose gradients need a line each: exp log sqrt sin cos, |x|, x x,
 * -x; and sign, which has none.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
neg_backward (TdBackward *b)
{
  b->gx[0] = td_neg (b->gy[0]);
  return TD_OK;
}

static TdStatus
exp_backward (TdBackward *b)
{
  td_backward_into (b, 0);
  b->gx[0] = td_mul (b->gy[0], td_backward_output (b, 0));
  return TD_OK;
}

static TdStatus
log_backward (TdBackward *b)
{
  td_backward_into (b, 0);
  b->gx[0] = td_div (b->gy[0], td_backward_input (b, 0));
  return TD_OK;
}

static TdStatus
sqrt_backward (TdBackward *b)
{
  TdVar *twice = td_mul_scalar (td_backward_output (b, 0), 2);

  td_backward_into (b, 0);
  b->gx[0] = td_div (b->gy[0], twice);
  return TD_OK;
}

static TdStatus
sin_backward (TdBackward *b)
{
  TdVar *slope = td_cos (td_backward_input (b, 0));

  td_backward_into (b, 0);
  b->gx[0] = td_mul (b->gy[0], slope);
  return TD_OK;
}

static TdStatus
cos_backward (TdBackward *b)
{
  TdVar *slope = td_neg (td_sin (td_backward_input (b, 0)));

  td_backward_into (b, 0);
  b->gx[0] = td_mul (b->gy[0], slope);
  return TD_OK;
}

static TdStatus
absolute_backward (TdBackward *b)
{
  TdVar *slope = td__sign (td_backward_input (b, 0));

  td_backward_into (b, 0);
  b->gx[0] = td_mul (b->gy[0], slope);
  return TD_OK;
}

static TdStatus
square_backward (TdBackward *b)
{
  TdVar *slope = td_mul_scalar (td_backward_input (b, 0), 2);

  td_backward_into (b, 0);
  b->gx[0] = td_mul (b->gy[0], slope);
  return TD_OK;
}

#define ELEMENTARY_FORWARD(name, kind)                                                         \
  static TdStatus name##_forward (TdOpCall *call)                                              \
  {                                                                                            \
    return call->device->ops->unary (call->device, kind, 0, 0, &call->in[0], &call->out[0]);   \
  }

#define ELEMENTARY_CLASS(op_name, kind, op_label, text, keep_in, keep_out, check)              \
  ELEMENTARY_FORWARD (op_name, kind)                                                           \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "math",                                                                           \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ELEMENTWISE,                                                                \
    .retain_in = keep_in,                                                                      \
    .retain_out = keep_out,                                                                    \
    .in_names = td__names_x,                                                                   \
    .infer = check,                                                                            \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  TD_OP_FUNCTIONS_1 (op_name)

ELEMENTARY_CLASS (neg, TD_UNARY_NEG, "__neg__", "-x", 0, 0, td__infer_number)
ELEMENTARY_CLASS (exp, TD_UNARY_EXP, "Exp", "e ** x", 0, 1, td__infer_float)
ELEMENTARY_CLASS (log, TD_UNARY_LOG, "Log", "log (x)", 1, 0, td__infer_float)
ELEMENTARY_CLASS (sqrt, TD_UNARY_SQRT, "Sqrt", "x ** 0.5", 0, 1, td__infer_float)
ELEMENTARY_CLASS (sin, TD_UNARY_SIN, "Sin", "sin (x)", 1, 0, td__infer_float)
ELEMENTARY_CLASS (cos, TD_UNARY_COS, "Cos", "cos (x)", 1, 0, td__infer_float)
ELEMENTARY_CLASS (absolute, TD_UNARY_ABS, "|_|", "|x|", 1, 0, td__infer_number)
ELEMENTARY_CLASS (square, TD_UNARY_SQUARE, "Square", "x * x", 1, 0, td__infer_number)

ELEMENTARY_FORWARD (sign, TD_UNARY_SIGN)

const TdOpClass td__sign_class = {
  .name = "sign",
  .label = "Sign",
  .group = "math",
  .formula = "-1, 0 or 1",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE | TD_OP_NO_GRAD,
  .in_names = td__names_x,
  .infer = td__infer_number,
  .forward = sign_forward,
};

TdVar *
td__sign (TdVar *x)
{
  return td__apply1 (&td__sign_class, NULL, NULL, x);
}

TD_OP_FUNCTIONS_1 (sign)
