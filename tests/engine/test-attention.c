/* Attention in one operation against attention from others, over many blocks; masks without a
 * visible key, memory, NaN.
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  BATCH = 2,
  QUERIES = 150, /* more than one block, and not a whole number of them */
  KEYS = 270,
  WIDTH = 7
};

static void
expect_close (TdVar *a, TdVar *b, double tolerance)
{
  const int64_t n = td_size (a);
  double *x = calloc ((size_t)n, sizeof *x), *y = calloc ((size_t)n, sizeof *y);

  assert_int_equal (n, td_size (b));
  assert_int_equal (td_read (td_cast (a, TD_F64), x, (size_t)n * sizeof *x), TD_OK);
  assert_int_equal (td_read (td_cast (b, TD_F64), y, (size_t)n * sizeof *y), TD_OK);
  for (int64_t i = 0; i < n; i++)
    if (!(fabs (x[i] - y[i]) <= tolerance * (1 + fabs (y[i]))))
      fail_msg ("element %ld is %.9g in one operation, %.9g from others", (long)i, x[i], y[i]);
  free (x);
  free (y);
}

static void
compare (TdDtype dtype, bool causal, bool masked, int64_t n_q, double tolerance)
{
  TD_SCOPE ("compare")
    {
      TdVar *in[3], *y[2], *gx[2][3], *gy, *mask = NULL;

      in[0] = td_variable (td_randn (dtype, TD_SHAPE (BATCH, n_q, WIDTH)), "q");
      in[1] = td_variable (td_randn (dtype, TD_SHAPE (BATCH, KEYS, WIDTH)), "k");
      in[2] = td_variable (td_randn (dtype, TD_SHAPE (BATCH, KEYS, WIDTH + 2)), "v");
      gy = td_randn (dtype, TD_SHAPE (BATCH, n_q, WIDTH + 2));
      if (masked) /* about a third of all pairs */
        mask = td_cast (
            td_cast (td_mul_scalar (td_rand (dtype, TD_SHAPE (BATCH, n_q, KEYS)), 1.5), TD_I32),
            dtype);
      for (int k = 0; k < 2; k++)
        {
          y[k] = td_scaled_dot_product_attention (in[0], in[1], in[2], .causal = causal,
                                                  .mask = mask, .composed = k == 1);
          assert_int_equal (td_grad_of (&y[k], 1, in, 3, &gy, 0, gx[k]), TD_OK);
        }
      expect_close (y[0], y[1], tolerance);
      for (int i = 0; i < 3; i++)
        expect_close (gx[0][i], gx[1][i], tolerance);
    }
}

static void
attention__in_one_operation_is_attention_from_others (void **unused)
{
  for (int way = 0; way < 4; way++)
    {
      compare (TD_F64, way & 1, way & 2, QUERIES, 1e-12);
      compare (TD_F32, way & 1, way & 2, QUERIES, 2e-5);
    }
}

/* Causal attention cuts its queries in two: the cut at, before and after the middle. */
static void
attention__is_the_same_however_queries_are_cut (void **unused)
{
  static const int64_t n_q[] = { 17, 33, 63, 64, 65, 129, 250 };

  for (size_t i = 0; i < sizeof n_q / sizeof n_q[0]; i++)
    {
      compare (TD_F64, true, i & 1, n_q[i], 1e-12);
      compare (TD_F32, true, i & 1, n_q[i], 2e-5);
    }
}

/* More queries than keys: with causal the first see nothing. */
static void
attention__gives_zeros_to_queries_that_see_nothing (void **unused)
{
  compare (TD_F64, true, false, KEYS + 140, 1e-12);
  TD_SCOPE ("test")
    {
      float y[3], gq[3], zeros[3] = { 0 };
      TdVar *q = td_variable (td_randn (TD_F32, TD_SHAPE (1, 2, 3)), "q");
      TdVar *k = td_randn (TD_F32, TD_SHAPE (1, 1, 3));
      TdVar *out = td_scaled_dot_product_attention (q, k, k, .causal = true);
      TdVar *first = td_get_item (td_reshape (out, TD_SHAPE (2, 3)), &TD_AT (0), 1);

      assert_int_equal (td_read (first, y, sizeof y), TD_OK);
      assert_memory_equal (y, zeros, sizeof y);
      td_backward (td_sum (out), 0);
      first = td_get_item (td_reshape (td_grad (q), TD_SHAPE (2, 3)), &TD_AT (0), 1);
      assert_int_equal (td_read (first, gq, sizeof gq), TD_OK);
      assert_memory_equal (gq, zeros, sizeof gq);
    }
}

static size_t
peak_of (bool composed)
{
  size_t before = 0, after = 0;

  TD_SCOPE ("peak")
    {
      TdVar *x = td_variable (td_randn (TD_F32, TD_SHAPE (1, 512, 8)), "x"), *y;

      td_pool_trim (td_device (x));
      before = td_mem_info (NULL).live_bytes;
      y = td_scaled_dot_product_attention (x, x, x, .composed = composed);
      after = td_mem_info (NULL).live_bytes;
      assert_false (td_poisoned (y));
    }
  return after - before;
}

static void
attention__keeps_no_matrix_of_weights (void **unused)
{
  const size_t matrix = 512 * 512 * sizeof (float);

  assert_true (peak_of (true) >= matrix);
  assert_true (peak_of (false) < matrix / 16);
}

static void
attention__passes_nan_on_in_its_own_row_only (void **unused)
{
  TD_SCOPE ("test")
    {
      float host[12], y[12];
      TdVar *q, *k = td_randn (TD_F32, TD_SHAPE (1, 5, 3));

      for (int i = 0; i < 12; i++)
        host[i] = i == 4 ? NAN : (float)i;
      q = td_tensor (TD_F32, TD_SHAPE (1, 4, 3), host);
      assert_int_equal (td_read (td_scaled_dot_product_attention (q, k, k), y, sizeof y),
                        TD_OK);
      for (int i = 0; i < 12; i++)
        assert_int_equal (isnan (y[i]) != 0, i / 3 == 1);
    }
}

static void
causal_mask__shows_the_last_query_all_keys (void **unused)
{
  const float want[] = { 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1 };

  TD_SCOPE ("test")
    {
      float got[12];

      assert_int_equal (td_read (td_causal_mask (TD_F32, 3, 4), got, sizeof got), TD_OK);
      assert_memory_equal (got, want, sizeof want);
    }
}

/* As a condition of td_where, and in whole numbers, it says the same. */
static void
causal_mask__is_the_same_in_every_dtype (void **unused)
{
  static const TdDtype dtypes[]
      = { TD_BOOL, TD_U8, TD_I32, TD_I64, TD_F16, TD_BF16, TD_F32, TD_F64 };
  const float want[] = { 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1 };

  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    TD_SCOPE ("test")
      {
        TdVar *mask = td_causal_mask (dtypes[i], 3, 4),
              *chosen = td_where (mask, td_full (TD_F32, TD_SHAPE (3, 4), 1),
                                  td_full (TD_F32, TD_SCALAR, 0));
        float got[12];

        assert_int_equal (td_dtype (mask), dtypes[i]);
        assert_int_equal (td_read (td_cast (mask, TD_F32), got, sizeof got), TD_OK);
        assert_memory_equal (got, want, sizeof want);
        assert_int_equal (td_read (chosen, got, sizeof got), TD_OK);
        assert_memory_equal (got, want, sizeof want);
      }
}

/* Of every dtype that there is a mask of, also where it is that of q. */
static void
mask__may_have_any_dtype (void **unused)
{
  static const TdDtype dtypes[] = { TD_BOOL, TD_U8, TD_I32, TD_I64, TD_F16, TD_F32, TD_F64 };

  (void)unused;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    for (int composed = 0; composed < 2; composed++)
      TD_SCOPE ("dtype")
        {
          TdVar *q = td_variable (td_randn (TD_F32, TD_SHAPE (2, 3, 4)), "q"), *y[2], *g[2];

          for (int k = 0; k < 2; k++)
            {
              TdVar *mask = td_causal_mask (k == 0 ? TD_F32 : dtypes[i], 3, 3), *loss;

              y[k] = td_scaled_dot_product_attention (q, q, q, .mask = mask,
                                                      .composed = composed != 0);
              loss = td_sum (td_square (y[k]));
              assert_int_equal (td_grad_of (&loss, 1, &q, 1, NULL, 0, &g[k]), TD_OK);
            }
          expect_close (y[0], y[1], 0);
          expect_close (g[0], g[1], 0);
        }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (attention__in_one_operation_is_attention_from_others),
    td_test (attention__is_the_same_however_queries_are_cut),
    td_test (attention__gives_zeros_to_queries_that_see_nothing),
    td_test (attention__keeps_no_matrix_of_weights),
    td_test (attention__passes_nan_on_in_its_own_row_only),
    td_test (causal_mask__shows_the_last_query_all_keys),
    td_test (causal_mask__is_the_same_in_every_dtype),
    td_test (mask__may_have_any_dtype),
  };

  return run_with_engine (tests);
}
