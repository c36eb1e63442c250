/* A variable and a number: x + c, x * c, x / c, x ** c, c - x, c / x, c ** x.  As in Chainer,
 * x - c is x + -c.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <math.h>
#include <stdio.h>

typedef struct
{
  double c;
} ScalarAttrs;

static const TdAttr scalar_attrs[]
    = { { "value", TD_ATTR_DOUBLE, offsetof (ScalarAttrs, c), 0, 0, NULL } };

static double
c_of (const void *attrs)
{
  return ((const ScalarAttrs *)attrs)->c;
}

static TdStatus
add_scalar_backward (TdBackward *b)
{
  b->gx[0] = b->gy[0];
  return TD_OK;
}

static TdStatus
mul_scalar_backward (TdBackward *b)
{
  b->gx[0] = td_mul_scalar (b->gy[0], c_of (b->attrs));
  return TD_OK;
}

static TdStatus
div_scalar_backward (TdBackward *b)
{
  b->gx[0] = td_div_scalar (b->gy[0], c_of (b->attrs));
  return TD_OK;
}

static TdStatus
rsub_scalar_backward (TdBackward *b)
{
  b->gx[0] = td_neg (b->gy[0]);
  return TD_OK;
}

/* -c / x^2, as -(c / x) / x. */
static TdStatus
rdiv_scalar_backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0);

  b->gx[0] = td_neg (td_mul (b->gy[0], td_div (td_rdiv_scalar (x, c_of (b->attrs)), x)));
  return TD_OK;
}

/* c x^(c-1); where c is 0 or 1 without a power that 0 does not have. */
static TdStatus
pow_scalar_backward (TdBackward *b)
{
  TdVar *x = td_backward_input (b, 0);
  double c = c_of (b->attrs);

  if (c == 0)
    b->gx[0] = td__zeros_like (b->gy[0]);
  else if (c == 1)
    b->gx[0] = b->gy[0];
  else if (c == 2)
    b->gx[0] = td_mul (b->gy[0], td_mul_scalar (x, 2));
  else
    b->gx[0] = td_mul (b->gy[0], td_mul_scalar (td_pow_scalar (x, c - 1), c));
  return TD_OK;
}

static TdStatus
rpow_scalar_backward (TdBackward *b)
{
  b->gx[0]
      = td_mul (b->gy[0], td_mul_scalar (td_backward_output (b, 0), log (c_of (b->attrs))));
  return TD_OK;
}

#define PRINT(op_name, format)                                                                 \
  static void op_name##_print (const void *attrs, char *text, size_t size)                     \
  {                                                                                            \
    char number[32];                                                                           \
                                                                                               \
    snprintf (text, size, format, td__number_text (c_of (attrs), number, sizeof number));      \
  }

#define SCALAR_CLASS(op_name, kind, print_format, text, keep_in, keep_out, check)              \
  PRINT (op_name, print_format)                                                                \
  static TdStatus op_name##_forward (TdOpCall *call)                                           \
  {                                                                                            \
    return call->device->ops->unary (call->device, kind, c_of (call->attrs), 0, &call->in[0],  \
                                     &call->out[0]);                                           \
  }                                                                                            \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .group = "math",                                                                           \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ELEMENTWISE,                                                                \
    .retain_in = keep_in,                                                                      \
    .retain_out = keep_out,                                                                    \
    .in_names = td__names_x,                                                                   \
    .attrs_size = sizeof (ScalarAttrs),                                                        \
    .attrs = scalar_attrs,                                                                     \
    .n_attrs = 1,                                                                              \
    .infer = check,                                                                            \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
    .print = op_name##_print,                                                                  \
  };                                                                                           \
  TdVar *td_##op_name##_at (TdVar *x, double c, const TdSite *site)                            \
  {                                                                                            \
    const ScalarAttrs attrs = { c };                                                           \
                                                                                               \
    return td__apply1 (&td__##op_name##_class, &attrs, site, x);                               \
  }                                                                                            \
  TdVar *td_##op_name (TdVar *x, double c)                                                     \
  {                                                                                            \
    return td_##op_name##_at (x, c, NULL);                                                     \
  }

SCALAR_CLASS (add_scalar, TD_UNARY_ADD_SCALAR, "_ + %s", "x + c", 0, 0, td__infer_number)
SCALAR_CLASS (mul_scalar, TD_UNARY_MUL_SCALAR, "_ * %s", "x * c", 0, 0, td__infer_number)
SCALAR_CLASS (div_scalar, TD_UNARY_DIV_SCALAR, "_ / %s", "x / c", 0, 0, td__infer_float)
SCALAR_CLASS (pow_scalar, TD_UNARY_POW_SCALAR, "_ ** %s", "x ** c", 1, 0, td__infer_float)
SCALAR_CLASS (rsub_scalar, TD_UNARY_RSUB_SCALAR, "%s - _", "c - x", 0, 0, td__infer_number)
SCALAR_CLASS (rdiv_scalar, TD_UNARY_RDIV_SCALAR, "%s / _", "c / x", 1, 0, td__infer_float)
SCALAR_CLASS (rpow_scalar, TD_UNARY_RPOW_SCALAR, "%s ** _", "c ** x", 0, 1, td__infer_float)

TdVar *
td_sub_scalar_at (TdVar *x, double c, const TdSite *site)
{
  return td_add_scalar_at (x, -c, site);
}

TdVar *
td_sub_scalar (TdVar *x, double c)
{
  return td_add_scalar_at (x, -c, NULL);
}
