/* A layer that does not learn: what the encoder makes is unchained before the head reads it, so
 * no gradient ever comes to the encoder.  The loss falls all the same, because the head learns.
 *
 * Cured in frozen_cured.c.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdLink *net = td_chain_new ("net");
  TdLink *encoder = td_linear_new (net, "encoder", 8, 16);
  TdLink *head = td_linear_new (net, "head", 16, 1);
  TdOpt *opt = td_sgd_new (net, .lr = 0.05);

  TD_ITERATIONS (i, 30)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (32, 8));
      TdVar *t = td_sum_axes (td_square (x), (const int[]){ 1 }, 1, true);
      TdVar *code = td_tanh (td_link (encoder, x));

      td_unchain (code);

      TdVar *loss = td_mean (td_square (td_sub (td_link (head, code), t)));

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
