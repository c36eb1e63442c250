/* Statistics on the way: what a thread has seen, how two lots of numbers become one, and a
 * counter for kernels that count what they write.
 *
 * Sums are about a number of their own, a thread's first, so that the variance keeps its
 * digits; lots about different numbers are moved to one when they are joined, in a fixed order.
 * A lane counts exponents in places of its own, so that equal neighbours do not wait for each
 * other.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "kernel.cuh"

enum
{
  BINS = 32,
  LOWEST = -24, /* exponent of the first bin */
  WARPS = TD_BLOCK / TD_WARP,
  LANE_BINS = WARPS * BINS * TD_WARP /* [warp][bin][lane] */
};
static_assert (BINS == TD_WARP, "a lane for each bin");

TD_DEVICE int
bin_of_exponent (int exponent)
{
  const int bin = exponent - LOWEST;

  return bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin;
}

/** The bin of a number that is finite and not 0, by its exponent; -1 for others. */
TD_DEVICE int
bin_of (double v)
{
  uint64_t bits;
  int exponent;

  memcpy (&bits, &v, sizeof bits);
  exponent = (int)(bits >> 52 & 2047);
  return exponent == 2047 || (bits << 1) == 0 ? -1 : bin_of_exponent (exponent - 1023);
}

TD_DEVICE int
bin_of (float v)
{
  uint32_t bits;
  int exponent;

  memcpy (&bits, &v, sizeof bits);
  exponent = (int)(bits >> 23 & 255);
  return exponent == 255 || (bits << 1) == 0 ? -1 : bin_of_exponent (exponent - 127);
}

TD_DEVICE double
lesser (double a, double b)
{
  return b < a ? b : a;
}

TD_DEVICE double
greater (double a, double b)
{
  return b > a ? b : a;
}

/** What some threads have seen; numbers are counted as C. */
template <typename C> struct Lot
{
  double low, high, shift, s1, s2; /* of finite numbers; sums about `shift` */
  C n;                             /* finite ones */
  C counts[4];                     /* 0, NaN, infinity, -infinity */
};

template <typename C>
TD_DEVICE Lot<C>
nothing_seen ()
{
  return { INFINITY, -(double)INFINITY, 0, 0, 0, 0, { 0, 0, 0, 0 } };
}

/** Join b to a, whose shift stays. */
template <typename C>
TD_DEVICE void
join (Lot<C> &a, const Lot<C> &b)
{
  const double d = a.n > 0 && b.n > 0 ? b.shift - a.shift : 0;

  if (a.n == 0)
    a.shift = b.shift;
  a.s1 += b.s1;
  a.s2 += b.s2;
  if (d != 0) /* else sums beyond all numbers became NaN */
    {
      const double m = (double)b.n * d;

      a.s1 += m;
      a.s2 += d * (2 * b.s1 + m);
    }
  a.low = lesser (a.low, b.low);
  a.high = greater (a.high, b.high);
  a.n += b.n;
#pragma unroll
  for (int k = 0; k < 4; k++)
    a.counts[k] += b.counts[k];
}

/* Joined with the lots of lanes up to `lanes` away. */
template <typename C>
TD_DEVICE void
join_lanes (Lot<C> &lot, int lanes)
{
  for (int k = lanes / 2; k > 0; k /= 2)
    {
      Lot<C> other;

      other.low = from_lane (lot.low, k);
      other.high = from_lane (lot.high, k);
      other.shift = from_lane (lot.shift, k);
      other.s1 = from_lane (lot.s1, k);
      other.s2 = from_lane (lot.s2, k);
      other.n = from_lane (lot.n, k);
#pragma unroll
      for (int c = 0; c < 4; c++)
        other.counts[c] = from_lane (lot.counts[c], k);
      join (lot, other);
    }
}

/** The whole block's lot, in thread 0; `room` has a place for each warp.  All threads of the
 * block take part, and meet in between. */
template <typename C, typename Room>
TD_DEVICE void
join_block (Lot<C> &lot, Room &room)
{
  join_lanes (lot, TD_WARP);
  if (threadIdx.x % TD_WARP == 0)
    room[threadIdx.x / TD_WARP] = lot;
  __syncthreads ();
  if (threadIdx.x < TD_WARP)
    {
      lot = room[threadIdx.x % WARPS];
      join_lanes (lot, WARPS);
    }
}

/** Write a lot as a part, or as a result: all but its exponents. */
template <typename C>
TD_DEVICE void
put_lot (const Lot<C> &lot, TdCudaStats *out)
{
  out->n_zero = lot.counts[0];
  out->n_nan = lot.counts[1];
  out->n_pos_inf = lot.counts[2];
  out->n_neg_inf = lot.counts[3];
  out->min = lot.low;
  out->max = lot.high;
  out->shift = lot.shift;
  out->s1 = lot.s1;
  out->s2 = lot.s2;
}

/** Counts nothing: for kernels whose numbers nobody has asked for. */
struct Quiet
{
  template <typename T>
  TD_MEMBER void
  see (T)
  {
  }
};

/** A thread's own counter, of numbers that are compared as T.  *Owner* of `bins`: the block,
 * LANE_BINS of them; no more than 65535 numbers a thread. */
template <typename T, typename Bins> struct Counter
{
  Bins &bins;
  int place;
  T low, high;
  double shift, s1, s2;
  uint32_t n, n_zero, n_nan, n_above, n_below;

  TD_MEMBER explicit Counter (Bins &bins_)
      : bins (bins_), low ((T)INFINITY), high (-(T)INFINITY), shift (0), s1 (0), s2 (0), n (0),
        n_zero (0), n_nan (0), n_above (0), n_below (0)
  {
    place = (int)(threadIdx.x / TD_WARP * BINS * TD_WARP + threadIdx.x % TD_WARP);
    for (int b = 0; b < BINS; b++)
      bins[place + b * TD_WARP] = 0;
  }

  TD_MEMBER void
  see (T v)
  {
    if (v - v == 0)
      {
        const int bin = bin_of (v);
        double f;

        shift = n == 0 ? (double)v : shift;
        f = (double)v - shift;
        low = v < low ? v : low;
        high = v > high ? v : high;
        s1 += f;
        s2 += f * f;
        n++;
        if (bin >= 0)
          bins[place + bin * TD_WARP]++;
        else
          n_zero++;
      }
    else if (v != v)
      n_nan++;
    else
      {
        n_above += v > 0;
        n_below += v < 0;
      }
  }

  /* All threads of the block: leave what it has counted. */
  template <typename Room>
  TD_MEMBER void
  leave (Room &room, TdCudaStats *out)
  {
    const int bin = threadIdx.x / WARPS, warp = threadIdx.x % WARPS;
    Lot<uint32_t> lot
        = { (double)low, (double)high, shift, s1, s2, n, { n_zero, n_nan, n_above, n_below } };
    uint32_t in_bin = 0;

    join_block (lot, room);
    /* Each begins elsewhere: other banks. */
    for (int l = 0; l < TD_WARP; l++)
      in_bin += bins[(warp * BINS + bin) * TD_WARP + (l + 2 * warp) % TD_WARP];
    in_bin = sum_of_lanes (in_bin, WARPS);
    if (warp == 0)
      out->exponent[bin] = in_bin;
    if (threadIdx.x != 0)
      return;
    out->n = lot.n;
    put_lot (lot, out);
  }
};
static_assert (TD_BLOCK == BINS * WARPS, "a thread for each bin of each warp");

/* TD_STATS_KERNEL declares a kernel whose text serves twice.  Compiled for the images it is
 * td_NAME, and TD_COUNTER and TD_COUNTER_LEAVE do nothing.  With TD_KERNELS_COUNT it is
 * td_count_NAME, which writes the same numbers and gathers statistics of them on the way.
 *
 * Those are compiled when one is first wanted (gpu/counting.c), one kernel at a time: the text
 * that is compiled defines TD_PICK_NAME as `~,` and TD_KERNELS_ONE, and every other kernel of
 * the file becomes a template that nobody instantiates.  Without TD_KERNELS_ONE, as in the
 * emulator of the tests, the file gives all of them. */
#if defined(TD_KERNELS_COUNT)
#if defined(__CUDACC__) /* two blocks of a multiprocessor: the counter must not make it spill  \
                         */
#define TD_COUNTING_KERNEL(name, Params)                                                       \
  extern "C" __global__ void __launch_bounds__ (TD_BLOCK, 2)                                   \
      td_count_##name (const __grid_constant__ Params a)
#else
#define TD_COUNTING_KERNEL(name, Params) TD_KERNEL (td_count_##name, Params)
#endif
#if defined(TD_KERNELS_ONE)
#define TD_NOT_PICKED(name, Params)                                                            \
  template <int> TD_DEVICE void td_other_##name (const Params &a)
#define TD_SECOND_OF(first, second, ...) second
#define TD_CHOOSE(...) TD_SECOND_OF (__VA_ARGS__)
#define TD_STATS_KERNEL(name, Params)                                                          \
  TD_CHOOSE (TD_PICK_##name TD_COUNTING_KERNEL, TD_NOT_PICKED, ~) (name, Params)
#else
#define TD_STATS_KERNEL(name, Params) TD_COUNTING_KERNEL (name, Params)
#endif
#define TD_COUNTER_AS(counter, T)                                                              \
  TD_SHARED (uint16_t, counter##_bins, LANE_BINS);                                             \
  TD_SHARED (Lot<uint32_t>, counter##_room, WARPS);                                            \
  Counter<T, decltype (counter##_bins)> counter (counter##_bins)
#define TD_COUNTER_LEAVE_AS(counter, parts)                                                    \
  if ((parts) != nullptr)                                                                      \
  counter.leave (counter##_room, (parts) + blockIdx.x)
#else
#define TD_STATS_KERNEL(name, Params) TD_KERNEL (td_##name, Params)
#define TD_COUNTER_AS(counter, T) Quiet counter
#define TD_COUNTER_LEAVE_AS(counter, parts) (void)counter
#endif
#define TD_COUNTER(T) TD_COUNTER_AS (counter, T)
#define TD_COUNTER_LEAVE(parts) TD_COUNTER_LEAVE_AS (counter, parts)
