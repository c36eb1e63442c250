/* a - b, a * b, a / b, with broadcasting.  a + b, by which backward sums, is core/add.c.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#define ARITHMETIC_FORWARD(name, kind)                                                         \
  static TdStatus name##_forward (TdOpCall *call)                                              \
  {                                                                                            \
    return call->device->ops->binary (call->device, kind, &call->in[0], &call->in[1],          \
                                      &call->out[0], call->accumulate);                        \
  }

ARITHMETIC_FORWARD (sub, TD_BINARY_SUB)
ARITHMETIC_FORWARD (mul, TD_BINARY_MUL)
ARITHMETIC_FORWARD (div, TD_BINARY_DIV)

/* The sum over broadcast axes first, which is smaller; never into the gradient that is there,
 * as it is not b's yet. */
static TdVar *
negated_to_input (const TdBackward *b, int i, TdVar *g)
{
  const TdShape *shape = td_backward_in_shape (b, i);
  const TdShape now = td_shape (g);

  return td_neg (td__same_shape (&now, shape) ? g : td_sum_to (g, *shape));
}

static TdStatus
sub_backward (TdBackward *b)
{
  if (td_backward_needs (b, 0))
    b->gx[0] = td__grad_to_input (b, 0, b->gy[0]);
  if (td_backward_needs (b, 1))
    b->gx[1] = negated_to_input (b, 1, b->gy[0]);
  return TD_OK;
}

/* gy times the other operand; straight into the gradient where nothing has to be summed. */
static TdVar *
product_to_input (TdBackward *b, int i, TdVar *other)
{
  const TdShape *shape = td_backward_in_shape (b, i);

  if (td__same_shape (shape, td_backward_out_shape (b, 0)))
    {
      td_backward_into (b, i);
      return td_mul (b->gy[0], other);
    }
  return td__grad_to_input (b, i, td_mul (b->gy[0], other));
}

static TdStatus
mul_backward (TdBackward *b)
{
  for (int i = 0; i < 2; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = product_to_input (b, i, td_backward_input (b, 1 - i));
  return TD_OK;
}

static TdStatus
div_backward (TdBackward *b)
{
  TdVar *y = td_backward_input (b, 1);
  TdVar *g = td_div (b->gy[0], y);

  if (td_backward_needs (b, 0))
    b->gx[0] = td__grad_to_input (b, 0, g);
  if (td_backward_needs (b, 1))
    b->gx[1]
        = td__grad_to_input (b, 1, td_neg (td_mul (g, td_div (td_backward_input (b, 0), y))));
  return TD_OK;
}

#define ARITHMETIC_CLASS(op_name, text, keep, check)                                           \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = "_ " text " _",                                                                   \
    .group = "math",                                                                           \
    .formula = "a " text " b",                                                                 \
    .n_in_min = 2,                                                                             \
    .n_in_max = 2,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ELEMENTWISE | TD_OP_ACCUMULATES,                                            \
    .retain_in = keep,                                                                         \
    .in_names = td__names_ab,                                                                  \
    .infer = check,                                                                            \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  TD_OP_FUNCTIONS_2 (op_name)

ARITHMETIC_CLASS (sub, "-", 0, td__infer_number_pair)
ARITHMETIC_CLASS (mul, "*", 3, td__infer_number_pair)
ARITHMETIC_CLASS (div, "/", 3, td__infer_float_pair)
