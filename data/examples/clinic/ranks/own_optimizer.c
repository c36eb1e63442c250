/* An optimizer that knows nothing of the ranks: each trains a model of its own.
 *
 * Cured in own_optimizer_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);
  Net net = net_new ();
  TdOpt *opt = td_sgd_new (net.all, .lr = 0.1);
  TdIter *iter = batches_of_a_share (comm);

#ifdef CURED
  td_multi_node_optimizer_new (opt, comm);
#endif
  TD_ITERATIONS (i, ITERATIONS)
    {
      backward (net, loss_of (net, td_iter_next (iter)));
      td_opt_update (opt);
    }
  return td_finish ();
}
