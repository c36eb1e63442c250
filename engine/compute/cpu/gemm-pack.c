/* Packing of matrices into the panels that gemm-tile.c multiplies, and the per-thread memory
 * that panels live in.
 *
 * SPDX-License-Identifier: MIT */
#include "gemm-tile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* A block of x, its rows x_stride apart, transposed to out, whose rows are out_stride apart. */
typedef void (*Transpose) (float *out, int64_t out_stride, const float *x, int64_t x_stride);

#if defined(__x86_64__)
/* Halves of rows i and i + 4 are loaded into one register, which leaves two rounds of shuffles
 * instead of three. */
__attribute__ ((target ("avx"))) static inline void
transpose_4_pairs (float *out, int64_t out_stride, const float *x, int64_t x_stride)
{
  __m256 r[4], s[4];

  for (int i = 0; i < 4; i++)
    r[i] = _mm256_insertf128_ps (_mm256_castps128_ps256 (_mm_loadu_ps (x + i * x_stride)),
                                 _mm_loadu_ps (x + (i + 4) * x_stride), 1);
  s[0] = _mm256_unpacklo_ps (r[0], r[1]);
  s[1] = _mm256_unpackhi_ps (r[0], r[1]);
  s[2] = _mm256_unpacklo_ps (r[2], r[3]);
  s[3] = _mm256_unpackhi_ps (r[2], r[3]);
  _mm256_storeu_ps (out, _mm256_shuffle_ps (s[0], s[2], 0x44));
  _mm256_storeu_ps (out + out_stride, _mm256_shuffle_ps (s[0], s[2], 0xee));
  _mm256_storeu_ps (out + 2 * out_stride, _mm256_shuffle_ps (s[1], s[3], 0x44));
  _mm256_storeu_ps (out + 3 * out_stride, _mm256_shuffle_ps (s[1], s[3], 0xee));
}

__attribute__ ((target ("avx"))) static void
transpose_8 (float *out, int64_t out_stride, const float *x, int64_t x_stride)
{
  transpose_4_pairs (out, out_stride, x, x_stride);
  transpose_4_pairs (out + 4 * out_stride, out_stride, x + 4, x_stride);
}

static void
transpose_4 (float *out, int64_t out_stride, const float *x, int64_t x_stride)
{
  __m128 r0 = _mm_loadu_ps (x), r1 = _mm_loadu_ps (x + x_stride);
  __m128 r2 = _mm_loadu_ps (x + 2 * x_stride), r3 = _mm_loadu_ps (x + 3 * x_stride);

  _MM_TRANSPOSE4_PS (r0, r1, r2, r3);
  _mm_storeu_ps (out, r0);
  _mm_storeu_ps (out + out_stride, r1);
  _mm_storeu_ps (out + 2 * out_stride, r2);
  _mm_storeu_ps (out + 3 * out_stride, r3);
}

static bool
has_transpose_8 (void)
{
  return __builtin_cpu_supports ("avx");
}
#else
static void
transpose_4 (float *out, int64_t out_stride, const float *x, int64_t x_stride)
{
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 4; i++)
      out[j * out_stride + i] = x[i * x_stride + j];
}

static void
transpose_8 (float *out, int64_t out_stride, const float *x, int64_t x_stride)
{
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 8; j += 4)
      transpose_4 (out + j * out_stride + i, out_stride, x + i * x_stride + j, x_stride);
}

static bool
has_transpose_8 (void)
{
  return true;
}
#endif

/* Blocks of size side; the last block of each direction moves back to end at the edge, so that
 * it copies some numbers a second time instead of needing a slow remainder. */
static void
pack_in_blocks (Transpose transpose, int64_t side, float *out, int64_t width, const float *x,
                int64_t stride, int64_t rows, int64_t k)
{
  for (int64_t l = 0; l < k; l += side)
    {
      const int64_t at = l + side <= k ? l : k - side;

      for (int64_t j = 0; j < rows; j += side)
        {
          const int64_t row = j + side <= rows ? j : rows - side;

          transpose (out + at * width + row, width, x + row * stride + at, stride);
        }
    }
}

/* x's rows are contiguous in k: out is their transpose. */
static void
pack_transposed (float *out, int64_t width, const float *x, int64_t stride, int64_t rows,
                 int64_t k)
{
  if (rows >= 8 && k >= 8 && has_transpose_8 ())
    pack_in_blocks (transpose_8, 8, out, width, x, stride, rows, k);
  else if (rows >= 4 && k >= 4)
    pack_in_blocks (transpose_4, 4, out, width, x, stride, rows, k);
  else
    for (int64_t l = 0; l < k; l++)
      for (int64_t j = 0; j < rows; j++)
        out[l * width + j] = x[j * stride + l];
}

/* rows is a constant where this is inlined with one: a few moves instead of a call. */
static inline __attribute__ ((always_inline)) void
copy_rows (float *out, int64_t width, const float *x, int64_t stride, int64_t rows, int64_t k)
{
  for (int64_t l = 0; l < k; l++)
    memcpy (out + l * width, x + l * stride, (size_t)rows * sizeof (float));
}

/* x's rows are contiguous: numbers side by side stay side by side.  8 to 14 are copied as the
 * first 8 and the last 8. */
static void
pack_rows (float *out, int64_t width, const float *x, int64_t stride, int64_t rows, int64_t k)
{
  if (rows == 32)
    copy_rows (out, width, x, stride, 32, k);
  else if (rows == 16)
    copy_rows (out, width, x, stride, 16, k);
  else if (rows >= 8 && rows < 16)
    {
      copy_rows (out, width, x, stride, 8, k);
      copy_rows (out + rows - 8, width, x + rows - 8, stride, 8, k);
    }
  else
    copy_rows (out, width, x, stride, rows, k);
}

void
td__gemm_pack (float *out, int64_t width, const float *x, int64_t row_stride, int64_t k_stride,
               int64_t rows, int64_t k)
{
  if (rows < width)
    memset (out, 0, (size_t)(k * width) * sizeof (float));
  if (row_stride == 1)
    pack_rows (out, width, x, k_stride, rows, k);
  else if (k_stride == 1)
    pack_transposed (out, width, x, row_stride, rows, k);
  else
    for (int64_t l = 0; l < k; l++)
      for (int64_t j = 0; j < rows; j++)
        out[l * width + j] = x[j * row_stride + l * k_stride];
}

typedef struct
{
  void *data[TD_SCRATCH_N];
  size_t bytes[TD_SCRATCH_N];
} Scratch;

static __thread Scratch scratch;
static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void
scratch_free (void *data)
{
  Scratch *s = data;

  for (int i = 0; i < TD_SCRATCH_N; i++)
    free (s->data[i]);
  memset (s, 0, sizeof *s);
}

static void
scratch_start (void)
{
  pthread_key_create (&scratch_key, scratch_free);
}

void *
td__cpu_scratch (int slot, size_t bytes)
{
  const size_t page = 4096;

  bytes += bytes == 0; /* NULL is for no memory: of no rows there is a place, too */
  if (bytes <= scratch.bytes[slot])
    return scratch.data[slot];
  pthread_once (&scratch_once, scratch_start);
  pthread_setspecific (scratch_key, &scratch);
  free (scratch.data[slot]);
  bytes = (bytes + bytes / 4 + page - 1) / page * page;
  scratch.data[slot] = aligned_alloc (page, bytes);
  scratch.bytes[slot] = scratch.data[slot] != NULL ? bytes : 0;
  return scratch.data[slot];
}
