/* The sum of an array: 128 bits over its bytes, and how many of its numbers are not finite, in
 * one look.
 *
 * What is wanted of it: speed, since all weights are read in each update; and that no two
 * different arrays have one by chance, however little they differ.  It is no protection against
 * somebody who looks for two that do.
 *
 * Eight lanes of 64 bits take a stripe of 64 bytes at a time, as eight words in the machine's
 * byte order.  With x = word ^ key, lane i grows by the product of x's halves, and its
 * neighbour i ^ 1 by the word itself, which no product can hide.  A block has 16 stripes with
 * 128 different keys; after it each lane is stirred, so that the order of blocks counts.  What
 * is missing of the last block is zeros, and the number of bytes goes in at the end, where
 * lanes become two sums.  Each step can be undone, so that lanes that differ once differ to the
 * end. Products and stirring are of the kind that XXH3 has (Collet, xxHash), for there an AVX2
 * processor takes 32 bytes in ten instructions; keys, end and sums are not those of XXH3.
 *
 * SPDX-License-Identifier: MIT */
#include "sums.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum
{
  LANES = 8,
  STRIPE = LANES * (int)sizeof (uint64_t),
  STRIPES = 16, /* of a block */
  BLOCK = STRIPES * STRIPE,
  LOOK = 16 * BLOCK, /* bytes, which stay in the cache for a second look */
  STIR = 47
};

static const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
static const uint64_t prime = 0x9e3779b1u;       /* the first of 32 bits from there */

/* Where one bit for each number says that it is not finite: its exponent has all bits, so that
 * one more in its lowest place comes out at the sign.  Zeros: integers. */
typedef struct
{
  uint64_t exponent, lowest, sign;
} Finite;

static const Finite finite_bits[TD__N_DTYPES]
    = { [TD_F32] = { 0x7f8000007f800000u, 0x0080000000800000u, 0x8000000080000000u },
        [TD_F64] = { 0x7ff0000000000000u, 0x0010000000000000u, 0x8000000000000000u },
        [TD_F16] = { 0x7c007c007c007c00u, 0x0400040004000400u, 0x8000800080008000u },
        [TD_BF16] = { 0x7f807f807f807f80u, 0x0080008000800080u, 0x8000800080008000u } };

static uint64_t keys[STRIPES * LANES]; /* zeros: not made yet */

_Static_assert((int)BLOCK == TD_SUM_BLOCK && (int)LANES == TD_SUM_LANES, "as sums.h says");

uint64_t
td__sum_mixed (uint64_t lane, uint64_t word)
{
  lane = (lane ^ word) * odd;
  return lane ^ lane >> 32;
}

/* --- whole blocks, by any processor --- */

/* Add them; nonzero: some number is not finite. */
static uint64_t
add_plainly (TdSummer *s, const unsigned char *b, size_t n_blocks)
{
  const Finite f = finite_bits[s->dtype];
  uint64_t any = 0;

  for (size_t i = 0; i < n_blocks; i++, b += BLOCK)
    {
      for (int k = 0; k < STRIPES * LANES; k++)
        {
          uint64_t word, x;

          memcpy (&word, b + (size_t)k * sizeof word, sizeof word);
          x = word ^ keys[k];
          s->lane[k % LANES] += (x & 0xffffffffu) * (x >> 32);
          s->lane[(k % LANES) ^ 1] += word;
          any |= (word & f.exponent) + f.lowest;
        }
      for (int k = 0; k < LANES; k++)
        s->lane[k] = (s->lane[k] ^ s->lane[k] >> STIR) * prime;
    }
  return any & f.sign;
}

/* --- the same by AVX2 --- */

#if defined(__x86_64__)
#define AVX2 __attribute__ ((target ("avx2")))

/* Two times four lanes; numbers times prime are put together from halves. */
AVX2 static uint64_t
add_by_avx2 (TdSummer *s, const unsigned char *b, size_t n_blocks)
{
  const Finite f = finite_bits[s->dtype];
  const __m256i exponent = _mm256_set1_epi64x ((long long)f.exponent),
                lowest = _mm256_set1_epi64x ((long long)f.lowest),
                by = _mm256_set1_epi64x ((long long)prime);
  __m256i lane[2], any[2] = { _mm256_setzero_si256 (), _mm256_setzero_si256 () };
  uint64_t seen[4], all = 0;

  for (int h = 0; h < 2; h++)
    lane[h] = _mm256_loadu_si256 ((const void *)(s->lane + 4 * h));
  for (size_t i = 0; i < n_blocks; i++, b += BLOCK)
    {
      for (int k = 0; k < STRIPES; k++)
        for (int h = 0; h < 2; h++)
          {
            const __m256i word = _mm256_loadu_si256 ((const void *)(b + STRIPE * k + 32 * h)),
                          key = _mm256_loadu_si256 ((const void *)(keys + LANES * k + 4 * h)),
                          x = _mm256_xor_si256 (word, key);

            lane[h]
                = _mm256_add_epi64 (lane[h], _mm256_mul_epu32 (x, _mm256_srli_epi64 (x, 32)));
            lane[h] = _mm256_add_epi64 (lane[h], _mm256_shuffle_epi32 (word, 0x4e));
            any[h] = _mm256_or_si256 (
                any[h], _mm256_add_epi64 (_mm256_and_si256 (word, exponent), lowest));
          }
      for (int h = 0; h < 2; h++)
        {
          const __m256i x = _mm256_xor_si256 (lane[h], _mm256_srli_epi64 (lane[h], STIR)),
                        high = _mm256_mul_epu32 (_mm256_srli_epi64 (x, 32), by);

          lane[h] = _mm256_add_epi64 (_mm256_mul_epu32 (x, by), _mm256_slli_epi64 (high, 32));
        }
    }
  for (int h = 0; h < 2; h++)
    _mm256_storeu_si256 ((void *)(s->lane + 4 * h), lane[h]);
  _mm256_storeu_si256 ((void *)seen, _mm256_or_si256 (any[0], any[1]));
  for (int k = 0; k < 4; k++)
    all |= seen[k];
  return all & f.sign;
}
#endif

static bool only_plainly;

void
td__sum_only_plainly (bool plainly)
{
  only_plainly = plainly;
}

static uint64_t
add (TdSummer *s, const unsigned char *b, size_t n_blocks)
{
#if defined(__x86_64__)
  if (!only_plainly && __builtin_cpu_supports ("avx2"))
    return add_by_avx2 (s, b, n_blocks);
#endif
  return add_plainly (s, b, n_blocks);
}

/* --- an array --- */

/* How many are not, where some are. */
static uint64_t
count (const Finite *f, const unsigned char *b, size_t n)
{
  uint64_t n_found = 0;

  for (size_t at = 0; at < n; at += sizeof (uint64_t))
    {
      uint64_t word;

      memcpy (&word, b + at, sizeof word);
      n_found += (uint64_t)__builtin_popcountll (((word & f->exponent) + f->lowest) & f->sign);
    }
  return n_found;
}

void
td__summer_begin (TdSummer *s, TdDtype dtype)
{
  *s = (TdSummer){ .dtype = dtype };
  for (int i = 0; i < LANES; i++)
    s->lane[i] = odd * (uint64_t)(2 * i + 1);
  for (int k = 0; k < STRIPES * LANES && keys[STRIPES * LANES - 1] == 0; k++)
    keys[k] = td__sum_mixed (td__sum_mixed (odd, (uint64_t)k + 1), odd);
}

void
td__summer_add (TdSummer *s, const void *bytes, size_t n)
{
  const unsigned char *b = bytes;
  const size_t whole = n / BLOCK * BLOCK;
  unsigned char last[BLOCK] = { 0 };

  for (size_t done = 0, size; done < whole; done += size)
    {
      size = whole - done < LOOK ? whole - done : LOOK;
      if (add (s, b + done, size / BLOCK))
        s->not_finite += count (&finite_bits[s->dtype], b + done, size);
    }
  if (whole < n)
    {
      memcpy (last, b + whole, n - whole);
      if (add (s, last, 1))
        s->not_finite += count (&finite_bits[s->dtype], last, BLOCK);
    }
  s->n += n;
}

void
td__summer_end (const TdSummer *s, TdRankSum *to)
{
  to->not_finite = s->not_finite;
  to->sum[0] = td__sum_mixed (s->n, odd);
  to->sum[1] = td__sum_mixed (odd, s->n);
  for (int i = 0; i < LANES; i++)
    {
      to->sum[0] = td__sum_mixed (to->sum[0], s->lane[i]);
      to->sum[1] = td__sum_mixed (to->sum[1], s->lane[LANES - 1 - i] ^ s->lane[i] << 1);
    }
}

void
td__sum_array (TdDtype dtype, const void *bytes, size_t n, TdRankSum *to)
{
  TdSummer s;

  td__summer_begin (&s, dtype);
  td__summer_add (&s, bytes, n);
  td__summer_end (&s, to);
}
