/* What the parts of the allocator core share: a pool with its segments and free lists.
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
  size_t *pieces; /* in the order of addresses: what the provider gave at once */
  size_t n_pieces;
} Segment;

/* A block that was given back while another stream uses it. */
typedef struct
{
  TdBlock *block;
  void *fence;
} Pending;

/* Blocks that were given back since the group before, and the end of the work that may use
 * them. */
typedef struct
{
  TdBlock *first; /* the others hang on it through free_next */
  size_t bytes;
  void *fence;
} Group;

struct TdPool
{
  TdPool *root;                  /* of the family: what callers know, with the limit */
  TdPool *parts[TD_MEM_N_POOLS]; /* of the root; the first is itself */
  size_t parts_live;             /* of the root: live in the others */
  int holds;                     /* who needs the segments as they are */
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
  bool idle;     /* what is taken from it, no work uses: what is given back waits in groups */
  Group leaving; /* without a fence yet */
  Group *groups; /* the oldest first */
  size_t n_groups, groups_capacity;
  TdMemInfo info;
  TdMemTried tried; /* of the root */
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

/** One of the family, made when it is wanted first; NULL: no host memory for it. */
TdPool *td__pool_part (TdPool *root, TdMemPool which);
/** Put a block that is no longer counted among the free ones. */
void td__pool_put_back (TdPool *pool, TdBlock *b);

/* pools whose blocks are idle (pool-idle.c) */
/** Take a block that no work uses, for an input. */
TdBlock *td__pool_take_idle (TdPool *root, size_t bytes);
/** A block that is no longer counted waits for the work that may use it. */
void td__pool_leave (TdPool *pool, TdBlock *b);
/** Free the oldest of those that wait, till no more than so many bytes are kept.  *Sync*. */
void td__pool_settle (TdPool *pool, size_t kept);
