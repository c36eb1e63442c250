/* A kernel made at run time that counts what it writes.  Each array that is counted has a
 * counter of its own, and a part of the block's dynamic shared memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#if defined(__CUDACC__)
#define TD_FUSED_ROOMS(T, name, most) extern __shared__ T name[]
#endif

#include "count.cuh"

struct CountRoom
{
  uint16_t bins[LANE_BINS];
  Lot<uint32_t> lots[WARPS];
};
static_assert (sizeof (CountRoom) == TD_FUSED_COUNT_BYTES, "the host gives as much");

#define TD_FUSED_MEMBER(place, operand, T) Counter<T, uint16_t[LANE_BINS]> c##operand;
#define TD_FUSED_START(place, operand, T) Counter<T, uint16_t[LANE_BINS]> (rooms[place].bins),
#define TD_FUSED_LEAVE(place, operand, T)                                                      \
  if (a.parts[place] != nullptr)                                                               \
    seen.c##operand.leave (rooms[place].lots, a.parts[place] + blockIdx.x);

struct Seen
{
  TD_FUSED_WITH_STATS (TD_FUSED_MEMBER)
};
