/* An optimizer's momentum that rank 0 alone begins again with: its next steps are others.
 *
 * Cured in late_state_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);
  Net net = net_new ();
  TdOpt *opt = td_multi_node_optimizer_new (td_momentum_sgd_new (net.all, .lr = 0.1), comm);
  TdIter *iter = batches_of_a_share (comm);

  TD_ITERATIONS (i, ITERATIONS)
    {
      backward (net, loss_of (net, td_iter_next (iter)));
      td_opt_update (opt);
      if (i == ODD && td_comm_rank (comm) == 0)
        {
          static const float v[2] = { 0, 0 };

          td_write (td_opt_state (opt, "output/b", "v"), v, sizeof v);
        }
#ifdef CURED
      if (i == ODD)
        td_comm_bcast_optimizer (comm, opt);
#endif
    }
  return td_finish ();
}
