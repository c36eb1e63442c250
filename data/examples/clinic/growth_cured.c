/* The sum of all losses as a number: no graph is kept, and memory stays level.
 *
 * The cure of growth.c.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

enum
{
  BATCH = 64,
  WIDTH = 64
};

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdLink *net = td_chain_new ("net");
  TdLink *hidden = td_linear_new (net, "hidden", WIDTH, WIDTH);
  TdLink *output = td_linear_new (net, "output", WIDTH, 1);
  TdOpt *opt = td_sgd_new (net, .lr = 1e-3);
  double total = 0;

  TD_ITERATIONS (i, 24)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (BATCH, WIDTH));
      TdVar *y = td_link (output, td_relu (td_link (hidden, x)));
      TdVar *loss = td_mean (td_square (y));

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      total += td_item (loss);
      td_report ("loss", td_item (loss));
      td_report ("total", total);
    }
  return td_finish ();
}
