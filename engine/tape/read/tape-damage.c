/* Damage to a tape: is there any, what can be read in spite of it, and is an iteration that
 * cannot be loaded lost by it or thinned.  A tape that still grows is looked at twice before it
 * is called damaged.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char too_early[] = "the file ends too early";

/* ---- is there any ---- */

typedef struct
{
  const char *what; /* NULL: nothing */
  uint64_t at;
} Damage;

static void
note (Damage *d, uint64_t at, const char *what)
{
  if (d->what == NULL || at < d->at)
    *d = (Damage){ .what = what, .at = at };
}

static Damage
find_damage (const TdTapeReader *r)
{
  const TapeSeen *last = r->n_seen > 0 ? &r->seen[r->n_seen - 1] : NULL;
  const uint64_t end = last != NULL ? last->offset + last->head.capacity : 0;
  Damage d = { 0 };

  if (!r->has_state)
    note (&d, TD_TAPE_STATE_OFFSET, "the tape's state is damaged");
  if (r->header.minor >= 3 && !r->has_tally)
    note (&d, TD_TAPE_TALLY_OFFSET, "the count of iterations is damaged");
  if (r->bad != 0 && r->file_bytes - r->bad < sizeof (TdTapeSegment))
    note (&d, r->file_bytes, too_early);
  else if (r->bad != 0)
    note (&d, r->bad, "a damaged segment");
  else if (r->has_state && r->state.end > end)
    note (&d, r->file_bytes, too_early);
  for (uint32_t i = 0; i < r->n_seen; i++)
    {
      const TapeSeen *s = &r->seen[i];
      const unsigned kind = s->head.kind;

      if (s->room < s->head.used)
        note (&d, r->file_bytes, too_early);
      else if ((kind == TD_TAPE_SEGMENT_DEFS || kind == TD_TAPE_SEGMENT_INDEX
                || kind == TD_TAPE_SEGMENT_RECENT_INDEX)
               && s->read < s->room)
        note (&d, s->offset + sizeof (TdTapeSegment) + s->read, "a damaged frame");
    }
  return d;
}

void
td__tape_look_for_damage (TdTapeReader *r)
{
  Damage d = find_damage (r), before;
  bool stays = false;

  for (int try = 0; d.what != NULL && !stays && try < 4; try++)
    {
      const uint64_t n_changes = r->state.n_changes, bytes = r->file_bytes;

      before = d;
      r->state = (TdTapeState){ 0 }; /* look at all again */
      td_tape_reader_poll (r);
      d = find_damage (r);
      stays = d.what == before.what && d.at == before.at && r->state.n_changes == n_changes
              && r->file_bytes == bytes; /* nobody writes to it */
    }
  if (d.what == NULL || !stays)
    return;
  r->damage = d.what;
  r->damaged_at = d.at;
  r->state = (TdTapeState){ 0 };
  td_tape_reader_poll (r); /* beyond the first damage too */
  td__tape_salvage (r);
}

bool
td_tape_reader_damage (const TdTapeReader *r, char *text, size_t n)
{
  if (r->damage == NULL)
    return false;
  snprintf (text, n, "the tape is damaged at offset %" PRIu64 ": %s; see tapedeck check",
            r->damaged_at, r->damage);
  return true;
}

/* ---- behind what is damaged ---- */

bool
td__tape_tensor_valid (const TdTapeFrame *frame, const TdTapeTensorRecord *record,
                       const void *data, uint64_t n)
{
  TdTapeFrame bare = *frame;

  if (n != record->bytes || frame->len != sizeof *frame + sizeof *record + n)
    return true;
  bare.crc = 0;
  return td__tape_crc (
             td__tape_crc (td__tape_crc (0, &bare, sizeof bare), record, sizeof *record), data,
             (size_t)n)
         == frame->crc;
}

uint64_t
td__tape_find_frame (const char *bytes, uint64_t n, uint32_t after, uint64_t *patience)
{
  for (uint64_t at = 0; at < n && n - at >= sizeof (TdTapeFrame); at += 8)
    {
      TdTapeFrame frame;

      memcpy (&frame, bytes + at, sizeof frame);
      if (frame.len < sizeof frame || frame.len > n - at || frame.type == 0
          || (int32_t)(frame.seq - after) <= 0)
        continue;
      if (frame.len > *patience)
        return n;
      *patience -= frame.len;
      if (td__tape_frame_valid (bytes + at, &frame))
        return at;
    }
  return n;
}

char *
td__tape_scan_next (TapeScan *scan, TdTapeFrame *frame, uint64_t *skipped)
{
  const TapeSeen *s = scan->seen;
  const uint64_t start = s->offset + sizeof (TdTapeSegment);
  uint64_t left = s->room > scan->at ? s->room - scan->at : 0, more;
  char *bytes, *all;

  *skipped = 0;
  if (scan->last == 0)
    scan->last = s->head.first_seq - 1;
  for (int try = 0; try < 2 && left >= sizeof *frame; try++)
    {
      bytes = td__tape_read_frame (scan->fd, start + scan->at, left, 0, frame);
      if (bytes != NULL && (int32_t)(frame->seq - scan->last) > 0)
        {
          scan->last = frame->seq;
          scan->at += TAPE_ALIGN (frame->len);
          return bytes;
        }
      free (bytes);
      if (try > 0 || left <= 8 || (all = malloc (left)) == NULL)
        break;
      if (scan->patience == 0)
        scan->patience = 16 * s->room;
      more = td__tape_pread (scan->fd, all, left, start + scan->at)
                 ? 8 + td__tape_find_frame (all + 8, left - 8, scan->last, &scan->patience)
                 : left;
      free (all);
      if (more >= left)
        break;
      *skipped = more;
      scan->at += more;
      left -= more;
    }
  return NULL;
}

/* ---- iterations that the index does not have any more ---- */

static void
salvage_frame (TdTapeReader *r, const TdTapeFrame *frame, const char *bytes, uint64_t offset,
               TapeArray *rows)
{
  const size_t n = frame->len - sizeof *frame;
  TdTapeIterationHead head;
  const TdTapeIteration *it;
  TdTapeSummary *row;
  char error[80];

  td__tape_take (&head, sizeof head, bytes, n);
  if (frame->type != TD_TAPE_FRAME_ITERATION || n < sizeof head
      || td_tape_reader_find (r, head.number) >= 0
      || (it = td__tape_iteration_from (r, bytes, n, error, sizeof error)) == NULL)
    return;
  row = td__tape_array_at (rows, rows->n, sizeof *row);
  if (row != NULL)
    *row = (TdTapeSummary){ .number = it->number,
                            .offset = offset,
                            .seq = frame->seq,
                            .structure = it->structure,
                            .start_ns = it->start_ns,
                            .duration_ns = it->duration_ns,
                            .peak_bytes = it->peak_bytes,
                            .label = it->label,
                            .n_events = td__tape_count_events (it),
                            .flags = it->flags,
                            .memory = it->memory_profile };
  td_tape_iteration_free (it);
}

void
td__tape_salvage (TdTapeReader *r)
{
  TapeArray rows = { 0 };

  for (uint32_t i = 0; i < r->n_seen; i++)
    {
      TapeScan scan = { .fd = r->fd, .seen = &r->seen[i] };
      TdTapeFrame frame;
      uint64_t skipped;
      char *bytes;

      if (r->seen[i].head.kind != TD_TAPE_SEGMENT_KEPT
          && r->seen[i].head.kind != TD_TAPE_SEGMENT_RECENT)
        continue;
      while ((bytes = td__tape_scan_next (&scan, &frame, &skipped)) != NULL)
        {
          salvage_frame (r, &frame, bytes,
                         r->seen[i].offset + sizeof (TdTapeSegment) + scan.at
                             - TAPE_ALIGN (frame.len),
                         &rows);
          free (bytes);
        }
    }
  td__tape_add_rows (r, rows.items, rows.n);
  r->n_salvaged = rows.n;
  free (rows.items);
}

/* ---- lost, or thinned ---- */

/* Segments that were used again have taken the iteration's place; any other should have it. */
static bool
is_lost (const TapeSeen *seen, uint32_t n, const TdTapeSummary *row)
{
  const TapeSeen *s = NULL;
  uint32_t low = 0, high = n;

  if (row->flags & TD_TAPE_ITERATION_NOT_STORED)
    return false;
  while (low + 1 < high)
    {
      const uint32_t middle = low + (high - low) / 2;

      if (seen[middle].offset <= row->offset)
        low = middle;
      else
        high = middle;
    }
  if (low < n && row->offset >= seen[low].offset
      && row->offset - seen[low].offset < seen[low].head.capacity)
    s = &seen[low];
  if (s == NULL)
    return true;
  if (s->head.kind == TD_TAPE_SEGMENT_FREE)
    return (s->head.flags & TD_TAPE_SEGMENT_GAP) != 0;
  return (s->head.kind == TD_TAPE_SEGMENT_KEPT || s->head.kind == TD_TAPE_SEGMENT_RECENT)
         && (int32_t)(row->seq - s->head.first_seq) >= 0;
}

bool
td__tape_was_lost (const TdTapeReader *r, const TdTapeSummary *row)
{
  return is_lost (r->seen, r->n_seen, row);
}

bool
td__tape_is_lost (const TdTapeReader *r, const TdTapeSummary *row)
{
  struct stat st;
  uint64_t bad;
  uint32_t n;
  TapeSeen *seen;
  bool lost;

  if (fstat (r->fd, &st) != 0)
    return true;
  seen = td__tape_walk (r->fd, r->header.header_bytes, (uint64_t)st.st_size, r->damage != NULL,
                        &n, &bad);
  lost = seen != NULL && is_lost (seen, n, row);
  free (seen);
  return lost;
}

void
td__tape_say_gone (const TdTapeReader *r, const TdTapeSummary *row, char *error, size_t n)
{
  const bool lost = td__tape_is_lost (r, row);

  if (lost && row->offset >= r->file_bytes)
    snprintf (error, n,
              "iteration %" PRIu64 " ran, and is lost: the file ends too early, at offset "
              "%" PRIu64 "; see tapedeck check",
              row->number, r->file_bytes);
  else if (lost)
    snprintf (error, n,
              "iteration %" PRIu64 " ran, and is lost: its record at offset %" PRIu64
              " is damaged; see tapedeck check",
              row->number, row->offset);
  else if (row->flags & TD_TAPE_ITERATION_NOT_STORED)
    snprintf (error, n,
              "iteration %" PRIu64 " ran, and only its summary was kept: the tape's budget has "
              "no room for all of it",
              row->number);
  else
    snprintf (error, n,
              "iteration %" PRIu64
              " ran, and was thinned to its summary: the tape's budget, or "
              "its rate, had no room for more",
              row->number);
}

bool
td__tape_say_damage (TdTapeReader *r, uint64_t number, char *error, size_t n)
{
  char what[160];

  /* Is it one that ran? */
  if (r->has_tally && r->tally.repaired < 2
      && (r->tally.n_iterations == 0 || number > r->tally.newest))
    return false;
  if (td_tape_reader_damage (r, what, sizeof what))
    snprintf (error, n, "iteration %" PRIu64 " cannot be found: %s", number, what);
  else if (r->tally.repaired == 2)
    snprintf (error, n,
              "iteration %" PRIu64
              " cannot be found: the tape was damaged, and how many it had "
              "was lost before it was repaired",
              number);
  else if (r->tally.n_lost > 0)
    snprintf (error, n,
              "iteration %" PRIu64 " cannot be found: the tape was damaged, and %" PRIu64
              " iterations were lost before it was repaired",
              number, r->tally.n_lost);
  else
    return false;
  return true;
}
