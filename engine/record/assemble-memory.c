/* Memory of an iteration: its records relative to the iteration, the blocks alive at the start,
 * totals by category; profiles that repeat are recognised before any of that is made.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdlib.h>
#include <string.h>

#define MANY_BLOCKS 16384
#define SOME_BLOCKS 2048
#define FIRST_PROFILES 16

static uint64_t
block_hash (uint64_t address, uint64_t bytes, unsigned category)
{
  return td_tape_hash (td_tape_hash (address, bytes), category);
}

/* The records with ids relative to the iteration. */
static bool
make_relative (TdAssembler *a, TdList *records)
{
  const TdTapeMemory *from = a->memory.items;
  TdTapeMemory *to;

  records->n = 0;
  to = td__list_add_n (records, sizeof *to, a->memory.n);
  if (to == NULL)
    return false;
  for (uint32_t i = 0; i < a->memory.n; i++)
    {
      to[i] = from[i];
      to[i].buffer = from[i].buffer ? from[i].buffer - a->begin.first_buffer : TD_TAPE_NO_ID;
      to[i].variable = from[i].variable ? from[i].variable - a->begin.first_id : TD_TAPE_NO_ID;
    }
  return true;
}

static uint64_t
key_of (TdAssembler *a, const TdShape *shape, uint64_t variable)
{
  uint32_t var = td__shape_var (a, shape, variable);
  TdMeta meta;

  if (var != TD_TAPE_NONE)
    return shape->it.vars[var].key;
  return variable && td__meta_find (a, variable, &meta) ? meta.key : 0;
}

static void
add_block (TdAssembler *a, const TdShape *shape, const TdTapeMemory *m)
{
  uint32_t at = td__id_map_get (&a->block_at, m->address);
  TdBlock *block;

  if (at == TD_TAPE_NONE && a->free_blocks.n > 0)
    at = ((const uint32_t *)a->free_blocks.items)[--a->free_blocks.n];
  if (at == TD_TAPE_NONE)
    {
      at = a->blocks.n;
      if (td__list_add (&a->blocks, sizeof *block) == NULL)
        return;
    }
  block = (TdBlock *)a->blocks.items + at;
  *block = (TdBlock){ .address = m->address,
                      .bytes = m->bytes,
                      .variable = m->variable,
                      .key = key_of (a, shape, m->variable),
                      .category = m->category,
                      .device = m->device,
                      .used = true };
  td__id_map_set (&a->block_at, m->address, at);
}

static void
remove_block (TdAssembler *a, const TdTapeMemory *m)
{
  uint32_t at = td__id_map_get (&a->block_at, m->address), *slot;

  if (at == TD_TAPE_NONE)
    return;
  ((TdBlock *)a->blocks.items)[at].used = false;
  td__id_map_remove (&a->block_at, m->address);
  slot = td__list_add (&a->free_blocks, sizeof *slot);
  if (slot != NULL)
    *slot = at;
}

/* Follow the records through totals and hash; with `commit` also through the blocks. */
static void
run (TdAssembler *a, const TdShape *shape, TdTapeIteration *it, uint64_t *end_hash, bool commit)
{
  const TdTapeMemory *m = a->memory.items;
  uint64_t bytes[TD_TAPE_N_CATEGORIES], total = a->live_total, hash = a->live_hash;

  memcpy (bytes, a->live_bytes, sizeof bytes);
  it->peak_bytes = total;
  for (uint32_t i = 0; i < a->memory.n; i++)
    {
      unsigned category = m[i].category < TD_TAPE_N_CATEGORIES ? m[i].category : 0;

      if (m[i].kind == TD_TAPE_MEMORY_ALLOC)
        {
          total += m[i].bytes;
          bytes[category] += m[i].bytes;
          hash += block_hash (m[i].address, m[i].bytes, category);
          it->peak_bytes = total > it->peak_bytes ? total : it->peak_bytes;
          if (commit)
            add_block (a, shape, &m[i]);
        }
      else if (m[i].kind == TD_TAPE_MEMORY_FREE)
        {
          /* What was allocated before recording began is not in the totals. */
          bool known = bytes[category] >= m[i].bytes && total >= m[i].bytes;

          total -= known ? m[i].bytes : 0;
          bytes[category] -= known ? m[i].bytes : 0;
          hash -= block_hash (m[i].address, m[i].bytes, category);
          if (commit)
            remove_block (a, &m[i]);
        }
    }
  it->end_bytes = total;
  *end_hash = hash;
  if (!commit)
    return;
  memcpy (a->live_bytes, bytes, sizeof bytes);
  a->live_total = total;
  a->live_hash = hash;
}

static int
by_address (const void *x, const void *y)
{
  const TdTapeBlock *a = x, *b = y;

  return a->address < b->address ? -1 : a->address > b->address;
}

static void
list_blocks (TdAssembler *a, TdList *blocks)
{
  const TdBlock *all = a->blocks.items;
  uint32_t most = a->n_profiles_made < FIRST_PROFILES ? MANY_BLOCKS : SOME_BLOCKS;

  blocks->n = 0;
  /* Never a dump of everything alive for each iteration of a program that leaks. */
  if (a->block_at.n > most)
    return;
  for (uint32_t i = 0; i < a->blocks.n; i++)
    {
      TdTapeBlock *block = all[i].used ? td__list_add (blocks, sizeof *block) : NULL;

      if (block != NULL)
        *block = (TdTapeBlock){ .address = all[i].address,
                                .bytes = all[i].bytes,
                                .key = all[i].key,
                                .category = all[i].category,
                                .device = all[i].device };
    }
  if (blocks->n > 1)
    qsort (blocks->items, blocks->n, sizeof (TdTapeBlock), by_address);
}

static void
remember (TdAssembler *a, const TdTapeIteration *it, const TdList *records, uint64_t start_hash,
          uint64_t end_hash)
{
  TdProfile *p = &a->profiles[0];

  for (unsigned i = 1; i < MAX_PROFILES; i++)
    if (a->profiles[i].used < p->used)
      p = &a->profiles[i];
  free (p->records);
  *p = (TdProfile){ .id = it->memory_profile,
                    .n = records->n,
                    .records = malloc (records->n * sizeof *p->records + 1),
                    .start_hash = start_hash,
                    .end_hash = end_hash,
                    .used = ++a->use_clock,
                    .peak_bytes = it->peak_bytes,
                    .end_bytes = it->end_bytes };
  memcpy (p->start_bytes, it->start_bytes, sizeof p->start_bytes);
  if (p->records == NULL)
    p->used = 0;
  else if (records->n > 0)
    memcpy (p->records, records->items, records->n * sizeof *p->records);
}

static TdProfile *
find_profile (TdAssembler *a, const TdList *records)
{
  for (unsigned i = 0; i < MAX_PROFILES; i++)
    {
      TdProfile *p = &a->profiles[i];

      if (p->used && p->id && p->n == records->n && p->start_hash == a->live_hash
          && (p->n == 0 || memcmp (p->records, records->items, p->n * sizeof *p->records) == 0))
        return p;
    }
  return NULL;
}

/* A profile that is the same but for where things lie: carried state moves about. */
static TdProfile *
find_moved_profile (TdAssembler *a, const TdList *records)
{
  const TdTapeMemory *now = records->items;

  for (unsigned i = 0; i < MAX_PROFILES; i++)
    {
      TdProfile *p = &a->profiles[i];
      uint32_t k = 0;

      if (!p->used || !p->id || p->n != records->n || p->n == 0
          || memcmp (p->start_bytes, a->live_bytes, sizeof p->start_bytes) != 0)
        continue;
      while (k < p->n
             && memcmp ((const char *)&now[k] + sizeof now->address,
                        (const char *)&p->records[k] + sizeof now->address,
                        sizeof now[k] - sizeof now->address)
                    == 0)
        k++;
      if (k == p->n)
        return p;
    }
  return NULL;
}

/* The iteration has the profile, with addresses and blocks of its own. */
static bool
use_moved_profile (TdAssembler *a, const TdShape *shape, TdTapeIteration *it,
                   const TdList *records, TdList *blocks)
{
  TdProfile *p = find_moved_profile (a, records);
  const TdTapeMemory *now = records->items;
  uint64_t *addresses, end_hash;

  a->addresses.n = 0;
  addresses = p ? td__list_add_n (&a->addresses, sizeof *addresses, records->n) : NULL;
  if (addresses == NULL)
    return false;
  for (uint32_t i = 0; i < records->n; i++)
    addresses[i] = now[i].address;
  list_blocks (a, blocks);
  run (a, shape, it, &end_hash, true);
  it->memory_profile = p->id;
  it->addresses = addresses;
  it->n_addresses = records->n;
  it->blocks = blocks->items;
  it->n_blocks = blocks->n;
  p->used = ++a->use_clock;
  return true;
}

void
td__memory_finish (TdAssembler *a, const TdShape *shape, TdTapeIteration *it, TdList *records,
                   TdList *blocks, bool commit)
{
  uint64_t start_hash = a->live_hash, end_hash;
  TdProfile *p;

  if (!make_relative (a, records))
    records->n = 0;
  memcpy (it->start_bytes, a->live_bytes, sizeof it->start_bytes);
  p = commit ? find_profile (a, records) : NULL;
  if (p != NULL)
    {
      it->memory_profile = p->id;
      it->peak_bytes = p->peak_bytes;
      it->end_bytes = p->end_bytes;
      p->used = ++a->use_clock;
      if (p->end_hash != p->start_hash)
        run (a, shape, it, &end_hash, true);
      return;
    }
  if (commit && use_moved_profile (a, shape, it, records, blocks))
    return;
  list_blocks (a, blocks);
  run (a, shape, it, &end_hash, commit);
  it->memory = records->items;
  it->n_memory = records->n;
  it->blocks = blocks->items;
  it->n_blocks = blocks->n;
  if (!commit)
    return;
  a->n_profiles_made++;
  it->memory_profile = td_tape_writer_memory (a->w, it);
  remember (a, it, records, start_hash, end_hash);
}

void
td__memory_replay (TdAssembler *a, const TdShape *shape, TdTapeIteration *it)
{
  uint64_t end_hash;

  run (a, shape, it, &end_hash, true);
}
