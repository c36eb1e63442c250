/* Arrays from nothing, and other element types: all pairs, as the CPU casts them.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

struct td_bool
{
  uint8_t byte;
};

/* A number of type T to what is stored as S. */
template <typename S, typename T>
TD_DEVICE S
converted (T v, S)
{
  return (S)v;
}

template <typename T>
TD_DEVICE td_bool
converted (T v, td_bool)
{
  td_bool b;

  b.byte = v != 0;
  return b;
}

template <typename T>
TD_DEVICE td_f16
converted (T v, td_f16)
{
  return Number<td_f16>::store ((float)v);
}

template <typename T>
TD_DEVICE td_bf16
converted (T v, td_bf16)
{
  return Number<td_bf16>::store ((float)v);
}

#if !defined(TD_KERNELS_COUNT)
#define FROM_FLOAT(T)                                                                          \
  TD_DEVICE int32_t converted (T v, int32_t)                                                   \
  {                                                                                            \
    return td_i32_of_f64 ((double)v);                                                          \
  }                                                                                            \
  TD_DEVICE int64_t converted (T v, int64_t)                                                   \
  {                                                                                            \
    return td_i64_of_f64 ((double)v);                                                          \
  }                                                                                            \
  TD_DEVICE uint8_t converted (T v, uint8_t)                                                   \
  {                                                                                            \
    return (uint8_t)td_i64_of_f64 ((double)v);                                                 \
  }
FROM_FLOAT (float)
FROM_FLOAT (double)
#endif

template <typename From, typename To, typename C>
TD_DEVICE void
cast (const TdMapParams &a, C &counter)
{
  constexpr int V = 16 / (sizeof (From) > sizeof (To) ? sizeof (From) : sizeof (To));
  const int64_t step = n_threads (), packs = a.packs ? a.n / V : 0;
  const From *x = (const From *)a.x;
  To *y = (To *)a.y;

  for (int64_t i = thread_index (); i < packs; i += step)
    {
      const Pack<From, V> from = ((const Pack<From, V> *)a.x)[i];
      Pack<To, V> to;

#pragma unroll
      for (int k = 0; k < V; k++)
        {
          to.v[k] = converted (Number<From>::load (from.v[k]), To ());
          counter.see (Number<To>::load (to.v[k]));
        }
      ((Pack<To, V> *)a.y)[i] = to;
    }
  for (int64_t i = packs * V + thread_index (); i < a.n; i += step)
    {
      const To to = converted (Number<From>::load (x[i]), To ());

      counter.see (Number<To>::load (to));
      y[i] = to;
    }
}

#define CAST(From, from, To, to)                                                               \
  TD_STATS_KERNEL (cast_##from##_##to, TdMapParams)                                            \
  {                                                                                            \
    TD_COUNTER (Number<To>::T);                                                                \
                                                                                               \
    cast<From, To> (a, counter);                                                               \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }
#if defined(TD_KERNELS_COUNT)
#define CASTS_TO_OTHERS(From, from)
#else
#define CASTS_TO_OTHERS(From, from)                                                            \
  CAST (From, from, int32_t, i32)                                                              \
  CAST (From, from, int64_t, i64)                                                              \
  CAST (From, from, uint8_t, u8)                                                               \
  CAST (From, from, td_bool, bool)
#endif
#define CASTS_FROM(From, from)                                                                 \
  CAST (From, from, float, f32)                                                                \
  CAST (From, from, double, f64)                                                               \
  CAST (From, from, td_f16, f16)                                                               \
  CAST (From, from, td_bf16, bf16)                                                             \
  CASTS_TO_OTHERS (From, from)
CASTS_FROM (float, f32)
CASTS_FROM (double, f64)
CASTS_FROM (td_f16, f16)
CASTS_FROM (td_bf16, bf16)
CASTS_FROM (int32_t, i32)
CASTS_FROM (int64_t, i64)
CASTS_FROM (uint8_t, u8)

#if !defined(TD_KERNELS_COUNT)
#define ARANGE(To, to)                                                                         \
  TD_KERNEL (td_arange_##to, TdMapParams)                                                      \
  {                                                                                            \
    for (int64_t i = thread_index (); i < a.n; i += n_threads ())                              \
      ((To *)a.y)[i] = converted (a.p + (double)i * a.q, To ());                               \
  }
ARANGE (float, f32)
ARANGE (double, f64)
ARANGE (td_f16, f16)
ARANGE (td_bf16, bf16)
ARANGE (int32_t, i32)
ARANGE (int64_t, i64)
ARANGE (uint8_t, u8)
ARANGE (td_bool, bool)

/* One number's bits everywhere. */
#define FILL(Bits, bytes)                                                                      \
  TD_KERNEL (td_fill_##bytes, TdMapParams)                                                     \
  {                                                                                            \
    constexpr int V = 16 / bytes;                                                              \
    const int64_t step = n_threads (), packs = a.packs ? a.n / V : 0;                          \
    Pack<Bits, V> pack;                                                                        \
                                                                                               \
    for (int k = 0; k < V; k++)                                                                \
      pack.v[k] = (Bits)a.bits;                                                                \
    for (int64_t i = thread_index (); i < packs; i += step)                                    \
      ((Pack<Bits, V> *)a.y)[i] = pack;                                                        \
    for (int64_t i = packs * V + thread_index (); i < a.n; i += step)                          \
      ((Bits *)a.y)[i] = (Bits)a.bits;                                                         \
  }
FILL (uint8_t, 1)
FILL (uint16_t, 2)
FILL (uint32_t, 4)
FILL (uint64_t, 8)
#endif
