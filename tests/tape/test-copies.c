/* Copies between the host and devices, through ring, assembler, writer and reader. The golden
 * tape was made by this program with TD_MAKE_GOLDEN_TAPE=FILE, once; never make it anew.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/golden/tape-1.2-copies.tdtape"

enum
{
  N = 2, /* iterations */
  EVENTS = 2,
  N_COPIES = 4
};

/* Those of an iteration, by the event before which they come.  The last one has its time. */
static const struct
{
  TdTapeCopy copy;
  bool timed, of_parameter;
} copies[N_COPIES] = {
  { { .bytes = 100, .device = 1, .why = TD_TAPE_COPY_NEW, .flags = TD_TAPE_COPY_BEFORE },
    true,
    true },
  { { .bytes = 200, .device = 1, .why = TD_TAPE_COPY_BATCH, .flags = TD_TAPE_COPY_UNUSED },
    false,
    false },
  { { .bytes = 300,
      .event = 1,
      .site = 2,
      .device = 2,
      .way = TD_TAPE_COPY_TO_HOST,
      .why = TD_TAPE_COPY_OP },
    true,
    false },
  { { .bytes = 4,
      .event = 2,
      .site = 1,
      .device = 1,
      .way = TD_TAPE_COPY_TO_HOST,
      .why = TD_TAPE_COPY_READ },
    true,
    true },
};

static void
put_copies (Model *m, uint32_t event)
{
  for (int i = 0; i < N_COPIES; i++)
    if (copies[i].copy.event == event)
      {
        TdRawCopy *raw = model_record (m, TD_RAW_COPY, 0, sizeof *raw);

        raw->copy = copies[i].copy;
        raw->variable = copies[i].of_parameter ? m->parameter : 0;
        raw->start = copies[i].timed ? td_ring_ticks () : 0;
        while (copies[i].timed && raw->end <= raw->start + 1000)
          raw->end = td_ring_ticks ();
        model_publish (m, raw);
      }
}

static void
record (Rig *rig, const char *path)
{
  rig_start (rig, &(TdTapeWriterOptions){ .path = path, .budget_bytes = 256 << 10 });
  for (uint64_t i = 0; i < N; i++)
    {
      model_begin (&rig->m);
      for (uint32_t k = 0; k <= EVENTS; k++)
        {
          put_copies (&rig->m, k);
          if (k < EVENTS)
            model_op (&rig->m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig->m.parameter, 0);
        }
      if (i == 1)
        model_fault (&rig->m, 0, 1); /* of the iteration before */
      model_end (&rig->m);
      td_assembler_drain (rig->a, rig->ring);
    }
}

static void
compare_one (const TdTapeIteration *it, int i)
{
  const TdTapeCopy *c = &it->copies[i], *expected = &copies[i].copy;

  assert_int_equal (c->bytes, expected->bytes);
  assert_int_equal (c->event, expected->event);
  assert_int_equal (c->device, expected->device);
  assert_int_equal (c->way, expected->way);
  assert_int_equal (c->why, expected->why);
  assert_int_equal (c->site != 0, expected->site != 0);
  assert_int_equal (c->flags, expected->flags | (copies[i].timed ? TD_TAPE_COPY_TIMED : 0));
  assert_int_equal (c->var != TD_TAPE_NONE, copies[i].of_parameter);
  assert_int_equal (c->duration_ns > 0, copies[i].timed);
  if (!copies[i].timed)
    assert_int_equal (c->start_ns, 0);
  assert_true (c->start_ns + c->duration_ns <= it->duration_ns);
}

static void
compare (TdTapeReader *r)
{
  char error[256];

  for (uint32_t number = 0; number < N; number++)
    {
      const TdTapeIteration *it = td_tape_iteration_load (r, number, error, sizeof error);

      assert_non_null (it);
      assert_int_equal (it->n_copies, N_COPIES);
      for (int i = 0; i < N_COPIES; i++)
        compare_one (it, i);
      assert_int_equal (it->n_faults, number == 0);
      td_tape_iteration_free (it);
    }
}

static void
copies__are_read_as_they_were_told (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };

  record (&rig, NULL);
  rig_stop (&rig, 0);
  compare (rig_read (&rig));
  rig_clear (&rig);
}

/* *Owner*: the caller. */
static char *
print (TdTapeReader *r, bool json)
{
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream (&text, &n);

  td_tape_dump (r, out, json, 0, UINT64_MAX);
  fclose (out);
  return text;
}

/* What a device says of a copy, by its number in the iteration. */
static void
put_time (Model *m, uint32_t copy, double start_ns, double duration_ns)
{
  TdRawDeviceTime *raw = model_record (m, TD_RAW_DEVICE_TIME, 0, sizeof *raw);

  raw->iteration = m->iteration;
  raw->zero = td_ring_ticks ();
  raw->since_ns = -1;
  raw->start_ns = start_ns;
  raw->duration_ns = duration_ns;
  raw->event = TD_TAPE_NONE;
  raw->copy = copy;
  raw->device = 1;
  raw->stream = 1;
  raw->kind = TD_TAPE_DEVICE_TIME_EXACT;
  model_publish (m, raw);
}

static void
copies__take_the_times_that_their_device_tells (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;
  char error[256], *text;
  TdTapeReader *r;

  rig_start (&rig, &(TdTapeWriterOptions){ .budget_bytes = 256 << 10 });
  model_begin (&rig.m);
  for (uint32_t k = 0; k <= EVENTS; k++)
    put_copies (&rig.m, k);
  put_time (&rig.m, N_COPIES, 50, 700);
  put_time (&rig.m, 0, 1, 2);            /* of no event, and no copy */
  put_time (&rig.m, N_COPIES + 1, 1, 2); /* of one that is not there */
  put_time (&rig.m, 3, 1, -1);           /* a clock that went back */
  model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  rig_stop (&rig, 0);
  r = rig_read (&rig);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_copies, N_COPIES);
  for (int i = 0; i < N_COPIES; i++)
    assert_int_equal (it->copies[i].device_kind,
                      i == N_COPIES - 1 ? TD_TAPE_DEVICE_TIME_EXACT : TD_TAPE_DEVICE_TIME_NONE);
  assert_int_equal (it->copies[N_COPIES - 1].device_duration_ns, 700);
  assert_int_equal (it->copies[N_COPIES - 1].device_stream, 1);
  assert_true (it->copies[N_COPIES - 1].device_start_ns
               >= it->copies[N_COPIES - 1].start_ns); /* not before it was issued */
  assert_int_equal (it->n_device_times, 0);
  td_tape_iteration_free (it);
  text = print (r, true);
  assert_contains (text, "\"device_time\":\"exact\"");
  assert_contains (text, "\"device_ns\":700,\"device_stream\":1");
  free (text);
  text = print (r, false);
  assert_contains (text, " for 700 ns (exact)");
  free (text);
  rig_clear (&rig);
}

static void
golden__tape_with_copies_reads_as_it_always_did (void **state)
{
  static const char *const goldens[] = { "tape-1.2-copies.txt", "tape-1.2-copies.jsonl" };
  char error[256];
  TdTapeReader *r = td_tape_reader_open (td_test_source (GOLDEN), error, sizeof error);
  TdTapeCheck check;

  if (r == NULL)
    fail_msg ("%s", error);
  compare (r);
  for (int json = 0; json < 2; json++)
    {
      char *text = print (r, json);

      td_test_golden (goldens[json], text);
      free (text);
    }
  td_tape_reader_free (r);
  assert_true (td_tape_check (td_test_source (GOLDEN), &check));
  assert_true (check.whole);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (copies__are_read_as_they_were_told),
    td_test (copies__take_the_times_that_their_device_tells),
    td_test (golden__tape_with_copies_reads_as_it_always_did),
  };

  if (rig_makes_golden (record))
    return 0;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
