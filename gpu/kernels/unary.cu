/* y = f (x), one kernel for each formula of scalar-ops.h and type: 16 bytes at a time where the
 * arrays are aligned, several such packs of a thread in flight.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

template <typename S, typename F, typename C>
TD_DEVICE void
map (const TdMapParams &a, F f, C &counter)
{
  typedef Number<S> N;
  constexpr int V = 16 / sizeof (S), UNROLL = V >= 8 ? 1 : 4;
  const Pack<S, V> *from = (const Pack<S, V> *)a.x;
  Pack<S, V> *to = (Pack<S, V> *)a.y;
  const int64_t step = n_threads (), packs = a.packs ? a.n / V : 0;

  for (int64_t i = thread_index (); i < packs; i += UNROLL * step)
    {
      Pack<S, V> pack[UNROLL];

#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (i + u * step < packs)
          pack[u] = from[i + u * step];
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (i + u * step < packs)
          {
#pragma unroll
            for (int k = 0; k < V; k++)
              {
                pack[u].v[k] = N::store (f (N::load (pack[u].v[k])));
                counter.see (N::load (pack[u].v[k]));
              }
            to[i + u * step] = pack[u];
          }
    }
  for (int64_t i = packs * V + thread_index (); i < a.n; i += step)
    {
      const S y = N::store (f (N::load (((const S *)a.x)[i])));

      counter.see (N::load (y));
      ((S *)a.y)[i] = y;
    }
}

#define UNARY(name, S, Type, Unsigned, kind, formula)                                          \
  TD_STATS_KERNEL (unary_##kind##_##name, TdMapParams)                                         \
  {                                                                                            \
    typedef Type T;                                                                            \
    typedef Unsigned U;                                                                        \
    const T p = (T)a.p, q = (T)a.q;                                                            \
    TD_COUNTER (T);                                                                            \
                                                                                               \
    (void)p;                                                                                   \
    (void)q;                                                                                   \
    (void)(U)0;                                                                                \
    map<S> (                                                                                   \
        a, [=] (T x) -> T { return (formula); }, counter);                                     \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }

#if defined(TD_KERNELS_DOUBLE)
#define UNARY_F64(kind, formula) UNARY (f64, double, double, double, kind, formula)
TD_UNARY_FLOAT (UNARY_F64, f64)
#else
#define UNARY_F32(kind, formula) UNARY (f32, float, float, float, kind, formula)
#define UNARY_F16(kind, formula) UNARY (f16, td_f16, float, float, kind, formula)
#define UNARY_BF16(kind, formula) UNARY (bf16, td_bf16, float, float, kind, formula)
#define UNARY_I32(kind, formula) UNARY (i32, int32_t, int32_t, uint32_t, kind, formula)
#define UNARY_I64(kind, formula) UNARY (i64, int64_t, int64_t, uint64_t, kind, formula)
TD_UNARY_FLOAT (UNARY_F32, f32)
TD_UNARY_FLOAT (UNARY_F16, f32)
TD_UNARY_FLOAT (UNARY_BF16, f32)
#if !defined(TD_KERNELS_COUNT)
TD_UNARY_INT (UNARY_I32, i32)
TD_UNARY_INT (UNARY_I64, i64)
#endif
#endif
