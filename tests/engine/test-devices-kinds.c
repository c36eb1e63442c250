/* Every kind of link on a device that the host cannot look into, and on the one without values:
 * the same numbers and gradients there as here, the same shapes anywhere; and the hooks.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "fake-remote.h"
#include "tapedeck-op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const TdShape open_shape = TD_NO_SHAPE;
static const int64_t channels[] = { 4, 3 }, counts[] = { 3, 1, 4, 1, 5 };

/* Each makes one link; the first size of its input is a batch. */
#define MAKER(name, expression)                                                                \
  static TdLink *make_##name (void)                                                            \
  {                                                                                            \
    return expression;                                                                         \
  }
MAKER (linear, td_linear_new (NULL, "l", TD_INFER, 3))
MAKER (bias, td_bias_new (NULL, "l", .shape = TD_SHAPE (4)))
MAKER (scale, td_scale_new (NULL, "l", .W_shape = TD_SHAPE (4), .bias_term = true))
MAKER (prelu, td_prelu_new (NULL, "l", .shape = TD_SHAPE (4)))
MAKER (swish, td_swish_new (NULL, "l", open_shape))
MAKER (maxout, td_maxout_new (NULL, "l", 4, 2, 3))
MAKER (highway, td_highway_new (NULL, "l", 4))
MAKER (layer_norm, td_layer_normalization_new (NULL, "l", TD_INFER))
MAKER (group_norm, td_group_normalization_new (NULL, "l", 2, TD_INFER))
MAKER (batch_norm, td_batch_normalization_new (NULL, "l", 4, .use_gamma = false))
MAKER (conv_2d, td_convolution_2d_new (NULL, "l", TD_INFER, 3, 3))
MAKER (conv_1d, td_convolution_1d_new (NULL, "l", TD_INFER, 3, 2))
MAKER (conv_3d, td_convolution_3d_new (NULL, "l", TD_INFER, 3, 2))
MAKER (conv_nd, td_convolution_nd_new (NULL, "l", 2, TD_INFER, 3, 2))
MAKER (dilated, td_dilated_convolution_2d_new (NULL, "l", TD_INFER, 3, 2, .dilate = { 2, 2 }))
MAKER (depthwise, td_depthwise_convolution_2d_new (NULL, "l", TD_INFER, 2, 3))
MAKER (deconv_2d, td_deconvolution_2d_new (NULL, "l", TD_INFER, 3, 3, .stride = { 2, 2 }))
MAKER (deconv_nd, td_deconvolution_nd_new (NULL, "l", 1, TD_INFER, 3, 3))
MAKER (inception, td_inception_new (NULL, "l", 4, 2, 2, 2, 2, 2, 2))
MAKER (inception_bn,
       td_inception_bn_new (NULL, "l", 4, 2, 2, 2, 2, 2, TD_INCEPTION_AVERAGE, .proj_pool = 2))
MAKER (mlp_conv, td_mlp_convolution_2d_new (NULL, "l", 4, channels, 2, 3))
MAKER (lstm, td_lstm_new (NULL, "l", TD_INFER, 3))
MAKER (stateless_lstm, td_stateless_lstm_new (NULL, "l", TD_INFER, 3))
MAKER (peephole, td_stateful_peephole_lstm_new (NULL, "l", TD_INFER, 3))
MAKER (gru, td_gru_new (NULL, "l", TD_INFER, 3))
MAKER (stateful_gru, td_stateful_gru_new (NULL, "l", TD_INFER, 3))
MAKER (stateless_gru, td_stateless_gru_new (NULL, "l", TD_INFER, 3))
MAKER (mgu, td_stateful_mgu_new (NULL, "l", 4, 3))
MAKER (n_step_lstm, td_n_step_lstm_new (NULL, "l", 2, 4, 3, 0))
MAKER (n_step_bilstm, td_n_step_bilstm_new (NULL, "l", 1, 4, 3, 0))
MAKER (n_step_gru, td_n_step_gru_new (NULL, "l", 1, 4, 3, 0))
MAKER (n_step_tanh, td_n_step_rnn_tanh_new (NULL, "l", 1, 4, 3, 0))
MAKER (n_step_relu, td_n_step_rnn_relu_new (NULL, "l", 1, 4, 3, 0))
MAKER (resnet50, td_resnet50_layers_new (NULL, "l", .layer = "res2"))

static TdVar *
once (TdLink *l, TdVar *x)
{
  return td_link (l, x);
}

static TdVar *
three_times (TdLink *l, TdVar *x)
{
  TdVar *y = td_link (l, x);

  for (int i = 1; i < 3; i++)
    y = td_add (y, td_link (l, td_mul_scalar (x, 1.0 / (i + 1))));
  return y;
}

static TdVar *
first_of_two (TdLink *l, TdVar *x)
{
  TdVar *out[2];

  plain_call (l, &x, 1, out, 2);
  return td_add (out[0], out[1]);
}

/* Two sequences, the shorter one first. */
static TdVar *
sequences (TdLink *l, TdVar *x)
{
  TdSlice shorter[] = { TD_AT (0), TD_RANGE (0, 2) }, longer = TD_AT (1);
  TdVar *xs[] = { td_get_item (x, shorter, 2), td_get_item (x, &longer, 1) }, *ys[2], *hy;

  assert_int_equal (td_n_step_call (l, NULL, NULL, xs, 2, &hy, NULL, ys), TD_OK);
  return td_add (td_sum (td_square (hy)), td_sum (td_square (td_concat (ys, 2, 0))));
}

#define ROWS(name)                                                                             \
  {                                                                                            \
#name, make_##name, once,                                                                  \
    {                                                                                          \
      2,                                                                                       \
      {                                                                                        \
        5, 4                                                                                   \
      }                                                                                        \
    }                                                                                          \
  }
#define IMAGE(name)                                                                            \
  {                                                                                            \
#name, make_##name, once,                                                                  \
    {                                                                                          \
      4,                                                                                       \
      {                                                                                        \
        2, 4, 6, 5                                                                             \
      }                                                                                        \
    }                                                                                          \
  }
#define TIME(name, call)                                                                       \
  {                                                                                            \
#name, make_##name, call,                                                                  \
    {                                                                                          \
      2,                                                                                       \
      {                                                                                        \
        5, 4                                                                                   \
      }                                                                                        \
    }                                                                                          \
  }
#define SEQUENCES(name)                                                                        \
  {                                                                                            \
#name, make_##name, sequences,                                                             \
    {                                                                                          \
      3,                                                                                       \
      {                                                                                        \
        2, 3, 4                                                                                \
      }                                                                                        \
    }                                                                                          \
  }

typedef struct
{
  const char *name;
  TdLink *(*make) (void);
  TdVar *(*call) (TdLink *l, TdVar *x);
  TdShape shape;
} Kind;

static const Kind kinds[] = { ROWS (linear),
                              ROWS (bias),
                              ROWS (scale),
                              ROWS (prelu),
                              ROWS (swish),
                              ROWS (maxout),
                              ROWS (highway),
                              ROWS (layer_norm),
                              IMAGE (group_norm),
                              IMAGE (batch_norm),
                              IMAGE (conv_2d),
                              { "conv_1d", make_conv_1d, once, { 3, { 2, 4, 5 } } },
                              { "conv_3d", make_conv_3d, once, { 5, { 1, 2, 3, 3, 3 } } },
                              IMAGE (conv_nd),
                              IMAGE (dilated),
                              IMAGE (depthwise),
                              IMAGE (deconv_2d),
                              { "deconv_nd", make_deconv_nd, once, { 3, { 2, 4, 5 } } },
                              IMAGE (inception),
                              IMAGE (inception_bn),
                              IMAGE (mlp_conv),
                              TIME (lstm, three_times),
                              TIME (stateless_lstm, first_of_two),
                              TIME (peephole, three_times),
                              TIME (gru, three_times),
                              TIME (stateful_gru, three_times),
                              TIME (stateless_gru, once),
                              TIME (mgu, three_times),
                              SEQUENCES (n_step_lstm),
                              SEQUENCES (n_step_bilstm),
                              SEQUENCES (n_step_gru),
                              SEQUENCES (n_step_tanh),
                              SEQUENCES (n_step_relu),
                              { "resnet50", make_resnet50, once, { 4, { 1, 3, 8, 8 } } } };

#define COUNT(a) (int)(sizeof (a) / sizeof ((a)[0]))

typedef struct
{
  double value, gradients;
  int64_t n_params;
  TdShape shape;
} Result;

static void
add_gradient (const char *path, TdVar *param, void *user)
{
  Result *r = user;

  (void)path;
  r->n_params += td_size (param);
  if (td_grad (param) != NULL)
    r->gradients += td_item (td_sum (td_square (td_grad (param))));
}

/* Made there, called there, with gradients. */
static Result
run (const Kind *kind, TdDevice *device, bool compare)
{
  Result r = { 0 };
  TdLink *l;

  td_set_seed (11);
  td_device_use (device);
  l = kind->make ();
  TD_SCOPE ("call")
    {
      TdVar *x = td_randn (TD_F32, kind->shape), *y = kind->call (l, x), *loss;

      if (td_poisoned (y))
        fail_msg ("%s: %s", kind->name, td_error ()->message);
      assert_ptr_equal (td_device (y), device);
      r.shape = td_shape (y);
      loss = td_sum (td_square (y));
      assert_int_equal (td_backward (loss, 0), TD_OK);
      if (compare)
        {
          r.value = td_item (loss);
          td_link_each_param (l, add_gradient, &r);
        }
      r.n_params = td_link_count_params (l);
    }
  td_link_free (l);
  td_device_use (td_device_get ("cpu"));
  return r;
}

static void
links__have_the_same_numbers_far_away (void **state)
{
  TdDevice *cpu = td_device_get ("cpu"), *remote = fake_remote_start ();

  (void)state;
  for (int i = 0; i < COUNT (kinds); i++)
    {
      Result here = run (&kinds[i], cpu, true), there = run (&kinds[i], remote, true);

      if (!(here.value > 0) || here.value != there.value || !(here.gradients > 0)
          || here.gradients != there.gradients)
        fail_msg ("%s: %.9g and %.9g here, %.9g and %.9g there", kinds[i].name, here.value,
                  here.gradients, there.value, there.gradients);
    }
}

static void
links__have_the_same_shapes_without_values (void **state)
{
  TdDevice *cpu = td_device_get ("cpu"), *null = td_device_get ("null");

  (void)state;
  for (int i = 0; i < COUNT (kinds); i++)
    {
      Result here = run (&kinds[i], cpu, false), there = run (&kinds[i], null, false);

      if (!td_shape_equal (&here.shape, &there.shape) || here.n_params != there.n_params)
        fail_msg ("%s differs without values", kinds[i].name);
    }
}

static void
negative_sampling__draws_for_a_device_far_away (void **state)
{
  static const int32_t words[2] = { 0, 4 };
  double loss[2];

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      TdDevice *device = i == 0 ? td_device_get ("cpu") : fake_remote_start ();
      TdLink *l;
      TdVar *in[2], *y;

      td_set_seed (5);
      l = td_negative_sampling_new (NULL, "l", 3, counts, 5, 4, .initialW = td_init_normal (1));
      td_link_to_device (l, device);
      in[0] = td_to_device (td_rand (TD_F32, TD_SHAPE (2, 3)), device);
      in[1] = td_to_device (td_tensor (TD_I32, TD_SHAPE (2), words), device);
      plain_call (l, in, 2, &y, 1);
      assert_ptr_equal (td_device (y), device);
      loss[i] = td_item (y);
    }
  assert_true (loss[0] > 0 && loss[0] == loss[1]);
}

/* All hooks at once: they compute where the link is. */
static double
hooked_loss (TdDevice *device)
{
  TdLink *l;
  TdHook *memory = td_memory_hook_new (), *timer = td_link_timer_hook_new ();
  double loss = 0;

  td_set_seed (7);
  td_device_use (device);
  l = td_convolution_2d_new (NULL, "l", TD_INFER, 3, 3);
  td_link_add_hook (l, td_spectral_normalization_new (.use_gamma = true));
  td_hook_add (memory);
  td_hook_add (timer);
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("step")
      {
        TdVar *y = td_link (l, td_rand (TD_F32, TD_SHAPE (2, 2, 5, 5)));

        assert_ptr_equal (td_device (y), device);
        y = td_sum (td_square (y));
        assert_int_equal (td_backward (y, 0), TD_OK);
        loss += device == td_device_get ("null") ? 0 : td_item (y);
      }
  assert_ptr_equal (td_device (td_link_param (l, "W_u")), device);
  assert_ptr_equal (td_device (td_link_param (l, "gamma")), device);
  assert_non_null (td_grad (td_link_param (l, "gamma")));
  assert_int_equal (td_hook_row (timer, 0).backward.n_calls, 3);
  td_hook_free (memory);
  td_hook_free (timer);
  td_link_free (l);
  td_device_use (td_device_get ("cpu"));
  return loss;
}

static void
hooks__compute_where_the_link_is (void **state)
{
  double here = hooked_loss (td_device_get ("cpu")), there = hooked_loss (fake_remote_start ());

  (void)state;
  assert_true (here > 0 && here == there);
  hooked_loss (td_device_get ("null"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (links__have_the_same_numbers_far_away),
    engine_test (links__have_the_same_shapes_without_values),
    engine_test (negative_sampling__draws_for_a_device_far_away),
    engine_test (hooks__compute_where_the_link_is),
  };

  return cmocka_run_group_tests_name ("devices-kinds", tests, NULL, NULL);
}
