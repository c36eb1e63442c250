/* Parameter updates and what optimizer hooks do to gradients, over contiguous numbers; compiled
 * once per instruction set.
 *
 * Chainer's arithmetic, in the dtype of the parameter; an array is read and written once.
 * SPDX-License-Identifier: MIT */
#include "vector.h"
#include "../scalar-updates.h"

#include <math.h>

/* `setup` declares constants, `body` updates element i of p, g and the states a, b, c. */
#define UPDATE_LOOP(S, T, kind, name, n_arrays, setup, body)                                   \
  static void name##_##S (const TdUpdate *u, void *ps, const void *gs, void *as, void *bs,     \
                          void *cs, int64_t n)                                                 \
  {                                                                                            \
    T *p = ps, *a __attribute__ ((unused)) = as, *b __attribute__ ((unused)) = bs,             \
      *c __attribute__ ((unused)) = cs;                                                        \
    const T *g __attribute__ ((unused)) = gs;                                                  \
    const int late __attribute__ ((unused)) = TD_UPDATE_LATE (u);                              \
    setup;                                                                                     \
                                                                                               \
    _Pragma ("omp simd") for (int64_t i = 0; i < n; i++)                                       \
    {                                                                                          \
      body;                                                                                    \
    }                                                                                          \
  }

TD_UPDATES (UPDATE_LOOP, f32, float, sqrtf)
TD_UPDATES (UPDATE_LOOP, f64, double, sqrt)

#define FILL_NAME_(isa) td__vector_fill_updates_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)
#define SET(S, T, kind, name, n_arrays, setup, body)                                           \
  v->update[TD_UPDATE_##kind][TD_F32] = name##_f32;                                            \
  v->update[TD_UPDATE_##kind][TD_F64] = name##_f64;

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  TD_UPDATES (SET, f32, float, sqrtf)
}
