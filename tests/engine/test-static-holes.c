/* Holes H01 to H11 of Chainer's static graph, each with the right result: that of
 * define-by-run, to the last bit.  H12 to H21: test-static-cache.c.
 *
 * *Source*: chainer 7.8.1, graph_optimizations/static_graph.py; H22 to H24 are of loss scaling:
 * test-optim-scaling.c.
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include <string.h>

/* --- H01, H02: the first iteration runs once --- */

static void
statistics (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .fuse = false);

  (void)user;
  for (unsigned i = 0; i < 3; i++)
    {
      TdVar *y = td_static_call1 (s, some (TD_SHAPE (8, 5), i));

      note (td_link_param (net.bn, "avg_mean"));
      note (td_link_param (net.bn, "avg_var"));
      td_cleargrads (net.root);
      td_backward (sum_of_squares (y), 0);
      note_link (net.root);
      note_number (net.n_wrapped);
      assert_int_equal (net.n_wrapped, i + 1);
    }
  expect_calls (s, 1, 2);
  if (is_static_run ())
    assert_int_equal (net.n_code, 1);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h01_h02_the_first_iteration_runs_once (void **state)
{
  (void)state;
  run_both (statistics, NULL);
}

/* --- H03, H04: gradients of several calls, and of several backwards --- */

static void
several_calls (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .fuse = false);

  (void)user;
  for (unsigned i = 0; i < 4; i++)
    {
      TdVar *a = td_static_call1 (s, some (TD_SHAPE (8, 5), i));
      TdVar *b = td_static_call1 (s, some (TD_SHAPE (8, 5), 10 + i));
      TdVar *c = td_static_call1 (s, some (TD_SHAPE (8, 5), 20 + i));

      td_cleargrads (net.root);
      td_backward (sum_of_squares (td_add (td_mul (a, b), c)), 0);
      note_link (net.root);
    }
  expect_calls (s, 3, 9);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h03_calls_in_one_iteration_add_their_gradients (void **state)
{
  (void)state;
  run_both (several_calls, NULL);
}

static void
cell_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *results[2];

  assert_int_equal (n_in, 3);
  assert_int_equal (n_out, 2);
  td_link_call (self, in, 3, results, 2);
  out[0] = results[0];
  out[1] = results[1];
}

/* Backpropagation through time, through a cell that is static. */
static void
through_time (void *user)
{
  TdLink *cell = td_stateless_lstm_new (NULL, "cell", 4, 6);
  TdStatic *s = td_static_new (cell_forward, cell, .fuse = false, .minimize_cache_size = false);

  (void)user;
  fill_params (cell, 8);
  for (unsigned i = 0; i < 3; i++)
    TD_SCOPE ("sequence")
      {
        TdVar *state[2] = { some (TD_SHAPE (2, 6), 1), some (TD_SHAPE (2, 6), 2) };
        TdVar *loss = NULL;

        for (unsigned t = 0; t < 5; t++)
          {
            TdVar *in[] = { state[0], state[1], some (TD_SHAPE (2, 4), 30 * i + t) };
            TdVar *one;

            assert_int_equal (td_static_call (s, in, 3, state, 2), TD_OK);
            one = td_sum (td_mul (state[1], state[1]));
            loss = loss == NULL ? one : td_add (loss, one);
          }
        td_cleargrads (cell);
        td_backward (loss, 0);
        note (loss);
        note_link (cell);
      }
  if (is_static_run ())
    {
      assert_true (td_static_info (s).n_replays >= 8);
      assert_int_equal (td_static_info (s).n_replays + td_static_info (s).n_dynamic, 15);
    }
  td_static_free (s);
  td_link_free (cell);
}

static void
static__h03_a_cell_called_over_time_gets_the_gradient_of_all_steps (void **state)
{
  (void)state;
  run_both (through_time, NULL);
}

static void
through_link (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_tanh (td_link (self, in[0]));
}

/* One function behind another, both traced in one iteration, and one backward through both. */
static void
function_behind_function (void *user)
{
  TdLink *root = td_chain_new ("two"), *l1 = td_linear_new (root, "l1", 5, 4),
         *l2 = td_linear_new (root, "l2", 4, 3);
  TdStatic *a = td_static_new (through_link, l1, .fuse = false),
           *b = td_static_new (through_link, l2, .fuse = false);

  (void)user;
  fill_params (root, 8);
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *y = td_static_call1 (b, td_static_call1 (a, some (TD_SHAPE (2, 5), i)));

        td_cleargrads (root);
        td_backward (sum_of_squares (y), 0);
        note (y);
        note_link (root);
      }
  expect_calls (a, 1, 3);
  expect_calls (b, 1, 3);
  td_static_free (a);
  td_static_free (b);
  td_link_free (root);
}

static void
static__h03_two_functions_in_a_row_give_their_own_gradients (void **state)
{
  (void)state;
  run_both (function_behind_function, NULL);
}

static void
accumulation (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .fuse = false);

  (void)user;
  for (unsigned i = 0; i < 4; i++)
    {
      td_backward (sum_of_squares (td_static_call1 (s, some (TD_SHAPE (8, 5), 1))), 0);
      note_link (net.root);
    }
  expect_calls (s, 1, 3);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h04_gradients_add_up_over_backward_calls (void **state)
{
  (void)state;
  run_both (accumulation, NULL);
}

/* --- H05: modes --- */

static void
modes (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .fuse = false, .minimize_cache_size = false);

  (void)user;
  for (unsigned round = 0; round < 3; round++)
    {
      TdVar *x = some (TD_SHAPE (8, 5), round), *y;

      TD_NO_BACKPROP
        note (td_static_call1 (s, x)); /* train on: drops, and moves statistics */
      TD_USING (train, 0)
        note (td_static_call1 (s, x));
      TD_USING (train, 0)
        TD_NO_BACKPROP
          {
            y = td_static_call1 (s, x);
            note (y);
            note (td_static_call1 (s, x));
            assert_bits (y, td_static_call1 (s, x)); /* nothing is dropped */
          }
      note (td_static_call1 (s, x));
      note (td_link_param (net.bn, "avg_mean"));
    }
  if (is_static_run ())
    {
      assert_int_equal (td_static_info (s).n_schedules, 4);
      assert_int_equal (td_static_info (s).n_traces, 4);
    }
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h05_training_and_evaluation_never_share_a_schedule (void **state)
{
  (void)state;
  run_both (modes, NULL);
}

/* --- H06, H08, H11: what the code reads --- */

static void
flag_changes (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (reading_forward, &net, .fuse = false, .self_bytes = sizeof net);
  TdVar *x = some (TD_SHAPE (4, 5), 1);

  (void)user;
  for (int i = 0; i < 8; i++)
    {
      net.tanh_instead = i >= 4;
      TD_SCOPE ("call")
        note (td_static_call1 (s, x));
      if (i == 4)
        expect_miss (s, "memory of self", "1, 0 before", NULL);
    }
  expect_calls (s, 2, 6);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h06_a_branch_on_a_flag_is_taken (void **state)
{
  (void)state;
  run_both (flag_changes, NULL);
}

static void
captured_changes (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (reading_forward, &net, .fuse = false, .self_bytes = sizeof net);
  TdVar *x = some (TD_SHAPE (4, 5), 1);
  TdLink *old = net.l1;

  (void)user;
  for (int i = 0; i < 3; i++) /* a scalar of the program's */
    {
      net.scale = (float)(i < 2 ? 1 : 2.5);
      TD_SCOPE ("call")
        note (td_static_call1 (s, x));
    }
  expect_calls (s, 2, 1);
  expect_miss (s, "memory of self", "2.5", NULL);
  for (int i = 0; i < 3; i++) /* a sub-link put in another's place */
    {
      if (i == 2)
        {
          net.l1 = td_linear_new (net.root, "other", 5, 7);
          fill_params (net.l1, 99);
        }
      TD_SCOPE ("call")
        note (td_static_call1 (s, x));
    }
  assert_ptr_not_equal (net.l1, old);
  net.captured = td_retain (some (TD_SHAPE (7), 5)); /* a variable that is no argument */
  for (int i = 0; i < 4; i++)
    {
      if (i == 2)
        fill (net.captured, 6); /* other numbers in the same variable: no miss */
      if (i == 3)
        {
          td_release (net.captured);
          net.captured = td_retain (some (TD_SHAPE (7), 7));
        }
      TD_SCOPE ("call")
        note (td_static_call1 (s, x));
    }
  td_release (net.captured);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h08_captured_scalars_links_and_variables_are_never_stale (void **state)
{
  (void)state;
  run_both (captured_changes, NULL);
}

static void
counted_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  for (int k = 0; k < n_out; k++)
    out[k] = td_mul_scalar (in[k % n_in], k + n_in);
}

static void
argument_kinds (void *user)
{
  TdStatic *s = td_static_new (counted_forward, NULL, .fuse = false);
  TdVar *x[] = { some (TD_SHAPE (3), 1), some (TD_SHAPE (3), 2) }, *y[3];

  (void)user;
  for (int n_in = 1; n_in <= 2; n_in++)
    for (int n_out = 1; n_out <= 3; n_out++)
      for (int again = 0; again < 2; again++)
        {
          assert_int_equal (td_static_call (s, x, n_in, y, n_out), TD_OK);
          for (int k = 0; k < n_out; k++)
            note (y[k]);
        }
  expect_calls (s, 6, 6);
  x[1] = NULL; /* no variable is no argument */
  assert_int_not_equal (td_static_call (s, x, 2, y, 1), TD_OK);
  assert_true (td_poisoned (y[0]));
  assert_non_null (strstr (said (TD_ERR_ARG), "static#"));
  td_static_free (s);
}

static void
static__h11_no_argument_keeps_the_value_of_the_first_call (void **state)
{
  (void)state;
  run_both (argument_kinds, NULL);
}

/* --- H07: what waits --- */

static void
static__h07_calls_without_backward_make_no_new_instances (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdVar *kept[4];

  (void)state;
  TD_ITERATIONS (i, 10)
    td_static_call1 (s, some (TD_SHAPE (8, 5), (unsigned)i));
  assert_int_equal (td_static_info (s).n_replays, 9);
  assert_int_equal (td_static_info (s).n_instances, 1);
  assert_int_equal (td_static_info (s).n_instances_awaiting, 0);
  TD_ITERATIONS (i, 10) /* those that are kept are counted as long as they are */
    {
      TdVar *y = td_static_call1 (s, some (TD_SHAPE (8, 5), (unsigned)i));

      if (i < 4)
        kept[i] = td_retain (y);
    }
  assert_int_equal (td_static_info (s).n_instances, 5);
  assert_int_equal (td_static_info (s).n_instances_awaiting, 4);
  for (int i = 0; i < 4; i++)
    td_release (kept[i]);
  assert_int_equal (td_static_info (s).n_instances_awaiting, 0);
}

/* --- H09: second derivatives --- */

static void
cube (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_mul (td_mul (in[0], in[0]), in[0]);
}

static void
second_derivative (void *user)
{
  TdStatic *s = td_static_new (cube, NULL, .enable_double_backprop = true, .fuse = false);

  (void)user;
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_variable (td_full (TD_F64, TD_SHAPE (2), 2 + i), "x");
        TdVar *y = td_sum (td_static_call1 (s, x)), *g, *gg, *ggg;

        assert_int_equal (td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g), TD_OK);
        g = td_sum (g);
        assert_int_equal (td_grad_of (&g, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &gg), TD_OK);
        assert_float_equal (numbers (gg)[0], 6 * (2 + i), 0); /* (x^3)'' = 6 x */
        gg = td_sum (gg);
        assert_int_equal (td_grad_of (&gg, 1, &x, 1, NULL, 0, &ggg), TD_OK);
        assert_float_equal (numbers (ggg)[0], 6, 0);
        note (y);
        note (g);
        note (gg);
        note (ggg);
      }
  expect_calls (s, 1, 3);
  td_static_free (s);
}

static void
static__h09_second_derivatives_are_right_or_refused (void **state)
{
  TdStatic *s = td_static_new (cube, NULL);
  TdVar *x = td_variable (td_full (TD_F32, TD_SHAPE (1), 2), "x"), *y, *g;

  (void)state;
  run_both (second_derivative, NULL);
  TD_SCOPE ("first")
    td_backward (td_static_call1 (s, x), 0);
  y = td_static_call1 (s, x);
  assert_int_not_equal (td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g), TD_OK);
  assert_non_null (strstr (said (TD_ERR_STATE), "enable_double_backprop"));
}

/* --- H10: one array as two arguments --- */

static void
product (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_sum (td_mul (in[0], in[1]));
}

static void
aliases (void *user)
{
  TdStatic *s
      = td_static_new (product, NULL, .fuse = false, .minimize_cache_size = user != NULL);

  for (int i = 0; i < 8; i++)
    TD_SCOPE ("call")
      {
        TdVar *a = td_variable (some (TD_SHAPE (4), 1), "a");
        TdVar *b = td_variable (some (TD_SHAPE (4), 2), "b");
        TdVar *same[] = { a, a }, *two[] = { a, b }, *y;

        td_static_call (s, i % 4 < 2 ? same : two, 2, &y, 1);
        note (y);
        td_backward (y, 0);
        note (td_grad (a));
        note (td_grad (b));
        if (i == 2)
          expect_miss (s, "argument 1 shares its memory", NULL);
      }
  if (user == NULL)
    expect_calls (s, 2, 6);
  else
    expect_calls (s, 3, 5);
  td_static_free (s);
}

static void
static__h10_one_array_as_two_arguments_is_no_other_array (void **state)
{
  (void)state;
  run_both (aliases, NULL);
  run_both (aliases, (void *)"one schedule at a time");
}

/* --- a graph that is cut --- */

static void
layer_and_more (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;

  (void)n_in;
  (void)n_out;
  out[1] = td_link (net->l1, in[0]);
  out[0] = td_tanh (out[1]);
}

static void
cut (void *cuts)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (layer_and_more, &net, .fuse = false);

  for (unsigned i = 0; i < 4; i++)
    {
      TdVar *x = some (TD_SHAPE (8, 5), i), *y[2];

      td_static_call (s, &x, 1, y, 2);
      if (i > 0 && cuts != NULL)
        td_unchain_backward (y[1]);
      else if (i > 0)
        td_unchain (y[1]);
      td_cleargrads (net.root);
      td_backward (sum_of_squares (y[0]), 0);
      note_link (net.root);
      note (td_grad (y[1]));
    }
  expect_calls (s, 1, 3);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__a_result_that_is_cut_off_is_cut_off_inside (void **state)
{
  (void)state;
  run_both (cut, NULL);
  run_both (cut, (void *)"with all that it was made by");
}

/* --- steps of a Sequential --- */

static TdVar *
twice (TdVar *x)
{
  return td_mul_scalar (x, 2);
}

static TdVar *
thrice (TdVar *x)
{
  return td_mul_scalar (x, 3);
}

typedef struct
{
  bool marked, inner;
} StepsPlan;

static void
call_link (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_link (self, in[0]);
}

static void
call_some (TdStatic *s, TdLink *net, TdVar *(*how) (TdStatic *s, TdLink *net, TdVar *x))
{
  for (unsigned k = 0; k < 3; k++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_variable (some (TD_SHAPE (2, 4), k), "x"), *y = how (s, net, x);

        note (y);
        td_backward (sum_of_squares (y), 0);
        note (td_grad (x));
      }
}

static TdVar *
through (TdStatic *s, TdLink *net, TdVar *x)
{
  return s != NULL ? td_static_call1 (s, x) : td_link (net, x);
}

/* As many steps as before, and others: the link's own memory is as it was. */
static void
replaced_steps (void *user)
{
  const StepsPlan *plan = user;
  TdLink *net = td_sequential_new ("net"),
         *of = plan->inner ? td_sequential_new (net, "inner") : net;
  TdStatic *s = NULL;

  td_sequential_append (of, twice);
  td_sequential_append (of, td_tanh);
  if (plan->marked)
    td_link_set_static (net, .verify = 0);
  else
    s = td_static_new (call_link, net, .verify = 0);
  call_some (s, net, through);
  td_sequential_pop (of, 0);
  td_sequential_append (of, thrice); /* another, and in another place */
  call_some (s, net, through);
  td_sequential_pop (of, -1);
  td_sequential_insert (of, 0, thrice); /* the same, in another place */
  call_some (s, net, through);
  td_sequential_clear (of);
  td_sequential_append (of, td_relu);
  td_sequential_append (of, td_relu);
  call_some (s, net, through);
}

static void
links__whose_steps_are_replaced_are_traced_again (void **state)
{
  (void)state;
  for (int k = 0; k < 4; k++)
    run_both (replaced_steps, &(StepsPlan){ k % 2 != 0, k / 2 != 0 });
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (static__h01_h02_the_first_iteration_runs_once),
    engine_test (static__h03_calls_in_one_iteration_add_their_gradients),
    engine_test (static__h03_two_functions_in_a_row_give_their_own_gradients),
    engine_test (static__h03_a_cell_called_over_time_gets_the_gradient_of_all_steps),
    engine_test (static__h04_gradients_add_up_over_backward_calls),
    engine_test (static__h05_training_and_evaluation_never_share_a_schedule),
    engine_test (static__h06_a_branch_on_a_flag_is_taken),
    engine_test (static__h07_calls_without_backward_make_no_new_instances),
    engine_test (static__h08_captured_scalars_links_and_variables_are_never_stale),
    engine_test (static__h09_second_derivatives_are_right_or_refused),
    engine_test (static__h10_one_array_as_two_arguments_is_no_other_array),
    engine_test (static__a_result_that_is_cut_off_is_cut_off_inside),
    engine_test (static__h11_no_argument_keeps_the_value_of_the_first_call),
    engine_test (links__whose_steps_are_replaced_are_traced_again),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
