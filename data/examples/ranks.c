/* LeNet on handwritten digits, by several processes that share the work:
 *
 *   mpirun -n 4 ./ranks          or          mpirun -n 4 tapedeck run -o ranks.tdtape ranks.c
 *
 * Each has its part of the examples and computes the gradient of its part of the batch; the
 * optimizer updates by the mean of all.  Without mpirun it is one process with the whole batch.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>

enum
{
  BATCH = 64, /* of all ranks together */
  EPOCHS = 2
};

static TdVar *
pool (TdVar *x)
{
  return td_max_pooling_2d (x, .ksize = { 2, 2 }, .stride = { 2, 2 });
}

static TdLink *
lenet_new (void)
{
  TdLink *net = td_sequential_new ("lenet");

  td_convolution_2d_new (net, "conv1", 1, 6, 5, .pad = { 2, 2 });
  td_sequential_append (net, td_relu);
  td_sequential_append (net, pool);
  td_convolution_2d_new (net, "conv2", 6, 16, 5);
  td_sequential_append (net, td_relu);
  td_sequential_append (net, pool);
  td_linear_new (net, "fc1", 400, 120);
  td_sequential_append (net, td_relu);
  td_linear_new (net, "fc2", 120, 10);
  return net;
}

static TdVar *
predict (TdLink *net, TdBatch b)
{
  return td_link (net, td_reshape (b.x, TD_SHAPE (b.n, 1, 28, 28)));
}

/* Each rank looks at its part; what is right is added up, and divided by the number of all. */
static double
test_accuracy (TdComm *comm, TdLink *net, TdDataset *part)
{
  TdIter *iter
      = td_serial_iterator_new (part, .batch_size = 250, .shuffle = false, .repeat = false);
  double sums[2] = { 0, (double)td_dataset_size (part) };

  while (td_iter_epoch (iter) < 1 && td_error () == NULL)
    TD_NO_BACKPROP
      TD_USING (train, 0)
        TD_SCOPE ("test")
          {
            TdBatch b = td_iter_next (iter);

            sums[0] += td_item (td_accuracy (predict (net, b), b.t)) * (double)b.n;
          }
  td_iter_free (iter);
  TD_SCOPE ("all ranks")
    td_read (td_comm_allreduce (comm, td_tensor (TD_F64, TD_SHAPE (2), sums)), sums,
             sizeof sums);
  return sums[0] / sums[1];
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdComm *comm = td_comm_new (NULL);
  const int rank = td_comm_rank (comm), size = td_comm_size (comm);
  TdLink *net = lenet_new ();
  TdOpt *opt = td_multi_node_optimizer_new (td_adam_new (net, .lr = 2e-3), comm);
  TdDataset *train = NULL, *test = NULL;
  int64_t n_updates;

  if (rank == 0) /* the others get their parts from there */
    {
      train = td_mnist_open (NULL, TD_TRAIN);
      test = td_mnist_open (NULL, TD_TEST);
    }
  train = td_scatter_dataset (train, comm, .shuffle = true);
  test = td_scatter_dataset (test, comm, .shuffle = false);

  TdIter *iter = td_serial_iterator_new (train, .batch_size = BATCH / size);
  double loss = 0, accuracy;

  /* All ranks make as many updates: their parts may differ by one example. */
  n_updates = td_dataset_size (train) * size / BATCH * EPOCHS;
  TD_SCOPE ("updates")
    n_updates = (int64_t)td_item (
        td_comm_bcast (comm, td_full (TD_I64, TD_SCALAR, (double)n_updates), 0));
  for (int64_t i = 0; i < n_updates && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdBatch b = td_iter_next (iter);
        TdVar *y = td_softmax_cross_entropy (predict (net, b), b.t);

        td_cleargrads (net);
        td_backward (y, 0);
        td_opt_update (opt);
        loss = td_item (y);
        td_report ("loss", loss);
        if (i == n_updates / 2)
          td_opt_set_lr (opt, td_opt_lr (opt) / 2);
      }
  accuracy = test_accuracy (comm, net, test);
  if (rank == 0 && td_error () == NULL)
    printf ("ranks %d  updates %d  loss %.4f  test accuracy %.4f\n", size, (int)n_updates, loss,
            accuracy);
  return td_finish ();
}
