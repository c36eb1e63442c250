/* Statistics of arrays: two passes over blocks that fit the first cache level, so that the
 * mean and the squared differences are as exact as float64 allows.
 * SPDX-License-Identifier: MIT */
#include "td-tape-writer.h"

#include <math.h>
#include <string.h>

#define BLOCK 1024

/* Convert `n` elements from index `from` on to float64. */
typedef void (*Load) (const void *data, uint64_t from, uint32_t n, double *out);

#define LOADER(name, type)                                                                     \
  static void name (const void *data, uint64_t from, uint32_t n, double *out)                  \
  {                                                                                            \
    const type *x = (const type *)data + from;                                                 \
    for (uint32_t i = 0; i < n; i++)                                                           \
      out[i] = (double)x[i];                                                                   \
  }

LOADER (load_f32, float)
LOADER (load_f64, double)
LOADER (load_i32, int32_t)
LOADER (load_i64, int64_t)
LOADER (load_u8, uint8_t)

static double
half_to_double (uint16_t h)
{
  int exponent = h >> 10 & 31;
  double mantissa = h & 1023, value;

  if (exponent == 31)
    value = mantissa != 0 ? (double)NAN : (double)INFINITY;
  else
    value = exponent ? ldexp (1024 + mantissa, exponent - 25) : ldexp (mantissa, -24);
  return h >> 15 ? -value : value;
}

static void
load_f16 (const void *data, uint64_t from, uint32_t n, double *out)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = half_to_double (((const uint16_t *)data)[from + i]);
}

static void
load_bf16 (const void *data, uint64_t from, uint32_t n, double *out)
{
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t bits = (uint32_t)((const uint16_t *)data)[from + i] << 16;
      float x;

      memcpy (&x, &bits, sizeof x);
      out[i] = (double)x;
    }
}

static const Load loads[TD_TAPE_N_DTYPES] = {
  [TD_TAPE_F32] = load_f32,   [TD_TAPE_F64] = load_f64, [TD_TAPE_F16] = load_f16,
  [TD_TAPE_BF16] = load_bf16, [TD_TAPE_I32] = load_i32, [TD_TAPE_I64] = load_i64,
  [TD_TAPE_U8] = load_u8,     [TD_TAPE_BOOL] = load_u8,
};

/* Bin of a finite x that is not 0, from its exponent bits. */
static unsigned
bin_of (double x)
{
  uint64_t bits;
  int exponent;

  memcpy (&bits, &x, sizeof bits);
  exponent = (int)(bits >> 52 & 2047) - 1023 - TD_TAPE_STATS_MIN_EXPONENT;
  return exponent < 0                     ? 0
         : exponent >= TD_TAPE_STATS_BINS ? TD_TAPE_STATS_BINS - 1
                                          : (unsigned)exponent;
}

/* Count what is not finite in `x` and close the gap; returns how many are left. */
static uint32_t
drop_non_finite (double *x, uint32_t n, TdTapeStats *stats)
{
  uint32_t kept = 0;

  for (uint32_t i = 0; i < n; i++)
    if (isfinite (x[i]))
      x[kept++] = x[i];
    else if (isnan (x[i]))
      stats->n_nan++;
    else if (x[i] > 0)
      stats->n_pos_inf++;
    else
      stats->n_neg_inf++;
  return kept;
}

typedef struct
{
  double sum, squares, min, max;
  uint64_t zeros;
} Sums;

/* Four lanes each, so that the additions do not wait for one another. */
static Sums
sums_of (const double *x, uint32_t n)
{
  double s[4] = { 0 }, q[4] = { 0 }, lo[4], hi[4];
  uint64_t z[4] = { 0 };
  uint32_t i = 0;
  Sums r = { 0 };

  for (int k = 0; k < 4; k++)
    {
      lo[k] = (double)INFINITY;
      hi[k] = -(double)INFINITY;
    }
  for (; i < n; i++)
    {
      uint32_t k = i & 3;

      s[k] += x[i];
      q[k] += x[i] * x[i];
      lo[k] = x[i] < lo[k] ? x[i] : lo[k];
      hi[k] = x[i] > hi[k] ? x[i] : hi[k];
      z[k] += x[i] == 0;
    }
  r.sum = s[0] + s[1] + s[2] + s[3];
  r.squares = q[0] + q[1] + q[2] + q[3];
  r.min = fmin (fmin (lo[0], lo[1]), fmin (lo[2], lo[3]));
  r.max = fmax (fmax (hi[0], hi[1]), fmax (hi[2], hi[3]));
  r.zeros = z[0] + z[1] + z[2] + z[3];
  return r;
}

/* Add a block of finite elements to mean and m2 (Chan's pairwise update). */
static void
merge_block (TdTapeStats *stats, uint64_t before, const double *x, uint32_t n, double *squares)
{
  Sums r = sums_of (x, n);
  double mean = r.sum / n, m2 = 0, delta, total = (double)before + n;

  for (uint32_t i = 0; i < n; i++)
    m2 += (x[i] - mean) * (x[i] - mean);
  delta = mean - stats->mean;
  stats->m2 += m2 + delta * delta * (double)before * n / total;
  stats->mean += delta * n / total;
  stats->min = r.min < stats->min ? r.min : stats->min;
  stats->max = r.max > stats->max ? r.max : stats->max;
  stats->n_zero += r.zeros;
  *squares += r.squares;
}

static void
count_bins (const void *data, Load load, uint64_t n, uint64_t seed, TdTapeStats *stats)
{
  uint64_t stride = (n + TD_TAPE_STATS_SAMPLE - 1) / TD_TAPE_STATS_SAMPLE;
  double x;

  if (n == 0)
    return;
  for (uint64_t i = stride > 1 ? seed % stride : 0; i < n; i += stride)
    {
      load (data, i, 1, &x);
      stats->n_sampled++;
      if (isfinite (x) && x != 0)
        stats->bins[bin_of (x)]++;
    }
}

void
td_tape_measure (const void *data, unsigned dtype, uint64_t n, uint64_t seed,
                 TdTapeStats *stats)
{
  double block[BLOCK], squares = 0;
  uint64_t finite = 0;
  Load load = dtype < TD_TAPE_N_DTYPES ? loads[dtype] : NULL;

  memset (stats, 0, sizeof *stats);
  stats->n = n;
  stats->min = (double)INFINITY;
  stats->max = -(double)INFINITY;
  for (uint64_t from = 0; load != NULL && from < n; from += BLOCK)
    {
      uint32_t count = n - from < BLOCK ? (uint32_t)(n - from) : BLOCK, kept;

      load (data, from, count, block);
      kept = drop_non_finite (block, count, stats);
      if (n <= TD_TAPE_STATS_SAMPLE)
        for (uint32_t i = 0; i < kept; i++)
          if (block[i] != 0)
            stats->bins[bin_of (block[i])]++;
      if (kept > 0)
        merge_block (stats, finite, block, kept, &squares);
      finite += kept;
    }
  if (n <= TD_TAPE_STATS_SAMPLE)
    stats->n_sampled = load ? n : 0;
  else if (load != NULL)
    count_bins (data, load, n, seed, stats);
  stats->l2 = sqrt (squares);
  if (finite == 0)
    stats->min = stats->max = stats->mean = (double)NAN;
}
