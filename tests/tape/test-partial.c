/* Iterations that are read in part: what is read is what the whole has, on all golden tapes.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "td-tape-reader.h"

#include <string.h>

static const char *const tapes[] = {
  "tests/golden/tape-1.0.tdtape",         "tests/golden/tape-1.1.tdtape",
  "tests/golden/tape-1.1-runs.tdtape",    "tests/golden/tape-1.2.tdtape",
  "tests/golden/tape-1.2-copies.tdtape",  "tests/golden/tape-1.2-faults.tdtape",
  "tests/golden/tape-1.2-objects.tdtape", "tests/golden/tape-1.3.tdtape",
};

static TdTapeReader *
open_tape (size_t i)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (td_test_source (tapes[i]), error, sizeof error);

  if (r == NULL)
    fail_msg ("%s: %s", tapes[i], error);
  td_tape_reader_poll (r);
  return r;
}

#define ASSERT_SAME(a, b, field)                                                               \
  do                                                                                           \
    {                                                                                          \
      assert_int_equal ((a)->n_##field, (b)->n_##field);                                       \
      if ((a)->n_##field > 0)                                                                  \
        assert_memory_equal ((a)->field, (b)->field, (a)->n_##field * sizeof *(a)->field);     \
    }                                                                                          \
  while (0)

/* What the whole has at its end, and nothing else; counts what there was. */
static void
compare_end (TdTapeReader *r, const TdTapeSummary *row, uint32_t *n_found)
{
  char error[256] = "";
  const TdTapeIteration *whole = td_tape_iteration_load_row (r, row, error, sizeof error),
                        *end = td_tape_iteration_load_end (r, row, error, sizeof error);

  if (whole == NULL || end == NULL)
    fail_msg ("%s", error);
  assert_int_equal (end->number, whole->number);
  ASSERT_SAME (whole, end, held);
  ASSERT_SAME (whole, end, devices);
  ASSERT_SAME (whole, end, objects);
  ASSERT_SAME (whole, end, references);
  ASSERT_SAME (whole, end, pools);
  assert_int_equal (end->n_events + end->n_vars + end->n_memory + end->n_stats, 0);
  *n_found += end->n_held + end->n_devices + end->n_objects + end->n_references + end->n_pools;
  td_tape_iteration_free (whole);
  td_tape_iteration_free (end);
}

static void
partial__the_end_of_an_iteration_is_that_of_the_whole (void **state)
{
  uint32_t n_found = 0, n_iterations = 0;

  (void)state;
  for (size_t i = 0; i < sizeof tapes / sizeof *tapes; i++)
    {
      TdTapeReader *r = open_tape (i);
      const TdTapeSummaries s = td_tape_reader_summaries (r);

      for (uint32_t k = 0; k < s.n; k++)
        if (td_tape_reader_stored (r, k))
          {
            compare_end (r, &s.rows[k], &n_found);
            n_iterations++;
          }
      td_tape_reader_free (r);
    }
  assert_in_range (n_iterations, 10, 10000);
  assert_in_range (n_found, 13, 100000);
}

static void
partial__the_end_of_what_is_gone_is_an_error (void **state)
{
  TdTapeReader *r = open_tape (sizeof tapes / sizeof *tapes - 1);
  TdTapeSummary row = td_tape_reader_summaries (r).rows[0];
  char error[256] = "";

  (void)state;
  row.seq++;
  assert_null (td_tape_iteration_load_end (r, &row, error, sizeof error));
  assert_non_null (strstr (error, "iteration "));
  td_tape_reader_free (r);
}

/* Without memory it is the same but for that; with it again, there it is. */
static void
compare_without_memory (TdTapeReader *r, TdTapeReader *all, uint32_t k, uint32_t *n_memory)
{
  const TdTapeSummary *row = &td_tape_reader_summaries (r).rows[k];
  char error[256] = "";
  const TdTapeIteration *whole = td_tape_iteration_load_row (all, row, error, sizeof error),
                        *without, *with;

  td_tape_reader_skip_memory (r, true);
  without = td_tape_iteration_load_row (r, row, error, sizeof error);
  td_tape_reader_skip_memory (r, false);
  with = td_tape_iteration_load_row (r, row, error, sizeof error);
  if (whole == NULL || without == NULL || with == NULL)
    fail_msg ("%s", error);
  assert_int_equal (without->n_memory + without->n_blocks, 0);
  assert_int_equal (without->peak_bytes, whole->peak_bytes);
  assert_int_equal (without->end_bytes, whole->end_bytes);
  ASSERT_SAME (whole, without, events);
  ASSERT_SAME (whole, without, vars);
  ASSERT_SAME (whole, without, stats);
  ASSERT_SAME (whole, without, held);
  ASSERT_SAME (whole, with, memory);
  ASSERT_SAME (whole, with, blocks);
  *n_memory += with->n_memory;
  td_tape_iteration_free (whole);
  td_tape_iteration_free (without);
  td_tape_iteration_free (with);
}

static void
partial__without_memory_an_iteration_is_else_the_same (void **state)
{
  uint32_t n_memory = 0;

  (void)state;
  for (size_t i = 0; i < sizeof tapes / sizeof *tapes; i++)
    {
      TdTapeReader *r = open_tape (i), *all = open_tape (i);

      for (uint32_t k = 0; k < td_tape_reader_summaries (r).n; k++)
        if (td_tape_reader_stored (r, k))
          compare_without_memory (r, all, k, &n_memory);
      td_tape_reader_free (r);
      td_tape_reader_free (all);
    }
  assert_int_equal (n_memory, 12);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (partial__the_end_of_an_iteration_is_that_of_the_whole),
    td_test (partial__the_end_of_what_is_gone_is_an_error),
    td_test (partial__without_memory_an_iteration_is_else_the_same),
  };

  return cmocka_run_group_tests_name ("partial", tests, NULL, NULL);
}
