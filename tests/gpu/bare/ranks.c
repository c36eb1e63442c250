/* A communicator by NCCL, through the engine: its functions and their gradients, training that
 * equals one process with all batches, and what an all-reduce takes.  Alone, one rank; under
 * mpirun, as many as it starts, a GPU each.
 *
 *   bare-ranks [--small]
 *
 * rank 0 prints one JSON object per row; the status is 77 where NCCL or a GPU is not there, and
 * 1 where something does not hold on some rank.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  ROUNDS = 9,
  CALLS = 10,
  BATCH = 8,
  STEPS = 12,
  MOST = 16, /* ranks */
  ROOM = 4096
};

static TdComm *comm;
static int me, n_ranks;
static bool failed;

/* Whether something holds on all ranks; -1: nothing was timed. */
static void
row (const char *name, bool holds, double us)
{
  TD_SCOPE ("row")
    {
      TdVar *all = td_comm_allreduce (
          comm, td_to_device (td_full (TD_F32, TD_SCALAR, holds), td_device_get ("cpu")));

      holds = td_error () == NULL && fabs (td_item (all) - n_ranks) < 0.5;
    }
  failed = failed || !holds;
  if (me != 0)
    return;
  printf ("{\"row\": \"ranks.%d.%s\", \"holds\": %s, \"us\": %.5g", n_ranks, name,
          holds ? "true" : "false", us);
  if (td_error () != NULL)
    printf (", \"error\": \"%.150s\"", td_error ()->message);
  printf ("}\n");
  fflush (stdout);
}

/* Sums of what comes of 1, 2 .. n_ranks on the ranks: the value and the gradient. */
static void
try_functions (void)
{
  const double all = n_ranks * (n_ranks + 1) / 2.0;
  const struct
  {
    const char *name;
    double sum, gradient; /* of each number of x, by a loss that is the sum of all */
  } rows[] = { { "bcast", n_ranks, me == n_ranks - 1 ? n_ranks : 0 },
               { "allreduce", all, n_ranks },
               { "allgather", all, n_ranks },
               { "alltoall", all / n_ranks, 1 } };

  for (int i = 0; i < 4; i++)
    TD_SCOPE ("function")
      {
        const int64_t n = 100 * n_ranks;
        TdVar *x = td_variable (td_full (TD_F32, TD_SHAPE (n_ranks, 100), me + 1), "x");
        TdVar *y = i == 0   ? td_comm_bcast (comm, x, n_ranks - 1)
                   : i == 1 ? td_comm_allreduce (comm, x)
                   : i == 2 ? td_comm_allgather (comm, x)
                            : td_comm_alltoall (comm, x);
        bool holds = td_backward (td_sum (y), 0) == TD_OK;

        holds = holds && fabs (td_item (td_sum (y)) - rows[i].sum * (double)n) < 1e-3
                && fabs (td_item (td_sum (td_grad (x))) - rows[i].gradient * (double)n) < 1e-3;
        row (rows[i].name, holds, -1);
      }
}

/* --- training --- */

typedef struct
{
  float numbers[ROOM];
  size_t n;
} Weights;

static void
add_weights (const char *path, TdVar *v, void *user)
{
  Weights *w = user;

  (void)path;
  if (w->n + (size_t)td_size (v) <= ROOM)
    td_read (v, w->numbers + w->n, (size_t)td_size (v) * sizeof (float));
  w->n += (size_t)td_size (v);
}

static TdVar *
batch_of (int rank, int step, int64_t width)
{
  float numbers[BATCH * 16];

  for (int i = 0; i < BATCH * (int)width; i++)
    numbers[i] = sinf ((float)(i + 31 * rank + 7 * step + (int)width));
  return td_tensor (TD_F32, TD_SHAPE (BATCH, width), numbers);
}

/* By the batches of the ranks first .. end - 1. */
static Weights
train (const TdMultiNodeOpt *options, int first, int end)
{
  TdLink *model = td_sequential_new ("net");
  Weights w = { .n = 0 };
  TdOpt *opt;

  td_set_seed (3);
  td_linear_new (model, "l1", 16, 64);
  td_sequential_append (model, td_tanh);
  td_linear_new (model, "l2", 64, 4);
  opt = td_sgd_new (model, .lr = 0.1);
  if (options != NULL)
    td_multi_node_optimizer_new_ (opt, comm, options);
  for (int step = 0; step < STEPS; step++)
    TD_SCOPE ("step")
      {
        TdVar *xs[MOST], *ts[MOST], *loss;

        for (int r = first; r < end; r++)
          {
            xs[r - first] = batch_of (r, step, 16);
            ts[r - first] = batch_of (r, step, 4);
          }
        loss = td_mean_squared_error (td_link (model, td_concat (xs, end - first, 0)),
                                      td_concat (ts, end - first, 0));
        td_cleargrads (model);
        td_backward (loss, 0);
        td_opt_update (opt);
      }
  td_link_each_param (model, add_weights, &w);
  td_opt_free (opt);
  td_link_free (model);
  return w;
}

static bool
is_near (const Weights *a, const Weights *b, double tolerance)
{
  for (size_t i = 0; i < a->n && a->n == b->n && a->n <= ROOM; i++)
    if (!(fabs ((double)a->numbers[i] - (double)b->numbers[i]) <= tolerance))
      return false;
  return a->n > 0 && a->n == b->n && a->n <= ROOM;
}

static void
try_training (void)
{
  TdMultiNodeOpt o = { TD_MULTI_NODE_DEFAULTS };
  Weights one, plain, behind, halves;

  o.bucket_bytes = 1024;
  one = train (NULL, 0, n_ranks);
  plain = train (&o, me, me + 1);
  o.overlap = true;
  behind = train (&o, me, me + 1);
  o.overlap = false;
  o.allreduce_grad_dtype = TD_BF16;
  halves = train (&o, me, me + 1);
  row ("training", is_near (&plain, &one, 1e-5), -1);
  row ("training_behind_backward",
       memcmp (plain.numbers, behind.numbers, plain.n * sizeof (float)) == 0, -1);
  row ("training_in_bf16", is_near (&halves, &one, 0.02), -1);
}

/* --- times --- */

static void
time_sums (const MeasureOptions *o)
{
  const int64_t largest = o->small ? 1 << 12 : 1 << 24;

  for (int64_t n = 1 << 10; n <= largest; n <<= 7)
    TD_SCOPE ("times")
      {
        TdVar *x = td_ones (TD_F32, TD_SHAPE (n)), *y = x;
        double samples[ROUNDS];
        char name[40];

        for (int i = -1; i < ROUNDS && td_error () == NULL; i++)
          {
            double begin;

            td_comm_barrier (comm);
            td_device_synchronize (td_device (x));
            begin = measure_now ();
            for (int k = 0; k < CALLS; k++)
              y = td_comm_allreduce (comm, x);
            td_device_synchronize (td_device (x));
            samples[i < 0 ? 0 : i] = (measure_now () - begin) / CALLS;
          }
        snprintf (name, sizeof name, "allreduce_%lld", (long long)n * 4);
        row (name, td_error () == NULL && fabs (td_item (td_max (y)) - n_ranks) < 0.5,
             measure_median (samples, ROUNDS) * 1e6);
      }
}

int
main (int argc, char **argv)
{
  const MeasureOptions o = measure_options (argc, argv);

  td_init (NULL, NULL);
  comm = td_comm_new ("nccl");
  me = td_comm_rank (comm);
  n_ranks = td_comm_size (comm);
  if (n_ranks == 0)
    {
      const TdError *e = td_error ();

      printf ("%s\n", e != NULL ? e->message : "no communicator");
      fflush (stdout);
      return e != NULL && e->status == TD_ERR_DEVICE ? 77 : 1;
    }
  td_device_use (td_device_get ("cuda"));
  try_functions ();
  if (n_ranks <= MOST)
    try_training ();
  time_sums (&o);
  return measure_end () != 0 || failed;
}
