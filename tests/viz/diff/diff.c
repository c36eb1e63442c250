/*
 * Differences of iterations: one change is one difference.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <string.h>

#include "diff/td-align.h"
#include "diff/td-diff.h"
#include "lenet-tape.h"
#include "td-test.h"

static TdDiff *
diff_of (const LenetOptions *options, guint64 a, guint64 b, TdTapeReader **reader)
{
  const char *path = td_test_tmp ("diff.tdtape");
  char error[160];

  lenet_tape_write (path, options);
  *reader = td_tape_reader_open (path, error, sizeof error);
  g_autoptr (TdIteration) ia = lenet_tape_load (*reader, a);
  g_autoptr (TdIteration) ib = lenet_tape_load (*reader, b);
  return td_diff_new (ia, ib);
}

static void
diff__of_an_iteration_with_itself_is_empty (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTapeReader *r;
  g_autoptr (TdDiff) d = diff_of (&o, 5, 5, &r);
  g_autofree char *json = td_diff_print (d, "json");

  assert_int_equal (d->items->len, 0);
  assert_int_equal (d->n_same, 45);
  assert_contains (json, "\"same\": true");
  assert_contains (json, "\"first_divergence\": null");
  g_clear_pointer (&d, td_diff_free);
  td_tape_reader_free (r);
}

static void
diff__one_inserted_operation_is_exactly_one_difference (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTapeReader *r;

  o.extra_relu_at = 20;
  g_autoptr (TdDiff) d = diff_of (&o, 19, 20, &r);
  assert_int_equal (d->items->len, 1);
  const TdDiffItem *item = &g_array_index (d->items, TdDiffItem, 0);
  assert_int_equal (item->kind, TD_DIFF_ONLY_B);
  assert_int_equal (item->b, 12);
  assert_string_equal (td_iteration_get_op_name (d->b, (guint)item->b), "relu");
  g_autofree char *sentence = td_diff_sentence (d);
  assert_contains (sentence, "1 operation only in B; first relu at lenet.c:50");
  /* and the other way round */
  g_autoptr (TdDiff) back = td_diff_new (d->b, d->a);
  assert_int_equal (back->items->len, 1);
  assert_int_equal (g_array_index (back->items, TdDiffItem, 0).kind, TD_DIFF_ONLY_A);
  g_clear_pointer (&d, td_diff_free);
  g_clear_pointer (&back, td_diff_free);
  td_tape_reader_free (r);
}

static void
diff__other_operation_at_the_same_call_is_one_change (void **state)
{
  LenetOptions a = LENET_DEFAULT, b = LENET_DEFAULT;
  char error[160];
  const char *path = td_test_tmp ("other.tdtape");
  TdTapeReader *ra, *rb;

  a.n_iterations = b.n_iterations = 1;
  b.op_name = "average_pooling_2d"; /* in both blocks */
  g_autoptr (TdDiff) unused = diff_of (&a, 0, 0, &ra);
  lenet_tape_write (path, &b);
  rb = td_tape_reader_open (path, error, sizeof error);
  g_autoptr (TdIteration) other = lenet_tape_load (rb, 0);
  g_autoptr (TdDiff) d = td_diff_new (unused->a, other);
  guint structural = 0;

  for (guint i = 0; i < d->items->len; i++)
    {
      const TdDiffItem *item = &g_array_index (d->items, TdDiffItem, i);

      assert_int_equal (item->kind, TD_DIFF_CHANGED);
      structural += item->structural;
      if (item->structural)
        assert_string_equal (item->what, "max_pooling_2d -> average_pooling_2d");
    }
  assert_int_equal (structural,
                    2); /* two forward calls; what follows in backward is not listed */
  assert_int_equal (d->first_a, 2);
  g_clear_pointer (&d, td_diff_free);
  g_clear_pointer (&unused, td_diff_free);
  g_clear_pointer (&other, td_iteration_unref);
  td_tape_reader_free (ra);
  td_tape_reader_free (rb);
}

static void
diff__of_equal_structure_names_the_first_other_number (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTapeReader *r;

  o.nan_at = 6;
  g_autoptr (TdDiff) d = diff_of (&o, 5, 6, &r);
  g_autofree char *json = td_diff_print (d, "json");
  gboolean nan = FALSE;

  assert_true (d->has_numbers);
  assert_int_equal (d->items->len, 10); /* the ten gradients have statistics, and all moved */
  for (guint i = 0; i < d->items->len; i++)
    {
      const TdDiffItem *item = &g_array_index (d->items, TdDiffItem, i);

      assert_false (item->structural);
      nan |= strcmp (item->what, "nan 0 -> 1") == 0;
    }
  assert_true (nan);
  assert_contains (json, "\"first_divergence\": {\n    \"site\": \"lenet.c:52\",\n    \"op\": "
                         "\"linear_grad_W\"\n  }");
  assert_contains (json, "\"only_a\": []");
  g_clear_pointer (&d, td_diff_free);
  td_tape_reader_free (r);
}

/* Length of the longest common subsequence, the slow and obvious way. */
static int
lcs (const guint64 *a, int n, const guint64 *b, int m)
{
  int best[65][65] = { { 0 } };

  for (int i = n - 1; i >= 0; i--)
    for (int j = m - 1; j >= 0; j--)
      best[i][j] = a[i] == b[j] ? best[i + 1][j + 1] + 1 : MAX (best[i + 1][j], best[i][j + 1]);
  return best[0][0];
}

static void
align__matches_as_many_as_the_longest_common_subsequence (void **state)
{
  GRand *rand = g_rand_new_with_seed (11);

  for (int round = 0; round < 3000; round++)
    {
      guint64 a[64], b[64];
      gint32 b_of_a[64], a_of_b[64];
      int n = g_rand_int_range (rand, 0, 64), m = g_rand_int_range (rand, 0, 64), matched = 0,
          last = -1;

      for (int i = 0; i < n; i++)
        a[i] = (guint64)g_rand_int_range (rand, 0, 6);
      for (int j = 0; j < m; j++)
        b[j] = (guint64)g_rand_int_range (rand, 0, 6);
      td__align (a, n, b, m, b_of_a, a_of_b);
      for (int i = 0; i < n; i++)
        if (b_of_a[i] >= 0)
          {
            assert_true (b_of_a[i] > last); /* order is kept */
            last = b_of_a[i];
            assert_int_equal (a[i], b[last]);
            assert_int_equal (a_of_b[last], i);
            matched++;
          }
      assert_int_equal (matched, lcs (a, n, b, m));
    }
  g_rand_free (rand);
}

static void
align__of_long_and_strange_sequences_still_ends (void **state)
{
  enum
  {
    N = 60000
  };
  g_autofree guint64 *a = g_new (guint64, N), *b = g_new (guint64, N);
  g_autofree gint32 *b_of_a = g_new (gint32, N), *a_of_b = g_new (gint32, N);
  int matched = 0;

  for (int i = 0; i < N; i++)
    {
      a[i] = (guint64)i;
      b[i] = i % 3 ? (guint64)i : (guint64)i + 1000000; /* 20,000 differences */
    }
  td__align (a, N, b, N, b_of_a, a_of_b);
  for (int i = 0; i < N; i++)
    matched += b_of_a[i] == i;
  assert_int_equal (matched, N / 3 * 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (diff__of_an_iteration_with_itself_is_empty),
    td_test (diff__one_inserted_operation_is_exactly_one_difference),
    td_test (diff__other_operation_at_the_same_call_is_one_change),
    td_test (diff__of_equal_structure_names_the_first_other_number),
    td_test (align__matches_as_many_as_the_longest_common_subsequence),
    td_test (align__of_long_and_strange_sequences_still_ends),
  };

  return cmocka_run_group_tests_name ("diff", tests, NULL, NULL);
}
