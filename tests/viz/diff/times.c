/*
 * Times beside each other: medians over like iterations, and how many they are of.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diff/td-compare.h"
#include "lenet-tape.h"
#include "td-synthetic.h"
#include "td-tape-writer.h"
#include "td-test.h"

#define MAX_LIKE 15

typedef struct
{
  TdTapeReader *reader;
  TdCompare *compare;
} Fixture;

static Fixture
compare_of (const LenetOptions *options, guint64 a, guint64 b)
{
  const char *path = td_test_tmp ("times.tdtape");
  char error[160];
  Fixture f;

  lenet_tape_write (path, options);
  f.reader = td_tape_reader_open (path, error, sizeof error);
  g_autoptr (TdIteration) ia = lenet_tape_load (f.reader, a);
  g_autoptr (TdIteration) ib = lenet_tape_load (f.reader, b);
  f.compare = td_compare_new (ia, ib, f.reader, f.reader);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  td_compare_free (f->compare);
  td_tape_reader_free (f->reader);
}

static int
compare_ns (const void *a, const void *b)
{
  guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;

  return (x > y) - (x < y);
}

/* Time of an event of iterations [first, first + n) of the tape, -1: of all events, -2: of the
 * whole iteration; the one in the middle. */
static guint64
median_of (TdTapeReader *reader, guint64 first, guint n, gint event)
{
  guint64 ns[MAX_LIKE] = { 0 };
  char error[160];

  for (guint i = 0; i < n; i++)
    {
      const TdTapeIteration *t
          = td_tape_iteration_load (reader, first + i, error, sizeof error);

      assert_non_null (t);
      for (guint e = 0; event == -1 && e < t->n_events; e++)
        ns[i] += t->event_duration_ns[e];
      if (event != -1)
        ns[i] = event == -2 ? t->duration_ns : t->event_duration_ns[event];
      td_tape_iteration_free (t);
    }
  qsort (ns, n, sizeof *ns, compare_ns);
  return ns[(n - 1) / 2];
}

/* Every time of a side is the median of iterations [first, first + n). */
static void
assert_medians (const Fixture *f, TdSide side, guint64 first, guint n)
{
  const TdDiffTotals *totals = &f->compare->diff->totals[side];

  assert_int_equal (totals->n_times, n);
  assert_int_equal (totals->op_ns, median_of (f->reader, first, n, -1));
  assert_int_equal (totals->ns, median_of (f->reader, first, n, -2));
  for (guint i = 0; i < f->compare->n_rows; i++)
    {
      gint event = f->compare->rows[i].event[side];

      assert_int_equal (td_compare_row_ns (f->compare, i, side),
                        event < 0 ? 0 : median_of (f->reader, first, n, event));
    }
}

static void
times__are_medians_of_the_fifteen_nearest_iterations (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  Fixture f = compare_of (&o, 2, 25);
  g_autofree char *cost = td_compare_cost (f.compare),
                  *text = td_diff_print (f.compare->diff, "text"),
                  *json = td_diff_print (f.compare->diff, "json");

  assert_medians (&f, TD_SIDE_A, 0, 15);
  assert_medians (&f, TD_SIDE_B, 18, 15);
  assert_contains (cost, "median of 15), peak ");
  assert_contains (text, "\ntimes: median of 15\n");
  assert_contains (json, "\"n_a\": 15");
  assert_contains (json, "\"n_b\": 15");
  fixture_clear (&f);
}

static void
times__of_one_cold_iteration_do_not_show (void **state)
{
  LenetOptions o = LENET_DEFAULT;

  o.cold_at = 7;
  Fixture f = compare_of (&o, 6, 7);
  const TdDiffTotals *totals = f.compare->diff->totals;
  guint64 cold = median_of (f.reader, 7, 1, -1), warm = median_of (f.reader, 6, 1, -1);

  assert_true (cold > 15 * warm);
  assert_medians (&f, TD_SIDE_B, 0, 15);
  for (guint side = 0; side < 2; side++)
    assert_true (ABS ((double)totals[side].op_ns / (double)warm - 1) < 0.1);
  for (guint i = 0; i < f.compare->n_rows; i++)
    assert_true (td_compare_row_ns (f.compare, i, TD_SIDE_B)
                 < 2 * td_compare_row_ns (f.compare, i, TD_SIDE_A));
  fixture_clear (&f);
}

/* Nor with two: the lower one counts. */
static void
times__of_a_first_iteration_and_one_more_are_those_of_the_other (void **state)
{
  LenetOptions o = LENET_DEFAULT;

  o.n_iterations = 2;
  o.cold_at = 0;
  Fixture f = compare_of (&o, 0, 1);

  assert_int_equal (f.compare->diff->totals[TD_SIDE_A].n_times, 2);
  assert_int_equal (f.compare->diff->totals[TD_SIDE_A].op_ns, median_of (f.reader, 1, 1, -1));
  fixture_clear (&f);
}

static void
times__of_a_lone_iteration_have_no_percentage (void **state)
{
  LenetOptions o = LENET_DEFAULT;

  o.extra_relu_at = o.cold_at = 20;
  Fixture f = compare_of (&o, 19, 20);
  g_autofree char *cost = td_compare_cost (f.compare),
                  *json = td_diff_print (f.compare->diff, "json");
  char *peak = strstr (cost, ", peak ");

  assert_int_equal (f.compare->diff->totals[TD_SIDE_A].n_times, 15);
  assert_medians (&f, TD_SIDE_B, 20, 1);
  assert_contains (cost, "(median of 15 and of 1), peak ");
  assert_contains (json, "\"n_b\": 1");
  *peak = '\0';
  assert_null (strchr (cost, '%'));
  fixture_clear (&f);
  /* and of two lone ones */
  o = (LenetOptions)LENET_DEFAULT;
  o.n_iterations = 2;
  o.cold_at = o.extra_relu_at = 1;
  f = compare_of (&o, 0, 1);
  g_autofree char *lone = td_compare_cost (f.compare);
  assert_contains (lone, " (1 iteration each), peak ");
  *strstr (lone, ", peak ") = '\0';
  assert_null (strchr (lone, '%'));
  fixture_clear (&f);
}

static void
times__of_code_and_of_schedules_are_not_mixed (void **state)
{
  LenetOptions o = LENET_DEFAULT;

  o.static_from = 20;
  Fixture f = compare_of (&o, 19, 20);
  g_autofree char *cost = td_compare_cost (f.compare);

  assert_medians (&f, TD_SIDE_A, 5, 15);
  assert_medians (&f, TD_SIDE_B, 20, 15);
  assert_contains (cost, " (−50 %, median of 15), peak ");
  fixture_clear (&f);
}

/* Nothing else is known of an iteration that is not on a tape. */
static void
times__without_a_tape_are_the_iteration_s_own (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  Fixture f = compare_of (&o, 19, 20);
  g_autoptr (TdDiff) d
      = td_diff_new (f.compare->of[TD_SIDE_A], f.compare->of[TD_SIDE_B], NULL, NULL);

  assert_int_equal (d->totals[TD_SIDE_A].n_times, 1);
  assert_int_equal (d->totals[TD_SIDE_A].op_ns, median_of (f.reader, 19, 1, -1));
  assert_false (td_diff_has_medians (d));
  g_clear_pointer (&d, td_diff_unref);
  fixture_clear (&f);
}

/* In a thread of the window: with readers that keep one summary. */
static void
times__in_any_thread_are_the_same (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  Fixture f = compare_of (&o, 2, 25);
  const char *path = td_test_tmp ("times.tdtape");
  TdCompare *own = f.compare;

  f.compare = td_compare_new_of_files (own->of[TD_SIDE_A], path, own->of[TD_SIDE_B], path);
  assert_medians (&f, TD_SIDE_A, 0, 15);
  assert_medians (&f, TD_SIDE_B, 18, 15);
  td_compare_free (own);
  fixture_clear (&f);
}

/* ---- large iterations ---- */

typedef struct
{
  guint n_ops, n_iterations, n_times;
  TdIteration *iteration;
  TdTapeReader *reader;
  double least;
} Large;

static void
large_write (Large *l, const char *path)
{
  TdTapeWriterOptions o
      = { .size = sizeof o, .level = TD_TAPE_LEVEL_GRAPH, .path = path, .overwrite = true };
  TdSynthetic *s = td_synthetic_new (0);
  const gint64 *shape = TD_SHAPE (4, 4);
  guint h = td_synthetic_input (s, "x", shape);
  char error[160];

  for (guint i = 0; i < l->n_ops; i++)
    h = TD_OP (s, i % 2 ? "relu" : "tanh", i % 2100, shape, h);
  g_autoptr (TdIteration) made = td_synthetic_finish (s);
  g_autofree guint64 *ns = g_new (guint64, l->n_ops);
  TdTapeWriter *w = td_tape_writer_new (&o, error, sizeof error);
  TdTapeEnd end = { .iteration = l->n_iterations - 1 };
  for (guint number = 0; number < l->n_iterations; number++)
    {
      TdTapeIteration it = *td_iteration_get_tape (made);

      for (guint e = 0; e < l->n_ops; e++)
        ns[e] = 100 + number;
      it.number = number;
      it.flags = 0;
      it.event_start_ns = it.event_duration_ns = ns;
      td_tape_writer_whole (w, &it);
    }
  td_tape_writer_end (w, &end);
  td_tape_writer_free (w);
}

static double
seconds (void)
{
  return (double)clock () / CLOCKS_PER_SEC;
}

static bool
takes_a_second_at_most (void *data)
{
  Large *l = data;
  double start = seconds (), spent;
  g_autoptr (TdDiff) alone = td_diff_new (l->iteration, l->iteration, NULL, NULL);

  assert_non_null (alone);
  spent = seconds () - start;
  start = seconds ();
  g_autoptr (TdDiff) d = td_diff_new (l->iteration, l->iteration, l->reader, l->reader);
  spent = seconds () - start - spent;
  l->least = MIN (l->least, spent);
  l->n_times = MAX (l->n_times, d->totals[0].n_times);
  print_message ("%u events: %.3f s more for medians of %u\n", l->n_ops, spent,
                 d->totals[0].n_times);
  return l->least < 1.0;
}

static void
large_look (Large *l)
{
  const char *path = td_test_tmp ("large.tdtape");
  char error[160];

  l->least = G_MAXDOUBLE;
  large_write (l, path);
  l->reader = td_tape_reader_open (path, error, sizeof error);
  l->iteration = lenet_tape_load (l->reader, l->n_iterations / 2);
  td_test_wait ("medians within a second", takes_a_second_at_most, l);
  td_iteration_unref (l->iteration);
  td_tape_reader_free (l->reader);
}

/* Room for fifteen of them would be 120 MB. */
static void
times__of_large_iterations_are_of_fewer (void **state)
{
  Large small = { .n_ops = 1000, .n_iterations = 20 },
        large = { .n_ops = 1000000, .n_iterations = 8 };

  large_look (&small);
  assert_int_equal (small.n_times, MAX_LIKE);
  large_look (&large);
  assert_true (large.n_times <= 4);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (times__are_medians_of_the_fifteen_nearest_iterations),
    td_test (times__of_one_cold_iteration_do_not_show),
    td_test (times__of_a_first_iteration_and_one_more_are_those_of_the_other),
    td_test (times__of_a_lone_iteration_have_no_percentage),
    td_test (times__of_code_and_of_schedules_are_not_mixed),
    td_test (times__without_a_tape_are_the_iteration_s_own),
    td_test (times__in_any_thread_are_the_same),
    td_test (times__of_large_iterations_are_of_fewer),
  };

  return cmocka_run_group_tests_name ("times", tests, NULL, NULL);
}
