/* Updates of parameters and what hooks do to gradients: a kernel for each rule of
 * scalar-updates.h and type, over the chunks of many parameters at once.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"
#include "scalar-updates.h"

/* V numbers at a time of the N arrays, of which g is only read; of few arrays several times so
 * many are in flight. */
template <typename S, int V, int N, typename F>
TD_DEVICE void
update_numbers (const TdUpdateParams &a, int which, int64_t begin, int64_t end, F f)
{
  typedef typename Number<S>::T T;
  typedef Pack<S, V> P;
  constexpr int AHEAD = N <= 2 ? 4 / N : 1;
  const int packs = (int)((end - begin) / V);
  P *at[N];

#pragma unroll
  for (int k = 0; k < N; k++)
    at[k] = (P *)((S *)a.data[which][k] + begin);
  for (int i = (int)threadIdx.x; i < packs; i += AHEAD * TD_BLOCK)
    {
      P pack[AHEAD][N];

#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        if (i + u * TD_BLOCK < packs)
          {
#pragma unroll
            for (int k = 0; k < N; k++)
              pack[u][k] = at[k][i + u * TD_BLOCK];
          }
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        if (i + u * TD_BLOCK < packs)
          {
            T v[TD_UPDATE_ARRAYS][V];

#pragma unroll
            for (int k = 0; k < N; k++)
#pragma unroll
              for (int j = 0; j < V; j++)
                v[k][j] = Number<S>::load (pack[u][k].v[j]);
            f (v[0], v[1], v[2], v[3], v[4], V);
#pragma unroll
            for (int k = 0; k < N; k++)
              if (k != 1)
                {
#pragma unroll
                  for (int j = 0; j < V; j++)
                    pack[u][k].v[j] = Number<S>::store (v[k][j]);
                  at[k][i + u * TD_BLOCK] = pack[u][k];
                }
          }
    }
}

template <typename S, int N, typename F>
TD_DEVICE void
update_chunk (const TdUpdateParams &a, F f)
{
  constexpr int V = sizeof (S) == 2 ? 4 : 16 / sizeof (S);
  const int which = last_not_above (a.first_block, a.n_params, blockIdx.x);
  const int64_t begin = (int64_t)(blockIdx.x - a.first_block[which]) * TD_UPDATE_CHUNK;
  const int64_t size = a.size[which];
  const int64_t end = size - begin < TD_UPDATE_CHUNK ? size : begin + TD_UPDATE_CHUNK;
  uint64_t places = 0;

  for (int k = 0; k < N; k++)
    places |= (uint64_t)a.data[which][k];
  if (places % (V * sizeof (S)) == 0)
    {
      const int64_t whole = begin + (end - begin) / V * V;

      update_numbers<S, V, N> (a, which, begin, whole, f);
      update_numbers<S, 1, N> (a, which, whole, end, f);
    }
  else
    update_numbers<S, 1, N> (a, which, begin, end, f);
}

/* --- the norm of gradients --- */

/* Of a block's numbers, packs two at a time. */
template <typename S>
TD_DEVICE double
squares_of (const void *data, int64_t begin, int64_t end)
{
  constexpr int V = 16 / sizeof (S);
  const S *x = (const S *)data;
  const int64_t step = TD_BLOCK * V;
  const int64_t whole = (uint64_t)data % 16 == 0 ? begin + (end - begin) / V * V : begin;
  double sum[2] = { 0, 0 };

  for (int64_t i = begin + (int64_t)threadIdx.x * V; i < whole; i += 2 * step)
    {
      Pack<S, V> pack[2] = {};

#pragma unroll
      for (int u = 0; u < 2; u++)
        if (i + u * step < whole)
          pack[u] = *(const Pack<S, V> *)(x + i + u * step);
#pragma unroll
      for (int j = 0; j < V; j++)
#pragma unroll
        for (int u = 0; u < 2; u++)
          {
            const double v = (double)Number<S>::load (pack[u].v[j]);

            sum[u] = fma (v, v, sum[u]);
          }
    }
  for (int64_t i = whole + threadIdx.x; i < end; i += TD_BLOCK)
    {
      const double v = (double)Number<S>::load (x[i]);

      sum[0] = fma (v, v, sum[0]);
    }
  return sum[0] + sum[1];
}

TD_KERNEL (td_sum_squares, TdSquaresParams)
{
  TD_SHARED (double, room, TD_BLOCK / TD_WARP);
  const int which = last_not_above (a.first_block, a.n, blockIdx.x);
  const int dtype = a.of[which].dtype;
  const int64_t size = a.of[which].size, share = a.of[which].units * (int64_t)TD_STATS_UNIT;
  const int64_t begin = (int64_t)(blockIdx.x - a.first_block[which]) * share;
  const int64_t end = size - begin < share ? size : begin + share;
  const void *x = a.of[which].data;
  double sum = dtype == TD_F32   ? squares_of<float> (x, begin, end)
               : dtype == TD_F64 ? squares_of<double> (x, begin, end)
               : dtype == TD_F16 ? squares_of<td_f16> (x, begin, end)
                                 : squares_of<td_bf16> (x, begin, end);

  sum = sum_of_group (sum, TD_BLOCK, room);
  if (threadIdx.x == 0)
    a.parts[blockIdx.x] = sum;
}

/* One block: a warp adds up the parts of an array, rounded as an array of its type has them;
 * then these are added in their order. */
TD_KERNEL (td_sum_squares_end, TdSquaresParams)
{
  TD_SHARED (double, sums, TD_STATS_MANY);
  const int lane = threadIdx.x % TD_WARP;
  double all;

  for (int k = threadIdx.x / TD_WARP; k < a.n; k += TD_BLOCK / TD_WARP)
    {
      double sum = 0, stored;

#pragma unroll 8
      for (uint32_t i = a.first_block[k] + lane; i < a.first_block[k + 1]; i += TD_WARP)
        sum += a.parts[i];
      sum = sum_of_lanes (sum, TD_WARP);
      stored = a.of[k].dtype == TD_F64   ? sum
               : a.of[k].dtype == TD_F32 ? (double)(float)sum
               : a.of[k].dtype == TD_F16
                   ? (double)Number<td_f16>::load (Number<td_f16>::store ((float)sum))
                   : (double)Number<td_bf16>::load (Number<td_bf16>::store ((float)sum));
      if (lane == 0)
        sums[k] = stored;
    }
  __syncthreads ();
  if (threadIdx.x != 0)
    return;
  all = a.adds ? *a.sum : 0;
  for (int k = 0; k < a.n; k++)
    all += sums[k];
  *a.sum = all;
}

/* --- the rules --- */

typedef float number_f32;
typedef double number_f64;
typedef td_f16 number_f16;
typedef td_bf16 number_bf16;

/* Not by way of another macro: rules have commas of their own. */
#define UPDATE(S, T, kind, name, n_arrays, setup, body)                                        \
  TD_KERNEL (td_update_##kind##_##S, TdUpdateParams)                                           \
  {                                                                                            \
    const TdUpdate *u = &a.u;                                                                  \
    const int late = TD_UPDATE_LATE (u);                                                       \
                                                                                               \
    if (TD_UPDATE_SKIPS (u, TD_UPDATE_##kind))                                                 \
      return;                                                                                  \
                                                                                               \
    update_chunk<number_##S, n_arrays> (a, [=] (T *p, T *g, T *a, T *b, T *c, int n) {         \
      setup;                                                                                   \
                                                                                               \
      (void)late;                                                                              \
      (void)g;                                                                                 \
      (void)a;                                                                                 \
      (void)b;                                                                                 \
      (void)c;                                                                                 \
      for (int i = 0; i < n; i++)                                                              \
        {                                                                                      \
          body;                                                                                \
        }                                                                                      \
    });                                                                                        \
  }
TD_UPDATES (UPDATE, f32, float, sqrtf)
TD_UPDATES (UPDATE, f64, double, sqrt)
TD_UPDATES (UPDATE, f16, float, sqrtf)
TD_UPDATES (UPDATE, bf16, float, sqrtf)
