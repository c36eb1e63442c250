/* Memory that ran out, through ring, assembler, writer and reader; and what is told of it.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include "td-tape-oom-way.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tell that memory ran out, with so many holders. */
static void
put_oom (Model *m, uint32_t n, uint32_t claimed)
{
  const uint32_t device = model_string (m, "cpu"), op = model_string (m, "re\"lu"),
                 name = model_string (m, "h");
  TdRawOom *raw = model_record (m, TD_RAW_OOM, 0, sizeof *raw + n * sizeof *raw->holders);

  raw->oom = (TdTapeOom){ .asked_bytes = 5000,
                          .limit_bytes = 10000,
                          .reserved_bytes = 8192,
                          .live_bytes = 6400,
                          .largest_free_bytes = 640,
                          .trimmed_bytes = 2048,
                          .refused_bytes = 6144,
                          .category_bytes = { [TD_TAPE_CATEGORY_ACTIVATION] = 6400 },
                          .dims = { 125, 10 },
                          .ndim = 2,
                          .device_name = device,
                          .op = op,
                          .site = 1,
                          .path = 1,
                          .n_groups = n + 3,
                          .unnamed_bytes = 64,
                          .event = 77,      /* not the writer's to say */
                          .n_memory = 7777, /* neither */
                          .n_holders = claimed };
  raw->n_links = 0;
  for (uint32_t i = 0; i < n; i++)
    raw->holders[i] = (TdTapeOomHolder){ .bytes = 640 - i,
                                         .largest_bytes = 640 - i,
                                         .n = 1 + i,
                                         .dims = { 4, 40 },
                                         .ndim = 2,
                                         .name = name,
                                         .path = 1,
                                         .op = op,
                                         .site = 1,
                                         .category = TD_TAPE_CATEGORY_ACTIVATION,
                                         .holder = TD_TAPE_HOLDER_HANDLE };
  model_publish (m, raw);
}

static char *
printed (Rig *rig, bool json)
{
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream (&text, &n);

  assert_non_null (out);
  td_tape_oom_print (rig_read (rig), out, json);
  fclose (out);
  return text;
}

static void
oom__is_at_its_event_with_its_holders (void **state)
{
  Rig rig = { .m = { .n_layers = 1, .memory = true } };
  const TdTapeOomHolder *holders;
  const TdTapeOom *oom;
  uint64_t x;
  char *text;

  rig_start (&rig, NULL);
  rig_iterations (&rig, 2);
  model_begin (&rig.m);
  x = model_op (&rig.m, MODEL_LINEAR, TD_TAPE_PHASE_FORWARD, 0, rig.m.parameter, 0);
  model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, x, 0);
  put_oom (&rig.m, TD_TAPE_MAX_OOM_HOLDERS, TD_TAPE_MAX_OOM_HOLDERS);
  model_op (&rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, x, 0);
  model_end (&rig.m);
  rig_stop (&rig, 0);

  assert_int_equal (td_tape_reader_n_ooms (rig_read (&rig)), 1);
  oom = td_tape_reader_oom (rig.r, 0);
  holders = td_tape_reader_oom_holders (rig.r, 0);
  assert_int_equal (oom->flags, TD_TAPE_OOM_ITERATION);
  assert_int_equal (oom->iteration, 2);
  assert_int_equal (oom->event, 2);
  assert_int_not_equal (oom->n_memory, 7777);
  assert_int_equal (oom->asked_bytes, 5000);
  assert_int_equal (oom->dims[0], 125);
  assert_int_equal (oom->n_holders, TD_TAPE_MAX_OOM_HOLDERS);
  for (uint32_t i = 0; i < oom->n_holders; i++)
    {
      assert_int_equal (holders[i].bytes, 640 - i);
      assert_string_equal (td_tape_reader_string (rig.r, holders[i].name), "h");
    }
  text = printed (&rig, false);
  assert_contains (text, "out of memory in iteration 2, event 2: forward re\"lu");
  assert_contains (text, "wanted 5.00 kB on cpu; 6.40 kB live, limit 10.0 kB\n");
  assert_contains (text, "  asked         5.00 kB (125, 10) float32: 1.46 kB more than there "
                         "was\n");
  assert_contains (text, "  tried         gave back 2.05 kB that the pool had cached; asked "
                         "the device for 6.14 kB, which it refused\n");
  assert_contains (text, "  held by       20 of 23 groups of arrays\n");
  assert_contains (text, " activation mlp/l1/h (4, 40) float32 and 19 more, of re\"lu");
  assert_contains (text, "    64 B  in other groups\n");
  free (text);
  text = printed (&rig, true);
  assert_contains (text, "{\"out_of_memory\":[{\"iteration\":2,\"event\":2,\"device\":\"cpu\"");
  assert_contains (text, "\"op\":\"re\\\"lu\"");
  assert_contains (text, "\"missing_bytes\":1456,");
  assert_contains (text, "\"groups\":23,\"other_bytes\":64,\"holders\":[{\"bytes\":640,");
  assert_string_equal (strrchr (text, ']'), "]}\n");
  free (text);
  rig_clear (&rig);
}

/* Before any iteration there is no place to name. */
static void
oom__before_the_first_iteration_is_told_without_one (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  char *text;

  rig_start (&rig, NULL);
  put_oom (&rig.m, 0, 0);
  rig_iterations (&rig, 1);
  rig_stop (&rig, 0);
  text = printed (&rig, false);
  assert_contains (text, "out of memory in forward re\"lu");
  assert_null (strstr (text, "would help"));
  free (text);
  text = printed (&rig, true);
  assert_contains (text, "{\"iteration\":null,\"event\":null,");
  assert_contains (text, "\"holders\":[],\"remedies\":[]}");
  free (text);
  rig_clear (&rig);
}

/* Nothing in the ring is trusted: more holders than may be, or than are there. */
static void
oom__that_claims_too_many_holders_is_refused (void **state)
{
  static const uint32_t cases[][2]
      = { { 2, 3 }, { 0, 1 }, { 21, 21 }, { 1, UINT32_MAX }, { 1, 0x40000000 } };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      Rig rig = { .m = { .n_layers = 1 } };

      (void)unlink (td_test_tmp ("t.tdtape"));
      rig_start (&rig, NULL);
      model_begin (&rig.m);
      put_oom (&rig.m, cases[i][0], cases[i][1]);
      td_assembler_drain (rig.a, rig.ring);
      assert_int_equal (td_assembler_state (rig.a)->n_bad, 1);
      rig_stop (&rig, 0);
      assert_int_equal (td_tape_reader_n_ooms (rig_read (&rig)), 0);
      rig_clear (&rig);
    }
}

/* Tell that memory ran out, with two holders and links of the first; `claimed` of them. */
static void
put_ways (Model *m, uint32_t claimed)
{
  const uint32_t sum = model_string (m, "sum"), relu = model_string (m, "relu"),
                 loss = model_string (m, "loss");
  const TdTapeOomLink links[]
      = { { .kind = TD_TAPE_OOM_LINK_HANDLE, .holder = TD_TAPE_HOLDER_HANDLE, .name = loss },
          { .kind = TD_TAPE_OOM_LINK_OPERATION, .op = sum },
          { .kind = TD_TAPE_OOM_LINK_OPERATION, .op = relu, .left_out = 3 },
          { .kind = TD_TAPE_N_OOM_LINKS, .op = relu }, /* of no kind */
          { .kind = TD_TAPE_OOM_LINK_OPERATION, .op = relu, .holder_index = 2 } }; /* of none */
  TdRawOom *raw
      = model_record (m, TD_RAW_OOM, 0, sizeof *raw + 2 * sizeof *raw->holders + sizeof links);

  raw->oom = (TdTapeOom){ .asked_bytes = 64, .op = sum, .ndim = 255, .n_holders = 2 };
  raw->n_links = claimed;
  for (int i = 0; i < 2; i++)
    raw->holders[i] = (TdTapeOomHolder){ .bytes = 64, .n = 1, .ndim = 255 };
  memcpy (raw->holders + 2, links, sizeof links);
  model_publish (m, raw);
}

/* The first holder has a chain, the second none; nor has one of a tape that does not tell it.
 */
static void
oom__chain_is_told_from_its_root_on (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  const TdTapeOomLink *links;
  uint32_t n;
  char *text;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  put_oom (&rig.m, 1, 1);
  put_ways (&rig.m, 5);
  model_end (&rig.m);
  rig_stop (&rig, 0);
  assert_int_equal (td_tape_reader_n_ooms (rig_read (&rig)), 2);
  assert_null (td_tape_reader_oom_links (rig.r, 0, 0, &n));
  assert_int_equal (n, 0);
  links = td_tape_reader_oom_links (rig.r, 1, 0, &n);
  assert_int_equal (n, 3);
  assert_string_equal (td_tape_reader_string (rig.r, links[1].op), "sum");
  assert_null (td_tape_reader_oom_links (rig.r, 1, 1, &n));
  assert_null (td_tape_reader_oom_links (rig.r, 1, 2, &n));
  assert_null (td_tape_reader_oom_links (rig.r, 2, 0, &n));
  text = printed (&rig, false);
  assert_contains (text, "              by way of user handle loss -> sum -> 3 more -> relu\n");
  free (text);
  text = printed (&rig, true);
  assert_contains (text, "\"chain\":[]");
  assert_contains (text, "\"chain\":[{\"kind\":\"handle\",\"name\":\"loss\",\"link\":\"\","
                         "\"op\":\"\",\"holder\":\"user handle\",\"site\":\"\",\"left_out\":0},"
                         "{\"kind\":\"operation\",\"name\":\"\",\"link\":\"\",\"op\":\"sum\"");
  assert_contains (text, "\"left_out\":3}]");
  free (text);
  rig_clear (&rig);
}

/* More links than are there, or than may be. */
static void
oom__that_claims_too_many_links_is_refused (void **state)
{
  static const uint32_t cases[] = { 6, 17, UINT32_MAX, 0x10000001 };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      Rig rig = { .m = { .n_layers = 1 } };

      (void)unlink (td_test_tmp ("t.tdtape"));
      rig_start (&rig, NULL);
      model_begin (&rig.m);
      put_ways (&rig.m, cases[i]);
      td_assembler_drain (rig.a, rig.ring);
      assert_int_equal (td_assembler_state (rig.a)->n_bad, 1);
      rig_stop (&rig, 0);
      rig_clear (&rig);
    }
}

/* A tape of others may have any number: the reader keeps the first. */
static void
oom__reader_keeps_a_bounded_number (void **state)
{
  Rig rig = { .m = { .n_layers = 1 } };
  char *text;

  rig_start (&rig, NULL);
  model_begin (&rig.m);
  for (int i = 0; i < TD_TAPE_MAX_OOMS + 5; i++)
    put_oom (&rig.m, 1, 1);
  model_end (&rig.m);
  rig_stop (&rig, 0);
  assert_int_equal (td_tape_reader_n_ooms (rig_read (&rig)), TD_TAPE_MAX_OOMS);
  assert_null (td_tape_reader_oom (rig.r, TD_TAPE_MAX_OOMS));
  assert_null (td_tape_reader_oom_holders (rig.r, TD_TAPE_MAX_OOMS));
  text = printed (&rig, false);
  assert_contains (text, "out of memory in iteration 0, event 0");
  free (text);
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (oom__is_at_its_event_with_its_holders, td_test_setup,
                                     td_test_teardown),
    cmocka_unit_test_setup_teardown (oom__before_the_first_iteration_is_told_without_one,
                                     td_test_setup, td_test_teardown),
    cmocka_unit_test_setup_teardown (oom__that_claims_too_many_holders_is_refused,
                                     td_test_setup, td_test_teardown),
    cmocka_unit_test_setup_teardown (oom__chain_is_told_from_its_root_on, td_test_setup,
                                     td_test_teardown),
    cmocka_unit_test_setup_teardown (oom__that_claims_too_many_links_is_refused, td_test_setup,
                                     td_test_teardown),
    cmocka_unit_test_setup_teardown (oom__reader_keeps_a_bounded_number, td_test_setup,
                                     td_test_teardown),
  };

  return cmocka_run_group_tests_name ("oom", tests, NULL, NULL);
}
