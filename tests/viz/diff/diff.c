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

static const TdDiffPair *
item_of (const TdDiff *d, guint i)
{
  assert_true (i < d->n_items);
  return &d->pairs[d->items[i]];
}

static TdDiff *
diff_of (const LenetOptions *options, guint64 a, guint64 b, TdTapeReader **reader)
{
  const char *path = td_test_tmp ("diff.tdtape");
  char error[160];

  lenet_tape_write (path, options);
  *reader = td_tape_reader_open (path, error, sizeof error);
  g_autoptr (TdIteration) ia = lenet_tape_load (*reader, a);
  g_autoptr (TdIteration) ib = lenet_tape_load (*reader, b);
  return td_diff_new (ia, ib, *reader, *reader);
}

/* Every event of both sides stands in one pair, and pairs know their events. */
static void
assert_covers_all_events (const TdDiff *d)
{
  guint seen[2] = { 0, 0 };

  for (guint i = 0; i < d->n_pairs; i++)
    for (guint s = 0; s < 2; s++)
      {
        guint n;
        const guint32 *events = td_diff_get_events (d, &d->pairs[i], s, &n);

        for (guint k = 0; k < n; k++)
          assert_int_equal (td_diff_get_pair (d, s, (gint)events[k]), i);
        seen[s] += n;
      }
  for (guint s = 0; s < 2; s++)
    assert_int_equal (seen[s], td_iteration_get_n_events (d->side[s]));
}

static void
diff__of_an_iteration_with_itself_is_empty (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTapeReader *r;
  g_autoptr (TdDiff) d = diff_of (&o, 5, 5, &r);
  g_autofree char *json = td_diff_print (d, "json");

  assert_int_equal (d->n_items, 0);
  assert_true (td_diff_is_same (d));
  assert_int_equal (d->n_kind[TD_DIFF_SAME], 45);
  assert_covers_all_events (d);
  assert_contains (json, "\"same\": true");
  assert_contains (json, "\"first_divergence\": null");
  g_clear_pointer (&d, td_diff_unref);
  td_tape_reader_free (r);
}

static void
diff__one_inserted_operation_is_exactly_one_difference (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTapeReader *r;

  o.extra_relu_at = 20;
  g_autoptr (TdDiff) d = diff_of (&o, 19, 20, &r);
  assert_int_equal (d->n_items, 1);
  const TdDiffPair *p = item_of (d, 0);
  g_autofree char *what = td_diff_dup_what (d, p);
  assert_int_equal (p->kind, TD_DIFF_ADDED);
  assert_int_equal (p->event[TD_DIFF_A], -1);
  assert_int_equal (p->event[TD_DIFF_B], 12);
  assert_string_equal (td_iteration_get_op_name (d->side[TD_DIFF_B], 12), "relu");
  assert_string_equal (what, "no counterpart in A");
  assert_covers_all_events (d);
  /* what reads it, and its gradients, follow from it */
  assert_int_equal (td_diff_get_item (d, td_diff_get_pair (d, TD_DIFF_B, 13)), 0);
  assert_int_equal (td_diff_get_item (d, td_diff_get_pair (d, TD_DIFF_B, 3)), -1);
  g_autofree char *sentence = td_diff_sentence (d);
  assert_contains (sentence, "relu added at lenet.c:50; 1 operation added, 1 operation, 22 "
                             "gradients and 10 updates follow.");
  /* and the other way round */
  g_autoptr (TdDiff) back = td_diff_new (d->side[1], d->side[0], r, r);
  assert_int_equal (back->n_items, 1);
  assert_int_equal (item_of (back, 0)->kind, TD_DIFF_REMOVED);
  assert_covers_all_events (back);
  g_clear_pointer (&d, td_diff_unref);
  g_clear_pointer (&back, td_diff_unref);
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
  g_autoptr (TdDiff) d = td_diff_new (unused->side[0], other, ra, rb);

  /* two forward calls; what follows in backward is not listed */
  assert_int_equal (d->n_items, 2);
  assert_false (d->same_run);
  for (guint i = 0; i < d->n_items; i++)
    {
      const TdDiffPair *p = item_of (d, i);
      g_autofree char *what = td_diff_dup_what (d, p);

      assert_int_equal (p->kind, TD_DIFF_CHANGED);
      assert_true (p->aspects & TD_DIFF_OPERATION);
      assert_string_equal (what, "max_pooling_2d → average_pooling_2d");
    }
  assert_int_equal (item_of (d, 0)->event[TD_DIFF_A], 2);
  g_clear_pointer (&d, td_diff_unref);
  g_clear_pointer (&unused, td_diff_unref);
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
  g_autofree char *json = td_diff_print (d, "json"), *sentence = td_diff_sentence (d);
  gboolean nan = FALSE;

  assert_true (d->has_numbers);
  assert_true (td_diff_is_same_structure (d));
  assert_false (td_diff_is_same (d));
  assert_int_equal (d->n_items, 10); /* the ten gradients have statistics, and all moved */
  for (guint i = 0; i < d->n_items; i++)
    {
      g_autofree char *what = td_diff_dup_what (d, item_of (d, i));

      assert_int_equal (item_of (d, i)->aspects, TD_DIFF_NUMBERS);
      nan |= strcmp (what, "nan 0 → 1") == 0;
    }
  assert_true (nan);
  assert_contains (sentence, "The same 45 operations; 10 with other numbers, first "
                             "linear_grad_W at lenet.c:52: ");
  assert_contains (json, "\"site\": \"lenet.c:52\",\n    \"op\": \"linear_grad_W\"");
  assert_contains (json, "\"only_a\": []");
  g_clear_pointer (&d, td_diff_unref);
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
