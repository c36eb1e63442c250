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
  if (!r->thinned)
    r->first_number = ((const TdTapeSummary *)r->summaries.items)[0].number;
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

typedef void (*SeeFunc) (const TdTapeReader *r, const TdTapeSummary *row, void *data);

static void
look_into (const TdTapeReader *r, const char *bytes, size_t n, SeeFunc see, void *data)
{
  TdTapeSummary one;

  for (; n >= sizeof one; n -= sizeof one, bytes += sizeof one)
    {
      memcpy (&one, bytes, sizeof one);
      see (r, &one, data);
    }
}

/* Shows every summary that the file has; some of them twice. */
static void
look_into_file (const TdTapeReader *r, SeeFunc see, void *data)
{
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
            look_into (r, bytes, frame.len - sizeof frame, see, data);
          free (bytes);
          done += TAPE_ALIGN (frame.len);
        }
    }
}

typedef struct
{
  uint64_t number;
  TdTapeSummary *row;
  bool found;
} Wanted;

static void
see_wanted (const TdTapeReader *r, const TdTapeSummary *row, void *data)
{
  Wanted *wanted = data;

  (void)r;
  if (row->number == wanted->number && (!wanted->found || row->seq > wanted->row->seq))
    {
      *wanted->row = *row;
      wanted->found = true;
    }
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
    {
      Wanted wanted = { number, row, false };

      look_into_file (r, see_wanted, &wanted);
      found = wanted.found;
    }
  if (found
      && td__tape_next_fault (r, number, 0) < r->faults.n) /* found after it was written */
    row->flags |= TD_TAPE_ITERATION_ERROR;
  return found;
}

/* ---- those that are alike ---- */

typedef struct
{
  uint64_t number;
  uint32_t structure;
  TdTapeSummary *rows; /* the nearest first */
  uint32_t n, max;
} Like;

static uint64_t
distance (const Like *like, const TdTapeSummary *row)
{
  return row->number > like->number ? row->number - like->number : like->number - row->number;
}

static void
see_like (const TdTapeReader *r, const TdTapeSummary *row, void *data)
{
  const uint32_t no
      = TD_TAPE_ITERATION_PARTIAL | TD_TAPE_ITERATION_LOST | TD_TAPE_ITERATION_NOT_STORED;
  Like *like = data;
  uint32_t at = like->n;

  if (row->structure != like->structure || row->number == like->number || (row->flags & no) != 0
      || (at == like->max && distance (like, row) > distance (like, &like->rows[at - 1]))
      || !td__tape_may_be_whole (r, row))
    return;
  for (uint32_t i = 0; i < like->n; i++)
    if (like->rows[i].number == row->number)
      {
        if (row->seq > like->rows[i].seq)
          like->rows[i] = *row;
        return;
      }
  while (at > 0 && distance (like, row) < distance (like, &like->rows[at - 1]))
    at--;
  if (at == like->max)
    return;
  like->n += like->n < like->max;
  memmove (like->rows + at + 1, like->rows + at, (like->n - at - 1) * sizeof *row);
  like->rows[at] = *row;
}

uint32_t
td_tape_reader_find_like (TdTapeReader *r, uint64_t number, uint32_t structure,
                          TdTapeSummary *rows, uint32_t max)
{
  const TdTapeSummary *kept = r->summaries.items;
  Like like = { number, structure, rows, 0, max };

  if (structure == 0 || max == 0)
    return 0;
  if (r->thinned)
    look_into_file (r, see_like, &like);
  else
    for (uint32_t i = 0; i < r->summaries.n; i++)
      see_like (r, &kept[i], &like);
  return like.n;
}
