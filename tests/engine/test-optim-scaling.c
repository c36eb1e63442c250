/* Loss scaling without Chainer's traps H22 to H24, dynamic scales, and half precision
 * parameters with float32 copies.
 *
 * SPDX-License-Identifier: MIT */
#include "optim-rig.h"

#include <math.h>
#include <string.h>

static TdVar *
loss_of (double factor)
{
  return td_sum (td_mul_scalar (rig_W, factor));
}

/* One step of SGD, lr 1, on sum (factor W): what is taken off W's first element. */
static double
step (TdOpt *opt, double factor)
{
  double before[RIG_N], after[RIG_N];

  rig_get (rig_W, before);
  TD_SCOPE ("step")
    {
      TdVar *loss = loss_of (factor);

      td_cleargrads (rig_chain);
      assert_int_equal (td_opt_backward (opt, loss, 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  rig_get (rig_W, after);
  return before[0] - after[0];
}

/* H22: hooks and thresholds see gradients without the scale.  Chainer clips scaled ones. */
static void
scaling__is_off_before_any_hook_h22 (void **state)
{
  double plain, scaled;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_add_hook (opt, td_gradient_clipping_new (10));
  plain = step (opt, 2);
  assert_int_equal (td_opt_loss_scaling (opt, .scale = 1024), TD_OK);
  scaled = step (opt, 2);
  assert_true (plain == 2 && scaled == 2); /* 2 sqrt (7) is below 10: nothing is clipped */
  td_opt_loss_scaling (opt, .scale = 65536);
  scaled = step (opt, 100); /* and here all of it is */
  assert_true (fabs (scaled - 10 / sqrt (RIG_N)) < 1e-5);
  assert_int_equal (td_finish (), 0);
}

/* H23: a gradient that the user gave the loss is scaled as well. */
static void
scaling__includes_a_gradient_of_the_loss_h23 (void **state)
{
  double p[RIG_N];
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_loss_scaling (opt, .scale = 1024);
  TD_SCOPE ("step")
    {
      TdVar *loss = loss_of (1);

      td_set_grad (loss, td_full (TD_F32, TD_SCALAR, 3));
      assert_int_equal (td_opt_backward (opt, loss, 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  rig_get (rig_W, p);
  assert_true (p[0] == -3);
  assert_int_equal (td_finish (), 0);
}

static void
forgotten (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user, (void)n_in, (void)n_out;
  out[0] = td_sum (td_mul (td_dropout (td_mul (in[0], rig_W), 0.5), rig_W));
}

/* H24: what td_forget computes again in backward is scaled like the rest. */
static void
scaling__reaches_what_is_computed_again_h24 (void **state)
{
  double after[2][RIG_N];

  (void)state;
  for (int scaled = 0; scaled < 2; scaled++)
    {
      TdOpt *opt;

      rig_start (TD_F32);
      rig_put (rig_W, (double[RIG_N]){ 1, 2, 3, 4, 5, 6, 7 });
      opt = td_sgd_new (rig_chain, .lr = 0.01);
      td_set_seed (3);
      if (scaled)
        td_opt_loss_scaling (opt, .scale = 1024);
      TD_SCOPE ("step")
        {
          TdVar *x = td_variable (td_ones (TD_F32, TD_SHAPE (RIG_N)), "x"), *y;

          assert_int_equal (td_forget (forgotten, NULL, &x, 1, &y, 1), TD_OK);
          assert_int_equal (td_opt_backward (opt, y, 0), TD_OK);
          assert_int_equal (td_opt_update (opt), TD_OK);
        }
      rig_get (rig_W, after[scaled]);
      assert_true (td_error () == NULL);
      assert_int_equal (td_finish (), 0);
    }
  assert_memory_equal (after[0], after[1], sizeof after[0]);
  assert_true (after[0][0] != 1 || after[0][1] != 2 || after[0][2] != 3);
}

/* A power of two changes no bit, whatever the optimizer. */
static void
scaling__by_a_power_of_two_changes_no_bit (void **state)
{
  float after[2][RIG_N];

  (void)state;
  for (int scaled = 0; scaled < 2; scaled++)
    {
      TdOpt *opt;

      rig_start (TD_F32);
      rig_put (rig_W, (double[RIG_N]){ 1, -2, 0.3, 4, -5, 0.6, 7 });
      opt = td_adam_new (rig_chain, .lr = 0.1);
      td_opt_add_hook (opt, td_weight_decay_new (0.01));
      td_opt_add_hook (opt, td_gradient_clipping_new (3));
      if (scaled)
        td_opt_loss_scaling (opt, .scale = 4096);
      TD_ITERATIONS (i, 20)
        {
          TdVar *loss = td_sum (td_mul (td_square (rig_W), rig_W));

          td_cleargrads (rig_chain);
          td_opt_backward (opt, loss, 0);
          td_opt_update (opt);
        }
      assert_int_equal (td_read (rig_W, after[scaled], sizeof after[0]), TD_OK);
      assert_int_equal (td_finish (), 0);
    }
  assert_memory_equal (after[0], after[1], sizeof after[0]);
}

/* Gradients of a plain backward were never multiplied, and must not be divided. */
static void
scaling__leaves_gradients_of_a_plain_backward (void **state)
{
  double p[RIG_N];
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_loss_scaling (opt, .scale = 1024);
  TD_SCOPE ("plain")
    {
      td_opt_backward (opt, loss_of (5), 0); /* and dropped */
      td_cleargrads (rig_chain);
      td_backward (loss_of (2), 0);
      td_opt_update (opt);
    }
  rig_get (rig_W, p);
  assert_true (p[0] == -2);
  TD_SCOPE ("twice")
    {
      td_cleargrads (rig_chain);
      td_opt_backward (opt, loss_of (2), 0);
      td_opt_backward (opt, loss_of (1), 0); /* accumulates */
      td_opt_update (opt);
      td_opt_update (opt); /* the gradient of 3 is still there, and divided already */
    }
  rig_get (rig_W, p);
  assert_true (p[0] == -2 - 3 - 3);
  assert_int_equal (td_finish (), 0);
}

/* What W's first element loses by an update of lr 1. */
static double
updated_by (TdOpt *opt)
{
  double before[RIG_N], after[RIG_N];

  rig_get (rig_W, before);
  assert_int_equal (td_opt_update (opt), TD_OK);
  rig_get (rig_W, after);
  return before[0] - after[0];
}

/* A gradient that is there, of a plain backward or from before an update, counts as it is. */
static void
scaling__adds_to_gradients_that_are_not_scaled (void **state)
{
  const TdDtype dtypes[] = { TD_F32, TD_F16 };

  (void)state;
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    {
      TdOpt *opt;

      rig_start (dtypes[d]);
      opt = td_sgd_new (rig_chain, .lr = 1);
      td_opt_loss_scaling (opt, .scale = 64);
      TD_SCOPE ("plain, then scaled")
        {
          td_cleargrads (rig_chain);
          td_backward (loss_of (2), 0);
          assert_int_equal (td_opt_backward (opt, loss_of (1), 0), TD_OK);
          assert_true (updated_by (opt) == 3);
        }
      TD_SCOPE ("kept, and added to")
        {
          assert_int_equal (td_opt_backward (opt, loss_of (4), 0), TD_OK);
          assert_true (updated_by (opt) == 7);
        }
      TD_SCOPE ("zeros")
        {
          td_set_grad (rig_W, td_zeros (dtypes[d], td_shape (rig_W)));
          assert_int_equal (td_opt_backward (opt, loss_of (5), 0), TD_OK);
          assert_true (updated_by (opt) == 5);
        }
      assert_int_equal (td_finish (), 0);
    }
}

/* Whether the sum was made in place or not, it would be neither scaled nor plain. */
static void
scaling__a_plain_backward_on_top_is_an_error (void **state)
{
  (void)state;
  for (int held = 0; held < 2; held++)
    {
      TdOpt *opt;

      rig_start (TD_F32);
      opt = td_sgd_new (rig_chain, .lr = 1);
      td_opt_loss_scaling (opt, .scale = 64);
      TD_SCOPE ("mixed")
        {
          TdVar *g = NULL;
          double before[RIG_N], after[RIG_N];

          assert_int_equal (td_opt_backward (opt, loss_of (2), 0), TD_OK);
          if (held)
            g = td_retain (td_grad (rig_W)); /* which keeps its numbers: nothing in place */
          rig_get (td_grad (rig_W), before);
          assert_int_equal (td_backward (loss_of (1), 0), TD_ERR_STATE);
          assert_contains (td_error ()->message, "the gradient of W is times a loss scale");
          td_error_clear ();
          rig_get (td_grad (rig_W), after);
          assert_memory_equal (before, after, sizeof before); /* nothing was added yet */
          td_cleargrads (rig_chain);
          assert_int_equal (td_backward (loss_of (1), 0), TD_OK);
          assert_true (updated_by (opt) == 1);
          if (held)
            td_release (g);
        }
      assert_int_equal (td_finish (), 0);
    }
}

/* A gradient put by hand in the place of one that is times a scale, or computed from one. */
static void
doubled (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_mul_scalar (in[0], 2);
}

/* Where a gradient goes on that a run inside the backward has left at a leaf. */
typedef enum
{
  INTO_FORGET,
  INTO_STATIC,
  N_WAYS
} Way;

static void
scaling__goes_through_runs_inside_the_backward (void **state)
{
  double p[RIG_N];
  TdStatic *fn;
  TdOpt *opt;

  (void)state;
  for (Way way = 0; way < N_WAYS; way++)
    for (int scale = 1; scale <= 8; scale *= 8)
      {
        rig_start (TD_F32);
        opt = td_sgd_new (rig_chain, .lr = 1);
        td_opt_loss_scaling (opt, .scale = scale);
        fn = td_static_new (doubled, NULL);
        for (int step = 1; step <= 10; step++) /* it verifies itself at some */
          TD_SCOPE ("step")
            {
              TdVar *x = td_mul_scalar (rig_W, 3), *y = NULL, *z = NULL;

              if (way == INTO_FORGET)
                td_forget (doubled, NULL, &x, 1, &y, 1);
              else
                td_static_call (fn, &x, 1, &y, 1);
              td_forget (doubled, NULL, &y, 1, &z, 1);
              td_cleargrads (rig_chain);
              assert_int_equal (td_opt_backward (opt, td_sum (z), 0), TD_OK);
              assert_int_equal (td_opt_update (opt), TD_OK);
              rig_get (rig_W, p);
              assert_true (p[0] == -12 * step);
            }
        td_static_free (fn);
        assert_int_equal (td_finish (), 0);
      }
}

static void
scaling__of_a_gradient_set_by_hand_is_an_error (void **state)
{
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_loss_scaling (opt, .scale = 64);
  TD_SCOPE ("by hand")
    {
      TdVar *g, *half;

      assert_int_equal (td_opt_backward (opt, loss_of (2), 0), TD_OK);
      g = td_grad (rig_W);
      half = td_mul_scalar (g, 0.5);
      assert_int_equal (td_set_grad (rig_W, half), TD_ERR_STATE);
      assert_contains (td_error ()->message, "the gradient for W is computed from one that is");
      assert_contains (td_error ()->message, "in a hook of the optimizer");
      td_error_clear ();
      assert_int_equal (td_set_grad (rig_W, td_zeros_like (rig_W)), TD_ERR_STATE);
      assert_contains (td_error ()->message, "or clear it before");
      td_error_clear ();
      assert_int_equal (td_backward (td_sum (half), 0), TD_ERR_STATE);
      assert_contains (td_error ()->message, "the root is computed from a gradient");
      td_error_clear ();
      assert_int_equal (td_set_grad (rig_W, g), TD_OK); /* the same */
      assert_true (updated_by (opt) == 2);
      assert_int_equal (td_set_grad (rig_W, td_ones (TD_F32, td_shape (rig_W))), TD_OK);
      assert_true (updated_by (opt) == 1);
      assert_int_equal (td_opt_backward (opt, loss_of (2), 0), TD_OK);
      td_cleargrads (rig_chain);
      assert_int_equal (td_set_grad (rig_W, half), TD_ERR_STATE);
      td_error_clear ();
      assert_int_equal (td_set_grad (rig_W, td_ones (TD_F32, td_shape (rig_W))), TD_OK);
      assert_true (updated_by (opt) == 1);
    }
  assert_int_equal (td_finish (), 0);
}

/* A half precision parameter updated through its float32 copy: only the copy was divided. */
static void
scaling__of_a_copy_is_over_with_its_update (void **state)
{
  TdOpt *opt;

  (void)state;
  rig_start (TD_F16);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_use_fp32_update (opt, true);
  td_opt_loss_scaling (opt, .scale = 64);
  TD_SCOPE ("kept")
    {
      assert_int_equal (td_opt_backward (opt, loss_of (3), 0), TD_OK);
      assert_true (updated_by (opt) == 3);
      assert_int_equal (td_opt_backward (opt, loss_of (3), 0), TD_ERR_STATE);
      assert_contains (td_error ()->message, "of an update that is over: clear it before");
      td_error_clear ();
      assert_int_equal (td_opt_update (opt), TD_ERR_STATE);
      td_error_clear ();
      td_cleargrads (rig_chain);
      assert_int_equal (td_opt_backward (opt, loss_of (2), 0), TD_OK);
      assert_true (updated_by (opt) == 2);
    }
  assert_int_equal (td_finish (), 0);
}

/* One parameter, two optimizers: who has not scaled it cannot divide it. */
static void
scaling__of_another_optimizer_is_an_error (void **state)
{
  TdOpt *one, *two;

  (void)state;
  rig_start (TD_F32);
  one = td_sgd_new (rig_chain, .lr = 1);
  two = td_sgd_new (rig_chain, .lr = 1);
  td_opt_loss_scaling (one, .scale = 128);
  for (int scaled = 0; scaled < 2; scaled++)
    TD_SCOPE ("both")
      {
        if (scaled)
          td_opt_loss_scaling (two, .scale = 64);
        td_cleargrads (rig_chain);
        assert_int_equal (td_opt_backward (one, loss_of (3), 0), TD_OK);
        assert_int_equal (td_opt_update (two), TD_ERR_STATE);
        assert_contains (td_error ()->message, "is times the loss scale of another optimizer");
        td_error_clear ();
        assert_int_equal (td_opt_backward (two, loss_of (3), 0), TD_ERR_STATE);
        td_error_clear ();
        assert_true (updated_by (one) == 3);
        assert_int_equal (td_opt_backward (two, loss_of (2), 0), TD_OK); /* which kept 3 */
        assert_true (updated_by (two) == 5);
      }
  assert_int_equal (td_finish (), 0);
}

/* A replica's gradients keep what they are times. */
static void
scaling__goes_with_gradients_that_are_added_to_another_link (void **state)
{
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain, .lr = 1);
  td_opt_loss_scaling (opt, .scale = 128);
  TD_SCOPE ("replica")
    {
      TdLink *replica = td_link_copy_as (rig_chain, TD_COPY_COPY);
      TdVar *W = td_link_param (replica, "W");

      assert_int_equal (td_opt_backward (opt, loss_of (2), 0), TD_OK);
      assert_int_equal (td_opt_backward (opt, td_sum (td_mul_scalar (W, 3)), 0), TD_OK);
      assert_int_equal (td_link_add_grads (rig_chain, replica), TD_OK);
      assert_true (updated_by (opt) == 5);
      assert_int_equal (td_link_add_grads (rig_chain, replica), TD_ERR_STATE);
      assert_contains (td_error ()->message, "one of two gradients of W is times a loss scale");
      td_error_clear ();
      td_link_free (replica);
    }
  assert_int_equal (td_finish (), 0);
}

static void
scaling__refuses_what_makes_no_scale (void **state)
{
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain);
  assert_int_equal (td_opt_loss_scaling (opt, .scale = -1), TD_ERR_ARG);
  td_error_clear ();
  assert_int_equal (td_opt_loss_scaling (opt, .interval = 0), TD_ERR_ARG);
  assert_contains (td_error ()->message, "an interval of 1 or more and a scale above 0");
  td_error_clear ();
  td_opt_loss_scaling (opt, .scale = 8);
  TD_SCOPE ("wide")
    {
      assert_int_equal (td_opt_backward (opt, td_mul_scalar (rig_W, 1), 0), TD_ERR_ARG);
      assert_contains (td_error ()->message, "a root of one element expected");
      td_error_clear ();
      assert_int_equal (td_opt_loss_scaling (opt, .scale = 1e300), TD_OK);
      assert_int_equal (td_opt_backward (opt, loss_of (1), 0), TD_ERR_ARG);
      assert_contains (td_error ()->message,
                       "a loss scale of 1e+300 is no finite number above 0 in f32");
      td_error_clear ();
      td_opt_loss_scaling (opt, .scale = 1e-300);
      assert_int_equal (td_opt_backward (opt, td_cast (loss_of (1), TD_F64), 0), TD_ERR_ARG);
      assert_contains (td_error ()->message, "in f32, in which the gradient of W is divided");
      assert_null (td_grad (rig_W));
    }
  td_error_clear ();
  assert_int_equal (td_finish (), 0);
}

/* The dynamic scale doubles until the first gradient that is not finite, then halves at each
 * and grows by 2^(1 / interval) at the others, within 1 and 65504. */
static void
dynamic_scale__follows_the_gradients (void **state)
{
  double expected = 1;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain, .lr = 1);
  assert_int_equal (td_opt_loss_scaling (opt, .interval = 4), TD_OK);
  for (int i = 0; i < 20; i++, expected = fmin (65504, 2 * expected))
    {
      assert_true (td_opt_loss_scale (opt) == expected);
      assert_true (step (opt, 1) == 1);
    }
  assert_true (td_opt_loss_scale (opt) == 65504);
  for (int i = 0; i < 20; i++, expected = fmax (1, expected / 2))
    {
      assert_true (td_opt_loss_scale (opt) == expected);
      assert_true (step (opt, i % 2 == 0 ? (double)INFINITY : (double)NAN) == 0);
    }
  assert_int_equal (td_opt_skipped (opt), 20);
  assert_int_equal (td_opt_count (opt), 40);
  assert_int_equal (td_opt_count_of (opt, "W"), 20);
  for (int i = 0; i < 4; i++)
    {
      assert_true (fabs (td_opt_loss_scale (opt) - pow (2, i / 4.0)) < 1e-12);
      assert_true (fabs (step (opt, 1) - 1) < 1e-6);
    }
  assert_true (fabs (td_opt_loss_scale (opt) - 2) < 1e-12);
  assert_int_equal (td_finish (), 0);
}

/* --- half precision --- */

/* 300 steps of 2^-12 from 1: float16 cannot take one of them, bfloat16 neither. */
static void
crawl (TdDtype dtype, bool fp32, double expected)
{
  double p[RIG_N], ones[RIG_N] = { 1, 1, 1, 1, 1, 1, 1 }, down[RIG_N];
  TdOpt *opt;

  for (int i = 0; i < RIG_N; i++)
    down[i] = -1;
  rig_start (dtype);
  rig_put (rig_W, ones);
  opt = td_sgd_new (rig_chain, .lr = 0x1p-12);
  td_opt_use_fp32_update (opt, fp32);
  for (int i = 0; i < 300; i++)
    {
      rig_give_gradient (rig_W, down);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  rig_get (rig_W, p);
  assert_true (p[0] == expected);
  assert_int_equal (td_finish (), 0);
}

static void
fp32_update__keeps_what_half_precision_would_lose (void **state)
{
  (void)state;
  crawl (TD_F16, false, 1);
  crawl (TD_BF16, false, 1);
  crawl (TD_F16, true, 1 + 300 * 0x1p-12); /* 1.0732: to nearest 2^-10 */
  crawl (TD_BF16, true, 1.0703125);        /* to nearest 2^-7 */
}

/* Scaling brings gradients back that float16 has no number for. */
static void
scaling__saves_gradients_that_float16_would_lose (void **state)
{
  double with;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F16);
  opt = td_sgd_new (rig_chain, .lr = 0x1p20);
  td_opt_use_fp32_update (opt, true);
  assert_true (step (opt, 0x1p-14 / 4096) == 0); /* 2^-26 */
  td_opt_loss_scaling (opt, .scale = 4096);
  TD_SCOPE ("small")
    {
      TdVar *loss = td_sum (td_mul_scalar (td_mul_scalar (rig_W, 0x1p-13), 0x1p-13));
      double p[RIG_N];

      td_cleargrads (rig_chain);
      td_opt_backward (opt, loss, 0);
      td_opt_update (opt);
      rig_get (rig_W, p);
      with = -p[0];
    }
  assert_true (with == 0x1p-6);
  assert_int_equal (td_finish (), 0);
}

/* A copy that is not told of a new parameter would undo it: Chainer's does. */
static void
fp32_update__follows_a_parameter_that_is_written (void **state)
{
  double p[RIG_N], ones[RIG_N] = { 1, 1, 1, 1, 1, 1, 1 }, tens[RIG_N] = { 10, 10 };
  TdOpt *opt;

  (void)state;
  rig_start (TD_F16);
  opt = td_sgd_new (rig_chain, .lr = 0.5);
  td_opt_use_fp32_update (opt, true);
  rig_give_gradient (rig_W, ones);
  td_opt_update (opt);
  rig_put (rig_W, tens);
  rig_give_gradient (rig_W, ones);
  td_opt_update (opt);
  rig_get (rig_W, p);
  assert_true (p[0] == 9.5 && p[1] == 9.5 && p[2] == -0.5);
  assert_int_equal (td_finish (), 0);
}

/* Twenty updates of a parameter of this dtype by the same gradients, which bf16 holds. */
static void
walk (int kind, TdDtype dtype, double *numbers)
{
  TdOpt *opt;

  rig_start (dtype);
  opt = rig_opt_new (kind, rig_chain);
  td_opt_use_fp32_update (opt, true);
  for (int t = 1; t <= 20; t++)
    TD_SCOPE ("step")
      {
        double g[RIG_N];
        TdVar *rounded;

        rig_gradient (t, g);
        rounded = td_cast (td_tensor (TD_F64, TD_SHAPE (RIG_N), g), TD_BF16);
        td_set_grad (rig_W, td_cast (rounded, dtype));
        assert_int_equal (td_opt_update (opt), TD_OK);
      }
  if (dtype == TD_F32)
    rig_get (rig_W, numbers);
  else
    {
      TdVar *master = td_opt_state (opt, "W", "fp32_param");
      double rounded[RIG_N], param[RIG_N];

      assert_int_equal (td_dtype (master), TD_F32);
      rig_get (master, numbers);
      rig_get (rig_W, param);
      TD_SCOPE ("rounded")
        rig_get (td_cast (master, dtype), rounded);
      for (int i = 0; i < RIG_N; i++)
        assert_true (param[i] == rounded[i]);
    }
  td_opt_free (opt);
  assert_int_equal (td_finish (), 0);
}

/* The copy goes the way that a float parameter would go, to the last bit, by every rule. */
static void
fp32_update__is_float32s_update_by_every_rule (void **state)
{
  (void)state;
  for (int kind = 0; kind < RIG_OPTS; kind++)
    {
      double wide[RIG_N], half[RIG_N];

      walk (kind, TD_F32, wide);
      walk (kind, TD_BF16, half);
      for (int i = 0; i < RIG_N; i++)
        if (wide[i] != half[i])
          fail_msg ("kind %d, element %d: %.9g, in float32 %.9g", kind, i, half[i], wide[i]);
    }
}

/* Of several gradients that are not finite the one that backward made first is named. */
static void
overflow__names_the_first_parameter (void **state)
{
  TdLink *net;
  TdOpt *opt;

  (void)state;
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  net = td_chain_new ("net");
  td_link_add_param (net, "early", TD_SHAPE (3));
  td_link_add_param (net, "late", TD_SHAPE (3));
  td_link_add_param (net, "well", TD_SHAPE (3));
  opt = td_sgd_new (net, .lr = 1);
  td_opt_loss_scaling (opt, .interval = 10);
  for (int k = 0; k < 3; k++)
    TD_SCOPE ("step")
      {
        TdVar *h = td_mul (td_link_param (net, "early"), td_full (TD_F32, TD_SHAPE (3), 2));
        TdVar *loss;

        h = td_mul (td_add_scalar (h, 1), td_add_scalar (td_link_param (net, "late"), 1));
        loss = td_add (td_mul_scalar (td_sum (h), k == 1 ? INFINITY : 1),
                       td_sum (td_link_param (net, "well")));
        td_cleargrads (net);
        assert_int_equal (td_opt_backward (opt, loss, 0), TD_OK);
        assert_int_equal (td_opt_update (opt), TD_OK);
        if (k == 0)
          assert_null (td_opt_first_overflow (opt));
        else
          assert_string_equal (td_opt_first_overflow (opt), "late");
      }
  assert_int_equal (td_opt_skipped (opt), 1);
  td_opt_free (opt);
  td_link_free (net);
  assert_int_equal (td_finish (), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (scaling__is_off_before_any_hook_h22),
    td_test (scaling__includes_a_gradient_of_the_loss_h23),
    td_test (scaling__reaches_what_is_computed_again_h24),
    td_test (scaling__by_a_power_of_two_changes_no_bit),
    td_test (scaling__leaves_gradients_of_a_plain_backward),
    td_test (scaling__adds_to_gradients_that_are_not_scaled),
    td_test (scaling__a_plain_backward_on_top_is_an_error),
    td_test (scaling__goes_through_runs_inside_the_backward),
    td_test (scaling__of_a_gradient_set_by_hand_is_an_error),
    td_test (scaling__of_a_copy_is_over_with_its_update),
    td_test (scaling__of_another_optimizer_is_an_error),
    td_test (scaling__goes_with_gradients_that_are_added_to_another_link),
    td_test (scaling__refuses_what_makes_no_scale),
    td_test (dynamic_scale__follows_the_gradients),
    td_test (fp32_update__keeps_what_half_precision_would_lose),
    td_test (scaling__saves_gradients_that_float16_would_lose),
    td_test (fp32_update__follows_a_parameter_that_is_written),
    td_test (fp32_update__is_float32s_update_by_every_rule),
    td_test (overflow__names_the_first_parameter),
  };

  return cmocka_run_group_tests_name ("optim-scaling", tests, NULL, NULL);
}
