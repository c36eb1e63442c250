/* Comparisons of large iterations: exact where they are alike, and never slow where they are
 * not.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "diff/td-align.h"
#include "diff/td-diff.h"
#include "td-synthetic.h"
#include "td-test.h"

typedef enum
{
  PLAIN,
  INSERTED, /* one more operation after each 5000th */
  RANDOM,   /* other operations altogether */
  LONGER,   /* one operation at one line, some more of them */
} Variant;

/* A chain of operations on one array; lines repeat as those of a loop do. */
static TdIteration *
chain (guint n_ops, Variant variant, gboolean backward)
{
  static const char *const ops[]
      = { "relu", "tanh", "sigmoid", "sin", "cos", "exp", "log", "square" };
  TdSynthetic *s = td_synthetic_new (1);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = td_synthetic_input (s, "x", shape);
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);

  for (guint i = 0; i < n_ops; i++)
    {
      guint op = variant == RANDOM ? (guint)g_rand_int_range (rand, 0, 8) : i % 7;
      guint line = variant == RANDOM ? (guint)g_rand_int_range (rand, 0, 5000) : i % 2100;

      h = TD_OP (s, ops[op], line, shape, h);
      if (variant == INSERTED && i % 5000 == 2500)
        h = TD_OP (s, ops[7], 3000, shape, h);
    }
  for (guint i = 0; variant == LONGER && i < 1000; i++)
    h = TD_OP (s, ops[0], 1, shape, h);
  if (backward)
    td_synthetic_backward (s, h);
  return td_synthetic_finish (s);
}

static double
seconds (void)
{
  return (double)clock () / CLOCKS_PER_SEC;
}

static TdDiff *
timed (guint n_ops, Variant a, Variant b, gboolean backward, double *spent)
{
  g_autoptr (TdIteration) ia = chain (n_ops, a, backward);
  g_autoptr (TdIteration) ib = chain (n_ops, b, backward);
  double start = seconds ();
  TdDiff *d = td_diff_new (ia, ib, NULL, NULL);

  *spent = seconds () - start;
  print_message ("%u events: %.3f s\n", td_iteration_get_n_events (ia), *spent);
  return d;
}

static void
diff__of_100000_operations_finds_each_inserted_one (void **state)
{
  double spent;
  g_autoptr (TdDiff) d = timed (50000, PLAIN, INSERTED, TRUE, &spent);

  assert_int_equal (td_iteration_get_n_events (d->side[TD_DIFF_A]), 99999);
  assert_int_equal (d->n_items, 10);
  for (guint i = 0; i < d->n_items; i++)
    {
      const TdDiffPair *p = &d->pairs[d->items[i]];

      assert_int_equal (p->kind, TD_DIFF_ADDED);
      assert_int_equal (p->event[TD_DIFF_B], 5000 * i + 2500 + 1 + i);
    }
}

typedef struct
{
  Variant a, b;
  double small, large;
} Growth;

/* Four times the events take some four times as long: sixteen times would be quadratic.
 * Whatever else the machine does adds to a time: the least of enough of them is the
 * comparison's own. */
static bool
is_not_quadratic (void *data)
{
  Growth *g = data;
  double small, large;

  td_diff_unref (timed (25000, g->a, g->b, FALSE, &small));
  td_diff_unref (timed (100000, g->a, g->b, FALSE, &large));
  g->small = MIN (g->small, small);
  g->large = MIN (g->large, large);
  return g->large < 10 * g->small + 0.2;
}

static void
assert_not_quadratic (Variant a, Variant b)
{
  Growth growth = { a, b, G_MAXDOUBLE, G_MAXDOUBLE };

  td_test_wait ("a time in proportion to the events", is_not_quadratic, &growth);
}

static void
diff__is_not_quadratic_whatever_differs (void **state)
{
  assert_not_quadratic (PLAIN, PLAIN);
  assert_not_quadratic (PLAIN, INSERTED);
  assert_not_quadratic (PLAIN, RANDOM);
  assert_not_quadratic (RANDOM, PLAIN);
  assert_not_quadratic (PLAIN, LONGER);
}

static void
assert_is_alignment (const guint64 *a, int n, const guint64 *b, int m, int at_least)
{
  g_autofree gint32 *b_of_a = g_new (gint32, n), *a_of_b = g_new (gint32, m);
  int matched = 0, last = -1;

  td__align (a, n, b, m, b_of_a, a_of_b);
  for (int i = 0; i < n; i++)
    if (b_of_a[i] >= 0)
      {
        assert_true (b_of_a[i] > last);
        last = b_of_a[i];
        assert_true (a[i] == b[last]);
        assert_int_equal (a_of_b[last], i);
        matched++;
      }
  assert_true (matched >= at_least);
}

/* Beyond the exact search: order is kept, and most of what could be matched is. */
static void
align__of_very_different_sequences_still_matches_most (void **state)
{
  enum
  {
    N = 60000
  };
  g_autofree guint64 *a = g_new (guint64, N), *b = g_new (guint64, N);

  for (int i = 0; i < N; i++)
    {
      a[i] = (guint64)(i % 11);
      b[i] = i % 5 == 0 ? 100 + (guint64)(i % 3) : (guint64)(i % 11); /* 12,000 replaced */
    }
  assert_is_alignment (a, N, b, N, N / 5 * 4 * 9 / 10);
  for (int i = 0; i < N; i++)
    b[i] = (guint64)((N - 1 - i) % 11); /* backwards */
  assert_is_alignment (a, N, b, N, N / 11);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (diff__of_100000_operations_finds_each_inserted_one),
    td_test (diff__is_not_quadratic_whatever_differs),
    td_test (align__of_very_different_sequences_still_matches_most),
  };

  return cmocka_run_group_tests_name ("large", tests, NULL, NULL);
}
