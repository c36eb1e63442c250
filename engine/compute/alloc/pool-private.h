/* Shared by the files of the allocator: a pool with its segments and free lists.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pool.h"

enum
{
  ALIGN = 64,
  ALIGN_LOG2 = 6,
  SL_LOG2 = 4,
  SL_COUNT = 1 << SL_LOG2,
  FL_COUNT = 42, /* sizes up to 2^47 bytes */
  DESCRIPTORS_PER_CHUNK = 256
};
#define SEGMENT_BYTES ((size_t)2 << 20)
#define MAX_BYTES ((size_t)1 << 46)

typedef struct Segment
{
  char *address;
  size_t bytes;
  TdBlock *first;
  struct Segment *next;
  size_t *pieces; /* sizes of the provider's allocations in it, by address */
  size_t n_pieces;
} Segment;

/* A block that was released while another stream still uses it. */
typedef struct
{
  TdBlock *block;
  void *fence;
} Pending;

/* Blocks that were released one after the other, with a fence behind the work that may use
 * them. */
typedef struct
{
  TdBlock *first; /* the others follow through free_next */
  size_t bytes;
  void *fence;
} Group;

struct TdPool
{
  TdPool *root;                  /* the pool of the family that callers have, with the limit */
  TdPool *parts[TD_MEM_N_POOLS]; /* in the root: the pools of the family, itself first */
  size_t parts_live;             /* in the root: live bytes of the other pools */
  int holds;                     /* count of users that need the segments unchanged */
  const TdSegmentProvider *provider;
  void *context;
  uint64_t fl_bitmap;
  uint32_t sl_bitmap[FL_COUNT];
  TdBlock *lists[FL_COUNT][SL_COUNT];
  Segment *segments;
  TdBlock *spare; /* descriptors not in use, through free_next */
  TdBlock **chunks;
  size_t n_chunks;
  size_t limit, mask; /* mask: alignment - 1 */
  Pending *pending;
  size_t n_pending, pending_capacity;
  bool idle; /* no queued work uses its free blocks: released blocks wait for fences, in groups
              */
  Group leaving; /* blocks that were released since the last fence */
  Group *groups; /* the oldest first */
  size_t n_groups, groups_capacity;
  TdMemInfo info;
  TdMemTried tried; /* in the root */
};

/* The list a free block of this size belongs to. */
static inline void
list_of (size_t bytes, int *fl, int *sl)
{
  size_t units = bytes >> ALIGN_LOG2;
  int log2 = 63 - __builtin_clzll (units);

  if (log2 < SL_LOG2)
    {
      *fl = 0;
      *sl = (int)units;
    }
  else
    {
      *fl = log2 - SL_LOG2 + 1;
      *sl = (int)(units >> (log2 - SL_LOG2)) & (SL_COUNT - 1);
    }
}

/** Return a pool of the family, made when it is first wanted.  NULL: no host memory for it. */
TdPool *td__pool_part (TdPool *root, TdMemPool which);
/** Add a block, already taken off the accounts, to the free lists. */
void td__pool_put_back (TdPool *pool, TdBlock *b);

/* pools whose blocks are idle (pool-idle.c) */
/** Take a block that no queued work uses, for an input. */
TdBlock *td__pool_take_idle (TdPool *root, size_t bytes);
/** Release a block, already taken off the accounts, once the work that may use it is done. */
void td__pool_leave (TdPool *pool, TdBlock *b);
/** Free the blocks that wait, the oldest first, until no more than `kept` bytes wait.  *Sync*.
 */
void td__pool_settle (TdPool *pool, size_t kept);
