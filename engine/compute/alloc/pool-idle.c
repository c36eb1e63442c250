/* A pool whose blocks no work uses when they are taken: copies may fill them at once, while the
 * device computes.
 *
 * A block that is given back may still be read by work that was issued.  Blocks wait in groups,
 * each with a fence, and leave in the order they came, by bytes and not by when fences pass: so
 * addresses are the same in every run.  What is kept is a few times what is asked for; the host
 * waits when it is that many inputs ahead of the device.
 *
 * SPDX-License-Identifier: MIT */
#include "pool-private.h"

#include <stdlib.h>
#include <string.h>

enum
{
  AHEAD = 4 /* inputs that the host may be ahead */
};

bool
td__block_is_idle (const TdBlock *b)
{
  return b->pool->idle;
}

void
td__pool_leave (TdPool *pool, TdBlock *b)
{
  b->free_next = pool->leaving.first;
  pool->leaving.first = b;
  pool->leaving.bytes += b->bytes;
  pool->info.pending_bytes += b->bytes;
}

/* All blocks of a group are free: the device is done with them. */
static void
let_go (TdPool *pool, const Group *g)
{
  for (TdBlock *b = g->first, *next; b != NULL; b = next)
    {
      next = b->free_next;
      pool->info.pending_bytes -= b->bytes;
      td__pool_put_back (pool, b);
    }
}

/* What has left so far is a group.  Without a fence the device is lost, and nothing uses it. */
static void
close_group (TdPool *pool)
{
  Group g = pool->leaving;

  if (g.first == NULL)
    return;
  pool->leaving = (Group){ 0 };
  g.fence = pool->provider->fence_new (pool->context);
  if (pool->n_groups == pool->groups_capacity)
    {
      size_t capacity = pool->groups_capacity > 0 ? 2 * pool->groups_capacity : 16;
      Group *groups = realloc (pool->groups, capacity * sizeof *groups);

      if (groups == NULL)
        {
          if (g.fence != NULL)
            pool->provider->fence_wait (pool->context, g.fence);
          let_go (pool, &g);
          return;
        }
      pool->groups = groups;
      pool->groups_capacity = capacity;
    }
  pool->groups[pool->n_groups++] = g;
}

void
td__pool_settle (TdPool *pool, size_t kept)
{
  size_t n = 0;

  if (!pool->idle || pool->holds > 0)
    return;
  close_group (pool);
  while (n < pool->n_groups && pool->info.pending_bytes > kept)
    {
      Group *g = &pool->groups[n++];

      if (g->fence != NULL)
        pool->provider->fence_wait (pool->context, g->fence);
      let_go (pool, g);
    }
  if (n > 0)
    memmove (pool->groups, pool->groups + n, (pool->n_groups - n) * sizeof *pool->groups);
  pool->n_groups -= n;
}

TdBlock *
td__pool_take_idle (TdPool *root, size_t bytes)
{
  TdPool *pool = td__pool_part (root, TD_MEM_POOL_UPLOAD);

  if (pool == NULL)
    return NULL;
  pool->idle = true;
  td__pool_settle (pool, AHEAD * bytes);
  return td__pool_take_from (root, TD_MEM_POOL_UPLOAD, bytes, TD_MEM_INPUT);
}
