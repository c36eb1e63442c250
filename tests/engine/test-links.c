/* Links: the tree and its names, lazy sizes, initialisers, calls as scopes, recurrent state.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "start.h"

/* All numbers of a float32 array. */
static float *
values (TdVar *v)
{
  static float room[1 << 18];

  assert_true (td_size (v) <= 1 << 18);
  assert_int_equal (td_read (v, room, (size_t)td_size (v) * sizeof *room), TD_OK);
  return room;
}

static bool
has_shape (TdVar *v, TdShape shape)
{
  TdShape s = td_shape (v);
  bool same = s.ndim == shape.ndim;

  for (int i = 0; i < s.ndim && same; i++)
    same = s.dim[i] == shape.dim[i];
  return same;
}

/* --- the tree --- */

static void
path__has_no_leading_slash_and_numbers_equal_roots (void **state)
{
  TdLink *a = td_chain_new ("mlp"), *b = td_chain_new ("mlp"), *l1;

  (void)state;
  l1 = td_linear_new (td_chain_new (b, "block"), "l1", 2, 3);
  assert_string_equal (td_link_path (a), "mlp");
  assert_string_equal (td_link_path (b), "mlp#2");
  assert_string_equal (td_link_path (l1), "mlp#2/block/l1");
  td_link_free (a);
  assert_string_equal (td_link_path (td_chain_new ("mlp")), "mlp");
}

static void
names__are_checked_where_they_are_given (void **state)
{
  TdLink *m = td_chain_new ("m");

  (void)state;
  td_linear_new (m, "l1", 2, 3);
  td_linear_new (m, "l1", 2, 3);
  assert_contains (said (TD_ERR_ARG), "m has a l1 already");
  td_linear_new (m, "a/b", 2, 3);
  assert_contains (said (TD_ERR_ARG), "without '/'");
  td_linear_new (m, NULL, 2, 3);
  assert_contains (said (TD_ERR_ARG), "(null)");
  td_link_param (m, "l1/V");
  assert_contains (said (TD_ERR_ARG), "m has no parameter l1/V");
  td_link_child (m, "l9");
  assert_contains (said (TD_ERR_ARG), "m has no child l9");
  assert_int_equal (td_link_n_children (m), 1);
}

static void
constructor__returns_an_inert_link_never_null (void **state)
{
  TdLink *bad = td_linear_new (NULL, "l", 3, -4);
  TdVar *y;

  (void)state;
  assert_non_null (bad);
  assert_contains (said (TD_ERR_ARG), "sizes in 3 and out -4");
  y = td_link (bad, td_zeros (TD_F32, TD_SHAPE (2, 3)));
  assert_true (td_poisoned (y));
  assert_contains (said (TD_ERR_STATE), "inert");
  td_linear_new (bad, "below", 2, 3);
  assert_contains (said (TD_ERR_STATE), "inert");
  assert_string_equal (td_link_name (bad), "inert");
  td_link_free (bad);
  td_convolution_2d_new (NULL, "c", 3, 4, 3, .groups = 2);
  assert_contains (said (TD_ERR_ARG), "groups 2 make no convolution");
}

static void
collect_key (const char *path, TdVar *param, void *user)
{
  (void)param;
  strcat (strcat (user, path), " ");
}

static void
params__have_keys_without_the_root (void **state)
{
  TdLink *m = td_chain_new ("net"), *block = td_chain_new (m, "block");
  char keys[200] = "";

  (void)state;
  td_linear_new (block, "l1", 2, 3);
  td_batch_normalization_new (m, "bn", 3);
  td_linear_new (m, "lazy", TD_INFER, 3, .nobias = true);
  td_link_each_param (m, collect_key, keys);
  assert_string_equal (keys, "block/l1/W block/l1/b bn/gamma bn/beta ");
  assert_int_equal (td_link_count_params (m), 6 + 3 + 3 + 3);
  assert_int_equal (td_dtype (td_link_param (m, "bn/N")), TD_I64);
}

static void
free__gives_everything_back (void **state)
{
  TdMemInfo before = td_mem_info (NULL), after;
  TdLink *m = td_sequential_new ("m");

  (void)state;
  td_lstm_new (td_chain_new (m, "c"), "lstm", 8, 8);
  td_convolution_2d_new (m, "conv", 3, 4, 3);
  td_batch_normalization_new (m, "bn", 3);
  assert_true (td_mem_info (NULL).category_bytes[TD_MEM_PARAMETER]
               > before.category_bytes[TD_MEM_PARAMETER]);
  td_link_free (td_link_child (m, "c"));
  td_link_free (m);
  after = td_mem_info (NULL);
  assert_int_equal (after.live_bytes, before.live_bytes);
  assert_int_equal (after.live_vars, before.live_vars);
}

static void
copy__has_its_own_equal_parameters (void **state)
{
  TdLink *m = td_sequential_new ("m"), *copy;
  TdVar *x = td_rand (TD_F32, TD_SHAPE (2, 3)), *y, *z;
  float zeros[6] = { 0 }, before[4];

  (void)state;
  td_linear_new (m, "l", 3, 2);
  td_sequential_append (m, td_tanh);
  copy = td_link_copy (m);
  assert_string_equal (td_link_path (copy), "m#2");
  y = td_link (m, x);
  memcpy (before, values (y), sizeof before);
  td_write (td_link_param (m, "l/W"), zeros, sizeof zeros);
  z = td_link (copy, x);
  assert_memory_equal (values (z), before, sizeof before);
}

/* --- lazy sizes --- */

static void
linear__takes_its_size_from_the_first_input (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", TD_INFER, 5);
  TdVar *y;

  (void)state;
  assert_null (td_link_param (l, "W"));
  assert_null (td_error ());
  y = td_link (l, td_rand (TD_F32, TD_SHAPE (3, 2, 2)));
  assert_true (has_shape (td_link_param (l, "W"), TD_SHAPE (5, 4)));
  assert_true (has_shape (y, TD_SHAPE (3, 5)));
  td_link (l, td_rand (TD_F32, TD_SHAPE (3, 7)));
  assert_contains (said (TD_ERR_SHAPE), "(l, ");
}

static void
lazy_links__stay_waiting_when_their_input_is_bad (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", TD_INFER, 5);
  TdLink *c = td_convolution_2d_new (NULL, "c", TD_INFER, 4, 3);
  TdVar *poison = td_matmul (td_zeros (TD_F32, TD_SHAPE (2, 3)),
                             td_zeros (TD_F32, TD_SHAPE (2, 3)), false, false);

  (void)state;
  td_error_clear ();
  assert_true (td_poisoned (td_link (l, poison)));
  assert_null (td_link_param (l, "W"));
  assert_true (td_poisoned (td_link (l, td_zeros (TD_F32, TD_SHAPE (3)))));
  assert_contains (said (TD_ERR_SHAPE), "x with two or more axes expected, got (3)");
  assert_true (td_poisoned (td_link (c, td_zeros (TD_F32, TD_SHAPE (3, 4)))));
  assert_contains (said (TD_ERR_SHAPE), "got (3, 4)");
  assert_null (td_link_param (c, "W"));
}

static void
convolution__takes_its_channels_from_the_first_input (void **state)
{
  TdLink *c = td_convolution_2d_new (NULL, "c", TD_INFER, 6, 5, .pad = { 2, 2 });
  TdVar *y = td_link (c, td_rand (TD_F32, TD_SHAPE (2, 3, 8, 8)));

  (void)state;
  assert_true (has_shape (td_link_param (c, "W"), TD_SHAPE (6, 3, 5, 5)));
  assert_true (has_shape (td_link_param (c, "b"), TD_SHAPE (6)));
  assert_true (has_shape (y, TD_SHAPE (2, 6, 8, 8)));
}

/* --- initialisers: mean, deviation and bounds of 65,536 numbers --- */

static void
check_draw (const char *name, TdInit init, double deviation, double bound)
{
  TdLink *m = td_chain_new (name);
  TdVar *W = td_link_add_param (m, "W", TD_SHAPE (64, 16, 8, 8), .initializer = init);
  int n = 64 * 16 * 8 * 8;
  const float *w = values (W);
  double sum = 0, squares = 0, most = 0;

  for (int i = 0; i < n; i++)
    {
      sum += (double)w[i];
      squares += (double)w[i] * (double)w[i];
      most = fmax (most, fabs ((double)w[i]));
    }
  if (fabs (sum / n) > 0.02 * deviation || fabs (sqrt (squares / n) / deviation - 1) > 0.02)
    fail_msg ("%s: mean %g, deviation %g, %g expected", name, sum / n, sqrt (squares / n),
              deviation);
  if (bound > 0 && (most > bound || most < 0.999 * bound))
    fail_msg ("%s: largest %g, %g expected", name, most, bound);
}

static void
init__draws_with_chainers_fans (void **state)
{
  const double in = 16 * 64, out = 64 * 64, third = sqrt (1. / 3);

  (void)state;
  check_draw ("normal", td_init_normal (0.05), 0.05, 0);
  check_draw ("lecun_normal", td_init_lecun_normal (), sqrt (1 / in), 0);
  check_draw ("glorot_normal", td_init_glorot_normal (), sqrt (2 / (in + out)), 0);
  check_draw ("he_normal", td_init_he_normal (), sqrt (2 / in), 0);
  check_draw ("scaled", td_init_scaled (td_init_he_normal (), 3), 3 * sqrt (2 / in), 0);
  check_draw ("uniform", td_init_uniform (0.2), 0.2 * third, 0.2);
  check_draw ("lecun_uniform", td_init_lecun_uniform (), sqrt (3 / in) * third, sqrt (3 / in));
  check_draw ("glorot_uniform", td_init_glorot_uniform (), sqrt (6 / (in + out)) * third,
              sqrt (6 / (in + out)));
  check_draw ("he_uniform", td_init_he_uniform (), sqrt (6 / in) * third, sqrt (6 / in));
}

static void
init__fills_what_is_not_random (void **state)
{
  TdLink *m = td_chain_new ("m");
  TdVar *I = td_link_add_param (m, "I", TD_SHAPE (3, 3), .initializer = td_init_identity ());
  TdVar *Q = td_link_add_param (m, "Q", TD_SHAPE (3, 5), .initializer = td_init_orthogonal ());
  TdVar *U = td_link_add_param (m, "U", TD_SHAPE (2, 2, 4, 4),
                                .initializer = td_init_upsampling_deconv_filter ());
  const float *v = values (I);

  (void)state;
  for (int i = 0; i < 9; i++)
    assert_true (v[i] == (i % 4 == 0 ? 1.0f : 0.0f));
  v = values (Q);
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++)
      {
        double dot = 0;

        for (int j = 0; j < 5; j++)
          dot += (double)v[5 * i + j] * (double)v[5 * k + j];
        assert_true (fabs (dot - (i == k ? 1.21 : 0)) < 1e-6);
      }
  v = values (U); /* 1/4 3/4 3/4 1/4, outer product, on the diagonal of channels */
  assert_true (v[0] == 0.0625f && v[5] == 0.5625f && v[16] == 0 && v[48] == 0.0625f);
  assert_true (
      isnan (td_item (td_link_add_param (m, "n", TD_SCALAR, .initializer = td_init_nan ()))));
}

static void
init__refuses_shapes_without_fans (void **state)
{
  TdLink *m = td_chain_new ("m");

  (void)state;
  td_link_add_param (m, "a", TD_SHAPE (3), .initializer = td_init_he_normal ());
  assert_contains (said (TD_ERR_SHAPE), "two or more axes expected");
  td_link_add_param (m, "b", TD_SHAPE (3, 4), .initializer = td_init_identity ());
  assert_contains (said (TD_ERR_SHAPE), "square matrix, got (3, 4)");
}

static void
init__is_repeated_by_the_seed (void **state)
{
  float first[6];

  (void)state;
  td_set_seed (5);
  memcpy (first, values (td_link_param (td_linear_new (NULL, "a", 3, 2), "W")), sizeof first);
  td_set_seed (5);
  assert_memory_equal (values (td_link_param (td_linear_new (NULL, "b", 3, 2), "W")), first,
                       sizeof first);
}

/* --- calls --- */

static TdStatus
three_steps (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  int *calls = self;

  (void)link, (void)n_in, (void)n_out;
  ++*calls;
  out[0] = td_tanh (td_tanh (td_tanh (in[0])));
  return TD_OK;
}

static const TdLinkClass three_class = { .size = sizeof (TdLinkClass),
                                         .name = "Three",
                                         .self_bytes = sizeof (int),
                                         .forward = three_steps };

static void
call__lets_inner_temporaries_die_with_it (void **state)
{
  TdLink *l = td_link_define (&three_class);
  TdVar *x = td_rand (TD_F32, TD_SHAPE (4)), *y;
  int64_t before = td_mem_info (NULL).live_vars;

  (void)state;
  TD_NO_BACKPROP
    y = td_link (l, x);
  assert_int_equal (td_mem_info (NULL).live_vars, before + 1);
  assert_false (td_poisoned (y));
  assert_int_equal (*(int *)td_link_self (l), 1);
}

static TdStatus
pool (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)link, (void)self, (void)n_in, (void)n_out;
  out[0] = td_max_pooling_2d (in[0], .ksize = { 2, 2 });
  return TD_OK;
}

static const TdLinkClass pool_class
    = { .size = sizeof (TdLinkClass), .name = "Pool", .forward = pool };

/* The places of the largest elements are a second output, whose handle dies with the call. */
static void
call__keeps_what_backward_needs_of_dead_outputs (void **state)
{
  static const float rows[4] = { 1, 4, 2, 3 };
  TdLink *l = td_link_define (&pool_class);
  TdMemInfo before = td_mem_info (NULL), after;

  (void)state;
  TD_SCOPE ("once")
    {
      TdVar *x = td_variable (td_tensor (TD_F32, TD_SHAPE (1, 1, 2, 2), rows), "x");
      TdVar *y = td_link (l, x), *gx = NULL, *ggx = NULL,
            *z = td_sum (td_mul (y, td_mul (y, y)));
      const float *v;

      for (int i = 0; i < 2; i++) /* the graph stays: twice is possible, and adds up */
        assert_int_equal (td_backward (z, 0), TD_OK);
      v = values (td_grad (x));
      assert_true (v[0] == 0 && v[1] == 2 * 3 * 16 && v[2] == 0 && v[3] == 0);
      assert_int_equal (td_grad_of (&z, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &gx), TD_OK);
      z = td_sum (gx);
      assert_int_equal (td_grad_of (&z, 1, &x, 1, NULL, 0, &ggx), TD_OK);
      v = values (ggx);
      assert_true (v[0] == 0 && v[1] == 6 * 4);
    }
  after = td_mem_info (NULL);
  assert_int_equal (after.live_vars, before.live_vars);
  assert_int_equal (after.live_nodes, before.live_nodes);
  assert_int_equal (after.live_ops, before.live_ops);
  assert_int_equal (after.live_bytes, before.live_bytes);
}

static TdStatus
same (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)link, (void)self, (void)n_in, (void)n_out;
  out[0] = in[0];
  return TD_OK;
}

static const TdLinkClass same_class
    = { .size = sizeof (TdLinkClass), .name = "Same", .forward = same };

static void
call__may_hand_out_its_input (void **state)
{
  TdLink *l = td_link_define (&same_class);
  TdVar *x = NULL;

  (void)state;
  TD_SCOPE ("outer")
    {
      x = td_rand (TD_F32, TD_SHAPE (4));
      assert_ptr_equal (td_link (l, td_link (l, x)), x);
      assert_true (td_item (td_sum (x)) >= 0);
    }
  assert_true (td_poisoned (x));
}

static void
sequential__calls_links_and_functions_in_order (void **state)
{
  TdLink *s = td_sequential_new ("s");
  TdVar *x = td_rand (TD_F32, TD_SHAPE (2, 3)), *y, *z;
  float expected[4];

  (void)state;
  td_linear_new (s, "l1", 3, 4);
  td_sequential_append (s, td_tanh);
  td_linear_new (s, "l2", 4, 2);
  y = td_linear (td_tanh (td_linear (x, td_link_param (s, "l1/W"), td_link_param (s, "l1/b"))),
                 td_link_param (s, "l2/W"), td_link_param (s, "l2/b"));
  memcpy (expected, values (y), sizeof expected);
  z = td_link (s, x);
  assert_memory_equal (values (z), expected, sizeof expected);
  assert_true (td_poisoned (td_link (td_chain_new ("c"), x)));
  assert_contains (said (TD_ERR_STATE), "only groups its children");
}

/* A model moves to the device that only counts, trains there, and moves back. */
static void
to_device__moves_parameters_state_and_training (void **state)
{
  TdLink *m = td_chain_new ("m"), *lstm = td_lstm_new (m, "lstm", 3, 2);
  TdVar *W = td_link_param (m, "lstm/upward/W");
  TdDevice *null = td_device_get ("null"), *own = td_device (W);
  TdOpt *opt = td_adam_new (m);
  size_t bytes = td_mem_info (own).category_bytes[TD_MEM_PARAMETER];

  (void)state;
  TD_NO_BACKPROP /* a graph would keep the old arrays */
    td_link (lstm, td_rand (TD_F32, TD_SHAPE (4, 3)));
  assert_int_equal (td_link_to_device (m, null), TD_OK);
  assert_ptr_equal (td_device (W), null);
  assert_null (td_lstm_h (lstm));
  assert_int_equal (td_mem_info (own).category_bytes[TD_MEM_PARAMETER], 0);
  if (td_test_on_cpu ()) /* others round up to other sizes */
    assert_int_equal (td_mem_info (null).category_bytes[TD_MEM_PARAMETER], bytes);
  TD_SCOPE ("on the null device")
    {
      TdVar *x = td_to_device (td_rand (TD_F32, TD_SHAPE (4, 3)), null);

      td_device_use (null);
      assert_int_equal (td_backward (td_sum (td_link (lstm, x)), 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
      td_device_use (own);
    }
  assert_true (td_mem_info (null).category_bytes[TD_MEM_OPTIMIZER] > 0);
  assert_int_equal (td_link_to_device (m, own), TD_OK);
  td_link (lstm, td_rand (TD_F32, TD_SHAPE (4, 3)));
  assert_true (values (W)[0] == 0);
  assert_int_equal (td_link_to_device (m, NULL), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "the device is NULL");
}

static void
cleargrads__drops_those_of_all_below (void **state)
{
  TdLink *m = td_chain_new ("m");
  TdLink *l = td_linear_new (td_chain_new (m, "block"), "l", 3, 2);

  (void)state;
  td_backward (td_sum (td_link (l, td_rand (TD_F32, TD_SHAPE (2, 3)))), 0);
  assert_non_null (td_grad (td_link_param (l, "W")));
  td_cleargrads (m);
  assert_null (td_grad (td_link_param (l, "W")));
  assert_null (td_grad (td_link_param (l, "b")));
}

/* --- kinds of link --- */

static void
batch_normalization__uses_running_statistics_only_in_evaluation (void **state)
{
  static const float rows[8] = { 1, 10, 2, 20, 3, 30, 4, 40 };
  TdLink *bn = td_batch_normalization_new (NULL, "bn", 2, .decay = 0.5);
  TdVar *x = td_tensor (TD_F32, TD_SHAPE (4, 2), rows), *y;
  const float *v;

  (void)state;
  y = td_link (bn, x);
  v = values (y); /* mean 2.5, variance 1.25 */
  assert_true (fabs ((double)v[0] - (1 - 2.5) / sqrt (1.25 + 2e-5)) < 1e-5);
  v = values (td_link_param (bn, "avg_mean")); /* 0.5 * 0 + 0.5 * mean */
  assert_true (fabs ((double)v[0] - 1.25) < 1e-6 && fabs ((double)v[1] - 12.5) < 1e-5);
  v = values (td_link_param (bn, "avg_var")); /* 0.5 * 1 + 0.5 * var * 4 / 3 */
  assert_true (fabs ((double)v[0] - (0.5 + 0.5 * 1.25 * 4 / 3)) < 1e-6);
  TD_USING (train, 0)
    y = td_link (bn, x);
  v = values (y);
  assert_true (fabs ((double)v[0] - (1 - 1.25) / sqrt (0.5 + 0.5 * 1.25 * 4 / 3 + 2e-5))
               < 1e-5);
}

static void
embed_id__gives_rows (void **state)
{
  static const int32_t ids[3] = { 2, 0, 2 };
  TdLink *e = td_embed_id_new (NULL, "e", 3, 2);
  float W[6], *v;

  (void)state;
  memcpy (W, values (td_link_param (e, "W")), sizeof W);
  v = values (td_link (e, td_tensor (TD_I32, TD_SHAPE (3), ids)));
  assert_memory_equal (v, W + 4, 2 * sizeof *v);
  assert_memory_equal (v + 2, W, 2 * sizeof *v);
  assert_memory_equal (v + 4, W + 4, 2 * sizeof *v);
}

static void
embed_id__gives_zeros_for_the_ignored_label (void **state)
{
  static const int32_t ids[3] = { 2, -1, 0 };
  TdLink *e = td_embed_id_new (NULL, "e", 3, 2, .ignore_label = -1);
  float W[6], *v;

  (void)state;
  memcpy (W, values (td_link_param (e, "W")), sizeof W);
  TdVar *y = td_link (e, td_tensor (TD_I32, TD_SHAPE (3), ids));
  v = values (y);
  assert_memory_equal (v, W + 4, 2 * sizeof *v);
  assert_true (v[2] == 0 && v[3] == 0);
  td_backward (td_sum (y), 0);
  v = values (td_grad (td_link_param (e, "W")));
  for (int i = 0; i < 6; i++) /* rows 0 and 2 were read, row 1 was not */
    assert_true (v[i] == (i / 2 == 1 ? 0 : 1));
}

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}

/* One step of one sequence by the formulas, gates a, i, f, o interleaved. */
static void
lstm_step (const float *up, const float *b, const float *side, const double *x, double *c,
           double *h)
{
  double next_h[2];

  for (int u = 0; u < 2; u++)
    {
      double g[4];

      for (int k = 0; k < 4; k++)
        {
          int row = 4 * u + k;

          g[k] = (double)b[row];
          for (int j = 0; j < 3; j++)
            g[k] += (double)up[3 * row + j] * x[j];
          for (int j = 0; j < 2; j++)
            g[k] += (double)side[2 * row + j] * h[j];
        }
      c[u] = tanh (g[0]) * sigmoid (g[1]) + sigmoid (g[2]) * c[u];
      next_h[u] = sigmoid (g[3]) * tanh (c[u]);
    }
  memcpy (h, next_h, sizeof next_h);
}

static void
lstm__follows_its_formulas_and_keeps_its_state (void **state)
{
  TdLink *l = td_lstm_new (NULL, "lstm", 3, 2);
  float up[24], b[8], side[16];
  double c[2] = { 0 }, h[2] = { 0 }, x[3];

  (void)state;
  memcpy (up, values (td_link_param (l, "upward/W")), sizeof up);
  memcpy (b, values (td_link_param (l, "upward/b")), sizeof b);
  memcpy (side, values (td_link_param (l, "lateral/W")), sizeof side);
  assert_true (b[0] == 0 && b[2] == 1 && b[6] == 1 && b[7] == 0);
  for (int t = 0; t < 4; t++)
    TD_SCOPE ("step")
      {
        float fx[3];
        const float *v;

        for (int j = 0; j < 3; j++)
          x[j] = (double)(fx[j] = (float)sin (t + j));
        v = values (td_link (l, td_tensor (TD_F32, TD_SHAPE (1, 3), fx)));
        lstm_step (up, b, side, x, c, h);
        assert_true (fabs ((double)v[0] - h[0]) < 1e-5 && fabs ((double)v[1] - h[1]) < 1e-5);
      }
  assert_true (fabs ((double)values (td_lstm_c (l))[1] - c[1]) < 1e-5); /* outlives its scope */
  td_lstm_reset_state (l);
  assert_null (td_lstm_c (l));
  assert_null (td_lstm_h (l));
}

static void
lstm__continues_the_first_rows_with_a_smaller_batch (void **state)
{
  TdLink *l = td_lstm_new (NULL, "lstm", 3, 2);
  TdVar *y;
  float waiting[2];

  (void)state;
  td_link (l, td_rand (TD_F32, TD_SHAPE (3, 3)));
  memcpy (waiting, values (td_lstm_h (l)) + 4, sizeof waiting);
  y = td_link (l, td_rand (TD_F32, TD_SHAPE (2, 3)));
  assert_true (has_shape (y, TD_SHAPE (2, 2)));
  assert_true (has_shape (td_lstm_h (l), TD_SHAPE (3, 2)));
  assert_memory_equal (values (td_lstm_h (l)) + 4, waiting, sizeof waiting);
  td_link (l, td_rand (TD_F32, TD_SHAPE (4, 3)));
  assert_contains (said (TD_ERR_SHAPE), "at most 3 rows");
}

static void
lstm__takes_any_state (void **state)
{
  static const float c[2] = { 0.5f, -0.5f };
  TdLink *l = td_lstm_new (NULL, "lstm", 3, 2);

  (void)state;
  assert_int_equal (td_lstm_set_state (l, td_tensor (TD_F32, TD_SHAPE (1, 2), c),
                                       td_zeros (TD_F32, TD_SHAPE (1, 2))),
                    TD_OK);
  assert_memory_equal (values (td_lstm_c (l)), c, sizeof c);
  assert_int_equal (td_lstm_set_state (l, td_zeros (TD_F32, TD_SHAPE (1, 3)),
                                       td_zeros (TD_F32, TD_SHAPE (1, 3))),
                    TD_ERR_SHAPE);
  assert_contains (said (TD_ERR_SHAPE), "one shape (n, 2) expected, got (1, 3)");
}

static void
classifier__reports_loss_and_accuracy (void **state)
{
  static const int32_t labels[4] = { 0, 1, 1, 0 };
  TdLink *c = td_classifier_new (NULL, "model", td_linear_new (NULL, "predictor", 3, 2));
  TdVar *in[2]
      = { td_rand (TD_F32, TD_SHAPE (4, 3)), td_tensor (TD_I32, TD_SHAPE (4), labels) };
  TdVar *out[2];

  (void)state;
  assert_string_equal (td_link_path (td_link_child (c, "predictor")), "model/predictor");
  assert_int_equal (td_link_call (c, in, 2, out, 2), TD_OK);
  assert_true (td_observation_get (NULL, "loss").last == td_item (out[0]));
  assert_true (td_observation_get (NULL, "accuracy").last == td_item (out[1]));
}

/* --- reports --- */

static void
report__summarises_and_scopes_apart (void **state)
{
  TdObservation *test = td_observation_new ();
  TdSummary s;

  (void)state;
  td_report ("loss", 1);
  td_report ("loss", 3);
  TD_REPORT_SCOPE (test)
    {
      td_report ("loss", 10);
    }
  td_report ("loss", 8);
  s = td_observation_get (NULL, "loss");
  assert_true (s.n == 3 && s.last == 8 && s.mean == 4 && s.min == 1 && s.max == 8);
  assert_true (fabs (s.std - sqrt (26. / 3)) < 1e-12);
  assert_true (td_observation_get (test, "loss").last == 10);
  assert_int_equal (td_observation_get (test, "nothing").n, 0);
  td_report_for (td_linear_new (td_chain_new ("net"), "l1", 1, 1), "norm", 2);
  assert_true (td_observation_get (NULL, "net/l1/norm").last == 2);
  td_report ("", 1);
  assert_contains (said (TD_ERR_ARG), "needs a key");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (path__has_no_leading_slash_and_numbers_equal_roots),
    engine_test (names__are_checked_where_they_are_given),
    engine_test (constructor__returns_an_inert_link_never_null),
    engine_test (params__have_keys_without_the_root),
    engine_test (free__gives_everything_back),
    engine_test (copy__has_its_own_equal_parameters),
    engine_test (linear__takes_its_size_from_the_first_input),
    engine_test (lazy_links__stay_waiting_when_their_input_is_bad),
    engine_test (convolution__takes_its_channels_from_the_first_input),
    engine_test (init__draws_with_chainers_fans),
    engine_test (init__fills_what_is_not_random),
    engine_test (init__refuses_shapes_without_fans),
    engine_test (init__is_repeated_by_the_seed),
    engine_test (call__lets_inner_temporaries_die_with_it),
    engine_test (call__keeps_what_backward_needs_of_dead_outputs),
    engine_test (call__may_hand_out_its_input),
    engine_test (sequential__calls_links_and_functions_in_order),
    engine_test (to_device__moves_parameters_state_and_training),
    engine_test (cleargrads__drops_those_of_all_below),
    engine_test (batch_normalization__uses_running_statistics_only_in_evaluation),
    engine_test (embed_id__gives_rows),
    engine_test (embed_id__gives_zeros_for_the_ignored_label),
    engine_test (lstm__follows_its_formulas_and_keeps_its_state),
    engine_test (lstm__continues_the_first_rows_with_a_smaller_batch),
    engine_test (lstm__takes_any_state),
    engine_test (classifier__reports_loss_and_accuracy),
    engine_test (report__summarises_and_scopes_apart),
  };

  return cmocka_run_group_tests_name ("links", tests, NULL, NULL);
}
