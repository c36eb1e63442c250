/* From raw records to what a reader sees.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void
assembler__stores_a_repeated_structure_once (void **state)
{
  Rig rig = { .m = { .memory = true } };
  TdTapeSummaries s;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 100);
  s = td_tape_reader_summaries (rig_read (&rig));
  assert_int_equal (s.n, 100);
  assert_int_equal (td_tape_reader_n_structures (rig.r), 1);
  assert_int_equal (td_tape_reader_structure (rig.r, 0)->n_iterations, 100);
  assert_int_equal (td_assembler_state (rig.a)->n_repeats, 99);
  assert_int_equal (td_assembler_state (rig.a)->n_bad, 0);
  for (uint32_t i = 0; i < s.n; i++)
    {
      assert_int_equal (s.rows[i].number, i);
      assert_int_equal (s.rows[i].n_events, 14);
      assert_int_equal (s.rows[i].structure, 1);
      assert_int_equal (s.rows[i].peak_bytes, 3 * 1280);
    }
  assert_true (s.rows[0].flags & TD_TAPE_ITERATION_NEW_GRAPH);
  assert_false (s.rows[1].flags & TD_TAPE_ITERATION_NEW_GRAPH);
  rig_clear (&rig);
}

static void
assembler__keeps_what_an_event_is (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;
  char site[64];

  rig_start (&rig, NULL);
  rig_iterations (&rig, 1);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_events, 14);
  assert_string_equal (td_tape_reader_op_name (rig.r, it->events[0].opdef), "linear");
  assert_string_equal (td_tape_reader_path_text (rig.r, it->events[0].path), "mlp/l1");
  assert_string_equal (td_tape_reader_site_text (rig.r, it->events[0].site, site, sizeof site),
                       "model.c:10");
  assert_int_equal (it->events[7].phase, TD_TAPE_PHASE_BACKWARD);
  assert_string_equal (td_tape_reader_op_name (rig.r, it->events[7].opdef), "relu_grad");
  assert_int_equal (it->events[7].twin, 5);
  assert_int_equal (it->events[8].twin, 4);
  assert_int_equal (it->events[0].n_in, 2);
  assert_int_equal (it->events[1].n_in, 1); /* an input of 0 is left out */
  assert_int_equal (it->event_duration_ns[0] > 0, 1);
  for (uint32_t i = 1; i < it->n_events; i++)
    assert_true (it->event_start_ns[i] >= it->event_start_ns[i - 1]);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
assembler__gives_equal_keys_in_every_iteration_and_distinct_ones_within (void **state)
{
  Rig rig = { .m = { .recurrent = true } };
  const TdTapeIteration *a, *b;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 6);
  a = rig_load (&rig, 2);
  b = rig_load (&rig, 5);
  assert_int_equal (a->n_events, b->n_events);
  for (uint32_t i = 0; i < a->n_events; i++)
    {
      assert_int_equal (a->events[i].key, b->events[i].key);
      for (uint32_t k = 0; k < i; k++)
        assert_int_not_equal (a->events[i].key, a->events[k].key);
    }
  td_tape_iteration_free (a);
  td_tape_iteration_free (b);
  rig_clear (&rig);
}

static void
assembler__follows_state_from_one_iteration_to_the_next (void **state)
{
  Rig rig = { .m = { .recurrent = true } };
  const TdTapeIteration *before, *it;
  uint32_t in;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 5);
  before = rig_load (&rig, 3);
  it = rig_load (&rig, 4);
  in = it->ins[it->events[0].first_in];
  assert_true (it->vars[in].flags & TD_TAPE_VAR_EXTERNAL);
  /* relu of the third layer, event 5, gave it in the iteration before */
  assert_int_equal (td_tape_var_id (it, in),
                    td_tape_var_id (before, before->outs[before->events[5].first_out]));
  assert_int_equal (it->vars[in].key, before->vars[before->outs[5]].key);
  assert_int_equal (it->vars[in].ndim, 2);
  assert_true (td_assembler_state (rig.a)->n_repeats >= 2);
  td_tape_iteration_free (before);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
assembler__tells_other_dimensions_from_another_graph (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *a, *b, *c;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 1);
  rig.m.batch = 7;
  rig_iterations (&rig, 1);
  rig.m.n_layers = 2;
  rig_iterations (&rig, 1);
  a = rig_load (&rig, 0);
  b = rig_load (&rig, 1);
  c = rig_load (&rig, 2);
  assert_int_equal (a->fingerprint, b->fingerprint);
  assert_int_not_equal (a->fingerprint_dims, b->fingerprint_dims);
  assert_int_not_equal (b->fingerprint, c->fingerprint);
  assert_true (b->flags & TD_TAPE_ITERATION_GRAPH_CHANGED);
  td_tape_iteration_free (a);
  td_tape_iteration_free (b);
  td_tape_iteration_free (c);
  rig_clear (&rig);
}

static void
assembler__alternating_graphs_repeat_both (void **state)
{
  Rig rig = { 0 };

  rig_start (&rig, NULL);
  for (int i = 0; i < 40; i++)
    {
      rig.m.n_layers = 1 + i % 4;
      rig_iterations (&rig, 1);
    }
  assert_int_equal (td_assembler_state (rig.a)->n_repeats, 36);
  assert_int_equal (td_tape_reader_n_structures (rig_read (&rig)), 4);
  rig_clear (&rig);
}

/* Two inputs that become one variable are another graph, though every record looks alike. */
static void
assembler__does_not_take_one_variable_for_two (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *two, *one;
  TdRawLeaf *leaf;
  uint64_t first[2];

  rig_start (&rig, NULL);
  for (int i = 0; i < 2; i++)
    {
      leaf = model_record (&rig.m, TD_RAW_LEAF, 0, sizeof *leaf);
      leaf->path = 1;
      leaf->var.variable = first[i] = rig.m.next_id++;
      model_publish (&rig.m, leaf);
    }
  for (int i = 0; i < 2; i++)
    {
      model_begin (&rig.m);
      model_op (&rig.m, MODEL_LINEAR, 0, 0, first[0], first[1 - i]);
      model_end (&rig.m);
    }
  td_assembler_drain (rig.a, rig.ring);
  two = rig_load (&rig, 0);
  one = rig_load (&rig, 1);
  assert_int_not_equal (two->ins[0], two->ins[1]);
  assert_int_equal (one->ins[0], one->ins[1]);
  td_tape_iteration_free (two);
  td_tape_iteration_free (one);
  rig_clear (&rig);
}

/* Written in place: what is said of it later is said of what it is then. */
static void
assembler__takes_the_newest_of_variables_with_one_id (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;

  (void)state;
  rig_start (&rig, NULL);
  model_begin (&rig.m);
  for (int i = 0; i < 6; i++)
    {
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.next_id - 1, 0);
      rig.m.next_id--;
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.next_id, 0);
      model_values (&rig.m, rig.m.next_id - 1);
    }
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_events, 18);
  assert_int_equal (it->n_stats, 6);
  for (uint32_t i = 0; i < 6; i++)
    assert_int_equal (it->stats[i].var, it->outs[it->events[3 * i + 2].first_out]);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
assembler__accounts_for_memory (void **state)
{
  Rig rig = { .m = { .memory = true } };
  const TdTapeIteration *it;

  rig_start (&rig, NULL);
  /* 500 bytes outside: they belong to the next iteration and live on */
  model_memory (&rig.m, TD_TAPE_MEMORY_ALLOC, 50, 500, rig.m.parameter);
  rig_iterations (&rig, 3);
  it = rig_load (&rig, 2);
  assert_int_equal (it->n_memory, 6);
  assert_int_equal (it->memory[0].kind, TD_TAPE_MEMORY_ALLOC);
  assert_int_equal (it->memory[0].bytes, 1280);
  assert_int_equal (it->memory[0].event, 0);
  assert_int_equal (it->memory[1].event, 2);
  assert_int_equal (it->memory[3].event, 14);
  /* the first alloc names the output of the first event */
  assert_int_equal (it->memory[0].var, it->outs[0]);
  assert_int_equal (it->memory[0].variable, td_tape_var_id (it, it->outs[0]));
  assert_int_equal (it->n_blocks, 1);
  assert_int_equal (it->blocks[0].bytes, 500);
  assert_int_equal (it->start_bytes[TD_TAPE_CATEGORY_ACTIVATION], 500);
  assert_int_equal (it->peak_bytes, 500 + 3 * 1280);
  assert_int_equal (it->end_bytes, 500);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

/* Carried state lies elsewhere in each iteration: the profile is one, addresses are its own. */
static void
assembler__follows_memory_that_moves (void **state)
{
  Rig rig = { 0 };

  rig_start (&rig, NULL);
  for (unsigned i = 0; i < 20; i++)
    {
      model_begin (&rig.m);
      model_memory (&rig.m, TD_TAPE_MEMORY_ALLOC, i + 1, 64, rig.m.next_id);
      model_op (&rig.m, MODEL_RELU, 0, 0, rig.m.parameter, 0);
      if (i > 0)
        model_memory (&rig.m, TD_TAPE_MEMORY_FREE, i, 64, 0);
      model_end (&rig.m);
    }
  td_assembler_drain (rig.a, rig.ring);
  for (unsigned i = 2; i < 20; i++)
    {
      const TdTapeIteration *it = rig_load (&rig, i);

      assert_int_equal (it->memory_profile, 2);
      assert_int_equal (it->n_memory, 2);
      assert_int_equal (it->memory[0].address, 0x10000u + (i + 1) * 4096u);
      assert_int_equal (it->memory[1].address, 0x10000u + i * 4096u);
      assert_int_equal (it->n_blocks, 1);
      assert_int_equal (it->blocks[0].address, 0x10000u + i * 4096u);
      assert_int_equal (it->peak_bytes, 128);
      assert_int_equal (it->end_bytes, 64);
      td_tape_iteration_free (it);
    }
  rig_clear (&rig);
}

static void
assembler__nests_scopes_and_links (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  for (int i = 0; i < 2; i++)
    {
      model_span (&rig.m, TD_RAW_SCOPE_OPEN, "step", 0);
      model_span (&rig.m, TD_RAW_LINK_ENTER, NULL, 1);
      model_op (&rig.m, MODEL_RELU, 0, 0, rig.m.parameter, 0);
      model_span (&rig.m, TD_RAW_LINK_LEAVE, NULL, 0);
      model_span (&rig.m, TD_RAW_SCOPE_CLOSE, NULL, 0);
    }
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_spans, 4);
  assert_int_equal (it->spans[0].kind, TD_TAPE_SPAN_SCOPE);
  assert_string_equal (td_tape_reader_string (rig.r, it->spans[0].name), "step");
  assert_int_equal (it->spans[1].kind, TD_TAPE_SPAN_LINK);
  assert_int_equal (it->spans[1].parent, 0);
  assert_int_equal (it->spans[2].parent, TD_TAPE_NONE);
  assert_int_equal (it->spans[2].begin, 1);
  assert_int_equal (it->spans[2].end, 2);
  assert_int_equal (it->events[1].span, 3);
  assert_int_not_equal (it->spans[0].key, it->spans[2].key);
  assert_int_not_equal (it->events[0].key, it->events[1].key);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
assembler__round_trips_values_reports_reads_and_errors (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;
  TdTapeTensorRecord record;
  float numbers[4];
  uint64_t n;
  uint32_t var;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  uint64_t x = model_op (&rig.m, MODEL_RELU, 0, 0, rig.m.parameter, 0);
  model_values (&rig.m, x);
  model_side_records (&rig.m, x);
  model_op (&rig.m, MODEL_SGD, TD_TAPE_PHASE_UPDATE, 0, rig.m.parameter, x);
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  it = rig_load (&rig, 0);
  var = it->outs[0];
  assert_int_equal (it->n_stats, 1);
  assert_int_equal (it->stats[0].var, var);
  assert_int_equal (it->stats[0].n_nan, 1);
  assert_int_equal (it->stats[0].bins[3], 2);
  assert_true (it->flags & TD_TAPE_ITERATION_NAN);
  assert_true (it->flags & TD_TAPE_ITERATION_ERROR);
  assert_int_equal (it->n_tensors, 1);
  assert_int_equal (td_tape_tensor_read (rig.r, &it->tensors[0], &record, numbers, 4, 12), 12);
  assert_int_equal (record.dims[0], 4);
  assert_true (numbers[0] == -2 && numbers[1] == 0 && isnan (numbers[2]));
  assert_int_equal (it->n_host_reads, 1);
  assert_int_equal (it->host_reads[0].var, var);
  assert_int_equal (it->host_reads[0].event, 1);
  assert_int_equal (it->n_notices, 1);
  assert_string_equal (td_tape_reader_string (rig.r, it->notices[0].text), "shapes differ");
  assert_int_equal (td_tape_reader_n_notices (rig.r), 1);
  assert_string_equal (td_tape_reader_string (rig.r, it->vars[var].name), "hidden");
  assert_true (it->vars[var].flags & TD_TAPE_VAR_UNCHAINED);
  assert_int_equal (it->n_grads, 1);
  assert_int_equal (it->grads[0].event, 1);
  assert_int_equal (it->grads[0].gradient, var);
  assert_string_equal (td_tape_reader_string (rig.r, it->grads[0].path), "mlp/l1/W");
  assert_int_equal (it->n_reports, 1);
  assert_true (it->reports[0].value == 0.25);
  assert_string_equal (td_tape_reader_string (rig.r, it->reports[0].key), "loss");
  td_tape_reader_reports (rig.r, &n);
  assert_int_equal (n, 1);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
assembler__stores_sources_and_parameters (void **state)
{
  Rig rig = { 0 };
  TdTapeSource source;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 1);
  rig_read (&rig);
  assert_int_equal (td_tape_reader_n_sources (rig.r), 1);
  source = td_tape_reader_source (rig.r, 0);
  assert_string_equal (source.path, "model.c");
  assert_string_equal (source.text, "int main (void)\n{\n  return 0;\n}\n");
  assert_int_equal (td_tape_reader_n_parameters (rig.r), 1);
  assert_int_equal (td_tape_reader_parameter (rig.r, 0)->dims[1], 10);
  assert_int_not_equal (td_tape_reader_parameter (rig.r, 0)->key, 0);
  rig_clear (&rig);
}

static void
assembler__shows_a_stopped_iteration_event_by_event (void **state)
{
  Rig rig = { 0 };
  const TdTapeIteration *it;
  uint64_t x, number;
  uint32_t n_events;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 2);
  model_begin (&rig.m);
  x = rig.m.parameter;
  for (uint32_t i = 1; i <= 3; i++)
    {
      uint32_t reason = model_string (&rig.m, "step");
      TdRawStopped *stopped;

      x = model_op (&rig.m, MODEL_RELU, 0, 0, x, 0);
      stopped = model_record (&rig.m, TD_RAW_STOPPED, 0, sizeof *stopped);
      stopped->reason = reason;
      stopped->site = 1;
      model_publish (&rig.m, stopped);
      td_assembler_drain (rig.a, rig.ring);
      it = rig_load (&rig, 2);
      assert_int_equal (it->n_events, i);
      assert_true (it->flags & TD_TAPE_ITERATION_PARTIAL);
      assert_int_equal (it->stop.stopped, 1);
      assert_int_equal (it->stop.event, i);
      assert_string_equal (td_tape_reader_string (rig.r, it->stop.reason), "step");
      assert_true (td_tape_reader_head (rig.r, &number, &n_events));
      assert_int_equal (number, 2);
      assert_int_equal (n_events, i);
      td_tape_iteration_free (it);
    }
  model_end (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  it = rig_load (&rig, 2);
  assert_false (it->flags & TD_TAPE_ITERATION_PARTIAL);
  assert_null (td_tape_reader_live (rig.r));
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

static void
assembler__says_which_operation_was_running_at_a_kill (void **state)
{
  Rig rig = { 0 };
  const TdTapeEnd *end;
  const TdTapeIteration *it;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 3);
  model_begin (&rig.m);
  model_op (&rig.m, MODEL_LINEAR, 0, 0, rig.m.parameter, rig.m.parameter);
  rig.ring->shared->now.opdef = MODEL_RELU;
  rig.ring->shared->now.running = 1;
  rig_stop (&rig, SIGKILL);
  end = td_tape_reader_end (rig_read (&rig));
  assert_non_null (end);
  assert_int_equal (end->signal, SIGKILL);
  assert_int_equal (end->running, 1);
  assert_string_equal (td_tape_reader_op_name (rig.r, end->last_op), "relu");
  it = rig_load (&rig, 3);
  assert_int_equal (it->n_events, 1);
  assert_true (it->flags & TD_TAPE_ITERATION_PARTIAL);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

/* Adam's step size is another in each iteration; the graph is not. */
static void
assembler__takes_other_attributes_for_the_same_structure (void **state)
{
  Rig rig = { 0 };
  char text[32];

  rig_start (&rig, NULL);
  for (int i = 0; i < 50; i++)
    {
      uint32_t attrs;
      TdRawOp *op;

      snprintf (text, sizeof text, "alpha=%d", i);
      attrs = model_string (&rig.m, text);
      model_begin (&rig.m);
      model_op (&rig.m, MODEL_RELU, 0, 0, rig.m.parameter, 0);
      op = model_record (&rig.m, TD_RAW_OP, 0, sizeof *op);
      op->opdef = MODEL_SGD;
      op->attrs = attrs;
      op->order = (uint16_t)i; /* means nothing without a forward event */
      model_publish (&rig.m, op);
      model_end (&rig.m);
    }
  td_assembler_drain (rig.a, rig.ring);
  assert_int_equal (td_assembler_state (rig.a)->n_repeats, 49);
  for (uint64_t i = 0; i < 50; i++)
    {
      const TdTapeIteration *it = rig_load (&rig, i);

      snprintf (text, sizeof text, "alpha=%d", (int)i);
      assert_string_equal (td_tape_reader_string (rig.r, it->events[1].attrs), text);
      assert_int_equal (it->events[0].attrs, 0);
      td_tape_iteration_free (it);
    }
  rig_clear (&rig);
}

static void
assembler__refuses_senseless_records (void **state)
{
  Rig rig = { 0 };
  uint32_t seed = 12345;
  char bytes[512] __attribute__ ((aligned (8)));

  rig_start (&rig, NULL);
  rig_iterations (&rig, 1);
  model_begin (&rig.m);
  td_assembler_drain (rig.a, rig.ring);
  for (int i = 0; i < 20000; i++)
    {
      TdRawHead *head = (TdRawHead *)bytes;

      for (size_t k = 0; k < sizeof bytes; k++)
        bytes[k] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
      if (i % 2)
        memset (bytes + 8, 0, sizeof bytes - 8);
      head->size = (seed >> 8) % 64 * 8;
      head->type = (uint16_t)((seed >> 3) % (TD_RAW_N_TYPES + 2));
      td_assembler_feed (rig.a, bytes, sizeof bytes);
    }
  assert_true (td_assembler_state (rig.a)->n_bad > 100);
  rig_stop (&rig, 0);
  rig_read (&rig);
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (assembler__stores_a_repeated_structure_once),
    td_test (assembler__keeps_what_an_event_is),
    td_test (assembler__gives_equal_keys_in_every_iteration_and_distinct_ones_within),
    td_test (assembler__follows_state_from_one_iteration_to_the_next),
    td_test (assembler__tells_other_dimensions_from_another_graph),
    td_test (assembler__alternating_graphs_repeat_both),
    td_test (assembler__does_not_take_one_variable_for_two),
    td_test (assembler__takes_the_newest_of_variables_with_one_id),
    td_test (assembler__accounts_for_memory),
    td_test (assembler__follows_memory_that_moves),
    td_test (assembler__nests_scopes_and_links),
    td_test (assembler__round_trips_values_reports_reads_and_errors),
    td_test (assembler__stores_sources_and_parameters),
    td_test (assembler__shows_a_stopped_iteration_event_by_event),
    td_test (assembler__says_which_operation_was_running_at_a_kill),
    td_test (assembler__takes_other_attributes_for_the_same_structure),
    td_test (assembler__refuses_senseless_records),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
