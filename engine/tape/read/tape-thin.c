/* Readers that stay small on a tape that grows for ever: of the summaries they keep a bounded
 * number, and find the others in the file when they are asked for. The tape itself keeps what
 * it keeps.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"

#include <stdlib.h>
#include <string.h>

/* These are kept before others, as long as they are not too many themselves. */
#define REMARKABLE                                                                             \
  (TD_TAPE_ITERATION_NAN | TD_TAPE_ITERATION_INF | TD_TAPE_ITERATION_ERROR                     \
   | TD_TAPE_ITERATION_GRAPH_CHANGED | TD_TAPE_ITERATION_PARTIAL | TD_TAPE_ITERATION_OUTSIDE   \
   | TD_TAPE_ITERATION_KEPT)

/* Keep the newest quarter, what is remarkable, and of the rest every stride-th. */
static uint32_t
sift (TdTapeReader *r, uint32_t newest)
{
  TdTapeSummary *rows = r->summaries.items;
  uint32_t old = r->summaries.n > newest ? r->summaries.n - newest : 0, n = 0, remarkable = 0;
  bool all;

  for (uint32_t i = 0; i < old; i++)
    remarkable += (rows[i].flags & REMARKABLE) != 0;
  all = remarkable <= newest;
  for (uint32_t i = 0; i < r->summaries.n; i++)
    if (i >= old || rows[i].number % r->stride == 0
        || (all && (rows[i].flags & REMARKABLE) != 0))
      rows[n++] = rows[i];
  return n;
}

void
td__tape_thin (TdTapeReader *r)
{
  uint32_t newest = r->max_summaries / 4;

  if (r->max_summaries == 0 || r->summaries.n <= r->max_summaries)
    return;
  r->thinned = true;
  if (newest == 0)
    {
      TdTapeSummary *rows = r->summaries.items;

      rows[0] = rows[r->summaries.n - 1];
      r->summaries.n = 1;
    }
  /* What has left the newest is sifted as the others are; only then does the stride grow. */
  for (int i = 0; i < 64 && r->summaries.n > r->max_summaries - newest; i++)
    {
      r->summaries.n = sift (r, newest);
      if (r->summaries.n > r->max_summaries - newest)
        r->stride *= 2;
    }
  r->n_counted = r->summaries.n;
  if (r->max_summaries == 1)
    td_tape_reader_forget_reports (r);
  if (r->summaries.room / 4 > r->max_summaries)
    {
      void *less = realloc (r->summaries.items, r->max_summaries * 2 * sizeof (TdTapeSummary));

      if (less != NULL)
        {
          r->summaries.items = less;
          r->summaries.room = r->max_summaries * 2;
        }
    }
}

void
td_tape_reader_bound (TdTapeReader *r, uint32_t max_summaries)
{
  r->max_summaries = max_summaries;
}

void
td_tape_reader_forget_reports (TdTapeReader *r)
{
  free (r->reports.items);
  r->reports = (TapeArray){ 0 };
}

/* ---- in the file ---- */

static void
look_into (const char *bytes, size_t n, uint64_t number, TdTapeSummary *row, bool *found)
{
  TdTapeSummary one;

  for (; n >= sizeof one; n -= sizeof one, bytes += sizeof one)
    {
      memcpy (&one, bytes, sizeof one);
      if (one.number == number && (!*found || one.seq > row->seq))
        {
          *row = one;
          *found = true;
        }
    }
}

static bool
look_into_file (TdTapeReader *r, uint64_t number, TdTapeSummary *row)
{
  bool found = false;

  for (uint32_t i = 0; i < r->n_seen; i++)
    {
      const TapeSeen *s = &r->seen[i];
      uint64_t start = s->offset + sizeof (TdTapeSegment), done = 0;
      TdTapeFrame frame;
      char *bytes;

      if (s->head.kind != TD_TAPE_SEGMENT_INDEX && s->head.kind != TD_TAPE_SEGMENT_RECENT_INDEX)
        continue;
      while (done < s->read
             && (bytes = td__tape_read_frame (r->fd, start + done, s->read - done, 0, &frame))
                    != NULL)
        {
          if (frame.type == TD_TAPE_FRAME_SUMMARY)
            look_into (bytes, frame.len - sizeof frame, number, row, &found);
          free (bytes);
          done += TAPE_ALIGN (frame.len);
        }
    }
  return found;
}

bool
td_tape_reader_look_up (TdTapeReader *r, uint64_t number, TdTapeSummary *row)
{
  const TdTapeSummary *rows = r->summaries.items;
  int64_t at = td_tape_reader_find (r, number);
  bool found = at >= 0;

  if (found)
    *row = rows[at];
  else if (!r->thinned
           || (r->summaries_sorted && r->summaries.n > 0
               && number > rows[r->summaries.n - 1].number))
    return false;
  else
    found = look_into_file (r, number, row);
  if (found
      && td__tape_next_fault (r, number, 0) < r->faults.n) /* found after it was written */
    row->flags |= TD_TAPE_ITERATION_ERROR;
  return found;
}
