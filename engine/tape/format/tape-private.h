/* What the files of the tape library share and nobody else sees.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

#define TAPE_ALIGN(n) (((uint64_t)(n) + 7) & ~(uint64_t)7)

/** CRC-32C of `n` bytes, continuing from `crc` (0 at the start). */
uint32_t td__tape_crc (uint32_t crc, const void *bytes, size_t n);
uint32_t td__tape_crc_portable (uint32_t crc, const void *bytes, size_t n);

/** A buffer that grows; `failed` sticks. */
typedef struct
{
  char *bytes;
  size_t n, room;
  bool failed;
} TapeBuffer;

/** Make room for `n` more bytes and count them; NULL when there is no memory. */
void *td__tape_buffer_add (TapeBuffer *b, size_t n);
void td__tape_buffer_put (TapeBuffer *b, const void *bytes, size_t n);

/** A section: its head, the elements, the padding; nothing when there are none. */
void td__tape_buffer_section (TapeBuffer *b, uint32_t kind, uint32_t stride, uint64_t count,
                              const void *elements);

/** Count the events of an iteration that are not discarded. */
uint32_t td__tape_count_events (const TdTapeIteration *it);

/** A hash table from 64-bit hashes to numbers; several entries may share a hash. */
typedef struct
{
  uint64_t *hashes;
  uint32_t *values; /* 0: empty */
  uint32_t n, room;
} TapeMap;

/** Call `same (user, value)` for each entry with that hash; returns the first it agrees to. */
uint32_t td__tape_map_find (const TapeMap *map, uint64_t hash,
                            bool (*same) (const void *user, uint32_t value), const void *user);
bool td__tape_map_add (TapeMap *map, uint64_t hash, uint32_t value);
void td__tape_map_clear (TapeMap *map);
