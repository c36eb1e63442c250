/* Backward: gradients, accumulation, several roots, double backprop, unchaining, versions, and
 * graphs of a million operations.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "tapedeck.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int
setup (void **state)
{
  td_init (NULL, NULL);
  td_scope_open ("test");
  return td_test_setup (state);
}

static int
teardown (void **state)
{
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
  return td_test_teardown (state);
}

static TdVar *
leaf (const char *name, int n, double first, double step)
{
  double values[16];

  for (int i = 0; i < n; i++)
    values[i] = first + step * i;
  return td_variable (td_tensor (TD_F64, TD_SHAPE (n), values), name);
}

static double
at (TdVar *v, int i)
{
  double values[16];

  assert_non_null (v);
  assert_int_equal (td_read (v, values, (size_t)td_size (v) * sizeof (double)), TD_OK);
  return values[i];
}

static void
backward__gives_leaves_their_gradients (void **state)
{
  TdVar *x = leaf ("x", 3, 1, 1), *y = td_sum (td_mul (x, x));

  (void)state;
  assert_int_equal (td_backward (y, 0), TD_OK);
  for (int i = 0; i < 3; i++)
    assert_float_equal (at (td_grad (x), i), 2.0 * (i + 1), 0);
}

static void
backward__accumulates_over_calls_until_cleared (void **state)
{
  TdVar *x = leaf ("x", 2, 3, 1);

  (void)state;
  for (int k = 1; k <= 3; k++)
    {
      assert_int_equal (td_backward (td_sum (td_mul (x, x)), 0), TD_OK);
      assert_float_equal (at (td_grad (x), 0), 6.0 * k, 0);
    }
  td_cleargrad (x);
  assert_null (td_grad (x));
}

static void
backward__does_not_change_a_gradient_that_the_user_holds (void **state)
{
  TdVar *x = leaf ("x", 2, 3, 1), *held;

  (void)state;
  td_backward (td_sum (td_mul (x, x)), 0);
  held = td_retain (td_grad (x));
  td_backward (td_sum (td_mul (x, x)), 0);
  assert_float_equal (at (held, 0), 6.0, 0);
  assert_float_equal (at (td_grad (x), 0), 12.0, 0);
  td_release (held);
}

static void
backward__visits_each_operation_once_in_a_diamond (void **state)
{
  TdVar *x = leaf ("x", 1, 2, 0), *h = td_mul (x, x), *y = x;

  (void)state;
  for (int i = 0; i < 40; i++) /* 2^40 paths */
    y = td_mul_scalar (td_add (i == 0 ? h : y, i == 0 ? h : y), 0.5);
  assert_int_equal (td_backward (td_sum (y), 0), TD_OK);
  assert_float_equal (at (td_grad (x), 0), 4.0, 0);
}

static void
backward__wants_a_seed_for_more_than_one_element (void **state)
{
  TdVar *x = leaf ("x", 3, 1, 1), *y = td_mul (x, x), *seed;
  static const double values[] = { 1, 10, 100 };

  (void)state;
  assert_int_equal (td_backward (y, 0), TD_ERR_ARG);
  assert_contains (td_error ()->message, "td_set_grad");
  td_error_clear ();
  seed = td_tensor (TD_F64, TD_SHAPE (3), values);
  assert_int_equal (td_set_grad (y, seed), TD_OK);
  assert_int_equal (td_backward (y, 0), TD_OK);
  assert_float_equal (at (td_grad (x), 2), 600.0, 0);
}

static void
backward__takes_several_roots (void **state)
{
  TdVar *x = leaf ("x", 2, 1, 1), *ys[2] = { td_sum (x), td_sum (td_mul (x, x)) };

  (void)state;
  assert_int_equal (td_backward_all (ys, 2, NULL, 0), TD_OK);
  assert_float_equal (at (td_grad (x), 0), 3.0, 0);
  assert_float_equal (at (td_grad (x), 1), 5.0, 0);
}

static void
backward__keeps_intermediate_gradients_when_asked (void **state)
{
  TdVar *x = leaf ("x", 2, 1, 1), *h = td_mul (x, x), *y = td_sum (h);

  (void)state;
  assert_int_equal (td_backward (y, 0), TD_OK);
  assert_null (td_grad (h));
  td_cleargrad (x);
  assert_int_equal (td_backward (y, TD_RETAIN_GRADS), TD_OK);
  assert_float_equal (at (td_grad (h), 0), 1.0, 0);
}

static void
backward__visits_only_what_needs_a_gradient (void **state)
{
  TdVar *x = leaf ("x", 2, 1, 1), *c = td_ones (TD_F64, TD_SHAPE (2)), *dead = td_exp (c);
  TdVar *y = td_sum (td_mul (x, dead));

  (void)state;
  assert_int_equal (td_backward (y, TD_RETAIN_GRADS), TD_OK);
  assert_null (td_grad (c));
  assert_null (td_grad (dead));
}

static void
grad_of__touches_nobodys_gradient (void **state)
{
  TdVar *x = leaf ("x", 2, 1, 1), *w = leaf ("w", 2, 5, 1);
  TdVar *y = td_sum (td_mul (td_mul (x, x), w)), *other = leaf ("other", 2, 0, 1);
  TdVar *xs[2] = { x, other }, *gxs[2];

  (void)state;
  assert_int_equal (td_grad_of (&y, 1, xs, 2, NULL, 0, gxs), TD_OK);
  assert_float_equal (at (gxs[0], 0), 10.0, 0);
  assert_float_equal (at (gxs[0], 1), 24.0, 0);
  assert_null (gxs[1]);
  assert_null (td_grad (x));
  assert_null (td_grad (w));
}

static void
grad_of__works_for_intermediate_variables (void **state)
{
  TdVar *x = leaf ("x", 1, 3, 0), *h = td_mul (x, x), *y = td_sum (td_mul (h, h)), *g;

  (void)state;
  assert_int_equal (td_grad_of (&y, 1, &h, 1, NULL, 0, &g), TD_OK);
  assert_float_equal (at (g, 0), 18.0, 0);
}

static void
double_backprop__gives_second_and_third_derivatives (void **state)
{
  TdVar *x = leaf ("x", 1, 2, 0), *y = td_sum (td_pow_scalar (x, 4)), *g1, *g2, *g3;

  (void)state;
  assert_int_equal (td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g1), TD_OK);
  assert_float_equal (at (g1, 0), 32.0, 1e-12);
  assert_int_equal (td_grad_of (&g1, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g2), TD_OK);
  assert_float_equal (at (g2, 0), 48.0, 1e-12);
  assert_int_equal (td_grad_of (&g2, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &g3), TD_OK);
  assert_float_equal (at (g3, 0), 48.0, 1e-12);
}

static void
double_backprop__leaves_no_cycle (void **state)
{
  int64_t before;

  (void)state;
  for (int k = 0; k < 3; k++)
    {
      TD_SCOPE ("round")
        {
          TdVar *x = leaf ("x", 3, 1, 1), *y = td_sum (td_mul (td_mul (x, x), x));

          td_backward (y, TD_DOUBLE_BACKPROP);
          td_backward (td_sum (td_mul (td_grad (x), td_grad (x))), TD_DOUBLE_BACKPROP);
        }
      if (k == 0)
        before = td_mem_info (NULL).live_ops;
    }
  assert_int_equal (td_mem_info (NULL).live_ops, before);
}

static void
unchain__cuts_one_variable_from_its_creator (void **state)
{
  TdVar *x = leaf ("x", 1, 3, 0), *h = td_mul (x, x), *y = td_sum (td_mul (h, x));

  (void)state;
  td_unchain (h);
  assert_int_equal (td_backward (y, 0), TD_OK);
  assert_float_equal (at (td_grad (x), 0), 9.0, 0);
}

static void
unchain_backward__frees_the_graph_behind (void **state)
{
  TdVar *x = leaf ("x", 1, 1, 0), *total = td_sum (x);
  int64_t ops;

  (void)state;
  for (int i = 0; i < 30; i++)
    total = td_add (total, td_sum (td_mul (x, x)));
  ops = td_mem_info (NULL).live_ops;
  assert_true (ops >= 60);
  td_unchain_backward (total);
  assert_int_equal (td_mem_info (NULL).live_ops, 0);
  assert_float_equal (td_item (total), 31.0, 0);
}

static void
no_backprop__keeps_no_graph (void **state)
{
  TdVar *x = leaf ("x", 2, 1, 1);

  (void)state;
  TD_NO_BACKPROP
    {
      TdVar *y = td_sum (td_mul (x, x));

      assert_int_equal (td_mem_info (NULL).live_ops, 0);
      assert_int_equal (td_backward (y, 0), TD_OK);
    }
  assert_null (td_grad (x));
}

static void
stale_array__is_an_error_with_both_lines (void **state)
{
  TdVar *x = leaf ("x", 2, 1, 1), *y = td_sum (td_mul (x, x));
  static const double other[] = { 7, 7 };
  char text[64];
  int line = 0;

  (void)state;
  td_write (x, other, sizeof other), line = __LINE__;
  assert_int_equal (td_backward (y, 0), TD_ERR_STATE);
  snprintf (text, sizeof text, "test-backward.c:%d", line);
  assert_contains (td_error ()->message, "overwritten at");
  assert_contains (td_error ()->message, text);
}

static void
chain_of_a_million__runs_backward_and_is_freed_without_stack (void **state)
{
  struct rlimit small = { 256 << 10, RLIM_INFINITY }, old;
  TdVar *x = leaf ("x", 1, 1, 0);

  (void)state;
  td_test_needs_cpu ("a million launches take the fake driver minutes");
  getrlimit (RLIMIT_STACK, &old);
  small.rlim_max = old.rlim_max;
  assert_int_equal (setrlimit (RLIMIT_STACK, &small), 0);
  TD_SCOPE ("chain")
    {
      TdVar *h = x;

      for (int i = 0; i < 1000000; i++)
        {
          TD_SCOPE ("link of the chain")
            h = td_scope_yield (td_add_scalar (h, 1.0));
        }
      assert_true (td_mem_info (NULL).live_ops >= 1000000);
      assert_float_equal (td_item (h), 1000001.0, 0);
      assert_int_equal (td_backward (td_sum (h), 0), TD_OK);
      assert_float_equal (at (td_grad (x), 0), 1.0, 0);
    }
  assert_int_equal (td_mem_info (NULL).live_ops, 0);
  setrlimit (RLIMIT_STACK, &old);
}

/* More than 16 bits can count. */
static void
variable__is_kept_by_many_operations_at_once (void **state)
{
  enum
  {
    N = 70000
  };
  TdVar *x = leaf ("x", 1, 2, 0);

  (void)state;
  td_test_needs_cpu ("many launches take the fake driver minutes");
  TD_SCOPE ("many")
    {
      TdVar *shared = td_mul_scalar (x, 1), *h = shared;

      for (int i = 0; i < N; i++)
        h = td_add (h, td_mul (shared, shared));
      assert_int_equal (td_backward (td_sum (h), 0), TD_OK);
      assert_float_equal (at (td_grad (x), 0), 1 + 4.0 * N, 0);
    }
  assert_int_equal (td_mem_info (NULL).live_ops, 0);
}

/* Pooling keeps its indices, a second output that nobody else holds. */
static void
retained_output__outlives_its_last_holder (void **state)
{
  static const double values[] = { 1, 5, 2, 3, 9, 4, 8, 7, 6, 0, 1, 2, 3, 4, 5, 6 };
  TdVar *x = td_variable (td_tensor (TD_F64, TD_SHAPE (1, 1, 4, 4), values), "x"), *y = NULL;
  double g[16];

  (void)state;
  TD_SCOPE ("layer")
    y = td_scope_yield (td_max_pooling_2d (x, .ksize = { 2, 2 }));
  assert_int_equal (td_backward (td_sum (td_mul (y, y)), TD_DOUBLE_BACKPROP), TD_OK);
  td_read (td_grad (x), g, sizeof g);
  assert_float_equal (g[4], 18, 0);
  assert_float_equal (g[6], 16, 0);
  assert_float_equal (g[0], 0, 0);
  TdVar *gx = td_grad (x), *gg;
  TdVar *z = td_sum (td_mul (gx, gx));
  assert_int_equal (td_grad_of (&z, 1, &x, 1, NULL, 0, &gg), TD_OK);
  td_read (gg, g, sizeof g);
  assert_float_equal (g[4], 72, 0);
  td_cleargrad (x);
}

/* The structure may change from one iteration to the next (CHAINER.md DY02, DY04, DY16). */
static void
structure__that_alternates_trains_like_the_formula (void **state)
{
  double w = 0.5;
  TdVar *v = td_retain (leaf ("w", 1, w, 0));

  (void)state;
  TD_ITERATIONS (i, 50)
    {
      TdVar *h = i % 2 == 0 ? td_mul (v, v) : td_exp (v);
      double g = i % 2 == 0 ? 2 * w : exp (w), value;

      td_cleargrad (v);
      assert_int_equal (td_backward (td_sum (h), 0), TD_OK);
      assert_float_equal (at (td_grad (v), 0), g, 1e-15);
      w -= 0.01 * at (td_grad (v), 0);
      value = w;
      td_write (v, &value, sizeof value);
    }
  assert_float_equal (at (v, 0), w, 0);
  td_release (v);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (backward__gives_leaves_their_gradients),
    row (backward__accumulates_over_calls_until_cleared),
    row (backward__does_not_change_a_gradient_that_the_user_holds),
    row (backward__visits_each_operation_once_in_a_diamond),
    row (backward__wants_a_seed_for_more_than_one_element),
    row (backward__takes_several_roots),
    row (backward__keeps_intermediate_gradients_when_asked),
    row (backward__visits_only_what_needs_a_gradient),
    row (grad_of__touches_nobodys_gradient),
    row (grad_of__works_for_intermediate_variables),
    row (double_backprop__gives_second_and_third_derivatives),
    row (double_backprop__leaves_no_cycle),
    row (unchain__cuts_one_variable_from_its_creator),
    row (unchain_backward__frees_the_graph_behind),
    row (no_backprop__keeps_no_graph),
    row (stale_array__is_an_error_with_both_lines),
    row (chain_of_a_million__runs_backward_and_is_freed_without_stack),
    row (variable__is_kept_by_many_operations_at_once),
    row (retained_output__outlives_its_last_holder),
    row (structure__that_alternates_trains_like_the_formula),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
