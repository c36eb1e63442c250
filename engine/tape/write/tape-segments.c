/* Segments: where frames go, how space is found, recycled within the budget, and written.
 * SPDX-License-Identifier: MIT */
#include "writer-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_BYTES ((uint64_t)sizeof (TdTapeSegment))
#define FLUSH_AT (256u << 10)
#define LARGE_FRAME (4u << 20)
#define PAGE 4096u

static const uint32_t usual_capacity[TD_TAPE_N_SEGMENTS] = {
  [TD_TAPE_SEGMENT_DEFS] = 64u << 10,         [TD_TAPE_SEGMENT_INDEX] = 64u << 10,
  [TD_TAPE_SEGMENT_KEPT] = 256u << 10,        [TD_TAPE_SEGMENT_RECENT] = 256u << 10,
  [TD_TAPE_SEGMENT_RECENT_INDEX] = 64u << 10, [TD_TAPE_SEGMENT_VALUES] = 1u << 20,
  [TD_TAPE_SEGMENT_LIVE] = 64u << 10,
};

void
td__tape_fail (TdTapeWriter *w, const char *what, int error_number)
{
  if (w->failed)
    return;
  w->failed = true;
  snprintf (w->error, sizeof w->error, "%s: %s", what, strerror (error_number));
}

static bool
write_at (TdTapeWriter *w, uint64_t offset, const void *bytes, size_t n)
{
  const char *p = bytes;

  if (w->lost)
    return false;
  while (n > 0)
    {
      ssize_t done = pwrite (w->fd, p, n, (off_t)offset);

      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        {
          td__tape_fail (w, "recording stopped, cannot write the tape",
                         done == 0 ? ENOSPC : errno);
          return false;
        }
      td__tape_wrote (w, offset, p, (size_t)done);
      p += done;
      offset += (uint64_t)done;
      n -= (size_t)done;
    }
  return true;
}

static bool
write_head (TdTapeWriter *w, uint64_t offset, TdTapeSegment *head)
{
  head->crc = td__tape_crc (0, head, offsetof (TdTapeSegment, crc));
  return write_at (w, offset, head, sizeof *head);
}

uint64_t
td__tape_own_bytes (const TdTapeWriter *w)
{
  return w->state.end - w->kind_bytes[TD_TAPE_SEGMENT_VALUES];
}

/* What budget and rate allow, of all but the values. */
static uint64_t
own_allowance (const TdTapeWriter *w)
{
  const uint64_t budget = w->header.budget_bytes, most = (uint64_t)1 << 60;
  const double grown = (double)w->now_ns / 1e9 * (double)w->rate_bytes;
  uint64_t now;

  if (w->rate_bytes == 0)
    return budget;
  now = w->start_bytes + (grown < (double)most ? (uint64_t)grown : most);
  if (now < 16 * w->largest_frame) /* an iteration of a large program is no excess */
    now = 16 * w->largest_frame;
  return budget != 0 && budget < now ? budget : now;
}

uint64_t
td__tape_allowance (const TdTapeWriter *w)
{
  const uint64_t values = w->kind_bytes[TD_TAPE_SEGMENT_VALUES], own = own_allowance (w);
  const uint64_t most = w->limit_bytes > values ? w->limit_bytes - values : 1;

  return w->limit_bytes != 0 && (own == 0 || own > most) ? most : own;
}

bool
td__tape_is_limited (const TdTapeWriter *w)
{
  return td__tape_allowance (w) != own_allowance (w);
}

uint64_t
td__tape_share (const TdTapeWriter *w, unsigned quarters)
{
  const uint64_t bytes = td__tape_allowance (w);

  return bytes != 0 ? bytes / 4 * quarters : UINT64_MAX;
}

static TapeSlot *
slot_at (TdTapeWriter *w, uint64_t offset)
{
  uint32_t lo = 0, hi = w->n_slots;

  while (lo < hi)
    {
      uint32_t mid = (lo + hi) / 2;

      if (w->slots[mid].offset < offset)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo < w->n_slots && w->slots[lo].offset == offset ? &w->slots[lo] : NULL;
}

static TapeSlot *
slot_insert (TdTapeWriter *w, uint32_t at, uint64_t offset, uint64_t capacity)
{
  if (w->n_slots == w->slot_room)
    {
      uint32_t room = w->slot_room ? w->slot_room * 2 : 64;
      TapeSlot *slots = realloc (w->slots, room * sizeof *slots);

      if (slots == NULL)
        {
          td__tape_fail (w, "recording stopped", ENOMEM);
          return NULL;
        }
      w->slots = slots;
      w->slot_room = room;
    }
  memmove (&w->slots[at + 1], &w->slots[at], (w->n_slots - at) * sizeof *w->slots);
  w->n_slots++;
  w->slots[at] = (TapeSlot){ .offset = offset,
                             .head = { .magic = TD_TAPE_SEGMENT_MAGIC, .capacity = capacity } };
  return &w->slots[at];
}

static void
slot_remove (TdTapeWriter *w, uint32_t at)
{
  w->n_slots--;
  memmove (&w->slots[at], &w->slots[at + 1], (w->n_slots - at) * sizeof *w->slots);
}

static bool
grows_now (const TdTapeWriter *w, uint64_t offset)
{
  for (unsigned k = 0; k < TD_TAPE_N_SEGMENTS; k++)
    if (w->growing[k].offset == offset)
      return true;
  return w->live[0].offset == offset || w->live[1].offset == offset;
}

/* Make slot `i` free and join it with free neighbours. */
static void
slot_free (TdTapeWriter *w, uint32_t i)
{
  TapeSlot *slot = &w->slots[i];

  w->kind_bytes[slot->head.kind] -= slot->head.capacity;
  w->kind_bytes[TD_TAPE_SEGMENT_FREE] += slot->head.capacity;
  slot->head.kind = TD_TAPE_SEGMENT_FREE;
  slot->head.used = 0;
  slot->head.generation++;
  while (i + 1 < w->n_slots && w->slots[i + 1].head.kind == TD_TAPE_SEGMENT_FREE)
    {
      w->slots[i].head.capacity += w->slots[i + 1].head.capacity;
      slot_remove (w, i + 1);
    }
  while (i > 0 && w->slots[i - 1].head.kind == TD_TAPE_SEGMENT_FREE)
    {
      w->slots[i - 1].head.capacity += w->slots[i].head.capacity;
      slot_remove (w, i);
      i--;
    }
  write_head (w, w->slots[i].offset, &w->slots[i].head);
}

/* The oldest segment of `kind` that does not grow now; -1: none. */
static int64_t
oldest (const TdTapeWriter *w, unsigned kind)
{
  int64_t found = -1;

  for (uint32_t i = 0; i < w->n_slots; i++)
    if (w->slots[i].head.kind == kind && !grows_now (w, w->slots[i].offset)
        && (found < 0
            || (int32_t)(w->slots[i].head.first_seq - w->slots[found].head.first_seq) < 0))
      found = i;
  return found;
}

/* Take `capacity` bytes from the free slot `i`; the rest stays free when it is worth it. */
static TapeSlot *
slot_take (TdTapeWriter *w, uint32_t i, uint64_t capacity)
{
  uint64_t rest = w->slots[i].head.capacity - capacity;

  w->kind_bytes[TD_TAPE_SEGMENT_FREE] -= w->slots[i].head.capacity;
  if (rest >= w->min_capacity)
    {
      TapeSlot *after = slot_insert (w, i + 1, w->slots[i].offset + capacity, rest);

      if (after == NULL || !write_head (w, after->offset, &after->head))
        return NULL;
      w->kind_bytes[TD_TAPE_SEGMENT_FREE] += rest;
      w->slots[i].head.capacity = capacity;
    }
  return &w->slots[i];
}

static TapeSlot *
take_free (TdTapeWriter *w, uint64_t capacity)
{
  for (uint32_t i = 0; i < w->n_slots; i++)
    if (w->slots[i].head.kind == TD_TAPE_SEGMENT_FREE && w->slots[i].head.capacity >= capacity)
      return slot_take (w, i, capacity);
  return NULL;
}

uint64_t
td__tape_first_whole (const TdTapeWriter *w)
{
  uint64_t first = UINT64_MAX;

  for (uint32_t i = 0; i < w->n_slots; i++)
    {
      const TdTapeSegment *head = &w->slots[i].head;

      if (w->slots[i].offset == w->growing[TD_TAPE_SEGMENT_RECENT].offset)
        head = &w->growing[TD_TAPE_SEGMENT_RECENT].head;
      if (head->kind == TD_TAPE_SEGMENT_RECENT && head->used > 0
          && head->first_iteration < first)
        first = head->first_iteration;
    }
  return first;
}

/* May the file grow by `capacity` bytes for a segment of `kind`? */
static bool
may_grow (const TdTapeWriter *w, unsigned kind, uint64_t capacity)
{
  const uint64_t budget = td__tape_allowance (w),
                 values = w->kind_bytes[TD_TAPE_SEGMENT_VALUES];

  if (w->limit_bytes != 0 && w->state.end + capacity > w->limit_bytes + w->must_bytes)
    return false;
  if (kind == TD_TAPE_SEGMENT_VALUES)
    return values + capacity <= w->header.values_bytes
           && (budget == 0
               || w->state.end + capacity <= budget + w->must_bytes + w->header.values_bytes);
  return budget == 0 || td__tape_own_bytes (w) + capacity <= budget + w->must_bytes;
}

/* Has a kind that recycles its own segments all that it may have? */
static bool
own_share_full (const TdTapeWriter *w, unsigned kind, uint64_t capacity)
{
  const uint64_t bytes = w->kind_bytes[kind] + capacity, budget = td__tape_allowance (w);
  int64_t old;

  if (kind == TD_TAPE_SEGMENT_VALUES)
    return !may_grow (w, kind, capacity);
  if (kind != TD_TAPE_SEGMENT_RECENT_INDEX || budget == 0
      || (bytes <= budget / 8 && bytes <= w->kind_bytes[TD_TAPE_SEGMENT_RECENT]))
    return false;
  /* Without its row an iteration that is whole cannot be found. */
  old = oldest (w, kind);
  return old >= 0 && w->slots[old].head.last_iteration < td__tape_first_whole (w);
}

/* Segments in a row. */
typedef struct
{
  uint32_t first, end;
  uint32_t age; /* of the newest of them: how many frames were written since it was begun */
} Row;

/* The shortest row from slot `i` on with `capacity` bytes, of what is free or of `kind` and
 * does not grow now.  Only one older than `least` counts. */
static bool
row_from (const TdTapeWriter *w, uint32_t i, unsigned kind, uint64_t capacity, uint32_t least,
          Row *row)
{
  uint64_t sum = 0;

  *row = (Row){ .first = i, .end = i, .age = UINT32_MAX };
  for (; sum < capacity && row->end < w->n_slots; row->end++)
    {
      const TapeSlot *slot = &w->slots[row->end];

      if (slot->head.kind != TD_TAPE_SEGMENT_FREE
          && (slot->head.kind != kind || grows_now (w, slot->offset)))
        return false;
      if (slot->head.kind == kind && w->seq + 1 - slot->head.first_seq < row->age)
        row->age = w->seq + 1 - slot->head.first_seq;
      if (row->age <= least)
        return false;
      sum += slot->head.capacity;
    }
  return sum >= capacity;
}

/* Free as many segments of `kind` in a row as make room for `capacity` bytes, the oldest that
 * there are.  Nothing is freed in vain: false. */
static bool
free_row (TdTapeWriter *w, unsigned kind, uint64_t capacity)
{
  Row best = { 0 }, row;
  uint64_t end;

  for (uint32_t i = 0; i < w->n_slots; i++)
    if (w->slots[i].head.kind == kind && row_from (w, i, kind, capacity, best.age, &row))
      best = row;
    else if (w->slots[i].head.kind == TD_TAPE_SEGMENT_FREE
             && row_from (w, i, kind, capacity, best.age, &row))
      best = row;
  if (best.end == 0)
    return false;
  end = w->slots[best.end - 1].offset;
  for (uint32_t i = best.first; i < w->n_slots && w->slots[i].offset <= end; i++)
    if (w->slots[i].head.kind == kind)
      {
        w->has_thinned = w->has_thinned || w->slots[i].head.used > 0;
        slot_free (w, i);
        i = best.first > 0 ? best.first - 1 : 0; /* neighbours have become one */
      }
  return true;
}

static TapeSlot *
grow (TdTapeWriter *w, uint64_t capacity)
{
  TapeSlot *slot = slot_insert (w, w->n_slots, w->state.end, capacity);

  w->state.end += slot ? capacity : 0;
  return slot;
}

/* Free space, else the end of the file, else the space of the oldest segments that may go. */
static TapeSlot *
find_allowed (TdTapeWriter *w, unsigned kind, uint64_t capacity)
{
  const uint64_t limit
      = kind == TD_TAPE_SEGMENT_VALUES ? w->header.values_bytes / 2 : td__tape_share (w, 2);

  if (capacity > limit)
    return NULL;
  while (!w->failed)
    {
      bool full = own_share_full (w, kind, capacity);
      TapeSlot *slot = full ? NULL : take_free (w, capacity);
      int64_t old;

      if (slot != NULL || w->failed)
        return slot;
      if (!full && may_grow (w, kind, capacity))
        return grow (w, capacity);
      if (!full && free_row (w, TD_TAPE_SEGMENT_RECENT, capacity))
        continue;
      old = full || kind == TD_TAPE_SEGMENT_RECENT_INDEX ? oldest (w, kind) : -1;
      if (old < 0)
        return NULL;
      slot_free (w, (uint32_t)old);
    }
  return NULL;
}

/* Find a place for a new segment.  What must be stored takes it even where no budget has any:
 * without the first iteration, or the one that the program stands in, there is nothing to look
 * at.  All the rest is counted beside it. */
static TapeSlot *
find_space (TdTapeWriter *w, unsigned kind, uint64_t capacity)
{
  TapeSlot *slot = find_allowed (w, kind, capacity);

  if (slot != NULL || !w->must || w->failed)
    return slot;
  w->must_bytes += capacity;
  w->must_kept += kind == TD_TAPE_SEGMENT_KEPT ? capacity : 0;
  return grow (w, capacity);
}

/* Write what is pending of a growing segment: frames first, then the head that counts them. */
static void
flush_growing (TdTapeWriter *w, TapeGrowing *g)
{
  TapeSlot *slot;

  if (g->offset == 0 || !g->dirty || w->failed)
    return;
  if (write_at (w, g->offset + HEAD_BYTES + g->head.used - g->pending.n, g->pending.bytes,
                g->pending.n))
    write_head (w, g->offset, &g->head);
  g->pending.n = 0;
  g->dirty = false;
  if (g->pending.room > 8 * FLUSH_AT)
    {
      free (g->pending.bytes);
      g->pending = (TapeBuffer){ 0 };
    }
  slot = slot_at (w, g->offset);
  if (slot != NULL)
    slot->head = g->head;
}

/* Begin a segment of `kind` with room for a frame of `need` bytes. */
static bool
begin_segment (TdTapeWriter *w, TapeGrowing *g, unsigned kind, uint64_t need)
{
  uint64_t capacity = usual_capacity[kind], allowance;
  TapeSlot *slot;

  if (kind != TD_TAPE_SEGMENT_VALUES && need > w->largest_frame)
    w->largest_frame = need;
  allowance = td__tape_allowance (w);
  if (allowance != 0 && capacity > allowance / 32)
    capacity = allowance / 32 / PAGE * PAGE;
  if (kind == TD_TAPE_SEGMENT_VALUES && capacity > w->header.values_bytes / 16)
    capacity = w->header.values_bytes / 16 / PAGE * PAGE;
  if (capacity < need + HEAD_BYTES)
    capacity = (need + HEAD_BYTES + PAGE - 1) / PAGE * PAGE;
  if (kind == TD_TAPE_SEGMENT_DEFS && w->kind_bytes[kind] + capacity > td__tape_share (w, 2))
    return false;
  slot = find_space (w, kind, capacity);
  if (slot == NULL)
    return false;
  w->kind_bytes[kind] += slot->head.capacity;
  slot->head.kind = (uint16_t)kind;
  slot->head.flags = 0;
  slot->head.used = 0;
  slot->head.generation++;
  slot->head.first_seq = w->seq + 1;
  slot->head.first_iteration = slot->head.last_iteration = 0;
  g->offset = slot->offset;
  g->head = slot->head;
  g->pending.n = 0;
  g->dirty = false;
  w->state.n_segments++;
  return write_head (w, g->offset, &g->head);
}

/* A large frame goes to the file at once: its bytes are there twice already, once in the
 * caller's hands. */
static bool
write_frame (TdTapeWriter *w, TapeGrowing *g, TdTapeFrame *frame, const void *a, size_t n_a,
             const void *b, size_t n_b)
{
  static const char zeros[8];
  uint64_t at;

  flush_growing (w, g);
  at = g->offset + HEAD_BYTES + g->head.used;
  frame->crc = td__tape_crc (0, frame, sizeof *frame);
  frame->crc = td__tape_crc (frame->crc, a, n_a);
  frame->crc = td__tape_crc (frame->crc, b, n_b);
  return !w->failed && write_at (w, at, frame, sizeof *frame)
         && write_at (w, at + sizeof *frame, a, n_a)
         && write_at (w, at + sizeof *frame + n_a, b, n_b)
         && write_at (w, at + frame->len, zeros,
                      (size_t)(TAPE_ALIGN (frame->len) - frame->len));
}

/* Frame the two parts into the pending bytes of `g`. */
static bool
put_frame (TdTapeWriter *w, TapeGrowing *g, unsigned type, const void *a, size_t n_a,
           const void *b, size_t n_b, TapePlace *place)
{
  TdTapeFrame frame = { .len = (uint32_t)(sizeof frame + n_a + n_b),
                        .type = (uint16_t)type,
                        .flags = (uint16_t)(type >> 16) };
  const uint64_t padded = TAPE_ALIGN (frame.len);
  char *at;

  if (padded >= LARGE_FRAME && td__tape_is_ours (w))
    {
      frame.seq = ++w->seq;
      if (!write_frame (w, g, &frame, a, n_a, b, n_b))
        return false;
    }
  else
    {
      at = td__tape_buffer_add (&g->pending, (size_t)padded);
      if (at == NULL)
        {
          td__tape_fail (w, "recording stopped", ENOMEM);
          return false;
        }
      frame.seq = ++w->seq;
      memset (at + padded - 8, 0, 8);
      memcpy (at, &frame, sizeof frame);
      memcpy (at + sizeof frame, a, n_a);
      if (n_b > 0)
        memcpy (at + sizeof frame + n_a, b, n_b);
      frame.crc = td__tape_crc (0, at, frame.len);
      memcpy (at + offsetof (TdTapeFrame, crc), &frame.crc, sizeof frame.crc);
    }
  if (place != NULL)
    *place = (TapePlace){ .offset = g->offset + HEAD_BYTES + g->head.used, .seq = frame.seq };
  g->head.used += padded;
  g->dirty = true;
  return true;
}

bool
td__tape_append (TdTapeWriter *w, unsigned kind, unsigned type, const void *a, size_t n_a,
                 const void *b, size_t n_b, uint64_t iteration, TapePlace *place)
{
  TapeGrowing *g = &w->growing[kind];
  uint64_t need = TAPE_ALIGN (sizeof (TdTapeFrame) + n_a + n_b);

  if (w->failed || need > UINT32_MAX / 2)
    return false;
  if (g->offset == 0 || HEAD_BYTES + g->head.used + need > g->head.capacity)
    {
      const uint64_t before = g->offset;
      const TapeSlot *slot;

      if (td__tape_is_ours (w))
        flush_growing (w, g);
      if (g->offset != 0 && w->failed)
        return false;
      g->offset = 0;
      if (!begin_segment (w, g, kind, need))
        {
          /* What is smaller may still find room in the old one. */
          slot = before != 0 ? slot_at (w, before) : NULL;
          g->offset = slot != NULL && slot->head.kind == kind ? before : 0;
          return false;
        }
    }
  if (g->head.used == 0)
    g->head.first_iteration = iteration;
  g->head.last_iteration = iteration;
  if (!put_frame (w, g, type, a, n_a, b, n_b, place))
    return false;
  if (g->pending.n >= FLUSH_AT && td__tape_is_ours (w))
    flush_growing (w, g);
  return !w->failed;
}

void
td__tape_append_live (TdTapeWriter *w, const void *bytes, size_t n, uint64_t iteration)
{
  TapeGrowing *g = &w->live[w->next_live];
  uint64_t need = TAPE_ALIGN (sizeof (TdTapeFrame) + n);
  TapeSlot *slot;

  if (w->failed || need > UINT32_MAX / 2)
    return;
  w->next_live ^= 1;
  if (g->offset != 0 && HEAD_BYTES + need > g->head.capacity)
    {
      slot = slot_at (w, g->offset);
      g->offset = 0;
      w->state.n_segments++;
      if (slot != NULL)
        slot_free (w, (uint32_t)(slot - w->slots));
    }
  w->must = true;
  if (g->offset == 0 && !begin_segment (w, g, TD_TAPE_SEGMENT_LIVE, need * 2))
    g->offset = 0;
  w->must = false;
  if (g->offset == 0)
    return;
  g->head.used = 0;
  g->head.generation++;
  g->head.first_seq = w->seq + 1;
  g->head.first_iteration = g->head.last_iteration = iteration;
  put_frame (w, g, TD_TAPE_FRAME_LIVE, bytes, n, NULL, 0, NULL);
}

void
td__tape_append_tail (TdTapeWriter *w, unsigned type, const void *a, size_t n_a, const void *b,
                      size_t n_b)
{
  TapeGrowing *g = &w->tail;
  bool failed = w->failed;

  if (HEAD_BYTES + g->head.used + TAPE_ALIGN (sizeof (TdTapeFrame) + n_a + n_b)
      > g->head.capacity)
    return;
  w->failed = false; /* these pages exist already: a full disk does not matter */
  if (put_frame (w, g, type, a, n_a, b, n_b, NULL))
    flush_growing (w, g);
  w->failed = w->failed || failed;
}

static void
write_state (TdTapeWriter *w)
{
  struct
  {
    TdTapeState state;
    TdTapeTally tally;
  } both;

  static_assert (offsetof (__typeof__ (both), tally)
                     == TD_TAPE_TALLY_OFFSET - TD_TAPE_STATE_OFFSET,
                 "both in one write");
  w->state.n_changes++;
  w->state.defs = w->growing[TD_TAPE_SEGMENT_DEFS].offset;
  w->state.index = w->growing[TD_TAPE_SEGMENT_INDEX].offset;
  w->state.live[0] = w->live[0].offset;
  w->state.live[1] = w->live[1].offset;
  w->state.crc = td__tape_crc (0, &w->state, offsetof (TdTapeState, crc));
  w->tally.crc = td__tape_crc (0, &w->tally, offsetof (TdTapeTally, crc));
  both.state = w->state;
  both.tally = w->tally;
  if (write_at (w, TD_TAPE_STATE_OFFSET, &both, sizeof both))
    w->written = w->state;
}

void
td__tape_flush_segments (TdTapeWriter *w)
{
  /* An index entry must not be seen before what it points to. */
  static const uint8_t order[]
      = { TD_TAPE_SEGMENT_DEFS,   TD_TAPE_SEGMENT_VALUES, TD_TAPE_SEGMENT_KEPT,
          TD_TAPE_SEGMENT_RECENT, TD_TAPE_SEGMENT_INDEX,  TD_TAPE_SEGMENT_RECENT_INDEX };

  if (!td__tape_is_ours (w))
    return;
  for (size_t i = 0; i < sizeof order; i++)
    flush_growing (w, &w->growing[order[i]]);
  flush_growing (w, &w->live[0]);
  flush_growing (w, &w->live[1]);
  if (!w->failed)
    write_state (w);
}

static int
by_first_seq (const void *x, const void *y)
{
  const TapeSlot *a = x, *b = y;
  int32_t d = (int32_t)(a->head.first_seq - b->head.first_seq);

  return d < 0 ? -1 : d > 0;
}

uint32_t
td__tape_index_slots (const TdTapeWriter *w, uint64_t *offsets, uint32_t room)
{
  TapeSlot *slots = malloc ((w->n_slots + 1) * sizeof *slots);
  uint32_t n = 0;

  for (uint32_t i = 0; slots != NULL && i < w->n_slots && n < room; i++)
    if (w->slots[i].head.kind == TD_TAPE_SEGMENT_INDEX)
      slots[n++] = w->slots[i];
  if (n > 1)
    qsort (slots, n, sizeof *slots, by_first_seq);
  for (uint32_t i = 0; i < n; i++)
    offsets[i] = slots[i].offset;
  free (slots);
  return n;
}

bool
td__tape_close_segment (TdTapeWriter *w, unsigned kind)
{
  flush_growing (w, &w->growing[kind]);
  w->growing[kind].offset = 0;
  return !w->failed;
}

char *
td__tape_read_segment (TdTapeWriter *w, uint64_t offset, uint64_t *n)
{
  const TapeSlot *slot = slot_at (w, offset);
  char *bytes = slot != NULL ? malloc (slot->head.used + 1) : NULL;

  *n = bytes != NULL ? slot->head.used : 0;
  for (uint64_t done = 0; done < *n;)
    {
      ssize_t some
          = pread (w->fd, bytes + done, *n - done, (off_t)(offset + HEAD_BYTES + done));

      if (some < 0 && errno == EINTR)
        continue;
      if (some <= 0)
        *n = done;
      done += some > 0 ? (uint64_t)some : 0;
    }
  return bytes;
}

void
td__tape_free_segment (TdTapeWriter *w, uint64_t offset)
{
  TapeSlot *slot = slot_at (w, offset);

  if (slot == NULL || grows_now (w, offset))
    return;
  slot_free (w, (uint32_t)(slot - w->slots));
  w->state.n_segments++;
}

bool
td__tape_adopt_segment (TdTapeWriter *w, uint64_t offset, const TdTapeSegment *head)
{
  TapeSlot *slot = slot_insert (w, w->n_slots, offset, head->capacity);
  uint32_t seq = head->first_seq + (uint32_t)(head->used / sizeof (TdTapeFrame)) + 1;

  if (slot == NULL || head->kind >= TD_TAPE_N_SEGMENTS)
    return false;
  slot->head = *head;
  w->min_capacity = 2 * PAGE;
  w->seq = (int32_t)(seq - w->seq) > 0 ? seq : w->seq;
  w->state.end = offset + head->capacity;
  if (offset == TD_TAPE_TAIL_OFFSET)
    {
      w->tail.offset = offset;
      w->tail.head = *head;
    }
  else
    w->kind_bytes[head->kind] += head->capacity;
  return true;
}

bool
td__tape_segments_start (TdTapeWriter *w)
{
  static const char zeros[PAGE];
  TapeSlot *slot;

  w->header.crc = td__tape_crc (0, &w->header, offsetof (TdTapeHeader, crc));
  w->state.end = PAGE;
  w->min_capacity = 2 * PAGE;
  slot = slot_insert (w, 0, TD_TAPE_TAIL_OFFSET, TD_TAPE_TAIL_BYTES);
  if (slot == NULL)
    return false;
  slot->head.kind = TD_TAPE_SEGMENT_DEFS;
  slot->head.first_seq = 1;
  w->tail.offset = slot->offset;
  w->tail.head = slot->head;
  if (!write_at (w, 0, zeros, sizeof zeros) || !write_head (w, TD_TAPE_TAIL_OFFSET, &slot->head)
      || !write_at (w, 0, &w->header, sizeof w->header))
    return false;
  write_state (w);
  return !w->failed;
}

void
td__tape_segments_free (TdTapeWriter *w)
{
  for (unsigned k = 0; k < TD_TAPE_N_SEGMENTS; k++)
    free (w->growing[k].pending.bytes);
  free (w->live[0].pending.bytes);
  free (w->live[1].pending.bytes);
  free (w->tail.pending.bytes);
  free (w->slots);
}
