/* What is set on one rank alone and would part the weights: an error on all ranks, which says
 * what it is, before anything is updated.
 *
 * SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <stdio.h>
#include <string.h>

typedef struct
{
  TdLink *model;
  TdVar *a, *b;
  TdOpt *opt;
} Net;

static Net
net_new (void)
{
  Net n = { .model = td_chain_new ("net") };

  n.a = td_link_add_param (n.model, "a", TD_SHAPE (2), .initializer = td_init_constant (1));
  n.b = td_link_add_param (n.model, "b", TD_SHAPE (3), .initializer = td_init_constant (2));
  n.opt = td_sgd_new (n.model, .lr = 0.1);
  return n;
}

static void
net_free (Net *n)
{
  td_opt_free (n->opt);
  td_link_free (n->model);
}

static TdStatus
update (Net *n)
{
  TdStatus status = TD_OK;

  TD_SCOPE ("update")
    {
      td_set_grad (n->a, td_full (TD_F32, TD_SHAPE (2), me + 1));
      td_set_grad (n->b, td_full (TD_F32, TD_SHAPE (3), me + 1));
      status = td_opt_update (n->opt);
    }
  return status;
}

static void
assert_weights_same (Net *n)
{
  float a[2], b[3];

  assert_int_equal (td_read (n->a, a, sizeof a), TD_OK);
  assert_int_equal (td_read (n->b, b, sizeof b), TD_OK);
  assert_same_on_all_ranks (a, sizeof a);
  assert_same_on_all_ranks (b, sizeof b);
}

/* --- what can be set --- */

static void
set_lr (Net *n)
{
  td_opt_set_lr (n->opt, 0.01);
}

static void
set_lr_of_b (Net *n)
{
  td_opt_set_hyper (n->opt, "b", "lr", 0.7);
}

static void
freeze_all (Net *n)
{
  td_link_disable_update (n->model);
}

static void
freeze_b (Net *n)
{
  td_opt_set_enabled (n->opt, "b", false);
}

static void
add_hook (Net *n)
{
  td_opt_add_hook (n->opt, td_weight_decay_new (0.5));
}

static void
add_hook_after (Net *n)
{
  td_opt_add_hook (n->opt, td_lasso_new (0.25), .timing = TD_OPT_HOOK_POST);
}

static void
add_hook_of_b (Net *n)
{
  td_opt_add_hook (n->opt, td_gradient_hard_clipping_new (-0.1, 0.2), .param = "b");
}

static void
scale_loss (Net *n)
{
  td_opt_loss_scaling (n->opt, .scale = 8);
}

static void
scale_loss_dynamically (Net *n)
{
  td_opt_loss_scaling (n->opt);
}

static void
use_fp32_update (Net *n)
{
  td_opt_use_fp32_update (n->opt, true);
}

typedef struct
{
  void (*set) (Net *n);
  const char *text;
} Setting;

static const Setting settings[] = {
  { set_lr, "it has lr 0.01 where rank 0 has lr 0.1" },
  { set_lr_of_b, "it has lr 0.7 of b where rank 0 has lr 0.1 of b" },
  { freeze_all, "it has a frozen where rank 0 has a updated" },
  { freeze_b, "it has b frozen where rank 0 has b updated" },
  { add_hook,
    "it has hook 1 WeightDecay 0.5 where rank 0 has no hook; give all ranks the same" },
  { add_hook_after,
    "it has hook 1 Lasso 0.25 after the update where rank 0 has no hook; give all" },
  { add_hook_of_b,
    "it has hook 1 GradientHardClipping -0.1 0.2 of b where rank 0 has no hook of b;" },
  { scale_loss, "it has loss scale 8 where rank 0 has loss scale 1" },
  { scale_loss_dynamically, "it has a dynamic loss scale, growing by 1.00" },
  { use_fp32_update, "it has fp32 update on where rank 0 has fp32 update off" },
};

static void
assert_told (const char *text)
{
  const char *message = said (TD_ERR_STATE);

  if (strstr (message, text) == NULL || strstr (message, "optimizers differ") == NULL)
    fail_msg ("'%s' says nothing of '%s'", message, text);
}

/* Nothing is updated; once all ranks have set it, they go on together. */
static void
setting__of_one_rank_alone_is_told_to_all_before_it_parts_them (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof settings / sizeof settings[0] && n_ranks > 1; i++)
    {
      Net n = net_new ();
      const bool alone = me == n_ranks - 1;
      float before[2], after[2];

      n.opt = td_multi_node_optimizer_new (n.opt, world);
      assert_int_equal (update (&n), TD_OK);
      td_read (n.a, before, sizeof before);
      if (alone)
        settings[i].set (&n);
      assert_int_not_equal (update (&n), TD_OK);
      assert_told (settings[i].text);
      td_read (n.a, after, sizeof after);
      assert_memory_equal (before, after, sizeof before);
      if (!alone)
        settings[i].set (&n);
      assert_int_equal (update (&n), TD_OK);
      assert_weights_same (&n);
      net_free (&n);
    }
}

/* Most ranks agree: the one that does not is named, though it is rank 0. */
static void
setting__of_rank_0_alone_is_told_as_its_own (void **state)
{
  Net n = net_new ();

  (void)state;
  n.opt = td_multi_node_optimizer_new (n.opt, world);
  assert_int_equal (update (&n), TD_OK);
  if (me == 0)
    set_lr (&n);
  if (n_ranks > 1)
    {
      assert_int_not_equal (update (&n), TD_OK);
      assert_told (n_ranks == 2 ? "differ: it has lr 0.1 where rank 0 has lr 0.01"
                                : "differ: rank 0 is the odd one: it has lr 0.1 where rank 0 "
                                  "has lr 0.01");
    }
  net_free (&n);
}

/* What is not sent with the first update is told then. */
static void
setting__of_one_rank_before_the_first_update_is_told (void **state)
{
  static const int which[] = { 2, 4 };

  (void)state;
  for (int i = 0; i < 4 && n_ranks > 1; i++)
    {
      Net n = net_new ();
      const Setting *s = &settings[which[i / 2]];

      if (i % 2 == 0 && me == n_ranks - 1)
        s->set (&n);
      n.opt = td_multi_node_optimizer_new (n.opt, world);
      if (i % 2 == 1 && me == n_ranks - 1)
        s->set (&n);
      assert_int_not_equal (update (&n), TD_OK);
      assert_told (s->text);
      net_free (&n);
    }
}

/* As a file does that rank 0 alone has loaded. */
static void
setting__of_rank_0_before_the_first_update_goes_to_all (void **state)
{
  Net n = net_new ();

  (void)state;
  n.opt = td_multi_node_optimizer_new (n.opt, world);
  if (me == 0)
    td_opt_set_lr (n.opt, 0.5);
  assert_int_equal (update (&n), TD_OK);
  assert_true (td_opt_lr (n.opt) == 0.5);
  assert_int_equal (update (&n), TD_OK);
  assert_weights_same (&n);
  net_free (&n);
}

static void
hooks__in_another_order_or_with_another_number_are_told (void **state)
{
  static const char *const told[]
      = { "it has hook 1 Lasso 0.25 where rank 0 has hook 1 WeightDecay 0.5; give",
          "it has hook 1 WeightDecay 0.1 where rank 0 has hook 1 WeightDecay 0.5; give",
          "it has hook 2 Lasso 0.25 where rank 0 has no hook 2; give",
          "it has no hook 2 where rank 0 has hook 2 Lasso 0.25; give" };

  (void)state;
  for (int i = 0; i < 4 && n_ranks > 1; i++)
    {
      Net n = net_new ();
      const bool other = me == n_ranks - 1;

      n.opt = td_multi_node_optimizer_new (n.opt, world);
      if (i == 0 && other)
        td_opt_add_hook (n.opt, td_lasso_new (0.25));
      td_opt_add_hook (n.opt, td_weight_decay_new (i == 1 && other ? 0.1 : 0.5));
      if ((i == 0 || i == 3) != other && i != 1)
        td_opt_add_hook (n.opt, td_lasso_new (0.25));
      assert_int_not_equal (update (&n), TD_OK);
      assert_told (told[i]);
      net_free (&n);
    }
}

/* A number of one parameter that is the optimizer's own is no difference, nor is a scale that
 * each rank finds. */
static void
settings__that_come_to_the_same_are_no_difference (void **state)
{
  Net n = net_new ();

  (void)state;
  td_opt_loss_scaling (n.opt);
  n.opt = td_multi_node_optimizer_new (n.opt, world);
  if (me == n_ranks - 1)
    {
      td_opt_set_hyper (n.opt, "b", "lr", 0.1);
      td_opt_set_enabled (n.opt, "a", true);
    }
  for (int i = 0; i < 4; i++)
    assert_int_equal (update (&n), TD_OK);
  assert_weights_same (&n);
  net_free (&n);
}

static TdStatus
update_both (Net *first, Net *second)
{
  const TdStatus status = update (first);

  return status == TD_OK ? update (second) : status;
}

/* Two models of the same names and shapes: gradients of one are never averaged with the
 * other's. Neither is updated then, and the right order goes on. */
static void
optimizers__in_another_order_or_twice_are_told (void **state)
{
  Net one = net_new (), two = net_new ();

  (void)state;
  one.opt = td_multi_node_optimizer_new (one.opt, world);
  two.opt = td_multi_node_optimizer_new (two.opt, world);
  assert_int_equal (update_both (&one, &two), TD_OK);
  for (int twice = 0; twice < 2 && n_ranks > 1; twice++)
    {
      const bool other = me == n_ranks - 1;
      TdStatus status;
      const char *message;
      int others, roots;

      if (twice) /* the first is the same on all */
        assert_int_equal (update (&one), TD_OK);
      status = twice ? update (other ? &one : &two) : update (other ? &two : &one);
      assert_int_not_equal (status, TD_OK);
      message = said (TD_ERR_STATE);
      message = strstr (message, "it has SGD of net (optimizer ");
      assert_non_null (message);
      assert_int_equal (sscanf (message,
                                "it has SGD of net (optimizer %d) where rank 0 has SGD of net "
                                "(optimizer %d)",
                                &others, &roots),
                        2);
      assert_int_equal (others - roots, twice ? -1 : 1); /* as they were made */
      if (twice)
        assert_int_equal (update (&two), TD_OK);
      else
        assert_int_equal (update_both (&one, &two), TD_OK);
    }
  assert_weights_same (&one);
  assert_weights_same (&two);
  net_free (&one);
  net_free (&two);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (setting__of_one_rank_alone_is_told_to_all_before_it_parts_them),
    ranks_test (setting__of_rank_0_alone_is_told_as_its_own),
    ranks_test (setting__of_one_rank_before_the_first_update_is_told),
    ranks_test (setting__of_rank_0_before_the_first_update_goes_to_all),
    ranks_test (hooks__in_another_order_or_with_another_number_are_told),
    ranks_test (settings__that_come_to_the_same_are_no_difference),
    ranks_test (optimizers__in_another_order_or_twice_are_told),
  };

  return run_as_ranks (tests);
}
