/* Looking after ranks that do not come: a thread that sees for how long this one has been in a
 * call for all ranks, and says after a time that can be set where each of them is.
 *
 * It is a thread, and no look at the clock between two tests, since MPI itself waits, too: when
 * it starts, splits, and carries bytes.  It calls nothing of MPI.  A rank whose parent has died
 * (its supervisor, or mpirun) it ends: nobody else would.
 *
 * SPDX-License-Identifier: MIT */
#include "comm.h"

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
  LATE_NS = 1000000000, /* a look that comes later than this: the process was stopped itself */
  MPIRUN_S = 10         /* for mpirun to end a rank, or to connect those that have come */
};

static struct
{
  pthread_mutex_t lock; /* of what follows; never held while the program computes */
  TdWhere where;
  const int *members; /* of the communicator in which this rank waits; NULL: all */
  int n_members;
  uint64_t n_waits; /* begun until now */

  double limit_s; /* 0: none */
  bool stay;      /* what does not get on is left as it is */
  bool spares;    /* nothing is ended while some rank computes */
  pid_t self, parent;
  int *all; /* 0, 1, 2 ... */

  /* of the thread */
  uint64_t seen;
  double waited_s;
  bool said;
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER };

const TdWhere *
td__watch_where (void)
{
  return &watch.where;
}

void
td__watch_early (void)
{
  if (watch.where.pages != NULL && watch.where.rank >= 0)
    atomic_store (&td__where_page (&watch.where, watch.where.rank)->early, 1);
}

/* One rank says it for all: unless mpirun is about to end them anyway, since one has died, or
 * since one that has said it has ended.  Where all have come it is for MPI to get on, which
 * may take its time to start on a busy machine. */
static bool
claim (void)
{
  uint32_t nobody = 0;
  const uint32_t mine = (uint32_t)watch.where.rank + 1;
  _Atomic uint32_t *word = &td__where_page (&watch.where, 0)->claim;

  if (watch.waited_s >= watch.limit_s + MPIRUN_S && (!watch.stay || atomic_load (word) == 0))
    return true;
  return td__where_culprit (&watch.where) < 0
         && td__where_missing (&watch.where, watch.members, watch.n_members) > 0
         && (atomic_compare_exchange_strong (word, &nobody, mine) || nobody == mine);
}

/* Is it not for this one to end what waits? */
static bool
is_waited_for (void)
{
  return td__where_stands (&watch.where) /* somebody looks at it */
         || (watch.spares && td__where_computes (&watch.where));
}

static void
say (void)
{
  TdWherePage *page = td__where_page (&watch.where, watch.where.rank);
  char line[TD_WHERE_LINE + 100];

  td__where_finding (&watch.where, watch.members, watch.n_members, watch.limit_s, page->finding,
                     sizeof page->finding);
  snprintf (line, sizeof line, "tapedeck: %s%s\n", page->finding,
            watch.stay         ? "; all are left as they are"
            : is_waited_for () ? "; it is waited for"
                               : "; all are ended");
  if (write (STDERR_FILENO, line, strlen (line)) < 0)
    page->finding[0] = '\0'; /* nobody hears us; the tape still does by the next line */
  atomic_fetch_add (&page->n_findings, 1);
}

/* A process that ends so, without MPI's end, is what mpirun ends the others for. */
static void
end_all (void)
{
  fflush (stdout);
  _exit (1);
}

static void
look (double passed_s)
{
  if (watch.seen != watch.n_waits || watch.n_members == 0)
    {
      watch.seen = watch.n_waits;
      watch.waited_s = 0;
      watch.said = false;
    }
  if (watch.n_members == 0 || watch.limit_s <= 0 || watch.where.pages == NULL)
    return;
  watch.waited_s += passed_s;
  if (!watch.said && watch.waited_s >= watch.limit_s && claim ())
    {
      say ();
      watch.said = true;
    }
  if (!watch.said || watch.stay)
    return;
  if (is_waited_for ())
    watch.waited_s = 0;
  else if (watch.waited_s >= watch.limit_s)
    end_all ();
}

static void
look_at_parent (void)
{
  char line[160];

  if (getppid () == watch.parent)
    return;
  snprintf (line, sizeof line,
            "tapedeck: rank %d of %d ends: the process that started it has died\n",
            watch.where.rank, watch.where.n);
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
      look ((double)(passed < LATE_NS ? passed : LATE_NS) / 1e9);
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
  if (failed != 0 && watch.limit_s > 0)
    fprintf (stderr,
             "tapedeck: rank %d of %d: no thread can be had (%s): a rank that does not "
             "come is not named\n",
             watch.where.rank, watch.where.n, strerror (failed));
}

/* How long may a rank wait?  False after td__fail. */
static bool
take_settings (const TdSite *site)
{
  const char *after = getenv (TD_WHERE_HANG_VARIABLE),
             *then = getenv (TD_WHERE_ON_HANG_VARIABLE);
  char *end = NULL;

  watch.limit_s = after != NULL ? strtod (after, &end) : 0;
  if (after != NULL
      && (end == after || *end != '\0' || !(watch.limit_s >= 0) || watch.limit_s > 1e9))
    {
      watch.limit_s = 0;
      td__fail (TD_ERR_ARG, "td_comm_new", site,
                TD_WHERE_HANG_VARIABLE
                " is \"%.40s\": a number of seconds expected, 0 for no limit",
                after);
      return false;
    }
  watch.stay = then != NULL && strcmp (then, "stop") == 0;
  watch.spares = then != NULL && strcmp (then, "stuck") == 0;
  if (then == NULL || watch.stay || watch.spares || strcmp (then, "abort") == 0)
    return true;
  td__fail (TD_ERR_ARG, "td_comm_new", site,
            TD_WHERE_ON_HANG_VARIABLE " is \"%.40s\": abort, stuck or stop expected", then);
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
  if (!td__where_open (&watch.where, rank, n, !supervised) && watch.limit_s > 0)
    fprintf (stderr,
             "tapedeck: rank %d of %d: %.300s cannot be written: a rank that does not come is "
             "not named\n",
             rank, n, watch.where.path);
  if (watch.where.pages != NULL)
    atomic_store (&td__where_page (&watch.where, rank)->pid, (int32_t)watch.self);
  start_thread ();
  return true;
}

void
td__watch_met (void)
{
  if (watch.where.pages != NULL && getenv (TD_WHERE_VARIABLE) == NULL)
    unlink (watch.where.path); /* all have it */
}

/* m: what this rank does; members: with whom. */
static void
enter (const TdMeet *m, uint64_t comm, const int *members, int n_members)
{
  TdWherePage *page;

  if (watch.where.pages == NULL || getpid () != watch.self)
    return;
  page = td__where_page (&watch.where, watch.where.rank);
  pthread_mutex_lock (&watch.lock);
  watch.members = members;
  watch.n_members = n_members;
  watch.n_waits++;
  atomic_store_explicit (&page->waits, 0, memory_order_relaxed);
  page->comm = comm;
  page->seq = m->seq;
  page->n_members = n_members;
  page->from = m->kind == TD_MEET_RECV && m->root >= 0 ? members[m->root] : -1;
  page->line = m->line;
  snprintf (page->call, sizeof page->call, "%s", td__meet_name ((TdMeetKind)m->kind));
  memcpy (page->file, m->file, sizeof page->file);
  page->since_ns = td__where_now ();
  atomic_store_explicit (&page->waits, 1, memory_order_release);
  pthread_mutex_unlock (&watch.lock);
}

void
td__watch_begin (const TdSite *site)
{
  const TdMeet mine = td__meet_of (TD_MEET_NEW, NULL, site);

  enter (&mine, 0, watch.all, watch.where.n);
}

void
td__watch_enter (const TdComm *comm)
{
  enter (&comm->mine, comm->id, comm->world, comm->size);
}

void
td__watch_leave (void)
{
  uint32_t mine = (uint32_t)watch.where.rank + 1;
  TdWherePage *page;

  if (watch.where.pages == NULL || getpid () != watch.self)
    return;
  page = td__where_page (&watch.where, watch.where.rank);
  pthread_mutex_lock (&watch.lock);
  watch.n_members = 0;
  page->since_ns = td__where_now ();
  atomic_store_explicit (&page->waits, 0, memory_order_release);
  atomic_compare_exchange_strong (&td__where_page (&watch.where, 0)->claim, &mine, 0);
  pthread_mutex_unlock (&watch.lock);
}
