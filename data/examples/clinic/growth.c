/* Memory that grows: the sum of all losses is kept as a variable, and with it the graph of
 * every iteration before.  The argument is a remedy, one of those that are recommended for
 * this:
 *
 *   none           nothing is done
 *   unchain-params td_unchain_backward of every parameter: a parameter has no graph behind it
 *   release        another handle of this iteration's loss is given up: the sum has its own
 *   trim           what the pool keeps for later is given back: that is not what grows
 *   unchain        td_unchain_backward of the sum: its graph goes, the number stays
 *
 * Cured in growth_cured.c, which keeps a number.  SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <string.h>

enum
{
  BATCH = 64,
  WIDTH = 64
};

static void
unchain_params (TdLink *layer)
{
  td_unchain_backward (td_link_param (layer, "W"));
  td_unchain_backward (td_link_param (layer, "b"));
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  const char *remedy = argc > 1 ? argv[1] : "none";
  TdLink *net = td_chain_new ("net");
  TdLink *hidden = td_linear_new (net, "hidden", WIDTH, WIDTH);
  TdLink *output = td_linear_new (net, "output", WIDTH, 1);
  TdOpt *opt = td_sgd_new (net, .lr = 1e-3);
  TdVar *total = NULL;

  TD_ITERATIONS (i, 24)
    {
      TdVar *x = td_randn (TD_F32, TD_SHAPE (BATCH, WIDTH));
      TdVar *y = td_link (output, td_relu (td_link (hidden, x)));
      TdVar *loss = td_mean (td_square (y));

      td_cleargrads (net);
      td_backward (loss, 0);
      td_opt_update (opt);

      TdVar *before = total;

      total = td_retain (before ? td_add (before, loss) : loss);
      if (before)
        td_release (before);
      if (strcmp (remedy, "unchain-params") == 0)
        {
          unchain_params (hidden);
          unchain_params (output);
        }
      if (strcmp (remedy, "release") == 0)
        td_release (td_retain (loss));
      if (strcmp (remedy, "trim") == 0)
        td_pool_trim (NULL);
      if (strcmp (remedy, "unchain") == 0)
        td_unchain_backward (total);
      td_report ("loss", td_item (loss));
    }
  return td_finish ();
}
