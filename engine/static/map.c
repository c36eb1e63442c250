/* Growing the map from ids to numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "map.h"
#include "host-memory.h"

static void
grow (TdMap *m)
{
  TdMap larger = { NULL, m->n, m->capacity == 0 ? 64 : 2 * m->capacity };

  larger.slots = td__xcalloc (larger.capacity, sizeof *larger.slots);
  for (uint32_t i = 0; i < m->capacity; i++)
    if (m->slots[i].key != 0)
      larger.slots[td__map_slot (&larger, m->slots[i].key)] = m->slots[i];
  free (m->slots);
  *m = larger;
}

void
td__map_put (TdMap *m, uint64_t key, uint32_t value)
{
  uint32_t at;

  if (2 * (m->n + 1) > m->capacity)
    grow (m);
  at = td__map_slot (m, key);
  m->n += m->slots[at].key == 0;
  m->slots[at].key = key;
  m->slots[at].value = value;
}
