/* Trains with small batches, and once with a batch as large as its first argument says; what
 * runs out of memory there is told and forgotten, and training goes on.  With a second argument
 * it keeps the graphs of its first iterations.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>

enum
{
  N = 6,
  LARGE = 4, /* the iteration with the large batch */
  KEPT = 3
};

static TdVar *
forward (TdLink *net, int64_t batch, TdVar **first)
{
  TdVar *h
      = td_relu (td_link (td_link_child (net, "l1"), td_randn (TD_F32, TD_SHAPE (batch, 64))));

  *first = h;
  h = td_relu (td_link (td_link_child (net, "l2"), h));
  h = td_link (td_link_child (net, "l3"), h);
  return td_sum (td_mul (h, h));
}

int
main (int argc, char **argv)
{
  TdLink *net;
  TdOpt *opt;

  td_init (&argc, &argv);
  const long large = argc > 1 ? atol (argv[1]) : 1;

  net = td_chain_new ("net");
  td_linear_new (net, "l1", 64, 256);
  td_linear_new (net, "l2", 256, 256);
  td_linear_new (net, "l3", 256, 10);
  opt = td_adam_new (net);
  for (int i = 0; i < N; i++)
    TD_ITERATION (i)
      {
        TdVar *first, *loss = forward (net, i == LARGE ? large : 100, &first);

        if (argc > 2 && i < KEPT)
          td_retain (first);
        td_cleargrads (net);
        td_backward (loss, 0);
        td_opt_update (opt);
        if (td_error () != NULL)
          printf ("%d: %s\n", i, td_status_name (td_error ()->status));
        td_error_clear ();
      }
  td_opt_free (opt);
  return td_finish ();
}
