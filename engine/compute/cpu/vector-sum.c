/* Sums and extremes over contiguous numbers; compiled once per instruction set.
 *
 * Sums run in LANES partial sums over blocks of BLOCK elements, each block is added to a
 * double: the error does not grow with the length, and the order depends on the length alone.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#include <math.h>

#define LANES 32
#define BLOCK 512
#define ROW_BLOCK 32

#define SUM_LOOP(S, T, A, name, term)                                                          \
  static void name##_##S (const void *xs, int64_t n, double *total)                            \
  {                                                                                            \
    const T *x = xs;                                                                           \
    double sum = 0;                                                                            \
    int64_t i = 0;                                                                             \
                                                                                               \
    while (i + LANES <= n)                                                                     \
      {                                                                                        \
        int64_t end = n - i < BLOCK ? i + (n - i) / LANES * LANES : i + BLOCK;                 \
        A acc[LANES] = { 0 };                                                                  \
                                                                                               \
        for (; i < end; i += LANES)                                                            \
          _Pragma ("omp simd") for (int l = 0; l < LANES; l++)                                 \
          {                                                                                    \
            const A v = (A)x[i + l];                                                           \
            acc[l] += (term);                                                                  \
          }                                                                                    \
        for (int w = LANES / 2; w > 0; w /= 2)                                                 \
          for (int l = 0; l < w; l++)                                                          \
            acc[l] += acc[l + w];                                                              \
        sum += (double)acc[0];                                                                 \
      }                                                                                        \
    for (; i < n; i++)                                                                         \
      {                                                                                        \
        const double v = (double)x[i];                                                         \
        sum += (term);                                                                         \
      }                                                                                        \
    *total += sum;                                                                             \
  }

SUM_LOOP (f32, float, float, sum, v)
SUM_LOOP (f64, double, double, sum, v)
/* Squares in double: 1e20 is a number whose square float does not have. */
SUM_LOOP (f32, float, double, sum_squares, v *v)
SUM_LOOP (f64, double, double, sum_squares, v *v)

/* `better`: v replaces acc.  NaN wins and stays. */
#define EXTREME_LOOP(S, T, name, op)                                                           \
  static void name##_##S (const void *xs, int64_t n, double *total)                            \
  {                                                                                            \
    const T *x = xs;                                                                           \
    T best = (T)*total;                                                                        \
    int64_t i = 0;                                                                             \
                                                                                               \
    if (n >= LANES)                                                                            \
      {                                                                                        \
        T acc[LANES];                                                                          \
                                                                                               \
        for (int l = 0; l < LANES; l++)                                                        \
          acc[l] = best;                                                                       \
        for (; i + LANES <= n; i += LANES)                                                     \
          _Pragma ("omp simd") for (int l = 0; l < LANES; l++)                                 \
          {                                                                                    \
            const T v = x[i + l];                                                              \
            acc[l] = v != v ? v : v op acc[l] ? v : acc[l];                                    \
          }                                                                                    \
        for (int w = LANES / 2; w > 0; w /= 2)                                                 \
          for (int l = 0; l < w; l++)                                                          \
            {                                                                                  \
              const T v = acc[l + w];                                                          \
              acc[l] = v != v ? v : v op acc[l] ? v : acc[l];                                  \
            }                                                                                  \
        best = acc[0];                                                                         \
      }                                                                                        \
    for (; i < n; i++)                                                                         \
      best = x[i] != x[i] ? x[i] : x[i] op best ? x[i] : best;                                 \
    *total = (double)best;                                                                     \
  }

EXTREME_LOOP (f32, float, max, >)
EXTREME_LOOP (f64, double, max, >)
EXTREME_LOOP (f32, float, min, <)
EXTREME_LOOP (f64, double, min, <)

#define COLUMN_LOOP(S, T)                                                                      \
  static void sum_columns_##S (const void *xs, int64_t rows, int64_t stride, int64_t columns,  \
                               double *total)                                                  \
  {                                                                                            \
    const T *x = xs;                                                                           \
                                                                                               \
    for (int64_t r = 0; r < rows; r += ROW_BLOCK)                                              \
      {                                                                                        \
        int64_t end = rows - r < ROW_BLOCK ? rows : r + ROW_BLOCK;                             \
        T acc[TD_COLUMN_CHUNK] = { 0 };                                                        \
                                                                                               \
        if (columns == TD_COLUMN_CHUNK)                                                        \
          for (int64_t k = r; k < end; k++)                                                    \
            _Pragma ("omp simd") for (int j = 0; j < TD_COLUMN_CHUNK; j++) acc[j]              \
                += x[k * stride + j];                                                          \
        else                                                                                   \
          for (int64_t k = r; k < end; k++)                                                    \
            for (int64_t j = 0; j < columns; j++)                                              \
              acc[j] += x[k * stride + j];                                                     \
        for (int64_t j = 0; j < columns; j++)                                                  \
          total[j] += (double)acc[j];                                                          \
      }                                                                                        \
  }

COLUMN_LOOP (f32, float)
COLUMN_LOOP (f64, double)

#define FILL_NAME_(isa) td__vector_fill_sums_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)
#define SET(field, S, D) v->field[D] = field##_##S

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  SET (sum, f32, TD_F32);
  SET (sum, f64, TD_F64);
  SET (sum_squares, f32, TD_F32);
  SET (sum_squares, f64, TD_F64);
  SET (max, f32, TD_F32);
  SET (max, f64, TD_F64);
  SET (min, f32, TD_F32);
  SET (min, f64, TD_F64);
  SET (sum_columns, f32, TD_F32);
  SET (sum_columns, f64, TD_F64);
}
