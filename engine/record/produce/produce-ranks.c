/* What a recorded rank has to do with others: when it waits for them, and the sums that they
 * are compared by.  SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include <string.h>

/* Ranks that hash in one way are compared, whichever that is. */
TdProducerStatus
td__producer_sum (TdProducer *p, const TdTapeRankSum *sum)
{
  TdRawRankSum *raw;

  if (!p->in_iteration || sum->path == 0 || sum->path > p->n_texts)
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "sum: outside an iteration, or of no path");
  raw = td__producer_record (p, TD_RAW_RANK_SUM, 0, sizeof *raw);
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->sum = *sum;
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}

/* ------------------------------------------------------------------------------ waiting */

static bool
is_letter (const TdProducerWait *w)
{
  return w->wait == TD_TAPE_WAIT_SEND || w->wait == TD_TAPE_WAIT_RECEIVE;
}

static const char *
wrong_in_wait (const TdProducer *p, const TdProducerWait *w)
{
  const unsigned known = TD_TAPE_COLLECTIVE_BEFORE | TD_TAPE_COLLECTIVE_FAILED
                         | TD_TAPE_COLLECTIVE_WHOLE | TD_TAPE_COLLECTIVE_BEHIND;

  if (w->wait >= TD_TAPE_N_WAITS)
    return "there is no such kind";
  if (w->comm == 0 || (w->seq == 0 && !is_letter (w)))
    return "communicators and their calls have numbers from 1 on";
  if (w->call == 0 || w->call > p->n_texts)
    return "the call has no name";
  if (w->place > p->n_places)
    return "there is no such place";
  if (w->rank >= w->n_ranks || w->n_ranks > INT32_MAX)
    return "the rank is not below the number of ranks";
  if (w->peer < -1 || (w->peer >= 0 && (uint32_t)w->peer >= w->n_ranks))
    return "there is no such peer";
  if ((w->flags & ~known) != 0)
    return "there is no such flag";
  if (w->dtype > TD_TAPE_N_DTYPES)
    return "there is no such dtype";
  if (w->end_ns != 0 && w->end_ns < w->start_ns)
    return "it ends before it starts";
  return NULL;
}

TdProducerStatus
td_producer_wait (TdProducer *p, const TdProducerWait *given)
{
  TdProducerStatus ready = td__producer_ready (p);
  TdProducerWait w;
  const char *wrong;
  TdRawWait *raw;

  if (ready != TD_PRODUCER_OK)
    return ready;
  wrong = td__producer_take (&w, sizeof w, given, sizeof w);
  if (wrong == NULL)
    wrong = wrong_in_wait (p, &w);
  if (wrong != NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "wait: %s", wrong);
  if (!p->in_iteration)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "wait: no iteration is open");
  raw = td__producer_record (p, TD_RAW_WAIT, 0, sizeof *raw);
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->start = td__producer_ticks (w.start_ns);
  raw->end = w.end_ns;
  raw->wait
      = (TdTapeCollective){ .comm = w.comm,
                            .seq = w.seq,
                            .bytes = w.bytes,
                            .site = w.place,
                            .call = w.call,
                            .rank = w.rank,
                            .size = w.n_ranks,
                            .peer = w.peer,
                            .wait = (uint8_t)w.wait,
                            .flags = (uint8_t)w.flags,
                            .dtype = w.dtype < TD_TAPE_N_DTYPES ? (uint8_t)(w.dtype + 1) : 0 };
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_show (TdProducer *p)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  if (!p->in_iteration)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "show: no iteration is open");
  td__producer_flush_memory (p);
  td_assembler_show_live_at (p->a, td__producer_ticks (0));
  td_tape_writer_flush (p->w);
  return td__producer_ready (p);
}
