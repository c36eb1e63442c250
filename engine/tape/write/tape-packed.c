/* Rows that wait for the end of their iteration, in the blocks of packed sections: where
 * nothing in them changes, the section is these blocks.  One block at a time is unpacked to be
 * looked at.
 * SPDX-License-Identifier: MIT */
#include "tape-pack.h"
#include "writer-private.h"

#include <stdlib.h>
#include <string.h>

enum
{
  ROOM_KEPT = 1 << 20 /* bytes of rows that were cleared */
};

typedef struct
{
  char *bytes;
  size_t n;
} Block;

struct TdTapeRows
{
  uint32_t size; /* of a row */
  Block *blocks; /* of TAPE_PACK_BLOCK rows each */
  uint32_t n_blocks, room;
  char *open; /* the newest, at most a block; grows up to it */
  uint32_t n_open, room_open;
  char *looked_at; /* the block that was unpacked last */
  uint32_t looked; /* which, plus 1; 0: none */
  bool changed;    /* and not yet packed again */
  bool failed;
  TapeBuffer scratch;
};

TdTapeRows *
td_tape_rows_new (uint32_t size)
{
  TdTapeRows *rows
      = size % 4 == 0 && size <= TAPE_PACK_MAX_STRIDE ? calloc (1, sizeof *rows) : NULL;

  if (rows != NULL)
    rows->size = size;
  return rows;
}

void
td_tape_rows_clear (TdTapeRows *rows)
{
  for (uint32_t i = 0; i < rows->n_blocks; i++)
    free (rows->blocks[i].bytes);
  if (rows->scratch.room > ROOM_KEPT)
    {
      free (rows->scratch.bytes);
      rows->scratch = (TapeBuffer){ 0 };
    }
  rows->n_blocks = rows->n_open = rows->looked = 0;
  rows->changed = rows->failed = rows->scratch.failed = false;
}

void
td_tape_rows_free (TdTapeRows *rows)
{
  if (rows == NULL)
    return;
  td_tape_rows_clear (rows);
  free (rows->scratch.bytes);
  free (rows->blocks);
  free (rows->open);
  free (rows->looked_at);
  free (rows);
}

uint32_t
td_tape_rows_count (const TdTapeRows *rows)
{
  return rows->n_blocks * TAPE_PACK_BLOCK + rows->n_open;
}

/* ------------------------------------------------------------------------ in */

/* Room for one more in an array that doubles. */
static bool
make_room (void **array, uint32_t n, uint32_t *room, size_t size, uint32_t most)
{
  const uint32_t wanted = *room == 0 ? 32 : *room * 2 < most ? *room * 2 : most;
  void *more;

  if (n < *room)
    return true;
  more = realloc (*array, wanted * size);
  if (more == NULL)
    return false;
  *array = more;
  *room = wanted;
  return true;
}

static bool
pack (TdTapeRows *rows, const char *from, Block *to)
{
  char *bytes;

  rows->scratch.n = 0;
  if (!td__tape_pack_block (&rows->scratch, rows->size, from, TAPE_PACK_BLOCK))
    return false;
  bytes = malloc (rows->scratch.n);
  if (bytes == NULL)
    return false;
  memcpy (bytes, rows->scratch.bytes, rows->scratch.n);
  free (to->bytes);
  *to = (Block){ .bytes = bytes, .n = rows->scratch.n };
  return true;
}

static bool
close_block (TdTapeRows *rows)
{
  if (rows->n_blocks >= UINT32_MAX / 2 / TAPE_PACK_BLOCK
      || !make_room ((void **)&rows->blocks, rows->n_blocks, &rows->room, sizeof *rows->blocks,
                     UINT32_MAX))
    return false;
  rows->blocks[rows->n_blocks] = (Block){ 0 };
  if (!pack (rows, rows->open, &rows->blocks[rows->n_blocks]))
    return false;
  rows->n_blocks++;
  rows->n_open = 0;
  return true;
}

bool
td_tape_rows_add (TdTapeRows *rows, const void *row)
{
  if (rows->n_open == TAPE_PACK_BLOCK && !close_block (rows))
    return false;
  if (!make_room ((void **)&rows->open, rows->n_open, &rows->room_open, rows->size,
                  TAPE_PACK_BLOCK))
    return false;
  memcpy (rows->open + (size_t)rows->n_open++ * rows->size, row, rows->size);
  return true;
}

/* ------------------------------------------------------------------------ looking */

static bool
pack_changed (TdTapeRows *rows)
{
  if (rows->changed && !pack (rows, rows->looked_at, &rows->blocks[rows->looked - 1]))
    rows->failed = true;
  rows->changed = false;
  return !rows->failed;
}

static bool
look_at (TdTapeRows *rows, uint32_t block)
{
  if (rows->looked == block + 1)
    return true;
  if (rows->looked_at == NULL)
    rows->looked_at = malloc ((size_t)TAPE_PACK_BLOCK * rows->size);
  if (rows->looked_at == NULL || !pack_changed (rows))
    return false;
  rows->looked = 0;
  if (!td__tape_unpack (rows->blocks[block].bytes, rows->blocks[block].n, rows->size,
                        TAPE_PACK_BLOCK, rows->looked_at))
    return false;
  rows->looked = block + 1;
  return true;
}

/* The row, and how many are there from it on. */
static char *
rows_from (TdTapeRows *rows, uint32_t i, uint32_t *n)
{
  const uint32_t block = i / TAPE_PACK_BLOCK, k = i % TAPE_PACK_BLOCK;
  const bool packed = block < rows->n_blocks;

  if (i >= td_tape_rows_count (rows) || (packed && !look_at (rows, block)))
    return NULL;
  /* The newest block may be full, and is the one after all others then. */
  *n = packed ? TAPE_PACK_BLOCK - k : rows->n_open - k;
  return (packed ? rows->looked_at : rows->open) + (size_t)k * rows->size;
}

const void *
td_tape_rows_at (TdTapeRows *rows, uint32_t i)
{
  uint32_t n;

  return rows_from (rows, i, &n);
}

void *
td_tape_rows_change (TdTapeRows *rows, uint32_t i)
{
  uint32_t n;
  char *row = rows_from (rows, i, &n);

  rows->changed = rows->changed || (row != NULL && i / TAPE_PACK_BLOCK < rows->n_blocks);
  return row;
}

void
td_tape_packed_time (const TdTapePacked *p, uint32_t event, uint64_t *start, uint64_t *duration)
{
  const TdTapeTicks *ticks = td_tape_rows_at (p->times, event);

  *start = *duration = 0;
  if (ticks == NULL)
    return;
  if (ticks->start > p->first_tick)
    *start = (uint64_t)((double)(ticks->start - p->first_tick) * p->ns_per_tick);
  *duration = (uint64_t)((double)ticks->duration * p->ns_per_tick);
}

/* ------------------------------------------------------------------------ onto the tape */

/* Too few to be packed there: less than TAPE_PACK_FROM bytes. */
static void
put_plain (TapeBuffer *b, TdTapeRows *rows, uint32_t kind)
{
  const uint32_t count = td_tape_rows_count (rows);
  char *all = malloc ((size_t)count * rows->size);
  bool done = all != NULL;
  uint32_t n;

  for (uint32_t i = 0; done && i < count; i += n)
    {
      const char *from = rows_from (rows, i, &n);

      done = from != NULL;
      if (done)
        memcpy (all + (size_t)i * rows->size, from, (size_t)n * rows->size);
    }
  if (done)
    td__tape_buffer_section (b, kind, rows->size, count, all);
  b->failed = b->failed || !done;
  free (all);
}

void
td__tape_put_rows (TapeBuffer *b, TdTapeRows *rows, uint32_t kind)
{
  const uint64_t count = td_tape_rows_count (rows);
  size_t place;

  if (count == 0)
    return;
  if (!pack_changed (rows))
    b->failed = true;
  if (count * rows->size < TAPE_PACK_FROM)
    {
      put_plain (b, rows, kind);
      return;
    }
  place = td__tape_pack_begin (b);
  for (uint32_t i = 0; i < rows->n_blocks; i++)
    td__tape_buffer_put (b, rows->blocks[i].bytes, rows->blocks[i].n);
  if (td__tape_pack_block (b, rows->size, rows->open, rows->n_open))
    td__tape_pack_end (b, place, kind, rows->size, count);
}
