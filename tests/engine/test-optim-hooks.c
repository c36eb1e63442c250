/* Hooks of optimizers: each beside Chainer's formula, when they run, what they see, and what
 * single parameters have of their own.
 *
 * SPDX-License-Identifier: MIT */
#include "optim-rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- formulas: what the hook makes of a gradient, then SGD with lr 0.05 --- */

static void
sgd (RigState *s, const double *h)
{
  for (int i = 0; i < RIG_N; i++)
    s->p[i] -= 0.05 * h[i];
}

static double
norm (const double *x)
{
  double sum = 0;

  for (int i = 0; i < RIG_N; i++)
    sum += x[i] * x[i];
  return sqrt (sum);
}

static void
weight_decay_rule (RigState *s, const double *g, int t)
{
  double h[RIG_N];

  (void)t;
  for (int i = 0; i < RIG_N; i++)
    h[i] = g[i] + 0.3 * s->p[i];
  sgd (s, h);
}

static void
lasso_rule (RigState *s, const double *g, int t)
{
  double h[RIG_N];

  (void)t;
  for (int i = 0; i < RIG_N; i++)
    h[i] = g[i] + 0.3 * ((s->p[i] > 0) - (s->p[i] < 0));
  sgd (s, h);
}

static void
clipping_rule (RigState *s, const double *g, int t)
{
  double h[RIG_N], rate = fmin (1, 1.9 / norm (g));

  (void)t;
  for (int i = 0; i < RIG_N; i++)
    h[i] = g[i] * rate;
  sgd (s, h);
}

static void
hard_clipping_rule (RigState *s, const double *g, int t)
{
  double h[RIG_N];

  (void)t;
  for (int i = 0; i < RIG_N; i++)
    h[i] = g[i] < -0.25 ? -0.25 : g[i] > 0.5 ? 0.5 : g[i];
  sgd (s, h);
}

static void
lars_rule (RigState *s, const double *g, int t)
{
  double h[RIG_N], p = norm (s->p), rate = p / (1e-9 + norm (g) + 0.1 * p);

  (void)t;
  for (int i = 0; i < RIG_N; i++)
    h[i] = (g[i] + 0.1 * s->p[i]) * (p > 1.3 ? rate : 1);
  sgd (s, h);
}

#define FOLLOW(name, suffix, dtype, tolerance, make)                                           \
  static void name##__follows_chainers_formula_in_##suffix (void **state)                      \
  {                                                                                            \
    RigState start = { .p = { 0 } };                                                           \
    TdOpt *opt;                                                                                \
                                                                                               \
    (void)state;                                                                               \
    rig_start (dtype);                                                                         \
    opt = td_sgd_new (rig_chain, .lr = 0.05);                                                  \
    assert_int_equal (td_opt_add_hook (opt, make), TD_OK);                                     \
    rig_follow (opt, name##_rule, start, tolerance);                                           \
  }
#define TRAJECTORY(name, ...)                                                                  \
  FOLLOW (name, f64, TD_F64, 1e-12, __VA_ARGS__)                                               \
  FOLLOW (name, f32, TD_F32, 1e-5, __VA_ARGS__)
// clang-format off
TRAJECTORY (weight_decay, td_weight_decay_new (0.3))
TRAJECTORY (lasso, td_lasso_new (0.3))
TRAJECTORY (clipping, td_gradient_clipping_new (1.9))
TRAJECTORY (hard_clipping, td_gradient_hard_clipping_new (-0.25, 0.5))
TRAJECTORY (lars, td_gradient_lars_new (.threshold = 1.3, .weight_decay = 0.1))
// clang-format on

/* The noise is the engine's normal numbers times sqrt (eta / (1 + t)^0.55). */
static void
noise__adds_normal_numbers_that_fade (void **state)
{
  double z[RIG_STEPS][RIG_N], g[RIG_N] = { 1, 2, 3, 4, 5, 6, 7 }, h[RIG_N];
  TdOpt *opt;

  (void)state;
  rig_start (TD_F64);
  td_set_seed (11);
  for (int t = 0; t < RIG_STEPS; t++)
    TD_SCOPE ("z")
      rig_get (td_randn (TD_F64, TD_SHAPE (RIG_N)), z[t]);
  td_set_seed (11);
  opt = td_sgd_new (rig_chain);
  td_opt_add_hook (opt, td_gradient_noise_new (0.3));
  for (int t = 0; t < RIG_STEPS; t++)
    {
      rig_give_gradient (rig_W, g);
      assert_int_equal (td_opt_update (opt), TD_OK);
      rig_get (td_grad (rig_W), h);
      for (int i = 0; i < RIG_N; i++)
        assert_true (fabs (h[i] - (g[i] + sqrt (0.3 / pow (1 + t, 0.55)) * z[t][i])) < 1e-12);
    }
  assert_int_equal (td_finish (), 0);
}

/* Its spread, where the numbers themselves cannot be known: half precision. */
static void
noise__has_its_variance_in_half_precision (void **state)
{
  enum
  {
    N = 20000
  };
  static float host[N];
  double sum = 0, squares = 0;
  TdVar *V;
  TdOpt *opt;

  (void)state;
  td_init (NULL, NULL);
  rig_chain = td_chain_new ("m");
  V = td_link_add_param (rig_chain, "V", TD_SHAPE (N), TD_F16, td_init_zero ());
  opt = td_sgd_new (rig_chain);
  td_opt_add_hook (opt, td_gradient_noise_new (0.3));
  assert_int_equal (td_opt_update (opt), TD_OK);
  TD_SCOPE ("read")
    assert_int_equal (td_read (td_cast (td_grad (V), TD_F32), host, sizeof host), TD_OK);
  for (int i = 0; i < N; i++)
    {
      sum += (double)host[i];
      squares += (double)host[i] * (double)host[i];
    }
  assert_true (fabs (sum / N) < 4 * sqrt (0.3 / N)); /* four standard errors */
  assert_true (fabs (squares / N - 0.3) < 4 * 0.3 * sqrt (2.0 / N));
  assert_int_equal (td_finish (), 0);
}

/* --- when they run, and what they see --- */

typedef struct
{
  char log[400];
} Log;

static TdStatus
note (void *user, TdOpt *opt, const char *key, TdVar *param, TdVar *grad)
{
  Log *log = user;
  double p[RIG_N], g[RIG_N];
  size_t used = strlen (log->log);

  (void)opt;
  rig_get (param, p);
  rig_get (grad, g);
  snprintf (log->log + used, sizeof log->log - used, "%s p=%g g=%g; ", key, p[0], g[0]);
  return TD_OK;
}

static void
hooks__run_before_or_after_the_update (void **state)
{
  double g[RIG_N] = { 1 };
  Log before = { "" }, after = { "" }, single = { "" };
  TdVar *V;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F64);
  V = td_link_add_param (rig_chain, "V", TD_SHAPE (RIG_N), TD_F64, td_init_constant (5));
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_add_hook (opt, td_opt_hook_new ("after", note, &after), .timing = TD_OPT_HOOK_POST);
  td_opt_add_hook (opt, td_opt_hook_new ("before", note, &before));
  td_opt_add_hook (opt, td_opt_hook_new ("one", note, &single), .param = "V",
                   .timing = TD_OPT_HOOK_POST);
  rig_give_gradient (rig_W, g);
  rig_give_gradient (V, g);
  assert_int_equal (td_opt_update (opt), TD_OK);
  assert_string_equal (before.log, "W p=0 g=1; V p=5 g=1; ");
  assert_string_equal (after.log, "W p=-1 g=1; V p=4 g=1; ");
  assert_string_equal (single.log, "V p=4 g=1; ");
  assert_int_equal (td_finish (), 0);
}

static void
hooks__of_one_parameter_leave_the_others (void **state)
{
  double g[RIG_N] = { 8 }, p[RIG_N];
  TdVar *V;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F64);
  V = td_link_add_param (rig_chain, "V", TD_SHAPE (RIG_N), TD_F64, td_init_zero ());
  opt = td_sgd_new (rig_chain, .lr = 1);
  assert_int_equal (td_opt_add_hook (opt, td_gradient_hard_clipping_new (-1, 1), .param = "V"),
                    TD_OK);
  rig_give_gradient (rig_W, g);
  rig_give_gradient (V, g);
  assert_int_equal (td_opt_update (opt), TD_OK);
  rig_get (rig_W, p);
  assert_true (p[0] == -8);
  rig_get (V, p);
  assert_true (p[0] == -1);
  assert_int_equal (td_opt_add_hook (opt, td_gradient_clipping_new (1), .param = "V"),
                    TD_ERR_STATE);
  assert_contains (td_error ()->message, "it sees all parameters together");
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
}

static void
hooks__have_names_of_which_there_is_one (void **state)
{
  double g[RIG_N] = { 1 }, p[RIG_N];
  TdOptHook *second;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F64);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_add_hook (opt, td_gradient_hard_clipping_new (0, 0.5));
  second = td_gradient_hard_clipping_new (0, 0.25);
  assert_int_equal (td_opt_add_hook (opt, second), TD_ERR_STATE);
  assert_contains (td_error ()->message,
                   "GradientHardClipping: there is a hook of this name already");
  td_error_clear ();
  assert_int_equal (td_opt_add_hook (opt, second, .name = "second"), TD_OK);
  assert_int_equal (td_opt_add_hook (opt, second), TD_ERR_STATE);
  assert_contains (td_error ()->message, "belongs to an optimizer already");
  td_error_clear ();
  rig_give_gradient (rig_W, g);
  td_opt_update (opt);
  rig_get (rig_W, p);
  assert_true (p[0] == -0.25);
  assert_int_equal (td_opt_remove_hook (opt, "second"), TD_OK);
  rig_give_gradient (rig_W, g);
  td_opt_update (opt);
  rig_get (rig_W, p);
  assert_true (p[0] == -0.75);
  assert_int_equal (td_opt_remove_hook (opt, "second"), TD_ERR_ARG);
  td_error_clear ();
  td_gradient_hard_clipping_new (1, 0);
  assert_int_equal (td_error ()->status, TD_ERR_ARG);
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
}

static TdStatus
clear_gradient (void *user, TdOpt *opt, const char *key, TdVar *param, TdVar *grad)
{
  (void)user, (void)opt, (void)key, (void)grad;
  td_cleargrad (param);
  return TD_OK;
}

/* Chainer's reallocate_cleared_grads: a hook that clears a gradient leaves zeros. */
static void
hooks__that_clear_a_gradient_leave_zeros (void **state)
{
  double g[RIG_N] = { 1 }, p[RIG_N];
  TdOpt *opt;

  (void)state;
  rig_start (TD_F64);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_add_hook (opt, td_opt_hook_new ("clear", clear_gradient, NULL));
  td_opt_add_hook (opt, td_weight_decay_new (0.5));
  rig_put (rig_W, (double[RIG_N]){ 4 });
  rig_give_gradient (rig_W, g);
  assert_int_equal (td_opt_update (opt), TD_OK);
  rig_get (rig_W, p);
  assert_true (p[0] == 2); /* 4 - 0.5 * 4: the gradient of 1 is gone */
  assert_int_equal (td_finish (), 0);
}

/* --- parameters with something of their own --- */

static void
rules__fall_back_to_the_optimizers_hyperparameters (void **state)
{
  double g[RIG_N] = { 1 }, p[RIG_N];
  TdLink *l1;
  TdVar *V;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F64);
  l1 = td_chain_new (rig_chain, "l1");
  V = td_link_add_param (l1, "V", TD_SHAPE (RIG_N), TD_F64, td_init_zero ());
  opt = td_momentum_sgd_new (rig_chain, .lr = 1, .momentum = 0.5);
  assert_int_equal (td_opt_set_hyper (opt, "l1", "lr", 0.25), TD_OK);
  assert_true (td_opt_hyper (opt, "l1/V", "lr") == 0.25 && td_opt_hyper (opt, "W", "lr") == 1);
  for (int i = 0; i < 2; i++)
    {
      rig_give_gradient (rig_W, g);
      rig_give_gradient (V, g);
      td_opt_update (opt);
    }
  rig_get (rig_W, p);
  assert_true (p[0] == -1 - 1.5);
  rig_get (V, p);
  assert_true (p[0] == -0.25 - 0.375);
  td_opt_set_lr (opt, 2); /* only W follows; momentum is common to both */
  td_opt_set_hyper (opt, NULL, "momentum", 0);
  rig_give_gradient (rig_W, g);
  rig_give_gradient (V, g);
  td_opt_update (opt);
  rig_get (rig_W, p);
  assert_true (p[0] == -2.5 - 2);
  rig_get (V, p);
  assert_true (p[0] == -0.625 - 0.25);
  assert_int_equal (td_finish (), 0);
}

static void
rules__that_are_switched_off_keep_parameter_state_and_t (void **state)
{
  double g[RIG_N] = { 1 }, p[RIG_N], m[RIG_N];
  TdVar *V;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F64);
  V = td_link_add_param (rig_chain, "V", TD_SHAPE (RIG_N), TD_F64, td_init_zero ());
  opt = td_adam_new (rig_chain);
  for (int i = 0; i < 3; i++)
    {
      assert_int_equal (td_opt_set_enabled (opt, "V", i != 1), TD_OK);
      rig_give_gradient (rig_W, g);
      rig_give_gradient (V, g);
      td_opt_update (opt);
      if (i == 0)
        rig_get (V, p);
      rig_get (td_opt_state (opt, "V", "m"), m);
      assert_true (fabs (m[0] - (i < 2 ? 0.1 : 0.19)) < 1e-12);
      if (i == 1)
        {
          double q[RIG_N];

          rig_get (V, q);
          assert_memory_equal (p, q, sizeof p);
        }
    }
  assert_int_equal (td_opt_count_of (opt, "V"), 2);
  assert_int_equal (td_opt_count_of (opt, "W"), 3);
  assert_int_equal (td_opt_count (opt), 3);
  td_opt_state (opt, "V", "nothing");
  assert_contains (td_error ()->message, "Adam has no state nothing of V");
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
}

#define BOTH(name)                                                                             \
  td_test (name##__follows_chainers_formula_in_f64),                                           \
      td_test (name##__follows_chainers_formula_in_f32)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    BOTH (weight_decay),
    BOTH (lasso),
    BOTH (clipping),
    BOTH (hard_clipping),
    BOTH (lars),
    td_test (noise__adds_normal_numbers_that_fade),
    td_test (noise__has_its_variance_in_half_precision),
    td_test (hooks__run_before_or_after_the_update),
    td_test (hooks__of_one_parameter_leave_the_others),
    td_test (hooks__have_names_of_which_there_is_one),
    td_test (hooks__that_clear_a_gradient_leave_zeros),
    td_test (rules__fall_back_to_the_optimizers_hyperparameters),
    td_test (rules__that_are_switched_off_keep_parameter_state_and_t),
  };

  return cmocka_run_group_tests_name ("optim-hooks", tests, NULL, NULL);
}
