/* tapedeck-mpi.so: the transport over MPI.  The engine opens it when a program asks for a
 * communicator; nothing else links MPI.
 *
 * MPI is started once, with the first communicator, and ended when the process is, because it
 * cannot be started again.  Errors come back as text: MPI's own handler would end the program.
 * Waiting for the others gives the processor away, so that more ranks than processors get on.
 *
 * SPDX-License-Identifier: MIT */
#include "wire.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum
{
  EAGER_TESTS = 4096, /* before a wait begins to sleep */
  TAG = 7
};

static pid_t opened_by;
static Sent *late; /* of communicators that were closed: till the end */

bool
td_mpi_fine (int error, const char *call, char *why)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int n = 0;

  if (error == MPI_SUCCESS)
    return true;
  MPI_Error_string (error, text, &n);
  for (char *c = text; *c != '\0'; c++)
    if (*c == '\n')
      *c = ' ';
  snprintf (why, TD_WHY_WIRE, "%s: %.200s", call, text);
  return false;
}

static void
finalize (void)
{
  int ended = 0;

  if (getpid () != opened_by || MPI_Finalized (&ended) != MPI_SUCCESS || ended)
    return;
  for (Sent *s = late; s != NULL; s = s->next)
    MPI_Request_free (&s->request);
  MPI_Finalize ();
  while (late != NULL)
    {
      Sent *s = late;

      late = s->next;
      free (s->data);
      free (s);
    }
  td_mpi_sums_end ();
}

/* Another MPI's mpirun starts processes that do not know of each other here. */
static bool
started_by_another (char *why)
{
  const char *theirs = getenv ("PMI_SIZE");
  int size = 0;

  MPI_Comm_size (MPI_COMM_WORLD, &size);
  if (theirs == NULL || size != 1 || atoi (theirs) < 2)
    return false;
  snprintf (why, TD_WHY_WIRE,
            "the mpirun that started %d processes is not that of the MPI library here: each of "
            "them is alone",
            atoi (theirs));
  return true;
}

static bool
start (char *why)
{
  int there = 0, ended = 0, level;

  if (!td_mpi_fine (MPI_Initialized (&there), "MPI_Initialized", why)
      || !td_mpi_fine (MPI_Finalized (&ended), "MPI_Finalized", why))
    return false;
  if (ended)
    {
      snprintf (why, TD_WHY_WIRE, "MPI has ended in this process, and cannot be started again");
      return false;
    }
  if (!there
      && !td_mpi_fine (MPI_Init_thread (NULL, NULL, MPI_THREAD_FUNNELED, &level),
                       "MPI_Init_thread", why))
    return false;
  if (!there) /* a program that has started MPI itself ends it itself */
    {
      opened_by = getpid ();
      atexit (finalize);
    }
  return !started_by_another (why);
}

/* The numbers of machines: their first ranks count them, and tell the others of theirs. */
static bool
count_machines (MPI_Comm comm, MPI_Comm machine, TdWire *wire, char *why)
{
  int numbers[2] = { 0, 0 };
  MPI_Comm first;

  if (!td_mpi_fine (
          MPI_Comm_split (comm, wire->intra_rank == 0 ? 0 : MPI_UNDEFINED, wire->rank, &first),
          "MPI_Comm_split", why))
    return false;
  if (first != MPI_COMM_NULL)
    {
      MPI_Comm_rank (first, &numbers[0]);
      MPI_Comm_size (first, &numbers[1]);
      MPI_Comm_free (&first);
    }
  if (!td_mpi_fine (MPI_Bcast (numbers, 2, MPI_INT, 0, machine), "MPI_Bcast", why))
    return false;
  wire->inter_rank = numbers[0];
  wire->inter_size = numbers[1];
  return true;
}

/* Which ranks are on one machine: those that can have memory in common. */
static bool
look_around (MPI_Comm comm, TdWire *wire, char *why)
{
  MPI_Comm machine;
  bool counted;

  if (!td_mpi_fine (
          MPI_Comm_split_type (comm, MPI_COMM_TYPE_SHARED, wire->rank, MPI_INFO_NULL, &machine),
          "MPI_Comm_split_type", why))
    return false;
  MPI_Comm_rank (machine, &wire->intra_rank);
  MPI_Comm_size (machine, &wire->intra_size);
  counted = count_machines (comm, machine, wire, why);
  MPI_Comm_free (&machine);
  return counted;
}

/* *Owner*: takes comm. */
static TdWire *
wire_of (MPI_Comm comm, char *why)
{
  MpiWire *w = calloc (1, sizeof *w);

  if (w == NULL)
    {
      snprintf (why, TD_WHY_WIRE, "no memory");
      return NULL;
    }
  w->comm = comm;
  w->meeting = MPI_REQUEST_NULL;
  MPI_Comm_set_errhandler (comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank (comm, &w->wire.rank);
  MPI_Comm_size (comm, &w->wire.size);
  if (!look_around (comm, &w->wire, why))
    {
      free (w);
      return NULL;
    }
  return &w->wire;
}

static TdWire *
mpi_open (char *why)
{
  MPI_Comm comm;

  return start (why) && td_mpi_fine (MPI_Comm_dup (MPI_COMM_WORLD, &comm), "MPI_Comm_dup", why)
             ? wire_of (comm, why)
             : NULL;
}

static TdWire *
mpi_split (TdWire *wire, int color, int key, char *why)
{
  MpiWire *w = (MpiWire *)wire;
  MPI_Comm comm;

  *why = '\0';
  if (!td_mpi_fine (MPI_Comm_split (w->comm, color >= 0 ? color : MPI_UNDEFINED, key, &comm),
                    "MPI_Comm_split", why))
    return NULL;
  return comm != MPI_COMM_NULL ? wire_of (comm, why) : NULL;
}

/* Wait for a request, and let others have the processor meanwhile. */
bool
td_mpi_wait (MPI_Request *request, const char *call, char *why)
{
  const struct timespec nap = { 0, 50000 };
  int done = 0;

  for (long tests = 0;; tests++)
    {
      const int error = MPI_Test (request, &done, MPI_STATUS_IGNORE);

      if (error != MPI_SUCCESS || done)
        return td_mpi_fine (error, call, why);
      if (tests < EAGER_TESTS)
        sched_yield ();
      else
        nanosleep (&nap, NULL);
    }
}

/* Forget messages that have arrived; wait: all of them. */
static void
settle (MpiWire *w, bool wait)
{
  char why[TD_WHY_WIRE];

  for (Sent **at = &w->sent; *at != NULL;)
    {
      Sent *sent = *at;
      int done = wait;

      if (wait)
        td_mpi_wait (&sent->request, "MPI_Test", why);
      else
        MPI_Test (&sent->request, &done, MPI_STATUS_IGNORE);
      if (!done)
        {
          at = &sent->next;
          continue;
        }
      *at = sent->next;
      free (sent->data);
      free (sent);
    }
}

static void
mpi_close (TdWire *wire, bool together)
{
  MpiWire *w = (MpiWire *)wire;
  int ended = 0;

  MPI_Finalized (&ended);
  if (!ended && together)
    {
      settle (w, true);
      MPI_Comm_free (&w->comm);
    }
  else if (!ended)
    settle (w, false);
  while (w->sent != NULL) /* what nobody has received yet */
    {
      Sent *s = w->sent;

      w->sent = s->next;
      s->next = late;
      late = s;
    }
  free (w);
}

static bool
mpi_meet_begin (TdWire *wire, const void *mine, void *all, size_t bytes, char *why)
{
  MpiWire *w = (MpiWire *)wire;

  return td_mpi_fine (MPI_Iallgather (mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                                      w->comm, &w->meeting),
                      "MPI_Iallgather", why);
}

static bool
mpi_meet_end (TdWire *wire, char *why)
{
  MpiWire *w = (MpiWire *)wire;

  return td_mpi_wait (&w->meeting, "MPI_Iallgather", why);
}

static bool
mpi_bcast (TdWire *wire, void *data, size_t bytes, int root, char *why)
{
  MpiWire *w = (MpiWire *)wire;

  for (size_t at = 0; at < bytes; at += PIECE)
    if (!td_mpi_fine (MPI_Bcast ((char *)data + at,
                                 (int)(bytes - at < PIECE ? bytes - at : PIECE), MPI_BYTE, root,
                                 w->comm),
                      "MPI_Bcast", why))
      return false;
  return true;
}

static bool
mpi_gather (TdWire *wire, const void *in, void *all, size_t bytes, char *why)
{
  MpiWire *w = (MpiWire *)wire;

  if (bytes <= INT_MAX)
    return td_mpi_fine (
        MPI_Allgather (in, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, w->comm),
        "MPI_Allgather", why);
  memcpy ((char *)all + (size_t)wire->rank * bytes, in, bytes);
  for (int r = 0; r < wire->size; r++)
    if (!mpi_bcast (wire, (char *)all + (size_t)r * bytes, bytes, r, why))
      return false;
  return true;
}

static bool
mpi_exchange (TdWire *wire, const void *in, void *out, size_t bytes, char *why)
{
  MpiWire *w = (MpiWire *)wire;

  if (bytes > INT_MAX)
    {
      snprintf (why, TD_WHY_WIRE, "%zu bytes for each rank; MPI takes %d at once", bytes,
                INT_MAX);
      return false;
    }
  return td_mpi_fine (
      MPI_Alltoall (in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, w->comm),
      "MPI_Alltoall", why);
}

static void
mpi_abort (TdWire *wire)
{
  if (wire->size > 1)
    MPI_Abort (((MpiWire *)wire)->comm, 1);
}

/* The message is copied: who sends does not wait for who receives, so that two ranks may send
 * to each other. */
static bool
mpi_send (TdWire *wire, const void *data, size_t bytes, int to, char *why)
{
  MpiWire *w = (MpiWire *)wire;
  bool sent = true;

  settle (w, false);
  for (size_t at = 0; at < bytes && sent; at += PIECE)
    {
      const size_t n = bytes - at < PIECE ? bytes - at : PIECE;
      Sent *s = malloc (sizeof *s);
      void *copy = malloc (n);

      if (s == NULL || copy == NULL)
        {
          free (s);
          free (copy);
          snprintf (why, TD_WHY_WIRE, "no memory for a message of %zu bytes", n);
          return false;
        }
      memcpy (copy, (const char *)data + at, n);
      *s = (Sent){ .data = copy, .next = w->sent, .request = MPI_REQUEST_NULL };
      sent = td_mpi_fine (MPI_Isend (copy, (int)n, MPI_BYTE, to, TAG, w->comm, &s->request),
                          "MPI_Isend", why);
      w->sent = s; /* one that failed is settled at once */
    }
  return sent;
}

static bool
mpi_receive (TdWire *wire, void *data, size_t bytes, int from, char *why)
{
  MpiWire *w = (MpiWire *)wire;

  for (size_t at = 0; at < bytes; at += PIECE)
    {
      MPI_Request request;

      if (!td_mpi_fine (MPI_Irecv ((char *)data + at,
                                   (int)(bytes - at < PIECE ? bytes - at : PIECE), MPI_BYTE,
                                   from, TAG, w->comm, &request),
                        "MPI_Irecv", why)
          || !td_mpi_wait (&request, "MPI_Irecv", why))
        return false;
    }
  return true;
}

static const TdTransport transport = { .abi = TD_TRANSPORT_ABI,
                                       .bytes = sizeof (TdTransport),
                                       .open = mpi_open,
                                       .split = mpi_split,
                                       .close = mpi_close,
                                       .meet_begin = mpi_meet_begin,
                                       .meet_end = mpi_meet_end,
                                       .bcast = mpi_bcast,
                                       .sum = td_mpi_sum,
                                       .sum_begin = td_mpi_sum_begin,
                                       .sum_test = td_mpi_sum_test,
                                       .sum_end = td_mpi_sum_end,
                                       .sum_drop = td_mpi_sum_drop,
                                       .gather = mpi_gather,
                                       .exchange = mpi_exchange,
                                       .abort = mpi_abort,
                                       .send = mpi_send,
                                       .receive = mpi_receive };

/** The module's table. */
__attribute__ ((visibility ("default"))) const TdTransport *
td_transport (const TdWireAdds *adds);

const TdTransport *
td_transport (const TdWireAdds *adds)
{
  td_mpi_sums_add_by (adds);
  return &transport;
}
