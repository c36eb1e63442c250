/* Each optimizer's 50 steps beside Chainer's formulas, written out here element by element in
 * double precision: within 1e-12 in float64, within 1e-5 in float32.
 *
 * SPDX-License-Identifier: MIT */
#include "optim-rig.h"

#include <math.h>

#define EACH(...)                                                                              \
  for (int i = 0; i < RIG_N; i++)                                                              \
    {                                                                                          \
      double *p = &s->p[i], *a __attribute__ ((unused)) = &s->s[0][i],                         \
             *b __attribute__ ((unused)) = &s->s[1][i],                                        \
             *c __attribute__ ((unused)) = &s->s[2][i];                                        \
                                                                                               \
      __VA_ARGS__;                                                                             \
    }                                                                                          \
  (void)t

static void
sgd_rule (RigState *s, const double *g, int t)
{
  EACH (*p -= 0.05 * g[i]);
}

static void
momentum_sgd_rule (RigState *s, const double *g, int t)
{
  EACH (*a = 0.8 * *a; *a -= 0.05 * g[i]; *p += *a);
}

static void
corrected_momentum_sgd_rule (RigState *s, const double *g, int t)
{
  EACH (*a = 0.8 * *a; *a -= g[i]; *p += 0.05 * *a);
}

static void
nesterov_ag_rule (RigState *s, const double *g, int t)
{
  EACH (*a = 0.8 * *a; *a -= 0.05 * g[i]; *p += 0.8 * 0.8 * *a; *p -= (1 + 0.8) * 0.05 * g[i]);
}

static void
adagrad_rule (RigState *s, const double *g, int t)
{
  EACH (*a += g[i] * g[i]; *p -= 0.05 * g[i] / (sqrt (*a) + 1e-7));
}

static void
adadelta_rule (RigState *s, const double *g, int t)
{
  double dx;

  EACH (*a = 0.9 * *a; *a += (1 - 0.9) * g[i] * g[i];
        dx = sqrt ((*b + 1e-3) / (*a + 1e-3)) * g[i]; *b = 0.9 * *b; *b += (1 - 0.9) * dx * dx;
        *p -= dx);
}

static void
rmsprop_rule (RigState *s, const double *g, int t)
{
  EACH (*a = 0.9 * *a; *a += (1 - 0.9) * g[i] * g[i]; *p -= 0.02 * g[i] / (sqrt (*a) + 1e-3));
}

static void
rmsprop_inside_rule (RigState *s, const double *g, int t)
{
  EACH (*a = 0.9 * *a; *a += (1 - 0.9) * g[i] * g[i]; *p -= 0.02 * g[i] / sqrt (*a + 1e-3));
}

static void
rmsprop_graves_rule (RigState *s, const double *g, int t)
{
  EACH (*a = 0.95 * *a; *a += (1 - 0.95) * g[i] * g[i]; *b = 0.95 * *b; *b += (1 - 0.95) * g[i];
        *c = 0.9 * *c; *c -= 0.01 * g[i] / sqrt (*a - *b * *b + 1e-4); *p += *c);
}

static void
smorms3_rule (RigState *s, const double *g, int t)
{
  double r, x;

  EACH (r = 1 / (*a + 1); *b = (1 - r) * *b + r * g[i]; *c = (1 - r) * *c + r * g[i] * g[i];
        x = *b * *b / (*c + 1e-16); *p -= g[i] * fmin (x, 0.02) / (sqrt (*c) + 1e-16);
        *a = 1 + *a * (1 - x));
}

/* Adam with all its options: what its formula needs besides the step. */
static void
adam_family (RigState *s, const double *g, int t, double eta, double decay, bool highest,
             bool bounded)
{
  double alpha_t = 0.01 * sqrt (1 - pow (0.99, t)) / (1 - pow (0.8, t));
  double lower = 0.1 * (1 - 1 / (0.05 * t + 1)), upper = 0.1 * (1 + 1 / (0.05 * t)), step;

  EACH (*a += (1 - 0.8) * (g[i] - *a); *b += (1 - 0.99) * (g[i] * g[i] - *b);
        *c = fmax (*c, *b); step = alpha_t / (sqrt (highest ? *c : *b) + 1e-6);
        if (bounded) step = fmin (fmax (step, lower), upper);
        *p -= eta * (step * *a + decay * *p));
}

static void
adam_rule (RigState *s, const double *g, int t)
{
  adam_family (s, g, t, 1, 0, false, false);
}

static void
adamw_rule (RigState *s, const double *g, int t)
{
  adam_family (s, g, t, 0.5, 0.02, false, false);
}

static void
amsgrad_rule (RigState *s, const double *g, int t)
{
  adam_family (s, g, t, 1, 0, true, false);
}

static void
adabound_rule (RigState *s, const double *g, int t)
{
  adam_family (s, g, t, 1, 0, false, true);
}

static void
amsbound_rule (RigState *s, const double *g, int t)
{
  adam_family (s, g, t, 1, 0, true, true);
}

#define FOLLOW(name, suffix, dtype, tolerance, first, make)                                    \
  static void name##__follows_chainers_formula_in_##suffix (void **state)                      \
  {                                                                                            \
    RigState start = { .s = { { first, first, first, first, first, first, first } } };         \
                                                                                               \
    (void)state;                                                                               \
    rig_start (dtype);                                                                         \
    rig_follow (make, name##_rule, start, tolerance);                                          \
  }
#define TRAJECTORY(name, first, ...)                                                           \
  FOLLOW (name, f64, TD_F64, 1e-12, first, __VA_ARGS__)                                        \
  FOLLOW (name, f32, TD_F32, 1e-5, first, __VA_ARGS__)
#define ADAM(...)                                                                              \
  td_adam_new (rig_chain, .lr = 0.01, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, __VA_ARGS__)
// clang-format off
TRAJECTORY (sgd, 0, td_sgd_new (rig_chain, .lr = 0.05))
TRAJECTORY (momentum_sgd, 0, td_momentum_sgd_new (rig_chain, .lr = 0.05, .momentum = 0.8))
TRAJECTORY (corrected_momentum_sgd, 0,
            td_corrected_momentum_sgd_new (rig_chain, .lr = 0.05, .momentum = 0.8))
TRAJECTORY (nesterov_ag, 0, td_nesterov_ag_new (rig_chain, .lr = 0.05, .momentum = 0.8))
TRAJECTORY (adagrad, 0, td_adagrad_new (rig_chain, .lr = 0.05, .eps = 1e-7))
TRAJECTORY (adadelta, 0, td_adadelta_new (rig_chain, .rho = 0.9, .eps = 1e-3))
TRAJECTORY (rmsprop, 0, td_rmsprop_new (rig_chain, .lr = 0.02, .alpha = 0.9, .eps = 1e-3))
TRAJECTORY (rmsprop_inside, 0, td_rmsprop_new (rig_chain, .lr = 0.02, .alpha = 0.9, .eps = 1e-3,
                                               .eps_inside_sqrt = true))
TRAJECTORY (rmsprop_graves, 0, td_rmsprop_graves_new (rig_chain, .lr = 0.01))
TRAJECTORY (smorms3, 1, td_smorms3_new (rig_chain, .lr = 0.02))
TRAJECTORY (adam, 0, ADAM (.eta = 1))
TRAJECTORY (adamw, 0, ADAM (.eta = 0.5, .weight_decay_rate = 0.02))
TRAJECTORY (amsgrad, 0, ADAM (.amsgrad = true))
TRAJECTORY (adabound, 0, ADAM (.adabound = true, .gamma = 0.05))
TRAJECTORY (amsbound, 0, ADAM (.amsgrad = true, .adabound = true, .gamma = 0.05))
// clang-format on

/* Chainer's default hyperparameters, from its documentation. */
static void
optimizers__have_chainers_defaults (void **state)
{
  static const struct
  {
    int kind;
    const char *name;
    double value;
  } defaults[] = {
    { 0, "lr", 0.01 },      { 1, "lr", 0.01 },      { 1, "momentum", 0.9 },
    { 2, "lr", 0.01 },      { 2, "momentum", 0.9 }, { 3, "lr", 0.01 },
    { 3, "momentum", 0.9 }, { 4, "lr", 0.001 },     { 4, "eps", 1e-8 },
    { 5, "rho", 0.95 },     { 5, "eps", 1e-6 },     { 6, "lr", 0.01 },
    { 6, "alpha", 0.99 },   { 6, "eps", 1e-8 },     { 6, "eps_inside_sqrt", 0 },
    { 7, "lr", 1e-4 },      { 7, "alpha", 0.95 },   { 7, "momentum", 0.9 },
    { 7, "eps", 1e-4 },     { 8, "lr", 0.001 },     { 8, "eps", 1e-16 },
    { 9, "alpha", 0.001 },  { 9, "beta1", 0.9 },    { 9, "beta2", 0.999 },
    { 9, "eps", 1e-8 },     { 9, "eta", 1 },        { 9, "weight_decay_rate", 0 },
    { 9, "amsgrad", 0 },    { 9, "adabound", 0 },   { 9, "final_lr", 0.1 },
    { 9, "gamma", 1e-3 },
  };
  TdOpt *opts[10];

  (void)state;
  rig_start (TD_F32);
  opts[0] = td_sgd_new (rig_chain);
  opts[1] = td_momentum_sgd_new (rig_chain);
  opts[2] = td_corrected_momentum_sgd_new (rig_chain);
  opts[3] = td_nesterov_ag_new (rig_chain);
  opts[4] = td_adagrad_new (rig_chain);
  opts[5] = td_adadelta_new (rig_chain);
  opts[6] = td_rmsprop_new (rig_chain);
  opts[7] = td_rmsprop_graves_new (rig_chain);
  opts[8] = td_smorms3_new (rig_chain);
  opts[9] = td_adam_new (rig_chain);
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
    if (td_opt_hyper (opts[defaults[i].kind], NULL, defaults[i].name) != defaults[i].value)
      fail_msg ("optimizer %d: %s", defaults[i].kind, defaults[i].name);
  assert_int_equal (td_finish (), 0);
}

/* What Chainer refuses, and numbers that would spoil every parameter. */
static void
optimizers__refuse_numbers_that_make_no_sense (void **state)
{
  double g[RIG_N] = { 1 };
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  td_adam_new (rig_chain, .beta1 = (double)NAN);
  assert_contains (td_error ()->message, "Adam: a finite beta1 expected, got nan");
  td_error_clear ();
  opt = td_rmsprop_new (rig_chain, .eps = 1e-60);
  rig_give_gradient (rig_W, g);
  assert_int_equal (td_opt_update (opt), TD_ERR_ARG);
  assert_contains (td_error ()->message, "eps = 1e-60 of W is 0 in float32");
  td_error_clear ();
  assert_int_equal (td_opt_set_hyper (opt, NULL, "momentum", 1), TD_ERR_ARG);
  assert_contains (td_error ()->message, "RMSprop has no hyperparameter momentum");
  td_error_clear ();
  assert_int_equal (td_opt_set_hyper (opt, "nothing", "lr", 1), TD_ERR_ARG);
  assert_contains (td_error ()->message, "m has no parameter nothing");
  td_error_clear ();
  assert_int_equal (td_opt_set_hyper (opt, NULL, "eps", 1e-4), TD_OK);
  assert_int_equal (td_opt_update (opt), TD_OK);
  assert_int_equal (td_finish (), 0);
}

/* Every rule passes NaN on to its parameter, and to no other element. */
static void
optimizers__let_nan_pass_and_keep_the_others (void **state)
{
  (void)state;
  for (int kind = 0; kind < 10; kind++)
    {
      double g[RIG_N] = { 1, (double)NAN, 1, 1, 1, 1, 1 }, p[RIG_N];
      TdOpt *opt;

      rig_start (TD_F32);
      opt = kind == 0   ? td_sgd_new (rig_chain)
            : kind == 1 ? td_momentum_sgd_new (rig_chain)
            : kind == 2 ? td_corrected_momentum_sgd_new (rig_chain)
            : kind == 3 ? td_nesterov_ag_new (rig_chain)
            : kind == 4 ? td_adagrad_new (rig_chain)
            : kind == 5 ? td_adadelta_new (rig_chain)
            : kind == 6 ? td_rmsprop_new (rig_chain)
            : kind == 7 ? td_rmsprop_graves_new (rig_chain)
            : kind == 8 ? td_smorms3_new (rig_chain)
                        : td_adam_new (rig_chain, .amsgrad = true, .adabound = true);
      rig_give_gradient (rig_W, g);
      assert_int_equal (td_opt_update (opt), TD_OK);
      rig_get (rig_W, p);
      for (int i = 0; i < RIG_N; i++)
        assert_true (i == 1 ? p[i] != p[i] : p[i] < 0);
      assert_int_equal (td_finish (), 0);
    }
}

#define BOTH(name)                                                                             \
  td_test (name##__follows_chainers_formula_in_f64),                                           \
      td_test (name##__follows_chainers_formula_in_f32)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    BOTH (sgd),
    BOTH (momentum_sgd),
    BOTH (corrected_momentum_sgd),
    BOTH (nesterov_ag),
    BOTH (adagrad),
    BOTH (adadelta),
    BOTH (rmsprop),
    BOTH (rmsprop_inside),
    BOTH (rmsprop_graves),
    BOTH (smorms3),
    BOTH (adam),
    BOTH (adamw),
    BOTH (amsgrad),
    BOTH (adabound),
    BOTH (amsbound),
    td_test (optimizers__have_chainers_defaults),
    td_test (optimizers__refuse_numbers_that_make_no_sense),
    td_test (optimizers__let_nan_pass_and_keep_the_others),
  };

  return cmocka_run_group_tests_name ("optim-rules", tests, NULL, NULL);
}
