/* Random numbers: Philox4x32-10, a counter and a key to four numbers, so that any piece of the
 * stream can be made again anywhere.
 *
 * Number i of a call comes from counter offset + i / 4, lane i % 4.  Uniform: 24 bits (float)
 * or 32 (double) of the lane.  Normal: Box-Muller on the pair of lanes that i
 * belongs to, in double precision.  *Source*: Salmon et al., SC 2011; Box and Muller 1958.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "vector.h"

#include "../scalar-ops.h"

#include <math.h>

#define GROUP (4 * TD_PHILOX_GROUP) /* numbers made at once */

void
td__philox (const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
  td_philox (counter, key, out);
}

typedef struct
{
  TdRandomKind kind;
  TdRngKey key;
  double p;
  TdTensor *y;
} RandomWork;

/* Numbers from random bits, as double. */
static void
values (const RandomWork *w, const uint32_t *bits, double *v)
{
  bool is_double = w->y->dtype == TD_F64;

  if (w->kind == TD_RANDOM_NORMAL)
    {
      for (int i = 0; i < GROUP; i += 2)
        td_box_muller (bits[i], bits[i + 1], v + i);
      return;
    }
  for (int i = 0; i < GROUP; i++)
    v[i] = is_double ? (double)bits[i] * 0x1p-32 : (double)(bits[i] >> 8) * 0x1p-24;
  if (w->kind == TD_RANDOM_MASK)
    for (int i = 0; i < GROUP; i++)
      v[i] = v[i] >= w->p ? 1.0 / (1.0 - w->p) : 0.0;
}

/* The same for float, where it matters: 24 bits are compared and converted as integers. */
static void
float_values (const RandomWork *w, const uint32_t *bits, float *v)
{
  const int32_t threshold = (int32_t)ceil (w->p * 0x1p24);
  const float kept = (float)(1.0 / (1.0 - w->p));

  if (w->kind == TD_RANDOM_MASK)
    for (int i = 0; i < GROUP; i++)
      v[i] = (int32_t)(bits[i] >> 8) >= threshold ? kept : 0.0f;
  else
    for (int i = 0; i < GROUP; i++)
      v[i] = (float)(int32_t)(bits[i] >> 8) * 0x1p-24f;
}

/* Pieces begin at a whole block of four. */
static void
random_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const RandomWork *w = context;
  bool plain = w->kind != TD_RANDOM_NORMAL && w->y->dtype != TD_F64;

  for (int64_t i = begin; i < end; i += GROUP)
    {
      int64_t n = end - i < GROUP ? end - i : GROUP;
      uint32_t bits[GROUP];
      double v[GROUP];
      float f[GROUP];

      td__vector->philox (w->key.offset + (uint64_t)i / 4, w->key.seed, bits);
      if (plain)
        float_values (w, bits, f);
      else
        values (w, bits, v);
      if (w->y->dtype == TD_F64)
        {
          memcpy ((double *)w->y->data + i, v, (size_t)n * sizeof *v);
          continue;
        }
      for (int64_t k = 0; k < n && !plain; k++)
        f[k] = (float)v[k];
      if (w->y->dtype == TD_F32)
        memcpy ((float *)w->y->data + i, f, (size_t)n * sizeof *f);
      else
        td__half_store (w->y, i, n, f);
    }
}

TdStatus
td__cpu_random (TdDevice *d, TdRandomKind kind, TdRngKey key, double p, TdTensor *y)
{
  RandomWork w = { kind, key, p, y };

  if (y->dtype != TD_F32 && y->dtype != TD_F64 && !td__is_half (y->dtype))
    return TD_ERR_DTYPE;
  td__cpu_parallel (y->size, TD_CPU_GRAIN / 8, random_piece, &w);
  return TD_OK;
}

/* One number as it is kept: the mask of an operation lies in memory between its two kernels. */
static float
rounded (TdDtype dtype, float v)
{
  return dtype == TD_F16    ? td_float_of_f16 (td_f16_of_float (v))
         : dtype == TD_BF16 ? td_float_of_bf16 (td_bf16_of_float (v))
                            : v;
}

void
td__mask_make (TdRngKey key, double p, TdDtype dtype, int64_t i, int64_t n, void *mask)
{
  const int32_t threshold = (int32_t)ceil (p * 0x1p24);
  const double kept = 1.0 / (1.0 - p);
  const float kept_float = rounded (dtype, (float)kept);
  int64_t skip = i % 4;

  for (int64_t done = 0; done < n; skip = 0)
    {
      uint32_t bits[GROUP];
      const int64_t m = n - done < GROUP - skip ? n - done : GROUP - skip;

      td__vector->philox (key.offset + (uint64_t)(i + done) / 4, key.seed, bits);
      if (dtype == TD_F64)
        for (int64_t k = 0; k < m; k++)
          ((double *)mask)[done + k] = (double)bits[skip + k] * 0x1p-32 >= p ? kept : 0.0;
      else
        for (int64_t k = 0; k < m; k++)
          ((float *)mask)[done + k]
              = (int32_t)(bits[skip + k] >> 8) >= threshold ? kept_float : 0.0f;
      done += m;
    }
}
