/* Static functions on the tape: schedules round trip and are checked, events and counts are
 * there. SPDX-License-Identifier: MIT */
#include "rig.h"

#include "model-static.h"
#include "tape/format/tape-private.h"

#include <stdlib.h>
#include <string.h>

/* Two iterations: traced in the first, replayed twice in the second. */
static void
start (Rig *rig, uint32_t part)
{
  rig_start (rig, NULL);
  model_function (&rig->m);
  model_begin (&rig->m);
  model_op (&rig->m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig->m.parameter, 0);
  model_static_event (&rig->m, TD_TAPE_STATIC_TRACED, 0, NULL);
  model_static_state (&rig->m, TD_TAPE_CHAIN_TRACING, 0, 0, 0);
  model_end (&rig->m);
  model_begin (&rig->m);
  model_plan (&rig->m, 7, part);
  model_static_event (&rig->m, TD_TAPE_STATIC_SCHEDULED, 7, NULL);
  model_op (&rig->m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig->m.parameter, 0);
  model_static_event (&rig->m, TD_TAPE_STATIC_MISSED, 7, "x is (5, 8), (4, 8) before");
  model_static_state (&rig->m, TD_TAPE_CHAIN_SCHEDULED, 7, 2, 2);
  model_end (&rig->m);
  td_assembler_drain (rig->a, rig->ring);
}

static const TdTapeSchedule *
load (Rig *rig, uint32_t id)
{
  const TdTapeSchedule *s
      = td_tape_schedule_load (rig_read (rig), id, rig->error, sizeof rig->error);

  if (s == NULL)
    fail_msg ("%s", rig->error);
  return s;
}

static void
check_schedule (Rig *rig)
{
  const TdTapeSchedule *s = load (rig, 1);
  TdTapeSchedule expected = model_schedule ();
  char site[64];

  assert_int_equal (s->head.id, 1);
  assert_int_equal (s->head.arena_bytes, 384);
  assert_string_equal (td_tape_reader_string (rig->r, s->head.key), "(4, 8), train");
  assert_int_equal (s->n_steps, expected.n_steps);
  for (uint32_t i = 0; i < s->n_steps; i++)
    {
      assert_int_equal (s->steps[i].kind, expected.steps[i].kind);
      assert_int_equal (s->steps[i].fate, expected.steps[i].fate);
      assert_int_equal (s->steps[i].list, expected.steps[i].list);
      assert_int_equal (s->steps[i].group, expected.steps[i].group);
    }
  assert_memory_equal (s->operands, expected.operands, s->n_operands * sizeof *s->operands);
  assert_memory_equal (s->dims, expected.dims, s->n_dims * sizeof *s->dims);
  assert_string_equal (td_tape_reader_op_name (rig->r, s->steps[2].opdef), "relu");
  assert_string_equal (td_tape_reader_path_text (rig->r, s->steps[0].path), "mlp/l1");
  assert_string_equal (td_tape_reader_site_text (rig->r, s->steps[0].site, site, sizeof site),
                       "model.c:10");
  assert_int_equal (s->n_guards, 1);
  assert_string_equal (td_tape_reader_string (rig->r, s->guards[0].text), "x (4, 8)");
  td_tape_schedule_free (s);
}

static void
static_tape__round_trips_a_schedule (void **state)
{
  Rig rig = { 0 };

  start (&rig, 4096);
  check_schedule (&rig);
  assert_int_equal (td_assembler_state (rig.a)->n_bad, 0);
  rig_clear (&rig);
}

static void
static_tape__puts_a_schedule_together_that_comes_in_parts (void **state)
{
  Rig rig = { 0 };

  start (&rig, 104);
  check_schedule (&rig);
  rig_clear (&rig);
}

/* By hand: value 2 is written in step 0, read by the group 1 and by step 6; a member's value
 * lives in its group's step; value 9 belongs to a step that was taken out. */
static void
static_tape__knows_from_when_to_when_a_value_lives (void **state)
{
  static const uint32_t first[] = { 0, 0, 0, 1, 1, 5, 5, 6, 7, UINT32_MAX };
  static const uint32_t last[] = { 7, 0, 6, 5, 1, 5, 6, 7, 7, UINT32_MAX };
  Rig rig = { 0 };
  const TdTapeSchedule *s;

  start (&rig, 4096);
  s = load (&rig, 1);
  for (uint32_t i = 0; i < s->n_values; i++)
    {
      assert_int_equal (s->values[i].first, first[i]);
      assert_int_equal (s->values[i].last, last[i]);
    }
  td_tape_schedule_free (s);
  rig_clear (&rig);
}

static void
static_tape__stores_an_equal_schedule_once (void **state)
{
  Rig rig = { 0 };

  start (&rig, 4096);
  model_begin (&rig.m);
  model_plan (&rig.m, 8, 4096);
  model_static_event (&rig.m, TD_TAPE_STATIC_SCHEDULED, 8, NULL);
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  assert_int_equal (td_tape_reader_n_schedules (rig_read (&rig)), 1);
  assert_int_equal (td_tape_reader_static_event (rig.r, 3)->schedule, 1);
  rig_clear (&rig);
}

static void
static_tape__says_what_happened_and_where_functions_stand (void **state)
{
  Rig rig = { 0 };
  const TdTapeStaticEvent *e;
  const TdTapeIteration *it;
  char site[64];

  start (&rig, 4096);
  rig_read (&rig);
  assert_int_equal (td_tape_reader_n_chains (rig.r), 1);
  assert_string_equal (td_tape_reader_string (rig.r, td_tape_reader_chain (rig.r, 1)->name),
                       "block");
  assert_int_equal (td_tape_reader_n_static_events (rig.r), 3);
  e = td_tape_reader_static_event (rig.r, 0);
  assert_int_equal (e->what, TD_TAPE_STATIC_TRACED);
  assert_int_equal (e->iteration, 0);
  e = td_tape_reader_static_event (rig.r, 2);
  assert_int_equal (e->what, TD_TAPE_STATIC_MISSED);
  assert_int_equal (e->iteration, 1);
  assert_int_equal (e->schedule, 1); /* the tape's number of the program's 7 */
  assert_string_equal (td_tape_reader_string (rig.r, e->text), "x is (5, 8), (4, 8) before");
  assert_string_equal (td_tape_reader_site_text (rig.r, e->site, site, sizeof site),
                       "model.c:10");
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_statics, 1);
  assert_int_equal (it->statics[0].state, TD_TAPE_CHAIN_TRACING);
  assert_int_equal (it->statics[0].n_dynamic, 1);
  td_tape_iteration_free (it);
  it = rig_load (&rig, 1);
  assert_int_equal (it->statics[0].state, TD_TAPE_CHAIN_SCHEDULED);
  assert_int_equal (it->statics[0].schedule, 1);
  assert_int_equal (it->statics[0].n_replays, 2);
  assert_int_equal (it->statics[0].unverified_since, 2);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
static_tape__is_counted_in_the_tapes_facts (void **state)
{
  Rig rig = { 0 };
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream (&text, &n);

  start (&rig, 4096);
  td_tape_info (rig_read (&rig), out, false);
  td_tape_info (rig.r, out, true);
  fclose (out);
  assert_contains (text, "static functions 1, 1 schedule, 2 calls replayed, 1 by code, "
                         "unverified since iteration 1\n");
  assert_contains (text, "\"static\":{\"chains\":1,\"schedules\":1,\"replays\":2,\"dynamic\":1,"
                         "\"unverified_since\":1}");
  free (text);
  rig_clear (&rig);
}

/* --------------------------------------------------------------- a schedule as it grows */

/* How far it is can be asked without it: what was discarded is not counted. */
static const TdTapeIteration *
live (Rig *rig)
{
  const TdTapeIteration *it;
  uint32_t n_events, discarded = 0;
  uint64_t number;

  td_assembler_drain (rig->a, rig->ring);
  td_assembler_show_live (rig->a);
  td_tape_writer_flush (rig->w);
  it = td_tape_reader_live (rig_read (rig));
  assert_non_null (it);
  for (uint32_t i = 0; i < it->n_runs; i++)
    if (it->runs[i].flags & TD_TAPE_RUN_DISCARDED)
      discarded += it->runs[i].end - it->runs[i].begin;
  assert_true (td_tape_reader_head (rig->r, &number, &n_events));
  assert_int_equal (number, it->number);
  assert_int_equal (n_events, it->n_events - discarded);
  return it;
}

static void
static_tape__lists_a_growing_schedule_entry_by_entry (void **state)
{
  Rig rig = { 0 };

  rig_start (&rig, NULL);
  model_function (&rig.m);
  model_begin (&rig.m);
  model_run (&rig.m, TD_RAW_RUN_BEGINS, TD_TAPE_RUN_TRACED, 0, 0);
  for (uint32_t i = 0; i < 5; i++)
    {
      const TdTapeIteration *it;

      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      model_entry (&rig.m, 0, i, TD_TAPE_STEP_OP, MODEL_RELU);
      it = live (&rig);
      assert_int_equal (it->n_traced, i + 1);
      assert_int_equal (it->traced[i].number, i);
      assert_int_equal (it->traced[i].event, i);
      assert_string_equal (td_tape_reader_op_name (rig.r, it->traced[i].opdef), "relu");
      assert_string_equal (td_tape_reader_path_text (rig.r, it->traced[i].path), "mlp/l1");
      assert_int_equal (it->n_runs, 1);
      assert_int_equal (it->runs[0].flags, TD_TAPE_RUN_OPEN);
      assert_int_equal (it->runs[0].end, i + 1);
      td_tape_iteration_free (it);
    }
  rig_clear (&rig);
}

static void
static_tape__says_at_once_where_a_function_stands (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;

  start (&rig, 4096);
  model_begin (&rig.m);
  it = live (&rig);
  assert_int_equal (it->n_statics, 0);
  td_tape_iteration_free (it);
  model_static_state (&rig.m, TD_TAPE_CHAIN_TRACING, 7, 0, 2);
  it = live (&rig);
  assert_int_equal (it->n_statics, 1);
  assert_int_equal (it->statics[0].state, TD_TAPE_CHAIN_TRACING);
  td_tape_iteration_free (it);
  model_static_state (&rig.m, TD_TAPE_CHAIN_INVALID, 0, 0, 2);
  it = live (&rig);
  assert_int_equal (it->n_statics, 1); /* the last of an iteration counts */
  assert_int_equal (it->statics[0].state, TD_TAPE_CHAIN_INVALID);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
static_tape__says_which_events_a_function_made (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;

  start (&rig, 4096);
  model_begin (&rig.m);
  model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
  for (unsigned kind = TD_TAPE_RUN_VERIFICATION; kind >= TD_TAPE_RUN_REPLAYED; kind--)
    {
      model_run (&rig.m, TD_RAW_RUN_BEGINS, kind, kind == TD_TAPE_RUN_REPLAYED ? 7 : 0, 0);
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      model_run (&rig.m, TD_RAW_RUN_ENDS, kind, 7, 0);
    }
  model_run (&rig.m, TD_RAW_RUN_DISCARDED, TD_TAPE_RUN_VERIFICATION, 0, 0);
  model_run (&rig.m, TD_RAW_RUN_ENDS, TD_TAPE_RUN_CODE, 0, 0); /* that never began */
  model_run (&rig.m, TD_RAW_RUN_BEGINS, TD_TAPE_RUN_REPLAYED, 7, 1);
  model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_BACKWARD, 0, rig.m.parameter, 0);
  model_run (&rig.m, TD_RAW_RUN_ENDS, TD_TAPE_RUN_REPLAYED, 7, 1);
  it = live (&rig);
  assert_int_equal (it->runs[0].flags, TD_TAPE_RUN_DISCARDED);
  td_tape_iteration_free (it);
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  rig_read (&rig);
  it = rig_load (&rig, 2);
  assert_int_equal (it->n_runs, 3);
  assert_int_equal (it->runs[0].kind, TD_TAPE_RUN_VERIFICATION);
  assert_int_equal (it->runs[0].flags, TD_TAPE_RUN_DISCARDED);
  assert_int_equal (it->runs[0].begin, 1);
  assert_int_equal (it->runs[0].end, 3);
  assert_int_equal (it->runs[1].kind, TD_TAPE_RUN_REPLAYED);
  assert_int_equal (it->runs[1].schedule, 1); /* the tape's number of the program's 7 */
  assert_int_equal (it->runs[1].flags, 0);
  assert_int_equal (it->runs[1].begin, 3);
  assert_int_equal (it->runs[1].end, 5);
  assert_true (it->runs[1].ns > 0);
  assert_int_equal (it->runs[2].list, 1);
  assert_int_equal (it->runs[2].begin, 5);
  assert_int_equal (it->runs[2].end, 6);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

/* ---------------------------------------------------------------- what is not well formed */

typedef struct
{
  TdTapeSchedule s;
  TdTapeStep steps[8];
  uint32_t operands[19];
  TdTapeNode nodes[10];
  TdTapeValue values[10];
} Copy;

/* The good schedule, which mutations may change. */
static void
copy_good (Copy *c, Rig *rig)
{
  const TdTapeSchedule *s = load (rig, 1);

  c->s = *s;
  memcpy (c->steps, s->steps, sizeof c->steps);
  memcpy (c->operands, s->operands, sizeof c->operands);
  memcpy (c->nodes, s->nodes, sizeof c->nodes);
  memcpy (c->values, s->values, sizeof c->values);
  c->s.steps = c->steps;
  c->s.operands = c->operands;
  c->s.nodes = c->nodes;
  c->s.values = c->values;
  c->s.n_guards = 0;
  td_tape_schedule_free (s);
}

/* Set `bytes` bytes at `offset` of the copy to `value`. */
typedef struct
{
  size_t offset, bytes;
  uint64_t value;
  const char *says;
} Mutation;

#define M(field, value, says)                                                                  \
  {                                                                                            \
    offsetof (Copy, field), sizeof ((Copy *)0)->field, value, says                             \
  }
static const Mutation mutations[] = {
  M (operands[3], 10, "operand 3 is node 10 of 10"),
  M (nodes[2].value, 10, "node 2 is of value 10 of 10"),
  M (nodes[2].ndim, 9, "node 2"),
  M (nodes[2].first_dim, 3, "node 2"),
  M (values[2].kind, 6, "value 2 is of an unknown kind"),
  M (values[0].offset, 0, "value 0 is not the schedule's"),
  M (values[7].offset, 257, "value 7 lies outside the arena"),
  M (values[3].offset, 64, "values 2 and 3 overlap at step 1"),
  M (values[7].offset, 192, "values 6 and 7 overlap at step 6"),
  M (values[6].offset, 0, "values 2 and 6 overlap at step 5"),
  M (values[2].last, 5, "value 2 does not live from step 0 to step 5"),
  M (steps[0].kind, 11, "step 0 is of an unknown kind"),
  M (steps[4].fate, 5, "step 4 is of an unknown kind"),
  M (steps[4].fate, 0, "value 9 does not live"),
  M (steps[5].list, 2, "step 5 is out of order"),
  M (steps[7].list, 0, "step 7 is out of order"),
  M (steps[0].n_in, 20, "step 0 has operands that are not there"),
  M (steps[1].group, 0, "step 1 is a group of 0 steps"),
  M (steps[1].group, 3, "step 4 is not of the group of step 1"),
  M (steps[1].group, 7, "step 1 is a group of 7 steps that are not there"),
  M (steps[2].group, 0, "step 2 is not of the group of step 1"),
  M (steps[5].group, 1, "step 5 is of a group that is not there"),
  M (steps[0].fate, 1, "does not live"),
  M (s.head.n_backwards, 65, "it has 65 backwards"),
};

static void
static_tape__refuses_schedules_that_are_not_well_formed (void **state)
{
  Rig rig = { 0 };
  Copy good;
  char error[160];

  start (&rig, 4096);
  copy_good (&good, &rig);
  assert_true (td_tape_schedule_verify (&good.s, error, sizeof error));
  for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++)
    {
      Copy *bad = malloc (sizeof *bad); /* of its own: reads outside are seen */

      *bad = good;
      bad->s.steps = bad->steps;
      bad->s.operands = bad->operands;
      bad->s.nodes = bad->nodes;
      bad->s.values = bad->values;
      memcpy ((char *)bad + mutations[i].offset, &mutations[i].value, mutations[i].bytes);
      if (td_tape_schedule_verify (&bad->s, error, sizeof error))
        fail_msg ("taken although %s", mutations[i].says);
      assert_contains (error, mutations[i].says);
      free (bad);
    }
  rig_clear (&rig);
}

static void
static_tape__never_reads_what_was_not_written (void **state)
{
  Rig rig = { 0 };
  Copy c;
  char error[160];

  start (&rig, 4096);
  copy_good (&c, &rig);
  c.operands[0] = 3; /* step 0 reads what the group makes */
  c.values[3].first = 0;
  c.values[0].first = 7;
  assert_false (td_tape_schedule_verify (&c.s, error, sizeof error));
  assert_string_equal (error, "step 0 reads value 3 before it is written");
  rig_clear (&rig);
}

/* A bit of the record is another one, and its check sums are right again. */
static void
static_tape__shows_no_half_of_a_damaged_schedule (void **state)
{
  Rig rig = { 0 };
  TdTapeCheck check;
  char *bytes;
  size_t n;
  FILE *f;
  bool done = false;

  start (&rig, 4096);
  rig_stop (&rig, 0);
  f = fopen (rig.path, "r+");
  assert_non_null (f);
  fseek (f, 0, SEEK_END);
  n = (size_t)ftell (f);
  rewind (f);
  bytes = malloc (n);
  assert_int_equal (fread (bytes, 1, n, f), n);
  for (size_t at = TD_TAPE_TAIL_OFFSET; at + sizeof (TdTapeFrame) < n && !done; at += 8)
    {
      TdTapeFrame *frame = (TdTapeFrame *)(bytes + at);

      if (frame->type != TD_TAPE_FRAME_SCHEDULE || frame->len < 1000 || frame->len > 4096)
        continue;
      bytes[at + sizeof *frame + sizeof (TdTapeScheduleHead) + sizeof (TdTapeSection)] = 77;
      frame->crc = 0;
      frame->crc = td__tape_crc (0, frame, frame->len);
      done = true;
    }
  assert_true (done);
  rewind (f);
  assert_int_equal (fwrite (bytes, 1, n, f), n);
  fclose (f);
  free (bytes);
  assert_null (td_tape_schedule_load (rig_read (&rig), 1, rig.error, sizeof rig.error));
  assert_string_equal (rig.error, "schedule 1: step 0 is of an unknown kind");
  assert_true (td_tape_check (rig.path, &check));
  assert_false (check.whole);
  assert_string_equal (check.what, "schedule 1: step 0 is of an unknown kind");
  rig_clear (&rig);
}

/* Of the plans that a program makes at each call only a part may take room. */
static void
static_tape__stays_within_its_budget (void **state)
{
  TdTapeWriterOptions options = { .budget_bytes = 256 << 10 };
  Rig rig = { 0 };

  rig_start (&rig, &options);
  model_function (&rig.m);
  for (uint32_t i = 0; i < 5000; i++)
    {
      model_begin (&rig.m);
      model_static_event (&rig.m, TD_TAPE_STATIC_MISSED, 0, i == 0 ? "other" : NULL);
      model_static_state (&rig.m, TD_TAPE_CHAIN_TRACING, 0, 0, 0);
      model_end (&rig.m);
      td_assembler_drain (rig.a, rig.ring);
    }
  assert_true (td_tape_reader_n_static_events (rig_read (&rig)) < 5000);
  assert_true (td_tape_reader_n_static_events (rig.r) > 100);
  assert_true (td_tape_reader_bytes (rig.r) < 300 << 10);
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (static_tape__round_trips_a_schedule),
    td_test (static_tape__puts_a_schedule_together_that_comes_in_parts),
    td_test (static_tape__knows_from_when_to_when_a_value_lives),
    td_test (static_tape__stores_an_equal_schedule_once),
    td_test (static_tape__says_what_happened_and_where_functions_stand),
    td_test (static_tape__is_counted_in_the_tapes_facts),
    td_test (static_tape__lists_a_growing_schedule_entry_by_entry),
    td_test (static_tape__says_at_once_where_a_function_stands),
    td_test (static_tape__says_which_events_a_function_made),
    td_test (static_tape__refuses_schedules_that_are_not_well_formed),
    td_test (static_tape__never_reads_what_was_not_written),
    td_test (static_tape__shows_no_half_of_a_damaged_schedule),
    td_test (static_tape__stays_within_its_budget),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
