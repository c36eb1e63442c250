/* The growing buffer and the hash table that writer and reader use.
 * SPDX-License-Identifier: MIT */
#include "tape-pack.h"

#include <stdlib.h>
#include <string.h>

void *
td__tape_buffer_add (TapeBuffer *b, size_t n)
{
  void *at;

  if (b->failed || n > SIZE_MAX / 4 - b->n)
    {
      b->failed = true;
      return NULL;
    }
  if (b->n + n > b->room)
    {
      size_t room = b->room ? b->room : 4096;
      char *bytes;

      while (room < b->n + n)
        room *= 2;
      bytes = realloc (b->bytes, room);
      if (bytes == NULL)
        {
          b->failed = true;
          return NULL;
        }
      b->bytes = bytes;
      b->room = room;
    }
  at = b->bytes + b->n;
  b->n += n;
  return at;
}

void
td__tape_buffer_put (TapeBuffer *b, const void *bytes, size_t n)
{
  void *at = td__tape_buffer_add (b, n);

  if (at != NULL && n > 0)
    memcpy (at, bytes, n);
}

void
td__tape_buffer_section (TapeBuffer *b, uint32_t kind, uint32_t stride, uint64_t count,
                         const void *elements)
{
  static const char zeros[8];
  TdTapeSection section = { .kind = kind, .stride = stride, .count = count };
  size_t bytes = (size_t)(stride * count);

  if (count == 0)
    return;
  if (bytes >= TAPE_PACK_FROM && stride % 4 == 0 && stride <= TAPE_PACK_MAX_STRIDE)
    {
      td__tape_pack (b, kind, stride, count, elements);
      return;
    }
  td__tape_buffer_put (b, &section, sizeof section);
  td__tape_buffer_put (b, elements, bytes);
  td__tape_buffer_put (b, zeros, (size_t)(TAPE_ALIGN (bytes) - bytes));
}

uint32_t
td__tape_map_find (const TapeMap *map, uint64_t hash,
                   bool (*same) (const void *user, uint32_t value), const void *user)
{
  if (map->room == 0)
    return 0;
  for (uint32_t i = (uint32_t)hash & (map->room - 1); map->values[i] != 0;
       i = (i + 1) & (map->room - 1))
    if (map->hashes[i] == hash && (same == NULL || same (user, map->values[i])))
      return map->values[i];
  return 0;
}

static void
place (TapeMap *map, uint64_t hash, uint32_t value)
{
  uint32_t i = (uint32_t)hash & (map->room - 1);

  while (map->values[i] != 0)
    i = (i + 1) & (map->room - 1);
  map->hashes[i] = hash;
  map->values[i] = value;
}

bool
td__tape_map_add (TapeMap *map, uint64_t hash, uint32_t value)
{
  if (map->n * 2 >= map->room)
    {
      TapeMap bigger = { .room = map->room ? map->room * 2 : 64, .n = map->n };

      bigger.hashes = malloc (bigger.room * sizeof *bigger.hashes);
      bigger.values = calloc (bigger.room, sizeof *bigger.values);
      if (bigger.hashes == NULL || bigger.values == NULL)
        {
          free (bigger.hashes);
          free (bigger.values);
          return false;
        }
      for (uint32_t i = 0; i < map->room; i++)
        if (map->values[i] != 0)
          place (&bigger, map->hashes[i], map->values[i]);
      free (map->hashes);
      free (map->values);
      *map = bigger;
    }
  place (map, hash, value);
  map->n++;
  return true;
}

void
td__tape_map_clear (TapeMap *map)
{
  free (map->hashes);
  free (map->values);
  *map = (TapeMap){ 0 };
}

uint32_t
td__tape_count_events (const TdTapeIteration *it)
{
  uint32_t n = it->n_events;

  for (uint32_t i = 0; i < it->n_runs; i++)
    if (it->runs[i].flags & TD_TAPE_RUN_DISCARDED)
      n -= it->runs[i].end - it->runs[i].begin;
  return n <= it->n_events ? n : 0;
}
