/* z = f (x, y), broadcast as the walk says, and gx = gy f' (x); a kernel for each formula of
 * scalar-ops.h and type.
 *
 * SPDX-License-Identifier: MIT */
#include "walk.cuh"

#define BINARY(family, name, S, Type, Unsigned, kind, formula)                                 \
  TD_STATS_KERNEL (family##_##kind##_##name, TdWalkParams)                                     \
  {                                                                                            \
    typedef Type T;                                                                            \
    typedef Unsigned U;                                                                        \
    const T p = (T)a.p;                                                                        \
    TD_COUNTER (T);                                                                            \
                                                                                               \
    (void)p;                                                                                   \
    (void)(U)0;                                                                                \
    walk_both<S> (                                                                             \
        a, [=] (T x, T y) -> T { return (formula); }, counter);                                \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }

#define BINARY_F32(kind, formula) BINARY (binary, f32, float, float, float, kind, formula)
#define BINARY_F64(kind, formula) BINARY (binary, f64, double, double, double, kind, formula)
#define BINARY_F16(kind, formula) BINARY (binary, f16, td_f16, float, float, kind, formula)
#define BINARY_BF16(kind, formula) BINARY (binary, bf16, td_bf16, float, float, kind, formula)
#define BINARY_I32(kind, formula)                                                              \
  BINARY (binary, i32, int32_t, int32_t, uint32_t, kind, formula)
#define BINARY_I64(kind, formula)                                                              \
  BINARY (binary, i64, int64_t, int64_t, uint64_t, kind, formula)
#define GRAD_F32(kind, formula) BINARY (unary_grad, f32, float, float, float, kind, formula)
#define GRAD_F64(kind, formula) BINARY (unary_grad, f64, double, double, double, kind, formula)
#define GRAD_F16(kind, formula) BINARY (unary_grad, f16, td_f16, float, float, kind, formula)
#define GRAD_BF16(kind, formula) BINARY (unary_grad, bf16, td_bf16, float, float, kind, formula)

#if defined(TD_KERNELS_DOUBLE)
TD_BINARY_FLOAT (BINARY_F64, f64)
TD_UNARY_GRAD_FLOAT (GRAD_F64, f64)
#elif defined(TD_KERNELS_HALF)
TD_BINARY_FLOAT (BINARY_F16, f32)
TD_BINARY_FLOAT (BINARY_BF16, f32)
TD_UNARY_GRAD_FLOAT (GRAD_F16, f32)
TD_UNARY_GRAD_FLOAT (GRAD_BF16, f32)
#else
TD_BINARY_FLOAT (BINARY_F32, f32)
#if !defined(TD_KERNELS_COUNT)
TD_BINARY_INT (BINARY_I32, i32)
TD_BINARY_INT (BINARY_I64, i64)
#endif
TD_UNARY_GRAD_FLOAT (GRAD_F32, f32)
#endif
