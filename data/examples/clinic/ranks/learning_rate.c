/* A learning rate that rank 0 alone lowers.
 *
 * Cured in learning_rate_cured.c.  SPDX-License-Identifier: MIT */
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
#ifdef CURED
      if (i == ODD)
#else
      if (i == ODD && td_comm_rank (comm) == 0)
#endif
        td_opt_set_lr (opt, 0.05);
      td_opt_update (opt);
    }
  return td_finish ();
}
