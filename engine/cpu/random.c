/* Random numbers: Philox4x32-10, a counter and a key to four numbers, so that any piece of the
 * stream can be made again anywhere.
 *
 * Number i of a call comes from counter offset + i / 4, lane i % 4.  Uniform: 24 bits (float)
 * or 32 (double) of the lane.  Normal: Box-Muller on the pair of lanes that i
 * belongs to, in double precision.  *Source*: Salmon et al., SC 2011; Box and Muller 1958.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"

#include <math.h>

#define ROUNDS 10

void
td__philox (const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];

  for (int round = 0; round < ROUNDS; round++)
    {
      uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;

      c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
      c1 = (uint32_t)p1;
      c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
      c3 = (uint32_t)p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

typedef struct
{
  TdRandomKind kind;
  TdRngKey key;
  double p;
  TdTensor *y;
} RandomWork;

static void
four_at (const TdRngKey *key, uint64_t block, uint32_t out[4])
{
  const uint64_t index = key->offset + block;
  const uint32_t counter[4] = { (uint32_t)index, (uint32_t)(index >> 32), 0, 0 };
  const uint32_t seed[2] = { (uint32_t)key->seed, (uint32_t)(key->seed >> 32) };

  td__philox (counter, seed, out);
}

/* Two normal numbers from two of 32 bits; (bits + 1/2) 2^-32 is never 0. */
static void
box_muller (uint32_t a, uint32_t b, double out[2])
{
  double r = sqrt (-2.0 * log (((double)a + 0.5) * 0x1p-32));
  double angle = 6.283185307179586477 * ((double)b * 0x1p-32);

  out[0] = r * cos (angle);
  out[1] = r * sin (angle);
}

static void
four_values (const RandomWork *w, const uint32_t bits[4], double v[4])
{
  bool is_double = w->y->dtype == TD_F64;

  if (w->kind == TD_RANDOM_NORMAL)
    {
      box_muller (bits[0], bits[1], v);
      box_muller (bits[2], bits[3], v + 2);
      return;
    }
  for (int l = 0; l < 4; l++)
    v[l] = is_double ? (double)bits[l] * 0x1p-32 : (double)(bits[l] >> 8) * 0x1p-24;
  if (w->kind == TD_RANDOM_MASK)
    for (int l = 0; l < 4; l++)
      v[l] = v[l] >= w->p ? 1.0 / (1.0 - w->p) : 0.0;
}

static void
random_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const RandomWork *w = context;
  float block[TD_HALF_BLOCK];
  int64_t n_block = 0;

  for (int64_t i = begin; i < end;)
    {
      uint32_t bits[4];
      double v[4];

      four_at (&w->key, (uint64_t)i / 4, bits);
      four_values (w, bits, v);
      for (int lane = (int)(i % 4); lane < 4 && i < end; lane++, i++)
        if (w->y->dtype == TD_F64)
          ((double *)w->y->data)[i] = v[lane];
        else if (w->y->dtype == TD_F32)
          ((float *)w->y->data)[i] = (float)v[lane];
        else
          block[n_block++] = (float)v[lane];
      if (n_block > 0 && (n_block > TD_HALF_BLOCK - 4 || i == end))
        {
          td__half_store (w->y, i - n_block, n_block, block);
          n_block = 0;
        }
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
