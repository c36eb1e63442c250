/* What was live when memory ran out: the blocks of the iteration's start, and its records of
 * memory up to that moment.
 * SPDX-License-Identifier: MIT */
#include "../read/tape-oom.h"

#include <stdlib.h>
#include <string.h>

bool
td__tape_addresses_init (TapeAddresses *map, uint64_t n)
{
  uint64_t size = 64;

  while (size < 2 * n)
    size *= 2;
  map->mask = size - 1;
  map->keys = calloc (size, sizeof *map->keys);
  map->values = malloc (size * sizeof *map->values);
  if (map->keys == NULL || map->values == NULL)
    {
      td__tape_addresses_clear (map);
      return false;
    }
  memset (map->values, 0xff, size * sizeof *map->values);
  return true;
}

void
td__tape_addresses_clear (TapeAddresses *map)
{
  free (map->keys);
  free (map->values);
  *map = (TapeAddresses){ 0 };
}

uint32_t *
td__tape_address (TapeAddresses *map, uint64_t address)
{
  const uint64_t key = address + 1; /* 0: empty */
  uint64_t at = key * 0x9e3779b97f4a7c15u >> 17 & map->mask;

  while (map->keys[at] != 0 && map->keys[at] != key)
    at = (at + 1) & map->mask;
  map->keys[at] = key;
  return &map->values[at];
}

static uint32_t
var_of_key (const TdTapeIteration *it, uint64_t key)
{
  for (uint32_t i = 0; key != 0 && i < it->n_vars; i++)
    if ((it->vars[i].flags & TD_TAPE_VAR_EXTERNAL) && it->vars[i].key == key)
      return i;
  return TD_TAPE_NONE;
}

static void
add (TapeLiveSet *set, TapeAddresses *map, const TapeLive *one)
{
  *td__tape_address (map, one->address) = set->n;
  set->items[set->n++] = *one;
}

static void
add_start (TapeLiveSet *set, TapeAddresses *map, const TdTapeIteration *it, uint32_t device)
{
  for (uint32_t i = 0; i < it->n_blocks; i++)
    if (it->blocks[i].device == device)
      add (set, map,
           &(TapeLive){ .address = it->blocks[i].address,
                        .bytes = it->blocks[i].bytes,
                        .var = var_of_key (it, it->blocks[i].key),
                        .category = (uint8_t)it->blocks[i].category,
                        .at_start = true });
}

bool
td__tape_live_after (const TdTapeIteration *it, uint32_t device, uint32_t n_memory,
                     TapeLiveSet *set)
{
  TapeAddresses map = { 0 };
  uint32_t n = n_memory < it->n_memory ? n_memory : it->n_memory, kept = 0;

  *set = (TapeLiveSet){ .items = malloc ((it->n_blocks + (size_t)n + 1) * sizeof (TapeLive)) };
  if (set->items == NULL
      || !td__tape_addresses_init (&map, it->n_blocks + (uint64_t)it->n_memory))
    {
      free (set->items);
      set->items = NULL;
      return false;
    }
  add_start (set, &map, it, device);
  for (uint32_t i = 0; i < n; i++)
    {
      const TdTapeMemory *m = &it->memory[i];
      uint32_t *at;

      if (m->device != device)
        continue;
      if (m->kind == TD_TAPE_MEMORY_ALLOC)
        add (set, &map,
             &(TapeLive){ .address = m->address,
                          .bytes = m->bytes,
                          .var = m->var < it->n_vars ? m->var : TD_TAPE_NONE,
                          .category = m->category });
      else if (m->kind == TD_TAPE_MEMORY_FREE)
        {
          at = td__tape_address (&map, m->address);
          if (*at != UINT32_MAX)
            set->items[*at].bytes = 0;
          *at = UINT32_MAX;
        }
    }
  for (uint32_t i = 0; i < set->n; i++)
    if (set->items[i].bytes > 0)
      set->items[kept++] = set->items[i];
  set->n = kept;
  td__tape_addresses_clear (&map);
  return true;
}
