/* The operations of layers, rule by rule: error texts, labels, edges of pooling, training
 * against evaluation, accumulation of gradients in kernels. SPDX-License-Identifier: MIT */
#include "start.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void
expect (TdVar *y, TdStatus status, const char *text)
{
  assert_true (td_poisoned (y));
  assert_non_null (td_error ());
  assert_contains (td_error ()->message, text);
  assert_null (strchr (td_error ()->message, '\n'));
  assert_int_equal (td_error ()->status, status);
  td_error_clear ();
}

static TdVar *
zeros (TdDtype dtype, TdShape shape)
{
  return td_zeros (dtype, shape);
}

static void
linear__reports_both_shapes (void **unused)
{
  TD_SCOPE ("test")
    {
      TdVar *x = zeros (TD_F32, TD_SHAPE (2, 784)), *W = zeros (TD_F32, TD_SHAPE (10, 100));

      expect (td_linear (x, W, NULL), TD_ERR_SHAPE,
              "x.shape[1] == W.shape[1] expected, got 784 != 100");
      expect (td_linear (x, W, NULL), TD_ERR_SHAPE, "x (2, 784) f32, W (10, 100) f32");
      expect (td_linear (zeros (TD_F32, TD_SHAPE (2, 10, 10)), W, zeros (TD_F32, TD_SHAPE (9))),
              TD_ERR_SHAPE, "b.shape[0] == W.shape[0] expected, got 9 != 10");
      expect (td_linear (zeros (TD_F64, TD_SHAPE (2, 100)), W, NULL), TD_ERR_DTYPE,
              "x.dtype == W.dtype expected, got f64 != f32");
      expect (td_linear (zeros (TD_I32, TD_SHAPE (2, 100)), W, NULL), TD_ERR_DTYPE,
              "x.dtype.kind == f expected, got i32");
    }
}

static void
layers__report_wrong_shapes_on_one_line (void **unused)
{
  TD_SCOPE ("test")
    {
      TdVar *image = zeros (TD_F32, TD_SHAPE (2, 3, 8, 8)), *v = zeros (TD_F32, TD_SHAPE (4));
      TdVar *matrix = zeros (TD_F32, TD_SHAPE (2, 3)), *t = zeros (TD_I32, TD_SHAPE (3));
      TdVar *stack = zeros (TD_F32, TD_SHAPE (2, 3, 4));

      expect (td_matmul (stack, matrix, false, false), TD_ERR_SHAPE,
              "as many columns of op (a) as rows of op (b) expected");
      expect (td_batch_matmul (stack, stack, false, false), TD_ERR_SHAPE,
              "a.shape[2] == b.shape[1] expected, got 4 != 3");
      expect (td_convolution_2d (image, zeros (TD_F32, TD_SHAPE (5, 2, 3, 3)), NULL),
              TD_ERR_SHAPE, "x.shape[1] == W.shape[1] * groups");
      expect (td_convolution_2d (image, zeros (TD_F32, TD_SHAPE (5, 3, 9, 3)), NULL),
              TD_ERR_SHAPE, "height of the output > 0 expected");
      expect (td_convolution_2d (image, zeros (TD_F32, TD_SHAPE (5, 3, 3, 3)), NULL,
                                 .stride = { 0, 1 }),
              TD_ERR_ARG, "stride >= 1");
      expect (td_convolution_2d (matrix, matrix, NULL), TD_ERR_SHAPE,
              "x.ndim == 4 expected, got 2");
      expect (td_max_pooling_2d (matrix), TD_ERR_SHAPE, "x.ndim == 4 expected, got 2");
      expect (td_average_pooling_2d (image, .ksize = { 9, 1 }), TD_ERR_SHAPE,
              "height of the output > 0 expected");
      expect (td_batch_normalization (image, v, v), TD_ERR_SHAPE,
              "gamma.shape[0] == x.shape[1] expected, got 4 != 3");
      expect (td_fixed_batch_normalization (image, v, v, v, v, 1e-5), TD_ERR_SHAPE,
              "gamma.shape[0] == x.shape[1]");
      expect (td_softmax (matrix, .axis = 2), TD_ERR_SHAPE, "axis < x.ndim expected");
      expect (td_log_softmax (matrix, .axis = -3), TD_ERR_SHAPE, "axis < x.ndim expected");
      expect (td_softmax_cross_entropy (matrix, t), TD_ERR_SHAPE,
              "x.shape[0] == t.shape[0] expected, got 2 != 3");
      expect (td_softmax_cross_entropy (matrix, v), TD_ERR_DTYPE,
              "t.dtype.kind == i expected, got f32");
      expect (td_mean_squared_error (matrix, stack), TD_ERR_SHAPE,
              "a.shape == b.shape expected");
      expect (td_accuracy (matrix, t), TD_ERR_SHAPE, "y.shape[0] == t.shape[0]");
      expect (td_lstm (matrix, matrix, NULL), TD_ERR_SHAPE,
              "x.shape[1] == 4 * c.shape[1] expected, got 3 != 4 * 3");
      expect (td_dropout (matrix, 1), TD_ERR_ARG, "0 <= ratio < 1 expected, got 1");
      expect (td_embed_id (matrix, matrix), TD_ERR_DTYPE,
              "x.dtype.kind == i expected, got f32");
    }
}

static void
labels__out_of_range_are_named_with_their_place (void **unused)
{
  const int32_t labels[] = { 0, 2, 3, 1 }, negative[] = { 0, -1, 2, 1 };

  TD_SCOPE ("test")
    {
      TdVar *x = zeros (TD_F32, TD_SHAPE (4, 3));
      TdVar *t = td_tensor (TD_I32, TD_SHAPE (4), labels);
      TdVar *n = td_tensor (TD_I32, TD_SHAPE (4), negative);

      expect (td_softmax_cross_entropy (x, t), TD_ERR_ARG,
              "0 <= t[i] < 3 expected, got 3 at element 2");
      expect (td_softmax_cross_entropy (x, n, .ignore_label = 255), TD_ERR_ARG,
              "got -1 at element 1");
      expect (td_accuracy (x, t), TD_ERR_ARG, "got 3 at element 2");
      expect (td_embed_id (n, zeros (TD_F32, TD_SHAPE (3, 2))), TD_ERR_ARG,
              "got -1 at element 1");
      assert_false (td_poisoned (td_softmax_cross_entropy (x, n)));
    }
}

/* --- numbers with a source of their own --- */

static void
softmax_cross_entropy__ignores_rows_and_survives_large_numbers (void **unused)
{
  const float x[] = { 1000, 0, 0, 1000, 0, 0 };
  const int64_t t[] = { 0, 0, -1 };

  TD_SCOPE ("test")
    {
      TdVar *loss = td_softmax_cross_entropy (td_tensor (TD_F32, TD_SHAPE (3, 2), x),
                                              td_tensor (TD_I64, TD_SHAPE (3), t));

      /* Rows: loss 0 and loss 1000; the third does not count. */
      assert_true (td_item (loss) == 500);
      loss = td_softmax_cross_entropy (td_tensor (TD_F32, TD_SHAPE (3, 2), x),
                                       td_tensor (TD_I64, TD_SHAPE (3), t), .normalize = false);
      assert_true (fabs (td_item (loss) - 1000.0 / 3) < 1e-4);
    }
}

static void
accuracy__counts_right_rows_and_has_no_gradient (void **unused)
{
  const float y[] = { 1, 2, 3, 3, 2, 1, 0, 5, 0, NAN, 1, 2 };
  const int32_t t[] = { 2, 1, -1, 0 };

  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_tensor (TD_F32, TD_SHAPE (4, 3), y), "y");
      TdVar *a = td_accuracy (x, td_tensor (TD_I32, TD_SHAPE (4), t));

      /* Row 0 right, 1 wrong, 2 without label, 3 right: NaN is the largest. */
      assert_true (td_item (a) == 0.5);
      td_backward (a, 0);
      assert_null (td_grad (x));
      td_error_clear ();
    }
}

static void
max_pooling_2d__passes_nan_and_takes_the_first_of_equals (void **unused)
{
  const float x[] = { 1, NAN, 5, 5, 0, 2, 5, 5 };
  float y[2], g[8];
  const float wanted[] = { 0, 1, 1, 0, 0, 0, 0, 0 };

  TD_SCOPE ("test")
    {
      TdVar *v = td_variable (td_tensor (TD_F32, TD_SHAPE (1, 1, 2, 4), x), "x");
      TdVar *p = td_max_pooling_2d (v);

      td_read (p, y, sizeof y);
      assert_true (isnan (y[0]) && y[1] == 5);
      td_set_grad (p, td_ones (TD_F32, TD_SHAPE (1, 1, 1, 2)));
      assert_int_equal (td_backward (p, 0), TD_OK);
      td_read (td_grad (v), g, sizeof g);
      assert_memory_equal (g, wanted, sizeof g);
    }
}

static void
max_pooling_2d__covers_all_by_default (void **unused)
{
  TD_SCOPE ("test")
    {
      TdVar *x = zeros (TD_F32, TD_SHAPE (1, 1, 5, 5));

      assert_int_equal (td_shape (td_max_pooling_2d (x)).dim[2], 3);
      assert_int_equal (td_shape (td_max_pooling_2d (x, .cover_all = false)).dim[2], 2);
      assert_int_equal (td_shape (td_average_pooling_2d (x)).dim[2], 2);
    }
}

/* The largest are f32, of 128 x 128 windows; what follows a block is the pool's. */
static void
max_pooling_2d__remembers_each_window_in_a_byte (void **unused)
{
  size_t before, all;

  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (zeros (TD_F32, TD_SHAPE (1, 1, 256, 256)), "x");
      TdDevice *d = td_device (x);

      before = td_mem_info (d).live_bytes;
      td_max_pooling_2d (x);
      all = td_mem_info (d).live_bytes - before;
      assert_in_range (all, 128 * 128 * 5, 128 * 128 * 5 + 4096);
      before += all;
      td_max_pooling_2d (x, .ksize = { 16, 16 }, .stride = { 2, 2 }, .pad = { 7, 7 });
      all = td_mem_info (d).live_bytes - before;
      assert_in_range (all, 128 * 128 * 8, 128 * 128 * 8 + 4096);
    }
}

/* Windows side by side are taken several at once; those of volumes are not. */
static void
max_pooling_2d__takes_what_a_volume_of_one_plane_takes (void **unused)
{
  int32_t places[2][3 * 36];
  double numbers[5 * 71], y[2][3 * 36];

  for (int w = 2; w <= 71; w++)
    TD_SCOPE ("test")
      {
        const TdDtype dtype = w % 2 == 0 ? TD_F32 : TD_F64;
        const size_t n = (size_t)(3 * ((w + 1) / 2));
        TdVar *x, *at[2], *of[2];

        for (int i = 0; i < 5 * w; i++)
          numbers[i] = i * 7 % 31 == 0 ? NAN : i * 7 % 31 == 5 ? -INFINITY : i * 13 % 11 - 5;
        x = td_cast (td_tensor (TD_F64, TD_SHAPE (1, 1, 5, w), numbers), dtype);
        of[0] = td_max_pooling_2d (x, .indices = &at[0]);
        of[1] = td_max_pooling_3d (td_reshape (x, TD_SHAPE (1, 1, 1, 5, w)),
                                   .ksize = { 1, 2, 2 }, .indices = &at[1]);
        for (int k = 0; k < 2; k++)
          {
            assert_int_equal (td_read (td_cast (of[k], TD_F64), y[k], n * sizeof y[0][0]),
                              TD_OK);
            assert_int_equal (td_read (at[k], places[k], n * sizeof places[0][0]), TD_OK);
          }
        assert_memory_equal (y[0], y[1], n * sizeof y[0][0]);
        assert_memory_equal (places[0], places[1], n * sizeof places[0][0]);
      }
}

/* Also of windows that lie in the padding alone, and where a byte is too little. */
static void
max_pooling_2d__gives_chainers_indices (void **unused)
{
  static const int32_t narrow[] = { -1, -1, -1, -1, 8, 6, -1, 2, 0 };
  const float x[] = { 1, 2, 3, 4 };
  int32_t places[21 * 19];
  TdVar *indices;

  TD_SCOPE ("test")
    {
      TdVar *v = td_tensor (TD_F32, TD_SHAPE (1, 1, 2, 2), x);

      td_max_pooling_2d (v, .ksize = { 3, 3 }, .stride = { 2, 2 }, .pad = { 3, 3 },
                         .cover_all = false, .indices = &indices);
      assert_int_equal (td_dtype (indices), TD_I32);
      assert_int_equal (td_read (indices, places, sizeof narrow), TD_OK);
      assert_memory_equal (places, narrow, sizeof narrow);
      td_max_pooling_2d (v, .ksize = { 20, 20 }, .pad = { 19, 18 }, .stride = { 1, 1 },
                         .cover_all = false, .indices = &indices);
      assert_int_equal (td_dtype (indices), TD_I32);
      assert_int_equal (td_read (indices, places, sizeof places), TD_OK);
      for (int i = 0; i < 21 * 19; i++)
        {
          const int row = i / 19, lowest = row < 1 ? row : 1;

          assert_int_equal (places[i], (lowest - row + 19) * 20 + 1 - i % 19 + 18);
        }
    }
}

static void
dropout__keeps_x_itself_when_not_training (void **unused)
{
  TD_SCOPE ("test")
    TD_USING (train, 0)
      {
        TdVar *x = td_ones (TD_F32, TD_SHAPE (4));

        assert_ptr_equal (td_dropout (x, 0.5), x);
      }
}

static void
dropout__zeroes_its_share_and_backward_uses_the_same_mask (void **unused)
{
  enum
  {
    SIZE = 20000
  };
  static float y[SIZE], g[SIZE];
  int n_zero = 0;

  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (SIZE)), "x"), *d;

      td_set_seed (3);
      d = td_dropout (x, 0.25);
      td_read (d, y, sizeof y);
      td_backward (td_sum (d), 0);
      td_read (td_grad (x), g, sizeof g);
      assert_memory_equal (y, g, sizeof y);
      for (int i = 0; i < SIZE; i++)
        {
          assert_true (y[i] == 0 || fabsf (y[i] - 4.0f / 3) < 1e-6f);
          n_zero += y[i] == 0;
        }
      /* 5 standard deviations of a binomial of 20000 at 0.25. */
      assert_in_range (n_zero, 5000 - 306, 5000 + 306);
      d = td_dropout (x, 0.25);
      td_read (d, g, sizeof g);
      assert_memory_not_equal (y, g, sizeof y);
    }
}

static void
batch_normalization__updates_running_statistics_unbiased (void **unused)
{
  /* One channel: mean 2.5, variance 1.25, unbiased 5 / 3. */
  const double x[] = { 1, 2, 3, 4 }, one = 1, zero = 0;
  double mean, var;

  TD_SCOPE ("test")
    {
      TdVar *v = td_tensor (TD_F64, TD_SHAPE (4, 1), x);
      TdVar *gamma = td_tensor (TD_F64, TD_SHAPE (1), &one);
      TdVar *beta = td_tensor (TD_F64, TD_SHAPE (1), &zero);
      TdVar *rm = td_tensor (TD_F64, TD_SHAPE (1), &zero),
            *rv = td_tensor (TD_F64, TD_SHAPE (1), &one);

      td_batch_normalization (v, gamma, beta, .running_mean = rm, .running_var = rv);
      td_read (rm, &mean, sizeof mean);
      td_read (rv, &var, sizeof var);
      assert_true (fabs (mean - 0.25) < 1e-15);
      assert_true (fabs (var - (0.9 + 0.1 * 5 / 3)) < 1e-15);
      TD_USING (train, 0)
        {
          td_batch_normalization (v, gamma, beta, .running_mean = rm, .running_var = rv);
        }
      td_read (rm, &mean, sizeof mean);
      assert_true (fabs (mean - 0.25) < 1e-15);
      expect (td_batch_normalization (v, gamma, beta, .running_mean = rm), TD_ERR_ARG,
              "running_mean and running_var expected together");
    }
}

static void
embed_id__adds_the_gradients_of_equal_indices (void **unused)
{
  const int32_t x[] = { 1, 1, 0 };
  const float wanted[] = { 1, 1, 2, 2, 0, 0 };
  float g[6];

  TD_SCOPE ("test")
    {
      TdVar *W = td_variable (zeros (TD_F32, TD_SHAPE (3, 2)), "W");

      td_backward (td_sum (td_embed_id (td_tensor (TD_I32, TD_SHAPE (3), x), W)), 0);
      td_read (td_grad (W), g, sizeof g);
      assert_memory_equal (g, wanted, sizeof g);
    }
}

/* Two uses of one parameter: the second gradient goes into the first inside the kernel.  The
 * same sum by hand must have the same bits. */
static void
check_accumulation (TdVar *(*use) (TdVar *x, TdVar *W, TdVar *b), TdShape xs, TdShape ws,
                    TdShape bs)
{
  TD_SCOPE ("test")
    {
      TdVar *W = td_variable (td_randn (TD_F32, ws), "W");
      TdVar *b = td_variable (td_randn (TD_F32, bs), "b");
      TdVar *params[] = { W, b }, *x[2], *y[2], *g[2][2], *sum[2];
      const size_t bytes = (size_t)td_size (W) * sizeof (float);
      float *kernel = test_malloc (bytes), *hand = test_malloc (bytes);

      for (int i = 0; i < 2; i++)
        {
          x[i] = td_randn (TD_F32, xs);
          y[i] = td_sum (td_square (use (x[i], W, b)));
        }
      td_backward (td_add (y[0], y[1]), 0);
      for (int i = 0; i < 2; i++)
        td_grad_of (&y[i], 1, params, 2, NULL, 0, g[i]);
      assert_null (td_error ());
      for (int p = 0; p < 2; p++)
        {
          const size_t size = (size_t)td_size (params[p]) * sizeof (float);

          sum[p] = td_add (g[1][p], g[0][p]);
          td_read (td_grad (params[p]), kernel, size);
          td_read (sum[p], hand, size);
          assert_memory_equal (kernel, hand, size);
        }
      test_free (kernel);
      test_free (hand);
    }
}

static TdVar *
use_convolution (TdVar *x, TdVar *W, TdVar *b)
{
  return td_convolution_2d (x, W, b);
}

static void
gradients__accumulated_in_kernels_have_the_bits_of_sums (void **unused)
{
  td_set_seed (1);
  check_accumulation (td_linear, TD_SHAPE (8, 30), TD_SHAPE (20, 30), TD_SHAPE (20));
  check_accumulation (td_linear, TD_SHAPE (1500, 30), TD_SHAPE (20, 30), TD_SHAPE (20));
  check_accumulation (use_convolution, TD_SHAPE (9, 3, 8, 8), TD_SHAPE (5, 3, 3, 3),
                      TD_SHAPE (5));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (linear__reports_both_shapes),
    td_test (layers__report_wrong_shapes_on_one_line),
    td_test (labels__out_of_range_are_named_with_their_place),
    td_test (softmax_cross_entropy__ignores_rows_and_survives_large_numbers),
    td_test (accuracy__counts_right_rows_and_has_no_gradient),
    td_test (max_pooling_2d__passes_nan_and_takes_the_first_of_equals),
    td_test (max_pooling_2d__covers_all_by_default),
    td_test (max_pooling_2d__remembers_each_window_in_a_byte),
    td_test (max_pooling_2d__takes_what_a_volume_of_one_plane_takes),
    td_test (max_pooling_2d__gives_chainers_indices),
    td_test (dropout__keeps_x_itself_when_not_training),
    td_test (dropout__zeroes_its_share_and_backward_uses_the_same_mask),
    td_test (batch_normalization__updates_running_statistics_unbiased),
    td_test (embed_id__adds_the_gradients_of_equal_indices),
    td_test (gradients__accumulated_in_kernels_have_the_bits_of_sums),
  };

  return run_with_engine (tests);
}
