/* The logarithm of a softmax in one operation: a batch that is a thousand times too large gives
 * a large loss, and no NaN.
 *
 * The cure of nan.c.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

enum
{
  BATCH = 4,
  CLASSES = 3,
  ODD = 4 /* the iteration whose batch is not scaled */
};

/* The same in one operation, which never leaves the logarithm: it stays finite. */
static TdVar *
cross_entropy (TdVar *y, TdVar *right)
{
  return td_neg (td_mean (td_mul (right, td_log_softmax (y))));
}

int
main (int argc, char **argv)
{
  static const float rights[BATCH][CLASSES]
      = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 1, 0, 0 } };

  td_init (&argc, &argv);

  TdLink *net = td_chain_new ("net");
  TdLink *hidden = td_linear_new (net, "hidden", 8, 16);
  TdLink *output = td_linear_new (net, "output", 16, CLASSES);
  TdOpt *opt = td_sgd_new (net, .lr = 0.1);

  TD_ITERATIONS (i, 8)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (BATCH, 8));
      TdVar *scaled = td_mul_scalar (x, i == ODD ? 1000 : 1);
      TdVar *right = td_tensor (TD_F32, TD_SHAPE (BATCH, CLASSES), rights);
      TdVar *y = td_link (output, td_relu (td_link (hidden, scaled)));
      TdVar *loss = cross_entropy (y, right);

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
