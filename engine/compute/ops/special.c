/* erf, log (1 + x), e^x - 1 and 1 / sqrt (x): kernels for value and slope.
 *
 * SPDX-License-Identifier: MIT */
#include "sloped.h"

/* The slope of e^(-x x) is -2 x times itself. */
static TdVar *
erf_curve (const void *attrs, TdVar *x, TdVar *w)
{
  return td_mul (td_mul_scalar (x, -2), td__apply2 (&td__erf_grad_class, attrs, NULL, x, w));
}

/* -1 / (1 + x)^2. */
static TdVar *
log1p_curve (const void *attrs, TdVar *x, TdVar *w)
{
  return td_neg (td_div (w, td_square (td_add_scalar (x, 1))));
}

static TdVar *
expm1_curve (const void *attrs, TdVar *x, TdVar *w)
{
  return td__apply2 (&td__expm1_grad_class, attrs, NULL, x, w);
}

/* The slope of x^-1.5 is -1.5 / x times itself. */
static TdVar *
rsqrt_curve (const void *attrs, TdVar *x, TdVar *w)
{
  TdVar *slope = td__apply2 (&td__rsqrt_grad_class, attrs, NULL, x, w);

  return td_div (td_mul_scalar (slope, -1.5), x);
}

#define SPECIAL(name, label, grad_label, text, grad_text, kind)                                \
  TD_SLOPED_CLASSES (name, label, grad_label, "math", text, grad_text, kind, 0,                \
                     td__infer_float, name##_curve, 3, 0, NULL, 0)                             \
  TD_OP_FUNCTIONS_1 (name)

/* *Source*: chainer.functions.erf, log1p, expm1, rsqrt. */
SPECIAL (erf, "Erf", "ErfGrad", "erf (x)", "gy 2 / pi ** 0.5 e ** (-x x)", TD_UNARY_ERF)
SPECIAL (log1p, "Log1p", "Log1pGrad", "log (1 + x)", "gy / (1 + x)", TD_UNARY_LOG1P)
SPECIAL (expm1, "Expm1", "Expm1Grad", "e ** x - 1", "gy e ** x", TD_UNARY_EXPM1)
SPECIAL (rsqrt, "Rsqrt", "RsqrtGrad", "x ** -0.5", "gy -0.5 x ** -1.5", TD_UNARY_RSQRT)
