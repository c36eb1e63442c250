/* Moments and counts of contiguous numbers in one pass; compiled once per instruction set.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#include <float.h>
#include <math.h>

#define LANES 16
#define BLOCK 4096 /* so that counts fit the lanes' type */

/* s1, s2: sums of (x - shift) and its square over finite x.  Counts are kept in lanes of the
 * element's size, emptied after each block; what is not finite is rare, so that a block only
 * says that it has some, and is gone through again to tell which. */
#define STATS_LOOP(S, T, Count, limit)                                                         \
  typedef struct                                                                               \
  {                                                                                            \
    double s1[LANES], s2[LANES];                                                               \
    T low[LANES], high[LANES];                                                                 \
    Count zero[LANES], bad[LANES];                                                             \
  } Lanes_##S;                                                                                 \
                                                                                               \
  static inline __attribute__ ((always_inline)) void lanes_##S (Lanes_##S *restrict a,         \
                                                                const T *restrict x, T k)      \
  {                                                                                            \
    _Pragma ("omp simd") for (int l = 0; l < LANES; l++)                                       \
    {                                                                                          \
      const T v = x[l];                                                                        \
      const T e = v >= -(T)limit && v <= (T)limit ? v : k;                                     \
      const double f = (double)e - (double)k;                                                  \
                                                                                               \
      a->zero[l] += v == 0 ? 1 : 0;                                                            \
      a->bad[l] += v >= -(T)limit && v <= (T)limit ? 0 : 1;                                    \
      a->low[l] = e < a->low[l] ? e : a->low[l];                                               \
      a->high[l] = e > a->high[l] ? e : a->high[l];                                            \
      a->s1[l] += f;                                                                           \
      a->s2[l] += f * f;                                                                       \
    }                                                                                          \
  }                                                                                            \
                                                                                               \
  static __attribute__ ((noinline)) void classify_bad_##S (const T *x, int64_t n,              \
                                                           TdVectorStats *out)                 \
  {                                                                                            \
    for (int64_t i = 0; i < n; i++)                                                            \
      {                                                                                        \
        out->n_nan += x[i] != x[i];                                                            \
        out->n_pos_inf += x[i] > (T)limit;                                                     \
        out->n_neg_inf += x[i] < -(T)limit;                                                    \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  /* x: the n numbers that were counted. */                                                    \
  static void empty_counts_##S (Lanes_##S *a, const T *x, int64_t n, TdVectorStats *out)       \
  {                                                                                            \
    Count bad = 0;                                                                             \
                                                                                               \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        out->n_zero += (int64_t)a->zero[l];                                                    \
        bad += a->bad[l];                                                                      \
        a->zero[l] = a->bad[l] = 0;                                                            \
      }                                                                                        \
    if (bad > 0)                                                                               \
      classify_bad_##S (x, n, out);                                                            \
  }                                                                                            \
                                                                                               \
  static void stats_##S (const void *xs, int64_t n, double shift, TdVectorStats *out)          \
  {                                                                                            \
    const T *x = xs;                                                                           \
    const T k = (T)shift;                                                                      \
    Lanes_##S a = { { 0 } };                                                                   \
    int64_t i = 0;                                                                             \
                                                                                               \
    /* The shift is a finite element: it may stand for any other in a search for extremes. */  \
    for (int l = 0; l < LANES; l++)                                                            \
      a.low[l] = a.high[l] = k;                                                                \
    while (n - i >= LANES)                                                                     \
      {                                                                                        \
        const T *block = x + i;                                                                \
        int64_t end = n - i < BLOCK ? i + (n - i) / LANES * LANES : i + BLOCK;                 \
                                                                                               \
        for (; i < end; i += LANES)                                                            \
          lanes_##S (&a, x + i, k);                                                            \
        empty_counts_##S (&a, block, x + i - block, out);                                      \
      }                                                                                        \
    if (i < n)                                                                                 \
      {                                                                                        \
        T part[LANES]; /* filled up with the shift, which adds nothing to s1 and s2 */         \
                                                                                               \
        for (int l = 0; l < LANES; l++)                                                        \
          part[l] = i + l < n ? x[i + l] : k;                                                  \
        lanes_##S (&a, part, k);                                                               \
        empty_counts_##S (&a, part, LANES, out);                                               \
        out->n_filled += LANES - (n - i);                                                      \
        out->n_filled_zero += k == 0 ? LANES - (n - i) : 0;                                    \
      }                                                                                        \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        out->min = (double)a.low[l] < out->min ? (double)a.low[l] : out->min;                  \
        out->max = (double)a.high[l] > out->max ? (double)a.high[l] : out->max;                \
        out->s1 += a.s1[l];                                                                    \
        out->s2 += a.s2[l];                                                                    \
      }                                                                                        \
  }

STATS_LOOP (f32, float, int32_t, FLT_MAX)
STATS_LOOP (f64, double, int64_t, DBL_MAX)

#define QUICK_ROWS 8 /* terms of one float sum */
#define QUICK_BLOCK (8 * QUICK_ROWS * LANES)

/* One block, QUICK_ROWS terms in float before they go to double: the error is that of a few
 * roundings, which cancel over a large array.  Lanes are the outer loop, so that their sums
 * stay in registers.  False, and nothing counted, where float will not do: something is not
 * finite, a square overflows, or all of them are near the end of float's range. */
static bool
quick_block (const float *restrict x, float k, TdVectorStats *out)
{
  double t1[LANES], t2[LANES], s1 = 0, s2 = 0;
  float low[LANES], high[LANES], least = k, most = k;
  int32_t zero[LANES], zeros = 0;

  _Pragma ("omp simd") for (int l = 0; l < LANES; l++)
  {
    double d1 = 0, d2 = 0;
    float lo = k, hi = k;
    int32_t z = 0;

    for (int c = 0; c < QUICK_BLOCK; c += QUICK_ROWS * LANES)
      {
        float a = 0, b = 0;

        for (int r = 0; r < QUICK_ROWS; r++)
          {
            const float v = x[c + r * LANES + l], f = v - k;

            a += f;
            b += f * f;
            lo = v < lo ? v : lo;
            hi = v > hi ? v : hi;
            z += v == 0 ? 1 : 0;
          }
        d1 += (double)a;
        d2 += (double)b;
      }
    t1[l] = d1;
    t2[l] = d2;
    low[l] = lo;
    high[l] = hi;
    zero[l] = z;
  }
  for (int l = 0; l < LANES; l++)
    {
      s1 += t1[l];
      s2 += t2[l];
      zeros += zero[l];
      least = low[l] < least ? low[l] : least;
      most = high[l] > most ? high[l] : most;
    }
  if (!(s2 <= (double)FLT_MAX) || (s2 < 1e-24 && least < most))
    return false;
  out->s1 += s1;
  out->s2 += s2;
  out->n_zero += zeros;
  out->min = (double)least < out->min ? (double)least : out->min;
  out->max = (double)most > out->max ? (double)most : out->max;
  return true;
}

static void
quick_stats_f32 (const void *xs, int64_t n, double shift, TdVectorStats *out)
{
  const float *x = xs;
  int64_t i = 0;

  for (; n - i >= QUICK_BLOCK; i += QUICK_BLOCK)
    if (!quick_block (x + i, (float)shift, out))
      stats_f32 (x + i, QUICK_BLOCK, shift, out);
  if (i < n)
    stats_f32 (x + i, n - i, shift, out);
}

#define FILL_NAME_(isa) td__vector_fill_stats_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  v->stats[TD_F32] = quick_stats_f32;
  v->stats[TD_F64] = stats_f64;
}
