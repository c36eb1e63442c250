/* Half precision to float and back, by the bits; compiled once per instruction set.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#include "../scalar-ops.h"

#define LOAD_LOOP(name)                                                                        \
  static void load_##name (const uint16_t *h, float *x, int64_t n)                             \
  {                                                                                            \
    _Pragma ("omp simd") for (int64_t i = 0; i < n; i++) x[i] = td_float_of_##name (h[i]);     \
  }
#define STORE_LOOP(name)                                                                       \
  static void store_##name (const float *x, uint16_t *h, int64_t n)                            \
  {                                                                                            \
    _Pragma ("omp simd") for (int64_t i = 0; i < n; i++) h[i] = td_##name##_of_float (x[i]);   \
  }
LOAD_LOOP (f16)
LOAD_LOOP (bf16)
STORE_LOOP (f16)
STORE_LOOP (bf16)

#define FILL_NAME_(isa) td__vector_fill_halves_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  v->half_load[0] = load_f16;
  v->half_load[1] = load_bf16;
  v->half_store[0] = store_f16;
  v->half_store[1] = store_bf16;
}
