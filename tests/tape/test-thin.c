/* Readers with a bound: what they keep of a tape that grows, and that nothing is lost to them.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <unistd.h>

#include "tape/read/reader-private.h"
#include "td-tape-writer.h"

#define MAX_KEPT 200
#define N_ITERATIONS 3000

static TdTapeReader *
open_bounded (const Rig *rig, uint32_t max_summaries)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open_bounded (rig->path, max_summaries, error, sizeof error);

  assert_non_null (r);
  return r;
}

/* A growing tape, and a bounded reader that follows it; `poll_every` 0: it opens it at the end.
 */
static TdTapeReader *
follow (Rig *rig, uint32_t max_summaries, int poll_every)
{
  TdTapeReader *r = NULL;

  rig_start (rig, NULL);
  for (int i = 1; i <= N_ITERATIONS; i++)
    {
      rig_iterations (rig, 1);
      if (poll_every == 0 || i % poll_every != 0)
        continue;
      td_tape_writer_flush (rig->w);
      if (r == NULL)
        r = open_bounded (rig, max_summaries);
      td_tape_reader_poll (r);
      assert_in_range (td_tape_reader_summaries (r).n, 1, max_summaries);
    }
  rig_stop (rig, 0);
  if (r == NULL)
    r = open_bounded (rig, max_summaries);
  td_tape_reader_poll (r);
  return r;
}

/* The newest without a gap, the old evenly, all in order. */
static void
check_sample (const TdTapeReader *r)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  uint64_t widest = 0;

  assert_in_range (s.n, MAX_KEPT / 4, MAX_KEPT);
  assert_int_equal (s.rows[s.n - 1].number, N_ITERATIONS - 1);
  for (uint32_t i = s.n - MAX_KEPT / 4; i < s.n; i++)
    assert_int_equal (s.rows[i].number, N_ITERATIONS - s.n + i);
  assert_int_equal (s.rows[0].number, 0);
  for (uint32_t i = 1; i < s.n; i++)
    {
      uint64_t gap = s.rows[i].number - s.rows[i - 1].number;

      assert_true (s.rows[i].number > s.rows[i - 1].number);
      widest = gap > widest ? gap : widest;
    }
  assert_in_range (widest, 2, 64); /* 3000 / 100 = 30, in powers of two */
}

static void
bounded__reader_keeps_the_newest_and_an_even_sample (void **state)
{
  static const int polls[] = { 0, 1, 7, 500 };

  for (unsigned i = 0; i < sizeof polls / sizeof *polls; i++)
    {
      Rig rig = { .m = { .memory = true } };
      TdTapeReader *r = follow (&rig, MAX_KEPT, polls[i]);

      check_sample (r);
      td_tape_reader_free (r);
      rig_clear (&rig);
      unlink (td_test_tmp ("t.tdtape"));
    }
}

static void
bounded__reader_finds_every_iteration_in_the_file (void **state)
{
  Rig rig = { .m = { .memory = true } };
  TdTapeReader *r = follow (&rig, MAX_KEPT, 100), *lean = open_bounded (&rig, 1);
  char error[256];

  assert_int_equal (td_tape_reader_summaries (lean).n, 1);
  for (uint64_t number = 0; number < N_ITERATIONS; number += 37)
    {
      TdTapeReader *const readers[] = { r, lean };

      for (unsigned k = 0; k < 2; k++)
        {
          TdTapeSummary row;
          const TdTapeIteration *it;

          assert_true (td_tape_reader_look_up (readers[k], number, &row));
          assert_int_equal (row.number, number);
          it = td_tape_iteration_load_row (lean, &row, error, sizeof error);
          assert_non_null (it);
          assert_int_equal (it->number, number);
          assert_int_equal (it->n_events, 14);
          td_tape_iteration_free (it);
        }
    }
  TdTapeSummary row;
  assert_false (td_tape_reader_look_up (r, N_ITERATIONS, &row));
  td_tape_reader_free (lean);
  td_tape_reader_free (r);
  rig_clear (&rig);
}

/* Those beside an iteration, the nearest first and of two as near the earlier one. */
static void
check_like (TdTapeReader *r, uint64_t number)
{
  TdTapeSummary rows[8];
  uint32_t structure = td_tape_reader_structure (r, 0)->id, n = 0;

  assert_int_equal (td_tape_reader_find_like (r, number, structure, rows, 8), 8);
  for (uint64_t away = 1; n < 8; away++)
    {
      if (number >= away)
        assert_int_equal (rows[n++].number, number - away);
      if (n < 8 && number + away < N_ITERATIONS)
        assert_int_equal (rows[n++].number, number + away);
    }
  assert_int_equal (td_tape_reader_find_like (r, number, structure + 1, rows, 8), 0);
  assert_int_equal (td_tape_reader_find_like (r, number, 0, rows, 8), 0);
}

static void
bounded__reader_finds_the_nearest_of_a_structure (void **state)
{
  static const uint64_t numbers[] = { 0, 3, N_ITERATIONS / 2, N_ITERATIONS - 2 };
  Rig rig = { .m = { .memory = true } };
  TdTapeReader *readers[]
      = { follow (&rig, MAX_KEPT, 100), open_bounded (&rig, 1), open_bounded (&rig, 0) };

  for (unsigned k = 0; k < 3; k++)
    {
      for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        check_like (readers[k], numbers[i]);
      td_tape_reader_free (readers[k]);
    }
  rig_clear (&rig);
}

/* A tape with room for few: what was thinned is not among them, and the first are kept. */
static void
like__iterations_are_whole (void **state)
{
  const TdTapeWriterOptions o = { .size = sizeof o,
                                  .level = TD_TAPE_LEVEL_GRAPH,
                                  .path = td_test_tmp ("t.tdtape"),
                                  .overwrite = true,
                                  .budget_bytes = 1 << 20 };
  Rig rig = { .m = { .memory = true } };
  TdTapeSummary rows[8];
  uint64_t farthest = 0;

  rig_start (&rig, &o);
  rig_iterations (&rig, N_ITERATIONS);
  rig_stop (&rig, 0);
  TdTapeReader *r = open_bounded (&rig, 1);
  assert_true (td_tape_reader_thinning (r).first_whole > 100);
  assert_int_equal (
      td_tape_reader_find_like (r, 50, td_tape_reader_structure (r, 0)->id, rows, 8), 8);
  for (int i = 0; i < 8; i++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load_row (r, &rows[i], rig.error, sizeof rig.error);
      uint64_t away = rows[i].number > 50 ? rows[i].number - 50 : 50 - rows[i].number;

      assert_non_null (it);
      assert_true (away >= farthest && away > 30);
      farthest = away;
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (r);
  rig_clear (&rig);
}

/* Iterations that a bounded reader has dropped, when it hears of their errors. */
static void
bounded__reader_knows_of_late_errors_of_what_it_has_dropped (void **state)
{
  enum
  {
    STRIDE = 37
  };
  Rig rig = { .m = { .memory = true } };
  TdTapeReader *r;
  int n_dropped = 0;

  rig_start (&rig, NULL);
  rig_iterations (&rig, N_ITERATIONS);
  td_tape_writer_flush (rig.w);
  r = open_bounded (&rig, MAX_KEPT);
  for (uint64_t number = 0; number < N_ITERATIONS; number += STRIDE)
    {
      model_begin (&rig.m);
      model_fault (&rig.m, number, 0);
      model_end (&rig.m);
      td_assembler_drain (rig.a, rig.ring);
    }
  rig_stop (&rig, 0);
  td_tape_reader_poll (r);
  for (uint64_t number = 0; number < N_ITERATIONS; number++)
    {
      TdTapeSummary row;

      n_dropped += td_tape_reader_find (r, number) < 0 && number % STRIDE == 0;
      assert_true (td_tape_reader_look_up (r, number, &row));
      assert_int_equal ((row.flags & TD_TAPE_ITERATION_ERROR) != 0, number % STRIDE == 0);
    }
  assert_true (n_dropped > N_ITERATIONS / STRIDE / 2);
  td_tape_reader_free (r);
  rig_clear (&rig);
}

static void
bounded__reader_counts_structures_as_the_others_do (void **state)
{
  Rig rig = { .m = { .memory = true } };
  TdTapeReader *r = follow (&rig, MAX_KEPT, 13);

  assert_int_equal (td_tape_reader_n_structures (r), 1);
  assert_int_equal (td_tape_reader_structure (r, 0)->n_iterations, N_ITERATIONS);
  td_tape_reader_free (r);
  rig_clear (&rig);
}

/* What is taken out of a bounded reader's hands takes no memory there. */
static void
bounded__reader_takes_memory_for_what_it_keeps_only (void **state)
{
  Rig rig = { .m = { .memory = true } };
  TdTapeReader *r = follow (&rig, MAX_KEPT, 100);

  assert_true (r->summaries.room <= 4 * MAX_KEPT);
  td_tape_reader_forget_reports (r);
  assert_int_equal (r->reports.room, 0);
  td_tape_reader_free (r);
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (bounded__reader_keeps_the_newest_and_an_even_sample),
    td_test (bounded__reader_finds_every_iteration_in_the_file),
    td_test (bounded__reader_finds_the_nearest_of_a_structure),
    td_test (like__iterations_are_whole),
    td_test (bounded__reader_knows_of_late_errors_of_what_it_has_dropped),
    td_test (bounded__reader_counts_structures_as_the_others_do),
    td_test (bounded__reader_takes_memory_for_what_it_keeps_only),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
