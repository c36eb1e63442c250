/* Kernels of the activations and their slopes in float: accuracy against libm's double,
 * special numbers, adding into a gradient, and the same bits from every instruction set.
 *
 * SPDX-License-Identifier: MIT */
#include "compute/cpu/cpu.h"
#include "compute/cpu/vector.h"
#include "td-test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct
{
  TdUnaryKind kind;
  const char *name;
  double p;
  double low, high; /* the sweep */
  double (*f) (double);
  double (*slope) (double);
  double ulps, slope_ulps; /* allowed, of |result| or of the floor, the larger */
  double floor, slope_floor;
} Kernel;

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}
static double
normal (double x)
{
  return 0.5 * erfc (-x / sqrt (2));
}
static double
gelu (double x)
{
  return x * normal (x);
}
static double
gelu_slope (double x)
{
  return normal (x) + x * exp (-x * x / 2) / sqrt (2 * M_PI);
}
static double
power (double x)
{
  return 2 * sqrt (2 / M_PI) * (x + 0.044715 * x * x * x);
}
static double
gelu_tanh (double x)
{
  return x * sigmoid (power (x));
}
static double
gelu_tanh_slope (double x)
{
  const double s = sigmoid (power (x));

  return s + x * s * sigmoid (-power (x)) * 2 * sqrt (2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
static double
silu (double x)
{
  return x * sigmoid (x);
}
static double
silu_slope (double x)
{
  return sigmoid (x) * (1 + x * sigmoid (-x));
}
static double
softplus (double x)
{
  return x > 0 ? x + log1p (exp (-x)) : log1p (exp (x));
}
static double
elu (double x)
{
  return x > 0 ? x : expm1 (x);
}
static double
elu_slope (double x)
{
  return x > 0 ? 1 : exp (x);
}
static double
erf_slope (double x)
{
  return 2 / sqrt (M_PI) * exp (-x * x);
}
static double
log1p_slope (double x)
{
  return 1 / (1 + x);
}
static double
rsqrt (double x)
{
  return 1 / sqrt (x);
}
static double
rsqrt_slope (double x)
{
  return -0.5 / (x * sqrt (x));
}

/* Slopes cross zero: there, and in tails, an ulp is one of the floor. */
static const Kernel kernels[] = {
  { TD_UNARY_ELU, "elu", 1, -30, 30, elu, elu_slope, 2, 2, 0, 0 },
  { TD_UNARY_SOFTPLUS, "softplus", 1, -30, 30, softplus, sigmoid, 4, 4, 0, 0 },
  { TD_UNARY_SILU, "silu", 0, -30, 30, silu, silu_slope, 4, 4, 0, 0.25 },
  { TD_UNARY_GELU, "gelu", 0, -9, 9, gelu, gelu_slope, 12, 4, 1e-2, 0.25 },
  { TD_UNARY_GELU_TANH, "gelu_tanh", 0, -9, 9, gelu_tanh, gelu_tanh_slope, 12, 4, 1e-2, 0.25 },
  { TD_UNARY_ERF, "erf", 0, -5, 5, erf, erf_slope, 3, 8, 0, 1e-2 },
  { TD_UNARY_LOG1P, "log1p", 0, -0.999, 100, log1p, log1p_slope, 4, 4, 0, 0 },
  { TD_UNARY_EXPM1, "expm1", 0, -20, 60, expm1, exp, 3, 2, 0, 0 },
  { TD_UNARY_RSQRT, "rsqrt", 0, 1e-3, 100, rsqrt, rsqrt_slope, 2, 3, 0, 0 },
};

enum
{
  N = 65536
};
static float x[N], y[N], gy[N], gx[N], want[N];
static TdShape shape = { 1, { N } };

static TdTensor
tensor (void *data)
{
  return (TdTensor){ data, &shape, N, TD_F32 };
}

static double
ulps_off (double got, double exact, double floor)
{
  int exponent;

  frexp (fmax (fabs (exact), fmax (floor, FLT_MIN)), &exponent);
  return fabs (got - exact) / ldexp (1, exponent - 24);
}

/* Even steps, and at every fourth place powers of 2 towards 0. */
static void
fill_sweep (const Kernel *k)
{
  for (int i = 0; i < N; i++)
    {
      x[i] = (float)(k->low + (k->high - k->low) * i / (N - 1));
      if (i % 4 == 3)
        x[i] = (float)ldexp (i % 8 == 7 && k->low < 0 ? -0.9 : 0.9, -(i / 4 % 30));
      gy[i] = 1;
    }
}

static void
activations__agree_with_libm_in_double (void **state)
{
  for (int k = 0; k < (int)(sizeof kernels / sizeof kernels[0]); k++)
    {
      const Kernel *c = &kernels[k];
      TdTensor tx = tensor (x), ty = tensor (y), tg = tensor (gy), tgx = tensor (gx);
      double worst = 0, worst_slope = 0;
      float at = 0, at_slope = 0;

      fill_sweep (c);
      assert_int_equal (td__cpu_unary (NULL, c->kind, c->p, 0, &tx, &ty), TD_OK);
      assert_int_equal (td__cpu_unary_grad (NULL, c->kind, c->p, &tx, &tg, &tgx, false), TD_OK);
      for (int i = 0; i < N; i++)
        {
          const double off = ulps_off (y[i], c->f (x[i]), c->floor);
          const double slope_off = ulps_off (gx[i], c->slope (x[i]), c->slope_floor);

          if (!(off <= worst))
            worst = off, at = x[i];
          if (!(slope_off <= worst_slope))
            worst_slope = slope_off, at_slope = x[i];
        }
      print_message ("%s: %.2f ulp at %g, slope %.2f ulp at %g\n", c->name, worst, (double)at,
                     worst_slope, (double)at_slope);
      if (!(worst <= c->ulps && worst_slope <= c->slope_ulps))
        fail_msg ("%s: %g ulp at %.9g, slope %g ulp at %.9g", c->name, worst, (double)at,
                  worst_slope, (double)at_slope);
    }
}

static float
value (TdUnaryKind kind, double p, float at)
{
  TdShape one = { 0, { 0 } };
  float out = 0;
  TdTensor tx = { &at, &one, 1, TD_F32 }, ty = { &out, &one, 1, TD_F32 };

  assert_int_equal (td__cpu_unary (NULL, kind, p, 0, &tx, &ty), TD_OK);
  return out;
}

static float
slope (TdUnaryKind kind, double p, float at)
{
  TdShape one = { 0, { 0 } };
  float out = 0, g = 1;
  TdTensor tx = { &at, &one, 1, TD_F32 }, tg = { &g, &one, 1, TD_F32 };
  TdTensor ty = { &out, &one, 1, TD_F32 };

  assert_int_equal (td__cpu_unary_grad (NULL, kind, p, &tx, &tg, &ty, false), TD_OK);
  return out;
}

static void
activations__keep_nan (void **state)
{
  for (int kind = TD_UNARY_LEAKY_RELU; kind < TD_UNARY_N; kind++)
    {
      if (td__vector->unary_grad[kind][TD_F32] == NULL)
        continue;
      assert_true (isnan (value ((TdUnaryKind)kind, 1, NAN)));
      assert_true (isnan (slope ((TdUnaryKind)kind, 1, NAN)));
    }
}

static void
activations__have_their_limits_at_infinity (void **state)
{
  assert_true (value (TD_UNARY_ELU, 2, -INFINITY) == -2
               && isinf (value (TD_UNARY_ELU, 2, INFINITY)));
  assert_true (slope (TD_UNARY_ELU, 2, -INFINITY) == 0
               && slope (TD_UNARY_ELU, 2, INFINITY) == 1);
  assert_true (value (TD_UNARY_SOFTPLUS, 1, -INFINITY) == 0);
  assert_true (value (TD_UNARY_SOFTPLUS, 1, INFINITY) == INFINITY);
  assert_true (value (TD_UNARY_SOFTPLUS, 1, 1000) == 1000);
  assert_true (value (TD_UNARY_ERF, 0, INFINITY) == 1
               && value (TD_UNARY_ERF, 0, -INFINITY) == -1);
  assert_true (value (TD_UNARY_LOG1P, 0, -1) == -INFINITY
               && isnan (value (TD_UNARY_LOG1P, 0, -2)));
  assert_true (value (TD_UNARY_LOG1P, 0, INFINITY) == INFINITY);
  assert_true (value (TD_UNARY_EXPM1, 0, -INFINITY) == -1);
  assert_true (value (TD_UNARY_EXPM1, 0, 100) == INFINITY && value (TD_UNARY_EXPM1, 0, 0) == 0);
  assert_true (value (TD_UNARY_GELU, 0, 40) == 40 && value (TD_UNARY_GELU, 0, -40) == 0);
  assert_true (value (TD_UNARY_GELU_TANH, 0, 40) == 40
               && value (TD_UNARY_GELU_TANH, 0, -40) == 0);
  assert_true (value (TD_UNARY_SILU, 0, 200) == 200 && value (TD_UNARY_SILU, 0, -200) == 0);
  assert_true (value (TD_UNARY_HARD_SIGMOID, 0, -9) == 0
               && value (TD_UNARY_HARD_SIGMOID, 0, 9) == 1);
  assert_true (value (TD_UNARY_CLIPPED_RELU, 6, 9) == 6
               && value (TD_UNARY_CLIPPED_RELU, 6, -9) == 0);
  assert_true (value (TD_UNARY_RSQRT, 0, 0) == INFINITY
               && value (TD_UNARY_RSQRT, 0, INFINITY) == 0);
}

static void
unary_grad__adds_into_what_is_there (void **state)
{
  for (int k = 0; k < (int)(sizeof kernels / sizeof kernels[0]); k++)
    {
      const Kernel *c = &kernels[k];
      TdTensor tx = tensor (x), tg = tensor (gy), tgx = tensor (gx), tw = tensor (want);

      fill_sweep (c);
      for (int i = 0; i < N; i++)
        {
          gy[i] = (float)(i % 17) - 8;
          gx[i] = (float)(i % 5);
        }
      assert_int_equal (td__cpu_unary_grad (NULL, c->kind, c->p, &tx, &tg, &tw, false), TD_OK);
      assert_int_equal (td__cpu_unary_grad (NULL, c->kind, c->p, &tx, &tg, &tgx, true), TD_OK);
      for (int i = 0; i < N; i++)
        assert_true (gx[i] == (float)(i % 5) + want[i]);
    }
}

static void
unary_grad__of_half_precision_is_that_of_float_rounded (void **state)
{
  static uint16_t hx[N], hg[N], hgx[N];
  TdTensor tx = tensor (x), tg = tensor (gy), tw = tensor (want), back = tensor (gx);
  TdTensor half_x = { hx, &shape, N, TD_F16 }, half_g = { hg, &shape, N, TD_F16 };
  TdTensor half_gx = { hgx, &shape, N, TD_F16 };

  fill_sweep (&kernels[3]);
  td__cpu_cast (NULL, &tx, &half_x);
  td__cpu_cast (NULL, &half_x, &tx);
  td__cpu_cast (NULL, &tg, &half_g);
  assert_int_equal (td__cpu_unary_grad (NULL, TD_UNARY_GELU, 0, &tx, &tg, &tw, false), TD_OK);
  assert_int_equal (
      td__cpu_unary_grad (NULL, TD_UNARY_GELU, 0, &half_x, &half_g, &half_gx, false), TD_OK);
  td__cpu_cast (NULL, &half_gx, &back);
  for (int i = 0; i < N; i++)
    assert_true (fabsf (gx[i] - want[i]) <= 1e-3f * (1e-3f + fabsf (want[i])));
}

static void
unary_grad__gives_the_same_bits_on_every_instruction_set (void **state)
{
  static const char *const sets[] = { "base", "avx2", "avx512" };
  TdTensor tx = tensor (x), tg = tensor (gy), tw = tensor (want), tgx = tensor (gx);

  for (int k = 0; k < (int)(sizeof kernels / sizeof kernels[0]); k++)
    {
      fill_sweep (&kernels[k]);
      for (int s = 0; s < 3; s++)
        {
          if (!td__vector_use (sets[s]))
            continue;
          td__cpu_unary_grad (NULL, kernels[k].kind, kernels[k].p, &tx, &tg,
                              s == 0 ? &tw : &tgx, false);
          if (s > 0)
            assert_memory_equal (gx, want, sizeof gx);
        }
    }
  td__vector_use (NULL);
}

static void
unary_grad__refuses_formulas_without_a_slope (void **state)
{
  TdTensor tx = tensor (x), tg = tensor (gy), tgx = tensor (gx);

  assert_int_equal (td__cpu_unary_grad (NULL, TD_UNARY_SIN, 0, &tx, &tg, &tgx, false),
                    TD_ERR_DTYPE);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (activations__agree_with_libm_in_double),
    cmocka_unit_test (activations__keep_nan),
    cmocka_unit_test (activations__have_their_limits_at_infinity),
    cmocka_unit_test (unary_grad__adds_into_what_is_there),
    cmocka_unit_test (unary_grad__of_half_precision_is_that_of_float_rounded),
    cmocka_unit_test (unary_grad__gives_the_same_bits_on_every_instruction_set),
    cmocka_unit_test (unary_grad__refuses_formulas_without_a_slope),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
