/* A program whose parameters fail to learn in all the ways that are found by their name:
 * net/used learns; net/unused is never called; net/cut is called, and its output unchained;
 * net/key is added before a softmax, which takes it out again; free has no optimizer; other has
 * one of its own, which updates in every third iteration only.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "tapedeck.h"

static TdOpt *
make (TdLink *net, int kind)
{
  return kind == 0   ? td_sgd_new (net, .lr = 1e-3)
         : kind == 1 ? td_momentum_sgd_new (net, .lr = 1e-3)
                     : td_adam_new (net);
}

static TdOptHook *
hook (int kind)
{
  switch (kind)
    {
    case 0:
      return td_gradient_clipping_new (0.01);
    case 1:
      return td_gradient_hard_clipping_new (-0.1, 0.1);
    case 2:
      return td_weight_decay_new (1e-2);
    case 3:
      return td_gradient_noise_new (0.1);
    default:
      return td_lasso_new (1e-2);
    }
}

/* Bits of the fourth argument. */
enum
{
  HALVES = 1,      /* parameters of 16 bits, updated by float32 copies */
  SCALED = 2,      /* the loss, dynamically; `other` has no turn then */
  ACCUMULATED = 4, /* of three iterations one clears, and one updates */
  DIVERGES = 8,    /* after its first update nothing is finite */
};

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  int hooks = atoi (argv[1]), kind = atoi (argv[2]), clears = atoi (argv[3]),
      how = atoi (argv[4]), every = how & ACCUMULATED ? 3 : 1;
  TdDtype dtype = how & HALVES ? TD_F16 : TD_F32;

  td_config_set (dtype, dtype);
  TdLink *net = td_chain_new ("net"), *other = td_chain_new ("other"),
         *rest = td_chain_new ("free");
  TdLink *used = td_linear_new (net, "used", 8, 8), *cut = td_linear_new (net, "cut", 8, 8),
         *more = td_linear_new (other, "l", 8, 8), *loose = td_linear_new (rest, "l", 8, 8);
  TdVar *key = td_link_add_param (net, "key", TD_SHAPE (8));
  td_linear_new (net, "unused", 8, 8);
  td_link_add_persistent (net, "mean", td_zeros (dtype, TD_SHAPE (8)));
  td_link_copy (used, TD_COPY_SHARE); /* which learns with it */
  TdOpt *opt = make (net, kind), *second = make (other, (kind + 1) % 3);
  if (how & HALVES)
    {
      td_opt_use_fp32_update (opt, true);
      td_opt_use_fp32_update (second, true);
    }
  if (how & DIVERGES)
    td_opt_set_lr (opt, 1e30);
  if (how & SCALED)
    td_opt_loss_scaling (opt, .interval = 2);
  for (int i = 0; i < 5; i++)
    if (hooks >> i & 1)
      td_opt_add_hook (opt, hook (i));
  TD_ITERATIONS (i, 9)
    {
      TdVar *x = td_cast (td_randn (TD_F32, TD_SHAPE (16, 8)), dtype), *y = td_link (used, x);
      TdVar *c = td_link (cut, x);
      td_unchain (c);
      y = td_link (loose, td_link (more, td_add (y, c)));
      TdVar *s = td_softmax (td_add (y, key), .axis = 0);
      TdVar *aim = td_cast (td_randn (TD_F32, TD_SHAPE (16, 8)), dtype);
      TdVar *loss = td_mean (td_square (td_sub (s, aim)));
      loss = td_add (loss, td_mul_scalar (td_mean (td_square (y)), 0.01));
      if (clears ? i % every == 0 : i == 0)
        {
          td_cleargrads (net);
          td_cleargrads (other);
          td_cleargrads (rest);
        }
      if (how & SCALED)
        td_opt_backward (opt, loss, 0);
      else
        td_backward (loss, 0);
      if (i % every == every - 1)
        td_opt_update (opt);
      if (i % 3 == 2 && !(how & SCALED))
        td_opt_update (second);
    }
  return td_finish ();
}
