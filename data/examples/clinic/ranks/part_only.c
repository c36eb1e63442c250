/* A second optimizer that knows nothing of the ranks: the first layer's gradients are averaged,
 * the second's are each rank's own.
 *
 * Cured in part_only_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);
  Net net = net_new ();
  TdOpt *first = td_multi_node_optimizer_new (td_sgd_new (net.hidden, .lr = 0.1), comm);
  TdOpt *second = td_sgd_new (net.output, .lr = 0.1);
  TdIter *iter = batches_of_a_share (comm);

#ifdef CURED
  td_multi_node_optimizer_new (second, comm);
#endif
  TD_ITERATIONS (i, ITERATIONS)
    {
      backward (net, loss_of (net, td_iter_next (iter)));
      td_opt_update (first);
      td_opt_update (second);
    }
  return td_finish ();
}
