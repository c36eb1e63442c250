/* An iterator that gives all ranks the same rows in the same order: rank 0's place and the
 * state of its random numbers go to all.
 *
 * *Source*: chainermn.iterators.create_synchronized_iterator.
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "train/loop/iterator.h"

#include <string.h>

/* A cursor, as it is sent; the order follows it. */
typedef struct
{
  uint64_t seed, random;
  int64_t position, epoch, count, drawn;
  double previous_epoch_detail;
  int64_t is_new_epoch;
} Place;

static Place
place_of (const TdIter *it)
{
  Place p;

  memset (&p, 0, sizeof p); /* its bytes are sent */
  p.seed = it->seed;
  p.random = it->at.random;
  p.position = it->at.position;
  p.epoch = it->at.epoch;
  p.count = it->at.count;
  p.drawn = it->at.drawn;
  p.previous_epoch_detail = it->at.previous_epoch_detail;
  p.is_new_epoch = it->at.is_new_epoch;
  return p;
}

static void
go_to (TdIter *it, const Place *p)
{
  it->seed = p->seed;
  it->at.random = p->random;
  it->at.position = p->position;
  it->at.epoch = p->epoch;
  it->at.count = p->count;
  it->at.drawn = p->drawn;
  it->at.previous_epoch_detail = p->previous_epoch_detail;
  it->at.is_new_epoch = p->is_new_epoch != 0;
}

TdIter *
td_synchronized_iterator_new_at (TdIter *it, TdComm *comm, const TdSite *site)
{
  TdStatus status;
  bool differs;
  TdMeet mine;
  Place place;

  if (!td__comm_usable (comm, "td_synchronized_iterator_new", site))
    return td__iter_inert ();
  mine = td__meet_of (TD_MEET_SYNCHRONIZED, NULL, site);
  if (td__iter_usable (it, "td_synchronized_iterator_new", site))
    {
      const int64_t kind[]
          = { it->n, it->o.batch_size, it->o.repeat, it->at.order != NULL, it->is_text };

      mine.digest = td__digest (0, kind, sizeof kind);
    }
  else
    td__meet_fail (&mine);
  status = td__meet_digest (comm, &mine, &differs, site);
  if (status == TD_OK && differs)
    status = td__fail (TD_ERR_ARG, "td_synchronized_iterator_new", site,
                       "rank %d of %d: iterators of one length, batch size, shuffle and repeat "
                       "expected: rank %d has another one than rank 0",
                       comm->rank, comm->size, td__meet_other (comm));
  if (status != TD_OK)
    return td__iter_inert ();
  place = place_of (it);
  status = td__bcast_bytes (comm, &place, sizeof place, site);
  if (status == TD_OK && it->at.order != NULL)
    status = td__bcast_bytes (comm, it->at.order, (size_t)it->n * sizeof *it->at.order, site);
  if (status != TD_OK)
    return td__iter_inert ();
  go_to (it, &place);
  td__ahead_restart (it);
  return it;
}

TdIter *
td_synchronized_iterator_new (TdIter *it, TdComm *comm)
{
  return td_synchronized_iterator_new_at (it, comm, NULL);
}
