/* What all kernels begin with, those of the images and those made at run time: functions of the
 * device, halves by their bits, lanes of a warp.  It includes nothing, for the compiler at run
 * time has no files.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#if defined(__CUDACC__)
#define TD_DEVICE static __device__ __forceinline__
#define TD_MEMBER __device__ __forceinline__
#endif

#define TD_WARP 32
#define TD_ALL_LANES 0xFFFFFFFFu

struct td_f16
{
  uint16_t bits;
};

struct td_bf16
{
  uint16_t bits;
};

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
