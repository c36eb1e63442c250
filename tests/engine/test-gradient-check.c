/* The gradient checks themselves: they pass what is right, and name what is wrong.
 * SPDX-License-Identifier: MIT */
#include "compute/ops/ops.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>

/* x * x * x whose gradient, or whose gradient's gradient, is wrong at will. */
static double first_factor, second_factor;

static TdStatus
cube_forward (TdOpCall *call)
{
  return call->device->ops->unary (call->device, TD_UNARY_POW_SCALAR, 3, 0, &call->in[0],
                                   &call->out[0]);
}

static TdStatus cube_backward (TdBackward *b);

static TdStatus
slope_forward (TdOpCall *call)
{
  TdStatus status = call->device->ops->unary (call->device, TD_UNARY_SQUARE, 0, 0, &call->in[0],
                                              &call->out[0]);

  return status != TD_OK ? status
                         : call->device->ops->unary (call->device, TD_UNARY_MUL_SCALAR, 3, 0,
                                                     &call->out[0], &call->out[0]);
}

static TdStatus
slope_backward (TdBackward *b)
{
  b->gx[0] = td_mul (b->gy[0], td_mul_scalar (td_backward_input (b, 0), 6 * second_factor));
  return TD_OK;
}

static const TdOpClass cube_class = {
  .name = "cube",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_in = 1,
  .in_names = td__names_x,
  .infer = td__infer_float,
  .forward = cube_forward,
  .backward = cube_backward,
};
static const TdOpClass slope_class = {
  .name = "cube_slope",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_in = 1,
  .in_names = td__names_x,
  .infer = td__infer_float,
  .forward = slope_forward,
  .backward = slope_backward,
};

static TdStatus
cube_backward (TdBackward *b)
{
  TdVar *slope = td__apply1 (&slope_class, NULL, NULL, td_backward_input (b, 0));

  b->gx[0] = td_mul_scalar (td_mul (b->gy[0], slope), first_factor);
  return TD_OK;
}

static void
cube (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  out[0] = td__apply1 (&cube_class, NULL, NULL, in[0]);
}

static TdVar *
some_x (TdDtype dtype)
{
  const double x[] = { 0.5, -1, 2, 1.5, -0.25, 3 };

  return td_cast (td_tensor (TD_F64, TD_SHAPE (2, 3), x), dtype);
}

static const TdCheckOpt strict = { .eps = 1e-4, .atol = 1e-6, .rtol = 1e-6 };

static void
check_backward__passes_what_is_right (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = some_x (TD_F64);

      first_factor = second_factor = 1;
      assert_int_equal (td_check_backward_ (cube, NULL, &x, 1, NULL, 1, &strict), TD_OK);
      assert_int_equal (td_check_double_backward_ (cube, NULL, &x, 1, NULL, 1, &strict), TD_OK);
    }
}

static void
check_backward__names_the_worst_element (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = some_x (TD_F64);

      first_factor = 1.001;
      second_factor = 1;
      assert_int_equal (td_check_backward_ (cube, NULL, &x, 1, NULL, 1, &strict),
                        TD_ERR_NUMERIC);
      assert_contains (td_error ()->message, "gradient of input 0 at (");
      assert_contains (td_error ()->message, "backward says");
      td_error_clear ();
    }
}

static void
check_double_backward__finds_what_the_first_order_cannot (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = some_x (TD_F64);

      first_factor = 1;
      second_factor = 1.001;
      assert_int_equal (td_check_backward_ (cube, NULL, &x, 1, NULL, 1, &strict), TD_OK);
      assert_int_equal (td_check_double_backward_ (cube, NULL, &x, 1, NULL, 1, &strict),
                        TD_ERR_NUMERIC);
      td_error_clear ();
    }
}

static void
numerical_grad__is_the_derivative_times_gy (void **state)
{
  TD_SCOPE ("test")
    {
      const double gy[] = { 1, 2, 0, -1, 0.5, 1 };
      TdVar *x = some_x (TD_F64), *g = td_tensor (TD_F64, TD_SHAPE (2, 3), gy), *gx = NULL;
      double got[6], at[6];

      assert_int_equal (td_numerical_grad (cube, NULL, &x, 1, &g, 1, 1e-4, &gx), TD_OK);
      td_read (gx, got, sizeof got);
      td_read (x, at, sizeof at);
      for (int i = 0; i < 6; i++)
        assert_true (fabs (got[i] - 3 * at[i] * at[i] * gy[i]) < 1e-6);
    }
}

/* The defaults are Chainer's, and good enough for float. */
static void
check_backward__works_in_float (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = some_x (TD_F32);
      TdCheckOpt o = td_check_options ();

      first_factor = second_factor = 1;
      o.atol = o.rtol = 2e-3;
      assert_int_equal (td_check_backward_ (cube, NULL, &x, 1, NULL, 1, &o), TD_OK);
    }
}

static void
dropped (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  out[0] = td_mul (in[0], td_rand (td_dtype (in[0]), td_shape (in[0])));
}

static void
check_backward__takes_the_same_random_numbers_each_time (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = some_x (TD_F64);

      assert_int_equal (td_check_backward_ (dropped, NULL, &x, 1, NULL, 1, &strict), TD_OK);
    }
}

static void
nothing (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
}

static void
check_backward__refuses_a_function_without_output (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = some_x (TD_F64);

      assert_int_equal (td_check_backward_ (nothing, NULL, &x, 1, NULL, 1, &strict),
                        TD_ERR_ARG);
      assert_contains (td_error ()->message, "the function gave no output 0");
      td_error_clear ();
    }
}

static void
check_backward__refuses_half_precision (void **state)
{
  TD_SCOPE ("test")
    {
      TdVar *x = some_x (TD_F16);

      assert_int_equal (td_check_backward_ (cube, NULL, &x, 1, NULL, 1, &strict), TD_ERR_DTYPE);
      td_error_clear ();
    }
}

static void
call_absolute (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  out[0] = td_absolute (in[0]);
}

static void
check_backward__says_that_a_point_lies_at_a_kink (void **state)
{
  TdVar *x = td_tensor (TD_F64, TD_SHAPE (3), (const double[]){ 1, 1e-5, -1 });
  TdCheckOpt o = td_check_options ();

  o.eps = 1e-3;
  assert_int_equal (td_check_backward_ (call_absolute, NULL, &x, 1, NULL, 1, &o),
                    TD_ERR_NUMERIC);
  assert_contains (td_error ()->message, "input 0 at (1) lies at a kink: slope ");
  assert_contains (td_error ()->message, "choose another point, or a smaller eps");
  td_error_clear ();
  o.eps = 1e-6; /* no longer across it */
  assert_int_equal (td_check_backward_ (call_absolute, NULL, &x, 1, NULL, 1, &o), TD_OK);
}

static void
absolute_value (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user, (void)n_in, (void)n_out;
  out[0] = td_absolute (in[0]);
}

/* The difference over both sides of |x| at 0 is 0, and so says backward. */
static void
check_backward__finds_a_kink_where_both_sides_agree (void **state)
{
  const TdDtype dtypes[] = { TD_F32, TD_F64 };
  TdCheckOpt o = td_check_options ();

  (void)state;
  for (int i = 0; i < 2; i++)
    TD_SCOPE ("kink")
      {
        TdVar *x = td_zeros (dtypes[i], TD_SHAPE (2));

        assert_int_equal (td_check_backward_at (absolute_value, NULL, &x, 1, NULL, 1, o, NULL),
                          TD_ERR_NUMERIC);
        assert_contains (td_error ()->message, "input 0 at (0) lies at a kink: slope -");
        td_error_clear ();
        x = td_full (dtypes[i], TD_SHAPE (2), 0.5);
        assert_int_equal (td_check_backward_at (absolute_value, NULL, &x, 1, NULL, 1, o, NULL),
                          TD_OK);
      }
}

static void
check_backward__says_that_eps_is_lost_beside_an_element (void **state)
{
  TdCheckOpt o = td_check_options ();
  TdVar *gx;

  (void)state;
  o.eps = 1e-30;
  TD_SCOPE ("lost")
    {
      TdVar *x = td_ones (TD_F64, TD_SHAPE (2));

      assert_int_equal (td_check_backward_at (absolute_value, NULL, &x, 1, NULL, 1, o, NULL),
                        TD_ERR_ARG);
      assert_contains (td_error ()->message, "eps = 1e-30 is too small beside an element 1 of");
      td_error_clear ();
      assert_int_equal (td_numerical_grad (absolute_value, NULL, &x, 1, NULL, 1, o.eps, &gx),
                        TD_ERR_ARG);
      assert_contains (td_error ()->message, "eps = 1e-30 is too small beside an element 1 of");
      td_error_clear ();
    }
}

static void
check_backward__refuses_an_eps_that_is_no_step (void **state)
{
  TdVar *x = td_ones (TD_F64, TD_SHAPE (2)), *gx;
  TdCheckOpt o = td_check_options ();
  const double wrong[] = { 0, -1e-3, NAN, INFINITY };

  for (int i = 0; i < 4; i++)
    {
      o.eps = wrong[i];
      assert_int_equal (td_check_backward_ (call_absolute, NULL, &x, 1, NULL, 1, &o),
                        TD_ERR_ARG);
      assert_contains (td_error ()->message, "eps > 0 expected");
      td_error_clear ();
      assert_int_equal (td_check_double_backward_ (call_absolute, NULL, &x, 1, NULL, 1, &o),
                        TD_ERR_ARG);
      td_error_clear ();
      assert_int_equal (td_numerical_grad (call_absolute, NULL, &x, 1, NULL, 1, wrong[i], &gx),
                        TD_ERR_ARG);
      td_error_clear ();
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (check_backward__passes_what_is_right),
    td_test (check_backward__names_the_worst_element),
    td_test (check_double_backward__finds_what_the_first_order_cannot),
    td_test (numerical_grad__is_the_derivative_times_gy),
    td_test (check_backward__works_in_float),
    td_test (check_backward__takes_the_same_random_numbers_each_time),
    td_test (check_backward__refuses_a_function_without_output),
    td_test (check_backward__refuses_half_precision),
    td_test (check_backward__says_that_a_point_lies_at_a_kink),
    td_test (check_backward__finds_a_kink_where_both_sides_agree),
    td_test (check_backward__says_that_eps_is_lost_beside_an_element),
    td_test (check_backward__refuses_an_eps_that_is_no_step),
  };

  td_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL) != 0 || td_finish () != 0;
}
