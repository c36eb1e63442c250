/* Statistics of many arrays at once: counts, moments about a shift, and a histogram of
 * exponents from a sample.  Each lane counts exponents in places of its own, so that equal
 * neighbours do not wait for each other; blocks leave parts, which one block for each array
 * joins in order.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

TD_DEVICE int
array_of_block (const TdStatsParams &a)
{
  int k = 0;

  while (k + 1 < a.n && a.first_block[k + 1] <= blockIdx.x)
    k++;
  return k;
}

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

/* What a thread has come across. */
template <typename T> struct Seen
{
  T low, high;
  double shift, s1, s2;
  uint32_t n, counts[4]; /* as a lot has them */

  TD_DEVICE void
  see (Seen &s, T v)
  {
    if (v - v == 0)
      {
        const double f = (double)v - s.shift;

        s.low = v < s.low ? v : s.low;
        s.high = v > s.high ? v : s.high;
        s.s1 += f;
        s.s2 += f * f;
        s.n++;
        s.counts[0] += v == 0;
      }
    else
      {
        s.counts[1] += v != v;
        s.counts[2] += v > 0;
        s.counts[3] += v < 0;
      }
  }
};

/* Numbers [begin, end) of an array, 16 bytes at a time and two of these in flight (one of
 * halves), where it is aligned; begin is a multiple of any pack. */
template <typename S>
TD_DEVICE Lot<uint32_t>
look_at (const void *data, int64_t begin, int64_t end, double shift)
{
  typedef typename Compared<S>::T T;
  constexpr int V = sizeof (S) == 1 ? 4 : 16 / sizeof (S);
  const S *x = (const S *)data;
  const int64_t step = TD_BLOCK * V, whole = begin + (end - begin) / V * V;
  const bool packs = (uint64_t)data % 16 == 0;
  Seen<T> seen = { (T)INFINITY, -(T)INFINITY, shift, 0, 0, 0, { 0, 0, 0, 0 } };
  int64_t i = begin + (int64_t)threadIdx.x * V;

  for (; sizeof (S) >= 4 && packs && i + step < whole; i += 2 * step)
    {
      const Pack<S, V> first = *(const Pack<S, V> *)(x + i);
      const Pack<S, V> second = *(const Pack<S, V> *)(x + i + step);

#pragma unroll
      for (int k = 0; k < V; k++)
        Seen<T>::see (seen, (T)Number<S>::load (first.v[k]));
#pragma unroll
      for (int k = 0; k < V; k++)
        Seen<T>::see (seen, (T)Number<S>::load (second.v[k]));
    }
  for (; packs && i < whole; i += step)
    {
      const Pack<S, V> last = *(const Pack<S, V> *)(x + i);

#pragma unroll
      for (int k = 0; k < V; k++)
        Seen<T>::see (seen, (T)Number<S>::load (last.v[k]));
    }
  for (i = (packs ? whole : begin) + threadIdx.x; i < end; i += TD_BLOCK)
    Seen<T>::see (seen, (T)Number<S>::load (x[i]));
  return { (double)seen.low,
           (double)seen.high,
           shift,
           seen.s1,
           seen.s2,
           seen.n,
           { seen.counts[0], seen.counts[1], seen.counts[2], seen.counts[3] } };
}

/* The type is asked for once, and not for each number. */
TD_DEVICE Lot<uint32_t>
look (const void *x, int dtype, int64_t begin, int64_t end, double shift)
{
  switch (dtype)
    {
    case TD_F32:
      return look_at<float> (x, begin, end, shift);
    case TD_F64:
      return look_at<double> (x, begin, end, shift);
    case TD_F16:
      return look_at<td_f16> (x, begin, end, shift);
    case TD_BF16:
      return look_at<td_bf16> (x, begin, end, shift);
    case TD_I32:
      return look_at<int32_t> (x, begin, end, shift);
    case TD_I64:
      return look_at<int64_t> (x, begin, end, shift);
    default:
      return look_at<uint8_t> (x, begin, end, shift);
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
  const int which = array_of_block (a), lane = threadIdx.x % TD_WARP;
  const int warp = threadIdx.x / TD_WARP, dtype = a.of[which].dtype;
  const void *x = a.of[which].data;
  const int64_t size = a.of[which].size;
  const int64_t begin = (int64_t)(blockIdx.x - a.first_block[which]) * TD_STATS_CHUNK;
  const int64_t end = size - begin < TD_STATS_CHUNK ? size : begin + TD_STATS_CHUNK;
  const int64_t step = (int64_t)a.of[which].step;
  TdCudaStats *out = a.parts + blockIdx.x;
  Lot<uint32_t> lot = look (x, dtype, begin, end, shift_of (x, dtype, size));

  for (int b = 0; b < BINS; b++)
    bins[(warp * BINS + b) * TD_WARP + lane] = 0;
  for (int64_t i = first_sample (begin, a.of[which].start, a.of[which].step)
                   + (int64_t)threadIdx.x * step;
       i < end; i += TD_BLOCK * step)
    {
      const int bin = bin_of (value_at (x, dtype, i));

      if (bin >= 0)
        bins[(warp * BINS + bin) * TD_WARP + lane]++;
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
#pragma unroll 8
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
