/* Batches of another size on each rank: the mean of their means is not the mean of all points,
 * since those of a small batch count for more.
 *
 * Cured in uneven_batches_cured.c.  SPDX-License-Identifier: MIT */
#include "points.h"

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);
  Net net = net_new ();
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (net.all, .lr = 0.1), comm);
  TdDataset *share = td_scatter_dataset (points_new (), comm, .force_equal_length = true);
#ifdef CURED
  const int batch = BATCH;
#else
  const int batch = BATCH / (td_comm_rank (comm) + 1);
#endif
  TdIter *iter = td_serial_iterator_new (share, .batch_size = batch);

  TD_ITERATIONS (i, ITERATIONS)
    {
      backward (net, loss_of (net, td_iter_next (iter)));
      td_opt_update (opt);
    }
  return td_finish ();
}
