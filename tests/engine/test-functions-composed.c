/* Functions by their public names and named options, as a model calls them: what options mean,
 * what noise is distributed like, and what the rows of op-cases-*.c cannot say.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "td-test.h"

#include <math.h>
#include <string.h>

static int
setup (void **state)
{
  if (td_init (NULL, NULL) != TD_OK)
    return -1;
  td_set_seed (3);
  return 0;
}

static int
teardown (void **state)
{
  return td_finish ();
}

static TdVar *
floats (int64_t n, const float *values)
{
  return td_tensor (TD_F32, TD_SHAPE (n), values);
}

static TdVar *
ints (int64_t n, const int32_t *values)
{
  return td_tensor (TD_I32, TD_SHAPE (n), values);
}

#define assert_near(v, want, tolerance) assert_true (fabs (td_item (v) - (want)) <= (tolerance))

/* Take the error that a call made. */
static void
assert_said (TdStatus status, const char *part)
{
  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, status);
  assert_contains (td_error ()->message, part);
  td_error_clear ();
}

/* --- no rows --- */

/* Chainer divides by the rows that count, or 1.  First of all tests: the place for the losses
 * of the rows is not there yet. */
static void
softmax_cross_entropy__of_no_rows_is_0 (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (0, 4)), "x"),
            *t = td_zeros (TD_I32, TD_SHAPE (0)), *loss = td_softmax_cross_entropy (x, t);

      assert_null (td_error ());
      assert_true (td_item (loss) == 0);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      assert_int_equal (td_size (td_grad (x)), 0);
      assert_int_equal (td_size (td_softmax_cross_entropy (x, t, .reduce = "no")), 0);
    }
}

/* --- options --- */

static void
options__have_chainers_defaults (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_full (TD_F64, TD_SHAPE (1), -1);

      assert_near (td_sum (td_leaky_relu (x)), -0.2, 1e-15);
      assert_near (td_sum (td_leaky_relu (x, .slope = 0.5)), -0.5, 1e-15);
      assert_near (td_sum (td_elu (x)), expm1 (-1), 1e-15);
      assert_near (td_sum (td_elu (x, .alpha = 2)), 2 * expm1 (-1), 1e-15);
      assert_near (td_sum (td_softplus (x, .beta = 2)), log1p (exp (-2)) / 2, 1e-15);
      assert_near (td_sum (td_clipped_relu (td_mul_scalar (x, -99))), 20, 0);
      assert_near (td_sum (td_gelu (x)), -0.15865525393145707, 1e-15);
      assert_near (td_sum (td_gelu (x, .approximate = true)), -0.15880800939172324, 1e-14);
      assert_near (td_sum (td_selu (x)), -1.1113307378125625, 1e-14);
    }
}

static TdLink *
with (TdVar *(*f) (TdVar *x))
{
  return td_sequential_append (td_sequential_new ("s"), f);
}

/* A name without parentheses is a function of one variable. */
static void
activations__can_be_handed_to_a_sequence (void **state)
{
  static TdVar *(*const functions[]) (TdVar * x)
      = { td_elu,  td_leaky_relu, td_softplus, td_gelu,         td_selu, td_clipped_relu,
          td_silu, td_relu6,      td_erf,      td_hard_sigmoid, td_sign, td_identity };

  TD_SCOPE ("test")
    for (int i = 0; i < (int)(sizeof functions / sizeof functions[0]); i++)
      {
        TdLink *s = with (functions[i]);
        TdVar *x = td_full (TD_F32, TD_SHAPE (2), -0.5);

        assert_true (td_item (td_sum (td_link (s, x))) == td_item (td_sum (functions[i](x))));
        td_link_free (s);
      }
}

static void
reductions__are_words_and_wrong_ones_are_named (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *a = td_ones (TD_F64, TD_SHAPE (2, 3)), *b = td_zeros (TD_F64, TD_SHAPE (2, 3));
      TdShape rows;

      assert_near (td_bernoulli_nll (a, b), 6 * log (2), 1e-14);
      assert_near (td_bernoulli_nll (a, b, .reduce = "mean"), log (2), 1e-14);
      assert_near (td_gaussian_kl_divergence (a, b), 3, 1e-14);
      assert_near (td_gaussian_nll (a, b, b, .reduce = "mean"), 0.5 + log (2 * M_PI) / 2,
                   1e-14);
      rows = td_shape (td_huber_loss (a, b, 0.5));
      assert_true (rows.ndim == 1 && rows.dim[0] == 2);
      rows = td_shape (td_huber_loss (a, b, 0.5, .reduce = "no"));
      assert_int_equal (rows.ndim, 2);
      assert_true (td_poisoned (td_huber_loss (a, b, 0.5, .reduce = "sum")));
      assert_said (TD_ERR_ARG, "huber_loss: reduce is sum_along_second_axis or no, got 'sum'");
    }
}

static void
labels__out_of_range_are_named_with_their_place (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_zeros (TD_F32, TD_SHAPE (3)), *t = ints (3, (const int32_t[]){ 1, 0, 2 });
      TdVar *rows = td_zeros (TD_F32, TD_SHAPE (3, 2));

      assert_true (td_poisoned (td_sigmoid_cross_entropy (x, t)));
      assert_said (TD_ERR_ARG,
                   "sigmoid_cross_entropy: 0 <= t[i] < 2 expected, got 2 at element 2");
      assert_true (td_poisoned (td_hinge (rows, t)));
      assert_said (TD_ERR_ARG, "hinge: 0 <= t[i] < 2 expected, got 2 at element 2");
    }
}

/* All labels left out: nothing is divided by nothing. */
static void
sigmoid_cross_entropy__of_ignored_labels_alone_is_0 (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_full (TD_F32, TD_SHAPE (2), NAN), "x");
      TdVar *t = ints (2, (const int32_t[]){ -1, -1 });
      TdVar *loss = td_sigmoid_cross_entropy (x, t);
      float g[2];

      assert_near (loss, 0, 0);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      assert_int_equal (td_read (td_grad (x), g, sizeof g), TD_OK);
      assert_true (g[0] == 0 && g[1] == 0);
    }
}

static void
sigmoid_cross_entropy__does_not_overflow (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = floats (4, (const float[]){ 500, -500, 500, -500 });
      TdVar *t = ints (4, (const int32_t[]){ 1, 0, 0, 1 });
      TdVar *loss = td_sigmoid_cross_entropy (x, t, .reduce = "no");
      float l[4];

      assert_int_equal (td_read (loss, l, sizeof l), TD_OK);
      assert_true (l[0] == 0 && l[1] == 0 && l[2] == 500 && l[3] == 500);
    }
}

/* --- scores --- */

static const float rows[] = { 1, 2, 3, 5, 4, 0, 0, 0, 9, 7, 6, 5 }; /* 2, 0, 2, 0 */

static void
accuracy__leaves_a_label_out (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *y = td_tensor (TD_F32, TD_SHAPE (4, 3), rows);
      TdVar *t = ints (4, (const int32_t[]){ 2, 1, 2, -1 });

      assert_near (td_accuracy (y, t), 0.5, 0);
      assert_near (td_accuracy (y, t, .ignore_label = -1), 2 / 3.0, 1e-7);
      assert_near (td_accuracy (y, t, .ignore_label = 2), 0, 0);
      t = ints (4, (const int32_t[]){ 1, 1, 1, 1 });
      assert_near (td_accuracy (y, t, .ignore_label = 1), 0, 0);
    }
}

static void
classification_summary__counts_rows_of_each_label (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *y = td_tensor (TD_F32, TD_SHAPE (4, 3), rows), *out[4], *support;
      TdVar *t = ints (4, (const int32_t[]){ 2, 1, 2, -1 });
      float p[3], r[3], f[3];
      int32_t n[3];

      assert_int_equal (td_classification_summary (y, t, out), TD_OK);
      assert_int_equal (td_size (out[0]), 3); /* up to the label 2 */
      td_read (out[0], p, sizeof p);
      td_read (out[1], r, sizeof r);
      td_read (out[2], f, sizeof f);
      td_read (out[3], n, sizeof n);
      assert_true (p[0] == 0 && isnan (p[1]) && p[2] == 1);
      assert_true (isnan (r[0]) && r[1] == 0 && r[2] == 1);
      assert_true (isnan (f[0]) && isnan (f[1]) && f[2] == 1);
      assert_true (n[0] == 0 && n[1] == 1 && n[2] == 2);
      assert_int_equal (td_size (td_recall (y, t, .label_num = 5, .support = &support)), 5);
      assert_int_equal (td_size (support), 5);
      assert_int_equal (td_size (td_f1_score (y, t)), 3);
    }
}

/* --- along axes --- */

static void
argmin__finds_the_first_of_the_smallest_and_nan (void **state)
{
  TD_SCOPE ("test")
    {
      const float values[] = { 3, 1, 2, 1, 5, NAN, -9, NAN };
      int32_t at[2];

      td_read (td_argmin (td_tensor (TD_F32, TD_SHAPE (2, 4), values), 1), at, sizeof at);
      assert_true (at[0] == 1 && at[1] == 1);
    }
}

/* More neighbours than are walked together, more sums than one thread takes; integers wrap. */
static void
cumsum__sums_long_and_wide_arrays (void **state)
{
  enum
  {
    ROWS = 700,
    COLUMNS = 150
  };
  static float x[ROWS * COLUMNS], down[ROWS * COLUMNS], right[ROWS * COLUMNS];
  int32_t wrapped[2];

  TD_SCOPE ("test")
    {
      TdVar *v = td_rand (TD_F32, TD_SHAPE (ROWS, COLUMNS));

      td_read (v, x, sizeof x);
      td_read (td_cumsum (v, 0), down, sizeof down);
      td_read (td_cumsum (v, 1), right, sizeof right);
      td_read (td_cumsum (ints (2, (const int32_t[]){ INT32_MAX, 1 }), 0), wrapped,
               sizeof wrapped);
    }
  for (int k = 0; k < COLUMNS; k++)
    {
      double total = 0;

      for (int i = 0; i < ROWS; i++)
        assert_true (down[i * COLUMNS + k] == (float)(total += (double)x[i * COLUMNS + k]));
    }
  for (int i = 0; i < ROWS; i++)
    {
      double total = 0;

      for (int k = 0; k < COLUMNS; k++)
        assert_true (right[i * COLUMNS + k] == (float)(total += (double)x[i * COLUMNS + k]));
    }
  assert_true (wrapped[1] == INT32_MIN);
}

static void
einsum__sums_integers_where_nothing_is_multiplied (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_tensor (TD_I32, TD_SHAPE (2, 2), (const int32_t[]){ 1, 2, 3, 4 });
      int32_t sums[2];

      td_read (td_einsum ("ij->j", &x, 1), sums, sizeof sums);
      assert_true (sums[0] == 4 && sums[1] == 6);
    }
}

/* --- noise --- */

static void
moments (TdVar *v, double *mean, double *variance)
{
  *mean = td_mean_of (v);
  *variance = td_mean_of (td_square (v)) - *mean * *mean;
}

static void
gaussian__has_the_mean_and_variance_that_are_asked_for (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *mean = td_full (TD_F32, TD_SHAPE (100000), 3);
      TdVar *ln_var = td_full (TD_F32, TD_SHAPE (100000), log (4)), *eps;
      TdVar *y = td_gaussian (mean, ln_var, .return_eps = &eps);
      double m, v;

      moments (y, &m, &v);
      assert_true (fabs (m - 3) < 5 * 2 / sqrt (1e5));
      assert_true (fabs (v - 4) < 5 * 4 * sqrt (2 / 1e5));
      moments (eps, &m, &v);
      assert_true (fabs (m) < 5 / sqrt (1e5) && fabs (v - 1) < 5 * sqrt (2 / 1e5));
      /* The same numbers give the same sample, the next call others. */
      assert_true (
          td_item (td_sum (td_absolute (td_sub (y, td_gaussian (mean, ln_var, .eps = eps)))))
          == 0);
      assert_true (td_item (td_sum (td_absolute (td_sub (y, td_gaussian (mean, ln_var)))))
                   > 1e5);
    }
}

/* By the Gumbel-max trick the largest place is drawn by its probability. */
static void
gumbel_softmax__picks_places_by_their_probability (void **state)
{
  enum
  {
    N = 40000
  };
  static const double p[] = { 0.1, 0.2, 0.7 };
  static int32_t picked[N];
  int count[3] = { 0 };

  TD_SCOPE ("test")
    {
      TdVar *log_pi
          = td_broadcast_to (td_tensor (TD_F64, TD_SHAPE (1, 3),
                                        (const double[]){ log (0.1), log (0.2), log (0.7) }),
                             TD_SHAPE (N, 3));
      TdVar *y = td_gumbel_softmax (log_pi, .tau = 0.5);

      assert_near (td_sum (y), N, 1e-6);
      td_read (td_argmax (y, 1), picked, sizeof picked);
    }
  for (int i = 0; i < N; i++)
    count[picked[i]]++;
  for (int k = 0; k < 3; k++)
    assert_true (fabs (count[k] - N * p[k]) < 5 * sqrt (N * p[k] * (1 - p[k])));
}

static void
dropout__gives_and_takes_its_mask (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_randn (TD_F32, TD_SHAPE (1000)), "x"), *mask, *y, *again;
      float m[1000], g[1000];
      int zeros = 0;

      y = td_dropout (x, 0.25, .return_mask = &mask);
      again = td_dropout (x, 0.25, .mask = mask);
      assert_near (td_sum (td_absolute (td_sub (y, again))), 0, 0);
      td_read (mask, m, sizeof m);
      for (int i = 0; i < 1000; i++)
        {
          assert_true (m[i] == 0 || fabsf (m[i] - 4 / 3.0f) < 1e-6f);
          zeros += m[i] == 0;
        }
      assert_true (zeros > 250 - 5 * 14 && zeros < 250 + 5 * 14);
      td_backward (td_sum (y), 0);
      td_read (td_grad (x), g, sizeof g);
      assert_memory_equal (g, m, sizeof m);
      TD_USING (train, 0)
        {
          assert_ptr_equal (td_dropout (x, 0.25, .return_mask = &mask), x);
          assert_null (mask);
        }
    }
}

static void
walker_alias__draws_by_weight (void **state)
{
  enum
  {
    N = 50000
  };
  static const double weights[] = { 3, 0, 1, 4, 2 };
  static int32_t drawn[N];
  TdWalkerAlias *alias = td_walker_alias_new (weights, 5);
  int count[5] = { 0 };

  assert_non_null (alias);
  TD_SCOPE ("test")
    td_read (td_walker_alias_sample (alias, TD_SHAPE (N / 5, 5)), drawn, sizeof drawn);
  td_walker_alias_free (alias);
  for (int i = 0; i < N; i++)
    {
      assert_in_range (drawn[i], 0, 4);
      count[drawn[i]]++;
    }
  assert_int_equal (count[1], 0);
  for (int k = 0; k < 5; k++)
    {
      const double p = weights[k] / 10;

      assert_true (fabs (count[k] - N * p) <= 5 * sqrt (N * p * (1 - p)));
    }
  assert_null (td_walker_alias_new ((const double[]){ 1, -1 }, 2));
  assert_said (TD_ERR_ARG, "walker_alias: weights that are not negative");
}

/* Words that are left out leave no trace, and others pull their vector along. */
static void
negative_sampling__trains_the_words_that_count (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (2, 3)), "x");
      TdVar *W = td_variable (td_zeros (TD_F32, TD_SHAPE (4, 3)), "W");
      TdVar *t = ints (2, (const int32_t[]){ 1, -1 });
      TdVar *samples = td_tensor (TD_I32, TD_SHAPE (2, 1), (const int32_t[]){ 2, 3 });
      TdVar *loss = td_negative_sampling (x, t, W, samples);
      float g[12];

      assert_near (loss, 2 * log (2), 1e-6);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      td_read (td_grad (W), g, sizeof g);
      for (int d = 0; d < 3; d++)
        assert_true (g[d] == 0 && g[3 + d] == -0.5f && g[6 + d] == 0.5f && g[9 + d] == 0);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (softmax_cross_entropy__of_no_rows_is_0, setup, teardown),
    cmocka_unit_test_setup_teardown (options__have_chainers_defaults, setup, teardown),
    cmocka_unit_test_setup_teardown (activations__can_be_handed_to_a_sequence, setup, teardown),
    cmocka_unit_test_setup_teardown (reductions__are_words_and_wrong_ones_are_named, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (labels__out_of_range_are_named_with_their_place, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (sigmoid_cross_entropy__of_ignored_labels_alone_is_0, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (sigmoid_cross_entropy__does_not_overflow, setup, teardown),
    cmocka_unit_test_setup_teardown (accuracy__leaves_a_label_out, setup, teardown),
    cmocka_unit_test_setup_teardown (classification_summary__counts_rows_of_each_label, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (argmin__finds_the_first_of_the_smallest_and_nan, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (cumsum__sums_long_and_wide_arrays, setup, teardown),
    cmocka_unit_test_setup_teardown (einsum__sums_integers_where_nothing_is_multiplied, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (gaussian__has_the_mean_and_variance_that_are_asked_for,
                                     setup, teardown),
    cmocka_unit_test_setup_teardown (gumbel_softmax__picks_places_by_their_probability, setup,
                                     teardown),
    cmocka_unit_test_setup_teardown (dropout__gives_and_takes_its_mask, setup, teardown),
    cmocka_unit_test_setup_teardown (walker_alias__draws_by_weight, setup, teardown),
    cmocka_unit_test_setup_teardown (negative_sampling__trains_the_words_that_count, setup,
                                     teardown),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
