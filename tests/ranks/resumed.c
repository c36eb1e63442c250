/* Ranks that train a small network with momentum, by 12 examples an iteration among all of
 * them, up to an iteration, and go on from the checkpoint that is in the folder: ITERATIONS
 * FOLDER.  Which examples those are the iteration says, since iterators of another number of
 * ranks begin anew.  Rank 0 prints the first iteration that it made, and all numbers.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  EXAMPLES = 12,
  IN = 5,
  HIDDEN = 7
};

typedef struct
{
  TdLink *net, *l1, *l2;
  TdUpdater *updater;
  int rank, n_ranks;
  int64_t first; /* iteration; -1: none yet */
} Run;

/* In [-1, 1), by a hash. */
static float
number (int64_t iteration, int example, int column)
{
  uint32_t z = (uint32_t)iteration * 0x9e3779b1u + (uint32_t)example * 0x85ebca77u
               + (uint32_t)column * 0xc2b2ae3du + 1;

  z = (z ^ z >> 15) * 0x2c1b3c6du;
  z = (z ^ z >> 12) * 0x297a2d39u;
  return (float)((z ^ z >> 15) >> 8) * 0x1p-23f - 1;
}

/* This rank's part of the examples of the iteration that comes. */
static TdVar *
loss_of (void *self, const TdBatch *batch)
{
  Run *r = self;
  const int64_t done = td_updater_iteration (r->updater);
  const int n = EXAMPLES / r->n_ranks;
  float x[EXAMPLES * IN];

  (void)batch;
  r->first = r->first < 0 ? done + 1 : r->first;
  for (int i = 0; i < n; i++)
    for (int c = 0; c < IN; c++)
      x[i * IN + c] = number (done, r->rank * n + i, c);
  return td_mean (td_square (
      td_link (r->l2, td_tanh (td_link (r->l1, td_tensor (TD_F32, TD_SHAPE (n, IN), x))))));
}

static void
print_numbers (TdLink *l, const char *name, int n)
{
  float numbers[IN * HIDDEN];

  td_read (td_link_param (l, name), numbers, (size_t)n * sizeof *numbers);
  for (int i = 0; i < n; i++)
    printf ("%.9g\n", (double)numbers[i]);
}

int
main (int argc, char **argv)
{
  Run r = { .first = -1 };

  td_init (&argc, &argv);
  if (argc != 3)
    return 1;
  TdComm *comm = td_comm_new (NULL);
  r.rank = td_comm_rank (comm);
  r.n_ranks = td_comm_size (comm);
  td_set_seed (5);
  r.net = td_chain_new ("net");
  r.l1 = td_linear_new (r.net, "l1", IN, HIDDEN);
  r.l2 = td_linear_new (r.net, "l2", HIDDEN, 1);

  TdOpt *opt = td_multi_node_optimizer_new (
      td_momentum_sgd_new (r.net, .lr = 0.1, .momentum = 0.9), comm);
  TdVar *nothing = td_zeros (TD_F32, TD_SHAPE (1, 1));
  TdDataset *rows = td_tuple_dataset_new_n (&nothing, 1);
  r.updater = td_standard_updater_new (td_serial_iterator_new (rows, .batch_size = 1), opt,
                                       .loss_func = loss_of, .self = &r);
  TdTrainer *trainer = td_trainer_new (
      r.updater, td_interval_trigger_new (atof (argv[1]), "iteration"), .out = argv[2]);
  td_trainer_extend (trainer, td_multi_node_checkpointer_new ("check", comm),
                     .trigger = td_interval_trigger_new (2, "iteration"));
  td_trainer_run (trainer);
  if (r.rank == 0)
    {
      printf ("first %lld\n", (long long)r.first);
      print_numbers (r.l1, "W", IN * HIDDEN);
      print_numbers (r.l1, "b", HIDDEN);
      print_numbers (r.l2, "W", HIDDEN);
    }
  td_trainer_free (trainer);
  return td_finish ();
}
