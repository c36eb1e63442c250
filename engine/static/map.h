/* A map from ids to numbers: open addressing, no removal.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdlib.h>

typedef struct TdMap
{
  struct
  {
    uint64_t key; /**< 0: free */
    uint32_t value;
  } * slots;
  uint32_t n, capacity;
} TdMap;

static inline uint32_t
td__map_slot (const TdMap *m, uint64_t key)
{
  uint32_t at = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (m->capacity - 1);

  while (m->slots[at].key != 0 && m->slots[at].key != key)
    at = (at + 1) & (m->capacity - 1);
  return at;
}

static inline uint32_t
td__map_get (const TdMap *m, uint64_t key)
{
  uint32_t at;

  if (m->n == 0)
    return UINT32_MAX;
  at = td__map_slot (m, key);
  return m->slots[at].key == key ? m->slots[at].value : UINT32_MAX;
}

void td__map_put (TdMap *m, uint64_t key, uint32_t value);
static inline void
td__map_free (TdMap *m)
{
  free (m->slots);
  *m = (TdMap){ NULL, 0, 0 };
}
