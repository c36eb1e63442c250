/* Both dead: the tape and the ring that is left beside it.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child: record into PATH with the ring beside it, then die: `before` iterations drained,
 * `after` iterations and 3 events of another only in the ring. */
static void
record_and_die (const char *path, const char *ring_path, int before, int after)
{
  TdRingOptions ring_options = { .capacity = 1 << 20, .tape = path };
  char error[256];
  TdRing *ring = td_ring_new (ring_path, &ring_options, error, sizeof error);
  TdTapeWriterOptions options
      = { .size = sizeof options, .path = path, .mono_ns = ring->shared->mono_ns };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);
  TdAssembler *a = td_assembler_new (w, ring->shared);
  Model m = { .memory = true, .recurrent = true };

  model_define (&m, ring);
  td_ring_consume (ring);
  for (int i = 0; i < before; i++)
    model_iteration (&m);
  td_assembler_drain (a, ring);
  for (int i = 0; i < after; i++)
    model_iteration (&m);
  model_begin (&m);
  for (int i = 0; i < 3; i++)
    model_op (&m, MODEL_RELU, 0, 0, m.parameter, 0);
  ring->shared->now.opdef = MODEL_LINEAR;
  ring->shared->now.running = 1;
  kill (getpid (), SIGKILL);
}

static void
died (const char *path, const char *ring_path, int before, int after)
{
  int status;
  pid_t child = fork ();

  if (child == 0)
    record_and_die (path, ring_path, before, after);
  assert_int_equal (waitpid (child, &status, 0), child);
  assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL);
}

static void
recover__appends_what_the_ring_still_has (void **state)
{
  const char *path = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out.tdtape");
  char error[256];
  TdTapeReader *r;
  TdTapeSummaries s;
  const TdTapeIteration *a, *b;
  TdTapeCheck check;

  died (path, td_test_tmp ("t.tdtape.ring"), 10, 7);
  if (!td_assembler_recover (path, NULL, out, error, sizeof error))
    fail_msg ("%s", error);
  assert_true (td_tape_check (out, &check));
  assert_true (check.whole);
  r = td_tape_reader_open (out, error, sizeof error);
  s = td_tape_reader_summaries (r);
  assert_int_equal (s.n, 18);
  for (uint32_t i = 0; i < s.n; i++)
    assert_int_equal (s.rows[i].number, i);
  a = td_tape_iteration_load (r, 9, error, sizeof error);
  b = td_tape_iteration_load (r, 12, error, sizeof error);
  assert_non_null (a);
  assert_non_null (b);
  assert_int_equal (a->n_events, b->n_events);
  for (uint32_t i = 0; i < a->n_events; i++)
    {
      assert_int_equal (a->events[i].key, b->events[i].key);
      assert_string_equal (td_tape_reader_op_name (r, a->events[i].opdef),
                           td_tape_reader_op_name (r, b->events[i].opdef));
    }
  assert_int_equal (a->fingerprint_dims, b->fingerprint_dims);
  assert_int_equal (a->peak_bytes, b->peak_bytes);
  td_tape_iteration_free (a);
  td_tape_iteration_free (b);
  b = td_tape_iteration_load (r, 17, error, sizeof error);
  assert_non_null (b);
  assert_int_equal (b->n_events, 3);
  assert_true (b->flags & TD_TAPE_ITERATION_PARTIAL);
  td_tape_iteration_free (b);
  assert_string_equal (td_tape_reader_op_name (r, td_tape_reader_end (r)->last_op), "linear");
  assert_int_equal (td_tape_reader_end (r)->running, 1);
  td_tape_reader_free (r);
}

static void
recover__works_when_nothing_was_drained (void **state)
{
  const char *path = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out.tdtape");
  char error[256];
  TdTapeReader *r;

  died (path, td_test_tmp ("t.tdtape.ring"), 0, 4);
  assert_true (td_assembler_recover (path, NULL, out, error, sizeof error));
  r = td_tape_reader_open (out, error, sizeof error);
  assert_int_equal (td_tape_reader_summaries (r).n, 5);
  td_tape_reader_free (r);
}

static void
recover__without_a_ring_is_a_repair (void **state)
{
  Rig rig = { 0 };
  const char *out = td_test_tmp ("out.tdtape");
  TdTapeReader *r;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 5);
  rig_stop (&rig, 0);
  assert_true (td_assembler_recover (rig.path, NULL, out, rig.error, sizeof rig.error));
  r = td_tape_reader_open (out, rig.error, sizeof rig.error);
  assert_int_equal (td_tape_reader_summaries (r).n, 5);
  td_tape_reader_free (r);
  assert_false (td_assembler_recover (rig.path, NULL, out, rig.error, sizeof rig.error));
  assert_contains (rig.error, "File exists");
  rig_clear (&rig);
}

static void
recover__refuses_a_ring_that_is_none (void **state)
{
  Rig rig = { 0 };

  rig_start (&rig, NULL);
  rig_iterations (&rig, 2);
  rig_stop (&rig, -2);
  td_test_write_file (td_test_tmp ("t.tdtape.ring"), "garbage", 7);
  assert_false (td_assembler_recover (rig.path, NULL, td_test_tmp ("out.tdtape"), rig.error,
                                      sizeof rig.error));
  assert_contains (rig.error, "not a ring");
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (recover__appends_what_the_ring_still_has),
    td_test (recover__works_when_nothing_was_drained),
    td_test (recover__without_a_ring_is_a_repair),
    td_test (recover__refuses_a_ring_that_is_none),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
