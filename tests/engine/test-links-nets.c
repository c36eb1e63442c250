/* Links that are small nets, and the nets of ImageNet: structure, names, values against the
 * same written in functions, gradients.
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

/* A convolution by the parameters at a path, with bias if there is one. */
static TdVar *
conv (TdLink *link, const char *path, TdVar *x, int stride, int pad, bool bias)
{
  char W[160], b[160];

  snprintf (W, sizeof W, "%s/W", path);
  snprintf (b, sizeof b, "%s/b", path);
  return td_convolution_2d (x, td_link_param (link, W), bias ? td_link_param (link, b) : NULL,
                            .stride = { stride, stride }, .pad = { pad, pad });
}

/* relu of the batch-normalised convolution "name" with "name" + "n". */
static TdVar *
conv_bn (TdLink *link, const char *name, TdVar *x, int stride, int pad)
{
  char gamma[64], beta[64];

  snprintf (gamma, sizeof gamma, "%sn/gamma", name);
  snprintf (beta, sizeof beta, "%sn/beta", name);
  return td_relu (td_batch_normalization (conv (link, name, x, stride, pad, false),
                                          td_link_param (link, gamma),
                                          td_link_param (link, beta)));
}

static void
inception__joins_four_ways (void **state)
{
  TdLink *l = td_inception_new (NULL, "l", 2, 1, 2, 3, 1, 2, 2);
  TdVar *x = wide (TD_SHAPE (2, 2, 5, 5), 1), *side[4];

  (void)state;
  assert_string_equal (param_keys (l),
                       "conv1/W conv1/b proj3/W proj3/b conv3/W conv3/b proj5/W "
                       "proj5/b conv5/W conv5/b projp/W projp/b ");
  assert_shape (td_link_param (l, "conv5/W"), TD_SHAPE (2, 1, 5, 5));
  fill_params (l, 3);
  side[0] = conv (l, "conv1", x, 1, 0, true);
  side[1] = conv (l, "conv3", td_relu (conv (l, "proj3", x, 1, 0, true)), 1, 1, true);
  side[2] = conv (l, "conv5", td_relu (conv (l, "proj5", x, 1, 0, true)), 1, 2, true);
  side[3] = conv (l, "projp",
                  td_max_pooling_2d (x, .ksize = { 3, 3 }, .stride = { 1, 1 }, .pad = { 1, 1 }),
                  1, 0, true);
  assert_same (td_link (l, x), td_relu (td_concat (side, 4, 1)), 1e-14);
  check_gradients (l, plain_call, &x, 1, 1);
}

static void
inception_bn__joins_normalised_ways (void **state)
{
  TdLink *l
      = td_inception_bn_new (NULL, "l", 2, 2, 2, 3, 2, 2, TD_INCEPTION_AVERAGE, .proj_pool = 1);
  TdLink *half
      = td_inception_bn_new (NULL, "h", 2, 0, 2, 3, 2, 2, TD_INCEPTION_MAX, .stride = 2);
  TdVar *x = wide (TD_SHAPE (2, 2, 4, 4), 1), *side[4], *pool;

  (void)state;
  fill_params (l, 3);
  fill_params (half, 4);
  side[0] = conv_bn (l, "conv1", x, 1, 0);
  side[1] = conv_bn (l, "conv3", conv_bn (l, "proj3", x, 1, 0), 1, 1);
  side[2] = conv_bn (l, "conv33b", conv_bn (l, "conv33a", conv_bn (l, "proj33", x, 1, 0), 1, 1),
                     1, 1);
  pool = td_average_pooling_2d (x, .ksize = { 3, 3 }, .stride = { 1, 1 }, .pad = { 1, 1 });
  side[3] = conv_bn (l, "poolp", pool, 1, 0);
  assert_same (td_link (l, x), td_concat (side, 4, 1), 1e-13);
  side[0] = conv_bn (half, "conv3", conv_bn (half, "proj3", x, 1, 0), 2, 1);
  side[1] = conv_bn (half, "conv33b",
                     conv_bn (half, "conv33a", conv_bn (half, "proj33", x, 1, 0), 1, 1), 2, 1);
  side[2] = td_max_pooling_2d (x, .ksize = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 },
                               .cover_all = false);
  assert_same (td_link (half, x), td_concat (side, 3, 1), 1e-13);
  td_inception_bn_new (NULL, "m", 2, 2, 2, 3, 2, 2, TD_INCEPTION_MAX, .stride = 2);
  assert_contains (said (TD_ERR_ARG), "with out1 above 0 stride 1 and proj_pool");
}

static void
mlp_convolution_2d__is_a_net_at_every_place (void **state)
{
  static const int64_t channels[] = { 3, 2, 4 };
  TdLink *l = td_mlp_convolution_2d_new (NULL, "l", 2, channels, 3, 3, .pad = { 1, 1 },
                                         .activation = td_tanh);
  TdVar *x = wide (TD_SHAPE (1, 2, 4, 3), 1), *y;

  (void)state;
  assert_string_equal (param_keys (l), "0/W 0/b 1/W 1/b 2/W 2/b ");
  fill_params (l, 3);
  y = td_tanh (conv (l, "0", x, 1, 1, true));
  y = conv (l, "2", td_tanh (conv (l, "1", y, 1, 0, true)), 1, 0, true);
  assert_same (td_link (l, x), y, 1e-14);
  check_gradients (l, plain_call, &x, 1, 1);
  td_mlp_convolution_2d_new (NULL, "m", 2, channels, 0, 3);
  assert_contains (said (TD_ERR_ARG), "one or more layers");
}

/* --- the nets of ImageNet, planned on a device without memory --- */

static int
null_setup (void **state)
{
  fixture_setup (state);
  td_device_use (td_device_get ("null"));
  return 0;
}

typedef struct
{
  const char *layer;
  TdShape shape;
} Expected;

static void
check_layers (TdLink *net, int64_t n_params, const Expected *expected, int n)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (2, 3, 224, 224));

  assert_int_equal (td_link_count_params (net), n_params);
  for (int i = 0; i < n; i++)
    TD_SCOPE ("layer")
      TD_NO_BACKPROP
        {
          assert_int_equal (td_net_set_layer (net, expected[i].layer), TD_OK);
          assert_shape (td_link (net, x), expected[i].shape);
        }
  td_net_set_layer (net, "no");
  assert_contains (said (TD_ERR_ARG), "has no layer no");
}

#define COUNT(a) (int)(sizeof (a) / sizeof ((a)[0]))

/* Numbers of parameters: those of the published nets (138,357,544; 25,557,032 with a bias in
 * conv1 less; 6,998,552 and the two classifiers of GoogLeNet). */
static void
vgg16__has_its_layers_and_138357544_parameters (void **state)
{
  static const Expected expected[] = { { "conv1_2", { 4, { 2, 64, 224, 224 } } },
                                       { "pool3", { 4, { 2, 256, 28, 28 } } },
                                       { "pool5", { 4, { 2, 512, 7, 7 } } },
                                       { "fc7", { 2, { 2, 4096 } } },
                                       { "fc8", { 2, { 2, 1000 } } },
                                       { "prob", { 2, { 2, 1000 } } } };
  TdLink *net = td_vgg16_layers_new (NULL, "vgg");

  (void)state;
  check_layers (net, 138357544, expected, COUNT (expected));
  assert_contains (param_keys (net),
                   "conv5_3/W conv5_3/b fc6/W fc6/b fc7/W fc7/b fc8/W fc8/b ");
  td_vgg16_layers_new (NULL, "v", .layer = "conv9_9");
  assert_contains (said (TD_ERR_ARG), "it has no layer conv9_9");
  td_net_set_layer (td_chain_new ("c"), "fc6");
  assert_contains (said (TD_ERR_ARG), "c is a Chain, not a net of layers");
}

static void
resnet50__has_its_layers_and_25557096_parameters (void **state)
{
  static const Expected expected[]
      = { { "conv1", { 4, { 2, 64, 112, 112 } } }, { "pool1", { 4, { 2, 64, 56, 56 } } },
          { "res2", { 4, { 2, 256, 56, 56 } } },   { "res4", { 4, { 2, 1024, 14, 14 } } },
          { "res5", { 4, { 2, 2048, 7, 7 } } },    { "pool5", { 2, { 2, 2048 } } },
          { "fc6", { 2, { 2, 1000 } } },           { "prob", { 2, { 2, 1000 } } } };
  TdLink *net = td_resnet50_layers_new (NULL, "res");

  (void)state;
  check_layers (net, 25557032 + 64, expected, COUNT (expected));
  assert_contains (param_keys (net), "res2/a/conv4/W res2/a/bn4/gamma res2/a/bn4/beta "
                                     "res2/b1/conv1/W ");
  assert_shape (td_link_param (net, "res5/b2/bn3/avg_var"), TD_SHAPE (2048));
}

static void
googlenet__has_its_layers_and_two_classifiers_on_the_way (void **state)
{
  static const Expected expected[]
      = { { "pool1", { 4, { 2, 64, 56, 56 } } },  { "conv2", { 4, { 2, 192, 56, 56 } } },
          { "inc3b", { 4, { 2, 480, 28, 28 } } }, { "inc4e", { 4, { 2, 832, 14, 14 } } },
          { "inc5b", { 4, { 2, 1024, 7, 7 } } },  { "pool5", { 4, { 2, 1024, 1, 1 } } },
          { "prob", { 2, { 2, 1000 } } } };
  TdLink *net = td_googlenet_new (NULL, "g", .layer = "loss3_fc");
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (2, 3, 224, 224)), *out[3];
  int64_t side = 128 + 1024 * (2048 + 1) + 1000 * 1025;

  (void)state;
  assert_int_equal (td_link_call (net, &x, 1, out, 3), TD_OK);
  for (int i = 0; i < 3; i++)
    assert_shape (out[i], TD_SHAPE (2, 1000));
  check_layers (net, 6998552 + 2 * side + 128 * (512 + 528), expected, COUNT (expected));
  td_net_set_layer (net, "conv1");
  td_link_call (net, &x, 1, out, 3);
  assert_contains (said (TD_ERR_ARG), "a layer behind inc4d expected");
}

/* --- and a small one with numbers --- */

static TdVar *
bottleneck (TdLink *net, const char *path, TdVar *x, int stride, bool past)
{
  TdVar *h = x;
  char name[64];

  for (int i = 1; i <= (past ? 4 : 3); i++)
    {
      TdVar *from = i == 4 ? x : h, *y;
      char gamma[64], beta[64];

      snprintf (name, sizeof name, "%s/conv%d", path, i);
      snprintf (gamma, sizeof gamma, "%s/bn%d/gamma", path, i);
      snprintf (beta, sizeof beta, "%s/bn%d/beta", path, i);
      y = td_batch_normalization (
          conv (net, name, from, i == 1 || i == 4 ? stride : 1, i == 2 ? 1 : 0, false),
          td_link_param (net, gamma), td_link_param (net, beta));
      if (i == 4)
        return td_relu (td_add (h, y));
      h = i < 3 ? td_relu (y) : y;
    }
  return td_relu (td_add (h, x));
}

static void
resnet50__computes_its_blocks_and_trains (void **state)
{
  TdLink *net = td_resnet50_layers_new (NULL, "res", .layer = "res2");
  TdVar *x, *y, *loss;

  (void)state;
  x = td_rand (TD_F32, TD_SHAPE (2, 3, 16, 16));
  y = td_batch_normalization (conv (net, "conv1", x, 2, 3, true),
                              td_link_param (net, "bn1/gamma"),
                              td_link_param (net, "bn1/beta"));
  y = td_max_pooling_2d (td_relu (y), .ksize = { 3, 3 }, .stride = { 2, 2 });
  y = bottleneck (net, "res2/a", y, 1, true);
  y = bottleneck (net, "res2/b1", y, 1, false);
  y = bottleneck (net, "res2/b2", y, 1, false);
  assert_same (td_link (net, x), y, 1e-4);
  td_net_set_layer (net, "fc6");
  td_cleargrads (net);
  loss = td_softmax_cross_entropy (td_link (net, x), td_zeros (TD_I32, TD_SHAPE (2)));
  assert_int_equal (td_backward (loss, 0), TD_OK);
  assert_non_null (td_grad (td_link_param (net, "conv1/W")));
  assert_true (isfinite (td_item (td_sum (td_grad (td_link_param (net, "conv1/W"))))));
}

#define wide_test(f) cmocka_unit_test_setup_teardown (f, setup, fixture_teardown)
#define null_test(f) cmocka_unit_test_setup_teardown (f, null_setup, fixture_teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    wide_test (inception__joins_four_ways),
    wide_test (inception_bn__joins_normalised_ways),
    wide_test (mlp_convolution_2d__is_a_net_at_every_place),
    null_test (vgg16__has_its_layers_and_138357544_parameters),
    null_test (resnet50__has_its_layers_and_25557096_parameters),
    null_test (googlenet__has_its_layers_and_two_classifiers_on_the_way),
    engine_test (resnet50__computes_its_blocks_and_trains),
  };

  return cmocka_run_group_tests_name ("links-nets", tests, NULL, NULL);
}
