/* What tapes say of gradients that take another way to their mean, and that nothing is wrong
 * with it.
 *
 * test-behind TAPEDECK BEHIND
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "mpi-here.h"

#include "td-tape-reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  RANKS = 3,
  ITERATIONS = 8,
  LAYERS = 4
};

static const char *tapedeck, *program;

static TdTestChild
look (const char *means, const char *odd)
{
  const char *folder = td_test_tmp ("ranks");
  TdTestChild run = TD_TEST_RUN (tapedeck, "run", "-n", "3", "-f", "--level", "stats", "-o",
                                 folder, program, means, odd);

  if (odd == NULL)
    assert_child_status (run, 0);
  td_test_child_clear (&run);
  return TD_TEST_RUN (tapedeck, "ranks", folder);
}

static void
means__of_every_kind_are_no_finding (void **state)
{
  static const char *const means[] = { "usual", "f16", "bf16", "overlap", "double" };

  (void)state;
  for (size_t i = 0; i < sizeof means / sizeof *means; i++)
    {
      TdTestChild child = look (means[i], NULL);

      if (child.status != 0)
        fail_msg ("%s: %s", means[i], child.out);
      assert_contains (child.out, "Nothing found");
      td_test_child_clear (&child);
    }
}

/* The elements of a tape's iterations, counted; and in how many a sum ran while backward did.
 */
typedef struct
{
  int behind, in_backward, halves, stale;
} Seen;

static bool
runs_in_backward (const TdTapeIteration *it, const TdTapeCollective *c)
{
  for (uint32_t e = 0; e < it->n_events; e++)
    {
      const uint64_t start = it->start_ns + it->event_start_ns[e];

      if (it->events[e].phase == TD_TAPE_PHASE_BACKWARD && start >= c->start_ns
          && start < c->start_ns + c->duration_ns)
        return true;
    }
  return false;
}

static Seen
see (int rank, int from)
{
  char name[60], error[256];
  Seen seen = { 0, 0, 0, 0 };
  TdTapeReader *tape;

  snprintf (name, sizeof name, "ranks/rank-%d.tdtape", rank);
  tape = td_tape_reader_open (td_test_tmp (name), error, sizeof error);
  if (tape == NULL)
    fail_msg ("%s", error);
  for (int i = from; i <= ITERATIONS; i++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (tape, (uint64_t)i, error, sizeof error);

      if (it == NULL)
        break;
      for (uint32_t c = 0; c < it->n_collectives; c++)
        if (it->collectives[c].flags & TD_TAPE_COLLECTIVE_BEHIND)
          {
            assert_int_equal (it->collectives[c].wait, TD_TAPE_WAIT_SUM);
            assert_true (it->collectives[c].bytes >= 4 * 32 * 33);
            seen.behind++;
            seen.in_backward += runs_in_backward (it, &it->collectives[c]);
          }
      for (uint32_t s = 0; s < it->n_rank_sums; s++)
        {
          seen.halves += (it->rank_sums[s].flags & TD_TAPE_SUM_HALF) != 0;
          seen.stale
              += it->rank_sums[s].kind == TD_TAPE_SUM_NUMBER
                 && strcmp (td_tape_reader_string (tape, it->rank_sums[s].path), "staleness")
                        == 0;
        }
      td_tape_iteration_free (it);
    }
  td_tape_reader_free (tape);
  return seen;
}

/* On a slow link, where a sum takes longer than a step of backward. */
static void
overlap__is_on_the_tape_beside_the_backward_that_it_runs_behind (void **state)
{
  TdTestChild child;

  (void)state;
  setenv ("TAPEDECK_TEST_LINK", "100:10", 1);
  child = look ("overlap", NULL);
  unsetenv ("TAPEDECK_TEST_LINK");
  td_test_child_clear (&child);
  for (int r = 0; r < RANKS; r++)
    {
      const Seen seen = see (r, 4); /* earlier it learns */

      assert_true (seen.behind >= 4 * LAYERS);
      /* all but those of the first layer, whose gradients are the last */
      assert_true (seen.in_backward >= 4 * (LAYERS - 2));
      assert_int_equal (seen.halves, 0);
      assert_int_equal (seen.stale, 0);
    }
  child = TD_TEST_RUN (tapedeck, "ranks", td_test_tmp ("ranks"), "--view", "lanes",
                       "--iteration", "6", "--json");
  assert_contains (child.out, "\"kind\": \"behind\"");
  td_test_child_clear (&child);
}

static void
double_buffering__says_how_stale_its_gradients_are (void **state)
{
  TdTestChild child = look ("double", NULL);
  Seen seen;

  (void)state;
  td_test_child_clear (&child);
  seen = see (0, 1);
  assert_true (seen.stale >= ITERATIONS - 1);
  assert_true (seen.behind >= (ITERATIONS - 2) * LAYERS);
}

static void
means__of_16_bits_are_marked (void **state)
{
  TdTestChild child = look ("f16", NULL);

  (void)state;
  td_test_child_clear (&child);
  assert_true (see (1, 1).halves >= (ITERATIONS - 1) * 2 * LAYERS);
}

/* Behind or not, the one that made a NaN is named; with double buffering one update later. */
static void
nan__is_named_with_what_made_it (void **state)
{
  static const char *const means[] = { "overlap", "double", "f16" };

  (void)state;
  for (size_t i = 0; i < sizeof means / sizeof *means; i++)
    {
      TdTestChild child = look (means[i], "nan");

      assert_child_status (child, 1);
      assert_contains (child.out, "error: rank 1 parted");
      assert_contains (child.out, "first in log at behind.c:");
      if (strcmp (means[i], "double") == 0)
        assert_contains (child.out, "it was made in the iteration before");
      td_test_child_clear (&child);
    }
}

/* Sums are on their way on a slow link when a rank ends, or dies: nobody waits for them. */
static void
ranks__whose_sums_are_on_their_way_end_with_the_one_that_ends (void **state)
{
  static const char *const means[] = { "overlap", "double" };
  static const char *const ends[] = { "finish", "kill" };

  (void)state;
  setenv ("TAPEDECK_TEST_LINK", "100:1", 1);
  for (int i = 0; i < 4; i++)
    {
      TdTestChild child
          = TD_TEST_RUN (tapedeck, "run", "-n", "3", "-f", "-o", td_test_tmp ("ranks"), program,
                         means[i / 2], ends[i % 2]);

      assert_true (child.status > 0 && child.status != 124);
      assert_contains (child.err, i % 2 == 0 ? "waits for rank 1, which has ended (td_finish)"
                                             : "rank 1 was ended by signal 9");
      td_test_child_clear (&child);
    }
  unsetenv ("TAPEDECK_TEST_LINK");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (means__of_every_kind_are_no_finding),
    td_test (overlap__is_on_the_tape_beside_the_backward_that_it_runs_behind),
    td_test (double_buffering__says_how_stale_its_gradients_are),
    td_test (means__of_16_bits_are_marked),
    td_test (nan__is_named_with_what_made_it),
    td_test (ranks__whose_sums_are_on_their_way_end_with_the_one_that_ends),
  };

  if (argc != 3)
    return 2;
  if (!mpi_here ())
    return 77;
  tapedeck = argv[1];
  program = argv[2];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
