/* What a rank waited for, and sums, as records of their iteration.
 *
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#define MOST_BEGUN 1024 /* elements that one which ends is looked for among */

/* The one that began, if this is its end: the last, or one of several on their way behind other
 * work; a letter has a number when it is known who has sent it. */
static TdTapeCollective *
begun (const TdAssembler *a, const TdTapeCollective *c)
{
  TdTapeCollective *all = a->rank_waits.items;

  for (uint32_t i = a->rank_waits.n, n = 0; i-- > 0 && n < MOST_BEGUN; n++)
    if ((all[i].flags & TD_TAPE_COLLECTIVE_WAITS) && all[i].comm == c->comm
        && (all[i].seq == c->seq || all[i].seq == 0) && all[i].wait == c->wait
        && !((all[i].flags ^ c->flags) & TD_TAPE_COLLECTIVE_BEHIND))
      return &all[i];
  return NULL;
}

void
td__feed_wait (TdAssembler *a, const TdRawHead *head)
{
  const TdRawWait *raw = (const TdRawWait *)head;
  const uint64_t start = td__assembler_ns (a, raw->start);
  TdTapeCollective *to;

  if (!a->state.in_iteration || raw->wait.wait >= TD_TAPE_N_WAITS) /* of a damaged ring */
    return;
  to = raw->end != 0 ? begun (a, &raw->wait) : NULL;
  if (to == NULL)
    {
      to = td__list_add (&a->rank_waits, sizeof *to);
      if (to == NULL)
        return;
      *to = raw->wait;
      to->event = a->state.n_events;
      to->site = td__alias (&a->sites, raw->wait.site).id;
      to->call = td__alias (&a->strings, raw->wait.call).id;
      to->start_ns = start;
    }
  to->flags = raw->wait.flags;
  to->seq = raw->wait.seq;
  to->peer = raw->wait.peer;
  if (raw->end != 0)
    {
      const uint64_t end = td__assembler_ns (a, raw->end);

      to->duration_ns = end > start ? end - start : 0;
    }
  else
    to->flags |= TD_TAPE_COLLECTIVE_WAITS;
}

void
td__feed_rank_sum (TdAssembler *a, const TdRawHead *head)
{
  const TdRawRankSum *raw = (const TdRawRankSum *)head;
  TdTapeRankSum *to;

  if (!a->state.in_iteration || raw->sum.kind >= TD_TAPE_N_SUMS
      || (to = td__list_add (&a->rank_sums, sizeof *to)) == NULL)
    return;
  *to = raw->sum;
  to->event = a->state.n_events;
  to->path = td__alias (&a->strings, raw->sum.path).id;
  if (to->kind == TD_TAPE_SUM_PARAMETER || to->kind == TD_TAPE_SUM_STATE
      || to->kind == TD_TAPE_SUM_GRADIENT)
    to->n_averaged = td__alias (&a->sites, raw->sum.n_averaged).id;
}
