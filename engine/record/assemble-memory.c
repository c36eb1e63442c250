/* The memory of an iteration: its records with ids relative to the iteration, the blocks that
 * are live at its start, and totals by category.  A profile that repeats is recognised before
 * any of that is computed.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdlib.h>
#include <string.h>

#define MANY_BLOCKS 16384
#define SOME_BLOCKS 2048
#define FIRST_PROFILES 16
#define MANY_RECORDS 65536

static uint64_t
block_hash (uint64_t address, uint64_t bytes, unsigned category)
{
  return td_tape_hash (td_tape_hash (address, bytes), category);
}

static void
relate (const TdAssembler *a, TdTapeMemory *to, const TdTapeMemory *from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    {
      to[i] = from[i];
      to[i].buffer = from[i].buffer ? from[i].buffer - a->begin.first_buffer : TD_TAPE_NO_ID;
      to[i].variable = from[i].variable ? from[i].variable - a->begin.first_id : TD_TAPE_NO_ID;
    }
}

static void
make_absolute (const TdAssembler *a, TdTapeMemory *m)
{
  m->buffer = m->buffer == TD_TAPE_NO_ID ? 0 : m->buffer + a->begin.first_buffer;
  m->variable = m->variable == TD_TAPE_NO_ID ? 0 : m->variable + a->begin.first_id;
}

void
td__memory_absolute (TdAssembler *a)
{
  TdTapeMemory *m = a->memory.items;

  for (uint32_t i = 0; a->memory_is_relative && i < a->memory.n; i++)
    make_absolute (a, &m[i]);
  a->memory_is_relative = false;
}

TdTapeMemory
td__memory_relative (const TdAssembler *a, const TdTapeMemory *m)
{
  TdTapeMemory relative;

  relate (a, &relative, m, 1);
  return relative;
}

/* The records with ids relative to the iteration: a copy, or where they are very many they
 * themselves. */
static bool
make_relative (TdAssembler *a, TdList *records)
{
  TdTapeMemory *to;

  records->n = 0;
  if (a->large != NULL)
    return true;
  if (a->memory.n >= MANY_RECORDS)
    {
      if (!a->memory_is_relative)
        relate (a, a->memory.items, a->memory.items, a->memory.n);
      a->memory_is_relative = true;
      return true;
    }
  to = td__list_add_n (records, sizeof *to, a->memory.n);
  if (to != NULL)
    relate (a, to, a->memory.items, a->memory.n);
  return to != NULL;
}

const TdMemoryHash td__memory_no_hash = { .hash = { 5, 6 }, .moved = { 5, 6 } };

void
td__memory_hash (TdMemoryHash *h, const TdTapeMemory *m)
{
  const char *rest = (const char *)m + sizeof m->address;

  for (unsigned k = 0; k < 2; k++)
    {
      h->moved[k] = td_tape_hash_bytes (h->moved[k], rest, sizeof *m - sizeof m->address);
      h->hash[k] = td_tape_hash (h->hash[k], m->address);
    }
}

static TdMemoryHash
hash_of (const TdTapeMemory *m, uint32_t n)
{
  TdMemoryHash h = td__memory_no_hash;

  for (uint32_t i = 0; i < n; i++)
    td__memory_hash (&h, &m[i]);
  return h;
}

/* What the open iteration has recorded, ids relative. */
typedef struct
{
  const TdTapeMemory *records; /* NULL: they are packed */
  uint32_t n;
} Pending;

static Pending
pending_of (const TdAssembler *a, const TdList *copy)
{
  if (a->large != NULL)
    return (Pending){ .n = td_tape_rows_count (a->large->memory) };
  if (a->memory_is_relative)
    copy = &a->memory;
  return (Pending){ .records = copy->items, .n = copy->n };
}

static TdMemoryHash
hash_now (const TdAssembler *a, const Pending *now)
{
  return a->large != NULL ? a->large->memory_hash : hash_of (now->records, now->n);
}

static TdMemoryHash
hash_then (const TdProfile *p)
{
  return p->records != NULL ? hash_of (p->records, p->n) : p->hash;
}

static uint64_t
key_of (TdAssembler *a, const TdShape *shape, uint64_t variable)
{
  uint32_t var = td__shape_var (a, shape, variable);
  TdMeta meta;

  if (var != TD_TAPE_NONE)
    {
      const TdTapeVar *v = td__shape_var_at (shape, var);

      return v != NULL ? v->key : 0;
    }
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

/* Buffers that come and go within very many records, a byte for each: they never are among the
 * blocks, which would take more memory than the records.  NULL: there are not so many. */
enum
{
  BORN = 1,
  GONE = 2,
  BORN_TWICE = 4
};

typedef struct
{
  uint8_t *of; /* by relative buffer */
  uint32_t n;
} Fates;

void
td__memory_fate (uint8_t *fate, const TdTapeMemory *m)
{
  if (m->kind == TD_TAPE_MEMORY_ALLOC)
    *fate |= *fate & BORN ? BORN_TWICE : BORN;
  else if (m->kind == TD_TAPE_MEMORY_FREE && (*fate & BORN))
    *fate |= GONE;
}

static uint8_t *
fate_of (const TdAssembler *a, const TdTapeMemory *m, const Fates *fates)
{
  const uint64_t at = m->buffer - a->begin.first_buffer;

  return m->buffer >= a->begin.first_buffer && at < fates->n ? fates->of + at : NULL;
}

/* Of an iteration that is very large they were noted while it went on. */
static Fates
find_fates (const TdAssembler *a)
{
  const TdTapeMemory *m = a->memory.items;
  Fates fates = { 0 };

  if (a->large != NULL)
    return (Fates){ .of = a->large->fates.items, .n = a->large->fates.n };
  if (a->memory.n >= MANY_RECORDS)
    fates.of = calloc (a->memory.n, 1);
  fates.n = fates.of != NULL ? a->memory.n : 0;
  for (uint32_t i = 0; fates.n > 0 && i < a->memory.n; i++)
    {
      uint8_t *fate = fate_of (a, &m[i], &fates);

      if (fate != NULL)
        td__memory_fate (fate, &m[i]);
    }
  return fates;
}

static bool
comes_and_goes (const TdAssembler *a, const TdTapeMemory *m, const Fates *fates)
{
  const uint8_t *fate = fate_of (a, m, fates);

  return fate != NULL && *fate == (BORN | GONE);
}

/* Record `i` with the engine's ids; `room` is for one that is packed.  NULL: there is no memory
 * to unpack it. */
static const TdTapeMemory *
record_at (const TdAssembler *a, uint32_t i, TdTapeMemory *room)
{
  const TdTapeMemory *m;

  if (a->large == NULL)
    return (const TdTapeMemory *)a->memory.items + i;
  m = td_tape_rows_at (a->large->memory, i);
  if (m == NULL)
    return NULL;
  *room = *m;
  make_absolute (a, room);
  return room;
}

/* Apply the records to totals and hash; with `commit` also to the blocks. */
static void
run (TdAssembler *a, const TdShape *shape, TdTapeIteration *it, uint64_t *end_hash, bool commit)
{
  const uint32_t n = a->large == NULL ? a->memory.n : td_tape_rows_count (a->large->memory);
  uint64_t bytes[TD_TAPE_N_CATEGORIES], total = a->live_total, hash = a->live_hash;
  const Fates fates = commit ? find_fates (a) : (Fates){ 0 };

  memcpy (bytes, a->live_bytes, sizeof bytes);
  it->peak_bytes = total;
  for (uint32_t i = 0; i < n; i++)
    {
      TdTapeMemory room;
      const TdTapeMemory *m = record_at (a, i, &room);
      unsigned category;

      if (m == NULL)
        continue;
      category = m->category < TD_TAPE_N_CATEGORIES ? m->category : 0;
      if (m->kind == TD_TAPE_MEMORY_ALLOC)
        {
          total += m->bytes;
          bytes[category] += m->bytes;
          hash += block_hash (m->address, m->bytes, category);
          it->peak_bytes = total > it->peak_bytes ? total : it->peak_bytes;
          if (commit && !comes_and_goes (a, m, &fates))
            add_block (a, shape, m);
        }
      else if (m->kind == TD_TAPE_MEMORY_FREE)
        {
          /* totals do not include what was allocated before recording began */
          bool known = bytes[category] >= m->bytes && total >= m->bytes;

          total -= known ? m->bytes : 0;
          bytes[category] -= known ? m->bytes : 0;
          hash -= block_hash (m->address, m->bytes, category);
          if (commit && !comes_and_goes (a, m, &fates))
            remove_block (a, m);
        }
    }
  if (a->large == NULL)
    free (fates.of);
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
  /* a program that leaks would write all live blocks in each iteration */
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
remember (TdAssembler *a, const TdTapeIteration *it, const Pending *now, uint64_t start_hash,
          uint64_t end_hash)
{
  TdProfile *p = &a->profiles[0];

  for (unsigned i = 1; i < MAX_PROFILES; i++)
    if (a->profiles[i].used < p->used)
      p = &a->profiles[i];
  free (p->records);
  *p = (TdProfile){ .id = it->memory_profile,
                    .n = now->n,
                    .start_hash = start_hash,
                    .end_hash = end_hash,
                    .used = ++a->use_clock,
                    .peak_bytes = it->peak_bytes,
                    .end_bytes = it->end_bytes };
  memcpy (p->start_bytes, it->start_bytes, sizeof p->start_bytes);
  if (now->records == NULL || now->n >= MANY_RECORDS)
    {
      p->hash = hash_now (a, now);
      return;
    }
  p->records = malloc (now->n * sizeof *p->records + 1);
  if (p->records == NULL)
    p->used = 0;
  else if (now->n > 0)
    memcpy (p->records, now->records, now->n * sizeof *p->records);
}

/* By their hashes where one of them is not there as it was. */
static bool
same_records (const TdAssembler *a, const TdProfile *p, const Pending *now)
{
  TdMemoryHash x, y;

  if (p->n == 0)
    return true;
  if (p->records != NULL && now->records != NULL)
    return memcmp (p->records, now->records, p->n * sizeof *p->records) == 0;
  x = hash_then (p);
  y = hash_now (a, now);
  return memcmp (&x, &y, sizeof x) == 0;
}

/* The same but for addresses. */
static bool
same_but_moved (const TdAssembler *a, const TdProfile *p, const Pending *now)
{
  const TdTapeMemory *m = now->records;
  TdMemoryHash x, y;
  uint32_t k = 0;

  if (p->records == NULL || now->records == NULL)
    {
      x = hash_then (p);
      y = hash_now (a, now);
      return memcmp (x.moved, y.moved, sizeof x.moved) == 0;
    }
  while (k < p->n
         && memcmp ((const char *)&m[k] + sizeof m->address,
                    (const char *)&p->records[k] + sizeof m->address,
                    sizeof *m - sizeof m->address)
                == 0)
    k++;
  return k == p->n;
}

static TdProfile *
find_profile (TdAssembler *a, const Pending *now)
{
  for (unsigned i = 0; i < MAX_PROFILES; i++)
    {
      TdProfile *p = &a->profiles[i];

      if (p->used && p->id && p->n == now->n && p->start_hash == a->live_hash
          && same_records (a, p, now))
        return p;
    }
  return NULL;
}

/* Find a profile that differs only in addresses, as state that is carried along moves. */
static TdProfile *
find_moved_profile (TdAssembler *a, const Pending *now)
{
  for (unsigned i = 0; i < MAX_PROFILES; i++)
    {
      TdProfile *p = &a->profiles[i];

      if (p->used && p->id && p->n == now->n && p->n != 0
          && memcmp (p->start_bytes, a->live_bytes, sizeof p->start_bytes) == 0
          && same_but_moved (a, p, now))
        return p;
    }
  return NULL;
}

/* Applying them takes the engine's ids, storing them those that are relative. */
static void
run_pending (TdAssembler *a, const TdShape *shape, TdTapeIteration *it, uint64_t *end_hash,
             bool commit)
{
  const bool relative = a->memory_is_relative;

  td__memory_absolute (a);
  run (a, shape, it, end_hash, commit);
  if (relative)
    relate (a, a->memory.items, a->memory.items, a->memory.n);
  a->memory_is_relative = relative;
}

/* Use the profile for the iteration, with addresses and blocks of its own. */
static bool
use_moved_profile (TdAssembler *a, const TdShape *shape, TdTapeIteration *it,
                   const Pending *now, TdList *blocks)
{
  TdProfile *p = find_moved_profile (a, now);
  uint64_t *addresses, end_hash;

  a->addresses.n = 0;
  addresses = p ? td__list_add_n (&a->addresses, sizeof *addresses, now->n) : NULL;
  if (addresses == NULL)
    return false;
  for (uint32_t i = 0; i < now->n; i++)
    {
      const TdTapeMemory *m
          = now->records != NULL ? now->records + i : td_tape_rows_at (a->large->memory, i);

      if (m == NULL)
        return false;
      addresses[i] = m->address;
    }
  list_blocks (a, blocks);
  run_pending (a, shape, it, &end_hash, true);
  it->memory_profile = p->id;
  it->addresses = addresses;
  it->n_addresses = now->n;
  it->blocks = blocks->items;
  it->n_blocks = blocks->n;
  p->used = ++a->use_clock;
  return true;
}

void
td__memory_finish (TdAssembler *a, const TdShape *shape, TdTapeIteration *it, TdList *copy,
                   TdList *blocks, bool commit)
{
  uint64_t start_hash = a->live_hash, end_hash;
  Pending now;
  TdProfile *p;

  if (!make_relative (a, copy))
    copy->n = 0;
  now = pending_of (a, copy);
  memcpy (it->start_bytes, a->live_bytes, sizeof it->start_bytes);
  p = commit ? find_profile (a, &now) : NULL;
  if (p != NULL)
    {
      it->memory_profile = p->id;
      it->peak_bytes = p->peak_bytes;
      it->end_bytes = p->end_bytes;
      p->used = ++a->use_clock;
      if (p->end_hash != p->start_hash)
        run_pending (a, shape, it, &end_hash, true);
      return;
    }
  if (commit && use_moved_profile (a, shape, it, &now, blocks))
    return;
  list_blocks (a, blocks);
  run_pending (a, shape, it, &end_hash, commit);
  it->memory = now.records;
  it->n_memory = now.n;
  it->blocks = blocks->items;
  it->n_blocks = blocks->n;
  if (!commit)
    return;
  a->n_profiles_made++;
  it->memory_profile = td_tape_writer_memory (a->w, it);
  remember (a, it, &now, start_hash, end_hash);
}

void
td__memory_replay (TdAssembler *a, const TdShape *shape, TdTapeIteration *it)
{
  uint64_t end_hash;

  run (a, shape, it, &end_hash, true);
}
