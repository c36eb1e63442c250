/* Opening and following a tape: segments, tables, summaries.  Iterations are in
 * tape-iteration.c.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
td__tape_pread (int fd, void *bytes, size_t n, uint64_t offset)
{
  char *p = bytes;

  while (n > 0)
    {
      ssize_t done = pread (fd, p, n, (off_t)offset);

      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return false;
      p += done;
      offset += (uint64_t)done;
      n -= (size_t)done;
    }
  return true;
}

void
td__tape_take (void *into, size_t size, const void *bytes, size_t n)
{
  memset (into, 0, size);
  memcpy (into, bytes, n < size ? n : size);
}

bool
td__tape_frame_valid (const char *at, const TdTapeFrame *frame)
{
  TdTapeFrame bare = *frame;

  bare.crc = 0;
  return td__tape_crc (td__tape_crc (0, &bare, sizeof bare), at + sizeof bare,
                       frame->len - sizeof bare)
         == frame->crc;
}

char *
td__tape_read_frame (int fd, uint64_t offset, uint64_t limit, unsigned type, TdTapeFrame *frame)
{
  char *bytes;

  if (limit < sizeof *frame || !td__tape_pread (fd, frame, sizeof *frame, offset))
    return NULL;
  if (frame->len < sizeof *frame || frame->len > limit || (type != 0 && frame->type != type))
    return NULL;
  bytes = malloc (frame->len);
  if (bytes == NULL)
    return NULL;
  if (!td__tape_pread (fd, bytes, frame->len, offset) || !td__tape_frame_valid (bytes, frame))
    {
      free (bytes);
      return NULL;
    }
  memmove (bytes, bytes + sizeof *frame, frame->len - sizeof *frame);
  return bytes;
}

/* ------------------------------------------------------------------------- segments */

/* Read the head of a segment; a torn read of one that is just being written is tried again. */
static bool
read_head (int fd, uint64_t offset, uint64_t file_bytes, TapeSeen *seen)
{
  TdTapeSegment *head = &seen->head;

  for (int try = 0; try < 4; try++)
    {
      if (offset > file_bytes || file_bytes - offset < sizeof *head
          || !td__tape_pread (fd, head, sizeof *head, offset)
          || head->magic != TD_TAPE_SEGMENT_MAGIC)
        return false;
      if (head->crc == td__tape_crc (0, head, offsetof (TdTapeSegment, crc)))
        {
          if (head->capacity < sizeof *head || head->capacity % 1024 != 0
              || head->capacity > UINT64_MAX / 4 || head->used > head->capacity - sizeof *head)
            return false;
          seen->offset = offset;
          seen->room = file_bytes - offset - sizeof *head;
          seen->room = head->used < seen->room ? head->used : seen->room;
          return true;
        }
    }
  return false;
}

/* The last segment that begins at `offset` or before, as far as one was seen. */
static uint32_t
segment_of (const TdTapeReader *r, uint64_t offset)
{
  uint32_t low = 0, high = r->n_seen;

  while (low + 1 < high)
    {
      uint32_t middle = low + (high - low) / 2;

      if (r->seen[middle].offset <= offset)
        low = middle;
      else
        high = middle;
    }
  return low;
}

bool
td__tape_may_be_whole (const TdTapeReader *r, const TdTapeSummary *row)
{
  uint32_t at = segment_of (r, row->offset);

  if (at >= r->n_seen)
    return false;
  const TdTapeSegment *s = &r->seen[at].head;
  return (s->kind == TD_TAPE_SEGMENT_KEPT || s->kind == TD_TAPE_SEGMENT_RECENT)
         && (int32_t)(row->seq - s->first_seq) >= 0;
}

bool
td__tape_frame_is_current (const TdTapeReader *r, uint64_t offset, const TdTapeFrame *frame)
{
  uint32_t low = segment_of (r, offset);
  TapeSeen now;

  /* The segment may have grown or been recycled since it was seen: its head says. */
  if (low >= r->n_seen || !read_head (r->fd, r->seen[low].offset, UINT64_MAX, &now))
    return false;
  return (now.head.kind == TD_TAPE_SEGMENT_KEPT || now.head.kind == TD_TAPE_SEGMENT_RECENT)
         && (int32_t)(frame->seq - now.head.first_seq) >= 0
         && offset >= now.offset + sizeof (TdTapeSegment)
         && offset - now.offset - sizeof (TdTapeSegment) <= now.head.used
         && frame->len <= now.head.used - (offset - now.offset - sizeof (TdTapeSegment));
}

/* A segment whose head is damaged hides those behind it. */
static uint64_t
next_head (int fd, uint64_t from, uint64_t file_bytes, TapeSeen *seen)
{
  for (uint64_t offset = (from / 1024 + 1) * 1024; offset < file_bytes; offset += 1024)
    if (read_head (fd, offset, file_bytes, seen))
      return offset;
  return 0;
}

TapeSeen *
td__tape_walk (int fd, uint64_t start, uint64_t file_bytes, bool beyond, uint32_t *n,
               uint64_t *bad)
{
  uint32_t room = 64;
  TapeSeen *seen = malloc (room * sizeof *seen);

  *n = 0;
  *bad = 0;
  for (uint64_t offset = start; seen != NULL && offset < file_bytes;)
    {
      TapeSeen one = { 0 };

      if (!read_head (fd, offset, file_bytes, &one))
        {
          *bad = *bad != 0 ? *bad : offset;
          offset = beyond ? next_head (fd, offset, file_bytes, &one) : 0;
          if (offset == 0)
            break;
        }
      if (*n == room)
        {
          TapeSeen *more = realloc (seen, 2 * room * sizeof *seen);

          if (more == NULL)
            break;
          seen = more;
          room *= 2;
        }
      seen[(*n)++] = one;
      offset += one.head.capacity;
    }
  return seen;
}

/* Take the frames of a segment that were not taken yet, up to the first that is not valid.
 * True if there were any. */
static bool
read_segment (TdTapeReader *r, TapeSeen *seen)
{
  const bool index = seen->head.kind != TD_TAPE_SEGMENT_DEFS;
  uint64_t n = seen->room - seen->read, at = 0;
  uint64_t start = seen->offset + sizeof (TdTapeSegment) + seen->read;
  uint64_t patience = 16 * n;
  TapeSeen now;
  char *bytes;

  if (seen->room <= seen->read || (bytes = malloc ((size_t)n)) == NULL)
    return false;
  /* What has been used again since its head was read is another segment. */
  if (td__tape_pread (r->fd, bytes, (size_t)n, start)
      && (!index
          || (read_head (r->fd, seen->offset, r->file_bytes, &now)
              && now.head.kind == seen->head.kind
              && now.head.first_seq == seen->head.first_seq)))
    while (at < n && n - at >= sizeof (TdTapeFrame)) /* the last one may not be padded */
      {
        TdTapeFrame frame;
        TapeSpot spot;

        memcpy (&frame, bytes + at, sizeof frame);
        if (frame.len < sizeof frame || frame.len > n - at
            || (int32_t)(frame.seq - seen->head.first_seq) < 0
            || (seen->last_seq != 0 && (int32_t)(frame.seq - seen->last_seq) <= 0)
            || !td__tape_frame_valid (bytes + at, &frame))
          {
            if (r->damage == NULL || n - at <= 8)
              break;
            at += 8
                  + td__tape_find_frame (
                      bytes + at + 8, n - at - 8,
                      seen->last_seq ? seen->last_seq : seen->head.first_seq - 1, &patience);
            continue;
          }
        if (index && frame.type != TD_TAPE_FRAME_SUMMARY && frame.type != TD_TAPE_FRAME_REPORT)
          frame.type = 0; /* there is no such record: skipped */
        spot = (TapeSpot){ .offset = start + at, .len = frame.len, .seq = frame.seq };
        td__tape_take_frame (r, &frame, bytes + at + sizeof frame, spot);
        seen->last_seq = frame.seq;
        at += TAPE_ALIGN (frame.len);
      }
  free (bytes);
  at = at < n ? at : n;
  seen->read += at;
  return at > 0;
}

/* ------------------------------------------------------------------------ following */

static int
by_first_seq (const void *a, const void *b)
{
  const TapeSeen *x = *(TapeSeen *const *)a, *y = *(TapeSeen *const *)b;
  int64_t d = (int64_t)x->head.first_seq - (int64_t)y->head.first_seq;

  /* The tail has the last words. */
  if ((x->offset == TD_TAPE_TAIL_OFFSET) != (y->offset == TD_TAPE_TAIL_OFFSET))
    return x->offset == TD_TAPE_TAIL_OFFSET ? 1 : -1;
  return d < 0 ? -1 : d > 0;
}

bool
td__tape_read_kind (TdTapeReader *r, unsigned kind)
{
  TapeSeen **list = malloc ((r->n_seen + 1) * sizeof *list);
  uint32_t n = 0;
  bool any = false;

  if (list == NULL)
    return false;
  for (uint32_t i = 0; i < r->n_seen; i++)
    if (r->seen[i].head.kind == kind)
      list[n++] = &r->seen[i];
  qsort (list, n, sizeof *list, by_first_seq);
  for (uint32_t i = 0; i < n; i++)
    any |= read_segment (r, list[i]);
  free (list);
  return any;
}

/* Keep the position in segments that are still the same. */
static void
carry_positions (TapeSeen *now, uint32_t n, const TapeSeen *before, uint32_t n_before)
{
  for (uint32_t i = 0, k = 0; i < n; i++)
    {
      while (k < n_before && before[k].offset < now[i].offset)
        k++;
      if (k < n_before && before[k].offset == now[i].offset
          && before[k].head.kind == now[i].head.kind
          && before[k].head.first_seq == now[i].head.first_seq)
        {
          now[i].read = before[k].read;
          now[i].last_seq = before[k].last_seq;
        }
    }
}

static void
walk_again (TdTapeReader *r)
{
  uint32_t n;
  uint64_t bad;
  TapeSeen *seen = td__tape_walk (r->fd, r->header.header_bytes, r->file_bytes,
                                  r->damage != NULL, &n, &bad);

  if (seen == NULL)
    return;
  carry_positions (seen, n, r->seen, r->n_seen);
  free (r->seen);
  r->seen = seen;
  r->n_seen = n;
  r->bad = bad;
}

/* Read again the heads of the segments that grow: all else is as it was. */
static void
refresh_growing (TdTapeReader *r)
{
  for (uint32_t i = 0; i < r->n_seen; i++)
    {
      TapeSeen *s = &r->seen[i], fresh = *s;

      if (s->offset != r->state.defs && s->offset != r->state.index
          && s->offset != r->state.live[0] && s->offset != r->state.live[1]
          && s->offset != TD_TAPE_TAIL_OFFSET && s->head.kind != TD_TAPE_SEGMENT_RECENT_INDEX)
        continue;
      if (read_head (r->fd, s->offset, r->file_bytes, &fresh))
        *s = fresh;
    }
}

static uint32_t
newest_live_seq (const TdTapeReader *r)
{
  uint32_t newest = 0;

  for (uint32_t i = 0; i < r->n_seen; i++)
    if (r->seen[i].head.kind == TD_TAPE_SEGMENT_LIVE && r->seen[i].head.used > 0
        && r->seen[i].head.first_seq > newest)
      newest = r->seen[i].head.first_seq;
  return newest;
}

bool
td_tape_reader_poll (TdTapeReader *r)
{
  TdTapeState state;
  struct stat st;
  bool known, any;
  uint32_t live;

  if (fstat (r->fd, &st) != 0)
    return false;
  known = td__tape_pread (r->fd, &state, sizeof state, TD_TAPE_STATE_OFFSET)
          && state.crc == td__tape_crc (0, &state, offsetof (TdTapeState, crc));
  if (known && r->n_seen > 0 && state.n_changes == r->state.n_changes
      && (uint64_t)st.st_size == r->file_bytes)
    {
      /* The tail is written without a change of the state: the disk may be full. */
      refresh_growing (r);
      return td__tape_read_kind (r, TD_TAPE_SEGMENT_DEFS);
    }
  any = known && state.n_segments == r->state.n_segments && r->n_seen > 0;
  r->file_bytes = (uint64_t)st.st_size;
  r->state = known ? state : (TdTapeState){ 0 };
  r->has_state = known;
  if (any)
    refresh_growing (r);
  else
    walk_again (r);
  any = td__tape_read_kind (r, TD_TAPE_SEGMENT_DEFS);
  td__tape_read_tally (r);
  any |= td__tape_read_index (r);
  td__tape_mark_faults (r);
  td__tape_thin (r);
  live = newest_live_seq (r);
  any |= live != r->live_seq;
  r->live_seq = live;
  return any;
}

/* A reference whose arrays have other names, or weights, are often meant for one. */
static const char *
not_a_tape (const TdTapeHeader *h)
{
  if (memcmp (h->magic, "PK\3\4", 4) != 0 && memcmp (h->magic, "PK\5\6", 4) != 0)
    return "not a tape";
  return "not a tape but a zip file; arrays of a reference are called LAYER/out, LAYER/grad or "
         "LAYER/PARAMETER/grad";
}

static const char *
header_fault (const TdTapeHeader *h, bool complete, char *text, size_t n)
{
  if (memcmp (h->magic, TD_TAPE_MAGIC, sizeof h->magic) != 0)
    return not_a_tape (h);
  if (!complete)
    return "a tape that was cut off in its header";
  if (h->major > TD_TAPE_MAJOR)
    {
      snprintf (text, n, "made with tape format %u.%u; this version reads up to %u.x", h->major,
                h->minor, TD_TAPE_MAJOR);
      return text;
    }
  if (h->crc != td__tape_crc (0, h, offsetof (TdTapeHeader, crc)))
    return "a tape with a damaged header";
  if (h->header_bytes < TD_TAPE_STATE_OFFSET + sizeof (TdTapeState)
      || h->header_bytes % 1024 != 0)
    return "a tape with an impossible header";
  return NULL;
}

TdTapeReader *
td_tape_reader_open (const char *path, char *error, size_t n)
{
  return td_tape_reader_open_bounded (path, 0, error, n);
}

TdTapeReader *
td_tape_reader_open_bounded (const char *path, uint32_t max_summaries, char *error, size_t n)
{
  TdTapeReader *r = calloc (1, sizeof *r);
  char text[128];
  const char *fault = r ? NULL : "no memory";
  struct stat st;
  bool complete;

  if (r == NULL || (r->fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
    {
      snprintf (error, n, "%s", fault ? fault : strerror (errno));
      free (r);
      return NULL;
    }
  if (fstat (r->fd, &st) != 0 || !S_ISREG (st.st_mode))
    fault = "not a file";
  else
    {
      complete = td__tape_pread (r->fd, &r->header, sizeof r->header, 0);
      fault = header_fault (&r->header, complete, text, sizeof text);
    }
  if (fault != NULL)
    {
      snprintf (error, n, "%s", fault);
      close (r->fd);
      free (r);
      return NULL;
    }
  r->summaries_sorted = r->reports_sorted = r->faults_sorted = true;
  r->max_summaries = max_summaries;
  r->stride = 1;
  td_tape_reader_poll (r);
  td__tape_look_for_damage (r);
  return r;
}

void
td_tape_reader_free (TdTapeReader *r)
{
  if (r == NULL)
    return;

  TapeArray *arrays[]
      = { &r->strings,        &r->opdefs,          &r->sites,      &r->paths,
          &r->infos,          &r->sources,         &r->parameters, &r->notices,
          &r->summaries,      &r->reports,         &r->structures, &r->aliases,
          &r->memory_spots,   &r->structure_spots, &r->chains,     &r->static_events,
          &r->schedule_spots, &r->faults,          &r->ooms,       &r->oom_holders,
          &r->oom_links };

  close (r->fd);
  free (r->seen);
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    free (arrays[i]->items);
  for (uint32_t i = 0; i < r->texts.n; i++)
    free (((char **)r->texts.items)[i]);
  free (r->texts.items);
  for (unsigned k = 0; k < 2; k++)
    for (unsigned i = 0; i < TAPE_CACHE; i++)
      td__tape_part_unref (r->cache[k][i]);
  free (r);
}
