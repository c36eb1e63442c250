/* What the element-by-element kernels share: sizes of types, half precision, broadcasting.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <string.h>

#include "../in-floats.h"
#include "cpu.h"
#include "dtype.h"

/** Elements of one piece of a large array; arrays up to this size stay on the caller. */
#define TD_CPU_GRAIN 32768
#define TD_HALF_BLOCK 512

/** Elements [i, i + n) of a half precision array to float and back (cast.c). */
void td__half_load (const TdTensor *x, int64_t i, int64_t n, float *block);
void td__half_store (TdTensor *y, int64_t i, int64_t n, const float *block);
/** n numbers to another type; neither is half precision: x or y is float instead (cast.c). */
typedef void (*TdCastLoop) (const void *x, void *y, int64_t n);
TdCastLoop td__cast_loop (TdDtype from, TdDtype to);
/** Numbers [i, i + n) of a random mask: of a dtype, those in half precision as floats
 * (random.c). */
void td__mask_make (TdRngKey key, double p, TdDtype dtype, int64_t i, int64_t n, void *mask);

/** n elements of z = c ? x : y; each of c, x and y advances by its stride, 1 or 0. */
typedef void (*TdSelectLoop) (const char *c, int64_t sc, const char *x, int64_t sx,
                              const char *y, int64_t sy, char *z, int64_t n);
/** The loop for a condition of this dtype and numbers of so many bytes, 1 to 8 (select.c). */
TdSelectLoop td__select_loop (TdDtype condition, size_t bytes);

/** Up to three operands walked over one shape, neighbouring axes merged where all operands
 * allow it; strides are 0 where an operand is repeated. */
typedef struct TdWalk
{
  int ndim;
  int n;
  int64_t dim[TD_MAX_DIMS];
  int64_t stride[3][TD_MAX_DIMS];
} TdWalk;

/** Set up a walk of `n` operands broadcast to `out` (broadcast.c). */
void td__walk_init (TdWalk *w, const TdShape *out, const TdTensor *const *operands, int n);
/** The operands' offsets at row `row`, counting all axes but the last. */
void td__walk_row (const TdWalk *w, int64_t row, int64_t offset[3]);
