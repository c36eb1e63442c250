/* The option macros of the public headers, as a model may write them: bare, with designators,
 * nested in one another, false and 0 given explicitly.  Compiled by gcc and clang with
 * -Wall -Wextra -Wshadow -pedantic -Werror; what they really pass is asserted here.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "td-test.h"

static void
header__bare_call_gives_the_defaults (void **state)
{
  TdAdamOpt o = TD_CALL_ (TD_OPTIONS_ (TdAdamOpt, TD_ADAM_DEFAULTS, .end_ = 0));
  TdAdamOpt f = td_adam_options ();

  (void)state;
  assert_true (o.lr == 1e-3 && o.beta1 == 0.9 && o.beta2 == 0.999 && o.eps == 1e-8);
  assert_true (o.eta == 1.0 && o.weight_decay_rate == 0.0 && !o.amsgrad);
  assert_true (f.lr == o.lr && f.beta2 == o.beta2 && f.eta == o.eta && f.eps == o.eps);
}

static void
header__explicit_false_is_not_unset (void **state)
{
  TdSerialIterOpt o = TD_CALL_ (TD_OPTIONS_ (TdSerialIterOpt, TD_SERIAL_ITER_DEFAULTS,
                                             .shuffle = false, .seed = 0, .end_ = 0));

  (void)state;
  assert_false (o.shuffle);
  assert_true (o.repeat);
  assert_int_equal (o.batch_size, 32);
}

/* Arrays that are written in place live until the call returns, at every level of optimization.
 */
static void
header__arrays_in_options_live_through_the_call (void **state)
{
  const float numbers[] = { 1, 2, 3, 5 };
  float mean[2];

  (void)state;
  td_init (NULL, NULL);
  for (int i = 0; i < 4; i++)
    TD_SCOPE ("literals")
      {
        TdVar *x = td_tensor (TD_F32, TD_SHAPE (2, 2), numbers);
        TdVar *y = td_average (x, .axes = (int[]){ i % 2 }, .n_axes = 1);

        assert_int_equal (td_read (y, mean, sizeof mean), TD_OK);
        assert_float_equal (mean[0], (i % 2 == 0 ? 2 : 1.5), 0);
        assert_float_equal (mean[1], (i % 2 == 0 ? 3.5 : 4), 0);
        y = td_average (td_average (x, .axes = (int[]){ 1 }, .n_axes = 1), .axes = (int[]){ 0 },
                        .n_axes = 1, .weights = td_tensor (TD_F32, TD_SHAPE (2), numbers));
        assert_float_equal (td_item (y), (1.5 + 2 * 4) / 3, 1e-6);
      }
  assert_int_equal (td_finish (), 0);
}

static void
header__option_calls_nest (void **state)
{
  (void)state;
  td_init (NULL, NULL);
  TdLink *chain = td_chain_new ("m"), *block = td_chain_new (chain, "block");
  /* clang-format off: one line is the point */
  TdOpt *opt = td_adam_new (
      td_link_adopt (chain, "c", td_linear_new (NULL, "l", 2, 3, .nobias = false)),
      .lr = td_opt_lr (td_sgd_new (block, .lr = 0.5)), .amsgrad = false);
  /* clang-format on */

  assert_true (td_opt_lr (opt) == 0.5);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
}

static void
header__parameter_options_may_be_positional (void **state)
{
  (void)state;
  td_init (NULL, NULL);
  TdLink *chain = td_chain_new ("m");
  TdVar *a = td_link_add_param (chain, "a", TD_SHAPE (2, 3));
  TdVar *b = td_link_add_param (chain, "b", TD_SHAPE (2), TD_F64, td_init_constant (4.0));
  TdVar *c = td_link_add_param (chain, "c", TD_SCALAR, .initializer = td_init_one ());
  double v[2] = { 0 };

  assert_int_equal (td_dtype (a), TD_F32);
  assert_int_equal (td_dtype (b), TD_F64);
  assert_int_equal (td_read (b, v, sizeof v), TD_OK);
  assert_true (v[0] == 4.0 && v[1] == 4.0);
  assert_true (td_item (c) == 1.0);
  assert_int_equal (td_finish (), 0);
}

static void
assert_dims (TdVar *v, TdShape want)
{
  const TdShape got = td_shape (v);

  assert_null (td_error ());
  assert_int_equal (got.ndim, want.ndim);
  assert_memory_equal (got.dim, want.dim, (size_t)got.ndim * sizeof got.dim[0]);
}

static void
header__window_functions_take_bare_and_named_options (void **state)
{
  static const float numbers[] = { 1, 4, 2, 3, 9, 0, 7, 5 };
  int32_t places[3] = { 0 };

  (void)state;
  td_init (NULL, NULL);
  TD_SCOPE ("windows")
    {
      TdVar *line = td_tensor (TD_F32, TD_SHAPE (1, 1, 8), numbers), *where;
      TdVar *plane = td_ones (TD_F32, TD_SHAPE (2, 3, 6, 7));
      TdVar *space = td_ones (TD_F32, TD_SHAPE (1, 2, 4, 5, 6));
      TdVar *b = td_ones (TD_F32, TD_SHAPE (4));

      assert_dims (td_convolution_1d (line, td_ones (TD_F32, TD_SHAPE (4, 1, 3)), b),
                   TD_SHAPE (1, 4, 6));
      assert_dims (td_convolution_3d (space, td_ones (TD_F32, TD_SHAPE (4, 2, 3, 3, 3)), NULL,
                                      .stride = { 1, 2, 1 }, .pad = { 1, 0, 0 }),
                   TD_SHAPE (1, 4, 4, 2, 4));
      assert_dims (
          td_convolution_nd (space, td_ones (TD_F32, TD_SHAPE (4, 1, 1, 1, 1)), b, .groups = 2),
          TD_SHAPE (1, 4, 4, 5, 6));
      assert_dims (td_dilated_convolution_2d (plane, td_ones (TD_F32, TD_SHAPE (4, 3, 2, 2)), b,
                                              .dilate = { 2, 3 }),
                   TD_SHAPE (2, 4, 4, 4));
      assert_dims (td_depthwise_convolution_2d (plane, td_ones (TD_F32, TD_SHAPE (2, 3, 3, 3)),
                                                NULL, .pad = { 1, 1 }),
                   TD_SHAPE (2, 6, 6, 7));
      assert_dims (td_deconvolution_2d (plane, td_ones (TD_F32, TD_SHAPE (3, 4, 2, 2)), b,
                                        .stride = { 2, 2 }, .outsize = { 12, 15 }),
                   TD_SHAPE (2, 4, 12, 15));
      assert_dims (
          td_deconvolution_nd (space, td_ones (TD_F32, TD_SHAPE (2, 4, 2, 2, 2)), NULL),
          TD_SHAPE (1, 4, 5, 6, 7));
      assert_dims (td_max_pooling_1d (line, .ksize = { 3 }, .indices = &where),
                   TD_SHAPE (1, 1, 3));
      assert_int_equal (td_read (where, places, sizeof places), TD_OK);
      assert_true (places[0] == 1 && places[1] == 1 && places[2] == 0);
      assert_dims (td_max_pooling_3d (space), TD_SHAPE (1, 2, 2, 3, 3));
      assert_dims (td_max_pooling_nd (space, .cover_all = false), TD_SHAPE (1, 2, 2, 2, 3));
      assert_dims (td_average_pooling_nd (plane, .ksize = { 3, 3 }, .pad_value = TD_NONE),
                   TD_SHAPE (2, 3, 2, 2));
      assert_dims (td_average_pooling_1d (line), TD_SHAPE (1, 1, 4));
      assert_dims (td_average_pooling_3d (space, .stride = { 1, 1, 1 }),
                   TD_SHAPE (1, 2, 3, 4, 5));
      assert_dims (td_unpooling_2d (plane), TD_SHAPE (2, 3, 11, 13));
      assert_dims (td_unpooling_2d (plane, .cover_all = false), TD_SHAPE (2, 3, 12, 14));
      assert_dims (td_adaptive_average_pooling_2d (plane, 1, 1), TD_SHAPE (2, 3, 1, 1));
    }
  assert_int_equal (td_finish (), 0);
}

/* Never run: that it compiles without a warning is the claim. */
static TdVar *
every_option_macro (TdVar *x, TdVar *t)
{
  TdLink *m = td_sequential_new ("s");
  TdVar *y = td_convolution_2d (td_max_pooling_2d (x, .ksize = { 2, 2 }, .cover_all = false), x,
                                NULL, .stride = { 2, 2 }, .pad = { 0, 0 });

  td_convolution_2d_new (m, "c", TD_INFER, 8, 3, .pad = { 1, 1 }, .nobias = false);
  td_convolution_2d_new (m, "c2", 8, 8, 3);
  td_batch_normalization_new (m, "bn", 8, .use_gamma = false);
  td_batch_normalization_new (m, "bn2", 8);
  td_embed_id_new (m, "e", 10, 4, .initialW = td_init_normal (0.1));
  td_lstm_new (m, "r", 4, 4);
  td_momentum_sgd_new (m);
  td_momentum_sgd_new (m, .momentum = 0);
  TdIter *it
      = td_serial_iterator_new (td_tuple_dataset_new (x, t), .batch_size = 10, .repeat = false);
  TdBatch b = td_iter_next (it);
  return td_softmax_cross_entropy (td_softmax (td_link (m, b.x), .axis = 1), b.t,
                                   .class_weight = td_softmax (y), .normalize = false);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (header__bare_call_gives_the_defaults),
    td_test (header__explicit_false_is_not_unset),
    td_test (header__arrays_in_options_live_through_the_call),
    td_test (header__option_calls_nest),
    td_test (header__parameter_options_may_be_positional),
    td_test (header__window_functions_take_bare_and_named_options),
  };

  (void)every_option_macro;
  return cmocka_run_group_tests_name ("header", tests, NULL, NULL);
}
