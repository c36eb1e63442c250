/* A tape with a budget: the newest iterations are there, the older ones thinned evenly, all are
 * counted, for those who open it at the end and for those who look on.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include "record/raw.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUDGET (256u << 10)
#define N_ITERATIONS 12000

static void
run_with (Rig *rig, const TdTapeWriterOptions *options, TdTapeReader **follower, int poll_every)
{
  uint32_t key;

  rig_start (rig, options);
  key = model_string (&rig->m, "loss");
  for (int i = 0; i < N_ITERATIONS; i++)
    {
      TdRawReport *report;

      model_begin (&rig->m);
      report = model_record (&rig->m, TD_RAW_REPORT, 0, sizeof *report);
      report->value = i;
      report->key = key;
      model_publish (&rig->m, report);
      model_op (&rig->m, MODEL_LOSS, TD_TAPE_PHASE_FORWARD, 0, rig->m.parameter, 0);
      if (i % 100 == 50)
        model_op (&rig->m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig->m.parameter, 0);
      model_end (&rig->m);
      td_assembler_drain (rig->a, rig->ring);
      if (poll_every == 0 || i % poll_every != 0)
        continue;
      td_tape_writer_flush (rig->w);
      if (*follower == NULL)
        *follower = td_tape_reader_open (rig->path, rig->error, sizeof rig->error);
      assert_non_null (*follower);
      td_tape_reader_poll (*follower);
    }
  rig_stop (rig, 0);
}

static void
run (Rig *rig, TdTapeReader **follower, int poll_every)
{
  run_with (rig, &(TdTapeWriterOptions){ .budget_bytes = BUDGET }, follower, poll_every);
}

/* In order, each once. */
static void
check_order (TdTapeReader *r)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  uint64_t n;
  const TdTapeReport *reports = td_tape_reader_reports (r, &n);

  for (uint32_t i = 1; i < s.n; i++)
    assert_true (s.rows[i].number > s.rows[i - 1].number);
  for (uint64_t i = 1; i < n; i++)
    assert_true (reports[i].iteration > reports[i - 1].iteration);
  assert_int_equal (reports[n - 1].iteration, N_ITERATIONS - 1);
  assert_int_equal (s.rows[s.n - 1].number, N_ITERATIONS - 1);
}

static void
budget__keeps_the_newest_and_counts_all (void **state)
{
  Rig rig = { 0 };
  TdTapeThinning t;
  TdTapeSummaries s;
  struct stat file;
  const TdTapeIteration *it;

  (void)state;
  run (&rig, NULL, 0);
  rig_read (&rig);
  t = td_tape_reader_thinning (rig.r);
  assert_int_equal (t.n_iterations, N_ITERATIONS);
  assert_int_equal (t.n_operations, N_ITERATIONS + N_ITERATIONS / 100);
  assert_int_equal (stat (rig.path, &file), 0);
  assert_true (file.st_size <= BUDGET);
  check_order (rig.r);
  s = td_tape_reader_summaries (rig.r);
  assert_true (t.stride > 1);
  /* Evenly: nowhere is there a wider gap than between every n-th. */
  assert_int_equal (s.rows[0].number, 0);
  for (uint32_t i = 1; i < s.n; i++)
    assert_true (s.rows[i].number - s.rows[i - 1].number <= t.stride);
  /* The newest, without a gap. */
  assert_true (t.n_whole > 30 && t.n_whole < t.n_iterations);
  assert_true (N_ITERATIONS - t.first_whole > 30);
  for (uint64_t number = t.first_whole; number < N_ITERATIONS; number++)
    {
      it = rig_load (&rig, number);
      assert_int_equal (it->n_events, number % 100 == 50 ? 2 : 1);
      td_tape_iteration_free (it);
    }
  rig_clear (&rig);
}

static void
budget__counts_the_iterations_of_each_structure (void **state)
{
  Rig rig = { 0 };
  uint64_t all = 0;

  (void)state;
  run (&rig, NULL, 0);
  rig_read (&rig);
  for (uint32_t i = 0; i < td_tape_reader_n_structures (rig.r); i++)
    all += td_tape_reader_structure (rig.r, i)->n_iterations;
  assert_int_equal (all, N_ITERATIONS);
  rig_clear (&rig);
}

/* Curves cover the run from its first iteration to its last. */
static void
budget__thins_curves_evenly (void **state)
{
  Rig rig = { 0 };
  uint64_t n, before = 0;
  const TdTapeReport *reports;
  TdTapeThinning t;

  (void)state;
  run (&rig, NULL, 0);
  rig_read (&rig);
  t = td_tape_reader_thinning (rig.r);
  reports = td_tape_reader_reports (rig.r, &n);
  assert_int_equal (reports[0].iteration, 0);
  for (uint64_t i = 0; i < n; i++)
    {
      assert_true (reports[i].iteration - before <= t.stride);
      before = reports[i].iteration;
    }
  assert_int_equal (before, N_ITERATIONS - 1);
  rig_clear (&rig);
}

/* A program that reports each hundredth iteration, and another thing once: none of them falls
 * on the iterations that keep a summary. */
static void
budget__keeps_curves_that_are_reported_now_and_then (void **state)
{
  Rig rig = { 0 };
  uint64_t n, n_rare = 0, before = 0;
  const TdTapeReport *reports;
  uint32_t loss, once;
  TdTapeThinning t;

  (void)state;
  rig_start (&rig, &(TdTapeWriterOptions){ .budget_bytes = BUDGET });
  loss = model_string (&rig.m, "loss");
  once = model_string (&rig.m, "once");
  for (int i = 0; i < 3 * N_ITERATIONS; i++)
    {
      model_begin (&rig.m);
      if (i % 100 == 99 || i == 5013)
        {
          TdRawReport *report = model_record (&rig.m, TD_RAW_REPORT, 0, sizeof *report);

          report->value = i;
          report->key = i == 5013 ? once : loss;
          model_publish (&rig.m, report);
        }
      model_op (&rig.m, MODEL_LOSS, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      model_end (&rig.m);
      td_assembler_drain (rig.a, rig.ring);
    }
  rig_stop (&rig, 0);
  rig_read (&rig);
  t = td_tape_reader_thinning (rig.r);
  assert_true (t.stride > 4);
  reports = td_tape_reader_reports (rig.r, &n);
  for (uint64_t i = 0; i < n; i++)
    if (strcmp (td_tape_reader_string (rig.r, reports[i].key), "once") == 0)
      n_rare++;
    else
      {
        assert_true (reports[i].iteration - before <= (t.stride > 100 ? 2 * t.stride : 100));
        before = reports[i].iteration;
      }
  assert_int_equal (n_rare, 1);
  assert_int_equal (before, 3 * N_ITERATIONS - 1);
  rig_clear (&rig);
}

/* Who looks on sees each row once, though they are written again, and all that one sees who
 * comes at the end. */
static void
budget__is_thinned_under_the_eyes_of_a_reader (void **state)
{
  static const int polls[] = { 1, 7, 600 };

  (void)state;
  for (unsigned k = 0; k < sizeof polls / sizeof *polls; k++)
    {
      Rig rig = { 0 };
      TdTapeReader *follower = NULL;
      TdTapeSummaries s;

      run (&rig, &follower, polls[k]);
      rig_read (&rig);
      td_tape_reader_poll (follower);
      check_order (follower);
      s = td_tape_reader_summaries (rig.r);
      for (uint32_t i = 0; i < s.n; i++)
        assert_true (td_tape_reader_find (follower, s.rows[i].number) >= 0);
      assert_int_equal (td_tape_reader_thinning (follower).n_iterations, N_ITERATIONS);
      assert_int_equal (td_tape_reader_thinning (follower).first_whole,
                        td_tape_reader_thinning (rig.r).first_whole);
      td_tape_reader_free (follower);
      rig_clear (&rig);
      unlink (td_test_tmp ("t.tdtape"));
    }
}

/* Texts that never repeat, findings in every iteration and notices cannot drive them out. */
static void
budget__is_not_used_up_by_texts_findings_and_notices (void **state)
{
  Rig rig = { .m = { .memory = true } };
  char text[200];
  TdTapeThinning t;
  struct stat file;

  (void)state;
  rig_start (&rig, &(TdTapeWriterOptions){ .budget_bytes = BUDGET });
  for (int i = 0; i < 3000; i++)
    {
      model_begin (&rig.m);
      snprintf (text, sizeof text, "notice %d %0150d", i, i);
      model_notice (&rig.m, TD_TAPE_NOTICE_ERROR, text);
      for (int k = 0; k < i % 40; k++)
        model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      model_end (&rig.m);
      td_assembler_drain (rig.a, rig.ring);
    }
  rig_stop (&rig, 0);
  rig_read (&rig);
  t = td_tape_reader_thinning (rig.r);
  assert_int_equal (t.n_iterations, 3000);
  assert_true (t.first_whole < 2999);
  assert_int_equal (stat (rig.path, &file), 0);
  assert_true (file.st_size <= BUDGET);
  rig_clear (&rig);
}

/* As many notices of the recording have this text. */
static uint32_t
told_of (const Rig *rig, const char *text)
{
  uint32_t told = 0;

  for (uint32_t i = 0; i < td_tape_reader_n_notices (rig->r); i++)
    {
      const TdTapeNotice *notice = td_tape_reader_notice (rig->r, i);

      told += notice->kind == TD_TAPE_NOTICE_RECORDING
              && strstr (td_tape_reader_string (rig->r, notice->text), text) != NULL;
    }
  return told;
}

static void
budget__says_on_the_tape_that_it_thinned (void **state)
{
  Rig rig = { 0 };
  TdTapeThinning t;
  char text[200], wanted[100];

  (void)state;
  run (&rig, NULL, 0);
  rig_read (&rig);
  assert_int_equal (told_of (&rig, "budget"), 2);
  t = td_tape_reader_thinning (rig.r);
  td_tape_thinning_text (&t, text, sizeof text);
  assert_non_null (strstr (text, "of 12000 are whole, the newest from"));
  snprintf (wanted, sizeof wanted,
            "; of the other %d, %d have a summary, of the older ones one in",
            (int)(t.n_iterations - t.n_whole), (int)(t.n_summaries - t.n_whole));
  assert_non_null (strstr (text, wanted));
  rig_clear (&rig);
}

/* That an iteration ran is said of each that did, and why there is no more of it. */
static void
budget__says_of_what_it_thinned_that_it_ran (void **state)
{
  Rig rig = { 0 };
  char error[200], ran[64];
  int n_gone = 0, n_summary = 0;

  (void)state;
  run (&rig, NULL, 0);
  rig_read (&rig);
  for (uint64_t number = 0; number < N_ITERATIONS; number++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (rig.r, number, error, sizeof error);

      snprintf (ran, sizeof ran, "iteration %d ran, and was thinned", (int)number);
      if (it == NULL)
        {
          assert_ptr_equal (strstr (error, ran), error);
          n_gone += strstr (error, "nothing of it was kept") != NULL;
          n_summary += strstr (error, "to its summary") != NULL;
        }
      td_tape_iteration_free (it);
    }
  assert_true (n_gone > 0 && n_summary > 0);
  assert_null (td_tape_iteration_load (rig.r, N_ITERATIONS, error, sizeof error));
  assert_string_equal (error, "no iteration 12000: those of the tape are 0 to 11999");
  rig_clear (&rig);
}

/* With all of its budget still before it, but faster than the rate: as with a small budget. */
static void
rate__of_a_fast_run_thins_before_the_budget_is_used_up (void **state)
{
  const TdTapeWriterOptions slow
      = { .budget_bytes = 1u << 30, .start_bytes = BUDGET, .rate_bytes = 1 };
  Rig rig = { 0 };
  TdTapeThinning t;
  struct stat file;

  (void)state;
  run_with (&rig, &slow, NULL, 0);
  rig_read (&rig);
  t = td_tape_reader_thinning (rig.r);
  assert_int_equal (t.n_iterations, N_ITERATIONS);
  assert_int_equal (stat (rig.path, &file), 0);
  assert_true (file.st_size <= BUDGET);
  check_order (rig.r);
  assert_true (t.n_whole > 30 && t.n_whole < t.n_iterations);
  for (uint64_t number = t.first_whole; number < N_ITERATIONS; number++)
    td_tape_iteration_free (rig_load (&rig, number));
  assert_int_equal (told_of (&rig, "faster than anybody looks"), 1);
  rig_clear (&rig);
}

/* What the rate allows by then is kept, beyond what it started with. */
static void
rate__that_is_not_exceeded_thins_nothing (void **state)
{
  const TdTapeWriterOptions fast
      = { .budget_bytes = 1u << 30, .start_bytes = BUDGET, .rate_bytes = (uint64_t)1 << 50 };
  Rig rig = { 0 };
  TdTapeThinning t;
  struct stat file;

  (void)state;
  run_with (&rig, &fast, NULL, 0);
  rig_read (&rig);
  t = td_tape_reader_thinning (rig.r);
  assert_int_equal (t.n_whole, N_ITERATIONS);
  assert_int_equal (stat (rig.path, &file), 0);
  assert_true (file.st_size > BUDGET);
  assert_int_equal (told_of (&rig, ""), 0);
  rig_clear (&rig);
}

/* One large iteration is no excess: it is stored whole whatever the rate. */
static void
rate__leaves_room_for_a_large_iteration (void **state)
{
  const TdTapeWriterOptions slow
      = { .budget_bytes = 1u << 30, .start_bytes = BUDGET, .rate_bytes = 1 };
  Rig rig = { 0 };
  const TdTapeIteration *it;

  (void)state;
  rig_start (&rig, &slow);
  model_begin (&rig.m);
  for (int k = 0; k < 100000; k++)
    {
      model_op (&rig.m, k % 3 ? MODEL_RELU : MODEL_LOSS, TD_TAPE_PHASE_FORWARD, 0,
                rig.m.parameter, 0);
      if (k % 100 == 0)
        td_assembler_drain (rig.a, rig.ring);
    }
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  rig_stop (&rig, 0);
  rig_read (&rig);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_events, 100000);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

/* Operations that differ, so that they are not few bytes; begun, and not ended. */
static void
run_large (Rig *rig, int n_events)
{
  model_begin (&rig->m);
  for (int k = 0; k < n_events; k++)
    {
      model_op (&rig->m, (k * k) % 7 < 3 ? MODEL_RELU : MODEL_LOSS, TD_TAPE_PHASE_FORWARD, 0,
                rig->m.parameter, 0);
      if (k % 100 == 0)
        td_assembler_drain (rig->a, rig->ring);
    }
}

/* Neither a budget of its own that is too small for it nor one that other runs have taken keeps
 * the first iteration from the tape, early or late; and what comes after it is found. */
static void
budget__has_the_first_iteration_whole_in_any_case (void **state)
{
  const int n_events = 30000, n_more = 10000;

  (void)state;
  for (int limited = 0; limited < 2; limited++)
    {
      Rig rig = { 0 };
      const TdTapeIteration *it;

      rig_start (&rig, &(TdTapeWriterOptions){ .overwrite = true,
                                               .budget_bytes = limited ? 0 : BUDGET });
      td_tape_writer_limit (rig.w, limited ? BUDGET : 0);
      run_large (&rig, n_events);
      model_end (&rig.m);
      td_assembler_drain (rig.a, rig.ring);
      rig_iterations (&rig, n_more);
      rig_stop (&rig, 0);
      rig_read (&rig);
      it = rig_load (&rig, 0);
      assert_int_equal (it->n_events, n_events);
      td_tape_iteration_free (it);
      td_tape_iteration_free (rig_load (&rig, n_more));
      assert_int_equal (td_tape_reader_thinning (rig.r).n_iterations, n_more + 1);
      assert_true (td_tape_reader_thinning (rig.r).n_whole < n_more / 2);
      rig_clear (&rig);
    }
}

/* Nor the one that the program stands in. */
static void
budget__has_the_iteration_at_hand_in_any_case (void **state)
{
  const int n_events = 30000;
  const TdTapeIteration *it;
  Rig rig = { 0 };

  (void)state;
  rig_start (&rig, NULL);
  td_tape_writer_limit (rig.w, BUDGET);
  rig_iterations (&rig, 3000);
  run_large (&rig, n_events);
  td_assembler_drain (rig.a, rig.ring);
  td_assembler_show_live (rig.a);
  td_tape_writer_flush (rig.w);
  it = td_tape_reader_live (rig_read (&rig));
  assert_non_null (it);
  assert_int_equal (it->number, 3000);
  assert_int_equal (it->n_events, n_events);
  td_tape_iteration_free (it);
  rig_stop (&rig, 0);
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (budget__keeps_the_newest_and_counts_all),
    td_test (budget__counts_the_iterations_of_each_structure),
    td_test (budget__thins_curves_evenly),
    td_test (budget__keeps_curves_that_are_reported_now_and_then),
    td_test (budget__is_thinned_under_the_eyes_of_a_reader),
    td_test (budget__is_not_used_up_by_texts_findings_and_notices),
    td_test (budget__says_on_the_tape_that_it_thinned),
    td_test (budget__says_of_what_it_thinned_that_it_ran),
    td_test (budget__has_the_first_iteration_whole_in_any_case),
    td_test (budget__has_the_iteration_at_hand_in_any_case),
    td_test (rate__of_a_fast_run_thins_before_the_budget_is_used_up),
    td_test (rate__that_is_not_exceeded_thins_nothing),
    td_test (rate__leaves_room_for_a_large_iteration),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
