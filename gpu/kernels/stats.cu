/* Statistics of many arrays at once: counts, moments about a shift, and a histogram of
 * exponents, of all numbers, or of a sample that is looked at apart.  Each lane counts
 * exponents in places of its own, so that equal neighbours do not wait for each other; blocks
 * leave parts, which one block for each array joins in order.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

TD_DEVICE double
value_at (const void *x, int dtype, int64_t i)
{
  switch (dtype)
    {
    case TD_F32:
      return (double)((const float *)x)[i];
    case TD_F64:
      return ((const double *)x)[i];
    case TD_F16:
      return (double)Number<td_f16>::load (((const td_f16 *)x)[i]);
    case TD_BF16:
      return (double)Number<td_bf16>::load (((const td_bf16 *)x)[i]);
    case TD_I32:
      return (double)((const int32_t *)x)[i];
    case TD_I64:
      return (double)((const int64_t *)x)[i];
    default:
      return (double)((const uint8_t *)x)[i];
    }
}

TD_DEVICE bool
is_finite (double v)
{
  return v - v == 0;
}

/* The first finite of the first numbers: near the others, more often than 0 is.  All threads
 * and blocks come to the same. */
TD_DEVICE double
shift_of (const void *x, int dtype, int64_t size)
{
  double shift = 0;

  for (int64_t i = 0; i < size && i < 64; i++)
    {
      const double v = value_at (x, dtype, i);

      if (is_finite (v))
        return v;
    }
  return shift;
}

/* What numbers of a type are compared in. */
template <typename S> struct Compared
{
  typedef double T;
};
template <> struct Compared<float>
{
  typedef float T;
};
template <> struct Compared<td_f16>
{
  typedef float T;
};
template <> struct Compared<td_bf16>
{
  typedef float T;
};

/* A number less 0 where all so far were finite; NaN from the first one on that is not. */
TD_DEVICE float
nan_from (float nan, float v)
{
  return fmaf (v, 0.0f, nan);
}

TD_DEVICE double
nan_from (double nan, double v)
{
  return fma (v, 0.0, nan);
}

/* Of numbers that are not NaN. */
TD_DEVICE float
least (float a, float b)
{
  return fminf (a, b);
}

TD_DEVICE double
least (double a, double b)
{
  return lesser (a, b);
}

TD_DEVICE float
most (float a, float b)
{
  return fmaxf (a, b);
}

TD_DEVICE double
most (double a, double b)
{
  return greater (a, b);
}

/* The bin of a finite number; 0 goes to the first. */
TD_DEVICE int
bin_or_first (float v)
{
  constexpr uint32_t first = 127 + LOWEST, low = first << 23, high = (first + BINS - 1) << 23;
  uint32_t bits;

  memcpy (&bits, &v, sizeof bits);
  bits &= 0x7FFFFFFFu;
  bits = bits < low ? low : bits;
  return (int)(((bits < high ? bits : high) >> 23) - first);
}

TD_DEVICE int
bin_or_first (double v)
{
  constexpr uint32_t first = 1023 + LOWEST, low = first << 20, high = (first + BINS - 1) << 20;
  uint64_t whole;
  uint32_t bits;

  memcpy (&whole, &v, sizeof whole);
  bits = (uint32_t)(whole >> 32) & 0x7FFFFFFFu;
  bits = bits < low ? low : bits;
  return (int)(((bits < high ? bits : high) >> 20) - first);
}

/* What a thread has come across.  ALL: the histogram is of all numbers, else of a sample that
 * is taken apart from these. */
template <typename T, bool ALL, typename Bins> struct Seen
{
  Bins &bins;
  int place; /* of the thread's first bin */
  T low, high;
  double shift, s1, s2;
  uint32_t n, counts[4]; /* as a lot has them */

  TD_MEMBER
  Seen (Bins &bins_, int place_, double shift_)
      : bins (bins_), place (place_), low ((T)INFINITY), high (-(T)INFINITY), shift (shift_),
        s1 (0), s2 (0), n (0), counts{ 0, 0, 0, 0 }
  {
  }

  TD_MEMBER void
  see_finite (T v)
  {
    const double f = (double)v - shift;

    low = least (v, low);
    high = most (v, high);
    s1 += f;
    s2 = fma (f, f, s2);
    counts[0] += v == 0;
    if (ALL)
      bins[place + bin_or_first (v) * TD_WARP]++;
  }

  /* One test for all of a pack, which are finite as a rule. */
  template <typename S, int V>
  TD_MEMBER void
  see (const Pack<S, V> &pack)
  {
    T v[V], nan = 0;

#pragma unroll
    for (int k = 0; k < V; k++)
      {
        v[k] = (T)Number<S>::load (pack.v[k]);
        nan = nan_from (nan, v[k]);
      }
    if (nan == 0)
      {
        n += V;
#pragma unroll
        for (int k = 0; k < V; k++)
          see_finite (v[k]);
        return;
      }
#pragma unroll
    for (int k = 0; k < V; k++)
      if (is_finite ((double)v[k]))
        {
          n++;
          see_finite (v[k]);
        }
      else
        {
          counts[1] += v[k] != v[k];
          counts[2] += v[k] > 0;
          counts[3] += v[k] < 0;
        }
  }

  TD_MEMBER Lot<uint32_t>
  lot ()
  {
    if (ALL) /* zeros have no exponent */
      bins[place] = (uint16_t)(bins[place] - counts[0]);
    return { (double)low,
             (double)high,
             shift,
             s1,
             s2,
             n,
             { counts[0], counts[1], counts[2], counts[3] } };
  }
};

/* Numbers [begin, end) of an array, 16 bytes at a time and two of these in flight (one of
 * halves), where it is aligned; begin is a multiple of any pack. */
template <typename S, bool ALL, typename Bins>
TD_DEVICE Lot<uint32_t>
look_at (const void *data, int64_t begin, int64_t end, double shift, Bins &bins, int place)
{
  constexpr int V = sizeof (S) == 1 ? 4 : 16 / sizeof (S);
  const S *x = (const S *)data;
  const int64_t step = TD_BLOCK * V, whole = begin + (end - begin) / V * V;
  const bool packs = (uint64_t)data % 16 == 0;
  Seen<typename Compared<S>::T, ALL, Bins> seen (bins, place, shift);
  int64_t i = begin + (int64_t)threadIdx.x * V;

  for (; sizeof (S) >= 4 && packs && i + step < whole; i += 2 * step)
    {
      const Pack<S, V> first = *(const Pack<S, V> *)(x + i);
      const Pack<S, V> second = *(const Pack<S, V> *)(x + i + step);

      seen.see (first);
      seen.see (second);
    }
  for (; packs && i < whole; i += step)
    seen.see (*(const Pack<S, V> *)(x + i));
  for (i = (packs ? whole : begin) + threadIdx.x; i < end; i += TD_BLOCK)
    seen.see (*(const Pack<S, 1> *)(x + i));
  return seen.lot ();
}

/* The type is asked for once, and not for each number. */
template <bool ALL, typename Bins>
TD_DEVICE Lot<uint32_t>
look (const void *x, int dtype, int64_t begin, int64_t end, double shift, Bins &bins, int place)
{
  switch (dtype)
    {
    case TD_F32:
      return look_at<float, ALL> (x, begin, end, shift, bins, place);
    case TD_F64:
      return look_at<double, ALL> (x, begin, end, shift, bins, place);
    case TD_F16:
      return look_at<td_f16, ALL> (x, begin, end, shift, bins, place);
    case TD_BF16:
      return look_at<td_bf16, ALL> (x, begin, end, shift, bins, place);
    case TD_I32:
      return look_at<int32_t, ALL> (x, begin, end, shift, bins, place);
    case TD_I64:
      return look_at<int64_t, ALL> (x, begin, end, shift, bins, place);
    default:
      return look_at<uint8_t, ALL> (x, begin, end, shift, bins, place);
    }
}

/* The first number of the sample that is not before begin. */
TD_DEVICE int64_t
first_sample (int64_t begin, uint64_t start, uint64_t step)
{
  const uint64_t from = (uint64_t)begin;

  return (int64_t)(from <= start ? start : start + (from - start + step - 1) / step * step);
}

TD_KERNEL (td_stats, TdStatsParams)
{
  TD_SHARED (Lot<uint32_t>, room, WARPS);
  TD_SHARED (uint16_t, bins, LANE_BINS);
  const int which = last_not_above (a.first_block, a.n, blockIdx.x);
  const int lane = threadIdx.x % TD_WARP, warp = threadIdx.x / TD_WARP;
  const int place = warp * BINS * TD_WARP + lane, dtype = a.of[which].dtype;
  const void *x = a.of[which].data;
  const int64_t size = a.of[which].size, share = a.of[which].units * (int64_t)TD_STATS_UNIT;
  const int64_t begin = (int64_t)(blockIdx.x - a.first_block[which]) * share;
  const int64_t end = size - begin < share ? size : begin + share;
  const int64_t step = (int64_t)a.of[which].step;
  const double shift = shift_of (x, dtype, size);
  TdCudaStats *out = a.parts + blockIdx.x;
  Lot<uint32_t> lot;

  for (int b = 0; b < BINS; b++)
    bins[place + b * TD_WARP] = 0;
  if (step == 1)
    lot = look<true> (x, dtype, begin, end, shift, bins, place);
  else
    lot = look<false> (x, dtype, begin, end, shift, bins, place);
  for (int64_t i = first_sample (begin, a.of[which].start, a.of[which].step)
                   + (int64_t)threadIdx.x * step;
       step > 1 && i < end; i += TD_BLOCK * step)
    {
      const int bin = bin_of (value_at (x, dtype, i));

      if (bin >= 0)
        bins[place + bin * TD_WARP]++;
    }
  join_block (lot, room);
  if (threadIdx.x < BINS)
    {
      uint32_t n = 0;

      for (int k = 0; k < WARPS; k++)
        for (int l = 0; l < TD_WARP; l++) /* begin at one's own lane: other banks */
          n += bins[(k * BINS + threadIdx.x) * TD_WARP + (l + lane) % TD_WARP];
      out->exponent[threadIdx.x] = n;
    }
  if (threadIdx.x != 0)
    return;
  out->n = lot.n;
  put_lot (lot, out);
}

/* A block for each array: parts of a launch of the above, or of the kernel that wrote it. */
TD_KERNEL (td_stats_end, TdStatsParams)
{
  TD_SHARED (Lot<uint64_t>, room, WARPS);
  TD_SHARED (uint32_t, bins, WARPS * BINS);
  const int which = blockIdx.x, lane = threadIdx.x % TD_WARP, warp = threadIdx.x / TD_WARP;
  const TdCudaStats *parts = a.of[which].parts;
  const uint32_t n_parts = a.of[which].n_parts;
  TdCudaStats *out = a.of[which].result;
  Lot<uint64_t> lot = nothing_seen<uint64_t> ();
  uint32_t n = 0;

  for (uint32_t k = threadIdx.x; k < n_parts; k += TD_BLOCK)
    {
      const TdCudaStats *part = parts + k;

      join (lot, { part->min,
                   part->max,
                   part->shift,
                   part->s1,
                   part->s2,
                   part->n,
                   { part->n_zero, part->n_nan, part->n_pos_inf, part->n_neg_inf } });
    }
  join_block (lot, room);
  /* A lane for each bin; each warp adds up a share of the parts. */
#pragma unroll 16
  for (uint32_t k = warp; k < n_parts; k += WARPS)
    n += parts[k].exponent[lane];
  bins[warp * BINS + lane] = n;
  __syncthreads ();
  if (threadIdx.x < BINS)
    {
      for (int k = 1; k < WARPS; k++)
        n += bins[k * BINS + lane];
      out->exponent[lane] = n;
    }
  if (threadIdx.x != 0)
    return;
  out->n = (uint64_t)a.of[which].size;
  out->n_sampled = out->n > a.of[which].start
                       ? (out->n - a.of[which].start + a.of[which].step - 1) / a.of[which].step
                       : 0;
  put_lot (lot, out);
}
