/* A side of a port check, a program that goes forward and backward once:
 * model-port WEIGHTS.npz X.npy [update] [frozen].  "update" has an optimizer take the
 * gradients, of which "frozen" lets none reach the first layer. SPDX-License-Identifier: MIT */
#include <string.h>

#include <tapedeck.h>

int
main (int argc, char **argv)
{
  static const int32_t labels[] = { 0, 1, 2, 1, 0 };
  bool update = false, last = false, frozen = false;
  TdLink *net, *l1, *l2, *l3;
  TdOpt *opt;
  TdVar *h;

  td_init (&argc, &argv);
  if (argc < 3)
    return 2;
  for (int i = 3; i < argc; i++)
    {
      update |= strcmp (argv[i], "update") == 0;
      last |= strcmp (argv[i], "last") == 0;
      frozen |= strcmp (argv[i], "frozen") == 0;
    }
  net = td_chain_new ("net");
  l1 = td_linear_new (net, "l1", 4, 8);
  l2 = td_linear_new (net, "l2", 8, 8);
  l3 = td_linear_new (net, "l3", 8, 3);
  td_load_npz (argv[1], net);
  opt = last ? td_sgd_new (l3) : update ? td_sgd_new (net) : NULL;
  TD_ITERATIONS (i, 1)
    {
      h = td_relu (td_link (l1, td_load_npy (argv[2])));
      if (frozen)
        h = td_variable (td_copy (h), NULL);
      h = td_link (l3, td_relu (td_link (l2, h)));
      td_backward (td_softmax_cross_entropy (h, td_tensor (TD_I32, TD_SHAPE (5), labels)), 0);
      if (opt != NULL)
        td_opt_update (opt);
    }
  td_opt_free (opt);
  td_link_free (net);
  return td_finish ();
}
