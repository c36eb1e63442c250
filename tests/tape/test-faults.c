/* Errors that were found after their event, through ring, assembler, writer and reader. The
 * golden tape was made by this program with TD_MAKE_GOLDEN_TAPE=FILE, once; never make it anew.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/golden/tape-1.2-faults.tdtape"

enum
{
  N = 4 /* iterations */
};

/* In iteration 1 at its end, in iteration 3 of event 2 of iteration 1, of an event that there
 * is not, and of an iteration to come; in iteration 2 nothing. */
static void
record (Rig *rig, const char *path)
{
  rig_start (rig, &(TdTapeWriterOptions){ .path = path, .budget_bytes = 256 << 10 });
  for (uint64_t i = 0; i < N; i++)
    {
      model_begin (&rig->m);
      for (int k = 0; k < 3; k++)
        model_op (&rig->m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig->m.parameter, 0);
      model_op (&rig->m, MODEL_RELU_GRAD, TD_TAPE_PHASE_BACKWARD, 1, rig->m.parameter, 0);
      if (i == 1)
        model_fault (&rig->m, 1, 0);
      if (i == 3)
        {
          model_fault (&rig->m, 1, 2);
          model_fault (&rig->m, 2, 99);
          model_fault (&rig->m, 77, 0);
        }
      model_end (&rig->m);
      td_assembler_drain (rig->a, rig->ring); /* each is on the tape before the next */
    }
}

static void
compare (TdTapeReader *r)
{
  static const struct
  {
    unsigned events; /* that failed, by bit */
    bool error;
  } expected[N] = { { 0, false }, { 5, true }, { 0, true }, { 0, false } };
  const TdTapeSummaries s = td_tape_reader_summaries (r);
  char error[256], text[256];

  assert_int_equal (td_tape_reader_n_faults (r), 4);
  assert_int_equal (s.n, N);
  for (uint32_t i = 0; i < N; i++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, i, error, sizeof error);

      assert_non_null (it);
      assert_int_equal ((s.rows[i].flags & TD_TAPE_ITERATION_ERROR) != 0, expected[i].error);
      assert_int_equal ((it->flags & TD_TAPE_ITERATION_ERROR) != 0, expected[i].error);
      for (uint32_t k = 0; k < it->n_events; k++)
        assert_int_equal (
            it->events[k].flags & (TD_TAPE_EVENT_FAILED | TD_TAPE_EVENT_FAULT),
            expected[i].events >> k & 1 ? TD_TAPE_EVENT_FAILED | TD_TAPE_EVENT_FAULT : 0);
      if (i == 1)
        {
          td_tape_fault_text (td_tape_reader_fault (r, 0), "t", it, text, sizeof text);
          assert_string_equal (text, "index 12 outside 0..9 at element 7 of t, found at the "
                                     "end of the iteration; backward had run");
          td_tape_fault_text (td_tape_reader_fault (r, 1), "t", it, text, sizeof text);
          assert_string_equal (text, "index 12 outside 0..9 at element 7 of t, found in "
                                     "iteration 3; backward had run");
        }
      td_tape_iteration_free (it);
    }
  td_tape_fault_text (td_tape_reader_fault (r, 0), "t", NULL, text, sizeof text);
  assert_string_equal (text, "index 12 outside 0..9 at element 7 of t, found after 4 events of "
                             "the iteration");
  assert_int_equal (td_tape_reader_n_notices (r), 4);
  assert_int_equal (td_tape_reader_notice (r, 1)->iteration, 1);
  assert_int_equal (td_tape_reader_notice (r, 1)->event, 2);
}

static void
faults__are_failed_events_of_their_iterations (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };

  record (&rig, NULL);
  rig_stop (&rig, 0);
  compare (rig_read (&rig));
  rig_clear (&rig);
}

/* A reader that has seen the iteration end learns of it later. */
static void
faults__that_come_later_are_seen_by_who_follows (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;
  TdTapeReader *r;

  rig_start (&rig, NULL);
  for (int i = 0; i < 2; i++)
    {
      model_begin (&rig.m);
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      if (i == 1)
        model_fault (&rig.m, 0, 0);
      model_end (&rig.m);
      td_assembler_drain (rig.a, rig.ring);
      td_tape_writer_flush (rig.w);
      r = rig_read (&rig);
      assert_int_equal (td_tape_reader_n_faults (r), i);
      it = rig_load (&rig, 0);
      assert_int_equal ((it->events[0].flags & TD_TAPE_EVENT_FAULT) != 0, i);
      td_tape_iteration_free (it);
      assert_int_equal (
          (td_tape_reader_summaries (r).rows[0].flags & TD_TAPE_ITERATION_ERROR) != 0, i);
    }
  rig_stop (&rig, 0);
  rig_clear (&rig);
}

/* The iteration that still runs: what it has of its own is seen at once. */
static void
faults__of_the_live_iteration_are_in_it (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
  model_fault (&rig.m, 0, 0);
  td_assembler_drain (rig.a, rig.ring);
  td_assembler_show_live (rig.a);
  td_tape_writer_flush (rig.w);
  it = td_tape_reader_live (rig_read (&rig));
  assert_non_null (it);
  assert_int_equal (it->n_notices, 1);
  assert_true (it->flags & TD_TAPE_ITERATION_ERROR);
  assert_true (it->events[0].flags & TD_TAPE_EVENT_FAULT);
  td_tape_iteration_free (it);
  rig_stop (&rig, 0);
  rig_clear (&rig);
}

/* How often a text is in another. */
static int
count (const char *text, const char *what)
{
  int n = 0;

  for (const char *at = strstr (text, what); at != NULL; at = strstr (at + 1, what))
    n++;
  return n;
}

static void
dump__tells_each_notice_once (void **state)
{
  static const char *const texts[] = { "in iteration 0", "enable_backprop=0", "between",
                                       "in iteration 1", "in the live one" };
  Rig rig = { .m = { .n_layers = 1 } };
  TdTapeReader *r;

  rig_start (&rig, NULL);
  for (int i = 0; i < 3; i++)
    {
      model_begin (&rig.m);
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      model_notice (&rig.m, TD_TAPE_NOTICE_ERROR, texts[i == 0 ? 0 : i + 2]);
      if (i == 1)
        model_notice (&rig.m, TD_TAPE_NOTICE_CONFIG, texts[1]);
      if (i == 2)
        break;
      model_end (&rig.m);
      if (i == 0)
        model_notice (&rig.m, TD_TAPE_NOTICE_TEXT, texts[2]);
    }
  td_assembler_drain (rig.a, rig.ring);
  td_assembler_show_live (rig.a);
  td_tape_writer_flush (rig.w);
  r = rig_read (&rig);
  for (int json = 0; json < 2; json++)
    {
      char *text = NULL;
      size_t n;
      FILE *out = open_memstream (&text, &n);

      td_tape_dump (r, out, json == 1, 0, UINT64_MAX);
      fclose (out);
      for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (count (text, texts[i]) != 1)
          fail_msg ("%s: %d times", texts[i], count (text, texts[i]));
      free (text);
    }
  rig_stop (&rig, 0);
  rig_clear (&rig);
}

static void
print (TdTapeReader *r, bool json, const char *golden)
{
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream (&text, &n);

  td_tape_dump (r, out, json, 0, UINT64_MAX);
  fclose (out);
  td_test_golden (golden, text);
  free (text);
}

static void
golden__tape_with_faults_reads_as_it_always_did (void **state)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (td_test_source (GOLDEN), error, sizeof error);
  TdTapeCheck check;

  if (r == NULL)
    fail_msg ("%s", error);
  compare (r);
  print (r, false, "tape-1.2-faults.txt");
  print (r, true, "tape-1.2-faults.jsonl");
  td_tape_reader_free (r);
  assert_true (td_tape_check (td_test_source (GOLDEN), &check));
  assert_true (check.whole);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (faults__are_failed_events_of_their_iterations),
    td_test (faults__that_come_later_are_seen_by_who_follows),
    td_test (faults__of_the_live_iteration_are_in_it),
    td_test (dump__tells_each_notice_once),
    td_test (golden__tape_with_faults_reads_as_it_always_did),
  };

  if (rig_makes_golden (record))
    return 0;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
