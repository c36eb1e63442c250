/* The allocator core: one algorithm over any device's segments.
 *
 * Two-level segregated fit (Masmano et al., "TLSF", ECRTS 2004): constant time, immediate
 * coalescing, and placement that depends on the sequence of calls alone.  Block descriptors lie
 * in host memory, so that the memory itself may be out of the host's reach.  Every block has a
 * category, given by the caller.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../device.h"

typedef struct TdPool TdPool;

extern const TdSegmentProvider td__provider_fake; /**< addresses without memory behind them */

/** Copies shorter than this are over before another stream has heard of them. */
#define TD_UPLOAD_ASIDE ((size_t)1 << 20)

/** A block in use. */
typedef struct TdBlock
{
  char *address;
  size_t bytes; /**< rounded up, what is taken from the pool */
  struct TdBlock *physical_prev, *physical_next, *free_prev, *free_next;
  TdPool *pool;
  uint8_t category;
  bool free;
} TdBlock;
_Static_assert(sizeof (void *) != 8 || sizeof (TdBlock) == 64, "a line of the cache");

/** What was done for a block that could not be had.  *Units*: bytes. */
typedef struct
{
  size_t trimmed, trimmed_others; /**< free segments given back: of the pool, of its family */
  size_t waited;  /**< that copies and other streams still used, and that was waited for */
  size_t refused; /**< the segment that the device refused last */
  bool limited;   /**< nothing: a limit counts what is live, none of which can go */
} TdMemTried;

TdPool *td__pool_new (const TdSegmentProvider *provider, void *context);
void td__pool_free (TdPool *pool);
/** Take a block of at least `bytes` (0 counts as 1), aligned to 64.  Workspace and what static
 * schedules plan come from pools of their own in the family, with segments of their own, and so
 * do inputs of at least TD_UPLOAD_ASIDE bytes where the provider makes fences (pool-idle.c);
 * limit and accounts are the family's.  NULL: no memory, or limit. */
TdBlock *td__pool_take (TdPool *pool, size_t bytes, TdMemCategory category);
/** The same from one of the family's pools. */
TdBlock *td__pool_take_from (TdPool *pool, TdMemPool which, size_t bytes,
                             TdMemCategory category);
void td__pool_give (TdBlock *block);
/** Say whether a block that was taken just now is one that no work uses. */
bool td__block_is_idle (const TdBlock *block);
/** The same, but the block is nobody's until the fence has passed: work on another stream still
 * uses it.  *Owner*: the provider takes the fence. */
void td__pool_give_after (TdBlock *block, void *fence);
/** More (1) or fewer (-1) need the segments of one of the family's pools as they are: nothing
 * is given back, nor waited for, till nobody does. */
void td__pool_hold (TdPool *pool, TdMemPool which, int change);
/** Give segments without live blocks back.  *Units*: bytes. */
size_t td__pool_trim (TdPool *pool);
void td__pool_set_limit (TdPool *pool, size_t bytes);
size_t td__pool_limit (const TdPool *pool);
/** What was done for the block that could not be had last; forgotten then. */
TdMemTried td__pool_tried (TdPool *pool);
/** Fill the memory fields of info (not the live object counts). */
void td__pool_info (const TdPool *pool, TdMemInfo *info);
/** Check every invariant; NULL if whole, else what is wrong (for tests). */
const char *td__pool_check (const TdPool *pool);
