/* Element-by-element loops, one function per formula, dtype and walk; the formulas are in
 * scalar-ops.h.  Compiled once per instruction set: TD_VECTOR_NAME makes the name.
 * SPDX-License-Identifier: MIT */
#include "vector.h"
#include "../scalar-ops.h"

#define UNARY_LOOP(S, Type, Unsigned, kind, formula)                                           \
  static void unary_##kind##_##S (const void *xs, void *ys, int64_t n, double pd, double qd)   \
  {                                                                                            \
    typedef Type T;                                                                            \
    typedef Unsigned U __attribute__ ((unused));                                               \
    const T *a = xs;                                                                           \
    T *b = ys;                                                                                 \
    const T p __attribute__ ((unused)) = (T)pd, q __attribute__ ((unused)) = (T)qd;            \
                                                                                               \
    _Pragma ("omp simd") for (int64_t i = 0; i < n; i++)                                       \
    {                                                                                          \
      const T x = a[i];                                                                        \
      b[i] = (formula);                                                                        \
    }                                                                                          \
  }

#define GRAD_LOOP(S, Type, kind, formula)                                                      \
  static void grad_##kind##_##S (const void *xs, const void *ys, void *zs, int64_t n,          \
                                 double pd)                                                    \
  {                                                                                            \
    typedef Type T;                                                                            \
    const T *a = xs, *b = ys;                                                                  \
    T *c = zs;                                                                                 \
    const T p __attribute__ ((unused)) = (T)pd;                                                \
                                                                                               \
    _Pragma ("omp simd") for (int64_t i = 0; i < n; i++)                                       \
    {                                                                                          \
      const T x = a[i], y = b[i];                                                              \
      c[i] = (formula);                                                                        \
    }                                                                                          \
  }

#define WALK_LOOP(S, Type, Unsigned, kind, formula, walk, ix, iy)                              \
  static void binary_##kind##_##S##_##walk (const void *xs, const void *ys, void *zs,          \
                                            int64_t n)                                         \
  {                                                                                            \
    typedef Type T;                                                                            \
    typedef Unsigned U __attribute__ ((unused));                                               \
    const T *a = xs, *b = ys;                                                                  \
    const T a0 __attribute__ ((unused)) = a[0], b0 __attribute__ ((unused)) = b[0];            \
    T *c = zs;                                                                                 \
                                                                                               \
    _Pragma ("omp simd") for (int64_t i = 0; i < n; i++)                                       \
    {                                                                                          \
      const T x = ix, y = iy;                                                                  \
      c[i] = (formula);                                                                        \
    }                                                                                          \
  }

#define BINARY_LOOP(S, Type, Unsigned, kind, formula)                                          \
  WALK_LOOP (S, Type, Unsigned, kind, formula, both, a[i], b[i])                               \
  WALK_LOOP (S, Type, Unsigned, kind, formula, first, a[i], b0)                                \
  WALK_LOOP (S, Type, Unsigned, kind, formula, second, a0, b[i])

#define UNARY_F32(kind, formula) UNARY_LOOP (f32, float, float, kind, formula)
#define UNARY_F64(kind, formula) UNARY_LOOP (f64, double, double, kind, formula)
#define UNARY_I32(kind, formula) UNARY_LOOP (i32, int32_t, uint32_t, kind, formula)
#define UNARY_I64(kind, formula) UNARY_LOOP (i64, int64_t, uint64_t, kind, formula)
#define GRAD_F32(kind, formula) GRAD_LOOP (f32, float, kind, formula)
#define GRAD_F64(kind, formula) GRAD_LOOP (f64, double, kind, formula)
#define BINARY_F32(kind, formula) BINARY_LOOP (f32, float, float, kind, formula)
#define BINARY_F64(kind, formula) BINARY_LOOP (f64, double, double, kind, formula)
#define BINARY_I32(kind, formula) BINARY_LOOP (i32, int32_t, uint32_t, kind, formula)
#define BINARY_I64(kind, formula) BINARY_LOOP (i64, int64_t, uint64_t, kind, formula)

TD_UNARY_FLOAT (UNARY_F32, f32)
TD_UNARY_FLOAT (UNARY_F64, f64)
TD_UNARY_INT (UNARY_I32, i32)
TD_UNARY_INT (UNARY_I64, i64)
TD_UNARY_GRAD_FLOAT (GRAD_F32, f32)
TD_UNARY_GRAD_FLOAT (GRAD_F64, f64)
TD_BINARY_FLOAT (BINARY_F32, f32)
TD_BINARY_FLOAT (BINARY_F64, f64)
TD_BINARY_INT (BINARY_I32, i32)
TD_BINARY_INT (BINARY_I64, i64)

/* Most of what a network's tanh sees may be small, and needs neither exponential nor division:
 * asked for every so many at once.  The bits are those of the loop of the formula. */
static inline __attribute__ ((always_inline)) void
tanh_segment (const float *a, float *b, int64_t n)
{
  const int32_t limit = (int32_t)td_bits_of_float (TD_TANH_LIMIT);
  int32_t any = 0;

  _Pragma ("omp simd reduction(| : any)") for (int64_t i = 0; i < n; i++)
  {
    any |= (int32_t)(td_bits_of_float (a[i]) & 0x7FFFFFFFu) >= limit;
  }
  if (any != 0)
    {
      unary_TANH_f32 (a, b, n, 0, 0);
      return;
    }
  _Pragma ("omp simd") for (int64_t i = 0; i < n; i++)
  {
    b[i] = td_tanh_small_f32 (a[i]);
  }
}

static void
tanh_f32 (const void *xs, void *ys, int64_t n, double p, double q)
{
  enum
  {
    SEGMENT = 64
  };
  const float *a = xs;
  float *b = ys;
  int64_t i = 0;

  (void)p;
  (void)q;
  for (; i + SEGMENT <= n; i += SEGMENT)
    tanh_segment (a + i, b + i, SEGMENT);
  if (i < n)
    tanh_segment (a + i, b + i, n - i);
}

#define SET_UNARY(S, D, kind) v->unary[TD_UNARY_##kind][D] = unary_##kind##_##S;
#define SET_BINARY(S, D, kind)                                                                 \
  v->binary[TD_BINARY_##kind][D][TD_WALK_BOTH] = binary_##kind##_##S##_both;                   \
  v->binary[TD_BINARY_##kind][D][TD_WALK_FIRST] = binary_##kind##_##S##_first;                 \
  v->binary[TD_BINARY_##kind][D][TD_WALK_SECOND] = binary_##kind##_##S##_second;
#define SET_UNARY_F32(kind, formula) SET_UNARY (f32, TD_F32, kind)
#define SET_UNARY_F64(kind, formula) SET_UNARY (f64, TD_F64, kind)
#define SET_UNARY_I32(kind, formula) SET_UNARY (i32, TD_I32, kind)
#define SET_UNARY_I64(kind, formula) SET_UNARY (i64, TD_I64, kind)
#define SET_GRAD_F32(kind, formula) v->unary_grad[TD_UNARY_##kind][TD_F32] = grad_##kind##_f32;
#define SET_GRAD_F64(kind, formula) v->unary_grad[TD_UNARY_##kind][TD_F64] = grad_##kind##_f64;
#define SET_BINARY_F32(kind, formula) SET_BINARY (f32, TD_F32, kind)
#define SET_BINARY_F64(kind, formula) SET_BINARY (f64, TD_F64, kind)
#define SET_BINARY_I32(kind, formula) SET_BINARY (i32, TD_I32, kind)
#define SET_BINARY_I64(kind, formula) SET_BINARY (i64, TD_I64, kind)

#define FILL_NAME_(isa) td__vector_fill_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  TD_UNARY_FLOAT (SET_UNARY_F32, f32)
  TD_UNARY_FLOAT (SET_UNARY_F64, f64)
  v->unary[TD_UNARY_TANH][TD_F32] = tanh_f32;
  TD_UNARY_INT (SET_UNARY_I32, i32)
  TD_UNARY_INT (SET_UNARY_I64, i64)
  TD_UNARY_GRAD_FLOAT (SET_GRAD_F32, f32)
  TD_UNARY_GRAD_FLOAT (SET_GRAD_F64, f64)
  TD_BINARY_FLOAT (SET_BINARY_F32, f32)
  TD_BINARY_FLOAT (SET_BINARY_F64, f64)
  TD_BINARY_INT (SET_BINARY_I32, i32)
  TD_BINARY_INT (SET_BINARY_I64, i64)
}
