/* A small net, trained by several ranks until it is told to end:
 *
 *   stepped [FAULT RANK ITERATION]
 *
 * From ITERATION on RANK makes NaN (nan), fails when the others wait for it (error), or
 * computes by another graph: one operation more in each forward (longer), or another one
 * (other).
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  BATCH = 8,
  IN = 6,
  OUT = 3
};

/* Does this rank do that now? */
static bool
does (const char *fault, int argc, char **argv, TdComm *comm, int64_t i)
{
  return argc > 3 && strcmp (argv[1], fault) == 0 && td_comm_rank (comm) == atoi (argv[2])
         && i >= atoi (argv[3]);
}

static TdVar *
forward (TdLink *net, TdVar *x, int argc, char **argv, TdComm *comm, int64_t i)
{
  TdVar *h = td_link (net, x);

  /* the same operations on all: of the sum of squares and a number below 0 */
  h = td_log (
      td_add (td_square (h), td_mul_scalar (td_ones (TD_F32, TD_SHAPE (1)),
                                            does ("nan", argc, argv, comm, i) ? -1e9 : 1)));
  if (does ("longer", argc, argv, comm, i))
    h = td_add (h, td_zeros (TD_F32, TD_SHAPE (1)));
  if (does ("error", argc, argv, comm, i))
    {
      usleep (500000); /* the others are in their call meanwhile */
      h = td_reshape (h, TD_SHAPE (7));
    }
  return does ("other", argc, argv, comm, i) ? td_sigmoid (h) : td_relu (h);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  TdComm *comm = td_comm_new ("mpi");
  TdLink *net = td_sequential_new ("net");

  td_linear_new (net, "l1", IN, 10);
  td_sequential_append (net, td_relu);
  td_linear_new (net, "l2", 10, OUT);
  TdOpt *opt = td_multi_node_optimizer_new (td_sgd_new (net, .lr = 0.05), comm);
  for (int64_t i = 0; td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *x = td_randn (TD_F32, TD_SHAPE (BATCH, IN));
        TdVar *t = td_zeros (TD_I32, TD_SHAPE (BATCH));
        TdVar *loss = td_softmax_cross_entropy (forward (net, x, argc, argv, comm, i), t);

        td_cleargrads (net);
        td_backward (loss, 0);
        td_opt_update (opt);
      }
  return td_finish ();
}
