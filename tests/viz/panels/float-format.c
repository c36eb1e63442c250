/*
 * What narrow floats would lose, against a table of all their numbers: a value goes to the
 * nearest of them, found by search.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "gradient/td-float-format.h"
#include "td-test.h"

/* Formats by their bits, as their specifications have them. */
static const struct
{
  TdFloat format;
  int exponent_bits, mantissa_bits;
  gboolean
      has_infinity; /* the highest exponent has no numbers; else only its last one is none */
} kinds[] = {
  { TD_FLOAT_F16, 5, 10, TRUE },
  { TD_FLOAT_BF16, 8, 7, TRUE },
  { TD_FLOAT_E4M3, 4, 3, FALSE },
  { TD_FLOAT_E5M2, 5, 2, TRUE },
};

/* The magnitude of a code; the code after the last number is where infinity would begin. */
static double
decode (guint k, guint code)
{
  int m = kinds[k].mantissa_bits, bias = (1 << (kinds[k].exponent_bits - 1)) - 1;
  int exponent = (int)(code >> m), mantissa = (int)(code & ((1u << m) - 1));

  return exponent == 0 ? ldexp (mantissa, 1 - bias - m)
                       : ldexp ((1 << m) + mantissa, exponent - bias - m);
}

static guint
count_codes (guint k)
{
  guint all = 1u << (kinds[k].exponent_bits + kinds[k].mantissa_bits);
  return kinds[k].has_infinity ? all - (1u << kinds[k].mantissa_bits) : all - 1;
}

/* Nearest code, ties to the even one; count_codes (): past the largest. */
static guint
round_to (guint k, double magnitude)
{
  guint lo = 0, hi = count_codes (k);

  if (magnitude >= decode (k, hi))
    return hi;
  while (hi - lo > 1)
    {
      guint mid = (lo + hi) / 2;
      if (decode (k, mid) <= magnitude)
        lo = mid;
      else
        hi = mid;
    }
  double below = magnitude - decode (k, lo), above = decode (k, hi) - magnitude;
  return below < above || (below == above && lo % 2 == 0) ? lo : hi;
}

static TdTensor *
new_tensor (const double *values, gsize n)
{
  const gint64 dims[] = { (gint64)n };
  return td_tensor_new_live ("x", TD_TAPE_F64, 1, dims, values, n * sizeof (double));
}

static void
check_against_codes (guint k, const double *values, gsize n)
{
  guint64 over = 0, zero = 0, subnormal = 0, finite = 0;
  TdTensor *t = new_tensor (values, n);

  for (gsize i = 0; i < n; i++)
    {
      double v = fabs (values[i]);
      if (!isfinite (v))
        continue;
      guint code = round_to (k, v);
      finite++;
      over += code == count_codes (k);
      zero += v > 0 && code == 0;
      subnormal += code > 0 && v < decode (k, 1u << kinds[k].mantissa_bits);
    }
  TdFloatLoss loss = td_float_loss (kinds[k].format, t);
  assert_int_equal (loss.over.honesty, TD_HONEST_EXACT);
  assert_true (loss.over.share == (double)over / (double)finite);
  assert_true (loss.zero.share == (double)zero / (double)finite);
  assert_true (loss.subnormal.share == (double)subnormal / (double)finite);
  td_tensor_free (t);
}

/* Every number of the format, the middle to its neighbour, and the doubles beside both. */
static void
float__loss_is_right_at_every_number_and_middle (void **state)
{
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    {
      g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));

      for (guint code = 0; code < count_codes (k); code++)
        {
          double a = decode (k, code), b = decode (k, code + 1), middle = a + (b - a) / 2;
          const double near[] = { a,      nextafter (a, 1e300),      nextafter (b, 0),
                                  middle, nextafter (middle, 1e300), -nextafter (middle, 0) };
          g_array_append_vals (values, near, G_N_ELEMENTS (near));
          /* one by one, so that no two mistakes cancel */
          if (code < 40 || code + 40 > count_codes (k))
            for (gsize i = 0; i < G_N_ELEMENTS (near); i++)
              check_against_codes (k, &near[i], 1);
        }
      check_against_codes (k, (const double *)(const void *)values->data, values->len);
    }
}

static void
float__loss_of_random_values_is_that_of_a_search (void **state)
{
  double values[4000];
  GRand *rand = g_rand_new_with_seed (11);

  for (gsize i = 0; i < G_N_ELEMENTS (values); i++)
    values[i] = ldexp (g_rand_double_range (rand, -1, 1), g_rand_int_range (rand, -150, 140));
  values[7] = NAN;
  values[8] = INFINITY;
  values[9] = 0;
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    check_against_codes (k, values, G_N_ELEMENTS (values));
  g_rand_free (rand);
}

/* The recorder's bins begin at 2^-24: what they can tell agrees with the values, the rest is
 * said to be unknown. */
static void
float__loss_by_magnitudes_says_what_it_does_not_know (void **state)
{
  double values[1000];
  TdTensor *t, none = { .n_total = 5 };
  GRand *rand = g_rand_new_with_seed (12);
  TdTapeStats stats = { .n = 1000, .n_sampled = 1000 };

  for (gsize i = 0; i < G_N_ELEMENTS (values); i++)
    {
      int exponent;
      values[i] = i % 10 == 0 ? 0
                              : ldexp (g_rand_double_range (rand, 0.5, 1),
                                       g_rand_int_range (rand, -22, 6));
      frexp (values[i], &exponent); /* 2^(e-1) <= v < 2^e */
      if (values[i] == 0)
        stats.n_zero++;
      else
        stats.bins[exponent - 1 - TD_TAPE_STATS_MIN_EXPONENT]++;
      stats.max = MAX (stats.max, values[i]);
    }
  t = new_tensor (values, G_N_ELEMENTS (values));
  TdTensor recorded = { .n_total = 1000, .has_stats = TRUE, .stats = stats };
  for (guint k = 0; k < TD_N_FLOATS; k++)
    {
      TdFloatLoss a = td_float_loss (k, t), b = td_float_loss (k, &recorded);

      assert_int_equal (b.zero.honesty, TD_HONEST_EXACT);
      assert_true (fabs (a.zero.share - b.zero.share) < 1e-12);
      assert_true (fabs (a.subnormal.share - b.subnormal.share) < 1e-12);
      assert_int_equal (b.over.honesty, TD_HONEST_EXACT);
      assert_true (b.over.share == 0 && a.over.share == 0);
      assert_int_equal (td_float_loss (k, &none).zero.honesty, TD_HONEST_MISSING);
    }
  assert_true (td_float_loss (TD_FLOAT_E4M3, &recorded).zero.share > 0.2);
  recorded.stats.bins[0] = 3; /* somewhere below 2^-23 */
  recorded.stats.max = 1e6;
  recorded.stats.n_sampled = 500;
  assert_int_equal (td_float_loss (TD_FLOAT_F16, &recorded).zero.honesty, TD_HONEST_MISSING);
  assert_int_equal (td_float_loss (TD_FLOAT_F16, &recorded).over.honesty, TD_HONEST_MISSING);
  assert_int_equal (td_float_loss (TD_FLOAT_BF16, &recorded).over.honesty, TD_HONEST_EXACT);
  assert_int_equal (td_float_loss (TD_FLOAT_E5M2, &recorded).zero.honesty, TD_HONEST_SAMPLED);
  td_tensor_free (t);
  g_rand_free (rand);
}

static void
difference__says_how_much_and_where (void **state)
{
  static const gint64 dims[] = { 2, 3 }, other[] = { 3, 2 };
  const double a[] = { 1, 2, 3, INFINITY, 5, 6 }, b[] = { 1, 2.5, 3, INFINITY, 9, 6 };
  TdTensor *x = td_tensor_new_live ("x", TD_TAPE_F64, 2, dims, a, sizeof a);
  TdTensor *y = td_tensor_new_live ("x", TD_TAPE_F64, 2, dims, b, sizeof b);
  TdTensor *z = td_tensor_new_live ("x", TD_TAPE_F64, 2, other, b, sizeof b);
  TdTensor *d = td_tensor_subtract (x, y, NULL);
  g_autoptr (GError) error = NULL;
  guint64 i;

  g_autofree char *csv = td_tensor_print (d, "csv");
  assert_string_equal (csv, "0,-0.5,0\n0,-4,0\n");
  assert_true (td_tensor_find_largest (d, &i));
  assert_int_equal (i, 4);
  g_autofree char *said = td_tensor_dup_read_out (d, i);
  assert_string_equal (said, "[1, 1]  −4");
  g_autoptr (GBytes) npy = td_tensor_to_npy (d);
  assert_non_null (npy);
  td_tensor_free (d);
  assert_null (td_tensor_subtract (x, z, &error));
  assert_string_equal (error->message, "its shape is [2, 3] here and [3, 2] there");
  td_tensor_free (z);
  /* four of six are there: so many differences are */
  z = td_tensor_new_live ("x", TD_TAPE_F64, 2, dims, b, 4 * sizeof (double));
  d = td_tensor_subtract (x, z, NULL);
  assert_int_equal (d->n_values, 4);
  assert_int_equal (d->n_total, 6);
  assert_true (td_tensor_find_largest (d, &i));
  assert_int_equal (i, 1);
  td_tensor_free (x);
  td_tensor_free (y);
  td_tensor_free (z);
  td_tensor_free (d);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (float__loss_is_right_at_every_number_and_middle),
    td_test (float__loss_of_random_values_is_that_of_a_search),
    td_test (float__loss_by_magnitudes_says_what_it_does_not_know),
    td_test (difference__says_how_much_and_where),
  };
  return cmocka_run_group_tests_name ("float-format", tests, NULL, NULL);
}
