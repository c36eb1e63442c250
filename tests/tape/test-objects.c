/* What refers to what, through ring, assembler, writer and reader. The golden tape was made by
 * this program with TD_MAKE_GOLDEN_TAPE=FILE, once; never make it anew.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/golden/tape-1.2-objects.tdtape"

/* A handle of an array and of the operation that made it, which saved another array; a handle
 * of that second array alone. */
static const TdTapeObject made[] = { { .id = 3,
                                       .kind = TD_TAPE_OBJECT_HANDLE,
                                       .holder = TD_TAPE_HOLDER_HANDLE,
                                       .site = 1,
                                       .holder_site = 2,
                                       .opdef = MODEL_RELU,
                                       .flags = TD_TAPE_OBJECT_ROOT },
                                     { .id = 2,
                                       .kind = TD_TAPE_OBJECT_HANDLE,
                                       .holder = TD_TAPE_HOLDER_LINK,
                                       .site = 1,
                                       .first_reference = 2,
                                       .flags = TD_TAPE_OBJECT_ROOT },
                                     { .id = 3,
                                       .bytes = 4000,
                                       .kind = TD_TAPE_OBJECT_ARRAY,
                                       .category = TD_TAPE_CATEGORY_ACTIVATION,
                                       .site = 1,
                                       .opdef = MODEL_RELU,
                                       .first_reference = 3 },
                                     { .id = 3,
                                       .kind = TD_TAPE_OBJECT_OPERATION,
                                       .site = 1,
                                       .opdef = MODEL_RELU,
                                       .first_reference = 3 },
                                     { .id = 2,
                                       .bytes = 256,
                                       .kind = TD_TAPE_OBJECT_ARRAY,
                                       .category = TD_TAPE_CATEGORY_INPUT,
                                       .site = 2,
                                       .first_reference = 4,
                                       .flags = TD_TAPE_OBJECT_ELSEWHERE } };
static const uint32_t to[] = { 2, 3, 4, 4 };

enum
{
  N = sizeof made / sizeof *made,
  N_TO = sizeof to / sizeof *to
};

static void
put_object (Model *m, const TdTapeObject *o)
{
  TdRawObject *raw = model_record (m, TD_RAW_OBJECT, 0, sizeof *raw);

  raw->object = *o;
  model_publish (m, raw);
}

static void
put_references (Model *m, const uint32_t *ids, uint32_t n)
{
  TdRawReferences *raw
      = model_record (m, TD_RAW_REFERENCES, 0, TD_RAW_PADDED (sizeof *raw + n * sizeof *ids));

  raw->n = n;
  memcpy (raw->to, ids, n * sizeof *ids);
  model_publish (m, raw);
}

static void
record (Rig *rig, const char *path)
{
  TdTapeWriterOptions options = { .path = path, .budget_bytes = 256 << 10 };

  rig_start (rig, &options);
  model_begin (&rig->m);
  model_op (&rig->m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig->m.parameter, 0);
  for (uint32_t i = 0; i < N; i++)
    put_object (&rig->m, &made[i]);
  put_references (&rig->m, to, 3); /* in parts */
  put_references (&rig->m, to + 3, N_TO - 3);
  model_end (&rig->m);
}

static void
compare (const TdTapeIteration *it)
{
  assert_true (it->flags & TD_TAPE_ITERATION_OBJECTS);
  assert_int_equal (it->n_objects, N);
  assert_int_equal (it->n_references, N_TO);
  assert_memory_equal (it->references, to, sizeof to);
  for (uint32_t i = 0; i < N; i++)
    {
      const TdTapeObject *o = &it->objects[i];

      assert_int_equal (o->id, made[i].id);
      assert_int_equal (o->kind, made[i].kind);
      assert_int_equal (o->bytes, made[i].bytes);
      assert_int_equal (o->holder, made[i].holder);
      assert_int_equal (o->category, made[i].category);
      assert_int_equal (o->flags, made[i].flags);
      assert_int_equal (o->first_reference, made[i].first_reference);
      assert_int_equal (o->opdef != 0, made[i].opdef != 0);
      assert_int_equal (o->holder_site != 0, made[i].holder_site != 0);
    }
}

static void
objects__come_back_as_they_were_told (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeIteration *it;

  record (&rig, NULL);
  model_begin (&rig.m); /* the next one has none */
  model_end (&rig.m);
  rig_stop (&rig, 0);
  it = rig_load (&rig, 0);
  compare (it);
  td_tape_iteration_free (it);
  it = rig_load (&rig, 1);
  assert_int_equal (it->n_objects, 0);
  assert_false (it->flags & TD_TAPE_ITERATION_OBJECTS);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

/* Some of the references were lost, or there are others than objects: none of it is kept, and
 * all else is. */
static void
objects__with_lost_references_are_left_out (void **state)
{
  for (uint32_t way = 0; way < 2; way++)
    {
      Rig rig = { .m = { .n_layers = 1 } };
      const TdTapeIteration *it;
      uint32_t wrong[] = { 2, 3, 4, N };

      rig_start (&rig, &(TdTapeWriterOptions){
                           .path = td_test_tmp (way == 0 ? "few.tdtape" : "wrong.tdtape") });
      model_begin (&rig.m);
      model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
      for (uint32_t i = 0; i < N; i++)
        put_object (&rig.m, &made[i]);
      put_references (&rig.m, wrong, way == 0 ? 1 : 4);
      model_end (&rig.m);
      rig_stop (&rig, 0);
      it = rig_load (&rig, 0);
      assert_int_equal (it->n_objects, 0);
      assert_int_equal (it->n_references, 0);
      assert_int_equal (it->n_events, 1);
      td_tape_iteration_free (it);
      rig_clear (&rig);
    }
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
golden__tape_with_objects_reads_as_it_always_did (void **state)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (td_test_source (GOLDEN), error, sizeof error);
  const TdTapeIteration *it;
  TdTapeCheck check;

  if (r == NULL)
    fail_msg ("%s", error);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  compare (it);
  td_tape_iteration_free (it);
  print (r, false, "tape-1.2-objects.txt");
  print (r, true, "tape-1.2-objects.jsonl");
  td_tape_reader_free (r);
  assert_true (td_tape_check (td_test_source (GOLDEN), &check));
  assert_true (check.whole);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (objects__come_back_as_they_were_told),
    td_test (objects__with_lost_references_are_left_out),
    td_test (golden__tape_with_objects_reads_as_it_always_did),
  };

  if (rig_makes_golden (record))
    return 0;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
