/* A parameter, its gradients, and a walk beside a formula.
 *
 * SPDX-License-Identifier: MIT */
#include "optim-rig.h"

#include <math.h>

TdLink *rig_chain;
TdVar *rig_W;

void
rig_start (TdDtype dtype)
{
  td_init (NULL, NULL);
  rig_chain = td_chain_new ("m");
  rig_W = td_link_add_param (rig_chain, "W", TD_SHAPE (RIG_N), dtype, td_init_zero ());
}

TdOpt *
rig_opt_new (int kind, TdLink *link)
{
  switch (kind)
    {
    case 0:
      return td_sgd_new (link);
    case 1:
      return td_momentum_sgd_new (link);
    case 2:
      return td_corrected_momentum_sgd_new (link);
    case 3:
      return td_nesterov_ag_new (link);
    case 4:
      return td_adagrad_new (link);
    case 5:
      return td_adadelta_new (link);
    case 6:
      return td_rmsprop_new (link);
    case 7:
      return td_rmsprop_graves_new (link);
    case 8:
      return td_smorms3_new (link);
    default:
      return td_adam_new (link);
    }
}

static TdVar *
as_f64 (TdVar *v)
{
  return td_dtype (v) == TD_F64 ? v : td_cast (v, TD_F64);
}

void
rig_put (TdVar *v, const double *values)
{
  TD_SCOPE ("put")
    {
      TdVar *wide = td_tensor (TD_F64, TD_SHAPE (RIG_N), values);
      TdVar *fitting = td_dtype (v) == TD_F64 ? wide : td_cast (wide, td_dtype (v));
      char host[sizeof (double[RIG_N])];
      size_t bytes = RIG_N * td_dtype_bytes (td_dtype (v));

      assert_int_equal (td_read (fitting, host, bytes), TD_OK);
      assert_int_equal (td_write (v, host, bytes), TD_OK);
    }
}

void
rig_get (TdVar *v, double *values)
{
  TD_SCOPE ("get")
    TD_NO_BACKPROP
      assert_int_equal (td_read (as_f64 (v), values, sizeof (double[RIG_N])), TD_OK);
}

void
rig_gradient (int t, double *g)
{
  for (int i = 0; i < RIG_N; i++)
    g[i] = (double)(float)(sin (0.7 * t + i) + 0.1 * i - 0.2);
}

void
rig_give_gradient (TdVar *v, const double *g)
{
  TD_SCOPE ("gradient")
    {
      TdVar *gradient = td_zeros (td_dtype (v), TD_SHAPE (RIG_N));

      rig_put (gradient, g);
      assert_int_equal (td_set_grad (v, gradient), TD_OK);
    }
}

void
rig_follow (TdOpt *opt, RigRule rule, RigState first, double tolerance)
{
  RigState s = first;
  double g[RIG_N], p[RIG_N];

  for (int i = 0; i < RIG_N; i++)
    s.p[i] = (double)(float)(0.3 * i - 1);
  rig_put (rig_W, s.p);
  for (int t = 1; t <= RIG_STEPS; t++)
    {
      rig_gradient (t, g);
      rig_give_gradient (rig_W, g);
      assert_int_equal (td_opt_update (opt), TD_OK);
      rule (&s, g, t);
      rig_get (rig_W, p);
      for (int i = 0; i < RIG_N; i++)
        if (!(fabs (p[i] - s.p[i]) <= tolerance * fmax (1, fabs (s.p[i]))))
          fail_msg ("step %d, element %d: %.17g, the formula gives %.17g", t, i, p[i], s.p[i]);
    }
  assert_int_equal (td_opt_count (opt), RIG_STEPS);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
}
