/* Moments and counts of contiguous numbers in one pass; compiled once per instruction set.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#include <float.h>
#include <math.h>

#define LANES 16
#define BLOCK 4096 /* so that counts fit the lanes' type */

/* s1, s2: sums of (x - shift) and its square over finite x; sq: of x squared. */
#define STATS_LOOP(S, T, Count, limit)                                                         \
  static void stats_##S (const void *xs, int64_t n, double shift, TdVectorStats *out)          \
  {                                                                                            \
    const T *x = xs;                                                                           \
    const T k = (T)shift;                                                                      \
    T low[LANES], high[LANES];                                                                 \
    double s1[LANES] = { 0 }, s2[LANES] = { 0 }, sq[LANES] = { 0 };                            \
    int64_t i = 0;                                                                             \
                                                                                               \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        low[l] = INFINITY;                                                                     \
        high[l] = -INFINITY;                                                                   \
      }                                                                                        \
    while (i < n)                                                                              \
      {                                                                                        \
        int64_t end = n - i < BLOCK ? n : i + BLOCK;                                           \
        Count zero[LANES] = { 0 }, nan[LANES] = { 0 }, inf[LANES] = { 0 }, neg[LANES] = { 0 }; \
                                                                                               \
        for (; i < end; i += LANES)                                                            \
          {                                                                                    \
            T part[LANES];                                                                     \
            int m = end - i < LANES ? (int)(end - i) : LANES;                                  \
                                                                                               \
            /* A short tail is filled up with the shift, which adds nothing to s1 and s2. */   \
            for (int l = 0; l < LANES; l++)                                                    \
              part[l] = l < m ? x[i + l] : k;                                                  \
            _Pragma ("omp simd") for (int l = 0; l < LANES; l++)                               \
            {                                                                                  \
              const T v = part[l];                                                             \
              const bool finite = v >= -(T)limit && v <= (T)limit;                             \
              const double e = finite ? (double)v : (double)k;                                 \
              const double f = e - (double)k;                                                  \
                                                                                               \
              zero[l] += v == 0 ? 1 : 0;                                                       \
              nan[l] += v != v ? 1 : 0;                                                        \
              inf[l] += v > (T)limit ? 1 : 0;                                                  \
              neg[l] += v < -(T)limit ? 1 : 0;                                                 \
              low[l] = finite && v < low[l] ? v : low[l];                                      \
              high[l] = finite && v > high[l] ? v : high[l];                                   \
              s1[l] += f;                                                                      \
              s2[l] += f * f;                                                                  \
              sq[l] += e * e;                                                                  \
            }                                                                                  \
            if (m < LANES)                                                                     \
              {                                                                                \
                out->n_filled += LANES - m;                                                    \
                out->n_filled_zero += k == 0 ? LANES - m : 0;                                  \
              }                                                                                \
          }                                                                                    \
        for (int l = 0; l < LANES; l++)                                                        \
          {                                                                                    \
            out->n_zero += (int64_t)zero[l];                                                   \
            out->n_nan += (int64_t)nan[l];                                                     \
            out->n_pos_inf += (int64_t)inf[l];                                                 \
            out->n_neg_inf += (int64_t)neg[l];                                                 \
          }                                                                                    \
      }                                                                                        \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        out->min = (double)low[l] < out->min ? (double)low[l] : out->min;                      \
        out->max = (double)high[l] > out->max ? (double)high[l] : out->max;                    \
        out->s1 += s1[l];                                                                      \
        out->s2 += s2[l];                                                                      \
        out->sum_squares += sq[l];                                                             \
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
