/* Long sections on the tape: packed, and what an iteration of very many operations takes.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include "tape/format/tape-pack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define N 10000

typedef struct
{
  uint32_t counts, repeats, random, falls;
} Row;

static uint32_t
next (uint32_t *seed)
{
  *seed = *seed * 1664525u + 1013904223u;
  return *seed ^ *seed >> 15;
}

static Row *
rows_new (void)
{
  Row *rows = calloc (N, sizeof *rows);
  uint32_t seed = 1;

  assert_non_null (rows);
  for (uint32_t i = 0; i < N; i++)
    rows[i] = (Row){ .counts = i + i / 900,
                     .repeats = "\7\0\3\xff\11"[i % 5] * 0x01010101u,
                     .random = next (&seed),
                     .falls = 0x80000000u - i * 77u };
  return rows;
}

static void
pack__gives_back_what_it_took (void **state)
{
  Row *rows = rows_new (), *again = calloc (N, sizeof *again);
  TapeBuffer b = { 0 };
  const size_t heads = sizeof (TdTapeSection) + sizeof (TapePackedHead);

  (void)state;
  for (uint32_t n = 1; n <= N; n = n < 40 ? n + 1 : n * 3 + 1)
    {
      b.n = 0;
      td__tape_pack (&b, TD_TAPE_SECTION_EVENTS, sizeof *rows, n, rows);
      assert_false (b.failed);
      assert_true (td__tape_unpack (b.bytes + heads, b.n - heads, sizeof *rows, n, again));
      assert_memory_equal (rows, again, n * sizeof *rows);
    }
  /* what is random stays as long as it is */
  b.n = 0;
  td__tape_pack (&b, TD_TAPE_SECTION_EVENTS, sizeof *rows, N, rows);
  assert_in_range (b.n, N * 4, N * 4 + N * 4 / 20 + 200);
  free (b.bytes);
  free (again);
  free (rows);
}

static void
unpack__takes_nothing_that_is_cut_or_changed_beyond_its_bounds (void **state)
{
  Row *rows = rows_new (), *again = calloc (N, sizeof *again);
  TapeBuffer b = { 0 };
  const size_t heads = sizeof (TdTapeSection) + sizeof (TapePackedHead);
  uint32_t seed = 7, refused = 0;

  (void)state;
  td__tape_pack (&b, TD_TAPE_SECTION_EVENTS, sizeof *rows, N, rows);
  assert_false (td__tape_unpack (b.bytes + heads, 0, sizeof *rows, N, again));
  assert_false (td__tape_unpack (b.bytes + heads, N, sizeof *rows, N, again));
  for (int i = 0; i < 2000; i++)
    {
      const size_t at = heads + next (&seed) % (b.n - heads);
      const char was = b.bytes[at];

      b.bytes[at] = (char)next (&seed);
      refused += !td__tape_unpack (b.bytes + heads, b.n - heads, sizeof *rows, N, again);
      b.bytes[at] = was;
    }
  assert_true (refused > 0);
  free (b.bytes);
  free (again);
  free (rows);
}

static void
pack__never_packs_to_less_than_a_reader_expects (void **state)
{
  Row *rows = calloc (N, sizeof *rows);
  TapeBuffer b = { 0 };

  (void)state;
  assert_non_null (rows);
  td__tape_pack (&b, TD_TAPE_SECTION_EVENTS, sizeof *rows, N, rows);
  assert_true (b.n * TAPE_PACK_MOST >= N * sizeof *rows);
  assert_true (b.n < N * sizeof *rows / 50);
  free (b.bytes);
  free (rows);
}

/* 20,000 operations with their memory, seen for the first time. */
static void
iteration_of_many_operations__takes_few_bytes_for_each (void **state)
{
  enum
  {
    N_OPS = 20000
  };
  Rig rig = { .m = { .memory = true } };
  const TdTapeIteration *it;
  struct stat file;
  uint64_t x;

  (void)state;
  rig_start (&rig, NULL);
  model_begin (&rig.m);
  x = rig.m.parameter;
  for (int i = 0; i < N_OPS; i++)
    {
      x = model_op (&rig.m, i % 3 ? MODEL_RELU : MODEL_LINEAR, TD_TAPE_PHASE_FORWARD, 0, x,
                    rig.m.parameter);
      model_memory (&rig.m, TD_TAPE_MEMORY_ALLOC, (unsigned)i, 512, x);
      if (i % 1000 == 0)
        td_assembler_drain (rig.a, rig.ring);
    }
  model_end (&rig.m);
  rig_stop (&rig, 0);
  assert_int_equal (stat (rig.path, &file), 0);
  if (file.st_size > 150 * N_OPS)
    fail_msg ("%ld bytes for an operation", (long)(file.st_size / N_OPS));
  it = rig_load (&rig, 0);
  assert_int_equal (it->n_events, N_OPS);
  for (uint32_t i = 0; i < it->n_events; i++)
    {
      assert_int_equal (it->events[i].n_in, 2);
      assert_int_equal (it->vars[it->outs[it->events[i].first_out]].producer, i);
    }
  assert_int_equal (it->n_memory, N_OPS);
  assert_int_equal (it->memory[N_OPS - 1].event, N_OPS);
  td_tape_iteration_free (it);
  rig_clear (&rig);
}

enum
{
  N_GOLDEN = 1500
};

static void
record (Rig *rig, const char *path)
{
  rig_start (rig, &(TdTapeWriterOptions){ .path = path, .budget_bytes = 2 << 20 });
  model_begin (&rig->m);
  for (int i = 0; i < N_GOLDEN; i++)
    model_op (&rig->m, i % 3 ? MODEL_RELU : MODEL_LINEAR, TD_TAPE_PHASE_FORWARD, 0,
              rig->m.parameter, 0);
  model_end (&rig->m);
}

static void
golden__tape_of_1_3_with_packed_sections_reads_as_it_always_did (void **state)
{
  const char *path = td_test_source ("tests/golden/tape-1.3.tdtape");
  char error[256];
  const TdTapeIteration *it;
  TdTapeReader *r;
  TdTapeCheck check;

  (void)state;
  assert_true (td_tape_check (path, &check));
  assert_true (check.whole);
  r = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (r);
  assert_int_equal (td_tape_reader_thinning (r).n_operations, N_GOLDEN);
  it = td_tape_iteration_load (r, 0, error, sizeof error);
  assert_non_null (it);
  assert_int_equal (it->n_events, N_GOLDEN);
  for (uint32_t i = 0; i < it->n_events; i++)
    {
      assert_string_equal (td_tape_reader_op_name (r, it->events[i].opdef),
                           i % 3 ? "relu" : "linear");
      assert_int_equal (it->vars[it->outs[it->events[i].first_out]].producer, i);
    }
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* Row i of the statistics of an iteration, of those below. */
static TdTapeStats
stats_of (uint32_t i)
{
  TdTapeStats s = {
    .event = TD_TAPE_NONE, .n = 7 + i, .n_zero = i % 3, .mean = i * 0.5, .min = -1.0 * i
  };

  s.bins[i % TD_TAPE_STATS_BINS] = i;
  return s;
}

/* Kept packed until their variables are known: as many as a block, one more, many; each third
 * is left out. */
static void
stats_rows__put_on_the_tape_what_they_took (void **state)
{
  static const uint32_t sizes[]
      = { 0, 1, 100, TAPE_PACK_BLOCK, TAPE_PACK_BLOCK + 1, 3 * TAPE_PACK_BLOCK + 5 };
  enum
  {
    MOST = 3 * TAPE_PACK_BLOCK + 5
  };
  TdTapeRows *rows = td_tape_rows_new (sizeof (TdTapeStats));
  TdTapeVar *vars = calloc (MOST, sizeof *vars);
  uint32_t *names = calloc (MOST, sizeof *names);
  Rig rig = { 0 };

  (void)state;
  for (uint32_t i = 0; i < MOST; i++)
    vars[i].producer = -1;
  rig_start (&rig, NULL);
  for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    {
      TdTapeIteration it = { .size = sizeof it, .number = k, .vars = vars, .n_vars = MOST };
      const TdTapeIteration *back;
      uint32_t n = 0;

      td_tape_rows_clear (rows);
      for (uint32_t i = 0; i < sizes[k]; i++)
        {
          const TdTapeStats s = stats_of (i);

          assert_true (td_tape_rows_add (rows, &s));
          names[i] = i % 3 == 2 ? TD_TAPE_NONE : MOST - 1 - i;
        }
      it.structure = td_tape_writer_structure (rig.w, &it, NULL);
      it.memory_profile = td_tape_writer_memory (rig.w, &it);
      it.stats_rows = rows;
      it.stats_vars = names;
      it.n_stats = sizes[k];
      td_tape_writer_iteration (rig.w, &it);
      td_tape_writer_flush (rig.w);
      rig_read (&rig);
      back = rig_load (&rig, k);
      for (uint32_t i = 0; i < sizes[k]; i++)
        {
          TdTapeStats s = stats_of (i);

          if (names[i] == TD_TAPE_NONE)
            continue;
          s.var = names[i];
          assert_memory_equal (&back->stats[n++], &s, sizeof s);
        }
      assert_int_equal (back->n_stats, n);
      td_tape_iteration_free (back);
    }
  td_tape_rows_free (rows);
  free (vars);
  free (names);
  rig_clear (&rig);
}

/* Packed from TAPE_PACK_FROM bytes on, 8 for an event: at that border, and at those of blocks.
 */
static void
times__are_on_the_tape_as_they_were (void **state)
{
  enum
  {
    FIRST_PACKED = TAPE_PACK_FROM / sizeof (TdTapeTime),
    MOST = 3 * TAPE_PACK_BLOCK + 1
  };
  static const uint32_t sizes[]
      = { 0, 1, FIRST_PACKED - 1, FIRST_PACKED, FIRST_PACKED + 1, MOST - 1, MOST };
  TdTapeEvent *events = calloc (MOST, sizeof *events);
  uint64_t *start = calloc (MOST, sizeof *start), *duration = calloc (MOST, sizeof *duration);
  Rig rig = { 0 };

  (void)state;
  for (uint32_t i = 0; i < MOST; i++)
    {
      events[i] = (TdTapeEvent){ .key = i, .twin = -1, .span = TD_TAPE_NONE };
      start[i] = 1000ull * i + i % 77;
      duration[i] = i % 900;
    }
  rig_start (&rig, NULL);
  for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    {
      TdTapeIteration it = { .size = sizeof it,
                             .number = k,
                             .events = events,
                             .n_events = sizes[k],
                             .event_start_ns = start,
                             .event_duration_ns = duration };
      const TdTapeIteration *back;

      it.structure = td_tape_writer_structure (rig.w, &it, NULL);
      it.memory_profile = td_tape_writer_memory (rig.w, &it);
      td_tape_writer_iteration (rig.w, &it);
      td_tape_writer_flush (rig.w);
      back = rig_load (&rig, k);
      assert_int_equal (back->n_events, sizes[k]);
      if (sizes[k] > 0)
        {
          assert_memory_equal (back->event_start_ns, start, sizes[k] * sizeof *start);
          assert_memory_equal (back->event_duration_ns, duration, sizes[k] * sizeof *duration);
        }
      td_tape_iteration_free (back);
    }
  free (events);
  free (start);
  free (duration);
  rig_clear (&rig);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (pack__gives_back_what_it_took),
    td_test (unpack__takes_nothing_that_is_cut_or_changed_beyond_its_bounds),
    td_test (pack__never_packs_to_less_than_a_reader_expects),
    td_test (stats_rows__put_on_the_tape_what_they_took),
    td_test (times__are_on_the_tape_as_they_were),
    td_test (iteration_of_many_operations__takes_few_bytes_for_each),
    td_test (golden__tape_of_1_3_with_packed_sections_reads_as_it_always_did),
  };

  if (rig_makes_golden (record))
    return 0;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
