/*
 * Which blocks are alive at an event: a walk over the records of memory, of which a snapshot
 * has millions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-memory.h"

/* Blocks by device and address: open addressing, with places of `blocks` plus 1. */
typedef struct
{
  GArray *blocks; /* TdMemoryBlock, in any order */
  guint32 *slots;
  guint n_slots; /* a power of two, more than twice the blocks */
} Alive;

#define BLOCK(a, i) g_array_index ((a)->blocks, TdMemoryBlock, i)

static guint
home_of (const Alive *a, guint64 address, guint device)
{
  const guint64 hash
      = (address ^ (guint64)device << 56) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);

  return (guint)(hash >> 32) & (a->n_slots - 1);
}

/* Its slot, or the free one where it would be. */
static guint
find_slot (const Alive *a, guint64 address, guint device)
{
  guint slot = home_of (a, address, device);

  for (; a->slots[slot] > 0; slot = (slot + 1) & (a->n_slots - 1))
    if (BLOCK (a, a->slots[slot] - 1).address == address
        && BLOCK (a, a->slots[slot] - 1).device == device)
      break;
  return slot;
}

static void
grow (Alive *a)
{
  g_free (a->slots);
  a->n_slots = MAX (a->n_slots * 2, 256);
  a->slots = g_new0 (guint32, a->n_slots);
  for (guint i = 0; i < a->blocks->len; i++)
    a->slots[find_slot (a, BLOCK (a, i).address, BLOCK (a, i).device)] = i + 1;
}

static void
insert (Alive *a, const TdMemoryBlock *block)
{
  guint slot;

  if ((a->blocks->len + 1) * 2 > a->n_slots)
    grow (a);
  slot = find_slot (a, block->address, block->device);
  if (a->slots[slot] > 0)
    {
      BLOCK (a, a->slots[slot] - 1) = *block;
      return;
    }
  g_array_append_vals (a->blocks, block, 1);
  a->slots[slot] = a->blocks->len;
}

/* Others that found this slot taken move up, so that they are found without it. */
static void
empty_slot (Alive *a, guint hole)
{
  const guint mask = a->n_slots - 1;

  a->slots[hole] = 0;
  for (guint slot = (hole + 1) & mask; a->slots[slot] > 0; slot = (slot + 1) & mask)
    {
      const TdMemoryBlock *block = &BLOCK (a, a->slots[slot] - 1);
      const guint home = home_of (a, block->address, block->device);

      if (((slot - home) & mask) < ((slot - hole) & mask))
        continue;
      a->slots[hole] = a->slots[slot];
      a->slots[slot] = 0;
      hole = slot;
    }
}

/* The last one takes its place. */
static void
drop (Alive *a, guint64 address, guint device)
{
  const guint slot = a->n_slots > 0 ? find_slot (a, address, device) : 0;
  guint at, last = a->blocks->len - 1;

  if (a->n_slots == 0 || a->slots[slot] == 0)
    return;
  at = a->slots[slot] - 1;
  a->slots[find_slot (a, BLOCK (a, last).address, BLOCK (a, last).device)] = at + 1;
  BLOCK (a, at) = BLOCK (a, last);
  g_array_set_size (a->blocks, last);
  empty_slot (a, slot);
}

static int
by_address (gconstpointer a, gconstpointer b)
{
  const TdMemoryBlock *x = a, *y = b;

  if (x->device != y->device) /* the host's last */
    return x->device == 0 ? 1 : y->device == 0 ? -1 : (x->device > y->device ? 1 : -1);
  return (x->address > y->address) - (x->address < y->address);
}

GArray *
td_memory_blocks_at (const TdIteration *iteration, gint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  Alive alive = { .blocks = g_array_new (FALSE, FALSE, sizeof (TdMemoryBlock)) };

  for (guint i = 0; i < t->n_blocks; i++)
    {
      const TdTapeBlock *b = &t->blocks[i];
      const gint var = b->key ? td_iteration_find_var (iteration, b->key) : -1;
      TdMemoryBlock block = { b->address, b->bytes, b->key, b->category, b->device, var };

      insert (&alive, &block);
    }
  for (guint m = 0; m < t->n_memory && (event < 0 || t->memory[m].event <= (guint)event); m++)
    {
      const TdTapeMemory *r = &t->memory[m];
      TdMemoryBlock block = { .address = r->address,
                              .bytes = r->bytes,
                              .category = r->category,
                              .device = r->device,
                              .var = r->var < t->n_vars ? (gint)r->var : -1 };

      if (r->kind == TD_TAPE_MEMORY_ALLOC)
        insert (&alive, &block);
      else if (r->kind == TD_TAPE_MEMORY_FREE)
        drop (&alive, r->address, r->device);
    }
  g_free (alive.slots);
  for (guint i = 0; i < alive.blocks->len; i++) /* of few: variables lie anywhere in memory */
    if (BLOCK (&alive, i).var >= 0)
      BLOCK (&alive, i).key = t->vars[BLOCK (&alive, i).var].key;
  g_array_sort (alive.blocks, by_address);
  return alive.blocks;
}

gint
td_memory_blocks_find (const GArray *blocks, guint64 address)
{
  for (guint i = 0; i < blocks->len; i++)
    {
      const TdMemoryBlock *b = &g_array_index (blocks, TdMemoryBlock, i);

      if (address >= b->address && address - b->address < MAX (b->bytes, 1))
        return (gint)i;
    }
  return -1;
}
