/* Means of gradients that take another way: in 16 bits, behind backward, behind the next
 * iteration.  What comes of it, beside the usual way.
 *
 * SPDX-License-Identifier: MIT */
#include "models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  STEPS = 12,
  SMALL = 256 /* bytes of a bucket: several for the smallest model */
};

/* --- 16 bits --- */

static TdOpt *
sgd (TdLink *model)
{
  return td_sgd_new (model, .lr = 0.1);
}

static void
mean__in_16_bits_is_that_of_floats_but_for_rounding (void **state)
{
  static const struct
  {
    TdDtype dtype;
    double tolerance; /* of a sum of n_ranks numbers below 1, rounded each time */
  } kinds[] = { { TD_F16, 0x1p-10 }, { TD_BF16, 0x1p-7 } };

  (void)state;
  for (int k = 0; k < 2; k++)
    {
      TdLink *model = td_chain_new ("net");
      TdVar *w
          = td_link_add_param (model, "w", TD_SHAPE (300), .initializer = td_init_constant (0));
      TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (model, .lr = 1), world,
                                                .allreduce_grad_dtype = kinds[k].dtype);

      TD_SCOPE ("update")
        {
          TdVar *mean = td_zeros (TD_F32, TD_SHAPE (300));
          float got[300];

          for (int r = 0; r < n_ranks; r++)
            mean = td_add (mean, numbers_of (r, TD_F32, TD_SHAPE (300), 5));
          mean = td_mul_scalar (mean, 1.0 / n_ranks);
          td_set_grad (w, numbers_of (me, TD_F32, TD_SHAPE (300), 5));
          assert_int_equal (td_opt_update (opt), TD_OK);
          assert_near (td_neg (w), mean, kinds[k].tolerance * (n_ranks > 1 ? 2 : 1));
          assert_int_equal (td_read (w, got, sizeof got), TD_OK);
          assert_same_on_all_ranks (got, sizeof got);
          /* and it has gone as that: one rank's gradient is rounded, too */
          if (n_ranks == 1)
            assert_near (td_neg (w), td_cast (td_cast (mean, kinds[k].dtype), TD_F32), 0);
        }
      td_opt_free (opt);
      td_link_free (model);
    }
}

static void
training__in_16_bits_stays_near_and_alike (void **state)
{
  static const TdDtype dtypes[] = { TD_F16, TD_BF16 };

  (void)state;
  for (int k = 0; k < 2; k++)
    {
      TdLink *model = mlp ("net", 8, 1), *one = mlp ("one", 8, 1);
      TdOpt *opt
          = td_multi_node_optimizer_new (sgd (model), world, .allreduce_grad_dtype = dtypes[k]);
      TdOpt *opt_one = sgd (one);

      for (int step = 0; step < STEPS; step++)
        {
          train_step (model, opt, me, me + 1, step);
          train_step (one, opt_one, 0, n_ranks, step);
          assert_params_same_on_all_ranks (model);
        }
      assert_params_near (model, one, dtypes[k] == TD_F16 ? 1e-3 : 8e-3);
      td_opt_free (opt);
      td_opt_free (opt_one);
      td_link_free (model);
      td_link_free (one);
    }
}

/* Each gradient fits float16, their sum does not: said on all ranks, and nothing is updated. */
static void
overflow__of_a_sum_is_said_and_updates_nothing (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (3), .initializer = td_init_constant (1));
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .allreduce_grad_dtype = TD_F16);
  const double large = n_ranks > 1 ? 40000 : 70000;

  (void)state;
  TD_SCOPE ("overflow")
    {
      td_set_grad (w, td_full (TD_F32, TD_SHAPE (3), large));
      assert_int_equal (td_opt_update (opt), TD_ERR_NUMERIC);
      assert_non_null (strstr (said (TD_ERR_NUMERIC),
                               "the sum of the gradients of w does not fit f16: send them "
                               "as bf16, or use td_opt_loss_scaling"));
      assert_near (w, td_ones (TD_F32, TD_SHAPE (3)), 0);
      td_set_grad (w, td_full (TD_F32, TD_SHAPE (3), 2));
      assert_int_equal (td_opt_update (opt), TD_OK);
      assert_near (w, td_full (TD_F32, TD_SHAPE (3), 0.8), 1e-6);
      td_set_grad (w, td_full (TD_F32, TD_SHAPE (3), INFINITY)); /* before it is sent */
      assert_int_equal (td_opt_update (opt), TD_OK);
      assert_true (isinf (td_item (td_max (w))));
    }
  td_opt_free (opt);
  td_link_free (model);
}

static void
overflow__of_a_sum_is_found_by_a_dynamic_loss_scale (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (1), .initializer = td_init_constant (1));
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .allreduce_grad_dtype = TD_F16);

  (void)state;
  td_opt_loss_scaling (opt);
  for (int step = 0; step < 24; step++)
    TD_SCOPE ("step")
      {
        td_cleargrads (model);
        assert_int_equal (td_opt_backward (opt, td_sum (td_mul_scalar (w, 0.75)), 0), TD_OK);
        assert_int_equal (td_opt_update (opt), TD_OK);
      }
  TD_SCOPE ("weights")
    {
      const double taken = 24 - (double)td_opt_skipped (opt);

      assert_near (w, td_full (TD_F32, TD_SHAPE (1), 1 - 0.075 * taken), 1e-4);
    }
  assert_true ((n_ranks == 1) == (td_opt_skipped (opt) == 0)); /* one's largest fits */
  if (n_ranks > 1)
    assert_string_equal (td_opt_first_overflow (opt), "w");
  td_opt_free (opt);
  td_link_free (model);
}

/* --- behind backward --- */

typedef TdVar *(*Loss) (TdLink *model, int step);

static TdVar *
usual_loss (TdLink *model, int step)
{
  TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (BATCH, 8), (unsigned)step);

  return td_mean (td_square (td_link (model, x)));
}

/* Weights are used twice, or once, by turns and by ranks: nothing is final when it was. */
static TdVar *
changing_loss (TdLink *model, int step)
{
  TdVar *loss = usual_loss (model, step);

  return (step + me) % 3 == 0 ? td_add (loss, usual_loss (model, step + 100)) : loss;
}

/* Some ranks go without the last layer now and then. */
static TdVar *
other_graph_loss (TdLink *model, int step)
{
  TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (BATCH, 8), (unsigned)step);

  if (step < 5 || (step + me) % 2 == 0)
    return usual_loss (model, step);
  return td_mean (td_square (td_link (td_link_child (model, "l1"), x)));
}

/* The second backward adds to what the first has made. */
static TdVar *
accumulating_loss (TdLink *model, int step)
{
  assert_int_equal (td_backward (usual_loss (model, step + 50), 0), TD_OK);
  if (step % 5 == 4)
    assert_int_equal (td_backward (usual_loss (model, step + 70), 0), TD_OK);
  return usual_loss (model, step);
}

/* The program changes gradients between backward and update. */
static TdVar *
usual_loss_again (TdLink *model, int step)
{
  return usual_loss (model, step);
}

static void
scale_gradients (TdLink *model, int step)
{
  if (step % 4 != 3)
    return;
  td_set_grad (td_link_param (td_link_child (model, "l1"), "W"),
               td_mul_scalar (td_grad (td_link_param (td_link_child (model, "l1"), "W")), 0.5));
}

static const struct
{
  const char *name;
  Loss loss;
  void (*between) (TdLink *model, int step);
} programs[] = {
  { "usual", usual_loss, NULL },
  { "changing", changing_loss, NULL },
  { "other graph", other_graph_loss, NULL },
  { "accumulating", accumulating_loss, NULL },
  { "scaled between", usual_loss_again, scale_gradients },
};

static Numbers
train (int program, TdMultiNodeOpt options)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new_ (td_adam_new (model, .lr = 0.01), world, &options);
  Numbers numbers;

  for (int step = 0; step < 2 * STEPS; step++)
    TD_SCOPE ("step")
      {
        td_cleargrads (model);
        assert_int_equal (td_backward (programs[program].loss (model, step), 0), TD_OK);
        if (programs[program].between != NULL)
          programs[program].between (model, step);
        assert_int_equal (td_opt_update (opt), TD_OK);
      }
  assert_params_same_on_all_ranks (model);
  numbers = params_of (model);
  td_opt_free (opt);
  td_link_free (model);
  return numbers;
}

static void
overlap__gives_the_same_bits_whatever_the_program_does (void **state)
{
  (void)state;
  for (int p = 0; p < (int)(sizeof programs / sizeof *programs); p++)
    for (int half = 0; half < 2; half++)
      {
        TdMultiNodeOpt plain = { TD_MULTI_NODE_DEFAULTS }, behind;
        Numbers a, b;

        plain.bucket_bytes = SMALL;
        plain.allreduce_grad_dtype = half ? TD_BF16 : TD_F32;
        plain.overlap = false;
        behind = plain;
        behind.overlap = true;
        a = train (p, plain);
        b = train (p, behind);
        if (memcmp (a.numbers, b.numbers, a.n * sizeof (float)) != 0)
          fail_msg ("rank %d: other numbers in \"%s\"", me, programs[p].name);
      }
}

/* A rank that fails in its forward, after the others have begun to send. */
static void
overlap__survives_the_failure_of_a_rank (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .overlap = true,
                                            .bucket_bytes = SMALL);
  Numbers before, after;

  (void)state;
  for (int step = 0; step < 4; step++)
    train_step (model, opt, me, me + 1, step);
  before = params_of (model);
  TD_SCOPE ("failure")
    {
      td_cleargrads (model);
      if (me == n_ranks - 1)
        td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));
      td_backward (usual_loss (model, 9), 0);
      assert_int_not_equal (td_opt_update (opt), TD_OK);
      assert_non_null (strstr (td_error ()->message, "add: "));
      td_error_clear ();
    }
  after = params_of (model);
  assert_memory_equal (before.numbers, after.numbers, before.n * sizeof (float));
  for (int step = 0; step < 4; step++)
    train_step (model, opt, me, me + 1, step);
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

/* A last backward without an update: what is on its way is nobody's any more. */
static void
overlap__leaves_what_is_on_its_way_behind (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .overlap = true,
                                            .bucket_bytes = SMALL);

  (void)state;
  for (int step = 0; step < 4; step++)
    train_step (model, opt, me, me + 1, step);
  TD_SCOPE ("last")
    if (me != 0) /* not even all of them */
      {
        td_cleargrads (model);
        assert_int_equal (td_backward (usual_loss (model, 9), 0), TD_OK);
      }
  td_opt_free (opt);
  td_link_free (model);
  assert_int_equal (td_comm_barrier (world), TD_OK);
}

/* Two models, whose losses share backwards: each optimizer sends its own gradients. */
static void
overlap__of_two_optimizers_gives_the_same_bits (void **state)
{
  Numbers first[2], again[2];

  (void)state;
  for (int behind = 0; behind < 2; behind++)
    {
      TdLink *models[2] = { mlp ("a", 8, 1), mlp ("b", 8, 2) };
      TdOpt *opts[2];

      for (int i = 0; i < 2; i++)
        opts[i] = td_multi_node_optimizer_new (sgd (models[i]), world, .overlap = behind,
                                               .bucket_bytes = SMALL);
      for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < 2; i++)
          TD_SCOPE ("step")
            {
              TdVar *loss = td_add (usual_loss (models[0], step), usual_loss (models[1], step));

              td_cleargrads (models[i]);
              assert_int_equal (td_backward (loss, 0), TD_OK);
              assert_int_equal (td_opt_update (opts[i]), TD_OK);
            }
      for (int i = 0; i < 2; i++)
        {
          (behind ? again : first)[i] = params_of (models[i]);
          td_opt_free (opts[i]);
          td_link_free (models[i]);
        }
    }
  for (int i = 0; i < 2; i++)
    assert_memory_equal (first[i].numbers, again[i].numbers, first[i].n * sizeof (float));
}

/* --- double buffering --- */

/* By hand: w moves by the mean gradient of the step before; the first update does nothing. */
static void
double_buffering__updates_by_the_means_of_the_step_before (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (2), .initializer = td_init_constant (1));
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .double_buffering = true);
  double want = 1, earlier = 0;

  (void)state;
  for (int step = 0; step < 6; step++)
    TD_SCOPE ("step")
      {
        const double mean = step + 1 + (n_ranks - 1) / 2.0;

        td_set_grad (w, td_full (TD_F32, TD_SHAPE (2), step + 1 + me));
        assert_int_equal (td_opt_update (opt), TD_OK);
        want -= 0.1 * earlier;
        earlier = mean;
        assert_near (w, td_full (TD_F32, TD_SHAPE (2), want), 1e-6);
        assert_int_equal (td_opt_count (opt), step);
      }
  td_opt_free (opt);
  td_link_free (model);
}

/* One rank is what several are: the same staleness by all batches. */
static void
double_buffering__equals_one_process_with_delayed_gradients (void **state)
{
  TdLink *model = mlp ("net", 8, 1), *one = mlp ("one", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .double_buffering = true,
                                            .bucket_bytes = SMALL);
  TdComm *alone = td_comm_split (world, me, 0);
  TdOpt *opt_one = td_multi_node_optimizer_new (sgd (one), alone, .double_buffering = true);

  (void)state;
  for (int step = 0; step < STEPS; step++)
    {
      train_step (model, opt, me, me + 1, step);
      train_step (one, opt_one, 0, n_ranks, step);
      assert_params_same_on_all_ranks (model);
    }
  assert_params_near (model, one, 1e-6);
  td_opt_free (opt);
  td_opt_free (opt_one);
  td_comm_free (alone);
  td_link_free (model);
  td_link_free (one);
}

/* A loss scale that changes meanwhile: the means are brought to the present one. */
static void
double_buffering__knows_the_loss_scale_of_its_gradients (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (1), .initializer = td_init_constant (1));
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .double_buffering = true);

  (void)state;
  for (int step = 0; step < 5; step++)
    TD_SCOPE ("step")
      {
        td_cleargrads (model);
        td_opt_loss_scaling (opt, .scale = step % 2 == 0 ? 8 : 64);
        assert_int_equal (td_opt_backward (opt, td_sum (td_mul_scalar (w, 0.5)), 0), TD_OK);
        assert_int_equal (td_opt_update (opt), TD_OK);
        assert_near (w, td_full (TD_F32, TD_SHAPE (1), 1 - 0.05 * step), 1e-6);
      }
  td_opt_free (opt);
  td_link_free (model);
}

static void
double_buffering__goes_on_after_a_rank_has_failed (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (sgd (model), world, .double_buffering = true);

  (void)state;
  for (int step = 0; step < 3; step++)
    train_step (model, opt, me, me + 1, step);
  TD_SCOPE ("failure")
    {
      if (me == n_ranks - 1)
        td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));
      assert_int_not_equal (td_opt_update (opt), TD_OK);
      td_error_clear ();
    }
  for (int step = 3; step < 6; step++)
    train_step (model, opt, me, me + 1, step);
  assert_params_same_on_all_ranks (model);
  assert_int_equal (td_opt_count (opt), 5);
  td_opt_free (opt);
  td_link_free (model);
}

/* --- options --- */

static void
options__that_cannot_be_are_said_to_all_ranks (void **state)
{
  const struct
  {
    TdMultiNodeOpt options;
    const char *text;
  } wrong[] = {
    { { TD_I32, false, false, 4, 0 }, "f32, f16 or bf16 expected" },
    { { TD_F32, false, false, 0, 0 }, "bucket_bytes above 0 expected" },
    { { TD_F32, true, true, 4, 0 }, "not both" },
  };
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = sgd (model);

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      td_multi_node_optimizer_new_ (opt, world, me == n_ranks - 1 ? &wrong[i].options : NULL);
      assert_non_null (td_error ());
      if (me == n_ranks - 1 || n_ranks == 1)
        assert_non_null (strstr (td_error ()->message, wrong[i].text));
      else
        assert_non_null (strstr (td_error ()->message, "cannot take part"));
      td_error_clear ();
    }
  if (n_ranks > 1)
    {
      td_multi_node_optimizer_new (opt, world, .overlap = me == 0);
      assert_non_null (strstr (said (TD_ERR_ARG), "the ranks give different arguments"));
    }
  td_opt_free (td_multi_node_optimizer_new (opt, world));
  td_link_free (model);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (mean__in_16_bits_is_that_of_floats_but_for_rounding),
    ranks_test (training__in_16_bits_stays_near_and_alike),
    ranks_test (overflow__of_a_sum_is_said_and_updates_nothing),
    ranks_test (overflow__of_a_sum_is_found_by_a_dynamic_loss_scale),
    ranks_test (overlap__gives_the_same_bits_whatever_the_program_does),
    ranks_test (overlap__survives_the_failure_of_a_rank),
    ranks_test (overlap__leaves_what_is_on_its_way_behind),
    ranks_test (overlap__of_two_optimizers_gives_the_same_bits),
    ranks_test (double_buffering__updates_by_the_means_of_the_step_before),
    ranks_test (double_buffering__equals_one_process_with_delayed_gradients),
    ranks_test (double_buffering__knows_the_loss_scale_of_its_gradients),
    ranks_test (double_buffering__goes_on_after_a_rank_has_failed),
    ranks_test (options__that_cannot_be_are_said_to_all_ranks),
  };

  return run_as_ranks (tests);
}
