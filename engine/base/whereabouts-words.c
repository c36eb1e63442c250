/* Where the ranks of a run are, in words: see whereabouts.h.  SPDX-License-Identifier: MIT */
#include "whereabouts.h"
#include "process.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum
{
  MOST_DESCRIBED = 4 /* of a large run, beside as many that wait themselves */
};

typedef struct
{
  char *text;
  size_t used, size;
} Words;

static __attribute__ ((format (printf, 2, 3))) void
say (Words *w, const char *format, ...)
{
  va_list args;
  int n;

  va_start (args, format);
  n = vsnprintf (w->text + w->used, w->size - w->used, format, args);
  va_end (args);
  w->used = n < 0 ? w->used : w->used + (size_t)n < w->size ? w->used + (size_t)n : w->size - 1;
}

/* "td_comm_barrier of 2 ranks (call 3, a.c:12)" */
static void
say_call (Words *w, const TdWhere *where, const TdWherePage *p)
{
  say (w, "%.39s", p->call);
  if (p->from >= 0)
    say (w, " from rank %d", p->from);
  if (p->n_members > 0 && p->n_members < where->n)
    say (w, " of %d ranks", p->n_members);
  if (p->seq > 0)
    say (w, " (call %" PRIu64 "%s", p->seq, p->file[0] != '\0' ? ", " : "");
  else if (p->file[0] != '\0')
    say (w, " (");
  if (p->file[0] != '\0')
    say (w, "%.43s:%d", p->file, p->line);
  if (p->seq > 0 || p->file[0] != '\0')
    say (w, ")");
}

/* Clocks of several machines may differ. */
static int64_t
seconds_since (const TdWherePage *p)
{
  const int64_t passed = td__where_now () - p->since_ns;

  return passed > 0 ? passed / 1000000000 : 0;
}

/* Of a process of this machine, as the kernel says: 'T' is stopped; 0: it is gone. */
static char
state_of (int pid)
{
  TdProcess process;

  if (!td__process_read (pid, &process))
    return kill (pid, 0) == 0 || errno != ESRCH ? '?' : 0;
  return process.state != 'Z' ? process.state : 0;
}

/* An operation that has ended is not where the program is: that is after it, and it may be in
 * the next iteration by now. */
static void
say_now (Words *w, const TdWhereNow *now)
{
  if (now->op[0] == '\0')
    return;
  if (atomic_load (&now->running))
    say (w, " in %.127s at %.255s", now->op, now->where);
  else if (now->progress == TD_WHERE_BEGUN)
    say (w, " at the beginning of iteration %" PRId64, now->iteration);
  if (!atomic_load (&now->running))
    say (w, ", after %.127s at %.255s", now->op, now->where);
  if (now->progress == TD_WHERE_INSIDE
      || (now->progress == TD_WHERE_BEGUN && atomic_load (&now->running)))
    say (w, ", in iteration %" PRId64, now->iteration);
  else if (now->progress == TD_WHERE_BEHIND)
    say (w, ", behind iteration %" PRId64, now->iteration);
}

void
td__where_place (const TdWhereNow *now, char *text, size_t size)
{
  Words w = { text, 0, size };

  text[0] = '\0';
  say_now (&w, now);
}

/* In the call for all ranks that it waited in, if it did: its operations have ended before. */
static void
say_ended (Words *w, const TdWhere *where, const TdWherePage *p)
{
  if (p->signal != 0)
    say (w, " was ended by signal %d (%s)", p->signal, strsignal (p->signal));
  else
    say (w, " has ended with status %d%s", p->status,
         atomic_load (&p->early) ? " (exit or td_finish) while others went on" : "");
  if (p->signal != 0 && atomic_load (&p->waits))
    {
      say (w, " in ");
      say_call (w, where, p);
    }
  say_now (w, &p->now);
}

void
td__where_describe (const TdWhere *where, int rank, char *text, size_t size)
{
  const TdWherePage *p = td__where_page (where, rank);
  const int pid = atomic_load (&p->pid);
  Words w = { text, 0, size };
  char state;

  say (&w, "rank %d", rank);
  if (pid == 0 && !atomic_load (&p->ended))
    {
      say (&w, " has not begun, or is on a machine that this one cannot see");
      return;
    }
  if (atomic_load (&p->ended))
    {
      say_ended (&w, where, p);
      return;
    }
  state = td__where_is_here (where, p) ? state_of (pid) : '?';
  if (td__where_is_here (where, p))
    say (&w, " (pid %d)", pid);
  else
    say (&w, " (pid %d on %.63s)", pid, p->host);
  if (state == 0)
    say (&w, strcmp (p->call, "td_finish") == 0 ? " has ended" : " has died");
  else if (atomic_load (&p->stands))
    say (&w, " stands at a breakpoint");
  else if (state == 'T' || state == 't')
    say (&w, " is stopped (by a signal or a debugger)");
  else if (atomic_load (&p->waits))
    {
      say (&w, " waits in ");
      say_call (&w, where, p);
      say (&w, " for %" PRId64 " s", seconds_since (p));
      return;
    }
  else
    say (&w, atomic_load (&p->now.running) ? " is" : " is elsewhere");
  say_now (&w, &p->now);
  if (p->call[0] == '\0')
    say (&w, ", and has been in no call for all ranks");
  else
    {
      const bool waits = atomic_load (&p->waits);

      say (&w, waits ? ", in " : ", after ");
      say_call (&w, where, p);
      say (&w, waits ? " for %" PRId64 " s" : " %" PRId64 " s ago", seconds_since (p));
    }
}

/* Can it go on, as far as the kernel knows?  One of another machine may. */
static bool
is_stopped (const TdWhere *where, const TdWherePage *p)
{
  const char state = td__where_is_here (where, p) ? state_of (atomic_load (&p->pid)) : '?';

  return state == 0 || state == 'T' || state == 't';
}

/* Is that rank in the call that this one waits in?  Who ends has come to every call there is.
 */
static bool
has_come (const TdWhere *where, int rank)
{
  const TdWherePage *mine = td__where_page (where, where->rank);
  const TdWherePage *other = td__where_page (where, rank);

  if (mine->from >= 0 || !atomic_load (&other->waits) || is_stopped (where, other))
    return false;
  return (other->comm == mine->comm && other->seq >= mine->seq && other->from < 0)
         || strcmp (other->call, "td_finish") == 0;
}

bool
td__where_computes (const TdWhere *where)
{
  for (int r = 0; r < where->n; r++)
    {
      const TdWherePage *p = td__where_page (where, r);

      if (atomic_load (&p->pid) != 0 && !atomic_load (&p->ended) && !atomic_load (&p->waits)
          && !is_stopped (where, p))
        return true;
    }
  return false;
}

int
td__where_missing (const TdWhere *where, const int *members, int n_members)
{
  const TdWherePage *mine = td__where_page (where, where->rank);
  int n = 0;

  for (int i = 0; i < n_members; i++)
    n += members[i] != where->rank && !has_come (where, members[i])
         && (mine->from < 0 || members[i] == mine->from);
  return n;
}

/* The ranks that have come or that have not, named or described. */
static int
list (Words *w, const TdWhere *where, const int *members, int n_members, bool come,
      bool describe)
{
  const TdWherePage *mine = td__where_page (where, where->rank);
  char text[TD_WHERE_LINE / 3];
  int n = 0;

  for (int i = 0; i < n_members; i++)
    {
      const int r = members[i];

      if (r == where->rank || has_come (where, r) != come
          || (!come && mine->from >= 0 && r != mine->from) || n++ >= MOST_DESCRIBED)
        continue;
      if (describe)
        td__where_describe (where, r, text, sizeof text);
      else
        snprintf (text, sizeof text, "rank %d", r);
      say (w, "%s%s", describe ? "; " : n > 1 ? ", " : " for ", text);
    }
  if (n > MOST_DESCRIBED)
    say (w, " and %d more", n - MOST_DESCRIBED);
  return n;
}

/* Does one wait in another call that has this one's number? */
static bool
meets_other (const TdWhere *where, const int *members, int n_members)
{
  const TdWherePage *mine = td__where_page (where, where->rank);

  for (int i = 0; i < n_members; i++)
    {
      const TdWherePage *other = td__where_page (where, members[i]);

      if (atomic_load (&other->waits) && other->comm == mine->comm && other->seq == mine->seq
          && strcmp (other->call, mine->call) != 0)
        return true;
    }
  return false;
}

void
td__where_finding (const TdWhere *where, const int *members, int n_members, double seconds,
                   char *text, size_t size)
{
  const TdWherePage *mine = td__where_page (where, where->rank);
  Words w = { text, 0, size };

  say (&w, "rank %d of %d has waited %g s in ", where->rank, where->n, seconds);
  say_call (&w, where, mine);
  if (list (&w, where, members, n_members, false, false) == 0)
    say (&w, meets_other (where, members, n_members)
                 ? ", while others wait in another call: all must make the same in one order"
                 : ", where all others are, too: what connects them does not get on");
  list (&w, where, members, n_members, false, true);
  if (mine->from < 0)
    list (&w, where, members, n_members, true, true);
}
