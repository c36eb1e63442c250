/* Moments and counts of contiguous numbers in one pass; compiled once per instruction set.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#include <float.h>
#include <math.h>

#define LANES 16
#define BLOCK 4096 /* so that counts fit the lanes' type */

/* s1, s2: sums of (x - shift) and its square over finite x; sq: of x squared.  Counts are kept
 * in lanes of the element's size, emptied after each block. */
#define STATS_LOOP(S, T, Count, limit)                                                         \
  typedef struct                                                                               \
  {                                                                                            \
    double s1[LANES], s2[LANES], sq[LANES];                                                    \
    T low[LANES], high[LANES];                                                                 \
    Count zero[LANES], nan[LANES], inf[LANES], neg[LANES];                                     \
  } Lanes_##S;                                                                                 \
                                                                                               \
  static inline __attribute__ ((always_inline)) void lanes_##S (Lanes_##S *restrict a,         \
                                                                const T *restrict x, T k)      \
  {                                                                                            \
    _Pragma ("omp simd") for (int l = 0; l < LANES; l++)                                       \
    {                                                                                          \
      const T v = x[l];                                                                        \
      const T e = v >= -(T)limit && v <= (T)limit ? v : k;                                     \
      const double d = (double)e, f = d - (double)k;                                           \
                                                                                               \
      a->zero[l] += v == 0 ? 1 : 0;                                                            \
      a->nan[l] += v != v ? 1 : 0;                                                             \
      a->inf[l] += v > (T)limit ? 1 : 0;                                                       \
      a->neg[l] += v < -(T)limit ? 1 : 0;                                                      \
      a->low[l] = e < a->low[l] ? e : a->low[l];                                               \
      a->high[l] = e > a->high[l] ? e : a->high[l];                                            \
      a->s1[l] += f;                                                                           \
      a->s2[l] += f * f;                                                                       \
      a->sq[l] += d * d;                                                                       \
    }                                                                                          \
  }                                                                                            \
                                                                                               \
  static void empty_counts_##S (Lanes_##S *a, TdVectorStats *out)                              \
  {                                                                                            \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        out->n_zero += (int64_t)a->zero[l];                                                    \
        out->n_nan += (int64_t)a->nan[l];                                                      \
        out->n_pos_inf += (int64_t)a->inf[l];                                                  \
        out->n_neg_inf += (int64_t)a->neg[l];                                                  \
        a->zero[l] = a->nan[l] = a->inf[l] = a->neg[l] = 0;                                    \
      }                                                                                        \
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
        int64_t end = n - i < BLOCK ? i + (n - i) / LANES * LANES : i + BLOCK;                 \
                                                                                               \
        for (; i < end; i += LANES)                                                            \
          lanes_##S (&a, x + i, k);                                                            \
        empty_counts_##S (&a, out);                                                            \
      }                                                                                        \
    if (i < n)                                                                                 \
      {                                                                                        \
        T part[LANES]; /* filled up with the shift, which adds nothing to s1 and s2 */         \
                                                                                               \
        for (int l = 0; l < LANES; l++)                                                        \
          part[l] = i + l < n ? x[i + l] : k;                                                  \
        lanes_##S (&a, part, k);                                                               \
        empty_counts_##S (&a, out);                                                            \
        out->n_filled += LANES - (n - i);                                                      \
        out->n_filled_zero += k == 0 ? LANES - (n - i) : 0;                                    \
      }                                                                                        \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        out->min = (double)a.low[l] < out->min ? (double)a.low[l] : out->min;                  \
        out->max = (double)a.high[l] > out->max ? (double)a.high[l] : out->max;                \
        out->s1 += a.s1[l];                                                                    \
        out->s2 += a.s2[l];                                                                    \
        out->sum_squares += a.sq[l];                                                           \
      }                                                                                        \
  }

STATS_LOOP (f32, float, int32_t, FLT_MAX)
STATS_LOOP (f64, double, int64_t, DBL_MAX)

#define FILL_NAME_(isa) td__vector_fill_stats_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  v->stats[TD_F32] = stats_f32;
  v->stats[TD_F64] = stats_f64;
}
