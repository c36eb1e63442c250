/* Keyframes, and iterations that are run again: every operation of the engine, from the rows of
 * op-cases*.c, with gradients of first and second order, and every operation of optimizers.  At
 * level values a tape has all elements to hold the result against, bit for bit.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "op-cases.h"
#include "td-test.h"

#include "record/recompute.h"
#include "td-tape-reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations that no recorded iteration of these rows has run again. */
static const struct
{
  const char *op, *why;
} never_run[] = {
  { "forget", "it runs a function of the program" },
  { "n_step_weights", "for devices whose library has recurrent networks, as the next three" },
  { "n_step_weights_grad", "" },
  { "n_step_rnn", "" },
  { "n_step_rnn_grad", "" },
};

static const char *
why_never (const char *op)
{
  for (size_t k = 0; k < sizeof never_run / sizeof *never_run; k++)
    if (strcmp (never_run[k].op, op) == 0)
      return never_run[k].why;
  return NULL;
}

static const char *
tape (void)
{
  return td_test_tmp ("run.tdtape");
}

static void
begin_recorded (void)
{
  setenv ("TAPEDECK_TAPE", tape (), 1);
  setenv ("TAPEDECK_LEVEL", "values", 1);
  setenv ("TAPEDECK_KEYFRAMES", "1", 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
}

/* --- running again ------------------------------------------------------------------------ */

typedef struct
{
  uint32_t n_equal, n_refused, n_bitwise;
  char refused[768];    /* the first text */
  const char *ran[400]; /* names of the operations that were run again */
  int n_ran;
} Again;

static bool
has_run (const Again *a, const char *op)
{
  for (int k = 0; k < a->n_ran; k++)
    if (strcmp (a->ran[k], op) == 0)
      return true;
  return false;
}

static void
note_ran (Again *a, TdTapeReader *r, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_events; i++)
    {
      const char *op = td_tape_reader_op_name (r, it->events[i].opdef);

      if (!(it->events[i].flags & TD_TAPE_EVENT_FAILED) && !has_run (a, op)
          && a->n_ran < (int)(sizeof a->ran / sizeof *a->ran))
        a->ran[a->n_ran++] = strdup (op);
    }
}

/* Every keyframe of the tape; what differs fails the test. */
static Again
run_again (void)
{
  char error[256];
  Again a = { 0 };
  TdTapeReader *r = td_tape_reader_open (tape (), error, sizeof error);
  TdTapeSummaries s;

  assert_non_null (r);
  td_tape_reader_poll (r);
  s = td_tape_reader_summaries (r);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  for (uint32_t i = 0; i < s.n; i++)
    {
      TdRecomputeOptions o = { .tape = tape (),
                               .out = td_test_tmp ("again.tdtape"),
                               .iteration = s.rows[i].number,
                               .overwrite = true };
      TdRecomputeResult result;
      TdRecomputeOutcome outcome;

      if (!(s.rows[i].flags & TD_TAPE_ITERATION_KEYFRAME))
        continue;
      outcome = td_recompute (&o, &result);
      if (outcome != TD_RECOMPUTE_EQUAL && outcome != TD_RECOMPUTE_REFUSED)
        fail_msg ("iteration %lu: %s", (unsigned long)s.rows[i].number, result.text);
      if (outcome == TD_RECOMPUTE_EQUAL)
        {
          const TdTapeIteration *it
              = td_tape_iteration_load (r, s.rows[i].number, error, sizeof error);

          assert_non_null (it);
          note_ran (&a, r, it);
          td_tape_iteration_free (it);
          a.n_equal++;
          a.n_bitwise += result.n_bitwise;
          if (result.n_bitwise < result.n_compared)
            fail_msg ("iteration %lu: %u arrays compared, %u of them bit for bit",
                      (unsigned long)s.rows[i].number, result.n_compared, result.n_bitwise);
          continue;
        }
      if (a.n_refused++ == 0)
        snprintf (a.refused, sizeof a.refused, "%s", result.text);
    }
  assert_int_equal (td_finish (), 0);
  td_tape_reader_free (r);
  return a;
}

static void
again_clear (Again *a)
{
  while (a->n_ran > 0)
    free ((void *)(uintptr_t)a->ran[--a->n_ran]);
}

/* --- every operation ---------------------------------------------------------------------- */

static TdVar *
weighted_sum (TdVar *const *y, int n)
{
  TdVar *loss = NULL;

  for (int k = 0; k < n; k++)
    if (y[k] != NULL && td_size (y[k]) > 0 && td_dtype (y[k]) <= TD_F64)
      {
        TdVar *weights = td_reshape (
            td_arange (td_dtype (y[k]), 1, (double)td_size (y[k]) + 1, 1), td_shape (y[k]));
        TdVar *part = td_sum (td_mul (y[k], td_mul_scalar (weights, 0.25)));

        loss = loss == NULL ? part : td_add (loss, part);
      }
  return loss;
}

/* Forward, backward, and backward of that. */
static void
record_case (const OpCase *c, TdDtype dtype)
{
  TD_ITERATION (0)
    {
      TdVar *x[6], *y[3] = { NULL }, *gradients[6] = { NULL }, *loss;

      for (int k = 0; k < c->n_in; k++)
        {
          x[k] = op_input (c, k, dtype, NULL);
          if (td_dtype (x[k]) == dtype && !(c->flags & OP_NO_GRAD))
            x[k] = td_variable (x[k], NULL);
        }
      c->call (x, y);
      loss = c->flags & OP_NO_GRAD ? NULL : weighted_sum (y, c->n_out);
      if (loss != NULL)
        td_backward (loss, c->flags & OP_NO_SECOND ? 0 : TD_DOUBLE_BACKPROP);
      for (int k = 0; k < c->n_in; k++)
        gradients[k] = loss != NULL ? td_grad (x[k]) : NULL;
      if (loss != NULL && !(c->flags & OP_NO_SECOND)
          && (loss = weighted_sum (gradients, c->n_in)) != NULL)
        td_backward (loss, 0);
    }
  if (td_error () != NULL)
    fail_msg ("%s %s: %s", c->op, c->variant, td_error ()->message);
}

static void
recompute__gives_every_bit_of_every_operation (void **state)
{
  Again a;
  int n_wrong = 0;

  (void)state;
  begin_recorded ();
  for (int t = 0; t < N_OP_CASE_TABLES; t++)
    for (int k = 0; k < *op_case_tables[t].n_cases; k++)
      record_case (&op_case_tables[t].cases[k], k % 2 == 0 ? TD_F32 : TD_F64);
  assert_int_equal (td_finish (), 0);
  a = run_again ();
  print_message ("%u iterations equal in %u arrays, bit for bit; %u refused%s%s\n", a.n_equal,
                 a.n_bitwise, a.n_refused, a.n_refused > 0 ? ": " : "", a.refused);
  for (int i = 0; i < td_op_class_count (); i++)
    {
      const char *op = td_op_class_at (i)->name;

      if (has_run (&a, op) == (why_never (op) != NULL))
        print_message ("%s: %s\n", op, has_run (&a, op) ? "was run again" : "never was"),
            n_wrong++;
    }
  assert_int_equal (n_wrong, 0);
  /* The one row of forget. */
  assert_int_equal (a.n_refused, 1);
  assert_contains (a.refused, "forget depends on the program's own memory");
  again_clear (&a);
}

/* --- every operation of optimizers -------------------------------------------------------- */

static TdOpt *
optimizer_of (TdLink *net, int k)
{
  switch (k)
    {
    case 0:
      return td_sgd_new (net);
    case 1:
      return td_momentum_sgd_new (net);
    case 2:
      return td_corrected_momentum_sgd_new (net);
    case 3:
      return td_nesterov_ag_new (net);
    case 4:
      return td_adagrad_new (net);
    case 5:
      return td_adadelta_new (net);
    case 6:
      return td_rmsprop_new (net);
    case 7:
      return td_rmsprop_graves_new (net);
    case 8:
      return td_smorms3_new (net);
    case 9:
      return td_adam_new (net);
    case 10:
      return td_adam_new (net, .amsgrad = true);
    default:
      return NULL;
    }
}

static void
train (TdOpt *opt, TdLink *net, TdDtype dtype, int n)
{
  TD_ITERATIONS (i, n)
    {
      TdVar *x = td_randn (dtype, TD_SHAPE (3, 4));
      TdVar *y = td_dropout (td_relu (td_link (net, x)), 0.25);
      TdVar *loss = td_mean (td_mul (y, y));

      td_cleargrads (net);
      td_opt_backward (opt, loss, 0);
      td_opt_update (opt);
    }
}

static void
recompute__gives_every_bit_of_every_update (void **state)
{
  TdOpt *opt;
  Again a;
  int n_wrong = 0;

  (void)state;
  begin_recorded ();
  for (int k = 0;; k++)
    {
      const TdDtype dtype = k == 0 ? TD_BF16 : TD_F32; /* halves have a master copy */
      TdLink *net;

      td_config_set (dtype, (int)dtype);
      net = td_linear_new (NULL, "net", 4, 5);

      opt = optimizer_of (net, k);
      if (opt == NULL)
        break;
      td_opt_add_hook (opt, td_weight_decay_new (0.01));
      td_opt_add_hook (opt, td_lasso_new (0.01));
      td_opt_add_hook (opt, td_gradient_noise_new (0.01));
      td_opt_add_hook (opt, td_gradient_clipping_new (0.1));
      td_opt_add_hook (opt, td_gradient_hard_clipping_new (-0.01, 0.01));
      td_opt_add_hook (opt, td_gradient_lars_new ());
      if (k == 0)
        {
          td_opt_loss_scaling (opt, .scale = 4);
          td_opt_use_fp32_update (opt, true);
        }
      train (opt, net, dtype, 3);
    }
  td_config_set (dtype, TD_F32);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  a = run_again ();
  print_message ("%u iterations equal in %u arrays, bit for bit%s\n", a.n_equal, a.n_bitwise,
                 a.refused);
  assert_int_equal (a.n_refused, 0);
  assert_int_equal (a.n_equal, 33);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  for (int i = 0; td__engine.updates[i] != NULL; i++)
    if (!has_run (&a, td__engine.updates[i]->name))
      {
        print_message ("%s was not run again\n", td__engine.updates[i]->name);
        n_wrong++;
      }
  assert_int_equal (td_finish (), 0);
  assert_int_equal (n_wrong, 0);
  again_clear (&a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (recompute__gives_every_bit_of_every_operation),
    td_test (recompute__gives_every_bit_of_every_update),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
