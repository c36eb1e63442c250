/* Which recorded event an engine id is.  Ids count what the code does: where a schedule runs
 * fewer operations than its code had, ids are left out, and their order may be another.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/** Ids first .. first + n - 1 are the events event .. event + n - 1 of the iteration. */
typedef struct
{
  uint64_t first;
  uint32_t event, n;
} TdIdRun;

/** The ids of one iteration, by runs in ascending order. */
typedef struct
{
  uint64_t floor; /* the first id of the iteration */
  TdIdRun *at;
  uint32_t n, capacity, now; /* now: the one that grew last */
} TdEventIds;

/** Forget all: an iteration begins, and this id is its first. */
void td__event_ids_begin (TdEventIds *ids, uint64_t floor);
/** A run begins: event `event` has id `id`, which does not go on from the last one. */
void td__event_ids_jump (TdEventIds *ids, uint64_t id, uint32_t event);
/** Find the event of an id.  An id that was left out belongs to the next one that was not: a
 * group has the id of its last member.  Returns -1 for ids of earlier iterations. */
int64_t td__event_ids_find (const TdEventIds *ids, uint64_t id);
void td__event_ids_clear (TdEventIds *ids);

/** Note that event `event` has id `id`. */
static inline void
td__event_ids_note (TdEventIds *ids, uint64_t id, uint32_t event)
{
  TdIdRun *s = ids->at + ids->now;

  if (ids->n > 0 && id == s->first + s->n && event == s->event + s->n)
    s->n++;
  else
    td__event_ids_jump (ids, id, event);
}
