/* Philox4x32-10 for sixteen counters at once; compiled once per instruction set.  *Source*:
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 * SPDX-License-Identifier: MIT */
#include "vector.h"

#define ROUNDS 10

static void
philox (uint64_t counter, uint64_t key, uint32_t out[4 * TD_PHILOX_GROUP])
{
  _Pragma ("omp simd") for (int l = 0; l < TD_PHILOX_GROUP; l++)
  {
    const uint64_t at = counter + (uint64_t)l;
    uint32_t c0 = (uint32_t)at, c1 = (uint32_t)(at >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < ROUNDS; round++)
      {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
    out[4 * l] = c0;
    out[4 * l + 1] = c1;
    out[4 * l + 2] = c2;
    out[4 * l + 3] = c3;
  }
}

#define FILL_NAME_(isa) td__vector_fill_random_##isa
#define FILL_NAME(isa) FILL_NAME_ (isa)

void
FILL_NAME (TD_VECTOR_NAME) (TdVector *v)
{
  v->philox = philox;
}
