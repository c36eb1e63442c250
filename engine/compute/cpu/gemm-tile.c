/* Tiles of f32 matrix products in registers, for AVX-512, AVX2 and any other processor.
 *
 * One body, written once in macros, is instantiated per instruction set and number of rows: a
 * tile keeps rows x 2 vectors of sums, and per step of k loads two vectors of B and broadcasts
 * one number of A per row.  14 rows x 32 columns fill the 32 registers of AVX-512 (28 sums).
 * *Source*: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
 *
 * SPDX-License-Identifier: MIT */
#include "gemm-tile.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define UNROLL _Pragma ("clang loop unroll(full)")
#else
#define UNROLL _Pragma ("GCC unroll 16")
#endif
#define INLINE static inline __attribute__ ((always_inline))

/* The body.  V: vector type of W floats; VECTORS: 2, or 1 for narrow tiles.  The panel of B is
 * always 2 W wide.  far: five pointers reach 14 rows, at 0, 1 and 2 strides from each. */
#define DEFINE_BODY(isa, TARGET, V, W)                                                         \
  TARGET INLINE void isa##_body (const int rows, const int vectors, const bool far, int64_t k, \
                                 const float *a, int64_t stride, const float *b, int64_t ldb,  \
                                 float *c, int64_t ldc, int n, bool add)                       \
  {                                                                                            \
    V sum[TD_GEMM_MAX_ROWS][2];                                                                \
    const float *row[(TD_GEMM_MAX_ROWS + 2) / 3];                                              \
    UNROLL for (int i = 0; i < rows; i++)                                                      \
    {                                                                                          \
      sum[i][0] = isa##_zero ();                                                               \
      sum[i][1] = isa##_zero ();                                                               \
    }                                                                                          \
    UNROLL for (int i = 0; far && i < rows; i += 3) row[i / 3] = a + i * stride;               \
    for (int64_t l = 0; l < k; l++, b += ldb)                                                  \
      {                                                                                        \
        const V b0 = isa##_load (b);                                                           \
        const V b1 = vectors > 1 ? isa##_load (b + (W)) : b0;                                  \
        UNROLL for (int i = 0; i < rows; i++)                                                  \
        {                                                                                      \
          const V a0 = isa##_all (far ? row[i / 3][i % 3 * stride] : a[i]);                    \
          sum[i][0] = isa##_fma (a0, b0, sum[i][0]);                                           \
          if (vectors > 1)                                                                     \
            sum[i][1] = isa##_fma (a0, b1, sum[i][1]);                                         \
        }                                                                                      \
        UNROLL for (int i = 0; far && i < rows; i += 3) row[i / 3]++;                          \
        a += far ? 0 : stride;                                                                 \
      }                                                                                        \
    UNROLL for (int i = 0; i < rows; i++, c += ldc)                                            \
    {                                                                                          \
      isa##_put (c, sum[i][0], n, add);                                                        \
      if (vectors > 1)                                                                         \
        isa##_put (c + (W), sum[i][1], n - (W), add);                                          \
    }                                                                                          \
  }

#define DEFINE_ONE(isa, TARGET, rows, name, vectors, far)                                      \
  TARGET static void isa##_##name##_##rows (int64_t k, const float *a, int64_t stride,         \
                                            const float *b, int64_t ldb, float *c,             \
                                            int64_t ldc, int n, bool add)                      \
  {                                                                                            \
    isa##_body (rows, vectors, far, k, a, stride, b, ldb, c, ldc, n, add);                     \
  }
#define DEFINE_TILE(isa, TARGET, rows)                                                         \
  DEFINE_ONE (isa, TARGET, rows, full, 2, false)                                               \
  DEFINE_ONE (isa, TARGET, rows, narrow, 1, false)                                             \
  DEFINE_ONE (isa, TARGET, rows, full_far, 2, true)                                            \
  DEFINE_ONE (isa, TARGET, rows, narrow_far, 1, true)

// clang-format off
#define ROWS_TO_4(M, isa, T) M (isa, T, 1) M (isa, T, 2) M (isa, T, 3) M (isa, T, 4)
#define ROWS_TO_6(M, isa, T) ROWS_TO_4 (M, isa, T) M (isa, T, 5) M (isa, T, 6)
#define ROWS_TO_14(M, isa, T) ROWS_TO_6 (M, isa, T) M (isa, T, 7) M (isa, T, 8) M (isa, T, 9) \
  M (isa, T, 10) M (isa, T, 11) M (isa, T, 12) M (isa, T, 13) M (isa, T, 14)
#define FULL(isa, T, rows) [rows] = isa##_full_##rows,
#define NARROW(isa, T, rows) [rows] = isa##_narrow_##rows,
#define FULL_FAR(isa, T, rows) [rows] = isa##_full_far_##rows,
#define NARROW_FAR(isa, T, rows) [rows] = isa##_narrow_far_##rows,
#define TILES(ROWS, isa, mr, nr) { #isa, mr, nr, \
  { { ROWS (FULL, isa, ) }, { ROWS (FULL_FAR, isa, ) } }, \
  { { ROWS (NARROW, isa, ) }, { ROWS (NARROW_FAR, isa, ) } } }
// clang-format on

#if defined(__x86_64__)
/* --- AVX-512: 14 x 32 --- */
#define AVX512 __attribute__ ((target ("avx512f")))

AVX512 INLINE __m512
avx512_zero (void)
{
  return _mm512_setzero_ps ();
}
AVX512 INLINE __m512
avx512_load (const float *p)
{
  return _mm512_loadu_ps (p);
}
AVX512 INLINE __m512
avx512_all (float x)
{
  return _mm512_set1_ps (x);
}
AVX512 INLINE __m512
avx512_fma (__m512 a, __m512 b, __m512 c)
{
  return _mm512_fmadd_ps (a, b, c);
}
AVX512 INLINE void
avx512_put (float *c, __m512 v, int n, bool add)
{
  const __mmask16 mask = (__mmask16)(n >= 16 ? 0xffffu : (1u << (n > 0 ? n : 0)) - 1);

  if (add)
    v = _mm512_add_ps (_mm512_maskz_loadu_ps (mask, c), v);
  _mm512_mask_storeu_ps (c, mask, v);
}
DEFINE_BODY (avx512, AVX512, __m512, 16)
ROWS_TO_14 (DEFINE_TILE, avx512, AVX512)
static const TdGemmTiles avx512_tiles = TILES (ROWS_TO_14, avx512, 14, 32);

/* --- AVX2 with FMA: 6 x 16 --- */
#define AVX2 __attribute__ ((target ("avx2,fma")))

AVX2 INLINE __m256
avx2_zero (void)
{
  return _mm256_setzero_ps ();
}
AVX2 INLINE __m256
avx2_load (const float *p)
{
  return _mm256_loadu_ps (p);
}
AVX2 INLINE __m256
avx2_all (float x)
{
  return _mm256_set1_ps (x);
}
AVX2 INLINE __m256
avx2_fma (__m256 a, __m256 b, __m256 c)
{
  return _mm256_fmadd_ps (a, b, c);
}
AVX2 INLINE void
avx2_put (float *c, __m256 v, int n, bool add)
{
  const __m256i lane = _mm256_setr_epi32 (0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32 (_mm256_set1_epi32 (n), lane);

  if (add)
    v = _mm256_add_ps (_mm256_maskload_ps (c, mask), v);
  _mm256_maskstore_ps (c, mask, v);
}
DEFINE_BODY (avx2, AVX2, __m256, 8)
ROWS_TO_6 (DEFINE_TILE, avx2, AVX2)
static const TdGemmTiles avx2_tiles = TILES (ROWS_TO_6, avx2, 6, 16);
#endif

/* --- any processor, through the compiler's vectors: 4 x 8 --- */
typedef float V4 __attribute__ ((vector_size (16), aligned (4), may_alias));

INLINE V4
plain_zero (void)
{
  return (V4){ 0 };
}
INLINE V4
plain_load (const float *p)
{
  return *(const V4 *)p;
}
INLINE V4
plain_all (float x)
{
  return (V4){ x, x, x, x };
}
INLINE V4
plain_fma (V4 a, V4 b, V4 c)
{
  return a * b + c;
}
INLINE void
plain_put (float *c, V4 v, int n, bool add)
{
  for (int j = 0; j < 4 && j < n; j++)
    c[j] = add ? c[j] + v[j] : v[j];
}
#define PLAIN
DEFINE_BODY (plain, PLAIN, V4, 4)
ROWS_TO_4 (DEFINE_TILE, plain, PLAIN)
static const TdGemmTiles plain_tiles = TILES (ROWS_TO_4, plain, 4, 8);

const TdGemmTiles *
td__gemm_tiles_named (const char *name)
{
#if defined(__x86_64__)
  if (strcmp (name, "avx512") == 0)
    return __builtin_cpu_supports ("avx512f") ? &avx512_tiles : NULL;
  if (strcmp (name, "avx2") == 0)
    return __builtin_cpu_supports ("avx2") && __builtin_cpu_supports ("fma") ? &avx2_tiles
                                                                             : NULL;
#endif
  return strcmp (name, "plain") == 0 ? &plain_tiles : NULL;
}

const TdGemmTiles *
td__gemm_tiles (void)
{
  static const TdGemmTiles *chosen;
  static const char *const names[] = { "avx512", "avx2", "plain" };
  const TdGemmTiles *tiles = __atomic_load_n (&chosen, __ATOMIC_RELAXED);

  if (tiles == NULL)
    {
      const char *wanted = getenv ("TAPEDECK_TILES");

      if (wanted != NULL)
        tiles = td__gemm_tiles_named (wanted);
      for (int i = 0; tiles == NULL; i++)
        tiles = td__gemm_tiles_named (names[i]);
      __atomic_store_n (&chosen, tiles, __ATOMIC_RELAXED);
    }
  return tiles;
}

/* A's panel of rows from `row` on is at a + row * panel_stride; stride 0: as wide as it has
 * rows. ldb 0: B is packed. */
static inline void
block (const TdGemmTiles *tiles, bool far, int64_t m, int64_t n, int64_t k, const float *a,
       int64_t panel_stride, int64_t stride, const float *b, int64_t ldb, float *c, int64_t ldc,
       bool add)
{
  const int64_t n_panels = (m + tiles->mr - 1) / tiles->mr, nr = tiles->nr;
  const int64_t b_step = ldb > 0 ? 1 : k, b_stride = ldb > 0 ? ldb : nr;

  for (int64_t p = 0; p < n_panels; p++)
    {
      const int64_t row = td__gemm_panel_row (m, n_panels, p);
      const int64_t rows = td__gemm_panel_row (m, n_panels, p + 1) - row;

      for (int64_t j = 0; j < n; j += nr)
        {
          const int columns = (int)(n - j < nr ? n - j : nr);
          const TdGemmTile tile
              = columns * 2 <= nr ? tiles->narrow[far][rows] : tiles->full[far][rows];

          tile (k, a + row * panel_stride, stride > 0 ? stride : rows, b + j * b_step, b_stride,
                c + row * ldc + j, ldc, columns, add);
        }
    }
}

void
td__gemm_block (const TdGemmTiles *tiles, int64_t m, int64_t n, int64_t k, const float *a,
                const float *b, float *c, int64_t ldc, bool add)
{
  block (tiles, false, m, n, k, a, k, 0, b, 0, c, ldc, add);
}

void
td__gemm_block_in_place (const TdGemmTiles *tiles, int64_t m, int64_t n, int64_t k,
                         const float *a, int64_t row_stride, int64_t k_stride, const float *b,
                         int64_t ldb, float *c, int64_t ldc, bool add)
{
  bool far = row_stride != 1;

  block (tiles, far, m, n, k, a, row_stride, far ? row_stride : k_stride, b, ldb, c, ldc, add);
}
