/* Shifts of hyperparameters: each against its formula, step by step, and over a snapshot.
 *
 * SPDX-License-Identifier: MIT */
#include "start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  N_STEPS = 10
};

static TdStatus
nothing (TdUpdater *u, void *self)
{
  (void)self;
  td_iter_next (td_updater_iterator (u, "main"));
  return TD_OK;
}

typedef struct
{
  TdOpt *opt;
  double lr[N_STEPS + 1];
  int n;
} Rates;

static TdStatus
note_rate (void *self, TdTrainer *t)
{
  Rates *r = self;

  (void)t;
  r->lr[r->n++] = td_opt_lr (r->opt);
  return TD_OK;
}

/* A trainer whose learning rate before and after every iteration is noted. */
static TdTrainer *
trainer_of (TdExtension *shift, Rates *r, int iterations)
{
  TdIter *it = NULL;
  TdTrainer *t;

  *r = (Rates){ .opt = td_sgd_new (td_chain_new ("m"), .lr = 0.8) };
  TD_SCOPE ("data")
    it = td_serial_iterator_new (td_tuple_dataset_new (td_ones (TD_F32, TD_SHAPE (4, 1)), NULL),
                                 .batch_size = 2);
  t = td_trainer_new (td_standard_updater_new (it, r->opt, .update = nothing),
                      td_interval_trigger_new (iterations, "iteration"),
                      .out = td_test_tmp ("out"));
  td_trainer_extend (t, shift, .name = "shift");
  td_trainer_extend (t, td_ext_function_new (note_rate, r), .priority = -1);
  return t;
}

static void
assert_rates (TdExtension *shift, double (*formula) (double t))
{
  Rates r;
  TdTrainer *t = trainer_of (shift, &r, N_STEPS);

  assert_int_equal (td_trainer_run (t), TD_OK);
  assert_int_equal (r.n, N_STEPS);
  for (int i = 0; i < N_STEPS; i++)
    if (fabs (r.lr[i] - formula (i + 1)) > 1e-15)
      fail_msg ("step %d: %.17g, not %.17g", i + 1, r.lr[i], formula (i + 1));
}

static double
exponential (double t)
{
  return 0.8 * pow (0.5, t);
}

static double
exponential_to_target (double t)
{
  return fmax (0.8 * pow (0.5, t), 0.03);
}

static double
exponential_up (double t)
{
  return fmin (0.25 * pow (2, t), 4);
}

static void
exponential_shift__multiplies_every_step (void **state)
{
  (void)state;
  assert_rates (td_ext_exponential_shift ("lr", 0.5), exponential);
  assert_rates (td_ext_exponential_shift ("lr", 0.5, .target = 0.03), exponential_to_target);
  assert_rates (td_ext_exponential_shift ("lr", 2, .init = 0.25, .target = 4), exponential_up);
  td_ext_exponential_shift ("lr", -1);
  assert_contains (said (TD_ERR_ARG), "a rate of 0 or more expected");
}

static double
inverse (double t)
{
  return 0.8 * pow (1 + 0.1 * t, -0.75);
}

static double
inverse_to_target (double t)
{
  return fmax (inverse (t), 0.5);
}

static void
inverse_shift__falls_as_a_power (void **state)
{
  (void)state;
  assert_rates (td_ext_inverse_shift ("lr", 0.1, 0.75), inverse);
  assert_rates (td_ext_inverse_shift ("lr", 0.1, 0.75, .target = 0.5), inverse_to_target);
}

static double
linear (double t)
{
  return t <= 2 ? 1 : t >= 6 ? 3 : 1 + (t - 2) / 4 * 2;
}

static void
linear_shift__is_straight_between_two_times (void **state)
{
  (void)state;
  assert_rates (td_ext_linear_shift ("lr", 1, 3, 2, 6), linear);
  td_ext_linear_shift ("lr", 1, 3, 6, 2);
  assert_contains (said (TD_ERR_ARG), "a time range that goes forward");
}

static double
multistep (double t)
{
  return 0.8 * (t >= 7 ? 0.25 : t >= 3 ? 0.5 : 1);
}

static void
multistep_shift__multiplies_at_its_steps (void **state)
{
  (void)state;
  assert_rates (td_ext_multistep_shift ("lr", 0.5, ((int[]){ 3, 7 }), 2), multistep);
  td_ext_multistep_shift ("lr", 0.5, ((int[]){ 7, 3 }), 2);
  assert_contains (said (TD_ERR_ARG), "steps in rising order");
}

static double
polynomial (double t)
{
  return 0.8 * pow (fmax (1 - t / 8, 0), 2);
}

static double
polynomial_to_target (double t)
{
  return fmax (polynomial (t), 0.1);
}

static void
polynomial_shift__ends_at_its_count (void **state)
{
  (void)state;
  assert_rates (td_ext_polynomial_shift ("lr", 2, 8), polynomial);
  assert_rates (td_ext_polynomial_shift ("lr", 2, 8, .target = 0.1), polynomial_to_target);
}

static double
step (double t)
{
  return 0.8 * pow (0.5, floor (t / 4));
}

static void
step_shift__multiplies_every_few_steps (void **state)
{
  (void)state;
  assert_rates (td_ext_step_shift ("lr", 0.5, 4), step);
}

static double
warmup (double t)
{
  return t < 5 ? 0.1 + (0.8 - 0.1) * t / 5 : 0.8;
}

static TdStatus
look_at_start (void *self, TdTrainer *t)
{
  (void)t;
  ((Rates *)self)->lr[N_STEPS] = td_opt_lr (((Rates *)self)->opt);
  return TD_OK;
}

static void
warmup_shift__begins_low (void **state)
{
  Rates r;
  TdTrainer *t;

  (void)state;
  assert_rates (td_ext_warmup_shift ("lr", 0.1, 5), warmup);
  t = trainer_of (td_ext_warmup_shift ("lr", 0.1, 5), &r, 1);
  td_trainer_extend (t, td_ext_function_new (look_at_start, &r), .call_before_training = true,
                     .trigger = td_interval_trigger_new (99, "iteration"));
  assert_int_equal (td_trainer_run (t), TD_OK);
  assert_true (r.lr[N_STEPS] == 0.1);
}

static void
shift__names_an_unknown_hyperparameter (void **state)
{
  Rates r;
  TdTrainer *t = trainer_of (td_ext_exponential_shift ("momentun", 0.5), &r, 2);

  (void)state;
  assert_int_equal (td_trainer_run (t), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "momentun");
}

/* Every kind, stopped after four steps and continued by fresh objects. */
static TdExtension *
shift_of (int kind)
{
  static const int steps[2] = { 3, 7 };

  switch (kind)
    {
    case 0:
      return td_ext_exponential_shift ("lr", 0.5);
    case 1:
      return td_ext_inverse_shift ("lr", 0.1, 0.75);
    case 2:
      return td_ext_linear_shift ("lr", 1, 3, 2, 6);
    case 3:
      return td_ext_multistep_shift ("lr", 0.5, steps, 2);
    case 4:
      return td_ext_polynomial_shift ("lr", 2, 8);
    case 5:
      return td_ext_step_shift ("lr", 0.5, 4);
    default:
      return td_ext_warmup_shift ("lr", 0.1, 5);
    }
}

static void
shift__goes_on_where_its_snapshot_was_taken (void **state)
{
  (void)state;
  for (int kind = 0; kind < 7; kind++)
    {
      Rates whole, first, second;
      TdTrainer *a = trainer_of (shift_of (kind), &whole, N_STEPS);
      TdTrainer *b = trainer_of (shift_of (kind), &first, 4);
      TdTrainer *c = trainer_of (shift_of (kind), &second, N_STEPS);

      assert_int_equal (td_trainer_run (a), TD_OK);
      assert_int_equal (td_trainer_run (b), TD_OK);
      assert_int_equal (td_save_npz (td_test_tmp ("b"), b), TD_OK);
      assert_int_equal (td_load_npz (td_test_tmp ("b"), c), TD_OK);
      assert_int_equal (td_trainer_run (c), TD_OK);
      assert_int_equal (second.n, N_STEPS - 4);
      assert_memory_equal (first.lr, whole.lr, 4 * sizeof (double));
      assert_memory_equal (second.lr, whole.lr + 4, (N_STEPS - 4) * sizeof (double));
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    train_test (exponential_shift__multiplies_every_step),
    train_test (inverse_shift__falls_as_a_power),
    train_test (linear_shift__is_straight_between_two_times),
    train_test (multistep_shift__multiplies_at_its_steps),
    train_test (polynomial_shift__ends_at_its_count),
    train_test (step_shift__multiplies_every_few_steps),
    train_test (warmup_shift__begins_low),
    train_test (shift__names_an_unknown_hyperparameter),
    train_test (shift__goes_on_where_its_snapshot_was_taken),
  };

  return cmocka_run_group_tests_name ("train-shifts", tests, NULL, NULL);
}
