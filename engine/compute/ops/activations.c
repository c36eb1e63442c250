/* Activations with kernels for value and slope: leaky_relu elu softplus clipped_relu
 * hard_sigmoid silu gelu; and what is made of them.
 *
 * SPDX-License-Identifier: MIT */
#include "sloped.h"

const char *const td__names_xgy[] = { "x", "gy" };

TdStatus
td__infer_slope (TdOpCall *call)
{
  return td__infer_float_twins (call);
}

TdStatus
td__slope_backward (TdBackward *b, TdVar *(*curve) (const void *attrs, TdVar *x, TdVar *w))
{
  TdVar *x = td_backward_input (b, 0), *v = b->gy[0];

  if (td_backward_needs (b, 0) && curve != NULL)
    b->gx[0] = curve (b->attrs, x, td_mul (v, td_backward_input (b, 1)));
  if (td_backward_needs (b, 1))
    {
      td_backward_into (b, 1);
      b->gx[1] = td__apply2 (b->cls, b->attrs, NULL, x, v);
    }
  return TD_OK;
}

/* --- the second derivatives, times w --- */

typedef struct
{
  double p;
} OneNumber;

static double
number_of (const void *attrs)
{
  return ((const OneNumber *)attrs)->p;
}

/* Left of 0 the slope's slope is the slope. */
static TdVar *
elu_curve (const void *attrs, TdVar *x, TdVar *w)
{
  TdVar *zero = td__number_like (x, 0);

  return td_where (td__less (zero, x), zero,
                   td__apply2 (&td__elu_grad_class, attrs, NULL, x, w));
}

/* p s (1 - s), s = sigmoid (p x). */
static TdVar *
softplus_curve (const void *attrs, TdVar *x, TdVar *w)
{
  const double p = number_of (attrs);
  TdVar *s = td_sigmoid (td_mul_scalar (x, p));

  return td_mul (td_mul_scalar (w, p), td_mul (s, td_rsub_scalar (s, 1)));
}

/* s (1 - s) (2 + x (1 - 2 s)). */
static TdVar *
silu_curve (const void *attrs, TdVar *x, TdVar *w)
{
  TdVar *s = td_sigmoid (x), *bell = td_mul (s, td_rsub_scalar (s, 1));
  TdVar *slope = td_mul (x, td_rsub_scalar (td_mul_scalar (s, 2), 1));

  return td_mul (w, td_mul (bell, td_add_scalar (slope, 2)));
}

/* phi (x) (2 - x x). */
static TdVar *
gelu_erf_curve (TdVar *x, TdVar *w)
{
  TdVar *xx = td_square (x);
  TdVar *phi = td_mul_scalar (td_exp (td_mul_scalar (xx, -0.5)), 0.39894228040143268);

  return td_mul (w, td_mul (phi, td_rsub_scalar (xx, 2)));
}

/* s (1 - s) (2 g' + x ((1 - 2 s) g'^2 + g'')), where s = sigmoid (g), g = 2 sqrt (2 / pi) (x +
 * c x^3). */
static TdVar *
gelu_tanh_curve (TdVar *x, TdVar *w)
{
  const double k = 1.5957691216057308, c = 0.044715;
  TdVar *xx = td_square (x);
  TdVar *s = td_sigmoid (td_mul (x, td_add_scalar (td_mul_scalar (xx, k * c), k)));
  TdVar *slope = td_add_scalar (td_mul_scalar (xx, 3 * k * c), k);
  TdVar *bend = td_mul_scalar (x, 6 * k * c);
  TdVar *bell = td_mul (s, td_rsub_scalar (s, 1));
  TdVar *inner
      = td_add (td_mul (td_rsub_scalar (td_mul_scalar (s, 2), 1), td_square (slope)), bend);

  return td_mul (w, td_mul (bell, td_add (td_mul_scalar (slope, 2), td_mul (x, inner))));
}

typedef struct
{
  bool approximate;
} GeluAttrs;

static TdVar *
gelu_curve (const void *attrs, TdVar *x, TdVar *w)
{
  return ((const GeluAttrs *)attrs)->approximate ? gelu_tanh_curve (x, w)
                                                 : gelu_erf_curve (x, w);
}

/* --- attributes --- */

static const TdAttr slope_attr[]
    = { { "slope", TD_ATTR_DOUBLE, offsetof (OneNumber, p), 0, 0, "0.2" } };
static const TdAttr alpha_attr[]
    = { { "alpha", TD_ATTR_DOUBLE, offsetof (OneNumber, p), 0, 0, "1.0" } };
static const TdAttr beta_attr[]
    = { { "beta", TD_ATTR_DOUBLE, offsetof (OneNumber, p), 0, 0, "1.0" } };
static const TdAttr z_attr[]
    = { { "z", TD_ATTR_DOUBLE, offsetof (OneNumber, p), 0, 0, "20.0" } };
static const TdAttr approximate_attr[]
    = { { "approximate", TD_ATTR_BOOL, offsetof (GeluAttrs, approximate), 0, 0, "False" } };

static TdStatus
softplus_infer (TdOpCall *call)
{
  const double beta = number_of (call->attrs);

  if (!(beta != 0))
    return td_op_fail_operands (call, TD_ERR_ARG, "beta != 0 expected, got %g", beta);
  return td__infer_float (call);
}

static TdStatus
clipped_relu_infer (TdOpCall *call)
{
  const double z = number_of (call->attrs);

  if (!(z >= 0))
    return td_op_fail_operands (call, TD_ERR_ARG, "z >= 0 expected, got %g", z);
  return td__infer_float (call);
}

/* --- classes --- */

#define ONE_NUMBER(name, label, grad_label, text, grad_text, kind, check, curve, keep, table)  \
  TD_SLOPED_CLASSES (name, label, grad_label, "activation", text, grad_text, kind,             \
                     number_of (attrs), check, curve, keep, sizeof (OneNumber), table, 1)

/* *Source*: chainer.functions.leaky_relu, elu, softplus, clipped_relu, hard_sigmoid. */
ONE_NUMBER (leaky_relu, "LeakyReLU", "LeakyReLUGrad", "x < 0 ? slope x : x",
            "x < 0 ? slope gy : gy", TD_UNARY_LEAKY_RELU, td__infer_float, NULL, 1, slope_attr)
ONE_NUMBER (elu, "ELU", "ELUGrad", "x > 0 ? x : alpha (e ** x - 1)",
            "x > 0 ? gy : gy alpha e ** x", TD_UNARY_ELU, td__infer_float, elu_curve, 3,
            alpha_attr)
ONE_NUMBER (softplus, "Softplus", "SoftplusGrad", "log (1 + e ** (beta x)) / beta",
            "gy sigmoid (beta x)", TD_UNARY_SOFTPLUS, softplus_infer, softplus_curve, 3,
            beta_attr)
ONE_NUMBER (clipped_relu, "ClippedReLU", "ClippedReLUGrad2", "min (max (x, 0), z)",
            "0 < x < z ? gy : 0", TD_UNARY_CLIPPED_RELU, clipped_relu_infer, NULL, 1, z_attr)
TD_SLOPED_CLASSES (hard_sigmoid, "HardSigmoid", "HardSigmoidGrad", "activation",
                   "min (max (0.2 x + 0.5, 0), 1)", "|x| < 2.5 ? 0.2 gy : 0",
                   TD_UNARY_HARD_SIGMOID, 0, td__infer_float, NULL, 1, 0, NULL, 0)
/* *Source*: S. Elfwing et al., "Sigmoid-weighted linear units", 2018. */
TD_SLOPED_CLASSES (silu, "SiLU", "SiLUGrad", "activation", "x sigmoid (x)",
                   "gy s (1 + x (1 - s)), s = sigmoid (x)", TD_UNARY_SILU, 0, td__infer_float,
                   silu_curve, 3, 0, NULL, 0)
/* *Source*: D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016. */
TD_SLOPED_CLASSES (gelu, "GELU", "GELUGrad", "activation", "x Phi (x)",
                   "gy (Phi (x) + x phi (x))",
                   ((const GeluAttrs *)attrs)->approximate ? TD_UNARY_GELU_TANH : TD_UNARY_GELU,
                   0, td__infer_float, gelu_curve, 3, sizeof (GeluAttrs), approximate_attr, 1)

/* --- functions --- */

TD_OP_FUNCTIONS_1 (hard_sigmoid)
TD_OP_FUNCTIONS_1 (silu)

#define FUNCTIONS(name, Options, defaults, Attrs, field)                                       \
  TdVar *td_##name##_at (TdVar *x, Options o, const TdSite *site)                              \
  {                                                                                            \
    const Attrs attrs = { o.field };                                                           \
                                                                                               \
    return td__apply1 (&td__##name##_class, &attrs, site, x);                                  \
  }                                                                                            \
  TdVar *td_##name##_ (TdVar *x, const Options *options)                                       \
  {                                                                                            \
    return td_##name##_at (x, options != NULL ? *options : (Options){ defaults }, NULL);       \
  }                                                                                            \
  TdVar *td_##name (TdVar *x)                                                                  \
  {                                                                                            \
    return td_##name##_at (x, (Options){ defaults }, NULL);                                    \
  }

FUNCTIONS (leaky_relu, TdLeakyReluOpt, TD_LEAKY_RELU_DEFAULTS, OneNumber, slope)
FUNCTIONS (elu, TdEluOpt, TD_ELU_DEFAULTS, OneNumber, alpha)
FUNCTIONS (softplus, TdSoftplusOpt, TD_SOFTPLUS_DEFAULTS, OneNumber, beta)
FUNCTIONS (clipped_relu, TdClippedReluOpt, TD_CLIPPED_RELU_DEFAULTS, OneNumber, z)
FUNCTIONS (gelu, TdGeluOpt, TD_GELU_DEFAULTS, GeluAttrs, approximate)

TdVar *
td_relu6_at (TdVar *x, const TdSite *site)
{
  return td_clipped_relu_at (x, (TdClippedReluOpt){ .z = 6 }, site);
}

TdVar *
td_relu6 (TdVar *x)
{
  return td_relu6_at (x, NULL);
}

TdVar *
td_selu_at (TdVar *x, TdSeluOpt o, const TdSite *site)
{
  return td_mul_scalar_at (td_elu_at (x, (TdEluOpt){ .alpha = o.alpha }, site), o.scale, site);
}

TdVar *
td_selu_ (TdVar *x, const TdSeluOpt *options)
{
  return td_selu_at (x, options != NULL ? *options : (TdSeluOpt){ TD_SELU_DEFAULTS }, NULL);
}

TdVar *
td_selu (TdVar *x)
{
  return td_selu_ (x, NULL);
}
