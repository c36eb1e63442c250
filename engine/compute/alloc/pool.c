/* Two-level segregated fit over segments: see pool.h.
 *
 * Free blocks hang in lists by size: first level by power of two, second level by 16 equal
 * parts of it.  Two bit maps find the first list that fits in constant time.
 *
 * SPDX-License-Identifier: MIT */
#include "pool-private.h"

#include <stdlib.h>
#include <string.h>

static inline void
link_head (TdPool *pool, TdBlock *b, TdBlock *next, int fl, int sl)
{
  b->free = true;
  b->free_prev = NULL;
  b->free_next = next;
  if (next != NULL)
    next->free_prev = b;
  pool->lists[fl][sl] = b;
}

static inline void
insert_free (TdPool *pool, TdBlock *b)
{
  int fl, sl;

  list_of (b->bytes, &fl, &sl);
  link_head (pool, b, pool->lists[fl][sl], fl, sl);
  pool->sl_bitmap[fl] |= 1u << sl;
  pool->fl_bitmap |= (uint64_t)1 << fl;
}

/* Take the first of a list off it. */
static inline void
remove_head (TdPool *pool, TdBlock *b, int fl, int sl)
{
  b->free = false;
  pool->lists[fl][sl] = b->free_next;
  if (b->free_next != NULL)
    b->free_next->free_prev = NULL;
  else if ((pool->sl_bitmap[fl] &= ~(1u << sl)) == 0)
    pool->fl_bitmap &= ~((uint64_t)1 << fl);
}

static inline void
remove_free (TdPool *pool, TdBlock *b)
{
  int fl, sl;

  if (b->free_prev == NULL)
    {
      list_of (b->bytes, &fl, &sl);
      remove_head (pool, b, fl, sl);
      return;
    }
  b->free = false;
  b->free_prev->free_next = b->free_next;
  if (b->free_next != NULL)
    b->free_next->free_prev = b->free_prev;
}

/* Put b where the first of list (fl, sl) stands, or first into its own list: as the one's
 * removal and the other's insertion, without the maps where the list stays the same. */
static inline void
replace_head (TdPool *pool, TdBlock *head, int fl, int sl, TdBlock *b)
{
  int to_fl, to_sl;

  list_of (b->bytes, &to_fl, &to_sl);
  if (to_fl == fl && to_sl == sl)
    {
      head->free = false;
      link_head (pool, b, head->free_next, fl, sl);
      return;
    }
  remove_head (pool, head, fl, sl);
  link_head (pool, b, pool->lists[to_fl][to_sl], to_fl, to_sl);
  pool->sl_bitmap[to_fl] |= 1u << to_sl;
  pool->fl_bitmap |= (uint64_t)1 << to_fl;
}

/* The first free block of at least this size, and the list that it is first of: searched from
 * the next class up, so that every member fits. */
static inline TdBlock *
find_free (const TdPool *pool, size_t bytes, int *in_fl, int *in_sl)
{
  int fl, sl;
  size_t units = bytes >> ALIGN_LOG2;
  uint32_t sl_map;
  uint64_t fl_map;

  if (units >= SL_COUNT) /* round up to the class boundary */
    {
      int log2 = 63 - __builtin_clzll (units);

      bytes += (((size_t)1 << (log2 - SL_LOG2)) - 1) << ALIGN_LOG2;
    }
  list_of (bytes, &fl, &sl);
  sl_map = pool->sl_bitmap[fl] & (~0u << sl);
  if (sl_map == 0)
    {
      fl_map = fl + 1 < 64 ? pool->fl_bitmap & (~(uint64_t)0 << (fl + 1)) : 0;
      if (fl_map == 0)
        return NULL;
      fl = __builtin_ctzll (fl_map);
      sl_map = pool->sl_bitmap[fl];
    }
  *in_fl = fl;
  *in_sl = __builtin_ctz (sl_map);
  return pool->lists[fl][*in_sl];
}

static TdBlock *
descriptor_refill (TdPool *pool)
{
  size_t bytes = DESCRIPTORS_PER_CHUNK * sizeof (TdBlock);
  TdBlock *chunk = aligned_alloc (ALIGN, bytes); /* a descriptor is one line of the cache */
  TdBlock **chunks = realloc (pool->chunks, (pool->n_chunks + 1) * sizeof *chunks);

  if (chunks != NULL)
    pool->chunks = chunks;
  if (chunk == NULL || chunks == NULL)
    {
      free (chunk);
      return NULL;
    }
  memset (chunk, 0, bytes);
  chunks[pool->n_chunks++] = chunk;
  for (int i = 1; i < DESCRIPTORS_PER_CHUNK; i++)
    {
      chunk[i].free_next = pool->spare;
      pool->spare = &chunk[i];
    }
  return chunk;
}

static inline TdBlock *
descriptor_take (TdPool *pool)
{
  TdBlock *b = pool->spare;

  if (b == NULL)
    return descriptor_refill (pool);
  pool->spare = b->free_next;
  __builtin_prefetch (pool->spare, 1);
  return b;
}

static inline void
descriptor_put (TdPool *pool, TdBlock *b)
{
  b->free_next = pool->spare;
  pool->spare = b;
}

static bool
add_piece (Segment *s, size_t bytes)
{
  size_t *pieces = realloc (s->pieces, (s->n_pieces + 1) * sizeof *pieces);

  if (pieces == NULL)
    return false;
  s->pieces = pieces;
  s->pieces[s->n_pieces++] = bytes;
  return true;
}

static TdBlock *
last_block (const Segment *s)
{
  TdBlock *b = s->first;

  while (b->physical_next != NULL)
    b = b->physical_next;
  return b;
}

/* The segment that ends at this address, if it can be made longer. */
static Segment *
segment_before (const TdPool *pool, const char *address)
{
  Segment *s = pool->provider->joins ? pool->segments : NULL;

  while (s != NULL && s->address + s->bytes != address)
    s = s->next;
  return s;
}

/* The new block b becomes the end of s, or part of the free block that is its end. */
static void
append (TdPool *pool, Segment *s, TdBlock *b)
{
  TdBlock *last = last_block (s);

  s->bytes += b->bytes;
  if (!last->free)
    {
      b->physical_prev = last;
      last->physical_next = b;
      insert_free (pool, b);
      return;
    }
  remove_free (pool, last);
  last->bytes += b->bytes;
  descriptor_put (pool, b);
  insert_free (pool, last);
}

static bool
grow (TdPool *pool, size_t bytes)
{
  size_t size = (bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES * SEGMENT_BYTES;
  Segment *s = calloc (1, sizeof *s), *before;
  TdBlock *b = descriptor_take (pool);
  void *address
      = s != NULL && b != NULL ? pool->provider->segment_new (pool->context, size) : NULL;

  before = address != NULL ? segment_before (pool, address) : NULL;
  if (address != NULL && !add_piece (before != NULL ? before : s, size))
    {
      pool->provider->segment_free (pool->context, address, size);
      address = NULL;
    }
  if (address == NULL || before != NULL)
    free (s);
  if (address == NULL)
    {
      if (b != NULL)
        descriptor_put (pool, b);
      pool->root->tried.refused = size;
      return false;
    }
  *b = (TdBlock){ .address = address, .bytes = size, .pool = pool };
  if (before != NULL)
    append (pool, before, b);
  else
    {
      s->address = address;
      s->bytes = size;
      s->first = b;
      s->next = pool->segments;
      pool->segments = s;
      insert_free (pool, b);
    }
  pool->info.reserved_bytes += size;
  return true;
}

TdPool *
td__pool_new (const TdSegmentProvider *provider, void *context)
{
  TdPool *pool = calloc (1, sizeof *pool);

  if (pool != NULL)
    {
      pool->provider = provider;
      pool->context = context;
      pool->mask = (provider->alignment > ALIGN ? provider->alignment : ALIGN) - 1;
      pool->root = pool->parts[TD_MEM_POOL_DEFAULT] = pool;
    }
  return pool;
}

TdPool *
td__pool_part (TdPool *root, TdMemPool which)
{
  if (root->parts[which] == NULL)
    {
      root->parts[which] = td__pool_new (root->provider, root->context);
      if (root->parts[which] != NULL)
        root->parts[which]->root = root;
    }
  return root->parts[which];
}

static void
free_one (TdPool *pool)
{
  for (size_t i = 0; i < pool->n_pending; i++)
    pool->provider->fence_wait (pool->context, pool->pending[i].fence);
  free (pool->pending);
  for (size_t i = 0; i < pool->n_groups; i++)
    if (pool->groups[i].fence != NULL)
      pool->provider->fence_wait (pool->context, pool->groups[i].fence);
  free (pool->groups);
  for (Segment *s = pool->segments, *next; s != NULL; s = next)
    {
      next = s->next;
      pool->provider->segment_free (pool->context, s->address, s->bytes);
      free (s->pieces);
      free (s);
    }
  for (size_t i = 0; i < pool->n_chunks; i++)
    free (pool->chunks[i]);
  free (pool->chunks);
  free (pool);
}

void
td__pool_free (TdPool *pool)
{
  for (int which = TD_MEM_N_POOLS; which-- > 0 && pool != NULL;)
    if (pool->parts[which] != NULL)
      free_one (pool->parts[which]);
}

/* Take `bytes` of b, the first of list (fl, sl), off it; the rest stays free. */
static inline void
take_head (TdPool *pool, TdBlock *b, int fl, int sl, size_t bytes)
{
  TdBlock *rest = b->bytes - bytes >= ALIGN ? descriptor_take (pool) : NULL;

  if (rest == NULL)
    {
      remove_head (pool, b, fl, sl);
      return;
    }
  rest->address = b->address + bytes;
  rest->bytes = b->bytes - bytes;
  rest->pool = pool;
  rest->physical_prev = b;
  rest->physical_next = b->physical_next;
  if (b->physical_next != NULL)
    b->physical_next->physical_prev = rest;
  b->physical_next = rest;
  b->bytes = bytes;
  replace_head (pool, b, fl, sl, rest);
}

static void release_pending (TdPool *pool, bool wait);
static size_t trim_one (TdPool *pool);

/* What the rest of the family does not use. */
static size_t
trim_others (TdPool *pool)
{
  size_t given = 0;

  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    if (pool->root->parts[which] != NULL && pool->root->parts[which] != pool)
      given += trim_one (pool->root->parts[which]);
  return given;
}

/* Wait for all work that keeps blocks of the family from being free.  False: there is none. */
static bool
settle_family (TdPool *pool)
{
  bool any = false;

  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    {
      TdPool *part = pool->root->parts[which];

      if (part == NULL || part->info.pending_bytes == 0 || part->holds > 0)
        continue;
      pool->root->tried.waited += part->info.pending_bytes;
      release_pending (part, true);
      td__pool_settle (part, 0);
      any = true;
    }
  return any;
}

/* Give back what is free: of the pool, else of the others. */
static bool
trim_for (TdPool *pool, bool others)
{
  TdMemTried *tried = &pool->root->tried;
  const size_t given = others ? trim_others (pool) : trim_one (pool);

  *(others ? &tried->trimmed_others : &tried->trimmed) += given;
  return given > 0;
}

/* A block when the lists have none: what other streams are done with, then new memory, then
 * what can be had by giving back what is free, and by waiting. */
static TdBlock *
find_more (TdPool *pool, size_t bytes, int *fl, int *sl)
{
  /* A little extra lets the class search find the new block at once. */
  size_t wanted = bytes + bytes / SL_COUNT + pool->mask + 1;
  TdBlock *b = NULL;

  if (pool->n_pending > 0)
    {
      release_pending (pool, false);
      b = find_free (pool, bytes, fl, sl);
    }
  if (b != NULL)
    return b;
  pool->root->tried = (TdMemTried){ 0 };
  if (!grow (pool, wanted) && (!trim_for (pool, false) || !grow (pool, wanted))
      && (!trim_for (pool, true) || !grow (pool, wanted)))
    {
      if (pool->holds > 0 || !settle_family (pool))
        return NULL;
      b = find_free (pool, bytes, fl, sl);
      if (b != NULL || (!trim_for (pool, false) && !trim_for (pool, true))
          || !grow (pool, wanted))
        return b;
    }
  return find_free (pool, bytes, fl, sl);
}

/* Live in the whole family. */
static inline size_t
live_bytes (const TdPool *root)
{
  return root->info.live_bytes + root->parts_live;
}

static inline __attribute__ ((always_inline)) TdBlock *
take (TdPool *pool, TdPool *root, size_t requested, TdMemCategory category)
{
  size_t bytes = ((requested == 0 ? 1 : requested) + pool->mask) & ~pool->mask;
  TdBlock *b;
  int fl, sl;

  if (__builtin_expect (requested > MAX_BYTES
                            || (root->limit != 0 && live_bytes (root) + bytes > root->limit),
                        0))
    {
      root->tried = (TdMemTried){ .limited = requested <= MAX_BYTES };
      return NULL;
    }
  b = find_free (pool, bytes, &fl, &sl);
  if (__builtin_expect (b == NULL, 0))
    {
      b = find_more (pool, bytes, &fl, &sl);
      if (b == NULL)
        return NULL;
    }
  take_head (pool, b, fl, sl, bytes);
  b->category = (uint8_t)category;
  pool->info.live_bytes += b->bytes;
  pool->info.category_bytes[category] += b->bytes;
  pool->info.n_allocs++;
  if (pool != root)
    root->parts_live += b->bytes;
  if (live_bytes (root) > root->info.peak_bytes)
    root->info.peak_bytes = live_bytes (root);
  return b;
}

TdBlock *
td__pool_take_from (TdPool *pool, TdMemPool which, size_t bytes, TdMemCategory category)
{
  TdPool *part = td__pool_part (pool, which);

  return part != NULL ? take (part, pool, bytes, category) : NULL;
}

/* What may come from another pool of the family. */
static __attribute__ ((noinline)) TdBlock *
take_from_family (TdPool *pool, size_t bytes, TdMemCategory category)
{
  if (category == TD_MEM_WORKSPACE)
    return td__pool_take_from (pool, TD_MEM_POOL_WORKSPACE, bytes, category);
  if (category == TD_MEM_STATIC)
    return td__pool_take_from (pool, TD_MEM_POOL_STATIC, bytes, category);
  if (bytes >= TD_UPLOAD_STREAM_BYTES && pool->provider->fence_new != NULL)
    return td__pool_take_idle (pool, bytes);
  return take (pool, pool, bytes, category);
}

TdBlock *
td__pool_take (TdPool *pool, size_t bytes, TdMemCategory category)
{
  const unsigned others = 1u << TD_MEM_WORKSPACE | 1u << TD_MEM_STATIC | 1u << TD_MEM_INPUT;

  if (__builtin_expect (others >> category & 1, 0))
    return take_from_family (pool, bytes, category);
  return take (pool, pool, bytes, category);
}

/* Make b as long as itself and the block after it.  Returns that one, which is no block now. */
static inline TdBlock *
join_next (TdBlock *b)
{
  TdBlock *next = b->physical_next;

  b->bytes += next->bytes;
  b->physical_next = next->physical_next;
  if (next->physical_next != NULL)
    next->physical_next->physical_prev = b;
  return next;
}

static inline void
uncount (TdPool *pool, const TdBlock *b)
{
  pool->info.live_bytes -= b->bytes;
  pool->info.category_bytes[b->category] -= b->bytes;
  if (pool != pool->root)
    pool->root->parts_live -= b->bytes;
}

/* Put a block that is no longer counted among the free ones. */
static inline void
put_back (TdPool *pool, TdBlock *b)
{
  TdBlock *prev = b->physical_prev, *next = b->physical_next;
  bool before = prev != NULL && prev->free, after = next != NULL && next->free;
  int fl, sl;

  if (after && !before && next->free_prev == NULL)
    {
      list_of (next->bytes, &fl, &sl);
      join_next (b);
      replace_head (pool, next, fl, sl, b);
      descriptor_put (pool, next);
      return;
    }
  if (after)
    {
      remove_free (pool, next);
      descriptor_put (pool, join_next (b));
    }
  if (before)
    {
      remove_free (pool, prev);
      descriptor_put (pool, join_next (prev));
      b = prev;
    }
  insert_free (pool, b);
}

void
td__pool_put_back (TdPool *pool, TdBlock *b)
{
  put_back (pool, b);
}

void
td__pool_release (TdBlock *b)
{
  uncount (b->pool, b);
  if (__builtin_expect (b->pool->idle, 0))
    td__pool_leave (b->pool, b);
  else
    put_back (b->pool, b);
}

void
td__pool_release_after (TdBlock *b, void *fence)
{
  TdPool *pool = b->pool;

  uncount (pool, b);
  if (pool->n_pending == pool->pending_capacity)
    {
      size_t capacity = pool->pending_capacity > 0 ? 2 * pool->pending_capacity : 64;
      Pending *pending = realloc (pool->pending, capacity * sizeof *pending);

      if (pending == NULL)
        {
          pool->provider->fence_wait (pool->context, fence);
          put_back (pool, b);
          return;
        }
      pool->pending = pending;
      pool->pending_capacity = capacity;
    }
  pool->pending[pool->n_pending++] = (Pending){ b, fence };
  pool->info.pending_bytes += b->bytes;
}

/* Free what other streams are done with; wait: all of it. */
static void
release_pending (TdPool *pool, bool wait)
{
  size_t kept = 0;

  for (size_t i = 0; i < pool->n_pending; i++)
    {
      Pending p = pool->pending[i];

      if (wait)
        pool->provider->fence_wait (pool->context, p.fence);
      else if (!pool->provider->fence_passed (pool->context, p.fence))
        {
          pool->pending[kept++] = p;
          continue;
        }
      pool->info.pending_bytes -= p.block->bytes;
      put_back (pool, p.block);
    }
  pool->n_pending = kept;
}

/* Give back the pieces at the end of s that are free, all but the first. */
static size_t
trim_end (TdPool *pool, Segment *s)
{
  TdBlock *last = s->n_pieces > 1 ? last_block (s) : NULL;
  size_t given = 0;

  while (s->n_pieces > 1 && last->free && last->bytes >= s->pieces[s->n_pieces - 1])
    {
      size_t piece = s->pieces[--s->n_pieces];

      s->bytes -= piece;
      given += piece;
      remove_free (pool, last);
      last->bytes -= piece;
      pool->provider->segment_free (pool->context, s->address + s->bytes, piece);
      if (last->bytes > 0)
        insert_free (pool, last);
      else
        {
          TdBlock *prev = last->physical_prev;

          prev->physical_next = NULL;
          descriptor_put (pool, last);
          last = prev;
        }
    }
  return given;
}

static size_t
trim_one (TdPool *pool)
{
  size_t given = 0;
  Segment **link = &pool->segments;

  if (pool->holds > 0)
    return 0;
  while (*link != NULL)
    {
      Segment *s = *link;
      TdBlock *b = s->first;

      if (!b->free || b->bytes != s->bytes)
        {
          given += trim_end (pool, s);
          link = &s->next;
          continue;
        }
      remove_free (pool, b);
      descriptor_put (pool, b);
      *link = s->next;
      given += s->bytes;
      pool->provider->segment_free (pool->context, s->address, s->bytes);
      free (s->pieces);
      free (s);
    }
  pool->info.reserved_bytes -= given;
  return given;
}

size_t
td__pool_trim (TdPool *pool)
{
  settle_family (pool);
  return trim_one (pool) + trim_others (pool);
}

void
td__pool_hold (TdPool *pool, TdMemPool which, int change)
{
  TdPool *part = td__pool_part (pool, which);

  if (part != NULL)
    part->holds += change;
}

void
td__pool_set_limit (TdPool *pool, size_t bytes)
{
  pool->limit = bytes;
}
