/* A branch that changes: C's own if looks at the batch, and the graph is what ran.
 *
 * Cured in branch_cured.c.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

static TdVar *
activation (TdVar *h, double mean)
{
  if (mean > 0)
    return td_relu (h);
  return td_sigmoid (h);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdLink *net = td_chain_new ("net");
  TdLink *hidden = td_linear_new (net, "hidden", 8, 16);
  TdLink *output = td_linear_new (net, "output", 16, 1);
  TdOpt *opt = td_sgd_new (net, .lr = 0.01);

  TD_ITERATIONS (i, 12)
    {
      TdVar *shift = td_full (TD_F32, TD_SHAPE (16, 8), i < 7 ? 1 : -1);
      TdVar *x = td_add (td_randn (TD_F32, TD_SHAPE (16, 8)), shift);
      TdVar *h = activation (td_link (hidden, x), td_mean_of (x));
      TdVar *loss = td_mean (td_square (td_link (output, h)));

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
