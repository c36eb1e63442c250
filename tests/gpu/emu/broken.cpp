/* Kernels with the mistakes that the emulator has to see, and one without.
 *
 * SPDX-License-Identifier: MIT */
#include "broken.h"
#include "emu.h"

TD_KERNEL (broken_half_a_barrier, BrokenParams)
{
  if (threadIdx.x < 32)
    __syncthreads ();
  a.out[threadIdx.x] = 1;
}

TD_KERNEL (broken_two_barriers, BrokenParams)
{
  if (threadIdx.x < 32)
    __syncthreads ();
  else
    __syncthreads ();
  a.out[threadIdx.x] = 1;
}

TD_KERNEL (broken_shuffle, BrokenParams)
{
  int v = (int)threadIdx.x;

  if (threadIdx.x % 32 < 16)
    v = __shfl_xor_sync (0xFFFFFFFFu, v, 16);
  a.out[threadIdx.x] = v;
}

TD_KERNEL (broken_shared, BrokenParams)
{
  TD_SHARED (int, room, 40);

  room[threadIdx.x] = 1;
  __syncthreads ();
  a.out[threadIdx.x] = room[0];
}

TD_KERNEL (broken_global, BrokenParams)
{
  a.out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

TD_KERNEL (broken_race, BrokenParams)
{
  TD_SHARED (int, room, 64);

  room[threadIdx.x] = 7;
  a.out[threadIdx.x] = room[(threadIdx.x + 1) % 64];
}

/* The same the other way round: read, then written by another. */
TD_KERNEL (broken_late_race, BrokenParams)
{
  TD_SHARED (int, room, 64);

  room[threadIdx.x] = 7;
  __syncthreads ();
  a.out[threadIdx.x] = room[(threadIdx.x + 32) % 64];
  room[threadIdx.x] = 8;
}

/* A warp's barrier orders that warp alone. */
TD_KERNEL (broken_warps, BrokenParams)
{
  TD_SHARED (int, room, 64);

  room[threadIdx.x] = 7;
  __syncwarp ();
  a.out[threadIdx.x] = room[threadIdx.x ^ 1];
  a.out[threadIdx.x] += room[threadIdx.x ^ 32];
}

/* In memory of the device, where nobody is told. */
TD_KERNEL (broken_order, BrokenParams)
{
  a.out[threadIdx.x] = 7;
  a.out[threadIdx.x] = a.out[(threadIdx.x + 1) % 64] + 1;
}

TD_KERNEL (broken_unset, BrokenParams)
{
  TD_SHARED (float, room, 32);
  const float v = room[threadIdx.x];

  a.out[blockIdx.x * blockDim.x + threadIdx.x] = v != v;
  room[threadIdx.x] = 1;
}

/* out = the sum of all threads' numbers, the number of the thread opposite, a warp's votes. */
TD_KERNEL (sound_sums, BrokenParams)
{
  TD_SHARED (int, room, 64);
  int sum = (int)threadIdx.x, votes;

  for (int k = 16; k > 0; k /= 2)
    sum += __shfl_xor_sync (0xFFFFFFFFu, sum, k);
  room[threadIdx.x] = sum;
  __syncthreads ();
  sum = room[0] + room[32];
  __syncthreads ();
  room[threadIdx.x] = (int)threadIdx.x;
  __syncthreads ();
  votes = __popc (__ballot_sync (0xFFFFFFFFu, room[threadIdx.x] >= 0));
  a.out[blockIdx.x * blockDim.x + threadIdx.x] = sum + room[63 - threadIdx.x] + votes;
}
