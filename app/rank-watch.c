/* A rank's supervisor and the others: see rank-watch.h.  SPDX-License-Identifier: MIT */
#include "rank-watch.h"

#include "alike.h"
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  LOOK_EVERY_NS = 100000000,
  STOP_WITHIN_NS = 300000000
};

static TdWherePage *
own_page (const TdRankWatch *w)
{
  return td__where_page (&w->where, w->where.rank);
}

void
td_rank_watch_open (TdRankWatch *w, const TdSupervisorOptions *o, const char *address)
{
  char path[4200];

  *w = (TdRankWatch){ .named = o->ranks_folder != NULL };
  if (o->n_ranks < 2)
    return;
  if (w->named)
    {
      td_rank_board (o->ranks_folder, path, sizeof path);
      setenv (TD_WHERE_VARIABLE, path, 1);
    }
  w->seen = calloc (o->n_ranks, sizeof *w->seen);
  if (w->seen != NULL && td__where_open (&w->where, (int)o->rank, (int)o->n_ranks, true))
    {
      setenv (TD_WHERE_VARIABLE, w->where.path, 1);
      snprintf (own_page (w)->address, sizeof own_page (w)->address, "%s", address);
      atomic_store (&own_page (w)->supervisor, (int32_t)getpid ());
    }
  else
    fprintf (stderr, "tapedeck: %s: cannot be written: other ranks do not hear of this one\n",
             w->where.path);
}

void
td_rank_watch_begin (TdRankWatch *w, pid_t pid)
{
  if (w->where.pages != NULL)
    atomic_store (&own_page (w)->pid, (int32_t)pid);
}

/* What the program runs now, or ran last. */
static void
put_now (TdRankWatch *w, const TdWhereNow *now)
{
  if (now->op[0] != '\0')
    own_page (w)->now = *now;
}

const char *
td_rank_watch_look (TdRankWatch *w, const TdControlRun *run, bool now)
{
  const int64_t time_ns = td__where_now ();
  TdWhereNow at;

  if (w->where.pages == NULL
      || (!now && time_ns >= w->looked_ns && time_ns - w->looked_ns < LOOK_EVERY_NS))
    return NULL;
  w->looked_ns = time_ns;
  td_control_where (run, &at);
  put_now (w, &at);
  atomic_store (&own_page (w)->stands, atomic_load (&run->page->stopped));
  for (int r = 0; r < w->where.n; r++)
    {
      TdWherePage *page = td__where_page (&w->where, r);
      const uint32_t n = atomic_load (&page->n_findings);

      if (n == w->seen[r])
        continue;
      w->seen[r] = n;
      page->finding[sizeof page->finding - 1] = '\0';
      return page->finding;
    }
  return NULL;
}

/* The newest that another rank has stopped, if all were told nothing else since. */
static void
find_stop (TdRankWatch *w)
{
  TdAlike *all = td__alike_of (&w->where);
  bool lost;

  for (; w->n_moves < atomic_load (&all->n_moves); w->n_moves++)
    {
      const TdAlikeMove *m = td__alike_move (all, w->n_moves + 1, &lost);

      if (m == NULL && !lost)
        return;
      w->stopped_ns = 0;
      if (m == NULL || m->rank == w->where.rank
          || strncmp (m->text, TD_ALIKE_HALT, strlen (TD_ALIKE_HALT)) != 0)
        continue;
      w->stopped_ns = td__where_now ();
      snprintf (w->stopped, sizeof w->stopped, "rank %d stopped: %.260s", m->rank,
                m->text + strlen (TD_ALIKE_HALT));
    }
}

const char *
td_rank_watch_stopped (TdRankWatch *w)
{
  TdWherePage *page;
  const size_t n = sizeof w->stopped;

  if (w->where.pages == NULL)
    return NULL;
  find_stop (w);
  page = own_page (w);
  if (w->stopped_ns == 0 || td__where_now () - w->stopped_ns < STOP_WITHIN_NS)
    return NULL;
  w->stopped_ns = 0;
  if (atomic_load (&page->standing) || !atomic_load (&page->waits))
    return NULL;
  snprintf (w->stopped + strlen (w->stopped), n - strlen (w->stopped),
            "; this rank waits for it in %.39s", page->call);
  return w->stopped;
}

void
td_rank_watch_told (TdRankWatch *w)
{
  if (w->where.pages != NULL)
    atomic_store (&own_page (w)->told, 1);
}

bool
td_rank_watch_reason (const TdRankWatch *w, char *text, size_t size)
{
  const int culprit = td__where_culprit (&w->where);

  if (w->where.pages == NULL || !atomic_load (&own_page (w)->told) || culprit < 0
      || atomic_load (&td__where_page (&w->where, culprit)->n_findings) > 0)
    return false;
  td__where_describe (&w->where, culprit, text, size);
  return true;
}

int
td_rank_watch_ended_by (const TdRankWatch *w)
{
  return w->where.pages != NULL ? atomic_load (&td__where_page (&w->where, 0)->ended_by) : 0;
}

void
td_rank_watch_end (TdRankWatch *w, const TdWhereNow *now, int status, int signal)
{
  TdWherePage *page;

  if (w->where.pages == NULL)
    return;
  put_now (w, now);
  page = own_page (w);
  if (signal != 0 && atomic_load (&page->told) && atomic_load (&page->early))
    {
      /* it was ending by itself, of a call that failed, when the others' end reached it */
      status = 1;
      signal = 0;
    }
  page->ended_ns = td__where_now ();
  page->status = status;
  page->signal = signal;
  if (signal == 0 && strcmp (page->call, "td_finish") == 0) /* before it heard of it */
    atomic_store (&page->told, 0);
  atomic_store (&page->ended, 1);
}

/* The last of this machine removes what nobody has named. */
void
td_rank_watch_close (TdRankWatch *w)
{
  bool last = w->where.pages != NULL && !w->named;

  if (w->where.pages != NULL)
    atomic_store (&own_page (w)->supervisor, 0);

  for (int r = 0; last && r < w->where.n; r++)
    {
      const TdWherePage *page = td__where_page (&w->where, r);

      last = atomic_load (&page->supervisor) == 0;
    }
  if (last)
    unlink (w->where.path);
  td__where_close (&w->where);
  free (w->seen);
}
