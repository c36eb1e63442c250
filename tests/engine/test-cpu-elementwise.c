/* The CPU's element-by-element kernels, called directly: accuracy, NaN, equal bits on every
 * instruction set, half precision, random numbers.
 * SPDX-License-Identifier: MIT */
#include "compute/cpu/cpu.h"
#include "compute/cpu/vector.h"
#include "scalar-ops.h"
#include "td-test.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sets[] = { "base", "avx2", "avx512" };

static TdTensor
tensor (void *data, TdShape *shape, TdDtype dtype)
{
  return (TdTensor){ data, shape, td_shape_size (shape), dtype };
}

static float
unary_f32 (TdUnaryKind kind, float v, double p, double q)
{
  TdShape shape = TD_SHAPE (1);
  TdTensor x = tensor (&v, &shape, TD_F32);

  assert_int_equal (td__cpu_unary (NULL, kind, p, q, &x, &x), TD_OK);
  return v;
}

/* Distance in units of the last place of the float nearest to `want`. */
static double
ulps (float got, double want)
{
  float near = (float)want;
  double unit = (double)nextafterf (fabsf (near), INFINITY) - (double)fabsf (near);

  if (isinf (near))
    return got == near ? 0 : INFINITY;
  return fabs ((double)got - want) / unit;
}

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}

static void
check_ulps (TdUnaryKind kind, double (*f) (double), double low, double high, double limit)
{
  enum
  {
    N = 200000
  };
  float *x = malloc (N * sizeof *x), *y = malloc (N * sizeof *y);
  TdShape shape = TD_SHAPE (N);
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (y, &shape, TD_F32);
  double worst = 0, at = 0;

  for (int i = 0; i < N; i++)
    x[i] = (float)(low + (high - low) * i / (N - 1));
  assert_int_equal (td__cpu_unary (NULL, kind, 0, 0, &tx, &ty), TD_OK);
  for (int i = 0; i < N; i++)
    if (ulps (y[i], f ((double)x[i])) > worst)
      {
        worst = ulps (y[i], f ((double)x[i]));
        at = (double)x[i];
      }
  print_message ("worst %.2f ulp at %g\n", worst, at);
  if (!(worst <= limit))
    fail_msg ("%g ulp at %.9g, %g allowed", worst, at, limit);
  free (x);
  free (y);
}

static void
exp_f32__is_within_2_ulp (void **state)
{
  check_ulps (TD_UNARY_EXP, exp, -87.3, 88.7, 2);
  check_ulps (TD_UNARY_EXP, exp, -1, 1, 2);
  check_ulps (TD_UNARY_EXP, exp, -103, -87.4, 1.1); /* denormal results */
}

static void
log_f32__is_within_2_ulp (void **state)
{
  check_ulps (TD_UNARY_LOG, log, 1e-30, 1e30, 2);
  check_ulps (TD_UNARY_LOG, log, 1e-3, 3, 2);
  check_ulps (TD_UNARY_LOG, log, 1e-44, 1e-38, 2); /* denormal x */
}

static void
tanh_and_sigmoid_f32__are_within_3_ulp (void **state)
{
  check_ulps (TD_UNARY_TANH, tanh, -10, 10, 3);
  check_ulps (TD_UNARY_TANH, tanh, -1e-3, 1e-3, 3);
  check_ulps (TD_UNARY_SIGMOID, sigmoid, -80, 40, 3);
}

/* tanh as it is written down: by the whole exponential. */
static float
plain_tanh (float x)
{
  const float a = fabsf (x), big = 1.0f - 2.0f / (td_exp_f32 (a + a) + 1.0f);

  return !(a >= TD_TANH_LIMIT) ? td_tanh_small_f32 (x) : x < 0 ? -big : big;
}

static void
check_tanh (const float *x, int n)
{
  static float y[4096];

  td__vector->unary[TD_UNARY_TANH][TD_F32](x, y, n, 0, 0);
  for (int i = 0; i < n; i++)
    {
      const float want = plain_tanh (x[i]);

      if (memcmp (&y[i], &want, sizeof want) != 0 && !(isnan (y[i]) && isnan (want)))
        fail_msg ("%s: tanh (%a) is %a, not %a", td__vector->name, (double)x[i], (double)y[i],
                  (double)want);
    }
}

/* Over numbers of every exponent, and with one large number or NaN at every place among small
 * ones. */
static void
tanh_f32__has_the_bits_of_the_whole_formula (void **state)
{
  enum
  {
    N = 4096,
    STRIDE = 1021
  };
  static float x[N];
  const float odd[] = { 0.625f, -0.625f, 3, -20, NAN, -INFINITY };

  for (int s = 0; s < 3; s++)
    {
      if (!td__vector_use (sets[s]))
        continue;
      for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += (uint64_t)N * STRIDE)
        {
          for (uint64_t i = 0; i < N; i++)
            x[i] = td_float_of_bits ((uint32_t)(bits + i * STRIDE));
          check_tanh (x, N);
        }
      for (int at = 0; at < 150; at++)
        {
          for (int i = 0; i < 150; i++)
            x[i] = (float)(i - 70) / 128; /* all below 0.625 */
          x[at] = odd[at % 6];
          check_tanh (x, 150);
          check_tanh (x, at + 1);
        }
    }
  td__vector_use (NULL);
}

static void
special_values__are_those_of_c (void **state)
{
  assert_true (isnan (unary_f32 (TD_UNARY_EXP, NAN, 0, 0)));
  assert_true (unary_f32 (TD_UNARY_EXP, INFINITY, 0, 0) == INFINITY);
  assert_true (unary_f32 (TD_UNARY_EXP, -INFINITY, 0, 0) == 0);
  assert_true (unary_f32 (TD_UNARY_EXP, 0, 0, 0) == 1);
  assert_true (unary_f32 (TD_UNARY_LOG, 0, 0, 0) == -INFINITY);
  assert_true (unary_f32 (TD_UNARY_LOG, INFINITY, 0, 0) == INFINITY);
  assert_true (isnan (unary_f32 (TD_UNARY_LOG, -1, 0, 0)));
  assert_true (isnan (unary_f32 (TD_UNARY_LOG, NAN, 0, 0)));
  assert_true (isnan (unary_f32 (TD_UNARY_TANH, NAN, 0, 0)));
  assert_true (unary_f32 (TD_UNARY_TANH, INFINITY, 0, 0) == 1);
  assert_true (unary_f32 (TD_UNARY_TANH, -INFINITY, 0, 0) == -1);
  assert_true (unary_f32 (TD_UNARY_SIGMOID, -INFINITY, 0, 0) == 0);
  assert_true (unary_f32 (TD_UNARY_SIGMOID, INFINITY, 0, 0) == 1);
}

/* At every place of a vector and of its tail, on every instruction set. */
static void
nan__passes_through_relu_max_min_and_clip (void **state)
{
  enum
  {
    N = 67
  };
  float x[N], y[N], z[N];
  TdShape shape = TD_SHAPE (N), one = { 0 };
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (y, &shape, TD_F32);
  TdTensor tz = tensor (z, &shape, TD_F32), t1 = tensor (z, &one, TD_F32);

  for (int s = 0; s < 3; s++)
    {
      if (!td__vector_use (sets[s]))
        continue;
      for (int at = 0; at < N; at++)
        {
          for (int i = 0; i < N; i++)
            {
              x[i] = (float)(i % 7 - 3);
              y[i] = 0.5f;
            }
          x[at] = NAN;
          td__cpu_unary (NULL, TD_UNARY_RELU, 0, 0, &tx, &tz);
          assert_true (isnan (z[at]) && z[(at + 1) % N] >= 0);
          td__cpu_unary (NULL, TD_UNARY_CLIP, -1, 1, &tx, &tz);
          assert_true (isnan (z[at]) && fabsf (z[(at + 1) % N]) <= 1);
          for (int kind = TD_BINARY_MAXIMUM; kind <= TD_BINARY_MINIMUM; kind++)
            {
              td__cpu_binary (NULL, (TdBinaryKind)kind, &tx, &ty, &tz, false);
              assert_true (isnan (z[at]) && !isnan (z[(at + 1) % N]));
              td__cpu_binary (NULL, (TdBinaryKind)kind, &ty, &tx, &tz, false);
              assert_true (isnan (z[at]) && !isnan (z[(at + 1) % N]));
            }
          td__cpu_reduce (NULL, TD_REDUCE_MAX, 1, &tx, &t1, false);
          assert_true (isnan (z[0]));
          td__cpu_reduce (NULL, TD_REDUCE_MIN, 1, &tx, &t1, false);
          assert_true (isnan (z[0]));
        }
    }
  td__vector_use (NULL);
}

/* Numbers of all kinds: large, small, negative, special. */
static float
any_number (int i)
{
  static const float special[] = { 0, -0.0f, NAN, INFINITY, -INFINITY, FLT_MIN / 4, FLT_MAX };

  if (i % 11 == 10)
    return special[i / 11 % 7];
  return (float)(sin (i * 12.9898) * pow (2, i % 9 - 4));
}

static void
instruction_sets__give_the_same_bits (void **state)
{
  enum
  {
    N = 1027
  };
  static float x[N], y[N], want[TD_UNARY_N + TD_BINARY_N][N], got[N];
  TdShape shape = TD_SHAPE (N);
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (y, &shape, TD_F32);

  if (getenv ("TD_TEST_VALGRIND") != NULL) /* its max of a number and NaN is not AVX2's */
    skip ();
  for (int i = 0; i < N; i++)
    {
      x[i] = any_number (i);
      y[i] = any_number (3 * i + 1);
    }
  for (int s = 0; s < 3; s++)
    {
      if (!td__vector_use (sets[s]))
        {
          print_message ("%s: not on this processor\n", sets[s]);
          continue;
        }
      for (int k = 0; k < TD_UNARY_N + TD_BINARY_N; k++)
        {
          TdTensor tz = tensor (s == 0 ? want[k] : got, &shape, TD_F32);

          if (k < TD_UNARY_N)
            td__cpu_unary (NULL, (TdUnaryKind)k, 0.75, 1.5, &tx, &tz);
          else
            td__cpu_binary (NULL, (TdBinaryKind)(k - TD_UNARY_N), &tx, &ty, &tz, false);
          for (int i = 0; i < N && s > 0; i++)
            if (memcmp (&got[i], &want[k][i], sizeof (float)) != 0
                && !(isnan (got[i]) && isnan (want[k][i])))
              fail_msg ("%s, kind %d: %.9g for %.9g, %s says %.9g", sets[s], k, (double)got[i],
                        (double)x[i], sets[0], (double)want[k][i]);
        }
    }
  td__vector_use (NULL);
}

/* Fused multiply-add or reordering in one set would show in these sums and updates. */
static void
sums_and_updates__give_the_same_bits (void **state)
{
  enum
  {
    N = 5003
  };
  static float x[N], p[N], m[N], v[N], want_p[N];
  TdShape shape = TD_SHAPE (N), scalar = { 0 };
  float sum, want_sum = 0;
  TdTensor tx = tensor (x, &shape, TD_F32), ts = tensor (&sum, &scalar, TD_F32);
  TdTensor tp = tensor (p, &shape, TD_F32), tm = tensor (m, &shape, TD_F32);
  TdTensor tv = tensor (v, &shape, TD_F32);
  TdTensor *arrays[] = { &tp, &tx, &tm, &tv };
  TdUpdate u = { .alpha_t = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .eta = 1 };
  bool first = true;

  for (int s = 0; s < 3; s++)
    {
      if (!td__vector_use (sets[s]))
        continue;
      for (int i = 0; i < N; i++)
        {
          x[i] = (float)sin (i * 0.7);
          p[i] = (float)cos (i * 0.3);
          m[i] = v[i] = 0;
        }
      for (int t = 0; t < 3; t++)
        assert_int_equal (td__cpu_update (NULL, TD_UPDATE_ADAM, &u, arrays, 4), TD_OK);
      td__cpu_reduce (NULL, TD_REDUCE_SUM, 1, &tx, &ts, false);
      if (first)
        {
          memcpy (want_p, p, sizeof p);
          want_sum = sum;
          first = false;
        }
      assert_memory_equal (want_p, p, sizeof p);
      assert_memory_equal (&want_sum, &sum, sizeof sum);
    }
  td__vector_use (NULL);
}

static void
half_precision__survives_the_way_through_float (void **state)
{
  enum
  {
    N = 65536
  };
  static uint16_t h[N], back[N];
  static float f[N];
  TdShape shape = TD_SHAPE (N);
  static const TdDtype dtypes[] = { TD_F16, TD_BF16 };

  for (int k = 0; k < 2; k++)
    {
      TdTensor th = tensor (h, &shape, dtypes[k]), tf = tensor (f, &shape, TD_F32);
      TdTensor tb = tensor (back, &shape, dtypes[k]);
      int nan_exponent = k == 0 ? 0x7C00 : 0x7F80;

      for (int i = 0; i < N; i++)
        h[i] = (uint16_t)i;
      assert_int_equal (td__cpu_cast (NULL, &th, &tf), TD_OK);
      assert_int_equal (td__cpu_cast (NULL, &tf, &tb), TD_OK);
      for (int i = 0; i < N; i++)
        if ((i & 0x7FFF) > nan_exponent)
          assert_true (isnan (f[i]) && (back[i] & 0x7FFF) > nan_exponent);
        else
          assert_int_equal (back[i], h[i]);
    }
}

/* To the nearest, ties to even: values from IEEE 754 binary16's definition. */
static void
half_precision__rounds_to_nearest_even (void **state)
{
  static const struct
  {
    float x;
    uint16_t f16;
  } rows[] = { { 1.0f, 0x3C00 },           { -2.0f, 0xC000 },      { 65504.0f, 0x7BFF },
               { 65519.0f, 0x7BFF },       { 65520.0f, 0x7C00 },   { 0x1p-24f, 0x0001 },
               { 0x1p-25f, 0x0000 },       { 0x1.8p-25f, 0x0001 }, { 1.0f + 0x1p-11f, 0x3C00 },
               { 1.0f + 0x3p-11f, 0x3C02 } };
  TdShape one = { 0 };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    {
      float x = rows[i].x;
      uint16_t h = 0;
      TdTensor tx = tensor (&x, &one, TD_F32), th = tensor (&h, &one, TD_F16);

      td__cpu_cast (NULL, &tx, &th);
      assert_int_equal (h, rows[i].f16);
    }
}

static void
cast__to_integers_is_defined_everywhere (void **state)
{
  float x[] = { 1.9f, -1.9f, NAN, 1e30f, -1e30f };
  int32_t y[5];
  TdShape shape = TD_SHAPE (5);
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (y, &shape, TD_I32);

  td__cpu_cast (NULL, &tx, &ty);
  assert_int_equal (y[0], 1);
  assert_int_equal (y[1], -1);
  assert_int_equal (y[2], 0);
  assert_int_equal (y[3], INT32_MAX);
  assert_int_equal (y[4], INT32_MIN);
}

/* Vectors of Random123's kat_vectors, philox4x32 with 10 rounds. */
static void
philox__gives_the_known_answers (void **state)
{
  static const uint32_t rows[][10] = {
    { 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
    { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
      0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
    { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
      0x94fdcceb, 0x5001e420, 0x24126ea1 },
  };

  for (int i = 0; i < 3; i++)
    {
      uint32_t out[4];

      td__philox (rows[i], rows[i] + 4, out);
      assert_memory_equal (out, rows[i] + 6, sizeof out);
    }
}

/* The vector loops make the numbers of td__philox, counter by counter. */
static void
philox__gives_the_same_bits_on_every_instruction_set (void **state)
{
  const uint64_t counter = 0xFFFFFFFA, key = 0x123456789ABCDEF0; /* carries into c1 */

  for (int s = 0; s < 3; s++)
    {
      uint32_t out[4 * TD_PHILOX_GROUP];

      if (!td__vector_use (sets[s]))
        continue;
      td__vector->philox (counter, key, out);
      for (uint64_t l = 0; l < TD_PHILOX_GROUP; l++)
        {
          const uint32_t c[4] = { (uint32_t)(counter + l), (uint32_t)((counter + l) >> 32) };
          const uint32_t k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
          uint32_t want[4];

          td__philox (c, k, want);
          assert_memory_equal (out + 4 * l, want, sizeof want);
        }
    }
  td__vector_use (NULL);
}

static void
random__any_piece_can_be_made_again (void **state)
{
  enum
  {
    N = 100000,
    AT = 51200,
    PIECE = 1001
  };
  static float all[N], piece[PIECE];
  TdShape shape = TD_SHAPE (N), piece_shape = TD_SHAPE (PIECE);
  TdTensor ta = tensor (all, &shape, TD_F32), tp = tensor (piece, &piece_shape, TD_F32);

  for (int kind = TD_RANDOM_UNIFORM; kind <= TD_RANDOM_MASK; kind++)
    {
      TdRngKey key = { 42, 1000 }, later = { 42, 1000 + AT / 4 };

      td__cpu_random (NULL, (TdRandomKind)kind, key, 0.25, &ta);
      td__cpu_random (NULL, (TdRandomKind)kind, later, 0.25, &tp);
      assert_memory_equal (all + AT, piece, sizeof piece);
    }
}

/* Moments of n independent numbers lie within 5 standard errors of the distribution's. */
static void
random__has_the_moments_of_its_distribution (void **state)
{
  enum
  {
    N = 400000
  };
  double *x = malloc (N * sizeof *x);
  TdShape shape = TD_SHAPE (N);
  TdTensor tx = tensor (x, &shape, TD_F64);
  static const struct
  {
    double mean, variance, fourth; /* central */
  } rows[] = { [TD_RANDOM_UNIFORM] = { 0.5, 1.0 / 12, 1.0 / 80 },
               [TD_RANDOM_NORMAL] = { 0, 1, 3 },
               [TD_RANDOM_MASK] = { 1, 1.0 / 3, 0.25926 } }; /* 4/3 with 3/4 */

  assert_non_null (x);
  for (int kind = TD_RANDOM_UNIFORM; kind <= TD_RANDOM_MASK; kind++)
    {
      double s1 = 0, s2 = 0, v = rows[kind].variance;

      td__cpu_random (NULL, (TdRandomKind)kind, (TdRngKey){ 7, 0 }, 0.25, &tx);
      for (int i = 0; i < N; i++)
        {
          s1 += x[i];
          s2 += (x[i] - rows[kind].mean) * (x[i] - rows[kind].mean);
          assert_true (kind != TD_RANDOM_UNIFORM || (x[i] >= 0 && x[i] < 1));
          assert_true (kind != TD_RANDOM_MASK || x[i] == 0 || x[i] == 1 / 0.75);
        }
      assert_true (fabs (s1 / N - rows[kind].mean) < 5 * sqrt (v / N));
      assert_true (fabs (s2 / N - v) < 5 * sqrt ((rows[kind].fourth - v * v) / N));
    }
  free (x);
}

/* Every half to float, and floats around every half back: by the formulas, in every set. */
static void
halves__are_the_same_in_every_instruction_set (void **state)
{
  enum
  {
    ALL = 65536
  };
  static uint16_t all[ALL], back[ALL];
  static float wide[ALL];

  for (int i = 0; i < ALL; i++)
    all[i] = (uint16_t)i;
  for (int s = 0; s < 3; s++)
    {
      if (!td__vector_use (sets[s]))
        continue;
      for (int is_bf16 = 0; is_bf16 < 2; is_bf16++)
        for (uint32_t more = 0; more < 0x10000; more += is_bf16 ? 0x2AAB : 0x555)
          {
            td__vector->half_load[is_bf16](all, wide, ALL);
            for (int i = 0; i < ALL; i++)
              {
                const float x = is_bf16 ? td_float_of_bf16 (all[i]) : td_float_of_f16 (all[i]);

                if (td_bits_of_float (x) != td_bits_of_float (wide[i]))
                  fail_msg ("%s: %#x is %g, not %g", sets[s], (unsigned)i, (double)wide[i],
                            (double)x);
                wide[i] = td_float_of_bits (td_bits_of_float (x) + more);
              }
            td__vector->half_store[is_bf16](wide, back, ALL);
            for (int i = 0; i < ALL; i++)
              {
                const uint16_t h
                    = is_bf16 ? td_bf16_of_float (wide[i]) : td_f16_of_float (wide[i]);

                if (h != back[i])
                  fail_msg ("%s: %a becomes %#x, not %#x", sets[s], (double)wide[i], back[i],
                            h);
              }
          }
    }
  td__vector_use (NULL);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (halves__are_the_same_in_every_instruction_set),
    td_test (exp_f32__is_within_2_ulp),
    td_test (log_f32__is_within_2_ulp),
    td_test (tanh_and_sigmoid_f32__are_within_3_ulp),
    td_test (tanh_f32__has_the_bits_of_the_whole_formula),
    td_test (special_values__are_those_of_c),
    td_test (nan__passes_through_relu_max_min_and_clip),
    td_test (instruction_sets__give_the_same_bits),
    td_test (sums_and_updates__give_the_same_bits),
    td_test (half_precision__survives_the_way_through_float),
    td_test (half_precision__rounds_to_nearest_even),
    td_test (cast__to_integers_is_defined_everywhere),
    td_test (philox__gives_the_known_answers),
    td_test (philox__gives_the_same_bits_on_every_instruction_set),
    td_test (random__any_piece_can_be_made_again),
    td_test (random__has_the_moments_of_its_distribution),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
