/* Ids of operations to events of an iteration.
 * SPDX-License-Identifier: MIT */
#include "event-ids.h"

#include <stdlib.h>
#include <string.h>

void
td__event_ids_begin (TdEventIds *ids, uint64_t floor)
{
  ids->floor = floor;
  ids->n = ids->now = 0;
}

/* The first run that begins behind an id. */
static uint32_t
after (const TdEventIds *ids, uint64_t id)
{
  uint32_t lo = 0, hi = ids->n;

  while (lo < hi)
    {
      uint32_t middle = lo + (hi - lo) / 2;

      if (ids->at[middle].first <= id)
        lo = middle + 1;
      else
        hi = middle;
    }
  return lo;
}

void
td__event_ids_jump (TdEventIds *ids, uint64_t id, uint32_t event)
{
  uint32_t at = after (ids, id);

  if (ids->n == ids->capacity)
    {
      uint32_t capacity = ids->capacity > 0 ? 2 * ids->capacity : 64;
      TdIdRun *more = realloc (ids->at, capacity * sizeof *more);

      if (more == NULL)
        return; /* its backward events have no twin then */
      ids->at = more;
      ids->capacity = capacity;
    }
  memmove (ids->at + at + 1, ids->at + at, (ids->n - at) * sizeof *ids->at);
  ids->at[at] = (TdIdRun){ id, event, 1 };
  ids->n++;
  ids->now = at;
}

int64_t
td__event_ids_find (const TdEventIds *ids, uint64_t id)
{
  uint32_t next = after (ids, id);

  if (id < ids->floor)
    return -1;
  if (next > 0 && id - ids->at[next - 1].first < ids->at[next - 1].n)
    return (int64_t)(ids->at[next - 1].event + (id - ids->at[next - 1].first));
  return next < ids->n ? (int64_t)ids->at[next].event : -1;
}

void
td__event_ids_clear (TdEventIds *ids)
{
  free (ids->at);
  *ids = (TdEventIds){ 0 };
}
