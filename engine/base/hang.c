/* Ranks that do not come: see hang.h.  SPDX-License-Identifier: MIT */
#include "hang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  MPIRUN_S = 10 /* for mpirun to end a rank, or to connect those that have come */
};

/* A claim that is not given back: who said what is wrong is ended, and all others with it. */
static const uint32_t for_good = UINT32_MAX;

bool
td__hang_set (TdHang *h, char *why, size_t size)
{
  const char *after = getenv (TD_WHERE_HANG_VARIABLE),
             *then = getenv (TD_WHERE_ON_HANG_VARIABLE);
  char *end = NULL;

  h->limit_s = after != NULL ? strtod (after, &end) : 0;
  if (after != NULL && (end == after || *end != '\0' || !(h->limit_s >= 0) || h->limit_s > 1e9))
    {
      h->limit_s = 0;
      snprintf (why, size,
                TD_WHERE_HANG_VARIABLE
                " is \"%.40s\": a number of seconds expected, 0 for no limit",
                after);
      return false;
    }
  h->stay = then != NULL && strcmp (then, "stop") == 0;
  h->spares = then != NULL && strcmp (then, "stuck") == 0;
  if (then == NULL || h->stay || h->spares || strcmp (then, "abort") == 0)
    return true;
  snprintf (why, size, TD_WHERE_ON_HANG_VARIABLE " is \"%.40s\": abort, stuck or stop expected",
            then);
  return false;
}

void
td__hang_enter (TdHang *h, const TdHangCall *call)
{
  TdWherePage *page;

  if (h->where.pages == NULL)
    return;
  page = td__where_page (&h->where, h->where.rank);
  h->members = call->members;
  h->n_members = call->n_members;
  h->n_waits++;
  atomic_store_explicit (&page->waits, 0, memory_order_relaxed);
  page->comm = call->comm;
  page->seq = call->seq;
  page->n_members = call->n_members;
  page->from = call->from;
  page->line = call->line;
  snprintf (page->call, sizeof page->call, "%s", call->call);
  snprintf (page->file, sizeof page->file, "%s", call->file);
  page->since_ns = td__where_now ();
  atomic_store_explicit (&page->waits, 1, memory_order_release);
}

void
td__hang_leave (TdHang *h)
{
  uint32_t mine = (uint32_t)h->where.rank + 1;
  TdWherePage *page;

  if (h->where.pages == NULL)
    return;
  page = td__where_page (&h->where, h->where.rank);
  h->n_members = 0;
  page->since_ns = td__where_now ();
  atomic_store_explicit (&page->waits, 0, memory_order_release);
  atomic_compare_exchange_strong (&td__where_page (&h->where, 0)->claim, &mine, 0);
}

/* One rank says it for all: unless mpirun is about to end them anyway, since one has died, or
 * since one that has said it has ended.  Where all have come it is for the library to get on,
 * which may take its time to start on a busy machine. */
static bool
claim (const TdHang *h)
{
  uint32_t nobody = 0;
  const uint32_t mine = (uint32_t)h->where.rank + 1;
  _Atomic uint32_t *word = &td__where_page (&h->where, 0)->claim;

  if (h->waited_s >= h->limit_s + MPIRUN_S && (!h->stay || atomic_load (word) == 0))
    return true;
  return td__where_culprit (&h->where) < 0
         && td__where_missing (&h->where, h->members, h->n_members) > 0
         && (atomic_compare_exchange_strong (word, &nobody, mine) || nobody == mine);
}

/* Is it not for this one to end what waits? */
static bool
is_waited_for (const TdHang *h)
{
  return td__where_stands (&h->where) /* somebody looks at it */
         || (h->spares && td__where_computes (&h->where));
}

static void
say (const TdHang *h)
{
  TdWherePage *page = td__where_page (&h->where, h->where.rank);
  char line[TD_WHERE_LINE + 100];

  td__where_finding (&h->where, h->members, h->n_members, h->limit_s, page->finding,
                     sizeof page->finding);
  snprintf (line, sizeof line, "tapedeck: %s%s\n", page->finding,
            h->stay             ? "; all are left as they are"
            : is_waited_for (h) ? "; it is waited for"
                                : "; all are ended");
  if (write (STDERR_FILENO, line, strlen (line)) < 0)
    page->finding[0] = '\0'; /* nobody hears us; the tape still does by the next line */
  atomic_fetch_add (&page->n_findings, 1);
}

TdHangAnswer
td__hang_look (TdHang *h, double passed_s)
{
  TdHangAnswer answer = TD_HANG_NOTHING;

  if (h->seen != h->n_waits || h->n_members == 0)
    {
      h->seen = h->n_waits;
      h->waited_s = 0;
      h->said = false;
    }
  if (h->n_members == 0 || h->limit_s <= 0 || h->where.pages == NULL)
    return TD_HANG_NOTHING;
  h->waited_s += passed_s;
  if (!h->said && h->waited_s >= h->limit_s && claim (h))
    {
      if (!h->stay && !is_waited_for (h))
        atomic_store (&td__where_page (&h->where, 0)->claim, for_good);
      say (h);
      h->said = true;
      answer = TD_HANG_SAID;
    }
  if (!h->said || h->stay)
    return answer;
  if (is_waited_for (h))
    h->waited_s = 0;
  else if (h->waited_s >= h->limit_s)
    return TD_HANG_ENDS;
  return answer;
}
