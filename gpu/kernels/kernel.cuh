/* What all kernels share: how one is declared, packs of 16 bytes, numbers as they are stored
 * and as they are computed with, sums over a block.
 *
 * nvcc compiles the kernels for the device; the tests' emulator compiles the same files as C++
 * for the host, after its own idea of a kernel and of shared memory (emu.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "params.h"
#include "scalar-ops.h"

#include "common.cuh"

#if defined(__CUDACC__)
#define TD_KERNEL(name, Params)                                                                \
  extern "C" __global__ void __launch_bounds__ (TD_BLOCK)                                      \
      name (const __grid_constant__ Params a)
/* Shared memory; the emulator checks its bounds. */
#define TD_SHARED(T, name, n) __shared__ T name[n]
#elif !defined(TD_KERNEL)
#error "kernels are compiled by nvcc, or after emu.h"
#endif

/** Numbers stored as S: the type they are computed in, the way there and back. */
template <typename S> struct Number
{
  typedef S T;

  TD_DEVICE T
  load (S v)
  {
    return v;
  }

  TD_DEVICE S
  store (T v)
  {
    return v;
  }
};

template <> struct Number<td_f16>
{
  typedef float T;

  TD_DEVICE float
  load (td_f16 v)
  {
#if defined(__CUDACC__)
    float x;

    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(v.bits));
    return x;
#else
    return td_float_of_f16 (v.bits);
#endif
  }

  TD_DEVICE td_f16
  store (float v)
  {
    td_f16 h;

#if defined(__CUDACC__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(v));
#else
    h.bits = td_f16_of_float (v);
#endif
    return h;
  }
};

template <> struct Number<td_bf16>
{
  typedef float T;

  TD_DEVICE float
  load (td_bf16 v)
  {
    return td_float_of_bf16 (v.bits);
  }

  TD_DEVICE td_bf16
  store (float v)
  {
    td_bf16 h;

#if defined(__CUDACC__)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(v));
#else
    h.bits = td_bf16_of_float (v);
#endif
    return h;
  }
};

/** Number i of an array whose type is known when the kernel runs: one that is computed in the
 * type of the last argument. */
TD_DEVICE double
number_at (const void *data, int dtype, int64_t i, double)
{
  return ((const double *)data)[i];
}

TD_DEVICE float
number_at (const void *data, int dtype, int64_t i, float)
{
  return dtype == TD_F32    ? ((const float *)data)[i]
         : dtype == TD_BF16 ? Number<td_bf16>::load (((const td_bf16 *)data)[i])
                            : Number<td_f16>::load (((const td_f16 *)data)[i]);
}

/** The same the other way. */
TD_DEVICE void
put_number (void *data, int dtype, int64_t i, double v)
{
  ((double *)data)[i] = v;
}

TD_DEVICE void
put_number (void *data, int dtype, int64_t i, float v)
{
  if (dtype == TD_F32)
    ((float *)data)[i] = v;
  else if (dtype == TD_BF16)
    ((td_bf16 *)data)[i] = Number<td_bf16>::store (v);
  else
    ((td_f16 *)data)[i] = Number<td_f16>::store (v);
}

/** a + b; integers wrap. */
template <typename T>
TD_DEVICE T
sum_of_two (T a, T b)
{
  return a + b;
}

TD_DEVICE int32_t
sum_of_two (int32_t a, int32_t b)
{
  return (int32_t)((uint32_t)a + (uint32_t)b);
}

TD_DEVICE int64_t
sum_of_two (int64_t a, int64_t b)
{
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

/** V numbers that are read and written at once. */
template <typename S, int V> struct alignas (sizeof (S) * V) Pack
{
  S v[V];
};

/** Numbers of type S that are taken at once where launch functions say `packs`: as many of all
 * that are computed in float, so that they are added up in one order. */
template <typename S> struct Packed
{
  enum
  {
    V = sizeof (S) <= 4 ? TD_PACK : 1
  };
};

/** Numbers of type S in 16 bytes: what is taken at once where all rows are aligned, and where
 * sums are carried so wide that their order does not show. */
template <typename S> struct Wide
{
  enum
  {
    AT_ONCE = TD_WIDE_BYTES / sizeof (S)
  };
};

/** Numbers of a row that a thread keeps in registers where V are taken at once, so that rows up
 * to its threads' share are read once. */
template <typename S, int V> struct Held
{
  enum
  {
    N = V == 1 || sizeof (S) == 8 ? 16 : 32
  };
};

/** How many numbers of a row are taken at once. */
template <int N> struct Width
{
  enum
  {
    V = N
  };
};

/** Call f (k, Width) for each k of [0, n) that is lane `lane`'s of `lanes`: V at once but for
 * the first and the last few, where the row begins at place `at` of an array that is aligned.
 */
template <int V, typename F>
TD_DEVICE void
each_of_row (int64_t at, int64_t n, int lane, int lanes, F f)
{
  const int64_t before = (V - at % V) % V, head = before < n ? before : n;
  const int64_t end = n - (n - head) % V;

  for (int64_t k = lane; V > 1 && k < head; k += lanes)
    f (k, Width<1> ());
  for (int64_t k = head + (int64_t)lane * V; k < end; k += (int64_t)lanes * V)
    f (k, Width<V> ());
  for (int64_t k = end + lane; V > 1 && k < n; k += lanes)
    f (k, Width<1> ());
}

TD_DEVICE int64_t
thread_index ()
{
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

TD_DEVICE int64_t
n_threads ()
{
  return (int64_t)gridDim.x * blockDim.x;
}

/** Which of n lots of blocks a block is of: the last whose first is not above it. */
TD_DEVICE int
last_not_above (const uint32_t *first_block, int n, uint32_t block)
{
  int k = 0, end = n;

  while (k + 1 < end)
    {
      const int middle = (k + end) / 2;

      if (first_block[middle] <= block)
        k = middle;
      else
        end = middle;
    }
  return k;
}

TD_DEVICE uint32_t
divide (uint32_t n, const TdDivisor &d)
{
  return (uint32_t)(((uint64_t)n * d.magic >> 32) + n) >> d.shift;
}

TD_DEVICE int64_t
integer_at (const void *index, int dtype, int64_t i)
{
  return dtype == TD_I32   ? ((const int32_t *)index)[i]
         : dtype == TD_I64 ? ((const int64_t *)index)[i]
                           : ((const uint8_t *)index)[i];
}

/** The sum over `lanes` threads: part of a warp, or the whole block of TD_BLOCK.  All threads
 * of the block take part; `room` has a place for each warp. */
template <typename T, typename Room>
TD_DEVICE T
sum_of_group (T v, int lanes, Room &room)
{
  T sum = 0;

  v = sum_of_lanes (v, lanes < TD_WARP ? lanes : TD_WARP);
  if (lanes <= TD_WARP)
    return v;
  if (threadIdx.x % TD_WARP == 0)
    room[threadIdx.x / TD_WARP] = v;
  __syncthreads ();
  for (int k = 0; k < TD_BLOCK / TD_WARP; k++)
    sum += room[k];
  __syncthreads ();
  return sum;
}

/** The same for the largest, NaN left out. */
template <typename T, typename Room>
TD_DEVICE T
largest_of_group (T v, int lanes, Room &room)
{
  for (int k = (lanes < TD_WARP ? lanes : TD_WARP) / 2; k > 0; k /= 2)
    {
      const T other = from_lane (v, k);

      v = other > v ? other : v;
    }
  if (lanes <= TD_WARP)
    return v;
  if (threadIdx.x % TD_WARP == 0)
    room[threadIdx.x / TD_WARP] = v;
  __syncthreads ();
  for (int k = 0; k < TD_BLOCK / TD_WARP; k++)
    v = room[k] > v ? room[k] : v;
  __syncthreads ();
  return v;
}
