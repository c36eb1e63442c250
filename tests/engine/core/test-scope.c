/* Ownership: scopes, iterations, retained and dead handles, poison, errors.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "tapedeck.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
setup (void **state)
{
  td_init (NULL, NULL);
  return td_test_setup (state);
}

/* Every test ends without live handles, nodes, operations or bytes. */
static int
teardown (void **state)
{
  TdMemInfo info = td_mem_info (NULL);

  assert_int_equal (info.live_ops, 0);
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
  return td_test_teardown (state);
}

static TdVar *
three (void)
{
  static const float values[] = { 1, -2, 3 };

  return td_tensor (TD_F32, TD_SHAPE (3), values);
}

static int64_t
live_vars (void)
{
  return td_mem_info (NULL).live_vars;
}

static void
scope__frees_its_variables_at_its_end (void **state)
{
  int64_t before = live_vars ();

  (void)state;
  TD_SCOPE ("block")
    {
      td_add (three (), three ());
      assert_int_equal (live_vars (), before + 3);
    }
  assert_int_equal (live_vars (), before);
  assert_int_equal (td_mem_info (NULL).live_bytes, 0);
}

static void
scope__closes_on_break (void **state)
{
  int64_t before = live_vars ();
  int n = 0;

  (void)state;
  TD_SCOPE ("block")
    {
      three ();
      n++;
      if (n == 1)
        break;
      n = 100;
    }
  assert_int_equal (n, 1);
  assert_int_equal (live_vars (), before);
}

static double
returns_from_inside (void)
{
  TD_SCOPE_HERE ("function");
  TdVar *x = three ();

  if (td_size (x) == 3)
    return td_item (td_sum (x));
  return -1;
}

static void
scope__closes_on_return (void **state)
{
  int64_t before = live_vars ();

  (void)state;
  assert_float_equal (returns_from_inside (), 2.0, 0);
  assert_int_equal (live_vars (), before);
}

static void
scope__yield_hands_a_variable_outward (void **state)
{
  int64_t before = live_vars ();

  (void)state;
  TD_SCOPE ("outer")
    {
      TdVar *kept = NULL, *also = NULL;

      TD_SCOPE ("inner")
        {
          three ();
          kept = td_scope_yield (td_add (three (), three ()));
          three ();
          also = td_scope_yield (three ());
          three ();
        }
      assert_int_equal (live_vars (), before + 2);
      assert_float_equal (td_item (td_sum (kept)), 4.0, 0);
      assert_float_equal (td_item (td_sum (also)), 2.0, 0);
    }
  assert_int_equal (live_vars (), before);
}

static void
retain__keeps_a_variable_beyond_its_scope (void **state)
{
  TdVar *x = NULL;

  (void)state;
  TD_SCOPE ("block")
    x = td_retain (three ());
  assert_float_equal (td_item (td_sum (x)), 2.0, 0);
  td_release (x);
  assert_null (td_error ());
  td_release (x); /* once too often */
  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, TD_ERR_STATE);
}

static void
dead_handle__is_named_with_both_lines (void **state)
{
  TdVar *h = NULL;
  int line = 0;

  (void)state;
  TD_ITERATIONS (i, 1)
    {
      h = td_name (td_zeros (TD_F32, TD_SHAPE (i + 3)), "h");
      h = td_name (td_tensor (TD_F32, TD_SHAPE (3), NULL), "h"), line = __LINE__;
    }
  assert_true (td_poisoned (td_relu (h)));
  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, TD_ERR_STATE);
  char expected[64];
  assert_contains (td_error ()->message, "died with iteration 0");
  assert_contains (td_error ()->message, "td_retain it");
  snprintf (expected, sizeof expected, "test-scope.c:%d", line);
  assert_contains (td_error ()->message, expected);
}

/* There was no iteration, and no scope ended. */
static void
dead_handle__of_no_iteration_is_named_without_one (void **state)
{
  TdVar *h = NULL, *W;
  TdLink *l = td_linear_new ((TdLink *)NULL, "l", 2, 3);

  (void)state;
  TD_SCOPE ("inner")
    h = td_zeros (TD_F32, TD_SHAPE (3));
  assert_true (td_poisoned (td_relu (h)));
  assert_non_null (strstr (td_error ()->message, " died"));
  assert_null (strstr (td_error ()->message, "iteration"));
  td_error_clear ();
  W = td_link_param (l, "W");
  td_link_free (l);
  assert_true (td_poisoned (td_relu (W)));
  assert_non_null (strstr (td_error ()->message, " died: td_retain it"));
  td_error_clear ();
}

static void
dead_handle__is_recognised_until_the_end_of_the_next_iteration (void **state)
{
  TdVar *h = NULL;

  (void)state;
  setenv ("TAPEDECK_ON_ERROR", "continue", 1);
  TD_ITERATIONS (i, 2)
    {
      if (i == 0)
        h = td_name (three (), "h");
      else
        {
          for (int k = 0; k < 1000; k++) /* no slot of a handle is reused meanwhile */
            TD_SCOPE ("many")
              three ();
          assert_true (td_poisoned (td_relu (h)));
          assert_contains (td_error ()->message, "h, made at");
        }
    }
  unsetenv ("TAPEDECK_ON_ERROR");
}

static void
iterations__break_ends_the_loop (void **state)
{
  int n = 0;

  (void)state;
  TD_ITERATIONS (i, 10)
    {
      n++;
      if (i == 2)
        break;
    }
  assert_int_equal (n, 3);
}

static void
iterations__continue_goes_on (void **state)
{
  int n = 0;
  int64_t before = live_vars ();

  (void)state;
  TD_ITERATIONS (i, 5)
    {
      three ();
      if (i < 4)
        continue;
      n++;
    }
  assert_int_equal (n, 1);
  assert_int_equal (live_vars (), before);
}

static void
iteration__names_both_lines_when_nested (void **state)
{
  int outer = 0, inner = 0;
  char text[64];

  (void)state;
  outer = __LINE__ + 1;
  TD_ITERATION (7)
    {
      inner = __LINE__ + 1;
      TD_ITERATION (8)
        {
        }
    }
  assert_non_null (td_error ());
  snprintf (text, sizeof text, ":%d is still open", outer);
  assert_contains (td_error ()->message, text);
  snprintf (text, sizeof text, ":%d begins", inner);
  assert_contains (td_error ()->message, text);
}

static void
poison__flows_through_operations_and_reads (void **state)
{
  float values[12];

  (void)state;
  TD_SCOPE ("block")
    {
      TdVar *bad = td_add (three (), td_zeros (TD_F32, TD_SHAPE (4)));
      TdVar *worse = td_relu (td_mul (bad, three ()));

      assert_true (td_poisoned (bad));
      assert_true (td_poisoned (worse));
      assert_true (isnan (td_item (worse)));
      assert_int_equal (td_shape (worse).ndim, 0);
      values[0] = 42;
      assert_int_equal (td_read (worse, values, sizeof values), TD_ERR_SHAPE);
      assert_float_equal (values[0], 42, 0);
    }
}

static void
error__keeps_the_first_and_names_operands_and_shapes (void **state)
{
  (void)state;
  TD_SCOPE ("block")
    {
      td_add (three (), td_zeros (TD_F32, TD_SHAPE (4)));
      td_mul (three (), td_zeros (TD_F64, TD_SHAPE (3)));
    }
  assert_int_equal (td_error ()->status, TD_ERR_SHAPE);
  assert_string_equal (td_error ()->op, "add");
  assert_contains (td_error ()->message, "(3)");
  assert_contains (td_error ()->message, "(4)");
  assert_contains (td_error ()->message, "test-scope.c:");
  assert_null (strchr (td_error ()->message, '\n'));
}

static void
error__healthy_operations_go_on_and_backward_refuses (void **state)
{
  TdVar *x = NULL;

  (void)state;
  TD_SCOPE ("block")
    {
      x = td_variable (three (), "x");
      td_add (x, td_zeros (TD_F32, TD_SHAPE (4)));
      TdVar *y = td_sum (td_mul (x, x));

      assert_float_equal (td_item (y), 14.0, 0);
      assert_int_equal (td_backward (y, 0), TD_ERR_SHAPE);
      assert_null (td_grad (x));
      td_error_clear ();
      assert_int_equal (td_backward (y, 0), TD_OK);
      assert_non_null (td_grad (x));
    }
}

static void
null_argument__is_an_error_with_one_line (void **state)
{
  (void)state;
  assert_true (td_poisoned (td_relu (NULL)));
  assert_int_equal (td_error ()->status, TD_ERR_ARG);
}

/* A file may be called so that its name moves a terminal's cursor: in UTF-8, and in the eight
 * bits of old. */
static void
message__commands_no_terminal (void **state)
{
  static const TdSite site = { "a\033[2J\n\302\233\x9b\177é✓.c", "main", 7 };
  const char *message;

  (void)state;
  assert_true (td_poisoned (td_load_npy_at ("dir/\302\205\x8d/x.npy", &site)));
  message = td_error ()->message;
  assert_non_null (strstr (message, "(a [2J   ? é✓.c:7)"));
  for (const unsigned char *c = (const unsigned char *)message; *c != '\0'; c++)
    assert_true (*c >= ' ' && *c != 0x7f && !(c[0] == 0xc2 && c[1] < 0xa0));
  td_error_clear ();
}

static void
config__using_restores_the_old_value (void **state)
{
  (void)state;
  assert_int_equal (td_config ()->train, 1);
  TD_USING (train, 0)
    {
      assert_int_equal (td_config ()->train, 0);
      TD_USING (train, 1)
        assert_int_equal (td_config ()->train, 1);
      assert_int_equal (td_config ()->train, 0);
      break;
    }
  assert_int_equal (td_config ()->train, 1);
  assert_int_equal (td_config ()->enable_backprop, 1);
  TD_NO_BACKPROP
    assert_int_equal (td_config ()->enable_backprop, 0);
  assert_int_equal (td_config ()->enable_backprop, 1);
}

static void *
other_thread (void *result)
{
  TdVar *y = td_zeros (TD_F32, TD_SHAPE (2));

  *(bool *)result = td_poisoned (y);
  return NULL;
}

static void
thread__other_than_the_owner_is_refused (void **state)
{
  pthread_t thread;
  bool refused = false;

  (void)state;
  assert_int_equal (pthread_create (&thread, NULL, other_thread, &refused), 0);
  pthread_join (thread, NULL);
  assert_true (refused);
  assert_int_equal (td_finish (), 1); /* the program does not end well */
  td_init (NULL, NULL);
}

static void
sizes__that_overflow_are_refused_before_memory_is_taken (void **state)
{
  size_t before = td_mem_info (NULL).reserved_bytes;

  (void)state;
  assert_true (td_poisoned (td_zeros (TD_F32, TD_SHAPE (1LL << 40, 1LL << 40))));
  assert_int_equal (td_error ()->status, TD_ERR_SHAPE);
  td_error_clear ();
  assert_true (td_poisoned (td_zeros (TD_F32, TD_SHAPE (-3))));
  assert_int_equal (td_error ()->status, TD_ERR_SHAPE);
  assert_int_equal (td_mem_info (NULL).reserved_bytes, before);
}

static void
mem_limit__refuses_and_says_what_is_live (void **state)
{
  (void)state;
  td_set_mem_limit (1 << 20);
  TD_SCOPE ("block")
    {
      td_zeros (TD_F32, TD_SHAPE (100000));
      assert_true (td_poisoned (td_zeros (TD_F32, TD_SHAPE (200000))));
    }
  assert_int_equal (td_error ()->status, TD_ERR_MEMORY);
  assert_contains (td_error ()->message, "800 kB wanted");
  assert_contains (td_error ()->message, "400 kB live (input 400 kB)");
  td_set_mem_limit (0);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (scope__frees_its_variables_at_its_end),
    row (scope__closes_on_break),
    row (scope__closes_on_return),
    row (scope__yield_hands_a_variable_outward),
    row (retain__keeps_a_variable_beyond_its_scope),
    row (dead_handle__is_named_with_both_lines),
    row (dead_handle__of_no_iteration_is_named_without_one),
    row (dead_handle__is_recognised_until_the_end_of_the_next_iteration),
    row (iterations__break_ends_the_loop),
    row (iterations__continue_goes_on),
    row (iteration__names_both_lines_when_nested),
    row (poison__flows_through_operations_and_reads),
    row (error__keeps_the_first_and_names_operands_and_shapes),
    row (error__healthy_operations_go_on_and_backward_refuses),
    row (null_argument__is_an_error_with_one_line),
    row (message__commands_no_terminal),
    row (config__using_restores_the_old_value),
    row (thread__other_than_the_owner_is_refused),
    row (sizes__that_overflow_are_refused_before_memory_is_taken),
    row (mem_limit__refuses_and_says_what_is_live),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
