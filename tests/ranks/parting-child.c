/* A program whose ranks part, in a way that its argument names; each says what it is told.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static TdComm *comm;
static bool odd; /* this rank is the one that differs */

/* What the engine says, which it forgets then. */
static void
tell (void)
{
  const TdError *e = td_error ();

  fprintf (stderr, "%s: %s\n", e != NULL ? td_status_name (e->status) : "fine",
           e != NULL ? e->message : "no error");
  td_error_clear ();
}

static TdVar *
ones (int64_t n)
{
  return td_ones (TD_F32, TD_SHAPE (n));
}

static void
order (void)
{
  if (odd)
    td_comm_bcast (comm, ones (3), 0);
  else
    td_comm_allreduce (comm, ones (3));
  tell ();
  td_comm_barrier (comm);
  tell ();
}

static void
shape (void)
{
  td_comm_allreduce (comm, ones (odd ? 4 : 3));
  tell ();
  td_comm_barrier (comm); /* all are where they were: it goes on */
  tell ();
}

static void
dtype (void)
{
  td_comm_allgather (comm, td_ones (odd ? TD_F64 : TD_F32, TD_SHAPE (2)));
  tell ();
}

static void
root (void)
{
  td_comm_bcast (comm, ones (3), odd ? 1 : 0);
  tell ();
}

static void
poison (void)
{
  td_comm_allreduce (comm, odd ? td_add (ones (2), ones (3)) : ones (2));
  tell ();
  td_comm_barrier (comm);
  tell ();
}

static void
no_variable (void)
{
  td_comm_allreduce (comm, odd ? NULL : ones (2));
  tell ();
}

static void
wrong_rows (void)
{
  td_comm_alltoall (comm, ones (odd ? 7 : td_comm_size (comm)));
  tell ();
}

static void
early (void)
{
  if (odd)
    return;
  td_comm_allreduce (comm, ones (3));
  tell ();
}

static void
silent (void)
{
  if (odd)
    return;
  td_recv (comm, 1, NULL);
  tell ();
}

static void
one_more (void)
{
  if (odd)
    td_comm_new ("mpi");
  else
    td_comm_barrier (comm);
  tell ();
}

static void
from_handler (int number)
{
  exit (number);
}

/* A handler ends the program while it waits. */
static void
handled (void)
{
  signal (SIGALRM, from_handler);
  if (odd)
    alarm (1);
  else
    for (;;)
      pause (); /* in no call: it is for rank 1 to end this */
  td_comm_barrier (comm);
}

static void
left (void)
{
  if (odd)
    exit (0);
  td_comm_allreduce (comm, ones (3));
  tell ();
}

static void
from_split (void)
{
  TdComm *pair = td_comm_split (comm, td_comm_rank (comm) < 2 ? 0 : -1, 0);

  if (odd)
    return; /* rank 1; the other of the pair waits there, the last one in all */
  td_comm_barrier (td_comm_rank (pair) == 0 ? pair : comm);
  tell ();
}

/* The files that tell rank 1 who has come to the last call: all ranks are children of one
 * mpirun. */
static void
mark_of (int rank, char path[200])
{
  const char *folder = getenv ("TMPDIR");

  snprintf (path, 200, "%s/ranks-parting-%d-%d", folder != NULL ? folder : "/tmp",
            (int)getppid (), rank);
}

/* Who has not come to the call would have no line.  One second more, for the way from the mark
   to the call. */
static void
wait_for_marks (void)
{
  for (int rank = 0; rank < td_comm_size (comm); rank += 2)
    {
      char path[200];

      mark_of (rank, path);
      while (access (path, F_OK) != 0)
        usleep (10000);
      unlink (path);
    }
  sleep (1);
}

static void
killed (void)
{
  char path[200];

  td_comm_barrier (comm);
  if (odd)
    {
      wait_for_marks ();
      raise (SIGKILL);
    }
  mark_of (td_comm_rank (comm), path);
  fclose (fopen (path, "w"));
  td_comm_barrier (comm);
  tell ();
}

static void
no_gradient (void)
{
  TdVar *y = td_comm_allreduce (comm, td_variable (ones (3), "x"));

  if (!odd)
    td_backward (td_sum (y), 0);
  tell ();
}

static const struct
{
  const char *name;
  void (*run) (void);
} ways[] = { { "order", order },
             { "shape", shape },
             { "dtype", dtype },
             { "root", root },
             { "poison", poison },
             { "no_variable", no_variable },
             { "wrong_rows", wrong_rows },
             { "early", early },
             { "silent", silent },
             { "one_more", one_more },
             { "handled", handled },
             { "left", left },
             { "from_split", from_split },
             { "killed", killed },
             { "no_gradient", no_gradient } };

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  setvbuf (stderr, NULL, _IOLBF, 0); /* a line is written at once */
  comm = td_comm_new ("mpi");
  odd = td_comm_rank (comm) == 1;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (argc == 2 && strcmp (argv[1], ways[i].name) == 0)
      TD_SCOPE (ways[i].name)
        ways[i].run ();
  return td_finish ();
}
