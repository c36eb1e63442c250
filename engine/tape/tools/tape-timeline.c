/* PyTorch's raw memory timeline (export_memory_timeline of its profiler, "*.raw.json"): rows of
 * time, action, bytes and category, as the trace of a snapshot.
 *
 * Rows do not say which block they are of.  One that gives bytes back is taken to give back the
 * newest block of that size and category: sums are the file's, whichever it was.  Addresses are
 * made up, those of blocks that were given back used again.
 * SPDX-License-Identifier: MIT */
#include "tape-import.h"
#include "tape-trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS ((uint64_t)1 << 24)
#define MAX_BYTES ((int64_t)1 << 48)

enum
{
  DEVICE = 1, /* which one the file does not say */
  ALIGN = 512,
  N_CATEGORIES = 8,
  FREE_CATEGORY = N_CATEGORIES /* in the key of a block that nobody has */
};

/* What a row's number stands for; torch/profiler/_memory_profiler.py. */
static const uint8_t categories[N_CATEGORIES] = {
  TD_TAPE_CATEGORY_PARAMETER, TD_TAPE_CATEGORY_OPTIMIZER,  TD_TAPE_CATEGORY_INPUT,
  TD_TAPE_CATEGORY_WORKSPACE, TD_TAPE_CATEGORY_ACTIVATION, TD_TAPE_CATEGORY_GRADIENT,
  TD_TAPE_CATEGORY_OTHER,     TD_TAPE_CATEGORY_OTHER,
};

/** A block, on the list of those like it. */
typedef struct
{
  uint64_t at;
  uint32_t next; /* block, + 1 */
  bool live;
  uint8_t category;
  int64_t bytes;
} Block;

typedef struct
{
  TapeSnapshot *s;
  Block *blocks;
  uint64_t n_blocks, room_blocks;
  TapeMap lists;   /* size and category -> list, + 1 */
  uint32_t *heads; /* of each list: a block, + 1 */
  uint64_t n_lists, room_heads;
  uint64_t end; /* of all addresses */
  char *error;
  size_t n_error;
} Timeline;

/** One row. */
typedef struct
{
  int64_t time_ns, bytes;
  unsigned category;
} Row;

static bool
fail (Timeline *t, uint64_t row, const char *what)
{
  snprintf (t->error, t->n_error, "row %" PRIu64 ": %s", row, what);
  return false;
}

/* An integer of either sign. */
static bool
take_integer (const TdJsonReader *r, int64_t *out)
{
  char text[32], *end;

  if (r->token != TD_JSON_NUMBER || r->n == 0 || r->n > 19)
    return false;
  snprintf (text, sizeof text, "%.*s", (int)r->n, r->text);
  *out = strtoll (text, &end, 10);
  return *end == '\0';
}

static const char *
take_row (TdJsonReader *r, Row *row)
{
  int64_t number[4];

  if (td__json_next (r) != TD_JSON_ARRAY)
    return "a list of time, action, bytes and category expected";
  for (int i = 0; i < 4; i++)
    {
      td__json_next (r);
      if (!take_integer (r, &number[i]))
        return "four whole numbers expected";
    }
  if (td__json_next (r) != TD_JSON_ARRAY_END || td__json_next (r) != TD_JSON_END)
    return "four whole numbers expected";
  if (number[0] < -1)
    return "a time below 0";
  if (number[2] > MAX_BYTES || number[2] < -MAX_BYTES)
    return "no number of bytes that can be";
  if (number[3] < 0 || number[3] >= N_CATEGORIES)
    return "a category that is not known";
  *row = (Row){ .time_ns = number[0], .bytes = number[2], .category = (unsigned)number[3] };
  return NULL;
}

/* The list of blocks of a size and a category.  NULL: no memory. */
static uint32_t *
list_of (Timeline *t, int64_t bytes, unsigned category)
{
  const uint64_t hash = td_tape_hash (td_tape_hash (0, (uint64_t)bytes), category);
  uint32_t list = td__tape_map_find (&t->lists, hash, NULL, NULL);

  if (list == 0)
    {
      if (!td__tape_reserve (&t->heads, &t->room_heads, t->n_lists + 1, sizeof *t->heads)
          || !td__tape_map_add (&t->lists, hash, (uint32_t)t->n_lists + 1))
        return NULL;
      t->heads[t->n_lists++] = 0;
      list = (uint32_t)t->n_lists;
    }
  return &t->heads[list - 1];
}

/* Move the first block of one list to another.  0: there is none. */
static uint32_t
move (Timeline *t, int64_t bytes, unsigned from, unsigned to)
{
  uint32_t *list = list_of (t, bytes, from);
  const uint32_t block = list != NULL ? *list : 0;
  uint32_t *other;

  if (block == 0)
    return 0;
  *list = t->blocks[block - 1].next;
  other = list_of (t, bytes, to);
  if (other == NULL)
    return 0;
  t->blocks[block - 1].next = *other;
  *other = block;
  return block;
}

/* A block that was given back, or a new one.  0: no memory. */
static uint32_t
find_block (Timeline *t, const Row *row)
{
  uint32_t block = move (t, row->bytes, FREE_CATEGORY, row->category), *list;

  if (block != 0)
    return block;
  list = list_of (t, row->bytes, row->category);
  if (list == NULL
      || !td__tape_reserve (&t->blocks, &t->room_blocks, t->n_blocks + 1, sizeof *t->blocks))
    return 0;
  t->blocks[t->n_blocks++] = (Block){ .at = t->end, .next = *list, .bytes = row->bytes };
  *list = (uint32_t)t->n_blocks;
  t->end += ((uint64_t)row->bytes + ALIGN - 1) / ALIGN * ALIGN;
  return *list;
}

static bool
add_entry (Timeline *t, const Row *row, const Block *block, TapeEntryKind kind)
{
  TapeSnapshot *s = t->s;

  if (!td__tape_reserve (&s->entries, &s->room_entries, s->n_entries + 1, sizeof *s->entries))
    return false;
  s->entries[s->n_entries++] = (TapeEntry){ .at = block->at,
                                            .bytes = (uint64_t)block->bytes,
                                            .time_us = (uint64_t)row->time_ns / 1000,
                                            .place.category = categories[row->category],
                                            .kind = (uint8_t)kind,
                                            .device = DEVICE };
  return true;
}

/* Bytes that were there before (time -1) are none of the trace's. */
static bool
use_row (Timeline *t, Row *row, uint64_t n)
{
  uint32_t block;

  if (row->bytes == 0)
    return true;
  if (row->bytes > 0)
    {
      block = find_block (t, row);
      if (block == 0)
        return fail (t, n, "no memory");
      t->blocks[block - 1].live = true;
      t->blocks[block - 1].category = (uint8_t)row->category;
      return row->time_ns < 0 || add_entry (t, row, &t->blocks[block - 1], TAPE_ENTRY_ALLOC)
             || fail (t, n, "no memory");
    }
  row->bytes = -row->bytes;
  if (row->time_ns < 0)
    return fail (t, n, "bytes are given back before the time begins");
  block = move (t, row->bytes, row->category, FREE_CATEGORY);
  if (block == 0)
    return fail (t, n, "it gives back what nobody has");
  t->blocks[block - 1].live = false;
  return add_entry (t, row, &t->blocks[block - 1], TAPE_ENTRY_FREE) || fail (t, n, "no memory");
}

static bool
take_rows (Timeline *t, TapeTraceFile *f)
{
  TdJsonReader item;
  const char *key;

  while (td__tape_trace_next (f, &key, &item, t->error, t->n_error))
    {
      const uint64_t n = td__tape_trace_count (f);
      Row row;
      const char *wrong = take_row (&item, &row);

      if (wrong != NULL)
        return fail (t, n, wrong);
      if (n > MAX_ROWS)
        return fail (t, n, "there are too many");
      if (!use_row (t, &row, n))
        return false;
    }
  return t->error[0] == '\0';
}

/* What is there at the end.  How much the device had taken for it, nobody says. */
static bool
take_end (Timeline *t)
{
  TapeSnapshot *s = t->s;

  for (uint64_t i = 0; i < t->n_blocks; i++)
    {
      const Block *block = &t->blocks[i];

      if (!block->live)
        continue;
      if (!td__tape_reserve (&s->blocks, &s->room_blocks, s->n_blocks + 1, sizeof *s->blocks))
        return fail (t, 0, "no memory");
      s->blocks[s->n_blocks++] = (TapeEndBlock){ .at = block->at,
                                                 .bytes = (uint64_t)block->bytes,
                                                 .requested = (uint64_t)block->bytes,
                                                 .place.category = categories[block->category],
                                                 .device = DEVICE };
    }
  s->used[DEVICE] = true;
  return true;
}

bool
td__tape_timeline_take (TapeSnapshot *s, TapeTraceFile *f, char *error, size_t n)
{
  Timeline t = { .s = s, .end = ALIGN, .error = error, .n_error = n };
  bool whole;

  s->timed = true;
  whole = take_rows (&t, f) && take_end (&t);
  free (t.blocks);
  free (t.heads);
  td__tape_map_clear (&t.lists);
  return whole;
}
