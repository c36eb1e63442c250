/* Ranks that train a small network; one of them writes to what all must have in common, as its
 * arguments say: WHAT RANK UPDATE, where WHAT is weights, state, persistent, seed, or nothing.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  UPDATES = 6
};

static TdLink *net, *l1, *norm;
static TdOpt *opt;

static void
write_to (const char *what)
{
  float numbers[4] = { 0.5F, 0.25F, 0, -1 };

  if (strcmp (what, "weights") == 0)
    td_write (td_link_param (l1, "b"), numbers, sizeof numbers);
  else if (strcmp (what, "state") == 0)
    td_write (td_opt_state (opt, "l1/b", "v"), numbers, sizeof numbers);
  else if (strcmp (what, "persistent") == 0)
    td_write (td_link_param (norm, "avg_mean"), numbers, sizeof numbers);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  if (argc != 4)
    return 1;

  TdComm *comm = td_comm_new (NULL);
  const int rank = td_comm_rank (comm);
  TdLink *l2;

  /* each begins with other weights, which are made when rank 0's are already there */
  if (strcmp (argv[1], "seed") == 0)
    td_set_seed ((uint64_t)rank + 1);
  net = td_chain_new ("net");
  l1 = td_linear_new (net, "l1", strcmp (argv[1], "seed") == 0 ? TD_INFER : 3, 4);
  norm = td_batch_normalization_new (net, "norm", 4);
  l2 = td_linear_new (net, "l2", 4, 1);
  opt = td_multi_node_optimizer_new (td_momentum_sgd_new (net, .lr = 0.01), comm);
  for (int i = 0; i < UPDATES; i++)
    TD_ITERATION (i)
      {
        TdVar *x = td_randn (TD_F32, TD_SHAPE (8, 3));
        TdVar *y = td_link (l2, td_link (norm, td_link (l1, x)));

        td_cleargrads (net);
        td_backward (td_mean (td_square (y)), 0);
        td_opt_update (opt);
        if (rank == atoi (argv[2]) && i == atoi (argv[3]))
          write_to (argv[1]);
      }
  return td_finish ();
}
