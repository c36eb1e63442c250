/* Statistics of arrays against closed forms.
 * SPDX-License-Identifier: MIT */
#include "../support/td-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "td-tape-writer.h"

static void
stats__of_1_to_n_are_the_closed_forms (void **state)
{
  /* 1 .. n: mean (n + 1) / 2, m2 n (n^2 - 1) / 12, sum of squares n (n + 1) (2 n + 1) / 6 */
  const uint64_t n = 5000;
  float *x = malloc (n * sizeof *x);
  TdTapeStats s;

  for (uint64_t i = 0; i < n; i++)
    x[i] = (float)(i + 1);
  td_tape_measure (x, TD_TAPE_F32, n, 0, &s);
  assert_true (s.min == 1 && s.max == 5000);
  assert_true (fabs (s.mean - 2500.5) < 1e-9);
  assert_true (fabs (s.m2 / (5000.0 * (25e6 - 1) / 12) - 1) < 1e-12);
  assert_true (fabs (s.l2 / sqrt (5000.0 * 5001 * 10001 / 6) - 1) < 1e-12);
  assert_int_equal (s.n_sampled, n);
  free (x);
}

static void
stats__count_zeros_and_what_is_not_finite (void **state)
{
  const double x[] = { 0, -0.0, NAN, INFINITY, INFINITY, -INFINITY, 3, -1 };
  TdTapeStats s;

  td_tape_measure (x, TD_TAPE_F64, 8, 0, &s);
  assert_int_equal (s.n_zero, 2);
  assert_int_equal (s.n_nan, 1);
  assert_int_equal (s.n_pos_inf, 2);
  assert_int_equal (s.n_neg_inf, 1);
  assert_true (s.min == -1 && s.max == 3 && s.mean == 0.5);
  td_tape_measure (x + 2, TD_TAPE_F64, 1, 0, &s);
  assert_true (isnan (s.mean) && isnan (s.min) && isnan (s.max));
}

static void
stats__put_magnitudes_into_bins_of_their_exponent (void **state)
{
  const float x[] = { 1, -1.99f, 2, 0.5f, 1e-30f, 1e30f, 0 };
  TdTapeStats s;

  td_tape_measure (x, TD_TAPE_F32, 7, 0, &s);
  assert_int_equal (s.bins[24], 2); /* 1 <= |x| < 2 */
  assert_int_equal (s.bins[25], 1);
  assert_int_equal (s.bins[23], 1);
  assert_int_equal (s.bins[0], 1);
  assert_int_equal (s.bins[31], 1);
}

static void
stats__of_large_arrays_are_exact_but_for_the_sampled_histogram (void **state)
{
  const uint64_t n = 300000;
  float *x = calloc (n, sizeof *x);
  uint64_t in_bins = 0;
  TdTapeStats s;

  for (uint64_t i = 0; i < n; i++)
    x[i] = 1;
  x[123457] = NAN;
  td_tape_measure (x, TD_TAPE_F32, n, 7, &s);
  assert_int_equal (s.n_nan, 1); /* exact, whether the sample meets it or not */
  assert_true (s.mean == 1 && s.m2 == 0);
  assert_true (s.n_sampled <= TD_TAPE_STATS_SAMPLE && s.n_sampled > TD_TAPE_STATS_SAMPLE / 2);
  for (unsigned k = 0; k < TD_TAPE_STATS_BINS; k++)
    in_bins += s.bins[k];
  assert_true (in_bins + 1 >= s.n_sampled && in_bins <= s.n_sampled);
  free (x);
}

static void
stats__read_every_type (void **state)
{
  const uint16_t f16[] = { 0x3c00, 0xc000, 0x0001, 0x7c00 }; /* 1, -2, 2^-24, inf */
  const uint16_t bf16[] = { 0x3f80, 0xc000 };                /* 1, -2 */
  const int32_t i32[] = { -5, 7 };
  const int64_t i64[] = { -5, 7 };
  const uint8_t u8[] = { 0, 255 };
  TdTapeStats s;

  td_tape_measure (f16, TD_TAPE_F16, 4, 0, &s);
  assert_true (s.max == 1 && s.min == -2 && s.n_pos_inf == 1 && s.bins[0] == 1);
  td_tape_measure (bf16, TD_TAPE_BF16, 2, 0, &s);
  assert_true (s.mean == -0.5);
  td_tape_measure (i32, TD_TAPE_I32, 2, 0, &s);
  assert_true (s.mean == 1);
  td_tape_measure (i64, TD_TAPE_I64, 2, 0, &s);
  assert_true (s.min == -5);
  td_tape_measure (u8, TD_TAPE_U8, 2, 0, &s);
  assert_true (s.max == 255 && s.n_zero == 1);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (stats__of_1_to_n_are_the_closed_forms),
    td_test (stats__count_zeros_and_what_is_not_finite),
    td_test (stats__put_magnitudes_into_bins_of_their_exponent),
    td_test (stats__of_large_arrays_are_exact_but_for_the_sampled_histogram),
    td_test (stats__read_every_type),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
