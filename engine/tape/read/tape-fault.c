/* Errors that were found after their operation had run: what readers make of them.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"

#include <inttypes.h>
#include <stdlib.h>

/* They mostly come in the order of their iterations, and may be as many. */
uint32_t
td__tape_next_fault (const TdTapeReader *r, uint64_t number, uint32_t from)
{
  const TdTapeFault *faults = r->faults.items;
  uint32_t lo = from, hi = r->faults.n;

  while (r->faults_sorted && lo < hi)
    {
      const uint32_t mid = lo + (hi - lo) / 2;

      if (faults[mid].iteration < number)
        lo = mid + 1;
      else
        hi = mid;
    }
  for (; lo < r->faults.n; lo++)
    if (faults[lo].iteration == number)
      return lo;
    else if (r->faults_sorted)
      break;
  return r->faults.n;
}

TdTapeFault *
td__tape_copy_faults (const TdTapeReader *r, uint64_t number, uint32_t *n)
{
  const TdTapeFault *faults = r->faults.items;
  uint32_t first = td__tape_next_fault (r, number, 0), count = 0;
  TdTapeFault *copy;

  *n = 0;
  for (uint32_t i = first; i < r->faults.n; i = td__tape_next_fault (r, number, i + 1))
    count++;
  copy = count > 0 ? malloc (count * sizeof *copy) : NULL;
  if (copy == NULL)
    return NULL;
  for (uint32_t i = first; i < r->faults.n; i = td__tape_next_fault (r, number, i + 1))
    copy[(*n)++] = faults[i];
  return copy;
}

void
td__tape_mark_faults (TdTapeReader *r)
{
  const TdTapeFault *faults = r->faults.items;
  TdTapeSummary *rows = r->summaries.items;

  for (; r->n_faults_marked < r->faults.n; r->n_faults_marked++)
    {
      const uint64_t number = faults[r->n_faults_marked].iteration;
      int64_t at;

      if (r->summaries.n == 0 || number > rows[r->summaries.n - 1].number)
        return; /* it still runs */
      at = td_tape_reader_find (r, number);
      if (at >= 0)
        rows[at].flags |= TD_TAPE_ITERATION_ERROR;
    }
}

/* Which phases had run by then. */
static const char *
ran_meanwhile (const TdTapeFault *f, const TdTapeIteration *it, bool same)
{
  static const char *const texts[]
      = { "", "; backward had run", "; update had run", "; backward and update had run" };
  unsigned ran = 0;

  for (uint32_t i = f->event; i < it->n_events && (!same || i < f->found_event); i++)
    ran |= it->events[i].phase == TD_TAPE_PHASE_BACKWARD ? 1u
           : it->events[i].phase == TD_TAPE_PHASE_UPDATE ? 2u
                                                         : 0u;
  return texts[ran];
}

void
td_tape_fault_text (const TdTapeFault *f, const char *operand, const TdTapeIteration *it,
                    char *out, size_t n)
{
  const bool same = f->found_iteration == f->iteration;
  const char *ran = it != NULL ? ran_meanwhile (f, it, same) : "";
  char found[80];

  if (!same)
    snprintf (found, sizeof found, "in iteration %" PRIu64, f->found_iteration);
  else if (it == NULL)
    snprintf (found, sizeof found, "after %" PRIu32 " events of the iteration", f->found_event);
  else if (f->found_event >= it->n_events)
    snprintf (found, sizeof found, "at the end of the iteration");
  else
    snprintf (found, sizeof found, "when %" PRIu32 " of the %" PRIu32 " events had run",
              f->found_event, it->n_events);
  snprintf (
      out, n,
      "index %" PRId64 " outside 0..%" PRId64 " at element %" PRId64 "%s%.60s, found %s%s",
      f->value, f->limit - 1, f->element, *operand != '\0' ? " of " : "", operand, found, ran);
}
