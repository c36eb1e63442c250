/* Training by several ranks: what they have in common at the beginning and after every update,
 * and that it is what one process does with all their data.
 *
 * SPDX-License-Identifier: MIT */
#include "models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  STEPS = 20
};

/* --- links --- */

static void
bcast_link__gives_parameters_and_persistents_of_rank_0 (void **state)
{
  TdLink *model = mlp ("net", 8, 1 + (unsigned)me), *l1 = td_link_child (model, "l1");
  TdVar *mean = NULL;

  (void)state;
  TD_SCOPE ("persistent")
    mean = td_link_add_persistent (l1, "mean", td_full (TD_F64, TD_SHAPE (3), me + 0.5));
  assert_int_equal (td_comm_bcast_link (world, model), TD_OK);
  assert_params_same_on_all_ranks (model);
  TD_SCOPE ("rank 0's")
    {
      TdLink *zeroth = mlp ("zeroth", 8, 1);

      assert_near (mean, td_full (TD_F64, TD_SHAPE (3), 0.5), 0);
      assert_params_near (model, zeroth, 0);
      td_link_free (zeroth);
    }
  td_link_free (model);
}

static void
bcast_link__gives_shapes_to_parameters_that_wait_for_them (void **state)
{
  TdLink *model = mlp ("net", TD_INFER, 1 + (unsigned)me);

  (void)state;
  if (me == 0)
    TD_SCOPE ("shape")
      td_link (model, td_ones (TD_F32, TD_SHAPE (2, 8)));
  assert_int_equal (td_comm_bcast_link (world, model), TD_OK);
  assert_params_same_on_all_ranks (model);
  assert_int_equal (params_of (model).n, 8 * 16 + 16 + 16 * 4 + 4);
  td_link_free (model);
}

static void
links__that_differ_are_an_error_that_names_the_array_on_all_ranks (void **state)
{
  TdLink *model = mlp ("net", me == n_ranks - 1 ? 9 : 8, 1);
  const Numbers before = params_of (model);
  Numbers after;
  const char *text;

  (void)state;
  if (n_ranks > 1)
    {
      assert_int_not_equal (td_comm_bcast_link (world, model), TD_OK);
      text = said (TD_ERR_STATE);
      assert_non_null (strstr (text, "it has l1/W (16, 9) where rank 0 has (16, 8)"));
      after = params_of (model);
      assert_memory_equal (before.numbers, after.numbers, before.n * sizeof (float));
      assert_int_not_equal (td_comm_allreduce_grad (world, model), TD_OK);
      text = said (TD_ERR_STATE);
      assert_non_null (
          strstr (text, "it has l1/W (16, 9) f32 where rank 0 has l1/W (16, 8) f32"));
    }
  td_link_free (model);
}

static void
mean_of_gradients__counts_those_that_are_missing_as_zeros (void **state)
{
  static const TdDtype dtypes[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };
  static const double tolerance[] = { 1e-7, 1e-15, 1e-3, 1e-2 };

  (void)state;
  for (int i = 0; i < 4; i++)
    {
      TdLink *net = td_chain_new ("net");
      TdVar *a = td_link_add_param (net, "a", TD_SHAPE (5), .dtype = dtypes[i]);
      TdVar *b = td_link_add_param (net, "b", TD_SHAPE (2, 3), .dtype = TD_F64);
      TdVar *c = td_link_add_param (net, "c", TD_SHAPE (4));

      TD_SCOPE ("gradients")
        {
          TdVar *mean = numbers_of (0, TD_F64, TD_SHAPE (5), 5);

          for (int r = 1; r < n_ranks; r++)
            mean = td_add (mean, numbers_of (r, TD_F64, TD_SHAPE (5), 5));
          td_set_grad (a, numbers_of (me, dtypes[i], TD_SHAPE (5), 5));
          if (me == n_ranks - 1)
            td_set_grad (b, td_ones (TD_F64, TD_SHAPE (2, 3)));
          assert_int_equal (td_comm_allreduce_grad (world, net), TD_OK);
          assert_near (td_cast (td_grad (a), TD_F64), td_div_scalar (mean, n_ranks),
                       tolerance[i]);
          assert_near (td_grad (b), td_full (TD_F64, TD_SHAPE (2, 3), 1.0 / n_ranks), 1e-15);
          assert_null (td_grad (c));
        }
      td_link_free (net);
    }
}

/* Somebody else has the gradient's array: that one stays as it was. */
static void
mean_of_gradients__leaves_arrays_of_others_alone (void **state)
{
  TdLink *net = td_chain_new ("net");
  TdVar *a = td_link_add_param (net, "a", TD_SHAPE (3));

  (void)state;
  TD_SCOPE ("shared")
    {
      TdVar *g = td_full (TD_F32, TD_SHAPE (3), me + 1),
            *view = td_reshape (g, TD_SHAPE (3, 1));

      td_set_grad (a, g);
      assert_int_equal (td_comm_allreduce_grad (world, net), TD_OK);
      assert_near (view, td_full (TD_F32, TD_SHAPE (3, 1), me + 1), 0);
      assert_near (td_grad (a), td_full (TD_F32, TD_SHAPE (3), (n_ranks + 1) / 2.0), 1e-6);
    }
  td_link_free (net);
}

/* --- data --- */

enum
{
  EXAMPLES = 41
};

static TdDataset *
whole_dataset (void)
{
  TdDataset *d = NULL;

  TD_SCOPE ("data")
    {
      const char *const names[] = { "number", "row" };
      TdVar *arrays[] = { td_arange (TD_I32, 0, EXAMPLES, 1),
                          numbers_of (0, TD_F32, TD_SHAPE (EXAMPLES, 7), 3) };

      d = td_dict_dataset_new (names, arrays, 2);
    }
  return d;
}

/* Which examples this part has; their rows must be those of the whole. */
static int64_t
look_at_part (TdDataset *part, TdDataset *whole, unsigned char *seen)
{
  const int64_t n = td_dataset_size (part);

  for (int64_t i = 0; i < n; i++)
    {
      TdExample e = { .n_fields = 0 }, w = { .n_fields = 0 };
      int32_t number;

      assert_int_equal (td_dataset_get (part, i, &e), TD_OK);
      assert_int_equal (e.n_fields, 2);
      assert_string_equal (e.field[0].name, "number");
      assert_string_equal (e.field[1].name, "row");
      memcpy (&number, e.field[0].data, sizeof number);
      seen[number]++;
      assert_int_equal (td_dataset_get (whole, number, &w), TD_OK);
      assert_memory_equal (e.field[1].data, w.field[1].data, 7 * sizeof (float));
      td_example_clear (&e);
      td_example_clear (&w);
    }
  return n;
}

/* How often each example is in all parts together. */
static void
count_on_all (const unsigned char *seen, int *count)
{
  TD_SCOPE ("count")
    {
      TdVar *all = td_comm_allreduce (
          world, td_cast (td_tensor (TD_U8, TD_SHAPE (EXAMPLES), seen), TD_I32));

      assert_int_equal (td_read (all, count, EXAMPLES * sizeof *count), TD_OK);
    }
}

static void
scattered__parts_share_nothing_and_are_the_whole (void **state)
{
  (void)state;
  for (int have = 0; have < 2; have++)
    for (int shuffle = 0; shuffle < 2; shuffle++)
      {
        TdDataset *whole = whole_dataset (), *part;
        unsigned char seen[EXAMPLES] = { 0 };
        int count[EXAMPLES];
        int64_t n;

        part = td_scatter_dataset (have || me == 0 ? whole : NULL, world,
                                   .shuffle = shuffle != 0);
        n = look_at_part (part, whole, seen);
        assert_true (n == EXAMPLES / n_ranks || n == EXAMPLES / n_ranks + 1);
        if (n_ranks > 1 && me == 0) /* in order, the first part is the first examples */
          assert_int_equal (memchr (seen, 0, (size_t)n) != NULL, shuffle);
        count_on_all (seen, count);
        for (int i = 0; i < EXAMPLES; i++)
          assert_int_equal (count[i], 1);
        td_dataset_free (part);
        td_dataset_free (whole);
      }
}

static void
scattered__parts_of_one_length_hold_every_example (void **state)
{
  TdDataset *whole = whole_dataset (), *part;
  unsigned char seen[EXAMPLES] = { 0 };
  int count[EXAMPLES];

  (void)state;
  part = td_scatter_dataset (me == 0 ? whole : NULL, world, .force_equal_length = true);
  assert_int_equal (look_at_part (part, whole, seen), (EXAMPLES + n_ranks - 1) / n_ranks);
  count_on_all (seen, count);
  for (int i = 0; i < EXAMPLES; i++)
    assert_true (count[i] >= 1);
  td_dataset_free (part);
  td_dataset_free (whole);
}

static bool
refuse_one (TdExample *e, void *user)
{
  (void)user;
  return e->index != EXAMPLES - 1;
}

static void
scatter__that_cannot_be_is_said_to_all_ranks (void **state)
{
  TdDataset *whole = whole_dataset (), *less = td_sub_dataset_new (whole, 0, 40, NULL), *bad;

  (void)state;
  td_scatter_dataset (NULL, world, .shuffle = false);
  assert_non_null (td_error ());
  assert_non_null (strstr (td_error ()->message, "rank 0 must have the dataset"));
  td_error_clear ();
  bad = td_transform_dataset_new (whole, refuse_one, NULL);
  if (n_ranks > 1)
    {
      td_scatter_dataset (me == 1 ? less : whole, world, .shuffle = false);
      assert_non_null (strstr (said (TD_ERR_ARG), "rank 0 has 41 examples, rank 1 40"));
      /* An example of the last part cannot be read: all ranks hear of it. */
      td_scatter_dataset (me == 0 ? bad : NULL, world, .shuffle = false);
      assert_non_null (td_error ());
      td_error_clear ();
      td_scatter_dataset (whole, world, .shuffle = me == 0);
      assert_non_null (strstr (said (TD_ERR_ARG), "the ranks give different arguments: rank "));
      less = td_sub_dataset_new (whole, 0, n_ranks - 1, NULL);
      td_scatter_dataset (less, world, .shuffle = false);
      assert_non_null (strstr (said (TD_ERR_ARG), "examples for"));
    }
  assert_int_equal (td_comm_barrier (world), TD_OK);
  td_dataset_free (bad);
  td_dataset_free (whole);
}

/* --- the optimizer --- */

static TdOpt *
make_sgd (TdLink *model)
{
  return td_sgd_new (model, .lr = 0.1);
}

static TdOpt *
make_momentum (TdLink *model)
{
  return td_momentum_sgd_new (model, .lr = 0.05);
}

static TdOpt *
make_adam (TdLink *model)
{
  return td_adam_new (model, .lr = 0.01);
}

static TdOpt *(*const make_opt[]) (TdLink *model) = { make_sgd, make_momentum, make_adam };

static void
training__equals_one_process_with_all_batches (void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++)
    {
      TdLink *model = mlp ("net", 8, 1 + (unsigned)me), *one;
      TdOpt *opt = td_multi_node_optimizer_new (make_opt[i](model), world), *opt_one;

      assert_params_same_on_all_ranks (model);
      one = td_link_copy (model);
      opt_one = make_opt[i](one);
      for (int step = 0; step < STEPS; step++)
        {
          train_step (model, opt, me, me + 1, step);
          train_step (one, opt_one, 0, n_ranks, step);
          assert_params_same_on_all_ranks (model);
        }
      assert_params_near (model, one, 1e-6);
      td_opt_free (opt);
      td_opt_free (opt_one);
      td_link_free (model);
      td_link_free (one);
    }
}

static void
training__has_the_same_bits_each_time (void **state)
{
  Numbers first = { .n = 0 }, again;

  (void)state;
  for (int time = 0; time < 3; time++)
    {
      TdLink *model = mlp ("net", 8, 1);
      TdOpt *opt = td_multi_node_optimizer_new (make_adam (model), world);

      for (int step = 0; step < STEPS; step++)
        train_step (model, opt, me, me + 1, step);
      again = params_of (model);
      if (time == 0)
        first = again;
      assert_memory_equal (first.numbers, again.numbers, first.n * sizeof (float));
      td_opt_free (opt);
      td_link_free (model);
    }
}

/* Parameters get their shapes, and numbers that differ, with the first call: the first update
 * is by rank 0's gradient alone, and every one after that by all. */
static void
first_update__trains_though_the_numbers_were_others (void **state)
{
  TdLink *model = mlp ("net", TD_INFER, 1 + (unsigned)me), *one = mlp ("one", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (make_sgd (model), world), *opt_one;
  Numbers before;

  (void)state;
  td_set_seed (2 + (unsigned)me);
  train_step (model, opt, me, me + 1, 0);
  assert_params_same_on_all_ranks (model);
  before = params_of (model);
  assert_int_equal (td_opt_count (opt), 1);
  td_link_copy_params (one, model);
  opt_one = make_sgd (one);
  train_step (model, opt, me, me + 1, 1);
  train_step (one, opt_one, 0, n_ranks, 1);
  assert_params_near (model, one, 1e-6);
  assert_memory_not_equal (before.numbers, params_of (model).numbers, sizeof (float) * 8);
  td_opt_free (opt);
  td_opt_free (opt_one);
  td_link_free (model);
  td_link_free (one);
}

/* What rank 0 had before its first update is what the others begin with: by the difference, one
 * step of its gradient. */
static void
first_update__is_by_the_gradients_of_rank_0s_numbers (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (2), .initializer = td_init_constant (1));
  TdOpt *opt = td_multi_node_optimizer_new (make_sgd (model), world);
  const float others[] = { 7, 8 };
  TdVar *late;

  (void)state;
  if (me > 0)
    td_write (w, others, sizeof others); /* the program's own mistake stays its own ... */
  late = td_link_add_param (model, "late", TD_SHAPE (1)); /* ... until all are sent again */
  TD_SCOPE ("gradients")
    {
      td_set_grad (w, td_full (TD_F32, TD_SHAPE (2), me == 0 ? 2 : 100));
      td_set_grad (late, td_ones (TD_F32, TD_SHAPE (1)));
      assert_int_equal (td_opt_update (opt), TD_OK);
      assert_near (w, td_full (TD_F32, TD_SHAPE (2), 1 - 0.1 * 2), 1e-7);
    }
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

/* Rank 0 alone loads a file between the optimizer and the first update, as ChainerMN's programs
 * do: all begin with its numbers, and are not parted for ever. */
static void
first_update__sends_what_rank_0_alone_has_loaded (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (2), .initializer = td_init_constant (1));
  TdOpt *opt = td_multi_node_optimizer_new (make_sgd (model), world);
  const double first = 5 - 0.1 * 2, second = first - 0.1 * (n_ranks + 1) / 2.0;

  (void)state;
  if (me == 0)
    {
      const float loaded[] = { 5, 5 }, now[] = { 1, 1 };
      const char *file = td_test_tmp ("loaded.npz");

      td_write (w, loaded, sizeof loaded);
      assert_int_equal (td_save_npz (file, model), TD_OK);
      td_write (w, now, sizeof now);
      assert_int_equal (td_load_npz (file, model), TD_OK);
    }
  TD_SCOPE ("gradients")
    {
      td_set_grad (w, td_full (TD_F32, TD_SHAPE (2), me == 0 ? 2 : 100));
      assert_int_equal (td_opt_update (opt), TD_OK);
      assert_near (w, td_full (TD_F32, TD_SHAPE (2), first), 1e-6);
      td_set_grad (w, td_full (TD_F32, TD_SHAPE (2), me + 1));
      assert_int_equal (td_opt_update (opt), TD_OK);
      assert_near (w, td_full (TD_F32, TD_SHAPE (2), second), 1e-6);
    }
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

/* Running statistics differ after the first forward: the gradients are still of the same
 * parameters, and count. */
static void
first_update__counts_ranks_whose_persistents_are_others (void **state)
{
  TdLink *model = td_chain_new ("net");
  TdVar *w = td_link_add_param (model, "w", TD_SHAPE (2), .initializer = td_init_constant (1));
  TdOpt *opt;
  TdVar *mean = NULL;

  (void)state;
  TD_SCOPE ("persistent")
    mean = td_link_add_persistent (model, "mean", td_zeros (TD_F32, TD_SHAPE (1)));
  opt = td_multi_node_optimizer_new (make_sgd (model), world);
  TD_SCOPE ("update")
    {
      const float own = (float)me + 3;

      td_write (mean, &own, sizeof own);
      td_set_grad (w, td_full (TD_F32, TD_SHAPE (2), me + 1));
      assert_int_equal (td_opt_update (opt), TD_OK);
      assert_near (w, td_full (TD_F32, TD_SHAPE (2), 1 - 0.1 * (n_ranks + 1) / 2.0), 1e-6);
      assert_near (mean, td_full (TD_F32, TD_SHAPE (1), 3), 0);
    }
  td_opt_free (opt);
  td_link_free (model);
}

static void
optimizer__of_rank_0_goes_to_all_with_states_and_hyperparameters (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = make_adam (model);
  float m[16 * 8];

  (void)state;
  for (int step = 0; step < 3 + me; step++) /* each its own way, with its own numbers */
    train_step (model, opt, me, me + 1, step);
  td_opt_set_lr (opt, 0.25 / (1 + me));
  td_opt_set_hyper (opt, "l2/b", "lr", 0.5 / (1 + me));
  if (me != 0)
    td_opt_set_enabled (opt, "l1/b", false);
  assert_int_equal (td_comm_bcast_optimizer (world, opt), TD_OK);
  assert_int_equal (td_opt_count (opt), 3);
  assert_int_equal (td_opt_count_of (opt, "l2/W"), 3);
  assert_true (td_opt_lr (opt) == 0.25);
  assert_true (td_opt_hyper (opt, "l2/b", "lr") == 0.5);
  assert_int_equal (td_read (td_opt_state (opt, "l1/W", "m"), m, sizeof m), TD_OK);
  assert_same_on_all_ranks (m, sizeof m);
  opt = td_multi_node_optimizer_new (opt, world);
  for (int step = 0; step < 3; step++)
    train_step (model, opt, me, me + 1, step);
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

static void
optimizer__without_a_state_on_rank_0_has_none_on_any (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = make_adam (model);

  (void)state;
  if (me != 0)
    train_step (model, opt, me, me + 1, 0);
  opt = td_multi_node_optimizer_new (opt, world);
  assert_int_equal (td_opt_count (opt), 0);
  assert_null (td_opt_state (opt, "l1/W", "m"));
  train_step (model, opt, me, me + 1, 0);
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

/* What this rank draws next. */
static float
drawn (void)
{
  float x = 0;

  TD_SCOPE ("drawn")
    x = td_item (td_rand (TD_F32, TD_SCALAR));
  return x;
}

static void
random_state__of_rank_0_goes_to_all_where_that_is_asked_for (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt;
  float x;

  (void)state;
  for (int asked = 0; asked < 2; asked++)
    {
      td_set_seed (100 + (uint64_t)me);
      for (int k = 0; k < me; k++)
        drawn ();
      opt = td_multi_node_optimizer_new (make_sgd (model), world, .bcast_random = asked == 1);
      x = drawn ();
      assert_int_equal (same_on_all_ranks (&x, sizeof x), asked == 1 || n_ranks == 1);
      td_set_seed (200 + (uint64_t)me); /* what rank 0 loads before the first update */
      train_step (model, opt, me, me + 1, 0);
      x = drawn ();
      assert_int_equal (same_on_all_ranks (&x, sizeof x), asked == 1 || n_ranks == 1);
      td_opt_free (opt);
    }
  td_set_seed (300 + (uint64_t)me);
  assert_int_equal (td_comm_bcast_random (world), TD_OK);
  x = drawn ();
  assert_same_on_all_ranks (&x, sizeof x);
  td_set_seed (300);
  assert_true (drawn () == x); /* it is rank 0's */
  td_link_free (model);
}

static void
gradient_noise__is_the_same_on_all_ranks_with_the_random_state_of_rank_0 (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = make_sgd (model);

  (void)state;
  td_set_seed (400 + (uint64_t)me);
  td_opt_add_hook (opt, td_gradient_noise_new (0.1));
  opt = td_multi_node_optimizer_new (opt, world, .bcast_random = true);
  for (int step = 0; step < 3; step++)
    train_step (model, opt, me, me + 1, step);
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

static void
optimizers__of_two_kinds_are_an_error_on_all_ranks (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = me == n_ranks - 1 && n_ranks > 1 ? make_sgd (model) : make_adam (model);

  (void)state;
  if (n_ranks > 1)
    {
      assert_int_not_equal (td_comm_bcast_optimizer (world, opt), TD_OK);
      assert_non_null (strstr (said (TD_ERR_STATE),
                               "optimizers of one kind expected: it has SGD "
                               "where rank 0 has Adam"));
      td_multi_node_optimizer_new (opt, world);
      assert_non_null (strstr (said (TD_ERR_STATE),
                               "optimizers of one kind expected: it has SGD "
                               "where rank 0 has Adam"));
    }
  td_opt_free (opt);
  opt = td_multi_node_optimizer_new (make_adam (model), world);
  assert_ptr_not_equal (td_multi_node_optimizer_new (opt, world), opt);
  assert_non_null (strstr (said (TD_ERR_STATE), "has a communicator already"));
  td_opt_free (opt);
  td_link_free (model);
}

static void
update__of_a_rank_that_failed_is_an_error_on_all_ranks (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (make_sgd (model), world);
  const Numbers before = params_of (model);
  Numbers after;

  (void)state;
  TD_SCOPE ("failure")
    {
      if (me == n_ranks - 1)
        td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));
      assert_int_not_equal (td_opt_update (opt), TD_OK);
      assert_non_null (td_error ());
      assert_non_null (strstr (td_error ()->message, "add: "));
      td_error_clear ();
    }
  after = params_of (model);
  assert_memory_equal (before.numbers, after.numbers, before.n * sizeof (float));
  train_step (model, opt, me, me + 1, 0);
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

/* A branch that only some ranks take: what the others lack counts as zeros on all. */
static void
update__without_some_gradients_leaves_ranks_alike (void **state)
{
  TdLink *model = mlp ("net", 8, 1), *side = td_linear_new (model, "side", 16, 4);
  TdOpt *opt = td_multi_node_optimizer_new (make_momentum (model), world);

  (void)state;
  for (int step = 0; step < 4; step++)
    TD_SCOPE ("step")
      {
        TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (BATCH, 8), (unsigned)step);
        TdVar *h = td_tanh (td_link (td_link_child (model, "l1"), x));
        TdVar *y = td_link (me % 2 == step % 2 ? side : td_link_child (model, "l2"), h);

        td_cleargrads (model);
        td_backward (td_mean (td_square (y)), 0);
        assert_int_equal (td_opt_update (opt), TD_OK);
      }
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

/* A layer whose shape only rank 0 has seen gets it on all ranks, and is trained by its
 * gradient. */
static void
update__gives_shapes_to_what_a_rank_has_not_used (void **state)
{
  TdLink *model = mlp ("net", 8, 1), *side = td_linear_new (model, "side", TD_INFER, 4);
  TdOpt *opt = td_multi_node_optimizer_new (make_momentum (model), world);

  (void)state;
  for (int step = 0; step < 2; step++)
    TD_SCOPE ("step")
      {
        TdVar *x = numbers_of (me, TD_F32, TD_SHAPE (BATCH, 8), (unsigned)step);
        TdVar *h = td_tanh (td_link (td_link_child (model, "l1"), x));
        TdVar *y = td_link (me == 0 ? side : td_link_child (model, "l2"), h);

        td_cleargrads (model);
        td_backward (td_mean (td_square (y)), 0);
        assert_int_equal (td_opt_update (opt), TD_OK);
        assert_params_same_on_all_ranks (model);
      }
  assert_int_equal (td_size (td_link_param (side, "W")), 64);
  td_opt_free (opt);
  td_link_free (model);
}

/* A dynamic loss scale: one rank's overflow is one of all, who skip the update together. */
static void
overflow__of_one_rank_skips_the_update_of_all (void **state)
{
  TdLink *model = mlp ("net", 8, 1);
  TdOpt *opt = td_multi_node_optimizer_new (make_sgd (model), world);
  const Numbers before = params_of (model);
  Numbers after;

  (void)state;
  td_opt_loss_scaling (opt);
  TD_SCOPE ("overflow")
    {
      TdVar *x = td_full (TD_F32, TD_SHAPE (1, 8), me == n_ranks - 1 ? INFINITY : 1);

      td_cleargrads (model);
      td_opt_backward (opt, td_mean (td_square (td_link (model, x))), 0);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  after = params_of (model);
  assert_memory_equal (before.numbers, after.numbers, before.n * sizeof (float));
  train_step (model, opt, me, me + 1, 0);
  assert_params_same_on_all_ranks (model);
  td_opt_free (opt);
  td_link_free (model);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (bcast_link__gives_parameters_and_persistents_of_rank_0),
    ranks_test (bcast_link__gives_shapes_to_parameters_that_wait_for_them),
    ranks_test (links__that_differ_are_an_error_that_names_the_array_on_all_ranks),
    ranks_test (mean_of_gradients__counts_those_that_are_missing_as_zeros),
    ranks_test (mean_of_gradients__leaves_arrays_of_others_alone),
    ranks_test (scattered__parts_share_nothing_and_are_the_whole),
    ranks_test (scattered__parts_of_one_length_hold_every_example),
    ranks_test (scatter__that_cannot_be_is_said_to_all_ranks),
    ranks_test (training__equals_one_process_with_all_batches),
    ranks_test (training__has_the_same_bits_each_time),
    ranks_test (first_update__trains_though_the_numbers_were_others),
    ranks_test (first_update__is_by_the_gradients_of_rank_0s_numbers),
    ranks_test (first_update__sends_what_rank_0_alone_has_loaded),
    ranks_test (first_update__counts_ranks_whose_persistents_are_others),
    ranks_test (optimizer__of_rank_0_goes_to_all_with_states_and_hyperparameters),
    ranks_test (optimizer__without_a_state_on_rank_0_has_none_on_any),
    ranks_test (random_state__of_rank_0_goes_to_all_where_that_is_asked_for),
    ranks_test (gradient_noise__is_the_same_on_all_ranks_with_the_random_state_of_rank_0),
    ranks_test (optimizers__of_two_kinds_are_an_error_on_all_ranks),
    ranks_test (update__of_a_rank_that_failed_is_an_error_on_all_ranks),
    ranks_test (update__without_some_gradients_leaves_ranks_alike),
    ranks_test (update__gives_shapes_to_what_a_rank_has_not_used),
    ranks_test (overflow__of_one_rank_skips_the_update_of_all),
  };

  return run_as_ranks (tests);
}
