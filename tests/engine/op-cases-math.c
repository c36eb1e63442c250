/* Rows for activations, mathematics and noise of tapedeck-math.h.  References are the
 * definitions in double precision; of gradients, the derivatives written out.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>

#define S(...) TD_SHAPE (__VA_ARGS__)
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }
#define MAP(name, expression)                                                                  \
  static double map_##name (double a, double b, double c)                                      \
  {                                                                                            \
    return expression;                                                                         \
  }
#define WHOLE(name)                                                                            \
  static void whole_##name (const OpCase *c, const double *const *in, double *const *out)

/* --- functions of one variable: value, and gradient as the operation it is --- */

#define SLOPED(name, grad, attrs, call, value, slope)                                          \
  CALL (name, y[0] = call)                                                                     \
  MAP (name, value)                                                                            \
  CALL (name##_grad, y[0] = td__apply2 (&td__##grad##_class, attrs, NULL, x[0], x[1]))         \
  MAP (name##_grad, b *(slope))

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}
static double
phi (double x)
{
  return exp (-0.5 * x * x) / sqrt (2 * M_PI);
}
static double
normal (double x)
{
  return 0.5 * erfc (-x / sqrt (2));
}
static double
gelu_g (double x)
{
  return 2 * sqrt (2 / M_PI) * (x + 0.044715 * x * x * x);
}

#define NUMBER(v) ((const double[]){ v })
SLOPED (leaky_relu, leaky_relu_grad, NUMBER (0.2), td_leaky_relu (x[0]), a < 0 ? 0.2 * a : a,
        a < 0 ? 0.2 : 1)
SLOPED (leaky_relu_up, leaky_relu_grad, NUMBER (-0.5),
        td_leaky_relu_ (x[0], &(TdLeakyReluOpt){ .slope = -0.5 }), a < 0 ? -0.5 * a : a,
        a < 0 ? -0.5 : 1)
SLOPED (elu, elu_grad, NUMBER (1), td_elu (x[0]), a > 0 ? a : expm1 (a), a > 0 ? 1 : exp (a))
SLOPED (elu_half, elu_grad, NUMBER (0.5), td_elu_ (x[0], &(TdEluOpt){ .alpha = 0.5 }),
        a > 0 ? a : 0.5 * expm1 (a), a > 0 ? 1 : 0.5 * exp (a))
CALL (selu, y[0] = td_selu (x[0]))
MAP (selu, 1.0507009873554805 * (a > 0 ? a : 1.6732632423543772 * expm1 (a)))
SLOPED (softplus, softplus_grad, NUMBER (1), td_softplus (x[0]), log1p (exp (a)), sigmoid (a))
SLOPED (softplus_sharp, softplus_grad, NUMBER (3),
        td_softplus_ (x[0], &(TdSoftplusOpt){ .beta = 3 }), log1p (exp (3 * a)) / 3,
        sigmoid (3 * a))
SLOPED (clipped_relu, clipped_relu_grad, NUMBER (1.5),
        td_clipped_relu_ (x[0], &(TdClippedReluOpt){ .z = 1.5 }), fmin (fmax (a, 0), 1.5),
        a > 0 && a < 1.5)
CALL (relu6, y[0] = td_relu6 (x[0]))
MAP (relu6, fmin (fmax (a, 0), 6))
SLOPED (hard_sigmoid, hard_sigmoid_grad, NULL, td_hard_sigmoid (x[0]),
        fmin (fmax (0.2 * a + 0.5, 0), 1), fabs (a) < 2.5 ? 0.2 : 0)
SLOPED (silu, silu_grad, NULL, td_silu (x[0]), a *sigmoid (a),
        sigmoid (a) * (1 + a * (1 - sigmoid (a))))
SLOPED (gelu, gelu_grad, (const bool[]){ false }, td_gelu (x[0]), a *normal (a),
        normal (a) + a * phi (a))
SLOPED (gelu_tanh, gelu_grad, (const bool[]){ true },
        td_gelu_ (x[0], &(TdGeluOpt){ .approximate = true }), a *sigmoid (gelu_g (a)),
        sigmoid (gelu_g (a))
            + a * sigmoid (gelu_g (a)) * sigmoid (-gelu_g (a)) * 2 * sqrt (2 / M_PI)
                  * (1 + 3 * 0.044715 * a * a))
SLOPED (erf, erf_grad, NULL, td_erf (x[0]), erf (a), 2 / sqrt (M_PI) * exp (-a * a))
SLOPED (log1p, log1p_grad, NULL, td_log1p (x[0]), log1p (a), 1 / (1 + a))
SLOPED (expm1, expm1_grad, NULL, td_expm1 (x[0]), expm1 (a), exp (a))
SLOPED (rsqrt, rsqrt_grad, NULL, td_rsqrt (x[0]), 1 / sqrt (a), -0.5 / (a * sqrt (a)))
CALL (identity, y[0] = td_identity (x[0]))
MAP (identity, a)

/* --- averages --- */

CALL (average,
      y[0] = td_average_ (x[0], &(TdAverageOpt){ (const int[]){ 0, -1 }, 2, x[1], true }))
CALL (average_row,
      y[0] = td_average_ (x[0], &(TdAverageOpt){ (const int[]){ 1 }, 1, x[1], false }))
CALL (average_all, y[0] = td_average_ (x[0], NULL))
WHOLE (average)
{
  for (int64_t j = 0; j < 3; j++)
    {
      double sum = 0, weight = 0;

      for (int64_t k = 0; k < 8; k++)
        {
          const int64_t at = k / 4 * 12 + j * 4 + k % 4;

          sum += in[0][at] * in[1][at];
          weight += in[1][at];
        }
      out[0][j] = sum / weight;
    }
}
WHOLE (average_row)
{
  const double *w = in[1];

  for (int64_t i = 0; i < 8; i++)
    {
      const double *x = in[0] + i / 4 * 12 + i % 4;

      out[0][i] = (x[0] * w[0] + x[4] * w[1] + x[8] * w[2]) / (w[0] + w[1] + w[2]);
    }
}
WHOLE (average_all)
{
  for (int64_t i = 0; i < 24; i++)
    out[0][0] += in[0][i] / 24;
}

/* --- the tables --- */

// clang-format off
#define IN(low, high, gap, ...) { S (__VA_ARGS__), low, high, 0, gap, NULL }
#define X(...) IN (-2, 2, 0, __VA_ARGS__)
#define POSITIVE(...) IN (0.5, 1.5, 0, __VA_ARGS__)
#define ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .whole = whole_##name, __VA_ARGS__ }
#define MAP_ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .map = map_##name, __VA_ARGS__ }
#define SLOPED_ROWS(cls, name, low, high, gap, ...) \
  MAP_ROW (#cls, name, 1, .in = { IN (low, high, gap, 3, 5) }, .out = { S (3, 5) }, __VA_ARGS__), \
  MAP_ROW (#cls "_grad", name##_grad, 2, .in = { IN (low, high, gap, 3, 5), X (3, 5) }, .out = { S (3, 5) }, __VA_ARGS__)

const OpCase op_cases_math[] = {
  SLOPED_ROWS (leaky_relu, leaky_relu, -2, 2, 0.05),
  SLOPED_ROWS (leaky_relu, leaky_relu_up, -2, 2, 0.05),
  SLOPED_ROWS (elu, elu, -4, 2, 0.05),
  SLOPED_ROWS (elu, elu_half, -4, 2, 0.05),
  MAP_ROW ("selu", selu, 1, .in = { IN (-4, 2, 0.05, 3, 5) }, .out = { S (3, 5) }),
  SLOPED_ROWS (softplus, softplus, -6, 6, 0),
  SLOPED_ROWS (softplus, softplus_sharp, -3, 3, 0),
  SLOPED_ROWS (clipped_relu, clipped_relu, -2, 3, 0.05),
  MAP_ROW ("relu6", relu6, 1, .in = { IN (-2, 9, 0.05, 3, 5) }, .out = { S (3, 5) }),
  SLOPED_ROWS (hard_sigmoid, hard_sigmoid, -4, 4, 0),
  SLOPED_ROWS (silu, silu, -5, 5, 0),
  SLOPED_ROWS (gelu, gelu, -5, 5, 0),
  SLOPED_ROWS (gelu, gelu_tanh, -5, 5, 0),
  SLOPED_ROWS (erf, erf, -3, 3, 0),
  SLOPED_ROWS (log1p, log1p, -0.7, 3, 0),
  SLOPED_ROWS (expm1, expm1, -3, 2, 0),
  SLOPED_ROWS (rsqrt, rsqrt, 0.5, 3, 0, .loose = 2),
  MAP_ROW ("identity", identity, 1, .in = { X (3, 5) }, .out = { S (3, 5) }),
  ROW ("average", average, 2, .in = { X (2, 3, 4), POSITIVE (2, 3, 4) }, .out = { S (1, 3, 1) }),
  ROW ("average", average_row, 2, .in = { X (2, 3, 4), POSITIVE (3) }, .out = { S (2, 4) }),
  ROW ("average", average_all, 1, .in = { X (2, 3, 4) }, .out = { { 0, { 0 } } }),
};
const int n_op_cases_math = (int)(sizeof op_cases_math / sizeof op_cases_math[0]);

#define E1(d, s) 1, { { d, s } }
#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
CALL (softplus_0, y[0] = td_softplus_ (x[0], &(TdSoftplusOpt){ .beta = 0 }))
CALL (clipped_relu_below, y[0] = td_clipped_relu_ (x[0], &(TdClippedReluOpt){ .z = -1 }))
const OpError op_errors_math[] = {
  { "elu", call_elu, E1 (TD_I32, S (2, 3)), TD_ERR_DTYPE, "elu: a floating-point x expected: x (2, 3) i32" },
  { "gelu_grad", call_gelu_grad, E2 (TD_F32, S (2, 3), TD_F32, S (3)), TD_ERR_SHAPE, "gelu_grad: x.shape == gy.shape expected: x (2, 3) f32, gy (3) f32" },
  { "softplus", call_softplus_0, E1 (TD_F32, S (3)), TD_ERR_ARG, "softplus: beta != 0 expected, got 0: x (3) f32" },
  { "clipped_relu", call_clipped_relu_below, E1 (TD_F32, S (3)), TD_ERR_ARG, "clipped_relu: z >= 0 expected, got -1: x (3) f32" },
  { "average", call_average_row, E2 (TD_F32, S (2, 3), TD_F32, S (4)), TD_ERR_SHAPE, "average: weights.shape == x.shape, or (x.shape[axis]) with one axis, expected: x (2, 3) f32, weights (4) f32" },
};
// clang-format on
const int n_op_errors_math = (int)(sizeof op_errors_math / sizeof op_errors_math[0]);
