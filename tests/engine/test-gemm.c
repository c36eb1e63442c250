/* Matrix products of the CPU against products summed in double precision, for every set of
 * tiles that this processor runs.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "compute/cpu/gemm.h"

static const char *const tile_names[] = { "avx512", "avx2", "plain" };

static uint32_t state = 1;

static double
number (void)
{
  state = state * 1664525u + 1013904223u;
  return (double)(state >> 8) / (1 << 24) * 2 - 1;
}

static float *
numbers (int64_t n)
{
  float *x = malloc ((size_t)(n > 0 ? n : 1) * sizeof *x);

  assert_non_null (x);
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)number ();
  return x;
}

static double
element (const TdGemm *g, const float *a, const float *b, int64_t i, int64_t j)
{
  double sum = 0;

  for (int64_t l = 0; l < g->k; l++)
    sum += (double)(g->ta ? a[l * g->m + i] : a[i * g->k + l])
           * (double)(g->tb ? b[j * g->k + l] : b[l * g->n + j]);
  return sum;
}

/* Every size a tile, a panel or a block can end at. */
static const int64_t sizes[][3]
    = { { 1, 1, 1 },      { 1, 33, 2 },     { 15, 17, 9 },   { 29, 70, 3 },
        { 13, 32, 257 },  { 64, 10, 40 },   { 3, 200, 300 }, { 100, 5, 77 },
        { 40, 96, 1025 }, { 32, 100, 784 }, { 9, 150, 520 } };

static void
check_products (const TdGemmTiles *tiles, TdGemm g, double alpha, double beta)
{
  float *a = numbers (g.m * g.k), *b = numbers (g.k * g.n), *c = numbers (g.m * g.n);
  float *before = malloc ((size_t)(g.m * g.n) * sizeof *before);

  memcpy (before, c, (size_t)(g.m * g.n) * sizeof *c);
  g.alpha = alpha;
  g.beta = beta;
  assert_int_equal (td__gemm_f32 (tiles, &g, a, b, c), TD_OK);
  for (int64_t i = 0; i < g.m; i++)
    for (int64_t j = 0; j < g.n; j++)
      {
        const double wanted
            = alpha * element (&g, a, b, i, j) + beta * (double)before[i * g.n + j];
        const double error = fabs ((double)c[i * g.n + j] - wanted);

        if (!(error < 1e-6 * sqrt ((double)g.k) * 4 + 1e-6))
          fail_msg ("%s (%d, %d, %d) t %d%d alpha %g beta %g: [%d, %d] is %g, expected %g",
                    tiles->name, (int)g.m, (int)g.n, (int)g.k, g.ta, g.tb, alpha, beta, (int)i,
                    (int)j, (double)c[i * g.n + j], wanted);
      }
  free (a);
  free (b);
  free (c);
  free (before);
}

static void
gemm__agrees_with_sums_in_double_for_every_tile_set (void **unused)
{
  int n_sets = 0;

  for (size_t t = 0; t < sizeof tile_names / sizeof tile_names[0]; t++)
    {
      const TdGemmTiles *tiles = td__gemm_tiles_named (tile_names[t]);

      if (tiles == NULL)
        continue;
      n_sets++;
      for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int transposed = 0; transposed < 4; transposed++)
          {
            TdGemm g = { .ta = transposed & 1,
                         .tb = transposed >> 1,
                         .m = sizes[i][0],
                         .n = sizes[i][1],
                         .k = sizes[i][2] };

            check_products (tiles, g, 1, 0);
            check_products (tiles, g, 1, 1);
            check_products (tiles, g, -0.5, 2);
          }
    }
  assert_true (n_sets >= 1);
}

/* With alpha -1 A is packed, with 1 it is read where it lies, and a few rows by many are
 * multiplied the other way round: the sign is all that differs. */
static void
gemm__of_packed_and_unpacked_rows_is_bitwise_equal (void **unused)
{
  for (size_t t = 0; t < 4 * (sizeof sizes / sizeof sizes[0]); t++)
    {
      const int64_t *size = sizes[t / 4];
      TdGemm g = { .ta = t & 1, .tb = t >> 1 & 1, .m = size[0], .n = size[1], .k = size[2] };
      const int64_t n = g.m * g.n;
      float *a = numbers (g.m * g.k), *b = numbers (g.k * g.n), *c = numbers (n),
            *d = numbers (n);

      for (size_t s = 0; s < sizeof tile_names / sizeof tile_names[0]; s++)
        {
          const TdGemmTiles *tiles = td__gemm_tiles_named (tile_names[s]);

          if (tiles == NULL)
            continue;
          g.alpha = 1;
          assert_int_equal (td__gemm_f32 (tiles, &g, a, b, c), TD_OK);
          g.alpha = -1;
          assert_int_equal (td__gemm_f32 (tiles, &g, a, b, d), TD_OK);
          for (int64_t i = 0; i < n; i++)
            if (c[i] != -d[i])
              fail_msg ("%s (%d, %d, %d) [%d]: %g unpacked, %g packed", tiles->name, (int)g.m,
                        (int)g.n, (int)g.k, (int)i, (double)c[i], (double)-d[i]);
        }
      free (a);
      free (b);
      free (c);
      free (d);
    }
}

/* The path of processors without tiles, and of f64. */
static void
gemm__through_blas_agrees_with_the_tiles (void **unused)
{
  for (size_t t = 0; t < 4 * (sizeof sizes / sizeof sizes[0]); t++)
    {
      const int64_t *size = sizes[t / 4];
      TdGemm g = { .ta = t & 1,
                   .tb = t >> 1 & 1,
                   .m = size[0],
                   .n = size[1],
                   .k = size[2],
                   .alpha = 1,
                   .beta = 1 };
      const int64_t n = g.m * g.n;
      float *a = numbers (g.m * g.k), *b = numbers (g.k * g.n), *c = numbers (n);
      float *d = malloc ((size_t)n * sizeof *d);

      memcpy (d, c, (size_t)n * sizeof *d);
      assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, a, b, c), TD_OK);
      assert_int_equal (td__gemm_blas_f32 (&g, a, b, d), TD_OK);
      for (int64_t i = 0; i < n; i++)
        if (!(fabsf (c[i] - d[i]) < 1e-4f))
          fail_msg ("(%d, %d, %d) [%d]: %g through tiles, %g through BLAS", (int)g.m, (int)g.n,
                    (int)g.k, (int)i, (double)c[i], (double)d[i]);
      free (a);
      free (b);
      free (c);
      free (d);
    }
}

static void
gemm__overwrites_nan_when_beta_is_zero (void **unused)
{
  float a[4] = { 1, 2, 3, 4 }, b[4] = { 1, 0, 0, 1 }, c[4] = { NAN, NAN, NAN, NAN };
  TdGemm g = { .m = 2, .n = 2, .k = 2, .alpha = 1 };

  assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, a, b, c), TD_OK);
  for (int i = 0; i < 4; i++)
    assert_true (c[i] == a[i]);
}

static void
gemm__of_no_terms_is_zero (void **unused)
{
  float c[4] = { 1, 2, 3, 4 }, none = 0;
  double d[4] = { 1, 2, 3, 4 }, no = 0;
  TdGemm g = { .m = 2, .n = 2, .k = 0, .alpha = 1 };

  assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, &none, &none, c), TD_OK);
  assert_int_equal (td__gemm_f64 (&g, &no, &no, d), TD_OK);
  for (int i = 0; i < 4; i++)
    assert_true (c[i] == 0 && d[i] == 0);
}

static void
gemm__of_no_terms_scales_what_was_there (void **unused)
{
  static const double betas[] = { 1, 0.5, -3 };
  float none = 0;
  double no = 0;

  for (size_t t = 0; t < sizeof betas / sizeof betas[0]; t++)
    {
      float c[4] = { 1, 2, 3, 4 }, blas[4] = { 1, 2, 3, 4 };
      double d[4] = { 1, 2, 3, 4 };
      TdGemm g = { .m = 2, .n = 2, .k = 0, .alpha = 1, .beta = betas[t] };

      assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, &none, &none, c), TD_OK);
      assert_int_equal (td__gemm_blas_f32 (&g, &none, &none, blas), TD_OK);
      assert_int_equal (td__gemm_f64 (&g, &no, &no, d), TD_OK);
      for (int i = 0; i < 4; i++)
        {
          assert_true ((double)c[i] == betas[t] * (i + 1));
          assert_true ((double)blas[i] == betas[t] * (i + 1));
          assert_true (d[i] == betas[t] * (i + 1));
        }
    }
}

static void
gemm__passes_nan_and_infinity (void **unused)
{
  float a[2] = { NAN, INFINITY }, b[1] = { 0 }, c[2];
  TdGemm g = { .m = 2, .n = 1, .k = 1, .alpha = 1 };

  assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, a, b, c), TD_OK);
  assert_true (isnan (c[0]) && isnan (c[1]));
}

/* Kernels that add into C must give the bits of a product that is added afterwards. */
static void
gemm__accumulates_bitwise_as_product_then_sum (void **unused)
{
  for (size_t t = 0; t < sizeof sizes / sizeof sizes[0]; t++)
    {
      TdGemm g
          = { .ta = true, .m = sizes[t][0], .n = sizes[t][1], .k = sizes[t][2], .alpha = 1 };
      const int64_t size = g.m * g.n;
      float *a = numbers (g.m * g.k), *b = numbers (g.k * g.n), *sum = numbers (size);
      float *product = numbers (size);
      double *a_64 = malloc ((size_t)(g.m * g.k) * 8), *b_64 = malloc ((size_t)(g.k * g.n) * 8);
      double *sum_64 = malloc ((size_t)size * 8), *product_64 = malloc ((size_t)size * 8);

      for (int64_t i = 0; i < g.m * g.k; i++)
        a_64[i] = number ();
      for (int64_t i = 0; i < g.k * g.n; i++)
        b_64[i] = number ();
      for (int64_t i = 0; i < size; i++)
        sum_64[i] = number ();
      td__gemm_f32 (td__gemm_tiles (), &g, a, b, product);
      td__gemm_f64 (&g, a_64, b_64, product_64);
      for (int64_t i = 0; i < size; i++)
        {
          product[i] = sum[i] + product[i];
          product_64[i] = sum_64[i] + product_64[i];
        }
      g.beta = 1;
      td__gemm_f32 (td__gemm_tiles (), &g, a, b, sum);
      td__gemm_f64 (&g, a_64, b_64, sum_64);
      assert_memory_equal (sum, product, (size_t)size * sizeof *sum);
      assert_memory_equal (sum_64, product_64, (size_t)size * sizeof *sum_64);
      free (a);
      free (b);
      free (sum);
      free (product);
      free (a_64);
      free (b_64);
      free (sum_64);
      free (product_64);
    }
}

static void
gemm__gives_the_same_bits_on_any_number_of_threads (void **unused)
{
  static const int64_t big[][3] = {
    { 100, 1000, 784 }, { 500, 10, 900 }, { 90, 300, 1500 }, { 64, 700, 600 }, { 64, 700, 600 }
  };
  const int before = td__cpu_threads ();

  for (size_t t = 0; t < sizeof big / sizeof big[0]; t++)
    {
      TdGemm g = {
        .m = big[t][0], .n = big[t][1], .k = big[t][2], .tb = t > 2, .alpha = 1, .beta = t > 3
      };
      float *a = numbers (g.m * g.k), *b = numbers (g.k * g.n);
      float *one = numbers (g.m * g.n), *three = numbers (g.m * g.n);

      memcpy (three, one, (size_t)(g.m * g.n) * sizeof *one);
      td__cpu_set_threads (1);
      assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, a, b, one), TD_OK);
      td__cpu_set_threads (3);
      assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, a, b, three), TD_OK);
      assert_memory_equal (one, three, (size_t)(g.m * g.n) * sizeof *one);
      free (a);
      free (b);
      free (one);
      free (three);
    }
  td__cpu_set_threads (before);
}

static void
gemm__batches_step_by_their_strides (void **unused)
{
  const float a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[8] = { 1, 0, 0, 1, 2, 0, 0, 2 };
  const float wanted[8] = { 1, 2, 3, 4, 10, 12, 14, 16 };
  float c[8];
  TdShape shape = TD_SHAPE (2, 2, 2);
  TdTensor x = { (void *)a, &shape, 8, TD_F32 }, y = { (void *)b, &shape, 8, TD_F32 };
  TdTensor z = { c, &shape, 8, TD_F32 };
  TdGemm g = {
    .m = 2, .n = 2, .k = 2, .batch = 2, .stride_a = 4, .stride_b = 4, .stride_c = 4, .alpha = 1
  };

  assert_int_equal (td__cpu_gemm (NULL, &g, &x, &y, &z), TD_OK);
  assert_memory_equal (c, wanted, sizeof c);
}

/* Products whose end is bias, relu or relu_grad, and the same done number by number after them.
 */
static void
check_end_f32 (TdGemm g, const float *bias, bool relu, const float *above)
{
  float *a = numbers (g.m * g.k), *b = numbers (g.k * g.n), *c = numbers (g.m * g.n);
  float *wanted = numbers (g.m * g.n);
  const TdTensor t[]
      = { { .data = (void *)(uintptr_t)bias }, { .data = (void *)(uintptr_t)above } };

  assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, a, b, wanted), TD_OK);
  for (int64_t i = 0; i < g.m * g.n; i++)
    {
      float x = wanted[i] + (bias != NULL ? bias[i % g.n] : 0);

      x = relu && x <= 0 ? 0 : x;
      wanted[i] = above == NULL || above[i] > 0 ? x : above[i] != above[i] ? above[i] : 0;
    }
  g.end = (TdProductEnd){ .bias = bias != NULL ? &t[0] : NULL,
                          .relu = relu,
                          .above = above != NULL ? &t[1] : NULL };
  assert_int_equal (td__gemm_f32 (td__gemm_tiles (), &g, a, b, c), TD_OK);
  assert_memory_equal (c, wanted, (size_t)(g.m * g.n) * sizeof *c);
  free (a);
  free (b);
  free (c);
  free (wanted);
}

static void
check_end_f64 (TdGemm g, bool relu)
{
  const int64_t size = g.m * g.n, n = g.m * g.k + g.k * g.n + 2 * size + g.n;
  double *a = malloc ((size_t)n * sizeof *a), *b = a + g.m * g.k, *bias = b + g.k * g.n,
         *c = bias + g.n, *wanted = c + size;
  TdTensor t = { .data = bias };

  assert_non_null (a);
  for (int64_t i = 0; i < n; i++)
    a[i] = number ();
  assert_int_equal (td__gemm_f64 (&g, a, b, wanted), TD_OK);
  g.end = (TdProductEnd){ .bias = &t, .relu = relu };
  assert_int_equal (td__gemm_f64 (&g, a, b, c), TD_OK);
  for (int64_t i = 0; i < size; i++)
    {
      const double x = wanted[i] + bias[i % g.n];

      assert_true (c[i] == (relu && x <= 0 ? 0 : x));
    }
  free (a);
}

static void
gemm__ends_with_bias_relu_and_its_gradient_bitwise_as_after_it (void **unused)
{
  static const int64_t others[][3] = { { 2200, 40, 1000 }, { 30, 900, 600 }, { 4, 3, 0 } };
  const size_t n_sizes = sizeof sizes / sizeof sizes[0];

  for (size_t i = 0; i < n_sizes + sizeof others / sizeof others[0]; i++)
    for (int transposed = 0; transposed < 4; transposed++)
      {
        const int64_t *size = i < n_sizes ? sizes[i] : others[i - n_sizes];
        const TdGemm g = { .ta = transposed & 1,
                           .tb = transposed >> 1,
                           .m = size[0],
                           .n = size[1],
                           .k = size[2],
                           .batch = 1,
                           .alpha = 1 };
        float *bias = numbers (g.n), *above = numbers (g.m * g.n);

        above[0] = NAN;
        check_end_f32 (g, bias, false, NULL);
        check_end_f32 (g, NULL, true, NULL);
        check_end_f32 (g, bias, true, NULL);
        check_end_f32 (g, NULL, false, above);
        check_end_f64 (g, false);
        check_end_f64 (g, true);
        free (bias);
        free (above);
      }
}

static void
gemm__refuses_other_element_types (void **unused)
{
  TdShape shape = TD_SHAPE (1, 1);
  int32_t one = 1;
  TdTensor x = { &one, &shape, 1, TD_I32 };
  TdGemm g = { .m = 1, .n = 1, .k = 1, .batch = 1, .alpha = 1 };

  assert_int_equal (td__cpu_gemm (NULL, &g, &x, &x, &x), TD_ERR_DTYPE);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (gemm__agrees_with_sums_in_double_for_every_tile_set),
    td_test (gemm__of_packed_and_unpacked_rows_is_bitwise_equal),
    td_test (gemm__through_blas_agrees_with_the_tiles),
    td_test (gemm__overwrites_nan_when_beta_is_zero),
    td_test (gemm__of_no_terms_is_zero),
    td_test (gemm__of_no_terms_scales_what_was_there),
    td_test (gemm__passes_nan_and_infinity),
    td_test (gemm__accumulates_bitwise_as_product_then_sum),
    td_test (gemm__gives_the_same_bits_on_any_number_of_threads),
    td_test (gemm__batches_step_by_their_strides),
    td_test (gemm__ends_with_bias_relu_and_its_gradient_bitwise_as_after_it),
    td_test (gemm__refuses_other_element_types),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
