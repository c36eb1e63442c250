/* z = f (x, y) for operands walked over one shape.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "count.cuh"

/** The offsets of N operands at step i of a walk. */
template <int N>
TD_DEVICE void
walk_to (const TdWalkParams &a, uint32_t i, int64_t *at)
{
  for (int k = 0; k < N; k++)
    at[k] = 0;
  for (int d = a.ndim - 1; d > 0; d--)
    {
      const uint32_t rest = divide (i, a.dim[d]), place = i - rest * a.dim[d].value;

      for (int k = 0; k < N; k++)
        at[k] += place * a.stride[k][d];
      i = rest;
    }
  for (int k = 0; k < N; k++)
    at[k] += i * a.stride[k][0];
}

template <typename S, int V>
TD_DEVICE Pack<S, V>
load_pack (const void *data, int64_t at, bool repeated)
{
  Pack<S, V> pack;

  if (!repeated)
    return *(const Pack<S, V> *)((const S *)data + at);
#pragma unroll
  for (int k = 0; k < V; k++)
    pack.v[k] = ((const S *)data)[at];
  return pack;
}

template <typename S, int V, int UNROLL, typename F, typename C>
TD_DEVICE void
walk_packs (const TdWalkParams &a, F f, C &counter)
{
  typedef Number<S> N;
  const uint32_t step = (uint32_t)n_threads ();
  const int last = a.ndim - 1;
  const bool x_repeated = a.stride[0][last] == 0, y_repeated = a.stride[1][last] == 0;

  for (uint32_t i = (uint32_t)thread_index (); i < a.n; i += UNROLL * step)
    {
      Pack<S, V> x[UNROLL], y[UNROLL], z[UNROLL];

#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (i + u * step < a.n)
          {
            int64_t at[2];

            walk_to<2> (a, i + u * step, at);
            x[u] = load_pack<S, V> (a.data[0], at[0], x_repeated);
            y[u] = load_pack<S, V> (a.data[1], at[1], y_repeated);
            if (a.accumulate)
              z[u] = ((const Pack<S, V> *)a.data[2])[i + u * step];
          }
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (i + u * step < a.n)
          {
#pragma unroll
            for (int k = 0; k < V; k++)
              {
                const typename N::T v = f (N::load (x[u].v[k]), N::load (y[u].v[k]));

                z[u].v[k] = N::store (a.accumulate ? sum_of_two (N::load (z[u].v[k]), v) : v);
                counter.see (N::load (z[u].v[k]));
              }
            ((Pack<S, V> *)a.data[2])[i + u * step] = z[u];
          }
    }
}

template <typename S, typename F, typename C>
TD_DEVICE void
walk_both (const TdWalkParams &a, F f, C &counter)
{
  typedef Number<S> N;
  constexpr int V = 16 / sizeof (S);
  const S *x = (const S *)a.data[0], *y = (const S *)a.data[1];
  S *z = (S *)a.data[2];

  if (a.items == 1)
    {
      walk_packs<S, 1, (V == 2 ? 1 : 2)> (a, f, counter);
      return;
    }
  walk_packs<S, V, (V == 4 ? 2 : 1)> (a, f, counter);
  if (thread_index () < a.tail)
    {
      const int64_t i = (int64_t)a.n * V + thread_index ();
      const typename N::T v = f (N::load (x[a.stride[0][0] == 0 ? 0 : i]),
                                 N::load (y[a.stride[1][0] == 0 ? 0 : i]));

      const S sum = N::store (a.accumulate ? sum_of_two (N::load (z[i]), v) : v);

      counter.see (N::load (sum));
      z[i] = sum;
    }
}
