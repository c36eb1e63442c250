/* The innermost piece of every f32 product: a tile of C from packed panels of A and B.
 *
 * A panel of A is [k][rows] with rows <= mr, a panel of B is [k][nr], zero beyond the valid
 * columns.  Matrix products (gemm.c) pack matrices, convolutions (conv2d.c) pack image patches.
 * Every element is one chain of fused multiply-adds in the order of k, whatever the tile's
 * size, so splitting work over threads changes no bit.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** C (rows, n) = or += A B for k steps; the rows are those the function was made for.  Numbers
 * of one column of A lie side by side and columns `stride` apart, or with far rows those of one
 * row side by side and rows `stride` apart. */
typedef void (*TdGemmTile) (int64_t k, const float *a, int64_t stride, const float *b,
                            int64_t ldb, float *c, int64_t ldc, int n, bool add);

#define TD_GEMM_MAX_ROWS 14

typedef struct TdGemmTiles
{
  const char *name;
  int mr, nr;                                 /**< largest tile */
  TdGemmTile full[2][TD_GEMM_MAX_ROWS + 1];   /**< near, far rows; by rows; any n <= nr */
  TdGemmTile narrow[2][TD_GEMM_MAX_ROWS + 1]; /**< the same; n <= nr / 2 */
} TdGemmTiles;

/** The fastest tiles that this processor runs; TAPEDECK_TILES=avx512|avx2|plain asks for others
 * (an unknown or unsupported name is ignored). */
const TdGemmTiles *td__gemm_tiles (void);
/** The tiles of that name, or NULL where the processor cannot run them. */
const TdGemmTiles *td__gemm_tiles_named (const char *name);

/** Cut m rows into the fewest panels of nearly equal size: the first row of panel p of n. */
static inline int64_t
td__gemm_panel_row (int64_t m, int64_t n, int64_t p)
{
  return m * p / n;
}

/** Write one panel: out[i * width + j] = x[j * row_stride + i * k_stride] for j < rows, 0 up
 * to width. *Units*: strides in elements. */
void td__gemm_pack (float *out, int64_t width, const float *x, int64_t row_stride,
                    int64_t k_stride, int64_t rows, int64_t k);

/** Multiply packed panels: C (m, n) = or += A B.  a: all panels of m rows one after the other;
 * b: panels of nr columns one after the other; both k long. */
void td__gemm_block (const TdGemmTiles *tiles, int64_t m, int64_t n, int64_t k, const float *a,
                     const float *b, float *c, int64_t ldc, bool add);
/** The same where A lies unpacked (row_stride or k_stride is 1), and with ldb > 0 also B, whose
 * rows are ldb apart and a whole number of half panels wide. */
void td__gemm_block_in_place (const TdGemmTiles *tiles, int64_t m, int64_t n, int64_t k,
                              const float *a, int64_t row_stride, int64_t k_stride,
                              const float *b, int64_t ldb, float *c, int64_t ldc, bool add);

/** Memory of the calling thread that lives until the thread ends; NULL when there is none.
 * Contents last until the next call with the same slot. */
enum
{
  TD_SCRATCH_A,
  TD_SCRATCH_B,
  TD_SCRATCH_C,
  TD_SCRATCH_IMAGE,
  TD_SCRATCH_PARTS,
  TD_SCRATCH_ROW,
  TD_SCRATCH_N
};
void *td__cpu_scratch (int slot, size_t bytes);
