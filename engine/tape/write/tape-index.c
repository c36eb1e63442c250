/* The index of a tape: summaries and reports, those that stay and those of the newest
 * iterations, and how it stays within its share of the budget.
 * SPDX-License-Identifier: MIT */
#include "writer-private.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PENDING 512
#define MAX_CURVES                                                                             \
  1024 /* of a program that makes up keys as it goes, the rest is thinned by number */

enum
{
  FOR_EVER,
  FOR_A_WHILE
};

static const uint8_t kinds[] = { TD_TAPE_SEGMENT_INDEX, TD_TAPE_SEGMENT_RECENT_INDEX };

static bool
stays (const TdTapeWriter *w, uint64_t number)
{
  return w->index_stride <= 1 || number % w->index_stride == 0;
}

/* Of the reports of one key, the first in every so many iterations: a program that reports each
 * hundredth iteration keeps its curve, at whichever of them that is. */
static bool
report_stays (TdTapeWriter *w, const TdTapeReport *row)
{
  const uint64_t bucket = w->index_stride > 1 ? row->iteration / w->index_stride : 0;
  TapeCurve *curve = NULL;

  if (w->index_stride <= 1 || row->iteration < TAPE_KEPT_FIRST)
    return true;
  for (uint32_t k = 0; k < w->n_curves && curve == NULL; k++)
    if (w->curves[k].key == row->key)
      curve = &w->curves[k];
  if (curve != NULL && curve->bucket == bucket)
    return false;
  if (curve == NULL)
    {
      TapeCurve *more = w->n_curves < MAX_CURVES
                            ? realloc (w->curves, (w->n_curves + 1) * sizeof *more)
                            : NULL;

      if (more == NULL)
        return stays (w, row->iteration);
      w->curves = more;
      curve = &w->curves[w->n_curves++];
      curve->key = row->key;
    }
  curve->bucket = bucket;
  return true;
}

/* Write the rows of one kind of segment.  What finds no room among those that stay may still
 * find it among the newest. */
static bool
put_rows (TdTapeWriter *w, unsigned k, TapeRows *rows, unsigned again)
{
  const size_t n_summaries = rows->n_summaries * sizeof *rows->summaries;
  const size_t n_reports = rows->n_reports * sizeof *rows->reports;
  bool done = true;

  if (n_summaries > 0)
    {
      const uint64_t number = rows->summaries[rows->n_summaries - 1].number;

      done = td__tape_append (w, kinds[k], again | TD_TAPE_FRAME_SUMMARY, rows->summaries,
                              n_summaries, NULL, 0, number, NULL)
             || (k == FOR_EVER
                 && td__tape_append (w, kinds[FOR_A_WHILE], again | TD_TAPE_FRAME_SUMMARY,
                                     rows->summaries, n_summaries, NULL, 0, number, NULL));
    }
  if (n_reports > 0)
    {
      const uint64_t number = rows->reports[rows->n_reports - 1].iteration;

      done &= td__tape_append (w, kinds[k], again | TD_TAPE_FRAME_REPORT, rows->reports,
                               n_reports, NULL, 0, number, NULL)
              || (k == FOR_EVER
                  && td__tape_append (w, kinds[FOR_A_WHILE], again | TD_TAPE_FRAME_REPORT,
                                      rows->reports, n_reports, NULL, 0, number, NULL));
    }
  rows->n_summaries = rows->n_reports = 0;
  return done;
}

static void *
make_room (void *items, uint32_t n, uint32_t *room, size_t size)
{
  uint32_t more = *room ? *room * 2 : 64;

  if (n < *room)
    return items;
  items = realloc (items, more * size);
  *room = items != NULL ? more : *room;
  return items;
}

static bool
add_summary (TapeRows *rows, const TdTapeSummary *row)
{
  TdTapeSummary *all
      = make_room (rows->summaries, rows->n_summaries, &rows->summary_room, sizeof *all);

  if (all == NULL)
    return false;
  rows->summaries = all;
  all[rows->n_summaries++] = *row;
  return true;
}

static bool
add_report (TapeRows *rows, const TdTapeReport *row)
{
  TdTapeReport *all
      = make_room (rows->reports, rows->n_reports, &rows->report_room, sizeof *all);

  if (all == NULL)
    return false;
  rows->reports = all;
  all[rows->n_reports++] = *row;
  return true;
}

static void
clear_rows (TapeRows *rows)
{
  free (rows->summaries);
  free (rows->reports);
  *rows = (TapeRows){ 0 };
}

/* Sift the rows of one frame.  What does not stay, but is of an iteration that is whole still,
 * goes with the newest. */
static bool
sift (TdTapeWriter *w, const TdTapeFrame *frame, const char *bytes, uint64_t whole,
      TapeRows rows[2])
{
  const size_t n = frame->len - sizeof *frame;
  bool done = true;

  if (frame->type == TD_TAPE_FRAME_SUMMARY)
    for (size_t at = 0; done && n - at >= sizeof (TdTapeSummary); at += sizeof (TdTapeSummary))
      {
        TdTapeSummary row;

        memcpy (&row, bytes + at, sizeof row);
        if (stays (w, row.number) || (row.flags & TD_TAPE_ITERATION_KEPT))
          done = add_summary (&rows[FOR_EVER], &row);
        else if (row.number >= whole)
          done = add_summary (&rows[FOR_A_WHILE], &row);
      }
  else if (frame->type == TD_TAPE_FRAME_REPORT)
    for (size_t at = 0; done && n - at >= sizeof (TdTapeReport); at += sizeof (TdTapeReport))
      {
        TdTapeReport row;

        memcpy (&row, bytes + at, sizeof row);
        if (report_stays (w, &row))
          done = add_report (&rows[FOR_EVER], &row);
        else if (row.iteration >= whole)
          done = add_report (&rows[FOR_A_WHILE], &row);
      }
  return done;
}

/* Write a segment of the index again, with what stays of it, then give its space back. */
static bool
write_again (TdTapeWriter *w, uint64_t offset, uint64_t whole)
{
  TapeRows rows[2] = { 0 };
  uint64_t n, at = 0;
  char *bytes = td__tape_read_segment (w, offset, &n);
  bool done = bytes != NULL;

  while (done && n - at >= sizeof (TdTapeFrame))
    {
      TdTapeFrame frame;

      memcpy (&frame, bytes + at, sizeof frame);
      if (frame.len < sizeof frame || frame.len > n - at)
        break;
      done = sift (w, &frame, bytes + at + sizeof frame, whole, rows);
      at += TAPE_ALIGN (frame.len);
      at = at < n ? at : n;
    }
  done = done && put_rows (w, FOR_EVER, &rows[FOR_EVER], TAPE_AGAIN)
         && put_rows (w, FOR_A_WHILE, &rows[FOR_A_WHILE], TAPE_AGAIN);
  clear_rows (&rows[0]);
  clear_rows (&rows[1]);
  free (bytes);
  if (!done)
    return false;
  td__tape_flush_segments (w); /* who reads meanwhile sees it twice, never not at all */
  td__tape_free_segment (w, offset);
  return !w->failed;
}

/* The index has its share: half of it goes, the same of the whole run. */
static bool
thin (TdTapeWriter *w)
{
  uint64_t *offsets = malloc ((w->n_slots + 1) * sizeof *offsets);
  const uint64_t whole = td__tape_first_whole (w);
  bool done = offsets != NULL && td__tape_close_segment (w, TD_TAPE_SEGMENT_INDEX);
  uint32_t n = done ? td__tape_index_slots (w, offsets, w->n_slots) : 0;

  w->index_stride = w->index_stride ? w->index_stride * 2 : 2;
  w->n_curves = 0; /* all are seen again, from the first */
  w->tally.stride = w->index_stride;
  for (uint32_t i = 0; done && i < n; i++)
    done = write_again (w, offsets[i], whole);
  free (offsets);
  return done;
}

void
td__tape_put_index (TdTapeWriter *w)
{
  const uint64_t share = td__tape_share (w, 1);
  bool done = true;

  put_rows (w, FOR_EVER, &w->rows[FOR_EVER], 0);
  put_rows (w, FOR_A_WHILE, &w->rows[FOR_A_WHILE], 0);
  if (w->kind_bytes[TD_TAPE_SEGMENT_INDEX] < share)
    return;
  while (done && w->index_stride < 1ull << 40
         && w->kind_bytes[TD_TAPE_SEGMENT_INDEX] > share / 4 * 3)
    done = thin (w);
}

void
td__tape_put_summary (TdTapeWriter *w, const TdTapeSummary *row, bool keep)
{
  TapeRows *rows = &w->rows[keep || stays (w, row->number) ? FOR_EVER : FOR_A_WHILE];

  if (add_summary (rows, row) && rows->n_summaries == MAX_PENDING)
    td__tape_put_index (w);
}

void
td_tape_writer_report (TdTapeWriter *w, const TdTapeReport *report)
{
  TapeRows *rows = &w->rows[report_stays (w, report) ? FOR_EVER : FOR_A_WHILE];

  if (add_report (rows, report) && rows->n_reports == MAX_PENDING)
    td__tape_put_index (w);
}

void
td__tape_index_free (TdTapeWriter *w)
{
  clear_rows (&w->rows[FOR_EVER]);
  clear_rows (&w->rows[FOR_A_WHILE]);
  free (w->curves);
}
