/* Is a tape whole, and if not, what can be saved: `tapedeck check`.
 * SPDX-License-Identifier: MIT */
#include "../read/reader-private.h"

#include <stdlib.h>
#include <string.h>

/* Write the first finding; later ones do not replace it. */
static void
found (TdTapeCheck *check, uint64_t offset, const char *what)
{
  if (!check->whole && offset >= check->first_bad)
    return;
  check->whole = false;
  check->first_bad = offset;
  snprintf (check->what, sizeof check->what, "%s", what);
}

/* Bytes of valid frames at the start of a segment; counts them. */
static uint64_t
valid_bytes (int fd, const TapeSeen *seen, TdTapeCheck *check)
{
  uint64_t start = seen->offset + sizeof (TdTapeSegment), at = 0;
  uint32_t last = 0;

  while (at < seen->room)
    {
      TdTapeFrame frame;
      char *bytes = td__tape_read_frame (fd, start + at, seen->room - at, 0, &frame);

      if (bytes == NULL)
        break;
      free (bytes);
      if ((int32_t)(frame.seq - seen->head.first_seq) < 0
          || (last != 0 && (int32_t)(frame.seq - last) <= 0))
        break;
      last = frame.seq;
      check->n_frames++;
      at += TAPE_ALIGN (frame.len);
    }
  return at < seen->room ? at : seen->room;
}

/* Does the frame at `valid` end behind the file?  What is left of it has no check sum. */
static bool
is_cut (int fd, const TapeSeen *seen, uint64_t valid)
{
  const uint64_t room = seen->room - valid;
  TdTapeFrame frame;

  return seen->room < seen->head.used
         && (room < sizeof frame
             || (td__tape_pread (fd, &frame, sizeof frame,
                                 seen->offset + sizeof (TdTapeSegment) + valid)
                 && frame.len > room && frame.len <= seen->head.used - valid));
}

static void
check_segments (TdTapeReader *r, TdTapeCheck *check)
{
  uint64_t bad;
  uint32_t n;
  TapeSeen *seen = td__tape_walk (r->fd, r->header.header_bytes, r->file_bytes, true, &n, &bad);

  if (seen == NULL)
    {
      found (check, 0, "no memory");
      return;
    }
  for (uint32_t i = 0; i < n; i++)
    {
      uint64_t valid = valid_bytes (r->fd, &seen[i], check);

      if (valid < seen[i].room && !is_cut (r->fd, &seen[i], valid))
        found (check, seen[i].offset + sizeof (TdTapeSegment) + valid, "a damaged frame");
      else if (seen[i].room < seen[i].head.used)
        found (check, r->file_bytes, "the file ends too early");
    }
  free (seen);
  if (r->damage != NULL)
    found (check, r->damaged_at, r->damage);
}

static void
check_iterations (TdTapeReader *r, TdTapeCheck *check)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  char what[sizeof check->what];

  for (uint32_t i = 0; i < s.n; i++)
    {
      const TdTapeSummary *row = &s.rows[i];
      const TdTapeIteration *it = td_tape_iteration_load_row (r, row, what, sizeof what);

      check->n_loadable += it != NULL;
      /* What a repair could not save is no new damage. */
      if (it == NULL && r->tally.repaired == 0
          && (td_tape_reader_stored (r, i) || td__tape_is_lost (r, row)))
        found (check, row->offset < r->file_bytes ? row->offset : r->file_bytes, what);
      td_tape_iteration_free (it);
    }
}

/* Schedules have offsets of their own frames. */
static void
check_schedules (TdTapeReader *r, TdTapeCheck *check)
{
  char what[sizeof check->what];

  for (uint32_t id = 1; id <= r->schedule_spots.n; id++)
    {
      const TapeSpot *spot = (const TapeSpot *)r->schedule_spots.items + (id - 1);
      const TdTapeSchedule *s
          = spot->len != 0 ? td_tape_schedule_load (r, id, what, sizeof what) : NULL;

      if (s == NULL && spot->len != 0)
        found (check, spot->offset, what);
      td_tape_schedule_free (s);
    }
}

bool
td_tape_check (const char *path, TdTapeCheck *check)
{
  TdTapeThinning thinning;
  TdTapeReader *r;

  memset (check, 0, sizeof *check);
  r = td_tape_reader_open (path, check->what, sizeof check->what);
  if (r == NULL)
    return false;
  check->whole = true;
  check->n_bytes = r->file_bytes;
  check->ended = r->has_end;
  check_segments (r, check);
  check_iterations (r, check);
  check_schedules (r, check);
  thinning = td_tape_reader_thinning (r);
  check->n_iterations = thinning.n_iterations;
  if (check->n_loadable < thinning.n_whole) /* its frame is there, what it refers to is not */
    {
      thinning.n_lost += thinning.n_whole - check->n_loadable;
      thinning.n_whole = check->n_loadable;
      thinning.first_whole = UINT64_MAX;
    }
  td_tape_thinning_text (&thinning, check->thinned, sizeof check->thinned);
  td_tape_reader_free (r);
  return true;
}
