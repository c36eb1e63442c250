/* What every kernel made at run time begins with: a function for each formula of scalar-ops.h,
 * numbers of each type and the way to them, packs, random masks.  Before it TD_FUSED_FLOAT and
 * TD_FUSED_DOUBLE say what is computed in, TD_FUSED_WHOLE whether integers are too,
 * TD_FUSED_PACK how many elements are a pack.
 *
 * The tests' emulator compiles the same text as C++ for the host.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "scalar-ops.h"

#include "common.cuh"
#include "fused.h"

#if defined(__CUDACC__)
#define TD_KERNEL(name, Params)                                                                \
  extern "C" __global__ void __launch_bounds__ (TD_BLOCK)                                      \
      name (const __grid_constant__ Params a)
#elif !defined(TD_KERNEL)
#error "kernels are compiled for a device, or after the emulator's header"
#endif

/* Formulas see x, y, p and q; not all of them all.  One function for each type that is computed
 * in, where the program has need of it. */
#define TD_FUSED_UNARY(Type, kind, formula)                                                    \
  TD_DEVICE Type unary_##kind (Type x, Type p, Type q)                                         \
  {                                                                                            \
    typedef Type T;                                                                            \
                                                                                               \
    (void)p;                                                                                   \
    (void)q;                                                                                   \
    return (T)(formula);                                                                       \
  }
#define TD_FUSED_GRAD(Type, kind, formula)                                                     \
  TD_DEVICE Type grad_##kind (Type x, Type y, Type p)                                          \
  {                                                                                            \
    typedef Type T;                                                                            \
                                                                                               \
    (void)p;                                                                                   \
    return (T)(formula);                                                                       \
  }
#define TD_FUSED_BINARY(Type, kind, formula)                                                   \
  TD_DEVICE Type binary_##kind (Type x, Type y)                                                \
  {                                                                                            \
    typedef Type T;                                                                            \
                                                                                               \
    return (T)(formula);                                                                       \
  }
#if TD_FUSED_FLOAT
#define TD_FUSED_UNARY_F32(kind, formula) TD_FUSED_UNARY (float, kind, formula)
#define TD_FUSED_GRAD_F32(kind, formula) TD_FUSED_GRAD (float, kind, formula)
#define TD_FUSED_BINARY_F32(kind, formula) TD_FUSED_BINARY (float, kind, formula)
TD_UNARY_FLOAT (TD_FUSED_UNARY_F32, f32)
TD_UNARY_GRAD_FLOAT (TD_FUSED_GRAD_F32, f32)
TD_BINARY_FLOAT (TD_FUSED_BINARY_F32, f32)
#endif
#if TD_FUSED_DOUBLE
#define TD_FUSED_UNARY_F64(kind, formula) TD_FUSED_UNARY (double, kind, formula)
#define TD_FUSED_GRAD_F64(kind, formula) TD_FUSED_GRAD (double, kind, formula)
#define TD_FUSED_BINARY_F64(kind, formula) TD_FUSED_BINARY (double, kind, formula)
TD_UNARY_FLOAT (TD_FUSED_UNARY_F64, f64)
TD_UNARY_GRAD_FLOAT (TD_FUSED_GRAD_F64, f64)
TD_BINARY_FLOAT (TD_FUSED_BINARY_F64, f64)
#endif

/* Integers wrap; the formulas know them by U too. */
#if defined(TD_FUSED_WHOLE)
#define TD_FUSED_WHOLE_UNARY(S, Type, Unsigned, kind, formula)                                 \
  TD_DEVICE Type S##_unary_##kind (Type x, Type p, Type q)                                     \
  {                                                                                            \
    typedef Type T;                                                                            \
    typedef Unsigned U;                                                                        \
                                                                                               \
    (void)p;                                                                                   \
    (void)q;                                                                                   \
    (void)(U)0;                                                                                \
    return (T)(formula);                                                                       \
  }
#define TD_FUSED_WHOLE_BINARY(S, Type, Unsigned, kind, formula)                                \
  TD_DEVICE Type S##_binary_##kind (Type x, Type y)                                            \
  {                                                                                            \
    typedef Type T;                                                                            \
    typedef Unsigned U;                                                                        \
                                                                                               \
    (void)(U)0;                                                                                \
    return (T)(formula);                                                                       \
  }
#define TD_FUSED_UNARY_I32(kind, formula)                                                      \
  TD_FUSED_WHOLE_UNARY (i32, int32_t, uint32_t, kind, formula)
#define TD_FUSED_UNARY_I64(kind, formula)                                                      \
  TD_FUSED_WHOLE_UNARY (i64, int64_t, uint64_t, kind, formula)
#define TD_FUSED_BINARY_I32(kind, formula)                                                     \
  TD_FUSED_WHOLE_BINARY (i32, int32_t, uint32_t, kind, formula)
#define TD_FUSED_BINARY_I64(kind, formula)                                                     \
  TD_FUSED_WHOLE_BINARY (i64, int64_t, uint64_t, kind, formula)
TD_UNARY_INT (TD_FUSED_UNARY_I32, i32)
TD_UNARY_INT (TD_FUSED_UNARY_I64, i64)
TD_BINARY_INT (TD_FUSED_BINARY_I32, i32)
TD_BINARY_INT (TD_FUSED_BINARY_I64, i64)
#endif

/* at (v): a number as it is computed with; to_f32 (x) and so on: as it is kept.  Halves are
 * rounded wherever a step leaves them, as the operation by itself rounds them. */
#define TD_FUSED_NUMBER(Type)                                                                  \
  TD_DEVICE Type at (Type v)                                                                   \
  {                                                                                            \
    return v;                                                                                  \
  }                                                                                            \
  TD_DEVICE bool holds (Type v)                                                                \
  {                                                                                            \
    return v != 0;                                                                             \
  }
TD_FUSED_NUMBER (float)
TD_FUSED_NUMBER (double)
TD_FUSED_NUMBER (int32_t)
TD_FUSED_NUMBER (int64_t)
TD_FUSED_NUMBER (uint8_t)

TD_DEVICE float
at (td_f16 v)
{
#if defined(__CUDACC__)
  float x;

  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(v.bits));
  return x;
#else
  return td_float_of_f16 (v.bits);
#endif
}

TD_DEVICE float
at (td_bf16 v)
{
  return td_float_of_bf16 (v.bits);
}

TD_DEVICE bool
holds (td_f16 v)
{
  return (v.bits & 0x7FFF) != 0;
}

TD_DEVICE bool
holds (td_bf16 v)
{
  return (v.bits & 0x7FFF) != 0;
}

TD_DEVICE float
to_f32 (float x)
{
  return x;
}

TD_DEVICE double
to_f64 (double x)
{
  return x;
}

TD_DEVICE int32_t
to_i32 (int32_t x)
{
  return x;
}

TD_DEVICE int64_t
to_i64 (int64_t x)
{
  return x;
}

TD_DEVICE td_f16
to_f16 (float x)
{
  td_f16 h;

#if defined(__CUDACC__)
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
#else
  h.bits = td_f16_of_float (x);
#endif
  return h;
}

TD_DEVICE td_bf16
to_bf16 (float x)
{
  td_bf16 h;

  h.bits = td_bf16_of_float (x);
  return h;
}

/** V elements that are read and written at once. */
template <typename S, int V> struct alignas (sizeof (S) * V) Pack
{
  S v[V];
};

template <typename S, int V>
TD_DEVICE Pack<S, V>
load (const TdFusedParams &a, int operand, int64_t i)
{
  return ((const Pack<S, V> *)a.data[operand])[i];
}

template <typename S, int V>
TD_DEVICE void
store (const TdFusedParams &a, int operand, int64_t i, const Pack<S, V> &v)
{
  ((Pack<S, V> *)a.data[operand])[i] = v;
}

/** The random bits of V elements. */
template <int V> struct Draws
{
  uint32_t bits[V];
};

/** The bits of elements i V to i V + V - 1, as random.cu finds them: four to a counter. */
template <int V>
TD_DEVICE Draws<V>
draws (const TdFusedKey &place, int64_t i)
{
  const uint32_t key[2] = { (uint32_t)place.seed, (uint32_t)(place.seed >> 32) };
  constexpr int N = V < 4 ? 1 : V / 4;
  const uint64_t first = (uint64_t)i * V;
  Draws<V> d;

#pragma unroll
  for (int j = 0; j < N; j++)
    {
      const uint64_t count = place.offset + first / 4 + (uint64_t)j;
      const uint32_t counter[4] = { (uint32_t)count, (uint32_t)(count >> 32), 0, 0 };
      uint32_t four[4];

      td_philox (counter, key, four);
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (V >= 4)
          d.bits[(4 * j + k) % V] = four[k];
        else if (k < V) /* lanes by choice: an index that is not known needs memory */
          d.bits[k % V] = V == 2 ? (first % 4 == 0 ? four[k] : four[k + 2])
                                 : (first % 4 == 0   ? four[0]
                                    : first % 4 == 1 ? four[1]
                                    : first % 4 == 2 ? four[2]
                                                     : four[3]);
    }
  return d;
}

/** A random mask's number: of float its threshold has 24 bits, of double it is the share. */
TD_DEVICE float
mask (uint32_t bits, float threshold, float kept)
{
  return (float)(int32_t)(bits >> 8) >= threshold ? kept : 0.0f;
}

TD_DEVICE double
mask (uint32_t bits, double share, double kept)
{
  return (double)bits * 2.3283064365386963e-10 >= share ? kept : 0.0; /* 2^-32 */
}

/** Does the call say that what operand is given is added to what is there? */
TD_DEVICE bool
adds (const TdFusedParams &a, int operand)
{
  return a.adds >> operand & 1;
}

/* Each text has two kernels, one of which is compiled: with TD_FUSED_COUNTING before it that
 * which counts what it writes to TD_FUSED_WITH_STATS (X), a list of X (place, operand, type).
 */
#if defined(TD_FUSED_COUNTING)
#include "fused-count.cuh"
#define TD_FUSED_SEE(operand, v) seen.c##operand.see (v)
#if defined(__CUDACC__) /* what is held beside the counters is no reason to spill */
#define TD_FUSED_HEAD(name)                                                                    \
  extern "C" __global__ void __launch_bounds__ (TD_BLOCK, TD_FUSED_RESIDENT)                   \
      td_count_##name (const __grid_constant__ TdFusedParams a)
#else
#define TD_FUSED_HEAD(name) TD_KERNEL (td_count_##name, TdFusedParams)
#endif
#define TD_FUSED_SEEN                                                                          \
  TD_FUSED_ROOMS (CountRoom, rooms, TD_FUSED_COUNTS);                                          \
  Seen seen = { TD_FUSED_WITH_STATS (TD_FUSED_START) }
#define TD_FUSED_END TD_FUSED_WITH_STATS (TD_FUSED_LEAVE)
#else
struct Seen
{
};
#define TD_FUSED_SEE(operand, v) (void)seen
#define TD_FUSED_HEAD(name) TD_KERNEL (td_##name, TdFusedParams)
#define TD_FUSED_SEEN Seen seen
#define TD_FUSED_END
#endif

/* The kernel, given `template <int V> compute (a, i, seen)`: the i-th V elements of every
 * array.
 */
#define TD_FUSED_KERNEL(name)                                                                  \
  TD_FUSED_HEAD (name)                                                                         \
  {                                                                                            \
    constexpr int V = TD_FUSED_PACK;                                                           \
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;                      \
    const int64_t step = (int64_t)gridDim.x * blockDim.x, packs = a.packs ? a.n / V : 0;       \
    TD_FUSED_SEEN;                                                                             \
                                                                                               \
    for (int64_t i = first; i < packs; i += step)                                              \
      compute<V> (a, i, seen);                                                                 \
    for (int64_t i = packs * V + first; i < a.n; i += step)                                    \
      compute<1> (a, i, seen);                                                                 \
    TD_FUSED_END                                                                               \
  }
