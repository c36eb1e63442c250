/* Communicators: making and ending them, and what a process does about them when it ends.
 *
 * SPDX-License-Identifier: MIT */
#include "teams.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static TdComm *open_comms;
static pid_t opened_by;
static const TdTransport *left_at_exit;
static uint64_t n_whole; /* communicators of all ranks that were made until now */

static TdComm *
inert_comm (void)
{
  static TdComm inert = { .inert = true, .rank = -1 };

  td__last_words_of_error ();
  return &inert;
}

bool (td__comm_usable) (const TdComm *comm, const char *call, const TdSite *site)
{
  if (td__stranger (call))
    return false;
  if (comm != NULL && !comm->inert && !comm->parted)
    return true;
  if (comm != NULL && comm->parted)
    td__fail (TD_ERR_STATE, call, site,
              "rank %d of %d: nothing can be sent since the ranks parted in call %llu (%s)",
              comm->rank, comm->size, (unsigned long long)comm->parted_at, comm->parting);
  else
    td__fail (TD_ERR_STATE, call, site, "%s",
              comm == NULL ? "the communicator is NULL"
              : comm->object.freed
                  ? "the communicator was freed"
                  : "the communicator is inert: its constructor failed before, "
                    "or this rank is in none");
  return false;
}

static void
comm_close (void *object, bool together)
{
  TdComm *comm = object;

  *comm->link = comm->next;
  if (comm->next != NULL)
    comm->next->link = comm->link;
  td__far_close (comm, together);
  comm->transport->close (comm->wire, together);
  free (comm->all);
  free (comm->n_sent);
  free (comm->n_received);
  free (comm->world);
  *comm = (TdComm){ .inert = true, .rank = -1, .object.freed = true };
  td__shell_keep (comm);
}

static void
comm_free (void *object)
{
  comm_close (object, false);
}

/* A program that ends without td_finish.  What is said is printed when the engine's own end
 * comes. */
static void
at_exit (void)
{
  if (getpid () == opened_by
      && td__last_words_due ()) /* a handler, or another thread, ends it */
    for (TdComm *c = open_comms; c != NULL; c = c->next)
      c->transport->abort (c->wire);
  td__ranks_leave ();
}

/* *Owner*: takes wire.  MPI's own end is registered before ours, and so comes after it. */
static TdComm *
comm_of (const TdTransport *transport, TdWire *wire)
{
  TdComm *comm = td__xcalloc (1, sizeof *comm);

  comm->transport = transport;
  comm->wire = wire;
  comm->rank = wire->rank;
  comm->size = wire->size;
  comm->intra_rank = wire->intra_rank;
  comm->intra_size = wire->intra_size;
  comm->inter_rank = wire->inter_rank;
  comm->inter_size = wire->inter_size;
  comm->all = td__xcalloc ((size_t)wire->size, sizeof *comm->all);
  comm->n_sent = td__xcalloc ((size_t)wire->size, sizeof *comm->n_sent);
  comm->n_received = td__xcalloc ((size_t)wire->size, sizeof *comm->n_received);
  comm->world = td__xcalloc ((size_t)wire->size, sizeof *comm->world);
  for (int r = 0; r < wire->size; r++)
    comm->world[r] = r;
  comm->link = &open_comms;
  comm->next = open_comms;
  if (open_comms != NULL)
    open_comms->link = &comm->next;
  open_comms = comm;
  td__object_add (&comm->object, comm_free);
  if (left_at_exit != transport)
    atexit (at_exit);
  left_at_exit = transport;
  opened_by = getpid ();
  return comm;
}

/* Has mpirun started this process?  Open MPI's says so by the first, others by the second. */
static bool
started_by_mpirun (void)
{
  return getenv ("OMPI_COMM_WORLD_SIZE") != NULL || getenv ("PMI_SIZE") != NULL;
}

/* Processes that something else has started together do not find each other: each would train
 * alone.  False after td__fail. */
static bool
lone_process (const TdSite *site)
{
  long number, n;

  td__process_number (&number, &n);
  if (n > 1)
    td__fail (TD_ERR_STATE, "td_comm_new", site,
              "this is process %ld of %ld that were started together here, but not by mpirun, "
              "and they cannot find each other: start them by tapedeck run -n, or by mpirun",
              number, n);
  return n <= 1;
}

/* The names there are, and what becomes of arrays on GPUs.  Of a process alone "mpi" alone
 * needs MPI. */
static const struct
{
  const char *name;
  TdFarWish wish;
} kinds[] = { { "mpi", TD_FAR_NEVER }, { "nccl", TD_FAR_MUST }, { "shm", TD_FAR_MACHINE } };

/* By its name; NULL after td__fail. */
static const TdTransport *
transport_of (const char *name, TdFarWish *wish, const TdSite *site)
{
  const TdTransport *t;
  const char *why;
  bool known = name == NULL;

  *wish = TD_FAR_CAN;
  for (int i = 0; i < TD_ARRAY_LENGTH (kinds) && !known; i++)
    {
      known = strcmp (name, kinds[i].name) == 0;
      *wish = kinds[i].wish;
    }
  if (!known)
    {
      td__fail (TD_ERR_ARG, "td_comm_new", site,
                "no communicator \"%.40s\": there are \"mpi\", \"nccl\" and \"shm\"", name);
      return NULL;
    }
  if (*wish != TD_FAR_NEVER && !started_by_mpirun ())
    return lone_process (site) ? &td__transport_alone : NULL;
  t = td__transport_mpi (&why);
  if (t == NULL)
    td__fail (TD_ERR_STATE, "td_comm_new", site, "MPI cannot be had: %.350s", why);
  return td__transport_slow (t);
}

/* Before one more is made: are all here for it?  They say so in the oldest of all ranks. */
static bool
all_come (const TdTransport *transport, const TdSite *site)
{
  const TdMeet mine = td__meet_of (TD_MEET_NEW, NULL, site);
  TdComm *oldest = NULL;

  for (TdComm *c = open_comms; c != NULL; c = c->next)
    if (c->whole && c->transport == transport)
      oldest = c;
  return oldest == NULL
         || (td__comm_usable (oldest, "td_comm_new", site)
             && td__meet (oldest, &mine, site) == TD_OK);
}

/* The first meeting of a communicator: is it one program, of one version, on all ranks? */
static bool
same_program (TdComm *comm, const TdSite *site)
{
  TdMeet mine = td__meet_of (TD_MEET_NEW, NULL, site);
  char path[4096];
  const ssize_t n = readlink ("/proc/self/exe", path, sizeof path - 1);
  const char *name;
  bool differs;
  int other = 1;

  path[n > 0 ? n : 0] = '\0';
  name = strrchr (path, '/');
  snprintf (mine.note, sizeof mine.note, "%.100s of Tapedeck " TD_VERSION,
            name != NULL ? name + 1 : path);
  mine.digest = td__digest (0, mine.note, strlen (mine.note));
  if (td__meet_digest (comm, &mine, &differs, site) != TD_OK)
    return false;
  td__watch_met ();
  while (differs && comm->all[other].digest == comm->all[0].digest)
    other++;
  if (differs)
    td__fail (TD_ERR_STATE, "td_comm_new", site,
              "rank %d of %d: rank 0 runs %.140s, rank %d %.140s: all ranks run one program",
              comm->rank, comm->size, comm->all[0].note, other, comm->all[other].note);
  return !differs;
}

/* "shm" is for one machine.  All ranks count the machines alike. */
static bool
fits_its_machine (const TdComm *comm, TdFarWish wish, const TdSite *site)
{
  if (wish != TD_FAR_MACHINE || comm->inter_size == 1)
    return true;
  td__fail (TD_ERR_STATE, "td_comm_new", site,
            "rank %d of %d: \"shm\" is for the ranks of one machine, and these are on %d: "
            "\"mpi\" connects them",
            comm->rank, comm->size, comm->inter_size);
  return false;
}

TdComm *
td_comm_new_at (const char *name, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  const TdTransport *transport;
  TdFarWish wish;
  TdWire *wire;
  TdComm *comm;

  if (!td__ensure_started () || td__check_thread ("td_comm_new") != TD_OK)
    return inert_comm ();
  transport = transport_of (name, &wish, site);
  if (transport != NULL && (!all_come (transport, site) || !td__watch_start (site)))
    return inert_comm ();
  td__watch_begin (site);
  wire = transport != NULL ? transport->open (why) : NULL;
  td__watch_leave ();
  if (wire == NULL)
    {
      if (transport != NULL)
        td__fail (TD_ERR_STATE, "td_comm_new", site, "%s", why);
      return inert_comm ();
    }
  comm = comm_of (transport, wire);
  comm->whole = true;
  comm->id = ++n_whole;
  td__last_words_start ();
  if (name == NULL && transport == &td__transport_alone)
    wish = TD_FAR_NEVER; /* there is nobody to exchange anything with */
  return same_program (comm, site)
                 && td__far_join (comm, td__engine.device, wish, site) == TD_OK
                 && fits_its_machine (comm, wish, site)
             ? comm
             : inert_comm ();
}

TdComm *
td_comm_new (const char *name)
{
  return td_comm_new_at (name, NULL);
}

/* A part knows its ranks by their numbers among all.  NULL and *why: nothing was sent. */
static TdComm *
part_of (TdComm *whole, TdWire *wire, int color, char *why)
{
  const uint64_t from[] = { whole->id, whole->seq, (uint64_t)color };
  TdComm *part = comm_of (whole->transport, wire);

  part->id = td__digest (0, from, sizeof from);
  part->mine.kind = TD_MEET_SPLIT; /* till its own first meeting */
  return part->transport->gather (wire, &whole->world[whole->rank], part->world,
                                  sizeof *part->world, why)
             ? part
             : NULL;
}

TdComm *
td_comm_split_at (TdComm *comm, int color, int key, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";
  TdComm *part;
  TdWire *wire;
  TdMeet mine;
  TdWait wait;

  if (!td__comm_usable (comm, "td_comm_split", site))
    return inert_comm ();
  mine = td__meet_of (TD_MEET_SPLIT, NULL, site);
  if (td__meet (comm, &mine, site) != TD_OK)
    return inert_comm ();
  wait = td__wait_begin (comm, TD_WAIT_EXCHANGE, 0, -1, site);
  wire = comm->transport->split (comm->wire, color, key, why);
  part = wire != NULL ? part_of (comm, wire, color, why) : NULL;
  td__wait_end (comm, &wait, part != NULL || why[0] == '\0');
  if (part != NULL)
    return comm->far == NULL
                   || td__far_join (part, comm->far->device, TD_FAR_MUST, site) == TD_OK
               ? part
               : inert_comm ();
  if (why[0] != '\0')
    td__comm_fail (comm, why, site);
  return inert_comm ();
}

TdComm *
td_comm_split (TdComm *comm, int color, int key)
{
  return td_comm_split_at (comm, color, key, NULL);
}

void
td_comm_free (TdComm *comm)
{
  TdMeet mine;
  bool together = false;

  if (td__stranger ("td_comm_free") || comm == NULL || comm->inert || !td__engine.started)
    return;
  mine = td__meet_of (TD_MEET_FREE, NULL, NULL);
  if (!comm->parted)
    together = td__meet (comm, &mine, NULL) == TD_OK;
  td__object_remove (&comm->object);
  comm_close (comm, together);
}

int
td_comm_rank (const TdComm *comm)
{
  return td__stranger ("td_comm_rank") || comm == NULL ? -1 : comm->rank;
}

int
td_comm_size (const TdComm *comm)
{
  return td__stranger ("td_comm_size") || comm == NULL ? 0 : comm->size;
}

/* Does it lie anywhere?  What is inert does not. */
static bool
has_place (const char *call, const TdComm *comm)
{
  return !td__stranger (call) && comm != NULL && !comm->inert;
}

int
td_comm_intra_rank (const TdComm *comm)
{
  return has_place ("td_comm_intra_rank", comm) ? comm->intra_rank : -1;
}

int
td_comm_intra_size (const TdComm *comm)
{
  return has_place ("td_comm_intra_size", comm) ? comm->intra_size : 0;
}

int
td_comm_inter_rank (const TdComm *comm)
{
  return has_place ("td_comm_inter_rank", comm) ? comm->inter_rank : -1;
}

int
td_comm_inter_size (const TdComm *comm)
{
  return has_place ("td_comm_inter_size", comm) ? comm->inter_size : 0;
}

/* Others may be waiting for an array of this rank. */
static void
say_goodbye (TdComm *c, const TdMeet *letter)
{
  char why[TD_WHY_WIRE];

  for (int r = 0; r < c->size; r++)
    if (r != c->rank)
      c->transport->send (c->wire, letter, sizeof *letter, r, why);
}

/* Begun on all communicators before any is waited for: the others may be waiting in each. */
int
td__ranks_leave (void)
{
  const TdMeet mine = td__meet_of (TD_MEET_FINISH, NULL, NULL);
  char why[TD_WHY_WIRE] = "";
  int status = 0;

  if (open_comms == NULL || getpid () != opened_by || td__last_words_due ())
    return 0;
  for (TdComm *c = open_comms; c != NULL; c = c->next)
    if (!c->parted)
      {
        say_goodbye (c, &mine);
        c->mine = mine;
        c->mine.seq = ++c->seq;
        c->parted = !c->transport->meet_begin (c->wire, &c->mine, c->all, sizeof mine, why);
      }
  for (TdComm *c = open_comms; c != NULL; c = c->next)
    {
      bool differs, ok;
      TdWait wait;

      if (c->parted)
        continue;
      wait = td__wait_begin (c, TD_WAIT_MEET, 0, -1, NULL);
      c->parted = true;
      ok = c->transport->meet_end (c->wire, why)
           && td__meet_compare (c, &differs, NULL) == TD_OK;
      status |= !td__wait_end (c, &wait, ok);
      td__far_close (c, ok); /* here all ranks are together, however they end */
    }
  if (status != 0)
    td__watch_early ();
  td__last_words_left ();
  return status;
}
