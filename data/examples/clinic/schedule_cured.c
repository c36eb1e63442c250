/* The counter lies outside of what is guarded: the code runs once, its schedule ever after.
 *
 * The cure of schedule.c.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stddef.h>

typedef struct
{
  TdLink *chain, *l1, *l2;
  int n_calls; /* counted by the code itself */
} Net;

static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_tanh (td_add_scalar (td_link (net->l1, in[0]), 0.5));

  out[0] = td_link (net->l2, td_relu (td_mul_scalar (h, 2)));
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  Net net = { .chain = td_chain_new ("net") };
  net.l1 = td_linear_new (net.chain, "l1", 32, 64);
  net.l2 = td_linear_new (net.chain, "l2", 64, 1);

  TdStatic *function
      = td_static_new (forward, &net, .name = "net", .self_bytes = offsetof (Net, n_calls));
  TdOpt *opt = td_sgd_new (net.chain, .lr = 1e-3);

  TD_ITERATIONS (i, 16)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (16, 32));
      TdVar *loss = td_mean (td_square (td_static_call1 (function, x)));

      net.n_calls++;
      td_cleargrads (net.chain);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
