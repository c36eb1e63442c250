/* A softmax that its threads keep: each number is read once, made a share and written.  What
 * lines of an array and rows of a loss have in common.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "kernel.cuh"

/** e^x for x <= 0, by the GPU's own power of 2: to 2 units in the last place or so, where a
 * polynomial takes three times as many instructions.  Its argument is rounded; what that lost
 * is put back. */
TD_DEVICE float
exp_of_share (float x)
{
#if defined(__CUDACC__)
  const float log2_e = 1.44269504088896341f, rest = 1.92596299e-8f,
              ln_2 = 0.693147180559945309f;
  const float least = x < -105.0f ? -105.0f : x; /* -inf has no rest; NaN stays */
  const float power = least * log2_e;
  const float lost = fmaf (least, rest, fmaf (least, log2_e, -power));
  float y;

  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(power));
  return fmaf (y, lost * ln_2, y);
#else
  return td_exp_f32 (x);
#endif
}

TD_DEVICE double
exp_of_share (double x)
{
  return exp (x);
}

TD_DEVICE float
log_of (float x)
{
  return td_log_f32 (x);
}

TD_DEVICE double
log_of (double x)
{
  return td_log_f64 (x);
}

/** V neighbours of a line; those of one that does not lie side by side, `inner` apart, are
 * taken one by one. */
template <typename S, int V>
TD_DEVICE Pack<S, V>
load_of_line (const S *x, int64_t i, int64_t inner)
{
  return *(const Pack<S, V> *)(x + i * (V > 1 ? 1 : inner));
}

template <typename S, int V>
TD_DEVICE void
put_of_line (S *y, int64_t i, int64_t inner, const Pack<S, V> &pack)
{
  *(Pack<S, V> *)(y + i * (V > 1 ? 1 : inner)) = pack;
}

template <typename T, int V>
TD_DEVICE T
largest_of_pack (const T (&v)[V], T top)
{
#pragma unroll
  for (int j = 0; j < V; j++)
    top = v[j] > top ? v[j] : top;
  return top;
}

template <typename S, int V>
TD_DEVICE void
load_numbers (const S *x, int64_t i, int64_t inner, typename Number<S>::T (&v)[V])
{
  const Pack<S, V> pack = load_of_line<S, V> (x, i, inner);

#pragma unroll
  for (int j = 0; j < V; j++)
    v[j] = Number<S>::load (pack.v[j]);
}

/** The largest number of a line, and the sum of all e^(x - largest). */
template <typename T> struct SoftSum
{
  T top, sum;
};

/** The softmax of a line of n numbers, or its logarithm, by `lanes` threads that share it; no
 * more than they can hold.  n is 0 for those that have none.  The sum is carried in double, so
 * that neither the width of what is read nor the type shows in it. */
template <typename S, int V, typename Room, typename Sums, typename C>
TD_DEVICE SoftSum<typename Number<S>::T>
softmax_kept (const S *x, S *y, int n, int64_t inner, int lanes, bool logs, Room &room,
              Sums &sums, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const int lane = threadIdx.x % lanes, step = lanes * V;
  T top = -(T)INFINITY, kept[Held<S, V>::N / V][V], all, last;
  double sum = 0;

#pragma unroll
  for (int k = 0; k < Held<S, V>::N / V; k++)
    if (lane * V + k * step < n)
      load_numbers<S, V> (x, lane * V + k * step, inner, kept[k]);
#pragma unroll
  for (int k = 0; k < Held<S, V>::N / V; k++)
    if (lane * V + k * step < n)
      top = largest_of_pack<T, V> (kept[k], top);
  top = largest_of_group (top, lanes, room);
#pragma unroll
  for (int k = 0; k < Held<S, V>::N / V; k++)
    if (lane * V + k * step < n)
      {
#pragma unroll
        for (int j = 0; j < V; j++)
          {
            const T e = exp_of_share (kept[k][j] - top);

            sum += (double)e;
            kept[k][j] = logs ? kept[k][j] - top : e;
          }
      }
  all = (T)sum_of_group (sum, lanes, sums);
  last = logs ? log_of (all) : 1 / all;
#pragma unroll
  for (int k = 0; k < Held<S, V>::N / V; k++)
    if (lane * V + k * step < n)
      {
        Pack<S, V> pack;

#pragma unroll
        for (int j = 0; j < V; j++)
          {
            pack.v[j] = N::store (logs ? kept[k][j] - last : kept[k][j] * last);
            counter.see (N::load (pack.v[j]));
          }
        put_of_line<S, V> (y, lane * V + k * step, inner, pack);
      }
  return { top, all };
}
