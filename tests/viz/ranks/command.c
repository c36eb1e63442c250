/* The command: its exit status, its text and its JSON.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "planted-ranks.h"
#include "td-test.h"

static const char *
program (void)
{
  return td_test_program ("app/tapedeck-viz");
}

static void
part (PlantedStep *step)
{
  if (step->rank == 2 && step->iteration >= 3)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->sum[0] ^= 1;
}

static void
drift (PlantedStep *step)
{
  planted_sum (step, TD_TAPE_SUM_PERSISTENT, "bn/mean")->sum[0] += step->rank;
}

static void
command__ends_in_1_where_ranks_part (void **state)
{
  PlantedRun run = { .plant = part };
  TdTestChild child = TD_TEST_RUN (program (), "ranks", planted_write (&run));

  assert_child_status (child, 1);
  assert_contains (child.out, "error: rank 2 parted in iteration 3: parameter `l2/W`");
  assert_contains (child.out, "rank  host  pid");
  td_test_child_clear (&child);
}

static void
command__ends_in_0_where_there_are_notes_only (void **state)
{
  PlantedRun run = { .plant = drift };
  TdTestChild child = TD_TEST_RUN (program (), "ranks", planted_write (&run));

  assert_child_status (child, 0);
  assert_contains (child.out, "note: ranks 0, 1, 2 and 3 have their own persistents");
  assert_contains (child.out, "Nothing found: 6 steps");
  td_test_child_clear (&child);
}

static void
command__says_how_many_tapes_nothing_was_found_in (void **state)
{
  PlantedRun run = { .no_tape = { 0, 1 } };
  TdTestChild child = TD_TEST_RUN (program (), "ranks", planted_write (&run));

  assert_child_status (child, 0);
  assert_contains (child.out, "Nothing found in the tapes of 3 of 4 ranks: 6 steps");
  td_test_child_clear (&child);
}

/* Most of a file is lost: what there was is not compared. */
static void
command__ends_in_1_where_a_tape_is_cut_off (void **state)
{
  static const char *const says[] = { NULL, NULL, "Nothing was compared.", "none of rank 1" };

  for (guint n = 2; n < G_N_ELEMENTS (says); n++)
    {
      PlantedRun run = { .n_ranks = n, .n_steps = 20 };
      const char *folder = planted_write (&run);
      g_autofree char *path = g_build_filename (folder, "rank-1.tdtape", NULL);
      TdTestChild child;
      GStatBuf s;

      assert_int_equal (g_stat (path, &s), 0);
      assert_int_equal (truncate (path, s.st_size * 6 / 100), 0);
      child = TD_TEST_RUN (program (), "ranks", folder);
      assert_contains (child.out, "warning: rank 1's tape has lost iterations");
      assert_contains (child.out, "the file ends too early");
      assert_contains (child.out, says[n]);
      assert_not_contains (child.out, "nobody averaged");
      assert_child_status (child, 1);
      td_test_child_clear (&child);
    }
}

static void
command__refuses_tapes_of_different_runs (void **state)
{
  PlantedRun run = { .n_ranks = 3, .of_run = { "a", "a", "b" } },
             same = { .n_ranks = 3, .of_run = { "a", "a", "a" } };
  TdTestChild child = TD_TEST_RUN (program (), "ranks", planted_write (&run));

  assert_child_status (child, 2);
  assert_contains (child.err, "rank-0.tdtape and ");
  assert_contains (child.err, "rank-2.tdtape are of different runs");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program (), "ranks", planted_write (&same));
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

/* `tapedeck run -n 1` has nothing wrong about it. */
static void
command__says_of_one_rank_that_there_is_nothing_to_compare (void **state)
{
  PlantedRun run = { .n_ranks = 1 };
  TdTestChild child = TD_TEST_RUN (program (), "ranks", planted_write (&run));

  assert_child_status (child, 0);
  assert_contains (child.out, "One rank: there is nothing to compare it with.");
  td_test_child_clear (&child);
}

static void
command__ends_in_2_where_there_is_nothing_to_compare (void **state)
{
  PlantedRun run = { .n_ranks = 2, .no_tape = { 0, 1 } };
  TdTestChild alone = TD_TEST_RUN (program (), "ranks", planted_write (&run)),
              none = TD_TEST_RUN (program (), "ranks", td_test_tmp ("nothing")),
              bare = TD_TEST_RUN (program (), "ranks");

  assert_child_status (alone, 2);
  assert_contains (alone.err, "the only tape here of a run of 2 ranks");
  assert_child_status (none, 2);
  assert_child_status (bare, 2);
  assert_string_equal (alone.out, "");
  td_test_child_clear (&alone);
  td_test_child_clear (&none);
  td_test_child_clear (&bare);
}

static void
command__prints_json_that_a_script_can_read (void **state)
{
  static const char script[]
      = "import json, sys\n"
        "d = json.load (open (sys.argv[1]))\n"
        "f = d['findings'][0]\n"
        "assert len (d['findings']) == 1, d['findings']\n"
        "assert (f['level'], f['cause'], f['iteration'], f['last_before'], f['ranks'], "
        "f['array']) == ('error', 'parameters', 3, 2, [2], 'l2/W'), f\n"
        "assert d['started'] == 4 and d['missing'] == [] and d['steps'] == 6\n"
        "assert [r['rank'] for r in d['ranks']] == [0, 1, 2, 3]\n"
        "assert d['ranks'][1]['clock'] == {'offset_ns': 500, 'error_ns': 0, 'same': True}\n"
        "assert d['last_calls'] == []\n";
  PlantedRun run = { .plant = part, .start_ns = { 0, 500 } };
  const char *out = td_test_tmp ("out.json");
  TdTestChild child
      = TD_TEST_RUN (program (), "ranks", planted_write (&run), "--json", "-o", out);

  assert_child_status (child, 1);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (td_test_python ("json"), "-c", script, out);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (command__ends_in_1_where_ranks_part),
    td_test (command__says_how_many_tapes_nothing_was_found_in),
    td_test (command__ends_in_1_where_a_tape_is_cut_off),
    td_test (command__refuses_tapes_of_different_runs),
    td_test (command__says_of_one_rank_that_there_is_nothing_to_compare),
    td_test (command__ends_in_0_where_there_are_notes_only),
    td_test (command__ends_in_2_where_there_is_nothing_to_compare),
    td_test (command__prints_json_that_a_script_can_read),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
