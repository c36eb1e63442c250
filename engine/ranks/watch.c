/* Looking after ranks that do not come: a thread that sees for how long this one has been in a
 * call for all ranks, and says after a time that can be set where each of them is.
 *
 * It is a thread, and no look at the clock between two tests, since MPI itself waits, too: when
 * it starts, splits, and carries bytes.  It calls nothing of MPI.  A rank whose parent has died
 * (its supervisor, or mpirun) it ends: nobody else would.
 *
 * SPDX-License-Identifier: MIT */
#include "comm.h"

#include "hang.h"
#include "host-memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum
{
  LOOK_NS = 50000000,
  LATE_NS = 1000000000 /* a look that comes later than this: the process was stopped itself */
};

static struct
{
  pthread_mutex_t lock; /* of what follows; never held while the program computes */
  TdHang hang;
  pid_t self, parent;
  int *all; /* 0, 1, 2 ... */
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER };

const TdWhere *
td__watch_where (void)
{
  return &watch.hang.where;
}

void
td__watch_early (void)
{
  if (watch.hang.where.pages != NULL && watch.hang.where.rank >= 0)
    atomic_store (&td__where_page (&watch.hang.where, watch.hang.where.rank)->early, 1);
}

/* A process that ends so, without MPI's end, is what mpirun ends the others for. */
static void
end_all (void)
{
  fflush (stdout);
  _exit (1);
}

static void
look_at_parent (void)
{
  char line[160];

  if (getppid () == watch.parent)
    return;
  snprintf (line, sizeof line,
            "tapedeck: rank %d of %d ends: the process that started it has died\n",
            watch.hang.where.rank, watch.hang.where.n);
  if (write (STDERR_FILENO, line, strlen (line)) >= 0)
    fflush (stdout);
  _exit (1);
}

/* Time in which this process was stopped, all of it, counts for nobody. */
static void *
look_on (void *unused)
{
  const struct timespec nap = { 0, LOOK_NS };
  struct timespec last, now;

  (void)unused;
  clock_gettime (CLOCK_MONOTONIC, &last);
  for (;;)
    {
      int64_t passed;

      nanosleep (&nap, NULL);
      clock_gettime (CLOCK_MONOTONIC, &now);
      passed = (now.tv_sec - last.tv_sec) * 1000000000 + (now.tv_nsec - last.tv_nsec);
      last = now;
      look_at_parent ();
      pthread_mutex_lock (&watch.lock);
      if (td__hang_look (&watch.hang, (double)(passed < LATE_NS ? passed : LATE_NS) / 1e9)
          == TD_HANG_ENDS)
        end_all ();
      pthread_mutex_unlock (&watch.lock);
    }
  return NULL;
}

/* Signals are the program's, in its own thread. */
static void
start_thread (void)
{
  pthread_attr_t attributes;
  sigset_t all, before;
  pthread_t thread;
  int failed;

  sigfillset (&all);
  pthread_attr_init (&attributes);
  pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  failed = pthread_create (&thread, &attributes, look_on, NULL);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  pthread_attr_destroy (&attributes);
  if (failed != 0 && watch.hang.limit_s > 0)
    fprintf (stderr,
             "tapedeck: rank %d of %d: no thread can be had (%s): a rank that does not "
             "come is not named\n",
             watch.hang.where.rank, watch.hang.where.n, strerror (failed));
}

/* How long may a rank wait?  False after td__fail. */
static bool
take_settings (const TdSite *site)
{
  char why[200];

  if (td__hang_set (&watch.hang, why, sizeof why))
    return true;
  td__fail (TD_ERR_ARG, "td_comm_new", site, "%s", why);
  return false;
}

bool
td__watch_start (const TdSite *site)
{
  static bool started;
  bool supervised;
  int rank, n;

  if (started || !td__where_rank (&rank, &n))
    return true;
  if (!take_settings (site))
    return false;
  started = true;
  supervised = getenv (TD_WHERE_VARIABLE) != NULL;
  watch.self = getpid ();
  watch.parent = getppid ();
  watch.all = td__xcalloc ((size_t)n, sizeof *watch.all);
  for (int r = 0; r < n; r++)
    watch.all[r] = r;
  if (!td__where_open (&watch.hang.where, rank, n, !supervised) && watch.hang.limit_s > 0)
    fprintf (stderr,
             "tapedeck: rank %d of %d: %.300s cannot be written: a rank that does not come is "
             "not named\n",
             rank, n, watch.hang.where.path);
  if (watch.hang.where.pages != NULL)
    atomic_store (&td__where_page (&watch.hang.where, rank)->pid, (int32_t)watch.self);
  start_thread ();
  return true;
}

void
td__watch_met (void)
{
  if (watch.hang.where.pages != NULL && getenv (TD_WHERE_VARIABLE) == NULL)
    unlink (watch.hang.where.path); /* all have it */
}

/* m: what this rank does; members: with whom. */
static void
enter (const TdMeet *m, uint64_t comm, const int *members, int n_members)
{
  const TdHangCall call
      = { .comm = comm,
          .seq = m->seq,
          .call = td__meet_name ((TdMeetKind)m->kind),
          .file = m->file,
          .line = m->line,
          .from = m->kind == TD_MEET_RECV && m->root >= 0 ? members[m->root] : -1,
          .members = members,
          .n_members = n_members };

  if (watch.hang.where.pages == NULL || getpid () != watch.self)
    return;
  pthread_mutex_lock (&watch.lock);
  td__hang_enter (&watch.hang, &call);
  pthread_mutex_unlock (&watch.lock);
}

void
td__watch_begin (const TdSite *site)
{
  const TdMeet mine = td__meet_of (TD_MEET_NEW, NULL, site);

  enter (&mine, 0, watch.all, watch.hang.where.n);
}

void
td__watch_enter (const TdComm *comm)
{
  enter (&comm->mine, comm->id, comm->world, comm->size);
}

void
td__watch_leave (void)
{
  if (watch.hang.where.pages == NULL || getpid () != watch.self)
    return;
  pthread_mutex_lock (&watch.lock);
  td__hang_leave (&watch.hang);
  pthread_mutex_unlock (&watch.lock);
}
