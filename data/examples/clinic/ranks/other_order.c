/* A collective that rank 0 alone calls, while the others go on to the next one.
 *
 * Cured in other_order_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

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
      backward (net, loss_of (net, td_iter_next (iter)));
      td_opt_update (opt);
#ifdef CURED
      if (i == ODD)
        td_comm_barrier (comm);
#else
      if (i == ODD && td_comm_rank (comm) == 0)
        td_comm_barrier (comm);
#endif
    }
  return td_finish ();
}
