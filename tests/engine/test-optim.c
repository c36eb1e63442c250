/* Optimizers: trajectories of 50 steps against the formulas in double precision, hooks, and
 * what an update does with missing gradients and errors.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>
#include <string.h>

#include "td-test.h"

enum
{
  N = 7,
  STEPS = 50
};

static TdLink *chain;
static TdVar *W;

static void
start (TdDtype dtype)
{
  td_init (NULL, NULL);
  chain = td_chain_new ("m");
  W = td_link_add_param (chain, "W", TD_SHAPE (N), dtype, td_init_zero ());
}

static void
put (TdVar *v, const double *values)
{
  float f[N];

  for (int i = 0; i < N; i++)
    f[i] = (float)values[i];
  assert_int_equal (td_dtype (v) == TD_F64 ? td_write (v, values, sizeof (double[N]))
                                           : td_write (v, f, sizeof f),
                    TD_OK);
}

static void
get (TdVar *v, double *values)
{
  float f[N];

  if (td_dtype (v) == TD_F64)
    {
      assert_int_equal (td_read (v, values, sizeof (double[N])), TD_OK);
      return;
    }
  assert_int_equal (td_read (v, f, sizeof f), TD_OK);
  for (int i = 0; i < N; i++)
    values[i] = (double)f[i];
}

/* The gradient of step t: smooth, of mixed sign, and not small. */
static void
gradient (int t, double *g)
{
  for (int i = 0; i < N; i++)
    g[i] = (double)(float)(sin (0.7 * t + i) + 0.1 * i - 0.2);
}

static void
give_gradient (const double *g)
{
  TD_SCOPE ("gradient")
    {
      TdVar *v = td_zeros (td_dtype (W), TD_SHAPE (N));

      put (v, g);
      assert_int_equal (td_set_grad (W, v), TD_OK);
    }
}

typedef struct
{
  double p[N], m[N], v[N], vhat[N];
} State;

typedef void (*Rule) (State *s, const double *g, int t);

/* 50 steps of both; the largest difference, relative to 1 or the value, must stay within
 * tolerance. */
static void
follow (TdOpt *opt, Rule rule, double tolerance)
{
  State s = { .p = { 0 } };
  double g[N], p[N];

  for (int i = 0; i < N; i++)
    s.p[i] = (double)(float)(0.3 * i - 1);
  put (W, s.p);
  for (int t = 1; t <= STEPS; t++)
    {
      gradient (t, g);
      give_gradient (g);
      assert_int_equal (td_opt_update (opt), TD_OK);
      rule (&s, g, t);
      get (W, p);
      for (int i = 0; i < N; i++)
        if (!(fabs (p[i] - s.p[i]) <= tolerance * fmax (1, fabs (s.p[i]))))
          fail_msg ("step %d, element %d: %.17g, the formula gives %.17g", t, i, p[i], s.p[i]);
    }
  assert_int_equal (td_opt_count (opt), STEPS);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
}

static void
sgd_rule (State *s, const double *g, int t)
{
  (void)t;
  for (int i = 0; i < N; i++)
    s->p[i] -= 0.05 * g[i];
}

static void
momentum_rule (State *s, const double *g, int t)
{
  (void)t;
  for (int i = 0; i < N; i++)
    {
      s->v[i] = 0.9 * s->v[i] - 0.05 * g[i];
      s->p[i] += s->v[i];
    }
}

static void
adam_family (State *s, const double *g, int t, double decay, bool amsgrad)
{
  double alpha_t = 0.01 * sqrt (1 - pow (0.999, t)) / (1 - pow (0.9, t));

  for (int i = 0; i < N; i++)
    {
      double v;

      s->m[i] += (1 - 0.9) * (g[i] - s->m[i]);
      s->v[i] += (1 - 0.999) * (g[i] * g[i] - s->v[i]);
      s->vhat[i] = fmax (s->vhat[i], s->v[i]);
      v = amsgrad ? s->vhat[i] : s->v[i];
      s->p[i] -= alpha_t * s->m[i] / (sqrt (v) + 1e-8) + decay * s->p[i];
    }
}

static void
adam_rule (State *s, const double *g, int t)
{
  adam_family (s, g, t, 0, false);
}

static void
adamw_rule (State *s, const double *g, int t)
{
  adam_family (s, g, t, 0.02, false);
}

static void
amsgrad_rule (State *s, const double *g, int t)
{
  adam_family (s, g, t, 0, true);
}

#define TRAJECTORY(name, make)                                                                 \
  static void name##__follows_its_formula_in_f64 (void **state)                                \
  {                                                                                            \
    (void)state;                                                                               \
    start (TD_F64);                                                                            \
    follow (make, name##_rule, 1e-12);                                                         \
  }                                                                                            \
  static void name##__follows_its_formula_in_f32 (void **state)                                \
  {                                                                                            \
    (void)state;                                                                               \
    start (TD_F32);                                                                            \
    follow (make, name##_rule, 1e-5);                                                          \
  }
// clang-format off
TRAJECTORY (sgd, td_sgd_new (chain, .lr = 0.05))
TRAJECTORY (momentum, td_momentum_sgd_new (chain, .lr = 0.05))
TRAJECTORY (adam, td_adam_new (chain, .lr = 0.01))
TRAJECTORY (adamw, td_adam_new (chain, .lr = 0.01, .weight_decay_rate = 0.02))
TRAJECTORY (amsgrad, td_adam_new (chain, .lr = 0.01, .amsgrad = true))
// clang-format on

static void
decay_then_clip_rule (State *s, const double *g, int t)
{
  double h[N], norm = 0, rate;

  (void)t;
  for (int i = 0; i < N; i++)
    {
      h[i] = g[i] + 0.1 * s->p[i];
      norm += h[i] * h[i];
    }
  rate = fmin (1, 0.5 / sqrt (norm));
  for (int i = 0; i < N; i++)
    s->p[i] -= 0.05 * rate * h[i];
}

static void
hooks__run_before_the_update_in_the_order_of_adding (void **state)
{
  TdOpt *opt;

  (void)state;
  start (TD_F64);
  opt = td_sgd_new (chain, .lr = 0.05);
  td_opt_add_hook (opt, td_weight_decay_new (0.1));
  td_opt_add_hook (opt, td_gradient_clipping_new (0.5));
  follow (opt, decay_then_clip_rule, 1e-12);
}

static void
clipping__leaves_small_gradients_alone (void **state)
{
  double g[N] = { 0.1, -0.1, 0, 0.2 }, after[N];
  TdOpt *opt;

  (void)state;
  start (TD_F32);
  opt = td_sgd_new (chain);
  td_opt_add_hook (opt, td_gradient_clipping_new (5));
  give_gradient (g);
  assert_int_equal (td_opt_update (opt), TD_OK);
  get (td_grad (W), after);
  for (int i = 0; i < N; i++)
    assert_true ((float)after[i] == (float)g[i]);
  assert_int_equal (td_finish (), 0);
}

static void
clipping__counts_all_parameters_together (void **state)
{
  double g[N] = { 3 }, after[N];
  TdVar *V;
  TdOpt *opt;

  (void)state;
  start (TD_F64);
  V = td_link_add_param (chain, "V", TD_SHAPE (N), TD_F64, td_init_zero ());
  opt = td_sgd_new (chain);
  td_opt_add_hook (opt, td_gradient_clipping_new (1));
  give_gradient (g);
  g[0] = 4;
  TD_SCOPE ("V")
    {
      TdVar *v = td_zeros (TD_F64, TD_SHAPE (N));

      put (v, g);
      td_set_grad (V, v);
    }
  assert_int_equal (td_opt_update (opt), TD_OK);
  get (td_grad (W), after);
  assert_true (fabs (after[0] - 0.6) < 1e-12); /* 3 and 4 make 5 */
  get (td_grad (V), after);
  assert_true (fabs (after[0] - 0.8) < 1e-12);
  assert_int_equal (td_finish (), 0);
}

static void
update__takes_a_missing_gradient_for_zeros (void **state)
{
  double g[N], p[N];
  TdOpt *opt;

  (void)state;
  start (TD_F64);
  opt = td_momentum_sgd_new (chain, .lr = 1, .momentum = 0.5);
  for (int i = 0; i < N; i++)
    g[i] = 1;
  give_gradient (g);
  assert_int_equal (td_opt_update (opt), TD_OK); /* v = -1, p = -1 */
  td_cleargrads (chain);
  assert_int_equal (td_opt_update (opt), TD_OK); /* v = -0.5, p = -1.5 */
  get (W, p);
  assert_true (p[0] == -1.5 && p[N - 1] == -1.5);
  get (td_grad (W), g);
  assert_true (g[0] == 0);
  assert_int_equal (td_finish (), 0);
}

static void
update__refuses_after_an_error_and_changes_nothing (void **state)
{
  double g[N] = { 1, 1, 1, 1, 1, 1, 1 }, p[N];
  TdOpt *opt;

  (void)state;
  start (TD_F64);
  opt = td_sgd_new (chain, .lr = 1);
  give_gradient (g);
  td_link_param (chain, "nothing");
  assert_int_equal (td_opt_update (opt), TD_ERR_ARG);
  td_error_clear ();
  get (W, p);
  assert_true (p[0] == 0);
  assert_int_equal (td_opt_update (opt), TD_OK);
  get (W, p);
  assert_true (p[0] == -1);
  assert_int_equal (td_finish (), 0);
}

static void
update__finds_parameters_that_come_later (void **state)
{
  double g[N] = { 1 }, p[N];
  TdOpt *opt;

  (void)state;
  start (TD_F64);
  opt = td_sgd_new (chain, .lr = 1);
  assert_int_equal (td_opt_update (opt), TD_OK);
  W = td_link_add_param (td_chain_new (chain, "late"), "W", TD_SHAPE (N), TD_F64,
                         td_init_zero ());
  give_gradient (g);
  assert_int_equal (td_opt_update (opt), TD_OK);
  get (W, p);
  assert_true (p[0] == -1);
  assert_int_equal (td_finish (), 0);
}

static void
set_lr__changes_the_next_step (void **state)
{
  double g[N] = { 1 }, p[N];
  TdOpt *opt;

  (void)state;
  start (TD_F64);
  opt = td_sgd_new (chain, .lr = 1);
  td_opt_set_lr (opt, 0.25);
  give_gradient (g);
  td_opt_update (opt);
  get (W, p);
  assert_true (p[0] == -0.25 && td_opt_lr (opt) == 0.25);
  td_opt_set_lr (opt, -1);
  assert_int_equal (td_error ()->status, TD_ERR_ARG);
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
}

static void
optimizer__is_inert_without_its_link (void **state)
{
  TdOpt *opt;

  (void)state;
  start (TD_F64);
  opt = td_sgd_new (NULL);
  assert_int_equal (td_error ()->status, TD_ERR_STATE);
  td_error_clear ();
  assert_int_equal (td_opt_update (opt), TD_ERR_STATE);
  td_error_clear ();
  opt = td_adam_new (chain);
  td_link_free (chain);
  assert_int_equal (td_opt_update (opt), TD_ERR_STATE);
  assert_non_null (strstr (td_error ()->message, "freed"));
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
}

static void
optimizer__gives_back_all_memory (void **state)
{
  double g[N] = { 1 };
  TdMemInfo before, after;
  TdOpt *opt;

  (void)state;
  start (TD_F32);
  before = td_mem_info (NULL);
  opt = td_adam_new (chain, .amsgrad = true);
  give_gradient (g);
  td_opt_update (opt);
  assert_true (td_mem_info (NULL).category_bytes[TD_MEM_OPTIMIZER] > 0);
  td_opt_free (opt);
  td_cleargrads (chain);
  after = td_mem_info (NULL);
  assert_int_equal (after.live_bytes, before.live_bytes);
  assert_int_equal (after.live_vars, before.live_vars);
  assert_int_equal (td_finish (), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (sgd__follows_its_formula_in_f64),
    td_test (sgd__follows_its_formula_in_f32),
    td_test (momentum__follows_its_formula_in_f64),
    td_test (momentum__follows_its_formula_in_f32),
    td_test (adam__follows_its_formula_in_f64),
    td_test (adam__follows_its_formula_in_f32),
    td_test (adamw__follows_its_formula_in_f64),
    td_test (adamw__follows_its_formula_in_f32),
    td_test (amsgrad__follows_its_formula_in_f64),
    td_test (amsgrad__follows_its_formula_in_f32),
    td_test (hooks__run_before_the_update_in_the_order_of_adding),
    td_test (clipping__leaves_small_gradients_alone),
    td_test (clipping__counts_all_parameters_together),
    td_test (update__takes_a_missing_gradient_for_zeros),
    td_test (update__refuses_after_an_error_and_changes_nothing),
    td_test (update__finds_parameters_that_come_later),
    td_test (set_lr__changes_the_next_step),
    td_test (optimizer__is_inert_without_its_link),
    td_test (optimizer__gives_back_all_memory),
  };

  return cmocka_run_group_tests_name ("optim", tests, NULL, NULL);
}
