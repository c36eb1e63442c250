/* Weights that rank 0 alone loads in the middle of a training: the others go on with theirs.
 *
 * Cured in late_load_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

/* As a file would bring them. */
static void
load (Net net)
{
  static const float b[2] = { 0.5F, -0.5F };

  td_write (td_link_param (net.output, "b"), b, sizeof b);
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
      backward (net, loss_of (net, td_iter_next (iter)));
      td_opt_update (opt);
      if (i == ODD && td_comm_rank (comm) == 0)
        load (net);
#ifdef CURED
      if (i == ODD)
        td_comm_bcast_link (comm, net.all);
#endif
    }
  return td_finish ();
}
