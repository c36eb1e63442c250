/* A small net, trained by several ranks, with a fault of one of them:
 *
 *   planted FAULT RANK ITERATION POINT [ITERATIONS]
 *
 * RANK does FAULT in ITERATION at POINT: before the forward (0), between backward and update
 * (1) or after the update (2).  "none" is no fault. SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum
{
  ITERATIONS = 40,
  BATCH = 8,
  IN = 6,
  OUT = 3
};

static TdComm *comm, *part;

static TdVar *
ones (int64_t n)
{
  return td_ones (TD_F32, TD_SHAPE (n));
}

/* --- ends --- */

static void
killed (void)
{
  raise (SIGKILL);
}

static void
ended (void)
{
  kill (getpid (), SIGTERM);
}

static void
crash (void)
{
  raise (SIGSEGV);
}

static void
failed (void)
{
  _exit (7);
}

/* --- hangs --- */

static void
stopped (void)
{
  raise (SIGSTOP);
}

static void
loop (void)
{
  for (volatile unsigned i = 0;; i++)
    ;
}

/* Longer than the limit, and then it comes. */
static void
late (void)
{
  const time_t begun = time (NULL);

  while (time (NULL) - begun < 4)
    ;
}

static void
asleep (void)
{
  for (;;)
    pause ();
}

/* The others are in a call of all. */
static void
in_part (void)
{
  td_comm_barrier (part);
}

/* The others are in a collective. */
static void
in_letter (void)
{
  td_recv (comm, (td_comm_rank (comm) + 1) % td_comm_size (comm), NULL);
}

/* --- calls that the others do not make, or make otherwise --- */

static void
barrier (void)
{
  td_comm_barrier (comm);
}

static void
other_shape (void)
{
  td_comm_allreduce (comm, ones (5));
}

static void
broadcast (void)
{
  td_comm_bcast (comm, ones (3), 0);
}

static void
finish (void)
{
  exit (td_finish ());
}

static void
left (void)
{
  exit (3);
}

static void
quit (void)
{
  exit (0);
}

static void
gone (void)
{
  _exit (0);
}

static void
one_more (void)
{
  td_comm_new ("mpi");
}

static const struct
{
  const char *name;
  void (*run) (void);
} faults[] = {
  { "none", NULL },           { "killed", killed },   { "crash", crash },
  { "failed", failed },       { "stopped", stopped }, { "loop", loop },
  { "late", late },           { "asleep", asleep },   { "in-part", in_part },
  { "in-letter", in_letter }, { "barrier", barrier }, { "shape", other_shape },
  { "broadcast", broadcast }, { "finish", finish },   { "one-more", one_more },
  { "ended", ended },         { "left", left },       { "quit", quit },
  { "gone", gone },
};

static void
plant (int argc, char **argv, int iteration, int point)
{
  if (argc < 5 || td_comm_rank (comm) != atoi (argv[2]) || iteration != atoi (argv[3])
      || point != atoi (argv[4]))
    return;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (strcmp (argv[1], faults[i].name) == 0 && faults[i].run != NULL)
      {
        fprintf (stderr, "planted: rank %d: %s in iteration %d\n", td_comm_rank (comm), argv[1],
                 iteration);
        faults[i].run ();
      }
}

int
main (int argc, char **argv)
{
  const int n = argc > 5 ? atoi (argv[5]) : ITERATIONS;

  td_init (&argc, &argv);
  setvbuf (stderr, NULL, _IOLBF, 0); /* a line is written at once */
  if (argc >= 5 && strcmp (argv[1], "no-comm") == 0
      && atoi (getenv ("OMPI_COMM_WORLD_RANK")) == atoi (argv[2]))
    for (;;)
      pause ();
  comm = td_comm_new ("mpi");
  part = td_comm_split (
      comm, td_comm_rank (comm) > 1 && td_comm_rank (comm) == td_comm_size (comm) - 1, 0);

  TdLink *net = td_sequential_new ("net");
  TdOpt *opt;

  td_linear_new (net, "l1", IN, 10);
  td_sequential_append (net, td_relu);
  td_linear_new (net, "l2", 10, OUT);
  opt = td_multi_node_optimizer_new (td_sgd_new (net, .lr = 0.05), comm);
  for (int i = 0; i < n && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *x, *t, *loss;

        plant (argc, argv, i, 0);
        x = td_randn (TD_F32, TD_SHAPE (BATCH, IN));
        t = td_zeros (TD_I32, TD_SHAPE (BATCH));
        loss = td_softmax_cross_entropy (td_link (net, x), t);
        td_cleargrads (net);
        td_backward (loss, 0);
        plant (argc, argv, i, 1);
        td_opt_update (opt);
        plant (argc, argv, i, 2);
        td_report ("loss", td_item (loss));
      }
  return td_finish ();
}
