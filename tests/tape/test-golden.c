/* The golden tapes of format 1.0, 1.1 and 1.2, which every later version must read, and their
 * texts. Each was made by this program with TD_MAKE_GOLDEN_TAPE=FILE, once; never make one
 * anew. SPDX-License-Identifier: MIT */
#include "rig.h"

#include "model-static.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/golden/tape-1.0.tdtape"
#define GOLDEN_1_1 "tests/golden/tape-1.1.tdtape"
#define GOLDEN_RUNS "tests/golden/tape-1.1-runs.tdtape"
#define GOLDEN_1_2 "tests/golden/tape-1.2.tdtape"

static void
make (const char *path)
{
  TdTapeWriterOptions options = { .path = path,
                                  .budget_bytes = 256 << 10,
                                  .values_bytes = 64 << 10,
                                  .level = TD_TAPE_LEVEL_VALUES };
  Rig rig = { .m = { .memory = true, .recurrent = true, .n_layers = 2 } };
  uint64_t x;

  rig_start (&rig, &options);
  td_tape_writer_info (rig.w, "program", "model.c");
  td_tape_writer_info (rig.w, "device", "cpu");
  rig_iterations (&rig, 3);
  model_begin (&rig.m);
  model_span (&rig.m, TD_RAW_SCOPE_OPEN, "step \"0\"\n", 0);
  model_span (&rig.m, TD_RAW_LINK_ENTER, NULL, 1);
  x = model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
  model_span (&rig.m, TD_RAW_LINK_LEAVE, NULL, 0);
  model_span (&rig.m, TD_RAW_SCOPE_CLOSE, NULL, 0);
  model_values (&rig.m, x);
  model_side_records (&rig.m, x);
  model_op (&rig.m, MODEL_SGD, TD_TAPE_PHASE_UPDATE, 0, rig.m.parameter, x);
  model_end (&rig.m);
  model_begin (&rig.m);
  model_op (&rig.m, MODEL_LINEAR, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, x);
  rig_stop (&rig, 11); /* signal 11 */
  rig_clear (&rig);
}

/* What 1.1 added: a static function that is traced, scheduled, missed, verified and differs. */
static void
make_1_1 (const char *path)
{
  TdTapeWriterOptions options = { .path = path, .budget_bytes = 256 << 10 };
  Rig rig = { .m = { .n_layers = 1 } };

  rig_start (&rig, &options);
  td_tape_writer_info (rig.w, "program", "model.c");
  model_function (&rig.m);
  model_begin (&rig.m);
  model_static_event (&rig.m, TD_TAPE_STATIC_TRACED, 0, NULL);
  model_static_state (&rig.m, TD_TAPE_CHAIN_TRACING, 0, 0, 0);
  model_end (&rig.m);
  model_begin (&rig.m);
  model_plan (&rig.m, 3, 256);
  model_static_event (&rig.m, TD_TAPE_STATIC_SCHEDULED, 3, NULL);
  model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
  model_static_event (&rig.m, TD_TAPE_STATIC_VERIFIED, 3, NULL);
  model_static_state (&rig.m, TD_TAPE_CHAIN_SCHEDULED, 3, 2, 2);
  model_end (&rig.m);
  model_begin (&rig.m);
  model_static_event (&rig.m, TD_TAPE_STATIC_MISSED, 3, "x is (5, 8), (4, 8) before");
  model_static_event (&rig.m, TD_TAPE_STATIC_REFUSED, 0, "a host write");
  model_static_event (&rig.m, TD_TAPE_STATIC_DIFFERS, 3, "relu is sigmoid");
  model_static_event (&rig.m, TD_TAPE_STATIC_EVICTED, 3, NULL);
  model_static_state (&rig.m, TD_TAPE_CHAIN_INVALID, 0, 0, 2);
  model_end (&rig.m);
  rig_stop (&rig, 0);
  rig_clear (&rig);
}

static void
replay (Model *m, uint32_t list, unsigned phase)
{
  model_run (m, TD_RAW_RUN_BEGINS, TD_TAPE_RUN_REPLAYED, 3, list);
  model_op (m, MODEL_RELU, phase, 0, m->parameter, 0);
  model_op (m, MODEL_RELU, phase, 0, m->parameter, 0);
  model_run (m, TD_RAW_RUN_ENDS, TD_TAPE_RUN_REPLAYED, 3, list);
}

/* Its sections RUNS and TRACED: traced, replayed, verified, and traced again when it ends. */
static void
make_runs (const char *path)
{
  TdTapeWriterOptions options = { .path = path, .budget_bytes = 256 << 10 };
  Rig rig = { .m = { .n_layers = 1, .memory = true } };
  Model *m = &rig.m;

  rig_start (&rig, &options);
  model_function (m);
  for (unsigned i = 0; i < 4; i++)
    {
      model_begin (m);
      if (i == 1)
        model_plan (m, 3, 4096);
      if (i == 2)
        {
          model_run (m, TD_RAW_RUN_BEGINS, TD_TAPE_RUN_VERIFICATION, 0, 0);
          model_op (m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, m->parameter, 0);
          model_run (m, TD_RAW_RUN_ENDS, TD_TAPE_RUN_VERIFICATION, 0, 0);
          model_run (m, TD_RAW_RUN_DISCARDED, TD_TAPE_RUN_VERIFICATION, 0, 0);
        }
      if (i == 1 || i == 2)
        {
          replay (m, 0, TD_TAPE_PHASE_FORWARD);
          replay (m, 1, TD_TAPE_PHASE_BACKWARD);
          model_static_state (m, TD_TAPE_CHAIN_SCHEDULED, 3, 1, i);
          model_end (m);
          continue;
        }
      model_run (m, TD_RAW_RUN_BEGINS, TD_TAPE_RUN_TRACED, 0, 0);
      model_entry (m, 0, 0, TD_TAPE_STEP_LINK_ENTER, 0);
      model_op (m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, m->parameter, 0);
      model_entry (m, 0, 1, TD_TAPE_STEP_OP, MODEL_RELU);
      if (i == 3)
        break; /* while it is traced */
      model_run (m, TD_RAW_RUN_ENDS, TD_TAPE_RUN_TRACED, 0, 0);
      model_static_state (m, TD_TAPE_CHAIN_TRACING, 0, 0, 0);
      model_end (m);
    }
  rig_stop (&rig, 9); /* signal 9 */
  rig_clear (&rig);
}

static void
held (Model *m, const TdTapeHeld *group)
{
  TdRawHeld *h = model_record (m, TD_RAW_HELD, 0, sizeof *h);

  h->held = *group;
  model_publish (m, h);
}

/* What 1.2 added: arrays that outlived their iteration, first one, then three more of them. */
static void
make_1_2 (const char *path)
{
  TdTapeWriterOptions options = { .path = path, .budget_bytes = 256 << 10 };
  Rig rig = { .m = { .n_layers = 1 } };

  rig_start (&rig, &options);
  td_tape_writer_info (rig.w, "program", "model.c");
  for (uint32_t n = 1; n <= 4; n += 3)
    {
      model_begin (&rig.m);
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      held (&rig.m, &(TdTapeHeld){ .bytes = 64 * n,
                                   .n_objects = n,
                                   .n_iterations = n,
                                   .site = 1,
                                   .opdef = 1,
                                   .held_site = 2,
                                   .holder_site = 2,
                                   .category = TD_TAPE_CATEGORY_ACTIVATION,
                                   .holder = TD_TAPE_HOLDER_HANDLE,
                                   .flags = TD_TAPE_HELD_IN_GRAPH });
      held (&rig.m,
            &(TdTapeHeld){
                .bytes = 8, .n_objects = 1, .n_iterations = 1, .flags = TD_TAPE_HELD_OTHERS });
      model_end (&rig.m);
    }
  rig_stop (&rig, 0);
  rig_clear (&rig);
}

static TdTapeReader *
open_tape (const char *golden)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (td_test_source (golden), error, sizeof error);

  if (r == NULL)
    fail_msg ("%s", error);
  return r;
}

static TdTapeReader *
open_golden (void)
{
  return open_tape (GOLDEN);
}

typedef void (*Print) (TdTapeReader *r, FILE *out, bool json);

static void
print_all (TdTapeReader *r, FILE *out, bool json)
{
  td_tape_dump (r, out, json, 0, UINT64_MAX);
}

static void
compare_tape (const char *tape, Print print, bool json, const char *golden)
{
  TdTapeReader *r = open_tape (tape);
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream (&text, &n);

  print (r, out, json);
  fclose (out);
  td_test_golden (golden, text);
  free (text);
  td_tape_reader_free (r);
}

static void
compare (Print print, bool json, const char *golden)
{
  compare_tape (GOLDEN, print, json, golden);
}

static void
golden__tape_of_1_1_reads_as_it_always_did (void **state)
{
  TdTapeCheck check;

  compare_tape (GOLDEN_1_1, print_all, false, "tape-1.1.txt");
  compare_tape (GOLDEN_1_1, print_all, true, "tape-1.1.jsonl");
  assert_true (td_tape_check (td_test_source (GOLDEN_1_1), &check));
  assert_true (check.whole);
}

static void
golden__tape_of_1_1_with_runs_reads_as_it_always_did (void **state)
{
  TdTapeCheck check;

  compare_tape (GOLDEN_RUNS, print_all, false, "tape-1.1-runs.txt");
  compare_tape (GOLDEN_RUNS, print_all, true, "tape-1.1-runs.jsonl");
  assert_true (td_tape_check (td_test_source (GOLDEN_RUNS), &check));
  assert_true (check.whole);
}

static void
golden__tape_of_1_2_reads_as_it_always_did (void **state)
{
  TdTapeReader *r = open_tape (GOLDEN_1_2);
  TdTapeCheck check;
  char error[128];
  const TdTapeIteration *it = td_tape_iteration_load (r, 1, error, sizeof error);

  assert_non_null (it);
  assert_int_equal (it->n_held, 2);
  assert_int_equal (it->held[0].n_objects, 4);
  assert_int_equal (it->held[0].flags, TD_TAPE_HELD_IN_GRAPH);
  assert_int_equal (it->held[1].flags, TD_TAPE_HELD_OTHERS);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
  compare_tape (GOLDEN_1_2, print_all, false, "tape-1.2.txt");
  compare_tape (GOLDEN_1_2, print_all, true, "tape-1.2.jsonl");
  assert_true (td_tape_check (td_test_source (GOLDEN_1_2), &check));
  assert_true (check.whole);
}

static void
golden__tape_of_1_0_reads_as_it_always_did (void **state)
{
  compare (print_all, false, "tape-1.0.txt");
}

static void
golden__tape_of_1_0_gives_the_same_json_lines (void **state)
{
  compare (print_all, true, "tape-1.0.jsonl");
}

static void
golden__info_of_it_is_the_same (void **state)
{
  compare (td_tape_info, true, "tape-1.0-info.json");
  compare (td_tape_info, false, "tape-1.0-info.txt");
}

static void
golden__tape_is_whole_and_its_tensor_is_there (void **state)
{
  TdTapeReader *r = open_golden ();
  TdTapeTensorRecord record;
  TdTapeCheck check;
  char error[128];
  float numbers[4];
  const TdTapeIteration *it = td_tape_iteration_load (r, 3, error, sizeof error);

  assert_non_null (it);
  assert_int_equal (td_tape_tensor_read (r, &it->tensors[0], &record, numbers, 0, 16), 16);
  assert_true (numbers[1] == -2);
  assert_int_equal (td_tape_reader_header (r)->minor, 0);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
  assert_true (td_tape_check (td_test_source (GOLDEN), &check));
  assert_true (check.whole);
}

/* Keys are part of the format: selections, breakpoints and links of old tapes hold. */
static void
golden__keys_of_the_same_program_are_still_the_same (void **state)
{
  const char *path = td_test_tmp ("now.tdtape");
  TdTapeReader *then = open_golden (), *now;
  char error[128];

  make (path);
  now = td_tape_reader_open (path, error, sizeof error);
  for (uint64_t number = 0; number < 5; number++)
    {
      const TdTapeIteration *a = td_tape_iteration_load (then, number, error, sizeof error);
      const TdTapeIteration *b = td_tape_iteration_load (now, number, error, sizeof error);

      assert_non_null (a);
      assert_non_null (b);
      assert_int_equal (a->fingerprint, b->fingerprint);
      assert_int_equal (a->fingerprint_dims, b->fingerprint_dims);
      assert_int_equal (a->n_vars, b->n_vars);
      for (uint32_t i = 0; i < a->n_events; i++)
        assert_int_equal (a->events[i].key, b->events[i].key);
      for (uint32_t i = 0; i < a->n_vars; i++)
        assert_int_equal (a->vars[i].key, b->vars[i].key);
      td_tape_iteration_free (a);
      td_tape_iteration_free (b);
    }
  td_tape_reader_free (then);
  td_tape_reader_free (now);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (golden__tape_of_1_0_reads_as_it_always_did),
    td_test (golden__tape_of_1_0_gives_the_same_json_lines),
    td_test (golden__info_of_it_is_the_same),
    td_test (golden__tape_is_whole_and_its_tensor_is_there),
    td_test (golden__tape_of_1_1_reads_as_it_always_did),
    td_test (golden__tape_of_1_1_with_runs_reads_as_it_always_did),
    td_test (golden__tape_of_1_2_reads_as_it_always_did),
    td_test (golden__keys_of_the_same_program_are_still_the_same),
  };
  const char *made = getenv ("TD_MAKE_GOLDEN_TAPE");

  if (made != NULL)
    return (strstr (made, "runs") != NULL  ? make_runs
            : strstr (made, "1.1") != NULL ? make_1_1
                                           : make_1_2) (made),
           0;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
