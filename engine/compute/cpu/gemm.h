/* Matrix products of one pair, without a device: what gemm.c and gemm-blas.c share.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"
#include "gemm-tile.h"

/** C = alpha op (A) op (B) + beta C with the given tiles.  Ignores g's batch.
 * *Errors*: TD_ERR_MEMORY when panels cannot be allocated. */
TdStatus td__gemm_f32 (const TdGemmTiles *tiles, const TdGemm *g, const float *a,
                       const float *b, float *c);
/** The same in f64, through BLAS where there is one.  *Errors*: TD_ERR_MEMORY. */
TdStatus td__gemm_f64 (const TdGemm *g, const double *a, const double *b, double *c);
/** Do what g says to `rows` finished rows from `row` on, columns [column, column + n), which
 * are at c.  Of g only n and end count. */
void td__gemm_end_f32 (const TdGemm *g, int64_t row, int64_t rows, int64_t column, int64_t n,
                       float *c);
void td__gemm_end_f64 (const TdGemm *g, int64_t row, int64_t rows, int64_t column, int64_t n,
                       double *c);
/** f32 through BLAS, for processors without tiles of their own; false where there is no BLAS or
 * the tiles are the better choice. */
bool td__gemm_prefers_blas (void);
TdStatus td__gemm_blas_f32 (const TdGemm *g, const float *a, const float *b, float *c);

/** What BLAS there is and how it was built. */
const char *td__cpu_blas_version (void);
