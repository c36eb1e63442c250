/* Statistics of an array: counts and moments of all elements, a histogram of exponents from all
 * of them or, in large arrays, from a stride sample whose start the seed chooses.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "vector.h"

#include <math.h>

#define BINS 32
#define MIN_EXPONENT (-24)
#define BLOCK 512
#define PIECE 4096 /* a multiple of the vector loops' lanes; with its sample it stays in L1 */

/* Elements [i, i + n) with stride `step` as double. */
static void
load (const TdTensor *x, int64_t i, int64_t step, int64_t n, double *block)
{
  TdShape shape = { 0 };

  if (x->dtype == TD_F32)
    for (int64_t k = 0; k < n; k++)
      block[k] = (double)((const float *)x->data)[i + k * step];
  else if (x->dtype == TD_F64)
    for (int64_t k = 0; k < n; k++)
      block[k] = ((const double *)x->data)[i + k * step];
  else
    for (int64_t k = 0; k < n; k++)
      {
        size_t bytes = td__dtype_sizes[x->dtype];
        TdTensor from
            = { (char *)x->data + (size_t)(i + k * step) * bytes, &shape, 1, x->dtype };
        TdTensor to = { block + k, &shape, 1, TD_F64 };

        td__cpu_cast (NULL, &from, &to);
      }
}

/* Bin exponent + 24, as device.h says; finite and not 0 only. */
static void
count_exponents (const double *x, int64_t n, uint32_t *bins)
{
  for (int64_t i = 0; i < n; i++)
    {
      uint64_t bits;
      int exponent, bin;

      memcpy (&bits, &x[i], sizeof bits);
      exponent = (int)(bits >> 52 & 2047);
      if (exponent == 2047 || (bits << 1) == 0)
        continue;
      bin = exponent - 1023 - MIN_EXPONENT;
      bins[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    }
}

/* Which elements the histogram is from: every `step`th, from `start` on. */
typedef struct
{
  uint64_t start, step, n;
} Sample;

static Sample
sample_of (uint64_t n, uint64_t max_samples, uint64_t seed)
{
  Sample s = { 0, 1, n };

  if (max_samples > 0 && n > max_samples)
    {
      s.step = (n + max_samples - 1) / max_samples;
      seed ^= seed >> 33; /* a well mixed start (MurmurHash3's finisher) */
      seed *= 0xFF51AFD7ED558CCDu;
      seed ^= seed >> 33;
      s.start = seed % s.step;
      s.n = n > s.start ? (n - s.start + s.step - 1) / s.step : 0;
    }
  return s;
}

/* Moments and histogram of float, where most arrays are: in pieces that stay in the cache
 * between the two.  Exponents are counted by their 8 bits, in four tables that take turns, so
 * that equal neighbours do not wait for each other. */
static void
float_stats (const TdTensor *x, double shift, const Sample *sample, TdVectorStats *v,
             uint32_t *bins)
{
  const float *numbers = x->data;
  const uint32_t *bits = x->data;
  uint32_t count[4][256] = { { 0 } };
  uint64_t n = (uint64_t)x->size, at = sample->start;

  for (uint64_t i = 0; i < n; i += PIECE)
    {
      uint64_t end = n - i < PIECE ? n : i + PIECE;

      td__vector->stats[TD_F32](numbers + i, (int64_t)(end - i), shift, v);
      for (unsigned turn = 0; at < end; at += sample->step, turn++)
        {
          uint32_t b = bits[at] << 1;

          count[turn & 3][b == 0 ? 255 : b >> 24]++;
        }
    }
  for (int e = 0; e < 255; e++) /* 255: NaN, infinities, and zeros put there */
    {
      int bin = e - 127 - MIN_EXPONENT;

      bins[bin < 0       ? 0
           : bin >= BINS ? BINS - 1
                         : bin]
          += count[0][e] + count[1][e] + count[2][e] + count[3][e];
    }
}

static void
histogram (const TdTensor *x, const Sample *sample, uint32_t *bins)
{
  double block[BLOCK];

  for (uint64_t i = 0; i < sample->n; i += BLOCK)
    {
      int64_t m = (int64_t)(sample->n - i < BLOCK ? sample->n - i : BLOCK);

      load (x, (int64_t)(sample->start + i * sample->step), (int64_t)sample->step, m, block);
      count_exponents (block, m, bins);
    }
}

/* The first finite element: sums are made about it, so that the variance keeps its digits. */
static double
first_finite (const TdTensor *x)
{
  for (int64_t i = 0; i < x->size; i++)
    {
      double v;

      load (x, i, 1, 1, &v);
      if (isfinite (v))
        return v;
    }
  return 0;
}

TdStatus
td__cpu_stats (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed,
               TdStats *out)
{
  TdVectorStats v = { .min = INFINITY, .max = -INFINITY };
  const Sample sample = sample_of ((uint64_t)x->size, max_samples, seed);
  double shift = first_finite (x);
  double count;

  memset (out, 0, sizeof *out);
  if (x->dtype == TD_F32)
    float_stats (x, shift, &sample, &v, out->exponent);
  else if (x->dtype == TD_F64)
    td__vector->stats[TD_F64](x->data, x->size, shift, &v);
  else
    for (int64_t i = 0; i < x->size; i += BLOCK)
      {
        double block[BLOCK];
        int64_t n = x->size - i < BLOCK ? x->size - i : BLOCK;

        load (x, i, 1, n, block);
        td__vector->stats[TD_F64](block, n, shift, &v);
      }
  out->n = (uint64_t)x->size;
  out->n_zero = (uint64_t)(v.n_zero - v.n_filled_zero);
  out->n_nan = (uint64_t)v.n_nan;
  out->n_pos_inf = (uint64_t)v.n_pos_inf;
  out->n_neg_inf = (uint64_t)v.n_neg_inf;
  count = (double)(out->n - out->n_nan - out->n_pos_inf - out->n_neg_inf);
  if (count > 0)
    {
      out->min = v.min;
      out->max = v.max;
      out->mean = shift + v.s1 / count;
      out->m2 = v.s2 - v.s1 * (v.s1 / count);
      out->m2 = out->m2 > 0 ? out->m2 : 0;
      /* The shift is an element, so its square is no more than the sum that is left over. */
      out->sum_squares = v.s2 + 2 * shift * v.s1 + count * shift * shift;
      out->sum_squares = out->sum_squares > 0 ? out->sum_squares : 0;
    }
  else
    out->min = out->max = out->mean = NAN;
  out->n_sampled = sample.n;
  if (x->dtype != TD_F32)
    histogram (x, &sample, out->exponent);
  return TD_OK;
}
