/* One of each: an iteration, an operation, a parameter, a gradient, an array that outlives its
 * iteration. With "two", a second iteration; with "nothing", none.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <string.h>

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  const char *what = argc > 1 ? argv[1] : "one";
  TdLink *chain = td_chain_new ("net"), *l = td_linear_new (chain, "l", 1, 1, .nobias = true);
  TdOpt *opt = td_sgd_new (chain, .lr = 0.1);
  TdVar *kept = NULL;

  if (strcmp (what, "nothing") != 0)
    TD_ITERATIONS (i, strcmp (what, "two") == 0 ? 2 : 1)
      {
        TdVar *y = td_link (l, td_ones (TD_F32, TD_SHAPE (1, 1)));

        td_cleargrads (chain);
        td_backward (y, 0);
        td_opt_update (opt);
        td_report ("loss", td_item (y));
        if (kept == NULL)
          kept = td_retain (y);
      }
  if (kept != NULL)
    td_release (kept);
  td_opt_free (opt);
  td_link_free (chain);
  return td_finish ();
}
