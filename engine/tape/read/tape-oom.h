/* What the report of memory that ran out is made from: what was live at that moment.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "reader-private.h"

/** A block that was live. */
typedef struct
{
  uint64_t address, bytes;
  uint32_t var; /* TD_TAPE_NONE: not known */
  uint8_t category;
  bool at_start; /* of the iteration */
} TapeLive;

typedef struct
{
  TapeLive *items;
  uint32_t n;
} TapeLiveSet;

/** A map from addresses to indices. */
typedef struct
{
  uint64_t *keys;
  uint32_t *values;
  uint64_t mask;
} TapeAddresses;

bool td__tape_addresses_init (TapeAddresses *map, uint64_t n);
void td__tape_addresses_clear (TapeAddresses *map);
/** The place of an address's value; UINT32_MAX there: none so far. */
uint32_t *td__tape_address (TapeAddresses *map, uint64_t address);

/** Blocks of a device that were live after `n_memory` records of the iteration. *Owner*: the
 * caller, free the items; false: no memory. */
bool td__tape_live_after (const TdTapeIteration *it, uint32_t device, uint32_t n_memory,
                          TapeLiveSet *set);

/** Take the links that follow the holders of an OOM frame, whose `n_holders` are the reader's
 * from `first_holder` on. */
void td__tape_take_oom_links (TapeArray *to, const char *bytes, size_t n, uint32_t n_holders,
                              uint32_t first_holder);

/** What the allocator makes of a number of bytes. */
static inline uint64_t
td__tape_block_bytes (uint64_t bytes)
{
  return bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
}

/** How many bytes more it would have taken. */
uint64_t td__tape_oom_missing (const TdTapeOom *oom);
/** What the program can have at most; 0: not known. */
uint64_t td__tape_oom_capacity (const TdTapeOom *oom);
/** The iteration in which it was; NULL: gone, or none.  *Owner*: the caller. */
const TdTapeIteration *td__tape_oom_iteration (TdTapeReader *r, const TdTapeOom *oom);
