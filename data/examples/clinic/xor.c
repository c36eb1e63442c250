/* Exclusive or with two layers and nothing between them: two layers in a row are one layer, and
 * one layer cannot draw what is not a straight line.  The loss stops where it guesses.
 *
 * Cured in xor_cured.c.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

int
main (int argc, char **argv)
{
  static const float inputs[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
  static const float answers[4] = { 0, 1, 1, 0 };

  td_init (&argc, &argv);

  TdLink *net = td_chain_new ("net");
  TdLink *hidden = td_linear_new (net, "hidden", 2, 8);
  TdLink *output = td_linear_new (net, "output", 8, 1);
  TdOpt *opt = td_adam_new (net, .lr = 0.05);

  TD_ITERATIONS (i, 60)
    {
      TdVar *x = td_tensor (TD_F32, TD_SHAPE (4, 2), inputs);
      TdVar *t = td_tensor (TD_F32, TD_SHAPE (4, 1), answers);
      TdVar *h = td_link (hidden, x);
      TdVar *y = td_link (output, h);
      TdVar *loss = td_mean_squared_error (y, t);

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
