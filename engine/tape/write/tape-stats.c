/* Statistics that wait for the end of their iteration, in the blocks of packed sections.  Which
 * variables they are of is known only then: blocks are unpacked, named and packed again, one
 * at a time.
 * SPDX-License-Identifier: MIT */
#include "tape-pack.h"
#include "writer-private.h"

#include <stdlib.h>
#include <string.h>

enum
{
  ROOM_KEPT = 1 << 20 /* bytes of a store that was cleared */
};

struct TdTapeStatsStore
{
  TapeBuffer packed; /* blocks, one after the other */
  size_t *ends;      /* of each block */
  uint32_t n_blocks, room;
  TdTapeStats *open; /* the newest, fewer than a block; grows up to it */
  uint32_t n_open, room_open;
};

TdTapeStatsStore *
td_tape_stats_store_new (void)
{
  return calloc (1, sizeof (TdTapeStatsStore));
}

void
td_tape_stats_store_free (TdTapeStatsStore *store)
{
  if (store == NULL)
    return;
  free (store->packed.bytes);
  free (store->ends);
  free (store->open);
  free (store);
}

void
td_tape_stats_store_clear (TdTapeStatsStore *store)
{
  if (store->packed.room > ROOM_KEPT)
    {
      free (store->packed.bytes);
      store->packed = (TapeBuffer){ 0 };
    }
  store->packed.n = 0;
  store->packed.failed = false;
  store->n_blocks = store->n_open = 0;
}

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
close_block (TdTapeStatsStore *store)
{
  if (!make_room ((void **)&store->ends, store->n_blocks, &store->room, sizeof *store->ends,
                  UINT32_MAX)
      || !td__tape_pack_block (&store->packed, sizeof *store->open, store->open, store->n_open))
    return false;
  store->ends[store->n_blocks++] = store->packed.n;
  store->n_open = 0;
  return true;
}

bool
td_tape_stats_store_add (TdTapeStatsStore *store, const TdTapeStats *stats)
{
  if (store->n_open == TAPE_PACK_BLOCK && !close_block (store))
    return false;
  if (!make_room ((void **)&store->open, store->n_open, &store->room_open, sizeof *store->open,
                  TAPE_PACK_BLOCK))
    return false;
  store->open[store->n_open] = *stats;
  store->open[store->n_open++].var = 0; /* packs to nothing */
  return true;
}

/* ------------------------------------------------------------------------ onto the tape */

typedef struct
{
  TapeBuffer *b;
  size_t place; /* of the section, when `n_packed` is not 0 */
  uint64_t n_packed;
  TdTapeStats *rows; /* a block that fills up */
  uint32_t n;
} Out;

static bool
put_block (Out *out)
{
  if (out->n_packed == 0)
    out->place = td__tape_pack_begin (out->b);
  out->n_packed += out->n;
  if (!td__tape_pack_block (out->b, sizeof *out->rows, out->rows, out->n))
    return false;
  out->n = 0;
  return true;
}

static bool
put_rows (Out *out, const TdTapeStats *rows, const uint32_t *vars, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    {
      if (vars[i] == TD_TAPE_NONE)
        continue;
      if (out->n == TAPE_PACK_BLOCK && !put_block (out))
        return false;
      out->rows[out->n] = rows[i];
      out->rows[out->n++].var = vars[i];
    }
  return true;
}

void
td__tape_put_stats_store (TapeBuffer *b, const TdTapeStatsStore *store, const uint32_t *vars)
{
  const uint32_t most = store->n_blocks > 0 ? TAPE_PACK_BLOCK : store->n_open;
  Out out = { .b = b, .rows = malloc ((most + 1) * sizeof *out.rows) };
  TdTapeStats *rows = store->n_blocks > 0 ? malloc (TAPE_PACK_BLOCK * sizeof *rows) : NULL;
  bool done = out.rows != NULL && (store->n_blocks == 0 || rows != NULL);
  size_t at = 0;

  for (uint32_t i = 0; done && i < store->n_blocks; i++)
    {
      done = td__tape_unpack (store->packed.bytes + at, store->ends[i] - at, sizeof *rows,
                              TAPE_PACK_BLOCK, rows)
             && put_rows (&out, rows, vars, TAPE_PACK_BLOCK);
      vars += TAPE_PACK_BLOCK;
      at = store->ends[i];
    }
  done = done && put_rows (&out, store->open, vars, store->n_open);
  if (done && out.n_packed == 0)
    td__tape_buffer_section (b, TD_TAPE_SECTION_STATS, sizeof *out.rows, out.n, out.rows);
  else if (done && (out.n == 0 || put_block (&out)))
    td__tape_pack_end (b, out.place, TD_TAPE_SECTION_STATS, sizeof *out.rows, out.n_packed);
  b->failed = b->failed || !done;
  free (out.rows);
  free (rows);
}
