/* What a pool says of itself: its account, and whether all of it is whole.
 *
 * SPDX-License-Identifier: MIT */
#include "pool-private.h"

static size_t
largest_free (const TdPool *pool)
{
  size_t largest = 0;

  for (int fl = FL_COUNT - 1; fl >= 0 && largest == 0; fl--)
    for (int sl = 0; sl < SL_COUNT; sl++)
      for (const TdBlock *b = pool->lists[fl][sl]; b != NULL; b = b->free_next)
        if (b->bytes > largest)
          largest = b->bytes;
  return largest;
}

/* Free bytes beside blocks in use, in the same segment: only those can fill the holes. */
static size_t
split_bytes (const TdPool *pool)
{
  size_t split = pool->info.reserved_bytes - pool->info.live_bytes - pool->info.pending_bytes;

  for (const Segment *s = pool->segments; s != NULL; s = s->next)
    if (s->first->free && s->first->bytes == s->bytes)
      split -= s->bytes;
  return split;
}

/* Add what a part has to the family's account. */
static void
add_info (TdMemInfo *info, const TdPool *part, int which)
{
  const size_t largest = largest_free (part);

  info->pool_bytes[which] = part->info.live_bytes;
  info->pool_reserved_bytes[which] = part->info.reserved_bytes;
  info->pool_pending_bytes[which] = part->info.pending_bytes;
  info->pool_split_bytes[which] = split_bytes (part);
  info->pool_largest_free_bytes[which] = largest;
  if (largest > info->largest_free_bytes)
    info->largest_free_bytes = largest;
  if (which == TD_MEM_POOL_DEFAULT) /* it is there already */
    return;
  info->live_bytes += part->info.live_bytes;
  info->reserved_bytes += part->info.reserved_bytes;
  info->pending_bytes += part->info.pending_bytes;
  info->n_allocs += part->info.n_allocs;
  for (int c = 0; c < TD_MEM_N_CATEGORIES; c++)
    info->category_bytes[c] += part->info.category_bytes[c];
}

void
td__pool_info (const TdPool *pool, TdMemInfo *info)
{
  *info = pool->info;
  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    if (pool->parts[which] != NULL)
      add_info (info, pool->parts[which], which);
  info->cached_bytes = info->reserved_bytes - info->live_bytes - info->pending_bytes;
}

size_t
td__pool_limit (const TdPool *pool)
{
  return pool->limit;
}

TdMemTried
td__pool_tried (TdPool *pool)
{
  const TdMemTried tried = pool->tried;

  pool->tried = (TdMemTried){ 0 };
  return tried;
}

static const char *
check_one (const TdPool *pool)
{
  size_t live = 0, reserved = 0, n_free = 0, n_listed = 0;

  for (const Segment *s = pool->segments; s != NULL; s = s->next)
    {
      const char *at = s->address;

      for (const TdBlock *b = s->first, *prev = NULL; b != NULL; prev = b, b = b->physical_next)
        {
          if (b->address != at)
            return "a block does not begin where the one before it ends";
          if (b->physical_prev != prev)
            return "a block's neighbour does not point back";
          if (prev != NULL && prev->free && b->free)
            return "two free neighbours were not joined";
          if (b->bytes == 0 || b->bytes % ALIGN != 0)
            return "a block's size is not a multiple of the alignment";
          at += b->bytes;
          live += b->free ? 0 : b->bytes;
          n_free += b->free;
        }
      if (at != s->address + s->bytes)
        return "a segment's blocks do not fill it";
      reserved += s->bytes;
    }
  for (int fl = 0; fl < FL_COUNT; fl++)
    for (int sl = 0; sl < SL_COUNT; sl++)
      for (const TdBlock *b = pool->lists[fl][sl]; b != NULL; b = b->free_next)
        {
          int bfl, bsl;

          list_of (b->bytes, &bfl, &bsl);
          if (!b->free || bfl != fl || bsl != sl)
            return "a free list holds a block that does not belong there";
          n_listed++;
        }
  if (n_listed != n_free)
    return "a free block is in no list";
  if (live != pool->info.live_bytes + pool->info.pending_bytes
      || reserved != pool->info.reserved_bytes)
    return "the counted bytes differ from the blocks";
  return NULL;
}

const char *
td__pool_check (const TdPool *pool)
{
  const char *wrong = NULL;
  size_t parts = 0;

  for (int which = 0; which < TD_MEM_N_POOLS && wrong == NULL; which++)
    if (pool->parts[which] != NULL)
      {
        parts += which != TD_MEM_POOL_DEFAULT ? pool->parts[which]->info.live_bytes : 0;
        wrong = check_one (pool->parts[which]);
      }
  if (wrong == NULL && parts != pool->parts_live)
    return "the bytes live in the family's pools are not their sum";
  return wrong;
}
