/* The text of random numbers, those of the engine's own stream, for C programs: see products.c.
 *
 * *Source*: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; Box and
 * Muller, 1958.
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* Philox4x32-10: four numbers from a place of the stream. */
static void
philox (uint64_t counter, uint64_t seed, uint32_t out[4])
{
  uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

  for (int round = 0; round < 10; round++)
    {
      const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;

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

/* n numbers from a place of the stream: kind 0 uniform, 1 normal, 2 the mask of dropout, 0 with
 * probability p, else 1 / (1 - p).  Of the bits a float takes 24. */
static void
draw (int kind, uint64_t seed, uint64_t counter, double p, float *y, long n)
{
  const double turn = 6.283185307179586477 * 2.3283064365386963e-10;
  const int all = sizeof *y > 4;
  uint32_t bits[4] = { 0 };

  for (long i = 0; i < n; i++)
    {
      double u;

      if (i % 4 == 0)
        philox (counter + (uint64_t)i / 4, seed, bits);
      u = (double)(all ? bits[i % 4] : bits[i % 4] & 0xFFFFFF00u) * 2.3283064365386963e-10;
      if (kind == 1)
        {
          const uint32_t *pair = bits + i % 4 / 2 * 2;
          const double r = sqrt (-2 * log (((double)pair[0] + 0.5) * 2.3283064365386963e-10));
          const double angle = turn * (double)pair[1];

          u = r * (i % 2 == 0 ? cos (angle) : sin (angle));
        }
      else if (kind == 2)
        u = u >= p ? 1 / (1 - p) : 0;
      y[i] = ROUND ((float)u);
    }
}
