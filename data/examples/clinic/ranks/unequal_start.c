/* Ranks that begin with weights of their own: each has another seed, nobody sends rank 0's, and
 * the mean of gradients moves all of them alike, so that they stay as far apart as they were.
 *
 * Cured in unequal_start_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);

  td_set_seed ((uint64_t)td_comm_rank (comm) + 1);

  Net net = net_new ();
  TdOpt *opt = td_sgd_new (net.all, .lr = 0.1);
  TdIter *iter = batches_of_a_share (comm);

#ifdef CURED
  td_comm_bcast_link (comm, net.all);
#endif
  TD_ITERATIONS (i, ITERATIONS)
    {
      backward (net, loss_of (net, td_iter_next (iter)));
      td_comm_allreduce_grad (comm, net.all);
      td_opt_update (opt);
    }
  return td_finish ();
}
