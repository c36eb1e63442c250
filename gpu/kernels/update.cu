/* Updates of parameters and what hooks do to gradients: a kernel for each rule of
 * scalar-updates.h and type, over the chunks of many parameters at once.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"
#include "scalar-updates.h"

/* V numbers at a time of the N arrays, of which g is only read. */
template <typename S, int V, int N, typename F>
TD_DEVICE void
update_numbers (const TdUpdateParams &a, int which, int64_t begin, int64_t end, F f)
{
  typedef typename Number<S>::T T;

  for (int64_t i = begin + (int64_t)threadIdx.x * V; i < end; i += TD_BLOCK * V)
    {
      T v[TD_UPDATE_ARRAYS][V];

#pragma unroll
      for (int k = 0; k < N; k++)
        {
          const Pack<S, V> pack = *(const Pack<S, V> *)((const S *)a.data[which][k] + i);

#pragma unroll
          for (int j = 0; j < V; j++)
            v[k][j] = Number<S>::load (pack.v[j]);
        }
      f (v[0], v[1], v[2], v[3], v[4], V);
#pragma unroll
      for (int k = 0; k < N; k++)
        if (k != 1)
          {
            Pack<S, V> pack;

#pragma unroll
            for (int j = 0; j < V; j++)
              pack.v[j] = Number<S>::store (v[k][j]);
            *(Pack<S, V> *)((S *)a.data[which][k] + i) = pack;
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
