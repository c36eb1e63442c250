/* A kernel made at run time that counts what it writes: count.cuh, and what that wants of
 * kernel.cuh and kernels.h, which are not for a compiler without files.  Each array that is
 * counted has a counter of its own, and a part of the block's dynamic shared memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define TD_WARP 32
#define TD_ALL_LANES 0xFFFFFFFFu
#if defined(__CUDACC__)
#define TD_MEMBER __device__ __forceinline__
#define TD_FUSED_ROOMS(T, name, most) extern __shared__ T name[]
#endif

enum
{
  TD_BLOCK = TD_FUSED_BLOCK
};

/* As kernels.h has it. */
typedef struct TdCudaStats
{
  uint64_t n, n_sampled, n_zero, n_nan, n_pos_inf, n_neg_inf;
  double min, max, shift, s1, s2;
  uint32_t exponent[32];
} TdCudaStats;
static_assert (sizeof (TdCudaStats) == TD_FUSED_STATS_BYTES, "the host's parts are as large");

/** v of the lane that is `lane` (a power of 2) away. */
template <typename T>
TD_DEVICE T
from_lane (T v, int lane)
{
  return __shfl_xor_sync (TD_ALL_LANES, v, lane);
}

/** The sum over groups of `lanes` neighbours of a warp (a power of 2), in a fixed order. */
template <typename T>
TD_DEVICE T
sum_of_lanes (T v, int lanes)
{
  for (int k = lanes / 2; k > 0; k /= 2)
    v += from_lane (v, k);
  return v;
}

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
  TD_FUSED_COUNTED (TD_FUSED_MEMBER)
};
