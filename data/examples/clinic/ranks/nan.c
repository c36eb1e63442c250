/* A NaN on one rank, which the mean brings to all: one of its points lies so far out that the
 * loss's own formula has 0 times minus infinity.
 *
 * Cured in nan_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

/* The logarithm of a probability, spelled out; in one operation it stays finite. */
static TdVar *
loss_by_hand (Net net, TdBatch b, float scale)
{
  TdVar *h = td_link (net.hidden, td_mul_scalar (b.x, scale));
  TdVar *y = td_link (net.output, h);
#ifdef CURED
  TdVar *log_p = td_log_softmax (y);
#else
  TdVar *log_p = td_log (td_softmax (y));
#endif

  return td_neg (td_mean (td_mul (td_softmax (y), log_p)));
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);
  Net net = net_new ();
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (net.all, .lr = 0.1), comm);
  TdIter *iter = batches_of_a_share (comm);

  TD_ITERATIONS (i, ITERATIONS)
    {
      const bool far = i == ODD && td_comm_rank (comm) == 1;

      backward (net, loss_by_hand (net, td_iter_next (iter), far ? 1e4F : 1));
      td_opt_update (opt);
    }
  return td_finish ();
}
