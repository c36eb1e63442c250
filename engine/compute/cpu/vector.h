/* Inner loops over contiguous numbers, compiled once per instruction set and chosen at start.
 *
 * Every set gives the same bits: no fused multiply-add, sums in lanes of a fixed number.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"

#define TD_DTYPE_N (TD_BOOL + 1)

/** Which operand of a binary loop is one number for all: neither, the second, the first. */
enum
{
  TD_WALK_BOTH,
  TD_WALK_FIRST,
  TD_WALK_SECOND,
  TD_WALK_N
};

typedef void (*TdUnaryLoop) (const void *x, void *y, int64_t n, double p, double q);
/** gx = gy f' (x); gx may be gy. */
typedef void (*TdUnaryGradLoop) (const void *x, const void *gy, void *gx, int64_t n, double p);
typedef void (*TdBinaryLoop) (const void *x, const void *y, void *z, int64_t n);
/** *total += the elements' sum (sum of squares, product), or max (min) (*total, elements). */
typedef void (*TdReduceLoop) (const void *x, int64_t n, double *total);
/** total[j] += the sum of column j; rows are `stride` elements apart. */
typedef void (*TdColumnLoop) (const void *x, int64_t rows, int64_t stride, int64_t columns,
                              double *total);
typedef void (*TdUpdateLoop) (const TdUpdate *u, void *p, const void *g, void *s0, void *s1,
                              void *s2, int64_t n);

/** Sums of (x - shift) and its square, over finite x.  Short tails are filled up with the
 * shift: n_filled elements, n_filled_zero of them 0. */
typedef struct TdVectorStats
{
  int64_t n_zero, n_nan, n_pos_inf, n_neg_inf, n_filled, n_filled_zero;
  double min, max, s1, s2;
} TdVectorStats;
typedef void (*TdStatsLoop) (const void *x, int64_t n, double shift, TdVectorStats *out);

/** Four numbers from each of the counters (counter + l, 0), l < TD_PHILOX_GROUP, in order. */
typedef void (*TdPhiloxLoop) (uint64_t counter, uint64_t key, uint32_t *out);
#define TD_PHILOX_GROUP 16

typedef void (*TdHalfLoadLoop) (const uint16_t *h, float *x, int64_t n);
typedef void (*TdHalfStoreLoop) (const float *x, uint16_t *h, int64_t n);

typedef struct TdVector
{
  const char *name;
  TdUnaryLoop unary[TD_UNARY_N][TD_DTYPE_N]; /* NULL: not for this dtype */
  TdUnaryGradLoop unary_grad[TD_UNARY_N][2]; /* by TD_F32, TD_F64 */
  TdBinaryLoop binary[TD_BINARY_N][TD_DTYPE_N][TD_WALK_N];
  TdReduceLoop sum[2], sum_squares[2], max[2], min[2]; /* by TD_F32, TD_F64 */
  TdColumnLoop sum_columns[2];
  TdUpdateLoop update[TD_UPDATE_N][2];
  TdStatsLoop stats[2];
  TdPhiloxLoop philox;
  TdHalfLoadLoop half_load[2]; /* of TD_F16, TD_BF16 */
  TdHalfStoreLoop half_store[2];
} TdVector;

/** How many columns sum_columns takes at most. */
#define TD_COLUMN_CHUNK 64

/** The loops of this processor, set before main. */
extern const TdVector *td__vector;

/** Choose loops by name: "base", "avx2", "avx512"; false if the processor has none. */
bool td__vector_use (const char *name);

/* Filled in by the copies of vector.c and vector-*.c, one per instruction set. */
void td__vector_fill_base (TdVector *v);
void td__vector_fill_sums_base (TdVector *v);
void td__vector_fill_stats_base (TdVector *v);
void td__vector_fill_random_base (TdVector *v);
void td__vector_fill_updates_base (TdVector *v);
void td__vector_fill_halves_base (TdVector *v);
#if defined(__x86_64__)
void td__vector_fill_avx2 (TdVector *v);
void td__vector_fill_sums_avx2 (TdVector *v);
void td__vector_fill_stats_avx2 (TdVector *v);
void td__vector_fill_random_avx2 (TdVector *v);
void td__vector_fill_updates_avx2 (TdVector *v);
void td__vector_fill_halves_avx2 (TdVector *v);
void td__vector_fill_avx512 (TdVector *v);
void td__vector_fill_sums_avx512 (TdVector *v);
void td__vector_fill_stats_avx512 (TdVector *v);
void td__vector_fill_random_avx512 (TdVector *v);
void td__vector_fill_updates_avx512 (TdVector *v);
void td__vector_fill_halves_avx512 (TdVector *v);
#endif
