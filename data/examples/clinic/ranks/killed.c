/* A rank that dies in the middle of an iteration.
 *
 * Cured in killed_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

#include <signal.h>

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
#ifndef CURED
      if (i == ODD && td_comm_rank (comm) == 1)
        raise (SIGKILL);
#endif
      td_opt_update (opt);
    }
  return td_finish ();
}
