/* Links of layers: names of parameters, values against the formula in float64, gradients of
 * inputs and parameters, sizes that wait, and what is refused.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
setup (void **state)
{
  fixture_setup (state);
  td_config_set (dtype, TD_F64);
  return 0;
}

/* --- element by element --- */

static void
bias__adds_along_its_axis (void **state)
{
  TdLink *l = td_bias_new (NULL, "l", .shape = TD_SHAPE (3)), *free_b = td_bias_new (NULL, "f");
  TdVar *x = wide (TD_SHAPE (2, 3, 4), 1), *y, *pair[2] = { x, wide (TD_SHAPE (3, 4), 2) };
  const double *v, *u, *b;

  (void)state;
  assert_string_equal (param_keys (l), "b ");
  assert_true (numbers (td_link_param (l, "b"))[2] == 0);
  fill_params (l, 5);
  y = td_link (l, x);
  v = numbers (x);
  u = numbers (y);
  b = numbers (td_link_param (l, "b"));
  for (int i = 0; i < 24; i++)
    assert_true (u[i] == v[i] + b[i / 4 % 3]);
  check_gradients (l, plain_call, &x, 1, 1);
  plain_call (free_b, pair, 2, &y, 1);
  u = numbers (y);
  b = numbers (pair[1]);
  for (int i = 0; i < 24; i++)
    assert_true (u[i] == v[i] + b[i % 12]);
  td_link (l, wide (TD_SHAPE (2, 4), 1));
  assert_contains (said (TD_ERR_SHAPE), "x (2, 4) f64, y = b (3) f64 (l, ");
  td_link (free_b, x);
  assert_contains (said (TD_ERR_ARG), "two inputs and one output expected, got 1 and 1");
  td_bias_new (NULL, "l", .axis = -1);
  assert_contains (said (TD_ERR_ARG), "got -1");
}

static void
scale__multiplies_and_adds_a_bias_if_asked (void **state)
{
  TdLink *l = td_scale_new (NULL, "l", .W_shape = TD_SHAPE (3), .bias_term = true);
  TdVar *x = wide (TD_SHAPE (2, 3, 2), 1);
  const double *v, *u, *W, *b;

  (void)state;
  assert_string_equal (param_keys (l), "W bias/b ");
  assert_true (numbers (td_link_param (l, "W"))[1] == 1);
  fill_params (l, 5);
  u = numbers (td_link (l, x));
  v = numbers (x);
  W = numbers (td_link_param (l, "W"));
  b = numbers (td_link_param (l, "bias/b"));
  for (int i = 0; i < 12; i++)
    assert_true (fabs (u[i] - (v[i] * W[i / 2 % 3] + b[i / 2 % 3])) < 1e-15);
  check_gradients (l, plain_call, &x, 1, 1);
  td_scale_new (NULL, "m", .bias_term = true);
  assert_contains (said (TD_ERR_ARG), "bias_shape");
}

static void
parameter__is_its_array (void **state)
{
  TdVar *array = wide (TD_SHAPE (2, 2), 4), *y;
  TdLink *l = td_parameter_new (NULL, "l", array);

  (void)state;
  assert_string_equal (param_keys (l), "W ");
  plain_call (l, NULL, 0, &y, 1);
  assert_same (y, array, 0);
  check_gradients (l, plain_call, NULL, 0, 1);
  td_parameter_new (NULL, "i", td_zeros (TD_I32, TD_SHAPE (2)));
  assert_contains (said (TD_ERR_DTYPE), "floating point");
}

static void
prelu__trains_the_slope_below_zero (void **state)
{
  TdLink *one = td_prelu_new (NULL, "o"), *l = td_prelu_new (NULL, "l", .shape = TD_SHAPE (3));
  TdVar *x = wide (TD_SHAPE (2, 3, 2), 1);
  const double *v = numbers (x), *u = numbers (td_link (one, x)), *W;

  (void)state;
  assert_string_equal (param_keys (l), "W ");
  assert_int_equal (td_ndim (td_link_param (one, "W")), 0);
  for (int i = 0; i < 12; i++)
    assert_true (fabs (u[i] - (v[i] >= 0 ? 1 : 0.25) * v[i]) < 1e-15);
  fill_params (l, 3);
  u = numbers (td_link (l, x));
  W = numbers (td_link_param (l, "W"));
  for (int i = 0; i < 12; i++)
    assert_true (fabs (u[i] - (v[i] >= 0 ? 1 : W[i / 2 % 3]) * v[i]) < 1e-15);
  check_gradients (l, plain_call, &x, 1, 1);
}

static void
swish__trains_its_beta (void **state)
{
  static const TdShape open = TD_NO_SHAPE;
  TdLink *l = td_swish_new (NULL, "l", TD_SHAPE (3)), *lazy = td_swish_new (NULL, "z", open);
  TdVar *x = wide (TD_SHAPE (2, 3, 2), 1);
  const double *v = numbers (x), *u, *beta;

  (void)state;
  assert_string_equal (param_keys (l), "beta ");
  assert_true (numbers (td_link_param (l, "beta"))[0] == 1);
  fill_params (l, 3);
  u = numbers (td_link (l, x));
  beta = numbers (td_link_param (l, "beta"));
  for (int i = 0; i < 12; i++)
    assert_true (fabs (u[i] - v[i] / (1 + exp (-beta[i / 2 % 3] * v[i]))) < 1e-15);
  check_gradients (l, plain_call, &x, 1, 1);
  assert_null (td_link_param (lazy, "beta"));
  td_link (lazy, x);
  assert_shape (td_link_param (lazy, "beta"), TD_SHAPE (3, 2));
}

/* --- from rows to rows --- */

static void
maxout__takes_the_largest_of_each_pool (void **state)
{
  TdLink *l = td_maxout_new (NULL, "l", 3, 2, 4);
  TdVar *x = wide (TD_SHAPE (5, 3), 1);
  const double *v = numbers (x), *u, *W, *b;

  (void)state;
  assert_string_equal (param_keys (l), "linear/W linear/b ");
  fill_params (l, 8);
  u = numbers (td_link (l, x));
  W = numbers (td_link_param (l, "linear/W"));
  b = numbers (td_link_param (l, "linear/b"));
  for (int i = 0; i < 5; i++)
    for (int o = 0; o < 2; o++)
      {
        double most = -1e9;

        for (int p = 4 * o; p < 4 * o + 4; p++)
          most = fmax (most, b[p] + v[3 * i] * W[3 * p] + v[3 * i + 1] * W[3 * p + 1]
                                 + v[3 * i + 2] * W[3 * p + 2]);
        assert_true (fabs (u[2 * i + o] - most) < 1e-14);
      }
  check_gradients (l, plain_call, &x, 1, 1);
  td_maxout_new (NULL, "m", 3, 2, 0);
  assert_contains (said (TD_ERR_ARG), "pool sizes above 0");
}

static void
linear__has_several_axes_of_rows (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", TD_INFER, 4, .n_batch_axes = 2);
  TdVar *x = wide (TD_SHAPE (2, 3, 5, 1), 1), *y = td_link (l, x);

  (void)state;
  assert_shape (y, TD_SHAPE (2, 3, 4));
  assert_shape (td_link_param (l, "W"), TD_SHAPE (4, 5));
  fill_params (l, 8);
  assert_same (td_reshape (td_link (l, x), TD_SHAPE (6, 4)),
               td_linear (td_reshape (x, TD_SHAPE (6, 5)), td_link_param (l, "W"),
                          td_link_param (l, "b")),
               0);
  check_gradients (l, plain_call, &x, 1, 1);
  td_link (l, wide (TD_SHAPE (2, 3), 1));
  assert_contains (said (TD_ERR_SHAPE), "0 < n_batch_axes < x.ndim expected, got 2");
  td_link (td_linear_new (NULL, "z", TD_INFER, 4, .n_batch_axes = 2),
           wide (TD_SHAPE (2, 3), 1));
  assert_contains (said (TD_ERR_SHAPE), "x with 3 or more axes expected, got (2, 3)");
  td_linear_new (NULL, "m", 5, 4, .n_batch_axes = -1);
  assert_contains (said (TD_ERR_ARG), "got -1");
}

static void
bilinear__weighs_pairs_of_features (void **state)
{
  TdLink *l = td_bilinear_new (NULL, "l", 3, 2, 4);
  TdLink *plain = td_bilinear_new (NULL, "p", 3, 2, 4, .nobias = true);
  TdVar *e[2] = { wide (TD_SHAPE (5, 3), 1), wide (TD_SHAPE (5, 2), 2) }, *y;
  const double *a = numbers (e[0]), *c = numbers (e[1]), *u, *W, *V1, *V2, *b;

  (void)state;
  assert_string_equal (param_keys (l), "W V1 V2 b ");
  assert_string_equal (param_keys (plain), "W ");
  assert_true (numbers (td_link_param (l, "b"))[3] == 0);
  fill_params (l, 8);
  plain_call (l, e, 2, &y, 1);
  u = numbers (y);
  W = numbers (td_link_param (l, "W"));
  V1 = numbers (td_link_param (l, "V1"));
  V2 = numbers (td_link_param (l, "V2"));
  b = numbers (td_link_param (l, "b"));
  for (int i = 0; i < 20; i++)
    {
      const int n = i / 4, o = i % 4;
      double sum = b[o];

      for (int j = 0; j < 3; j++)
        for (int k = 0; k < 2; k++)
          sum += a[3 * n + j] * c[2 * n + k] * W[8 * j + 4 * k + o];
      for (int j = 0; j < 3; j++)
        sum += a[3 * n + j] * V1[4 * j + o];
      for (int k = 0; k < 2; k++)
        sum += c[2 * n + k] * V2[4 * k + o];
      assert_true (fabs (u[i] - sum) < 1e-14);
    }
  check_gradients (l, plain_call, e, 2, 1);
  check_gradients (plain, plain_call, e, 2, 1);
  td_link (l, e[0]);
  assert_contains (said (TD_ERR_ARG), "two inputs and one output expected, got 1 and 1");
  td_bilinear_new (NULL, "m", 3, 0, 4);
  assert_contains (said (TD_ERR_ARG), "got 3, 0 and 4");
}

static void
highway__mixes_the_layer_with_its_input (void **state)
{
  TdLink *l = td_highway_new (NULL, "l", 4, .activate = td_tanh);
  TdVar *x = wide (TD_SHAPE (3, 4), 1), *plain, *gate;

  (void)state;
  assert_string_equal (param_keys (l), "plain/W plain/b transform/W transform/b ");
  assert_true (numbers (td_link_param (l, "transform/b"))[0] == -1);
  plain = td_tanh (td_linear (x, td_link_param (l, "plain/W"), td_link_param (l, "plain/b")));
  gate = td_sigmoid (
      td_linear (x, td_link_param (l, "transform/W"), td_link_param (l, "transform/b")));
  assert_same (td_link (l, x), td_add (td_mul (td_sub (plain, x), gate), x), 1e-14);
  check_gradients (l, plain_call, &x, 1, 1);
}

/* --- normalisation --- */

static void
layer_normalization__takes_each_row_for_itself (void **state)
{
  TdLink *l = td_layer_normalization_new (NULL, "l", TD_INFER);
  TdVar *x = wide (TD_SHAPE (3, 5), 1);
  const double *v = numbers (x), *u, *gamma, *beta;

  (void)state;
  assert_null (td_link_param (l, "gamma"));
  td_link (l, x);
  assert_string_equal (param_keys (l), "gamma beta ");
  fill_params (l, 2);
  u = numbers (td_link (l, x));
  gamma = numbers (td_link_param (l, "gamma"));
  beta = numbers (td_link_param (l, "beta"));
  for (int i = 0; i < 3; i++)
    {
      double mean = 0, variance = 0;

      for (int j = 0; j < 5; j++)
        mean += v[5 * i + j] / 5;
      for (int j = 0; j < 5; j++)
        variance += pow (v[5 * i + j] - mean, 2) / 5;
      for (int j = 0; j < 5; j++)
        assert_true (
            fabs (u[5 * i + j]
                  - (gamma[j] * (v[5 * i + j] - mean) / sqrt (variance + 1e-6) + beta[j]))
            < 1e-13);
    }
  check_gradients (l, plain_call, &x, 1, 1);
  td_link (td_layer_normalization_new (NULL, "m", TD_INFER), wide (TD_SHAPE (3), 1));
  assert_contains (said (TD_ERR_SHAPE), "x with two or more axes expected, got (3)");
}

static void
batch_normalization__takes_its_size_from_the_first_input (void **state)
{
  TdLink *l = td_batch_normalization_new (NULL, "l", TD_INFER, .use_beta = false);
  TdLink *known = td_batch_normalization_new (NULL, "k", 3), *copy = td_link_copy (l);
  TdLink *fresh = td_batch_normalization_new (NULL, "f", TD_INFER);
  TdVar *x = wide (TD_SHAPE (4, 3, 2), 1);
  const char *path = td_test_tmp ("bn.npz");

  (void)state;
  assert_string_equal (param_keys (l), "");
  assert_null (td_link_param (l, "avg_mean"));
  td_link (l, wide (TD_SHAPE (4), 1));
  assert_contains (said (TD_ERR_SHAPE), "x with two or more axes expected, got (4)");
  assert_same (td_link (l, x), td_link (known, x), 0);
  assert_same (td_link (copy, x), td_link (known, x), 0);
  assert_string_equal (param_keys (l), "gamma ");
  assert_same (td_link_param (copy, "avg_var"), td_link_param (l, "avg_var"), 0);
  assert_int_equal (td_backward (td_sum (td_square (td_link (l, x))), 0), TD_OK);
  assert_non_null (td_grad (td_link_param (l, "gamma")));
  assert_null (td_grad (td_link_param (l, "avg_var")));
  assert_int_equal (td_save_npz (path, known), TD_OK);
  assert_int_equal (td_load_npz (path, fresh), TD_OK);
  TD_USING (train, 0)
    assert_same (td_link (fresh, x), td_link (known, x), 0);
  td_batch_normalization_new (NULL, "m", 0);
  assert_contains (said (TD_ERR_ARG), "size above 0");
}

static void
group_normalization__takes_groups_of_channels (void **state)
{
  TdLink *l = td_group_normalization_new (NULL, "l", 2, TD_INFER);
  TdVar *x = wide (TD_SHAPE (2, 4, 3), 1);
  const double *v = numbers (x), *u, *gamma, *beta;

  (void)state;
  td_link (l, x);
  assert_string_equal (param_keys (l), "gamma beta ");
  fill_params (l, 2);
  u = numbers (td_link (l, x));
  gamma = numbers (td_link_param (l, "gamma"));
  beta = numbers (td_link_param (l, "beta"));
  for (int g = 0; g < 4; g++) /* a group is 6 numbers in a row */
    {
      double mean = 0, variance = 0;

      for (int j = 0; j < 6; j++)
        mean += v[6 * g + j] / 6;
      for (int j = 0; j < 6; j++)
        variance += pow (v[6 * g + j] - mean, 2) / 6;
      for (int j = 0; j < 6; j++)
        {
          int c = (2 * g + j / 3) % 4;

          assert_true (
              fabs (u[6 * g + j]
                    - (gamma[c] * (v[6 * g + j] - mean) / sqrt (variance + 1e-5) + beta[c]))
              < 1e-13);
        }
    }
  check_gradients (l, plain_call, &x, 1, 1);
  td_group_normalization_new (NULL, "m", 3, 4);
  assert_contains (said (TD_ERR_ARG), "groups that divide 4 channels expected, got 3");
}

/* --- negative sampling --- */

static void
negative_sampling__is_the_loss_of_its_samples (void **state)
{
  static const int64_t counts[5] = { 16, 0, 1, 81, 16 };
  static const int32_t words[3] = { 3, -1, 2 };
  TdLink *l = td_negative_sampling_new (NULL, "l", 4, counts, 5, 6), *copy;
  TdVar *in[2] = { wide (TD_SHAPE (3, 4), 1), td_tensor (TD_I32, TD_SHAPE (3), words) },
        *out[2];
  const double *x = numbers (in[0]), *W;
  double loss = 0;
  int32_t samples[18];

  (void)state;
  assert_string_equal (param_keys (l), "W ");
  assert_true (numbers (td_link_param (l, "W"))[3] == 0);
  fill_params (l, 3);
  plain_call (l, in, 2, out, 2);
  assert_shape (out[1], TD_SHAPE (3, 6));
  td_read (out[1], samples, sizeof samples);
  W = numbers (td_link_param (l, "W"));
  for (int i = 0; i < 3; i++)
    for (int k = -1; k < 6 && words[i] >= 0; k++)
      {
        int w = k < 0 ? words[i] : samples[6 * i + k];
        double dot = 0;

        assert_true (w != 1); /* never counted, never drawn */
        for (int j = 0; j < 4; j++)
          dot += W[4 * w + j] * x[4 * i + j];
        loss += log1p (exp (k < 0 ? -dot : dot));
      }
  assert_true (fabs (td_item (out[0]) - loss) < 1e-12);
  assert_int_equal (td_backward (out[0], 0), TD_OK);
  assert_non_null (td_grad (td_link_param (l, "W")));
  copy = td_link_copy (l);
  td_link_free (l);
  plain_call (copy, in, 2, out, 1); /* the sampler lives on */
  td_negative_sampling_new (NULL, "m", 4, counts + 1, 1, 6);
  assert_int_equal (td_error ()->status, TD_ERR_ARG);
  td_error_clear ();
}

/* --- convolutions: against loops over every element --- */

typedef struct
{
  int k[3], stride[3], pad[3], dilate[3], groups;
} Window;

/* y (n, out, o ...) of x (n, c, i ...), three spatial axes, the unused of size 1. */
static void
convolve (const double *x, const int64_t *i, const double *W, const double *b, double *y,
          const int64_t *o, int n, int in, int out, const Window *w)
{
  int in_group = in / w->groups, out_group = out / w->groups;
  int64_t at = 0;

  for (int s = 0; s < n; s++)
    for (int f = 0; f < out; f++)
      for (int64_t p = 0; p < o[0] * o[1] * o[2]; p++)
        {
          int64_t place[3] = { p / (o[1] * o[2]), p / o[2] % o[1], p % o[2] };
          double sum = b != NULL ? b[f] : 0;

          for (int c = 0; c < in_group; c++)
            for (int q = 0; q < w->k[0] * w->k[1] * w->k[2]; q++)
              {
                int64_t tap[3]
                    = { q / (w->k[1] * w->k[2]), q / w->k[2] % w->k[1], q % w->k[2] };
                int64_t from[3];
                bool inside = true;

                for (int d = 0; d < 3; d++)
                  {
                    from[d] = place[d] * w->stride[d] - w->pad[d] + tap[d] * w->dilate[d];
                    inside = inside && from[d] >= 0 && from[d] < i[d];
                  }
                if (inside)
                  sum += W[((int64_t)f * in_group + c) * w->k[0] * w->k[1] * w->k[2] + q]
                         * x[(((int64_t)s * in + f / out_group * in_group + c) * i[0] + from[0])
                                 * i[1] * i[2]
                             + from[1] * i[2] + from[2]];
              }
          y[at++] = sum;
        }
}

static void
check_convolution (TdLink *l, TdVar *x, TdShape W, const Window *w)
{
  TdVar *y = td_link (l, x);
  TdShape in = td_shape (x), out = td_shape (y);
  int64_t i[3] = { 1, 1, 1 }, o[3] = { 1, 1, 1 };
  double *reference = malloc ((size_t)td_size (y) * sizeof *reference);
  const double *u;

  assert_string_equal (param_keys (l), "W b ");
  assert_shape (td_link_param (l, "W"), W);
  fill_params (l, 9);
  for (int d = 2; d < in.ndim; d++)
    {
      i[d - 2 + 5 - in.ndim] = in.dim[d];
      o[d - 2 + 5 - in.ndim] = out.dim[d];
    }
  convolve (numbers (x), i, numbers (td_link_param (l, "W")), numbers (td_link_param (l, "b")),
            reference, o, (int)in.dim[0], (int)in.dim[1], (int)out.dim[1], w);
  u = numbers (td_link (l, x));
  for (int64_t p = 0; p < td_size (y); p++)
    if (!(fabs (u[p] - reference[p]) < 1e-13))
      fail_msg ("element %lld is %g, %g expected", (long long)p, u[p], reference[p]);
  free (reference);
  check_gradients (l, plain_call, &x, 1, 1);
}

static void
convolution_1d__agrees_with_loops (void **state)
{
  (void)state;
  check_convolution (td_convolution_1d_new (NULL, "l", TD_INFER, 4, 3, .stride = { 2 },
                                            .pad = { 1 }, .groups = 2),
                     wide (TD_SHAPE (2, 2, 6), 1), TD_SHAPE (4, 1, 3),
                     &(Window){ { 1, 1, 3 }, { 1, 1, 2 }, { 0, 0, 1 }, { 1, 1, 1 }, 2 });
}

static void
convolution_3d__agrees_with_loops (void **state)
{
  (void)state;
  check_convolution (
      td_convolution_3d_new (NULL, "l", 2, 3, 2, .pad = { 0, 1, 0 }, .kernel = { 1, 2, 2 }),
      wide (TD_SHAPE (1, 2, 2, 2, 3), 1), TD_SHAPE (3, 2, 1, 2, 2),
      &(Window){ { 1, 2, 2 }, { 1, 1, 1 }, { 0, 1, 0 }, { 1, 1, 1 }, 1 });
}

static void
convolution_nd__agrees_with_loops (void **state)
{
  (void)state;
  check_convolution (td_convolution_nd_new (NULL, "l", 2, TD_INFER, 2, 2, .dilate = { 2, 1 }),
                     wide (TD_SHAPE (1, 2, 4, 3), 1), TD_SHAPE (2, 2, 2, 2),
                     &(Window){ { 1, 2, 2 }, { 1, 1, 1 }, { 0, 0, 0 }, { 1, 2, 1 }, 1 });
  td_convolution_nd_new (NULL, "m", 7, 2, 2, 2);
  assert_contains (said (TD_ERR_ARG), "7 axes, in 2, out 2, ksize 2");
  td_convolution_nd_new (NULL, "m", 2, 3, 2, 2, .groups = 2);
  assert_contains (said (TD_ERR_ARG), "groups 2");
  td_link (td_convolution_nd_new (NULL, "m", 2, TD_INFER, 2, 2), wide (TD_SHAPE (1, 2, 4), 1));
  assert_contains (said (TD_ERR_SHAPE), "x with 4 axes");
}

static void
dilated_convolution_2d__agrees_with_loops (void **state)
{
  (void)state;
  check_convolution (td_dilated_convolution_2d_new (NULL, "l", TD_INFER, 2, 2,
                                                    .dilate = { 2, 2 }, .pad = { 1, 1 }),
                     wide (TD_SHAPE (1, 3, 4, 4), 1), TD_SHAPE (2, 3, 2, 2),
                     &(Window){ { 1, 2, 2 }, { 1, 1, 1 }, { 0, 1, 1 }, { 1, 2, 2 }, 1 });
}

/* W (multiplier, in, kh, kw): output c * multiplier + m is channel c under filter m. */
static void
depthwise_convolution_2d__has_filters_for_each_channel (void **state)
{
  TdLink *l = td_depthwise_convolution_2d_new (NULL, "l", TD_INFER, 2, 2);
  TdVar *x = wide (TD_SHAPE (1, 3, 3, 3), 1), *y = td_link (l, x);
  const double *v = numbers (x), *u, *W, *b;

  (void)state;
  assert_string_equal (param_keys (l), "W b ");
  assert_shape (td_link_param (l, "W"), TD_SHAPE (2, 3, 2, 2));
  assert_shape (td_link_param (l, "b"), TD_SHAPE (6));
  assert_shape (y, TD_SHAPE (1, 6, 2, 2));
  fill_params (l, 9);
  u = numbers (td_link (l, x));
  W = numbers (td_link_param (l, "W"));
  b = numbers (td_link_param (l, "b"));
  for (int f = 0; f < 6; f++)
    for (int p = 0; p < 4; p++)
      {
        const double *w = W + 12 * (f % 2) + 4 * (f / 2), *at = v + 9 * (f / 2) + 3 * (p / 2);
        double sum = b[f] + w[0] * at[p % 2] + w[1] * at[p % 2 + 1] + w[2] * at[p % 2 + 3]
                     + w[3] * at[p % 2 + 4];

        assert_true (fabs (u[4 * f + p] - sum) < 1e-14);
      }
  check_gradients (l, plain_call, &x, 1, 1);
}

/* The transposed convolution is the gradient of the convolution in its input. */
static void
check_transposed (TdLink *l, TdVar *x, TdShape W, TdShape out, const TdConvNdOpt *o)
{
  TdVar *y = td_link (l, x), *z, *big, *gz;

  assert_shape (td_link_param (l, "W"), W);
  assert_shape (y, out);
  fill_params (l, 3);
  big = td_variable (wide (out, 5), "big");
  z = td_convolution_nd_ (big, td_link_param (l, "W"), NULL, o);
  assert_shape (z, td_shape (x));
  z = td_sum (td_mul (z, x));
  assert_int_equal (td_grad_of (&z, 1, &big, 1, NULL, 0, &gz), TD_OK);
  gz = td_add (gz,
               td_reshape (td_link_param (l, "b"),
                           out.ndim == 4 ? TD_SHAPE (1, -1, 1, 1) : TD_SHAPE (1, -1, 1, 1, 1)));
  assert_same (td_link (l, x), gz, 1e-13);
  check_gradients (l, plain_call, &x, 1, 1);
}

static void
deconvolution_2d__transposes_a_convolution (void **state)
{
  static const TdConvNdOpt o
      = { .stride = { 2, 1 }, .pad = { 1, 0 }, .dilate = { 1, 1 }, .groups = 1 };

  (void)state;
  check_transposed (
      td_deconvolution_2d_new (NULL, "l", TD_INFER, 3, 3, .stride = { 2, 1 }, .pad = { 1, 0 }),
      wide (TD_SHAPE (1, 2, 3, 2), 1), TD_SHAPE (2, 3, 3, 3), TD_SHAPE (1, 3, 5, 4), &o);
  assert_shape (td_link (td_deconvolution_2d_new (NULL, "m", 2, 3, 3, .stride = { 2, 2 },
                                                  .outsize = { 8, 8 }, .nobias = true),
                         wide (TD_SHAPE (1, 2, 3, 3), 1)),
                TD_SHAPE (1, 3, 8, 8));
}

static void
deconvolution_nd__transposes_a_convolution (void **state)
{
  static const TdConvNdOpt o = { .stride = { 1, 2, 1 }, .dilate = { 1, 1, 1 }, .groups = 1 };

  (void)state;
  check_transposed (td_deconvolution_nd_new (NULL, "l", 3, 2, 2, 2, .stride = { 1, 2, 1 }),
                    wide (TD_SHAPE (1, 2, 1, 2, 2), 1), TD_SHAPE (2, 2, 2, 2, 2),
                    TD_SHAPE (1, 2, 2, 4, 3), &o);
}

#define wide_test(f) cmocka_unit_test_setup_teardown (f, setup, fixture_teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    wide_test (bias__adds_along_its_axis),
    wide_test (scale__multiplies_and_adds_a_bias_if_asked),
    wide_test (parameter__is_its_array),
    wide_test (prelu__trains_the_slope_below_zero),
    wide_test (swish__trains_its_beta),
    wide_test (maxout__takes_the_largest_of_each_pool),
    wide_test (linear__has_several_axes_of_rows),
    wide_test (bilinear__weighs_pairs_of_features),
    wide_test (highway__mixes_the_layer_with_its_input),
    wide_test (layer_normalization__takes_each_row_for_itself),
    wide_test (batch_normalization__takes_its_size_from_the_first_input),
    wide_test (group_normalization__takes_groups_of_channels),
    wide_test (negative_sampling__is_the_loss_of_its_samples),
    wide_test (convolution_1d__agrees_with_loops),
    wide_test (convolution_3d__agrees_with_loops),
    wide_test (convolution_nd__agrees_with_loops),
    wide_test (dilated_convolution_2d__agrees_with_loops),
    wide_test (depthwise_convolution_2d__has_filters_for_each_channel),
    wide_test (deconvolution_2d__transposes_a_convolution),
    wide_test (deconvolution_nd__transposes_a_convolution),
  };

  return cmocka_run_group_tests_name ("links-layers", tests, NULL, NULL);
}
