/* The caching allocator: one algorithm over the segments of any device.
 *
 * Two-level segregated fit (Masmano et al., "TLSF", ECRTS 2004): constant time, immediate
 * coalescing, and placement that depends only on the sequence of calls.  Block descriptors are
 * in host memory, so that the host need not be able to address the memory itself.  Every block
 * has a category, which the caller passes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../device.h"

typedef struct TdPool TdPool;

extern const TdSegmentProvider td__provider_fake; /**< addresses without memory, for tests */

/** Copies shorter than this are not worth another stream: synchronizing takes longer. */
#define TD_UPLOAD_STREAM_BYTES ((size_t)1 << 20)

/** A block in use. */
typedef struct TdBlock
{
  char *address;
  size_t bytes; /**< taken from the pool: size, rounded up */
  struct TdBlock *physical_prev, *physical_next, *free_prev, *free_next;
  TdPool *pool;
  uint8_t category;
  bool free;
} TdBlock;
_Static_assert(sizeof (void *) != 8 || sizeof (TdBlock) == 64, "a line of the cache");

/** What was tried before an allocation failed.  *Units*: bytes. */
typedef struct
{
  size_t trimmed, trimmed_others; /**< free segments returned: of the pool, of its family */
  size_t waited;                  /**< still in use by copies and other streams: waited for */
  size_t refused;                 /**< size of the segment that the device refused last */
  bool limited; /**< nothing was tried: a limit was reached by live blocks, which cannot be
                   freed */
} TdMemTried;

TdPool *td__pool_new (const TdSegmentProvider *provider, void *context);
void td__pool_free (TdPool *pool);
/** Take a block of at least `bytes` (0 counts as 1), aligned to 64.  Workspace, the arenas of
 * static schedules, and inputs of at least TD_UPLOAD_STREAM_BYTES bytes (where the provider has
 * fences: pool-idle.c) come from other pools of the family, which have segments of their own;
 * the limit and the accounts are the family's.  NULL: no memory, or limit. */
TdBlock *td__pool_take (TdPool *pool, size_t bytes, TdMemCategory category);
/** The same from one of the family's pools. */
TdBlock *td__pool_take_from (TdPool *pool, TdMemPool which, size_t bytes,
                             TdMemCategory category);
void td__pool_release (TdBlock *block);
/** Say whether a block that was just taken is used by no queued work. */
bool td__block_is_idle (const TdBlock *block);
/** The same for a block that another stream still uses: it is free when the fence has passed.
 * *Owner*: the provider takes the fence. */
void td__pool_release_after (TdBlock *block, void *fence);
/** Change by 1 or -1 how many users need the segments of one of the family's pools unchanged
 * (CUDA graphs contain their addresses).  While there are any, no segment is returned to the
 * device and nothing is waited for. */
void td__pool_hold (TdPool *pool, TdMemPool which, int change);
/** Return segments without live blocks to the device.  *Units*: bytes. */
size_t td__pool_trim (TdPool *pool);
void td__pool_set_limit (TdPool *pool, size_t bytes);
size_t td__pool_limit (const TdPool *pool);
/** Return what was tried before the last failed allocation, and forget it. */
TdMemTried td__pool_tried (TdPool *pool);
/** Fill the memory fields of info (not the live object counts). */
void td__pool_info (const TdPool *pool, TdMemInfo *info);
/** Check every invariant; NULL if whole, else what is wrong (for tests). */
const char *td__pool_check (const TdPool *pool);
