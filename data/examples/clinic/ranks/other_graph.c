/* A layer that one rank leaves out in one iteration: it has no gradient there, and the others'
 * is divided by all.
 *
 * Cured in other_graph_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

#ifndef CURED
static TdVar *
loss_without_hidden (Net net, TdBatch b)
{
  TdVar *h = td_zeros (TD_F32, TD_SHAPE (b.n, 8));

  return td_softmax_cross_entropy (td_link (net.output, h), b.t);
}
#endif

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
      TdBatch b = td_iter_next (iter);
      TdVar *loss = loss_of (net, b);

#ifndef CURED
      if (i == ODD && td_comm_rank (comm) == 1)
        loss = loss_without_hidden (net, b);
#endif
      backward (net, loss);
      td_opt_update (opt);
    }
  return td_finish ();
}
