/* What the sum of an array is: by its description, written once more in few lines; by what
 * must change it; and by what it counts.
 *
 * SPDX-License-Identifier: MIT */
#include "ranks/sums.h"

#include "td-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  LANES = 8,
  WORDS = 128, /* of a block */
  LARGE = 70000
};

static TdRankSum
sum_of (TdDtype dtype, const void *bytes, size_t n)
{
  TdRankSum sum = { .kind = TD_RANK_SUM_PARAMETER };

  td__sum_array (dtype, bytes, n, &sum);
  return sum;
}

static bool
same (TdRankSum a, TdRankSum b)
{
  return memcmp (a.sum, b.sum, sizeof a.sum) == 0;
}

/* Bytes that have no order. */
static void
fill (unsigned char *b, size_t n, uint32_t seed)
{
  for (size_t i = 0; i < n; i++)
    {
      seed = seed * 1664525u + 1013904223u;
      b[i] = (unsigned char)(seed >> 24);
    }
}

static uint64_t
mixed (uint64_t a, uint64_t b)
{
  const uint64_t x = (a ^ b) * 0x9e3779b97f4a7c15u;

  return x ^ x >> 32;
}

/* The description at the head of sum-array.c, one word after the other. */
static TdRankSum
described (const unsigned char *bytes, size_t n)
{
  const uint64_t odd = 0x9e3779b97f4a7c15u;
  uint64_t lane[LANES], word;
  TdRankSum sum = { .sum = { mixed (n, odd), mixed (odd, n) } };

  for (int i = 0; i < LANES; i++)
    lane[i] = odd * (uint64_t)(2 * i + 1);
  for (size_t w = 0; w < (n + 1023) / 1024 * WORDS; w++)
    {
      const size_t at = 8 * w, i = w % LANES;
      uint64_t x;

      word = 0;
      if (at < n)
        memcpy (&word, bytes + at, n - at < 8 ? n - at : 8);
      x = word ^ mixed (mixed (odd, w % WORDS + 1), odd);
      lane[i] += (uint32_t)x * (x >> 32);
      lane[i ^ 1] += word;
      for (int k = 0; k < LANES && w % WORDS == WORDS - 1; k++)
        lane[k] = (lane[k] ^ lane[k] >> 47) * 0x9e3779b1u;
    }
  for (int i = 0; i < LANES; i++)
    {
      sum.sum[0] = mixed (sum.sum[0], lane[i]);
      sum.sum[1] = mixed (sum.sum[1], lane[LANES - 1 - i] ^ lane[i] << 1);
    }
  return sum;
}

static void
sum__is_the_one_described_on_every_processor (void **state)
{
  unsigned char *b = malloc (LARGE + 8);

  (void)state;
  fill (b, LARGE + 8, 1);
  for (int plainly = 0; plainly < 2; plainly++)
    for (size_t n = 0; n <= LARGE; n = n < 3000 ? n + 1 : 2 * n + 1)
      {
        td__sum_only_plainly (plainly);
        assert_true (same (sum_of (TD_U8, b + n % 8, n), described (b + n % 8, n)));
      }
  td__sum_only_plainly (false);
  free (b);
}

static void
sum__changes_with_each_bit (void **state)
{
  enum
  {
    N = 3 * 1024 + 40
  };
  unsigned char b[N];
  TdRankSum before;

  (void)state;
  fill (b, N, 2);
  before = sum_of (TD_F32, b, N);
  for (int i = 0; i < 8 * N; i++)
    {
      b[i / 8] ^= (unsigned char)(1 << i % 8);
      assert_false (same (before, sum_of (TD_F32, b, N)));
      b[i / 8] ^= (unsigned char)(1 << i % 8);
    }
  assert_true (same (before, sum_of (TD_F32, b, N)));
}

/* Numbers that lose their sign, or a last bit, by two: words that could make up for each other.
 */
static void
sum__changes_with_each_two_of_equal_bits (void **state)
{
  static const uint32_t bits[] = { 1, 0x80000000u };
  uint32_t w[300];
  TdRankSum before;

  (void)state;
  for (int zeros = 0; zeros < 2; zeros++)
    for (int k = 0; k < 2; k++)
      {
        fill ((unsigned char *)w, sizeof w, 3);
        if (zeros)
          memset (w, 0, sizeof w);
        before = sum_of (TD_F32, w, sizeof w);
        for (int i = 0; i < 300; i++)
          for (int j = 0; j < i; j++)
            {
              w[i] ^= bits[k];
              w[j] ^= bits[k];
              assert_false (same (before, sum_of (TD_F32, w, sizeof w)));
              w[i] ^= bits[k];
              w[j] ^= bits[k];
            }
      }
}

static void
sum__changes_with_order_and_length (void **state)
{
  unsigned char b[8192], c[8192];
  TdRankSum sums[600];

  (void)state;
  fill (b, sizeof b, 4);
  for (size_t size = 4; size <= 4096; size *= 2) /* the first two pieces change places */
    {
      memcpy (c, b, sizeof c);
      memcpy (c, b + size, size);
      memcpy (c + size, b, size);
      assert_false (same (sum_of (TD_F32, b, sizeof b), sum_of (TD_F32, c, sizeof c)));
    }
  memset (b, 0, sizeof b);
  for (size_t n = 0; n < 600; n++)
    {
      sums[n] = sum_of (TD_U8, b, n);
      for (size_t k = 0; k < n; k++)
        assert_false (same (sums[n], sums[k]));
    }
}

/* An array of ones with `n` numbers, of which number `at` has these bits. */
static uint64_t
counted (TdDtype dtype, int n, int at, uint64_t one, uint64_t bits)
{
  const size_t size = td__dtype_sizes[dtype];
  unsigned char *b = malloc ((size_t)n * size);
  uint64_t found;

  for (int i = 0; i < n; i++)
    memcpy (b + (size_t)i * size, i == at ? &bits : &one, size); /* the low bytes are first */
  found = sum_of (dtype, b, (size_t)n * size).not_finite;
  free (b);
  return found;
}

static void
sum__counts_what_is_not_finite_in_every_place (void **state)
{
  static const struct
  {
    TdDtype dtype;
    uint64_t one, infinite, nan, below, largest; /* nan: and negative */
  } rows[] = {
    { TD_F32, 0x3f800000u, 0x7f800000u, 0xffc00001u, 0xff800000u, 0x7f7fffffu },
    { TD_F64, 0x3ff0000000000000u, 0x7ff0000000000000u, 0xfff8000000000001u,
      0xfff0000000000000u, 0x7fefffffffffffffu },
    { TD_F16, 0x3c00u, 0x7c00u, 0xfe01u, 0xfc00u, 0x7bffu },
    { TD_BF16, 0x3f80u, 0x7f80u, 0xffc1u, 0xff80u, 0x7f7fu },
  };

  (void)state;
  for (int plainly = 0; plainly < 2; plainly++)
    for (int r = 0; r < 4; r++)
      for (int at = 0; at < 1100; at += at < 70 || at > 1030 ? 1 : 7)
        {
          td__sum_only_plainly (plainly);
          assert_int_equal (counted (rows[r].dtype, 1100, at, rows[r].one, rows[r].infinite),
                            1);
          assert_int_equal (counted (rows[r].dtype, 1100, at, rows[r].one, rows[r].nan), 1);
          assert_int_equal (counted (rows[r].dtype, 1100, at, rows[r].one, rows[r].below), 1);
          assert_int_equal (counted (rows[r].dtype, 1100, at, rows[r].one, rows[r].largest), 0);
        }
  td__sum_only_plainly (false);
  assert_int_equal (counted (TD_F32, LARGE, -1, 0x7fc00000u, 0), LARGE);
  assert_int_equal (counted (TD_F16, LARGE, LARGE - 1, 0x7c00u, 0x3c00u), LARGE - 1);
  assert_int_equal (counted (TD_I64, 100, -1, UINT64_MAX, 0), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (sum__is_the_one_described_on_every_processor),
    cmocka_unit_test (sum__changes_with_each_bit),
    cmocka_unit_test (sum__changes_with_each_two_of_equal_bits),
    cmocka_unit_test (sum__changes_with_order_and_length),
    cmocka_unit_test (sum__counts_what_is_not_finite_in_every_place),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
