/* Ranks that all read the same examples: each computes what the others compute, and three ranks
 * learn as much as one.
 *
 * Cured in same_data_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);
  Net net = net_new ();
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (net.all, .lr = 0.1), comm);
#ifdef CURED
  TdDataset *share = td_scatter_dataset (points_new (), comm, .force_equal_length = true);
#else
  TdDataset *share = points_new ();
#endif
  TdIter *iter = td_serial_iterator_new (share, .batch_size = BATCH);

  TD_ITERATIONS (i, ITERATIONS)
    {
      backward (net, loss_of (net, td_iter_next (iter)));
      td_opt_update (opt);
    }
  return td_finish ();
}
