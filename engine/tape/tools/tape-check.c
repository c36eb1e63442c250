/* Is a tape whole, and if not, what can be saved: `tapedeck check`.
 * SPDX-License-Identifier: MIT */
#include "../read/reader-private.h"
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void
check_segments (TdTapeReader *r, TdTapeCheck *check)
{
  uint64_t bad;
  uint32_t n;
  TapeSeen *seen = td__tape_walk (r->fd, r->header.header_bytes, r->file_bytes, &n, &bad);

  if (seen == NULL)
    {
      found (check, 0, "no memory");
      return;
    }
  for (uint32_t i = 0; i < n; i++)
    {
      uint64_t valid = valid_bytes (r->fd, &seen[i], check);

      if (valid < seen[i].room)
        found (check, seen[i].offset + sizeof (TdTapeSegment) + valid, "a damaged frame");
      else if (seen[i].room < seen[i].head.used)
        found (check, r->file_bytes, "the file was cut off here");
    }
  if (bad != 0)
    found (check, bad, "a damaged segment");
  free (seen);
}

static void
check_iterations (TdTapeReader *r, TdTapeCheck *check)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  char what[sizeof check->what];

  for (uint32_t i = 0; i < s.n; i++)
    {
      const TdTapeIteration *it;

      if (!td_tape_reader_stored (r, i))
        continue;
      it = td_tape_iteration_load (r, s.rows[i].number, what, sizeof what);
      if (it == NULL)
        found (check, s.rows[i].offset, what);
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
  td_tape_thinning_text (&thinning, check->thinned, sizeof check->thinned);
  td_tape_reader_free (r);
  return true;
}

/* ---------------------------------------------------------------------------- repair */

static bool
copy_bytes (int from, int to, uint64_t offset, uint64_t n)
{
  static const size_t chunk = 1 << 20;
  char *bytes = malloc (chunk);
  bool ok = bytes != NULL;

  while (ok && n > 0)
    {
      size_t part = n < chunk ? (size_t)n : chunk;

      ok = td__tape_pread (from, bytes, part, offset)
           && pwrite (to, bytes, part, (off_t)offset) == (ssize_t)part;
      offset += part;
      n -= part;
    }
  free (bytes);
  return ok;
}

/* Copy a segment with only its valid frames, at the same place: offsets in summaries hold. */
static bool
copy_segment (int from, int to, const TapeSeen *seen)
{
  TdTapeCheck count = { 0 };
  TdTapeSegment head = seen->head;

  head.used = valid_bytes (from, seen, &count);
  head.crc = td__tape_crc (0, &head, offsetof (TdTapeSegment, crc));
  return copy_bytes (from, to, seen->offset + sizeof head, head.used)
         && pwrite (to, &head, sizeof head, (off_t)seen->offset) == (ssize_t)sizeof head;
}

/* A segment whose head is damaged hides those behind it: look for the next head. */
static uint64_t
next_head (int fd, uint64_t from, uint64_t file_bytes)
{
  for (uint64_t offset = (from / 1024 + 1) * 1024; offset < file_bytes; offset += 1024)
    {
      TdTapeSegment head;

      if (td__tape_pread (fd, &head, sizeof head, offset) && head.magic == TD_TAPE_SEGMENT_MAGIC
          && head.crc == td__tape_crc (0, &head, offsetof (TdTapeSegment, crc)))
        return offset;
    }
  return 0;
}

/* Bridge a damaged head by a free segment. */
static bool
write_gap (int to, uint64_t offset, uint64_t end)
{
  TdTapeSegment head = { .magic = TD_TAPE_SEGMENT_MAGIC,
                         .kind = TD_TAPE_SEGMENT_FREE,
                         .capacity = end - offset };

  head.crc = td__tape_crc (0, &head, offsetof (TdTapeSegment, crc));
  return pwrite (to, &head, sizeof head, (off_t)offset) == (ssize_t)sizeof head;
}

static bool
copy_all (TdTapeReader *r, int to)
{
  uint64_t at = r->header.header_bytes;
  bool ok = copy_bytes (r->fd, to, 0, at);

  while (ok && at != 0 && at < r->file_bytes)
    {
      uint32_t n;
      uint64_t bad;
      TapeSeen *seen = td__tape_walk (r->fd, at, r->file_bytes, &n, &bad);

      ok = seen != NULL;
      for (uint32_t i = 0; ok && i < n; i++)
        ok = copy_segment (r->fd, to, &seen[i]);
      free (seen);
      at = bad ? next_head (r->fd, bad, r->file_bytes) : 0;
      if (ok && at != 0)
        ok = write_gap (to, bad, at);
    }
  return ok;
}

bool
td_tape_repair (const char *path, const char *out, char *error, size_t n)
{
  TdTapeReader *r = td_tape_reader_open (path, error, n);
  TdReplace to;
  bool ok;

  if (r == NULL)
    return false;
  errno = EEXIST;
  ok = access (out, F_OK) != 0 && td__replace_begin (&to, out, 0600)
       && td__replace_end (&to, copy_all (r, fileno (to.file)));
  if (!ok)
    snprintf (error, n, "cannot write %s: %s", out, strerror (errno));
  td_tape_reader_free (r);
  return ok;
}
