/* What every kernel made at run time begins with: numbers of type T, a function for each
 * formula of scalar-ops.h, packs.  Before it TD_FUSED_DOUBLE says 0 or 1.
 *
 * The tests' emulator compiles the same text as C++ for the host.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "scalar-ops.h"

#include "fused.h"

#if defined(__CUDACC__)
#define TD_DEVICE static __device__ __forceinline__
#define TD_KERNEL(name, Params)                                                                \
  extern "C" __global__ void __launch_bounds__ (TD_FUSED_BLOCK)                                \
      name (const __grid_constant__ Params a)
#elif !defined(TD_KERNEL)
#error "kernels are compiled for a device, or after the emulator's header"
#endif

#if TD_FUSED_DOUBLE
typedef double T;
#else
typedef float T;
#endif

/* Formulas see x, y, p and q; not all of them all. */
#define TD_FUSED_UNARY(kind, formula)                                                          \
  TD_DEVICE T unary_##kind (T x, T p, T q)                                                     \
  {                                                                                            \
    (void)p;                                                                                   \
    (void)q;                                                                                   \
    return (formula);                                                                          \
  }
#define TD_FUSED_GRAD(kind, formula)                                                           \
  TD_DEVICE T grad_##kind (T x, T y, T p)                                                      \
  {                                                                                            \
    (void)p;                                                                                   \
    return (formula);                                                                          \
  }
#define TD_FUSED_BINARY(kind, formula)                                                         \
  TD_DEVICE T binary_##kind (T x, T y)                                                         \
  {                                                                                            \
    return (formula);                                                                          \
  }
#if TD_FUSED_DOUBLE
TD_UNARY_FLOAT (TD_FUSED_UNARY, f64)
TD_UNARY_GRAD_FLOAT (TD_FUSED_GRAD, f64)
TD_BINARY_FLOAT (TD_FUSED_BINARY, f64)
#else
TD_UNARY_FLOAT (TD_FUSED_UNARY, f32)
TD_UNARY_GRAD_FLOAT (TD_FUSED_GRAD, f32)
TD_BINARY_FLOAT (TD_FUSED_BINARY, f32)
#endif

/** Of a condition: numbers, NaN too, and integers. */
TD_DEVICE bool
holds (T v)
{
  return v != 0;
}

TD_DEVICE bool
holds_integer (T v)
{
#if TD_FUSED_DOUBLE
  union
  {
    T number;
    unsigned long long bits;
  } both = { v };
#else
  union
  {
    T number;
    unsigned bits;
  } both = { v };
#endif

  return both.bits != 0;
}

/** V numbers that are read and written at once. */
template <int V> struct alignas (sizeof (T) * V) Pack
{
  T v[V];
};

template <int V>
TD_DEVICE Pack<V>
load (const TdFusedParams &a, int operand, int64_t i)
{
  return ((const Pack<V> *)a.data[operand])[i];
}

template <int V>
TD_DEVICE void
store (const TdFusedParams &a, int operand, int64_t i, const Pack<V> &v)
{
  ((Pack<V> *)a.data[operand])[i] = v;
}

/** Does the call say that what operand is given is added to what is there? */
TD_DEVICE bool
adds (const TdFusedParams &a, int operand)
{
  return a.adds >> operand & 1;
}

/* The kernel, given `template <int V> compute (a, i)`: the i-th V elements of every array. */
#define TD_FUSED_KERNEL(name)                                                                  \
  TD_KERNEL (name, TdFusedParams)                                                              \
  {                                                                                            \
    constexpr int V = 16 / sizeof (T);                                                         \
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;                      \
    const int64_t step = (int64_t)gridDim.x * blockDim.x, packs = a.packs ? a.n / V : 0;       \
                                                                                               \
    for (int64_t i = first; i < packs; i += step)                                              \
      compute<V> (a, i);                                                                       \
    for (int64_t i = packs * V + first; i < a.n; i += step)                                    \
      compute<1> (a, i);                                                                       \
  }
