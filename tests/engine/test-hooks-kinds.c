/* The hooks that come with the engine: timers, memory, printing, and those that change a
 * weight.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdVar *
ramp (int n)
{
  return td_variable (td_arange (TD_F32, -1, n - 1, 1), "x");
}

static TdLink *
two_layers (void)
{
  TdLink *net = td_sequential_new ("net");

  td_linear_new (net, "l1", 3, 3, .initialW = td_init_constant (0.5));
  td_sequential_append (net, td_tanh);
  td_linear_new (net, "l2", 3, 2, .initialW = td_init_constant (2));
  return net;
}

/* --- measuring --- */

static TdHookRow
row_named (TdHook *hook, const char *name)
{
  for (int i = 0; i < td_hook_n_rows (hook); i++)
    if (strcmp (td_hook_row (hook, i).name, name) == 0)
      return td_hook_row (hook, i);
  fail_msg ("no row %s", name);
  return (TdHookRow){ .name = "" };
}

static void
timer__adds_up_operations_and_counts_nested_ones_once (void **state)
{
  TdHook *timer = td_timer_hook_new ();
  TdVar *x = td_variable (td_rand (TD_F32, TD_SHAPE (64, 64)), "x");
  TdHookTotals all;
  double sum = 0;

  (void)state;
  TD_WITH_HOOK (timer)
    for (int i = 0; i < 3; i++)
      td_backward (td_sum (td_tanh (x)), 0);
  assert_int_equal (row_named (timer, "Tanh").forward.n_calls, 3);
  assert_int_equal (row_named (timer, "Tanh").backward.n_calls, 3);
  assert_true (row_named (timer, "Tanh").forward.seconds > 0);
  assert_true (row_named (timer, "Tanh").backward.self_seconds
               < row_named (timer, "Tanh").backward.seconds);
  all = td_hook_totals (timer);
  for (int i = 0; i < td_hook_n_rows (timer); i++)
    sum += td_hook_row (timer, i).forward.self_seconds
           + td_hook_row (timer, i).backward.self_seconds;
  assert_true (fabs (sum - all.seconds) < 1e-9 + 1e-6 * sum);
  td_hook_clear (timer);
  assert_int_equal (td_hook_n_rows (timer), 0);
  td_hook_n_rows (td_print_hook_new ());
  assert_contains (said (TD_ERR_ARG), "PrintHook is no hook that measures");
}

static void
fq07__link_timer_profiles_each_layer_inclusive_and_exclusive (void **state)
{
  TdLink *net = two_layers ();
  TdHook *timer = td_link_timer_hook_new (), *memory = td_link_memory_hook_new ();
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (1, 3)), "x");
  TdHookRow whole, l1, l2;

  (void)state;
  td_hook_add (timer);
  td_hook_add (memory);
  td_backward (td_sum (td_link (net, x)), 0);
  whole = row_named (timer, "net");
  l1 = row_named (timer, "net/l1");
  l2 = row_named (timer, "net/l2");
  assert_int_equal (whole.backward.n_calls, 1);
  assert_true (fabs (whole.forward.seconds - whole.forward.self_seconds - l1.forward.seconds
                     - l2.forward.seconds)
               < 1e-9);
  assert_true (fabs (whole.backward.seconds - whole.backward.self_seconds - l1.backward.seconds
                     - l2.backward.seconds)
               < 1e-9);
  assert_true (l1.backward.seconds > 0 && l2.backward.seconds > 0);
  whole = row_named (memory, "net");
  l1 = row_named (memory, "net/l1");
  assert_true (l1.forward.used_bytes >= 12 && whole.forward.used_bytes >= 24);
  assert_int_equal (whole.forward.n_calls, 1);
}

static void
memory__says_what_each_operation_uses (void **state)
{
  TdHook *hook = td_memory_hook_new ();
  TdVar *x = td_rand (TD_F32, TD_SHAPE (1000, 1000));
  TdHookRow row;

  (void)state;
  TD_WITH_HOOK (hook)
    td_reshape (td_tanh (x), TD_SHAPE (1000000));
  row = row_named (hook, "Tanh");
  assert_true (row.forward.used_bytes >= 4000000 && row.forward.used_bytes < 4200000);
  assert_int_equal (row_named (hook, "Reshape").forward.used_bytes, 0);
  assert_true (td_hook_totals (hook).used_bytes == row.forward.used_bytes);
}

static void
print__writes_label_shapes_and_extent (void **state)
{
  TdHook *hook = td_print_hook_new ();
  const char *path = td_test_tmp ("printed");
  FILE *old = stdout, *file = fopen (path, "w");
  char *text;
  size_t n;

  (void)state;
  assert_non_null (file);
  stdout = file;
  TD_WITH_HOOK (hook)
    td_backward (td_sum (td_relu (ramp (4))), 0);
  stdout = old;
  fclose (file);
  text = td_test_read_file (path, &n);
  assert_contains (text, "function\tReLU\ninput data\n  x: (4) f32 mean 0.5 min -1 max 2\n"
                         "output data\n  (4) f32 mean 0.75 min 0 max 2\n");
  assert_contains (text, "output gradient\n  () f32 mean 1 min 1 max 1\n");
  assert_contains (text, "(removed)"); /* relu's input is not kept for backward */
  free (text);
}

/* --- hooks that change a weight --- */

static void
matrix_times (const double *W, int rows, int columns, const double *x, double *y,
              bool transposed)
{
  for (int i = 0; i < (transposed ? columns : rows); i++)
    {
      y[i] = 0;
      for (int j = 0; j < (transposed ? rows : columns); j++)
        y[i] += (transposed ? W[j * columns + i] : W[i * columns + j]) * x[j];
    }
}

static void
to_unit (double *v, int n)
{
  double norm = 0;

  for (int i = 0; i < n; i++)
    norm += v[i] * v[i];
  for (int i = 0; i < n; i++)
    v[i] /= sqrt (norm) + 1e-6;
}

/* Chainer's update_approximate_vectors and W / sigma, step by step in float64. */
static void
spectral_norm__follows_chainers_power_iteration (void **state)
{
  double W[12], u[4], v[3], wv[4], out[4], in[3] = { 1, 0, 0 }, sigma;
  TdLink *l;
  TdVar *x;
  TdHook *hook = td_spectral_normalization_new ();

  (void)state;
  td_config_set (dtype, TD_F64);
  l = td_linear_new (NULL, "l", 3, 4, .nobias = true);
  x = td_tensor (TD_F64, TD_SHAPE (1, 3), in);
  assert_int_equal (td_link_add_hook (l, hook), TD_OK);
  td_read (td_link_param (l, "W"), W, sizeof W);
  td_read (td_link_param (l, "W_u"), u, sizeof u);
  for (int step = 0; step < 60; step++)
    {
      TdVar *y = td_link (l, x);
      double got[4];

      matrix_times (W, 4, 3, u, v, true);
      to_unit (v, 3);
      matrix_times (W, 4, 3, v, u, false);
      to_unit (u, 4);
      matrix_times (W, 4, 3, v, wv, false);
      sigma = 0;
      for (int i = 0; i < 4; i++)
        sigma += u[i] * wv[i];
      matrix_times (W, 4, 3, in, out, false);
      td_read (y, got, sizeof got);
      for (int i = 0; i < 4; i++)
        assert_true (fabs (got[i] - out[i] / sigma) < 1e-12);
      td_read (td_link_param (l, "W_u"), got, sizeof got);
      for (int i = 0; i < 4; i++)
        assert_true (fabs (got[i] - u[i]) < 1e-12);
    }
  TD_USING (train, 0) /* u stands still */
    {
      td_read (td_link_param (l, "W_u"), wv, sizeof wv);
      td_link (l, x);
      td_read (td_link_param (l, "W_u"), out, sizeof out);
      assert_memory_equal (out, wv, sizeof wv);
    }
  td_config_set (dtype, TD_F32);
}

static void
spectral_norm__gamma_starts_at_the_largest_singular_value (void **state)
{
  static const float W[4] = { 3, 0, 0, 2 }, in[2] = { 1, 1 };
  TdLink *l = td_linear_new (NULL, "l", 2, 2, .nobias = true);
  TdHook *hook = td_spectral_normalization_new (.use_gamma = true, .n_power_iteration = 100);
  TdVar *y;
  float got[2];

  (void)state;
  td_write (td_link_param (l, "W"), W, sizeof W);
  td_link_add_hook (l, hook);
  assert_true (fabs (td_item (td_link_param (l, "gamma")) - 3) < 1e-6);
  y = td_link (l, td_tensor (TD_F32, TD_SHAPE (1, 2), in));
  td_read (y, got, sizeof got);
  assert_true (fabsf (got[0] - 3) < 1e-4f && fabsf (got[1] - 2) < 1e-4f);
  td_backward (td_sum (y), 0);
  assert_non_null (td_grad (td_link_param (l, "gamma")));
  assert_non_null (td_grad (td_link_param (l, "W"))); /* the parameter is itself again */
  td_hook_free (hook);
  td_link_param (l, "gamma");
  assert_contains (said (TD_ERR_ARG), "l has no parameter gamma");
}

static void
spectral_norm__waits_for_a_lazy_weight (void **state)
{
  TdLink *c = td_convolution_2d_new (NULL, "c", TD_INFER, 5, 3);
  TdHook *hook = td_spectral_normalization_new ();

  (void)state;
  assert_int_equal (td_link_add_hook (c, hook), TD_OK);
  td_link (c, td_rand (TD_F32, TD_SHAPE (1, 2, 4, 4)));
  assert_int_equal (td_size (td_link_param (c, "W_u")), 5);
  td_link_add_hook (td_linear_new (NULL, "l", 2, 2),
                    td_spectral_normalization_new (.weight_name = "V"));
  assert_contains (said (TD_ERR_ARG), "l has no parameter V");
  td_spectral_normalization_new (.n_power_iteration = 0);
  assert_contains (said (TD_ERR_ARG), "n_power_iteration");
  td_hook_add (td_spectral_normalization_new ());
  assert_contains (said (TD_ERR_ARG), "it is for one link");
}

static void
weight_standardization__gives_each_row_mean_0_and_variance_1 (void **state)
{
  static const float W[6] = { 1, 2, 6, -4, 0, 1 }, unit[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
  TdLink *l = td_linear_new (NULL, "l", 3, 2, .nobias = true);
  float got[6], stored[6];

  (void)state;
  td_write (td_link_param (l, "W"), W, sizeof W);
  td_link_add_hook (l, td_weight_standardization_new (.eps = 1e-3));
  td_read (td_link (l, td_tensor (TD_F32, TD_SHAPE (3, 3), unit)), got, sizeof got);
  for (int i = 0; i < 2; i++)
    {
      double mean = 0, variance = 0;

      for (int j = 0; j < 3; j++)
        mean += (double)W[3 * i + j] / 3;
      for (int j = 0; j < 3; j++)
        variance += pow ((double)W[3 * i + j] - mean, 2) / 3;
      for (int j = 0; j < 3; j++)
        assert_true (fabs ((double)got[2 * j + i]
                           - ((double)W[3 * i + j] - mean) / sqrt (variance + 1e-3))
                     < 1e-6);
    }
  td_read (td_link_param (l, "W"), stored, sizeof stored);
  assert_memory_equal (stored, W, sizeof W);
}

/* Inputs, and the weight under its hook.  Where the power iteration has arrived, u and v move
 * nothing in first order, so that the gradient with both held still is the difference. */
static void
spectral_norm__has_gradients_of_inputs_and_weights (void **state)
{
  const int n = td_test_on_cpu () ? 2 : 1; /* a fake driver's launches are dear */
  TdLink *b;
  TdVar *y;

  (void)state;
  td_config_set (dtype, TD_F64);
  b = td_convolution_2d_new (NULL, "b", 1, n, 2);
  y = wide (TD_SHAPE (1, 1, n + 1, n + 1), 2);
  td_link_add_hook (b, td_spectral_normalization_new (.n_power_iteration = 200, .eps = 1e-12,
                                                      .use_gamma = true));
  td_link (b, y);
  TD_USING (train, 0)
    check_gradients (b, plain_call, &y, 1, 1);
  td_config_set (dtype, TD_F32);
}

static void
weight_standardization__has_gradients_of_inputs_and_weights (void **state)
{
  TdLink *a;
  TdVar *x;

  (void)state;
  td_config_set (dtype, TD_F64);
  a = td_linear_new (NULL, "a", 3, 2);
  x = wide (TD_SHAPE (2, 3), 1);
  td_link_add_hook (a, td_weight_standardization_new ());
  TD_USING (train, 0)
    check_gradients (a, plain_call, &x, 1, 1);
  td_config_set (dtype, TD_F32);
}

int
main (int argc, char **argv)
{
  struct CMUnitTest tests[] = {
    engine_test (timer__adds_up_operations_and_counts_nested_ones_once),
    engine_test (fq07__link_timer_profiles_each_layer_inclusive_and_exclusive),
    engine_test (memory__says_what_each_operation_uses),
    engine_test (print__writes_label_shapes_and_extent),
    engine_test (spectral_norm__follows_chainers_power_iteration),
    engine_test (spectral_norm__gamma_starts_at_the_largest_singular_value),
    engine_test (spectral_norm__waits_for_a_lazy_weight),
    engine_test (weight_standardization__gives_each_row_mean_0_and_variance_1),
    engine_test (spectral_norm__has_gradients_of_inputs_and_weights),
    engine_test (weight_standardization__has_gradients_of_inputs_and_weights),
  };

  return _cmocka_run_group_tests (
      "hooks-kinds", tests, fixture_part (tests, sizeof tests / sizeof tests[0], argc, argv),
      NULL, NULL);
}
