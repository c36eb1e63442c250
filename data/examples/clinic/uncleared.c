/* Gradients that are never cleared: every backward adds to what the iterations before it left,
 * so the steps of the optimizer grow although the errors do not.
 *
 * Cured in uncleared_cured.c.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

int
main (int argc, char **argv)
{
  static const float inputs[4][1] = { { -1 }, { 0 }, { 1 }, { 2 } };
  static const float answers[4][1] = { { -1 }, { 1 }, { 3 }, { 5 } }; /* 2 x + 1 */

  td_init (&argc, &argv);

  TdLink *net = td_chain_new ("net");
  TdLink *line = td_linear_new (net, "line", 1, 1);
  TdOpt *opt = td_sgd_new (net, .lr = 0.1);

  TD_ITERATIONS (i, 30)
    {
      TdVar *x = td_tensor (TD_F32, TD_SHAPE (4, 1), inputs);
      TdVar *t = td_tensor (TD_F32, TD_SHAPE (4, 1), answers);
      TdVar *y = td_link (line, x);
      TdVar *loss = td_mean (td_square (td_sub (y, t)));

      if (i == 0)
        td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
