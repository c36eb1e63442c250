/* Saving what can be saved of a damaged tape: `tapedeck check --repair`.  Everything stays
 * where it is, so that offsets hold; what is damaged becomes a frame that nobody knows or free
 * space. SPDX-License-Identifier: MIT */
#include "../read/reader-private.h"
#include "replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Readers skip it, as they do all types that they do not know. */
#define FRAME_DAMAGED UINT16_MAX

typedef struct
{
  TdTapeReader *r;
  int to;
  uint64_t end;      /* of the segments written so far */
  uint32_t last_seq; /* of all frames */
  bool damaged;
} Repair;

static bool
put (const Repair *p, uint64_t offset, const void *bytes, size_t n)
{
  return n == 0 || pwrite (p->to, bytes, n, (off_t)offset) == (ssize_t)n;
}

static bool
put_head (const Repair *p, uint64_t offset, TdTapeSegment *head)
{
  head->crc = td__tape_crc (0, head, offsetof (TdTapeSegment, crc));
  return put (p, offset, head, sizeof *head);
}

static bool
put_frame (const Repair *p, uint64_t offset, TdTapeFrame *frame, const void *payload)
{
  const size_t n = frame->len - sizeof *frame;

  frame->crc = 0;
  frame->crc = td__tape_crc (td__tape_crc (0, frame, sizeof *frame), payload, n);
  return put (p, offset, frame, sizeof *frame) && put (p, offset + sizeof *frame, payload, n);
}

/* A frame in the place of damaged bytes; the one behind them has a later seq. */
static bool
put_damaged (const Repair *p, uint64_t offset, uint64_t n, uint32_t seq)
{
  TdTapeFrame frame = { .len = (uint32_t)n, .type = FRAME_DAMAGED, .seq = seq };
  char *zeros = n >= sizeof frame && n < UINT32_MAX ? calloc (1, n) : NULL;
  const bool done = zeros != NULL && put_frame (p, offset, &frame, zeros);

  free (zeros);
  return done;
}

static bool
copy_segment (Repair *p, const TapeSeen *seen)
{
  const uint64_t start = seen->offset + sizeof (TdTapeSegment);
  TapeScan scan = { .fd = p->r->fd, .seen = seen };
  TdTapeSegment head = seen->head;
  TdTapeFrame frame;
  uint64_t skipped, used = 0;
  char *bytes;
  bool ok = true;

  while (ok && (bytes = td__tape_scan_next (&scan, &frame, &skipped)) != NULL)
    {
      const uint64_t at = scan.at - TAPE_ALIGN (frame.len);

      ok = (skipped == 0 || put_damaged (p, start + at - skipped, skipped, frame.seq - 1))
           && put_frame (p, start + at, &frame, bytes);
      used = scan.at < head.used ? scan.at : head.used;
      p->damaged = p->damaged || skipped > 0;
      if ((int32_t)(frame.seq - p->last_seq) > 0)
        p->last_seq = frame.seq;
      free (bytes);
    }
  p->damaged = p->damaged || used < head.used;
  head.used = used;
  p->end = seen->offset + head.capacity;
  return ok && put_head (p, seen->offset, &head);
}

/* Where damage has taken what there was. */
static bool
put_gap (Repair *p, uint64_t end)
{
  TdTapeSegment head = { .magic = TD_TAPE_SEGMENT_MAGIC,
                         .kind = TD_TAPE_SEGMENT_FREE,
                         .flags = TD_TAPE_SEGMENT_GAP,
                         .capacity = end - p->end };
  const uint64_t offset = p->end;

  p->end = end;
  return put_head (p, offset, &head);
}

static bool
copy_segments (Repair *p)
{
  const TdTapeReader *r = p->r;
  uint64_t end = r->file_bytes, most = 4 * r->file_bytes + (64u << 20);
  bool ok = true;

  p->end = r->header.header_bytes;
  for (uint32_t i = 0; ok && i < r->n_seen; i++)
    {
      if (r->seen[i].offset > p->end)
        ok = put_gap (p, r->seen[i].offset);
      ok = ok && copy_segment (p, &r->seen[i]);
    }
  /* What was cut off, or has no head, at the end. */
  if (r->has_state && r->state.end > end && r->state.end < most)
    end = r->state.end;
  end = (end + 1023) / 1024 * 1024;
  if (ok && r->damage != NULL && end > p->end)
    ok = put_gap (p, end);
  return ok;
}

/* The summaries that no index has any more; the reader put them in order. */
static bool
put_salvaged (Repair *p)
{
  const TdTapeSummaries s = td_tape_reader_summaries (p->r);
  TdTapeFrame frame = { .len = (uint32_t)(sizeof frame + s.n * sizeof *s.rows),
                        .type = TD_TAPE_FRAME_SUMMARY,
                        .flags = TD_TAPE_FRAME_AGAIN,
                        .seq = p->last_seq + 1 };
  TdTapeSegment head = { .magic = TD_TAPE_SEGMENT_MAGIC,
                         .kind = TD_TAPE_SEGMENT_INDEX,
                         .generation = 1,
                         .first_seq = frame.seq,
                         .used = TAPE_ALIGN (frame.len) };
  const uint64_t offset = p->end;

  if (p->r->n_salvaged == 0 || s.n == 0 || s.n > (UINT32_MAX / 4) / sizeof *s.rows)
    return true;
  head.capacity = (sizeof head + head.used + 1023) / 1024 * 1024;
  head.first_iteration = s.rows[0].number;
  head.last_iteration = s.rows[s.n - 1].number;
  p->end += head.capacity;
  return put_head (p, offset, &head) && put_frame (p, offset + sizeof head, &frame, s.rows);
}

/* The header, and what is known of the whole. */
static bool
put_beginning (const Repair *p)
{
  const TdTapeSummaries s = td_tape_reader_summaries (p->r);
  TdTapeReader *r = p->r;
  char *bytes = malloc (r->header.header_bytes);
  TdTapeState state = r->state;
  TdTapeTally tally = r->tally;
  bool ok = bytes != NULL && td__tape_pread (r->fd, bytes, r->header.header_bytes, 0)
            && put (p, 0, bytes, r->header.header_bytes);

  free (bytes);
  if (!ok || !p->damaged)
    return ok;
  if (!r->has_tally)
    tally = (TdTapeTally){ .n_iterations = s.n,
                           .newest = s.n > 0 ? s.rows[s.n - 1].number : 0,
                           .stride = 1,
                           .repaired = 2 };
  else if (tally.stride <= 1 && tally.n_iterations > s.n)
    tally.n_lost = tally.n_iterations - s.n;
  tally.repaired = tally.repaired == 2 ? 2 : 1;
  tally.crc = td__tape_crc (0, &tally, offsetof (TdTapeTally, crc));
  state.end = p->end;
  state.n_segments++;
  state.crc = td__tape_crc (0, &state, offsetof (TdTapeState, crc));
  return put (p, TD_TAPE_STATE_OFFSET, &state, sizeof state)
         && (r->header.minor < 3 || put (p, TD_TAPE_TALLY_OFFSET, &tally, sizeof tally));
}

/* Its first bytes come last: they say where the others end. */
static bool
copy_all (TdTapeReader *r, int to)
{
  Repair p = { .r = r, .to = to, .damaged = r->damage != NULL };

  return copy_segments (&p) && put_salvaged (&p) && put_beginning (&p);
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
