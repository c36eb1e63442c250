/* Packed sections, from format 1.3 on: prose.  Not installed: readers of the library unpack.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape-private.h"

/* PACKED SECTIONS
 *
 * Where a section has 65536 bytes (TAPE_PACK_FROM) or more and its stride is a multiple of 4 it
 * is written as a section of kind PACKED, whose stride is 4: {u32 kind; u32 stride; u64 count}
 * of the section that is packed, then blocks, then zeros.  A block has 4096 elements
 * (TAPE_PACK_BLOCK), the last one the rest.  It says, for each column of 4 bytes in turn, how
 * the column is coded, in one byte:
 *
 *     255      as it is, 4 bytes each
 *     lag      the differences from the value `lag` elements before; where there is none, and
 *              for lag 0 always, from 0; modulo 2^32
 *
 * A difference d is 2d, or -2d - 1 where it is negative, times 2, plus 1 if it is there several
 * times in a row: then the number of further times follows.  All numbers in groups of 7 bits,
 * the lowest first, with bit 7 set where another group follows.
 *
 * Nothing is packed to less than a TAPE_PACK_MOST-th: zeros are added, so that a reader knows
 * from the file's size how much memory it may be asked for. */

#define TAPE_PACK_FROM 65536u
#define TAPE_PACK_BLOCK 4096u
#define TAPE_PACK_MAX_LAG 32u
#define TAPE_PACK_MAX_STRIDE 256u
#define TAPE_PACK_MOST 64u
#define TAPE_PACK_RAW 255u

typedef struct
{
  uint32_t kind, stride; /* of the section that is packed */
  uint64_t count;
} TapePackedHead;
static_assert (sizeof (TapePackedHead) == 16, "TapePackedHead changed size");

/** Add a section, packed. */
void td__tape_pack (TapeBuffer *b, uint32_t kind, uint32_t stride, uint64_t count,
                    const void *elements);

/** The same in parts: begin, blocks of TAPE_PACK_BLOCK elements, the last one of fewer, end. */
size_t td__tape_pack_begin (TapeBuffer *b);
bool td__tape_pack_block (TapeBuffer *b, uint32_t stride, const void *elements, uint32_t n);
void td__tape_pack_end (TapeBuffer *b, size_t place, uint32_t kind, uint32_t stride,
                        uint64_t count);

/** Unpack `count` elements of `stride` bytes from `n` bytes; false when they are not well
 * formed. */
bool td__tape_unpack (const char *bytes, uint64_t n, uint32_t stride, uint64_t count,
                      void *elements);
