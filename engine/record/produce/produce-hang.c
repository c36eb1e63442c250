/* A rank that waits for the others, as those see it, and for how long it may.
 * SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include "hang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ProducerHang
{
  TdHang hang;
  int *members;
  uint32_t *seen; /* of each rank: how many of its findings */
};

static void
hang_free (struct ProducerHang *h)
{
  td__where_close (&h->hang.where);
  free (h->members);
  free (h->seen);
  free (h);
}

/* The file of this run's ranks, which `tapedeck run -n` has made. */
static TdProducerStatus
find_others (TdProducer *p)
{
  struct ProducerHang *h;
  char why[200];
  int rank, n;

  if (p->hang != NULL)
    return TD_PRODUCER_OK;
  if (getenv (TD_WHERE_VARIABLE) == NULL || !td__where_rank (&rank, &n))
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "waiting: there are no other ranks");
  h = calloc (1, sizeof *h);
  if (h == NULL)
    return TD_PRODUCER_MEMORY;
  h->members = calloc ((size_t)n, sizeof *h->members);
  h->seen = calloc ((size_t)n, sizeof *h->seen);
  if (h->members == NULL || h->seen == NULL)
    {
      hang_free (h);
      return TD_PRODUCER_MEMORY;
    }
  if (!td__hang_set (&h->hang, why, sizeof why))
    {
      hang_free (h);
      return td__producer_refuse (p, TD_PRODUCER_WRONG, "waiting: %s", why);
    }
  if (!td__where_open (&h->hang.where, rank, n, false))
    {
      hang_free (h);
      return td__producer_refuse (p, TD_PRODUCER_FILE,
                                  "waiting: the file of the ranks cannot be written");
    }
  p->hang = h;
  return TD_PRODUCER_OK;
}

static const char *
wrong_in_waiting (const TdProducerWaiting *w, int n)
{
  if (w->call == NULL || *w->call == '\0')
    return "the call has no name";
  if (w->members == NULL || w->n_members == 0 || w->n_members > (uint32_t)n)
    return "it is of no ranks, or of more than there are";
  for (uint32_t i = 0; i < w->n_members; i++)
    if (w->members[i] < 0 || w->members[i] >= n)
      return "there is no such rank";
  if (w->from < -1 || w->from >= n)
    return "there is no rank that it comes from";
  return NULL;
}

TdProducerStatus
td_producer_waiting (TdProducer *p, const TdProducerWaiting *given)
{
  TdProducerStatus ready = td__producer_ready (p);
  TdProducerWaiting w;
  const char *wrong;

  if (ready == TD_PRODUCER_OK && (given != NULL || p->hang == NULL))
    ready = find_others (p);
  if (ready != TD_PRODUCER_OK)
    return ready;
  if (given == NULL)
    {
      td__hang_leave (&p->hang->hang);
      return TD_PRODUCER_OK;
    }
  wrong = td__producer_take (&w, sizeof w, given, sizeof w);
  if (wrong == NULL)
    wrong = wrong_in_waiting (&w, p->hang->hang.where.n);
  if (wrong != NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "waiting: %s", wrong);
  for (uint32_t i = 0; i < w.n_members; i++)
    p->hang->members[i] = w.members[i];
  td__hang_enter (&p->hang->hang, &(TdHangCall){ .comm = w.comm,
                                                 .seq = w.seq,
                                                 .call = w.call,
                                                 .file = w.file != NULL ? w.file : "",
                                                 .line = (int)w.line,
                                                 .from = w.from,
                                                 .members = p->hang->members,
                                                 .n_members = (int)w.n_members });
  return TD_PRODUCER_OK;
}

/* What another rank has said, once. */
static const char *
find_said (struct ProducerHang *h)
{
  for (int r = 0; r < h->hang.where.n; r++)
    {
      TdWherePage *page = td__where_page (&h->hang.where, r);
      const uint32_t n = atomic_load (&page->n_findings);

      if (n == h->seen[r])
        continue;
      h->seen[r] = n;
      page->finding[sizeof page->finding - 1] = '\0';
      return page->finding;
    }
  return NULL;
}

int
td_producer_hang (TdProducer *p, double passed_s, char *text, size_t size)
{
  TdHangAnswer answer;
  const char *said;

  if (size > 0)
    *text = '\0';
  if (p == NULL || p->hang == NULL || !(passed_s >= 0))
    return 0;
  answer = td__hang_look (&p->hang->hang, passed_s);
  said = find_said (p->hang);
  if (said != NULL && size > 0)
    snprintf (text, size, "%s", said);
  return answer == TD_HANG_ENDS;
}

void
td__producer_hang_end (TdProducer *p)
{
  if (p->hang == NULL)
    return;
  td__hang_leave (&p->hang->hang);
  hang_free (p->hang);
  p->hang = NULL;
}
