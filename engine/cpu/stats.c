/* Statistics of an array: counts and moments of all elements, a histogram of exponents from all
 * of them or, in large arrays, from a stride sample whose start the seed chooses.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "vector.h"

#include <math.h>

#define BINS 32
#define MIN_EXPONENT (-24)
#define BLOCK 512

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
        size_t bytes = td__cpu_dtype_bytes[x->dtype];
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

/* The same for float, where most arrays are: by the 8 bits of the exponent, in four tables that
 * take turns, so that equal neighbours do not wait for each other. */
static void
count_float_exponents (const uint32_t *x, uint64_t n, uint64_t step, uint32_t *bins)
{
  uint32_t count[4][256] = { { 0 } };
  uint64_t i = 0;

  for (; i < n; i++)
    {
      uint32_t bits = x[i * step] << 1;

      count[i & 3][bits == 0 ? 255 : bits >> 24]++;
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
histogram (const TdTensor *x, uint64_t max_samples, uint64_t seed, TdStats *out)
{
  uint64_t n = (uint64_t)x->size, step = 1, start = 0;
  double block[BLOCK];

  if (max_samples > 0 && n > max_samples)
    {
      step = (n + max_samples - 1) / max_samples;
      seed ^= seed >> 33; /* a well mixed start (MurmurHash3's finisher) */
      seed *= 0xFF51AFD7ED558CCDu;
      seed ^= seed >> 33;
      start = seed % step;
    }
  out->n_sampled = n > start ? (n - start + step - 1) / step : 0;
  if (x->dtype == TD_F32)
    {
      count_float_exponents ((const uint32_t *)x->data + start, out->n_sampled, step,
                             out->exponent);
      return;
    }
  for (uint64_t i = 0; i < out->n_sampled; i += BLOCK)
    {
      int64_t m = (int64_t)(out->n_sampled - i < BLOCK ? out->n_sampled - i : BLOCK);

      load (x, (int64_t)(start + i * step), (int64_t)step, m, block);
      count_exponents (block, m, out->exponent);
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
  double shift = first_finite (x);
  double count;

  memset (out, 0, sizeof *out);
  if (x->dtype == TD_F32 || x->dtype == TD_F64)
    td__vector->stats[x->dtype](x->data, x->size, shift, &v);
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
      /* What was put in the place of a missing or infinite number was the shift. */
      out->sum_squares
          = v.sum_squares - shift * shift * ((double)v.n_filled + (double)out->n - count);
      out->sum_squares = out->sum_squares > 0 ? out->sum_squares : 0;
    }
  else
    out->min = out->max = out->mean = NAN;
  histogram (x, max_samples, seed, out);
  return TD_OK;
}
