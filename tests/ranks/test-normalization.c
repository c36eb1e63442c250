/* Batch normalization by the batches of all ranks, beside one process that has them all.
 *
 * SPDX-License-Identifier: MIT */
#include "models.h"

#include <string.h>

enum
{
  CHANNELS = 3,
  STEPS = 8
};

/* Rank r has 2 + r examples of images of 2 x 2. */
static TdVar *
images_of (int rank, TdDtype dtype, unsigned seed)
{
  return numbers_of (rank, dtype, TD_SHAPE (2 + rank, CHANNELS, 2, 2), seed);
}

static TdVar *
all_images (TdDtype dtype, unsigned seed)
{
  TdVar *xs[MOST];

  for (int r = 0; r < n_ranks; r++)
    xs[r] = images_of (r, dtype, seed);
  return td_concat (xs, n_ranks, 0);
}

/* The part of the whole batch that is this rank's. */
static TdVar *
own_part (TdVar *whole)
{
  int64_t before = 0;

  for (int r = 0; r < me; r++)
    before += 2 + r;
  return td_get_item (whole, &TD_RANGE (before, before + 2 + me), 1);
}

static void
set_gamma_beta (TdLink *bn)
{
  const double gamma[] = { 0.5, -1, 1.5 }, beta[] = { 0.5, 0, -0.5 };

  TD_SCOPE ("scale")
    {
      TdVar *g = td_cast (td_tensor (TD_F64, TD_SHAPE (CHANNELS), gamma), TD_F32);
      TdVar *b = td_cast (td_tensor (TD_F64, TD_SHAPE (CHANNELS), beta), TD_F32);
      float room[CHANNELS];

      td_read (g, room, sizeof room);
      td_write (td_link_param (bn, "gamma"), room, sizeof room);
      td_read (b, room, sizeof room);
      td_write (td_link_param (bn, "beta"), room, sizeof room);
    }
}

static TdVar *
loss_of (TdVar *y)
{
  return td_mul_scalar (td_sum (td_mul (td_square (y), td_sin (y))), 0.1);
}

/* Forward, first gradients and running statistics of batches of different sizes. */
static void
normalized__as_one_process_with_all_batches (void **state)
{
  TdLink *bn = td_multi_node_batch_normalization_new (NULL, "bn", CHANNELS, world);
  TdLink *one = td_batch_normalization_new (NULL, "one", CHANNELS);

  (void)state;
  set_gamma_beta (bn);
  set_gamma_beta (one);
  for (unsigned time = 0; time < 3; time++)
    TD_SCOPE ("time")
      {
        TdVar *x = td_variable (images_of (me, TD_F32, time), "x"), *y = td_link (bn, x);
        TdVar *X = td_variable (all_images (TD_F32, time), "X"), *Y = td_link (one, X);

        assert_near (y, own_part (Y), 2e-6);
        td_cleargrads (bn);
        td_cleargrads (one);
        assert_int_equal (td_backward (loss_of (y), 0), TD_OK);
        assert_int_equal (td_backward (loss_of (Y), 0), TD_OK);
        assert_near (td_grad (x), own_part (td_grad (X)), 2e-6);
        for (int i = 0; i < 2; i++)
          {
            const char *name = i == 0 ? "gamma" : "beta";

            assert_near (td_comm_allreduce (world, td_grad (td_link_param (bn, name))),
                         td_grad (td_link_param (one, name)), 4e-6);
          }
        assert_near (td_link_param (bn, "avg_mean"), td_link_param (one, "avg_mean"), 1e-6);
        assert_near (td_link_param (bn, "avg_var"), td_link_param (one, "avg_var"), 1e-6);
      }
  td_link_free (bn);
  td_link_free (one);
}

/* In doubles the same to the last bits but a few, with second gradients. */
static void
gradients__of_both_orders_are_those_of_one_process (void **state)
{
  TdLink *bn, *one;

  (void)state;
  TD_USING (dtype, TD_F64)
    {
      bn = td_multi_node_batch_normalization_new (NULL, "bn", CHANNELS, world);
      one = td_batch_normalization_new (NULL, "one", CHANNELS);
    }
  TD_SCOPE ("second")
    {
      TdVar *x = td_variable (images_of (me, TD_F64, 5), "x"), *g, *gg;
      TdVar *X = td_variable (all_images (TD_F64, 5), "X"), *G, *GG;
      TdVar *loss = loss_of (td_link (bn, x)), *LOSS = loss_of (td_link (one, X)), *of, *OF;

      assert_int_equal (td_grad_of (&loss, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g), TD_OK);
      assert_int_equal (td_grad_of (&LOSS, 1, &X, 1, NULL, TD_DOUBLE_BACKPROP, &G), TD_OK);
      assert_near (g, own_part (G), 1e-11);
      of = td_sum (td_mul (g, td_square (g)));
      OF = td_sum (td_mul (G, td_square (G)));
      assert_int_equal (td_grad_of (&of, 1, &x, 1, NULL, 0, &gg), TD_OK);
      assert_int_equal (td_grad_of (&OF, 1, &X, 1, NULL, 0, &GG), TD_OK);
      assert_near (gg, own_part (GG), 1e-8);
    }
  td_link_free (bn);
  td_link_free (one);
}

/* The sum of all ranks' losses where element i of rank `rank` is moved by `by`. */
static double
loss_with (TdLink *bn, TdVar *x, int rank, int64_t i, double by)
{
  double room[MOST * CHANNELS * 8], all = 0;
  const size_t bytes = (size_t)td_size (x) * sizeof *room;

  TD_SCOPE ("moved")
    {
      assert_true (bytes <= sizeof room);
      assert_int_equal (td_read (x, room, bytes), TD_OK);
      if (me == rank)
        room[i] += by;
      all = td_item (td_comm_allreduce (
          world, loss_of (td_link (bn, td_tensor (TD_F64, td_shape (x), room)))));
    }
  return all;
}

/* By differences: every element of rank 0, and some of the last rank. */
static void
gradient__is_what_differences_say_across_ranks (void **state)
{
  static const double step = 1e-5;
  TdLink *bn;
  double got[MOST * CHANNELS * 8];

  (void)state;
  TD_USING (dtype, TD_F64)
    bn = td_multi_node_batch_normalization_new (NULL, "bn", CHANNELS, world);
  TD_SCOPE ("differences")
    {
      TdVar *x = td_variable (images_of (me, TD_F64, 9), "x");

      assert_int_equal (td_backward (loss_of (td_link (bn, x)), 0), TD_OK);
      assert_int_equal (td_read (td_grad (x), got, (size_t)td_size (x) * sizeof *got), TD_OK);
      for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < (which == 0 ? 2 * CHANNELS * 4 : 5); i++)
          {
            const int rank = which == 0 ? 0 : n_ranks - 1;
            const double want
                = (loss_with (bn, x, rank, i, step) - loss_with (bn, x, rank, i, -step))
                  / (2 * step);

            if (me == rank)
              assert_float_equal (got[i], want, 1e-6);
          }
    }
  td_link_free (bn);
}

static TdLink *
net (const char *name, bool multi_node)
{
  TdLink *model = td_sequential_new (name);

  td_set_seed (4);
  td_linear_new (model, "l1", 8, CHANNELS);
  if (multi_node)
    td_multi_node_batch_normalization_new (model, "bn", TD_INFER, world);
  else
    td_batch_normalization_new (model, "bn", TD_INFER);
  td_sequential_append (model, td_tanh);
  td_linear_new (model, "l2", CHANNELS, 4);
  return model;
}

static void
training__with_it_equals_one_process_with_all_batches (void **state)
{
  TdLink *model = net ("net", true), *one = net ("one", false);
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (model, .lr = 0.1), world);
  TdOpt *opt_one = td_sgd_new (one, .lr = 0.1);
  TdLink *bn = td_link_child (model, "bn"), *bn_one = td_link_child (one, "bn");

  (void)state;
  for (int step = 0; step < STEPS; step++)
    {
      float room[2 * CHANNELS];

      train_step (model, opt, me, me + 1, step);
      train_step (one, opt_one, 0, n_ranks, step);
      assert_params_same_on_all_ranks (model);
      td_read (td_link_param (bn, "avg_mean"), room, sizeof room / 2);
      td_read (td_link_param (bn, "avg_var"), room + CHANNELS, sizeof room / 2);
      assert_same_on_all_ranks (room, sizeof room);
    }
  assert_params_near (model, one, 1e-6);
  TD_SCOPE ("statistics")
    {
      assert_near (td_link_param (bn, "avg_mean"), td_link_param (bn_one, "avg_mean"), 1e-6);
      assert_near (td_link_param (bn, "avg_var"), td_link_param (bn_one, "avg_var"), 1e-6);
    }
  td_opt_free (opt);
  td_opt_free (opt_one);
  td_link_free (model);
  td_link_free (one);
}

/* The gradient of a bias before it is 0 but for what rounding leaves, another number on each
 * number of ranks: Adam makes steps of the whole learning rate of its sign. */
static void
training__with_it_and_adam_equals_one_process_but_for_gradients_that_are_0 (void **state)
{
  static const struct
  {
    const char *link, *param;
    double tolerance;
  } rows[] = { { "l1", "W", 1e-6 },     { "l1", "b", 2 * STEPS * 1e-3 },
               { "bn", "gamma", 1e-6 }, { "bn", "beta", 1e-6 },
               { "l2", "W", 1e-6 },     { "l2", "b", 1e-6 } };
  TdLink *model = net ("net", true), *one = net ("one", false);
  TdOpt *opt = td_multi_node_optimizer_new (td_adam_new (model, .lr = 1e-3), world);
  TdOpt *opt_one = td_adam_new (one, .lr = 1e-3);

  (void)state;
  for (int step = 0; step < STEPS; step++)
    {
      train_step (model, opt, me, me + 1, step);
      train_step (one, opt_one, 0, n_ranks, step);
    }
  TD_SCOPE ("parameters")
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      assert_near (td_link_param (td_link_child (model, rows[i].link), rows[i].param),
                   td_link_param (td_link_child (one, rows[i].link), rows[i].param),
                   rows[i].tolerance);
  td_opt_free (opt);
  td_opt_free (opt_one);
  td_link_free (model);
  td_link_free (one);
}

static void
halves__are_normalized_by_moments_in_floats (void **state)
{
  TdLink *bn = td_multi_node_batch_normalization_new (NULL, "bn", CHANNELS, world);
  TdLink *one = td_batch_normalization_new (NULL, "one", CHANNELS);

  (void)state;
  TD_SCOPE ("half")
    {
      TdVar *y = td_link (bn, images_of (me, TD_F16, 3));

      assert_near (y, own_part (td_link (one, all_images (TD_F16, 3))), 4e-3);
      assert_near (td_link_param (bn, "avg_var"), td_link_param (one, "avg_var"), 1e-6);
    }
  td_link_free (bn);
  td_link_free (one);
}

/* An evaluation leaves them alone, and needs nobody else. */
static void
statistics__are_written_in_training_only (void **state)
{
  TdLink *bn = td_multi_node_batch_normalization_new (NULL, "bn", CHANNELS, world);

  (void)state;
  TD_SCOPE ("evaluation")
    {
      TdVar *before = td_copy (td_link_param (bn, "avg_mean"));

      if (me == n_ranks - 1)
        TD_USING (train, 0)
          {
            TdVar *x = images_of (me, TD_F32, 3);

            assert_near (td_link (bn, x), x, 1e-4); /* mean 0, variance 1 */
          }
      assert_near (td_link_param (bn, "avg_mean"), before, 0);
      td_link (bn, td_full (TD_F32, TD_SHAPE (2, CHANNELS), me));
      assert_near (td_link_param (bn, "avg_mean"),
                   td_full (TD_F32, TD_SHAPE (CHANNELS), 0.1 * (n_ranks - 1) / 2.0), 1e-6);
    }
  td_link_free (bn);
}

static void
call_link (void *link, TdVar *const *xs, int n, TdVar **ys, int m)
{
  (void)n, (void)m;
  ys[0] = td_link (link, xs[0]);
}

/* td_forget: the same gradient, by a second forward of all ranks. */
static void
computed_again__it_gives_the_same_and_leaves_the_statistics (void **state)
{
  TdLink *bn = td_multi_node_batch_normalization_new (NULL, "bn", CHANNELS, world);
  TdLink *other = td_multi_node_batch_normalization_new (NULL, "bn", CHANNELS, world);

  (void)state;
  TD_SCOPE ("forget")
    {
      TdVar *x = td_variable (images_of (me, TD_F32, 3), "x"), *y;
      TdVar *z = td_variable (images_of (me, TD_F32, 3), "z");

      assert_int_equal (td_forget (call_link, bn, &x, 1, &y, 1), TD_OK);
      assert_int_equal (td_backward (loss_of (y), 0), TD_OK);
      assert_int_equal (td_backward (loss_of (td_link (other, z)), 0), TD_OK);
      assert_near (td_grad (x), td_grad (z), 1e-6);
      assert_near (td_link_param (bn, "avg_var"), td_link_param (other, "avg_var"), 0);
    }
  td_link_free (bn);
  td_link_free (other);
}

static void
what_does_not_fit__is_an_error_on_all_ranks (void **state)
{
  TdLink *bn = td_multi_node_batch_normalization_new (NULL, "bn", TD_INFER, world);
  const bool last = me == n_ranks - 1;

  (void)state;
  TD_SCOPE ("axes")
    {
      td_link (bn, last ? td_ones (TD_F32, TD_SHAPE (4)) : td_ones (TD_F32, TD_SHAPE (4, 5)));
      assert_non_null (strstr (td_error ()->message, "x with two or more axes expected"));
      td_error_clear ();
    }
  if (n_ranks > 1)
    TD_SCOPE ("channels")
      {
        TdLink *other = td_multi_node_batch_normalization_new (NULL, "other", TD_INFER, world);

        td_link (other, td_ones (TD_F32, TD_SHAPE (4, last ? 6 : 5)));
        assert_non_null (strstr (said (TD_ERR_SHAPE), "all ranks must do the same"));
        td_link_free (other);
      }
  td_link_free (bn);
  bn = td_multi_node_batch_normalization_new (NULL, "bn", 0, world);
  assert_non_null (strstr (said (TD_ERR_ARG), "MultiNodeBatchNormalization: size above 0"));
  bn = td_multi_node_batch_normalization_new (NULL, "bn", 3, NULL);
  assert_non_null (strstr (said (TD_ERR_STATE), "the communicator is NULL"));
  assert_int_equal (td_comm_barrier (world), TD_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (normalized__as_one_process_with_all_batches),
    ranks_test (gradients__of_both_orders_are_those_of_one_process),
    ranks_test (gradient__is_what_differences_say_across_ranks),
    ranks_test (training__with_it_equals_one_process_with_all_batches),
    ranks_test (training__with_it_and_adam_equals_one_process_but_for_gradients_that_are_0),
    ranks_test (halves__are_normalized_by_moments_in_floats),
    ranks_test (statistics__are_written_in_training_only),
    ranks_test (computed_again__it_gives_the_same_and_leaves_the_statistics),
    ranks_test (what_does_not_fit__is_an_error_on_all_ranks),
  };

  return run_as_ranks (tests);
}
