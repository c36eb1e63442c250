/* Type-stable slots: memory of a slab is reused for the same type only, and never given back
 * before the end, so that a dead handle can still be recognised as one.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "host-memory.h"

#include <stdlib.h>
#include <unistd.h>

void
td__slab_init (TdSlab *slab, size_t item_bytes)
{
  *slab = (TdSlab){ .item_bytes = (item_bytes + 15) & ~(size_t)15 };
}

/* Only reached with an empty list.  Out of host memory for the engine's own small objects
 * cannot be reported through them: it ends the program, saying so. */
void *
td__slab_refill (TdSlab *slab)
{
  char *chunk = td__xcalloc (TD_SLAB_ITEMS, slab->item_bytes);
  void **chunks = td__xrealloc (slab->chunks, (slab->n_chunks + 1) * sizeof *chunks);

  slab->chunks = chunks;
  chunks[slab->n_chunks++] = chunk;
  for (int i = TD_SLAB_ITEMS - 1; i >= 1; i--)
    {
      void **item = (void **)(chunk + (size_t)i * slab->item_bytes);

      *item = slab->free;
      slab->free = item;
    }
  return chunk;
}

void
td__slab_finish (TdSlab *slab)
{
  for (size_t i = 0; i < slab->n_chunks; i++)
    free (slab->chunks[i]);
  free (slab->chunks);
  td__slab_init (slab, slab->item_bytes);
}
