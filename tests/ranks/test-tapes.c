/* The tapes of two ranks that train together, held against each other.
 *
 * test-tapes EXAMPLE WITH-RANKS MODULE TAPEDECK DRIFTING
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "td-tape-reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum
{
  RANKS = 2,
  ITERATIONS = 3,
  PARAMETERS = 8 /* of LeNet */
};

static const char *example, *with_ranks, *module, *tapedeck, *drifting;
static TdTapeReader *tapes[RANKS];

static int
record (void **state)
{
  char line[12000], name[40], error[256];
  TdTestChild c;

  if (td_test_setup (state) != 0)
    return -1;
  snprintf (line, sizeof line, "exec %s %s %d %s run --quiet --iterations %d -o %s %s",
            with_ranks, module, RANKS, tapedeck, ITERATIONS, td_test_tmp ("two.tdtape"),
            example);
  c = TD_TEST_RUN ("sh", "-c", line);
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  for (int r = 0; r < RANKS; r++)
    {
      snprintf (name, sizeof name, "two-rank-%d.tdtape", r);
      tapes[r] = td_tape_reader_open (td_test_tmp (name), error, sizeof error);
      if (tapes[r] == NULL)
        fail_msg ("%s", error);
    }
  return 0;
}

static int
forget (void **state)
{
  for (int r = 0; r < RANKS; r++)
    td_tape_reader_free (tapes[r]);
  return td_test_teardown (state);
}

static void
load (uint64_t number, const TdTapeIteration *it[RANKS])
{
  char error[256];

  for (int r = 0; r < RANKS; r++)
    {
      it[r] = td_tape_iteration_load (tapes[r], number, error, sizeof error);
      if (it[r] == NULL)
        fail_msg ("rank %d, iteration %d: %s", r, (int)number, error);
    }
}

static void
unload (const TdTapeIteration *it[RANKS])
{
  for (int r = 0; r < RANKS; r++)
    td_tape_iteration_free (it[r]);
}

static const char *
path_of (int r, const TdTapeRankSum *s)
{
  return td_tape_reader_string (tapes[r], s->path);
}

/* By kind; all are there, in one order on all ranks. */
static void
compare_sums (const TdTapeIteration *it[RANKS], int n[TD_TAPE_N_SUMS])
{
  assert_int_equal (it[0]->n_rank_sums, it[1]->n_rank_sums);
  for (uint32_t i = 0; i < it[0]->n_rank_sums; i++)
    {
      const TdTapeRankSum *a = &it[0]->rank_sums[i], *b = &it[1]->rank_sums[i];

      assert_int_equal (a->kind, b->kind);
      assert_string_equal (path_of (0, a), path_of (1, b));
      assert_int_equal (a->size, b->size);
      if (a->kind == TD_TAPE_SUM_GRADIENT)
        assert_memory_not_equal (a->sum, b->sum, sizeof a->sum);
      else
        assert_memory_equal (a->sum, b->sum, sizeof a->sum);
      n[a->kind]++;
    }
}

static void
ranks__have_sums_of_one_model_and_of_gradients_of_their_own (void **state)
{
  (void)state;
  for (uint64_t i = 1; i <= ITERATIONS; i++) /* 0 is what comes before them */
    {
      const TdTapeIteration *it[RANKS];
      int n[TD_TAPE_N_SUMS] = { 0 };

      load (i, it);
      compare_sums (it, n);
      assert_int_equal (n[TD_TAPE_SUM_PARAMETER], PARAMETERS);
      assert_int_equal (n[TD_TAPE_SUM_GRADIENT], PARAMETERS);
      assert_int_equal (n[TD_TAPE_SUM_MEAN], PARAMETERS);
      assert_int_equal (n[TD_TAPE_SUM_STATE], 2 * PARAMETERS); /* of Adam */
      assert_true (n[TD_TAPE_SUM_NUMBER] >= 3);
      unload (it);
    }
}

static const TdTapeRankSum *
find (int r, const TdTapeIteration *it, unsigned kind, const char *path)
{
  for (uint32_t i = 0; i < it->n_rank_sums; i++)
    if (it->rank_sums[i].kind == kind && strcmp (path_of (r, &it->rank_sums[i]), path) == 0)
      return &it->rank_sums[i];
  return NULL;
}

static void
sampled_elements_of_the_mean__are_the_mean_of_those_of_gradients (void **state)
{
  int n_other_than_0 = 0;

  (void)state;
  for (uint64_t i = 1; i <= ITERATIONS; i++) /* 0 is what comes before them */
    {
      const TdTapeIteration *it[RANKS];

      load (i, it);
      for (uint32_t k = 0; k < it[0]->n_rank_sums; k++)
        {
          const TdTapeRankSum *m = &it[0]->rank_sums[k];
          double sum = 0;

          if (m->kind != TD_TAPE_SUM_MEAN)
            continue;
          assert_int_equal (m->n_averaged, RANKS);
          for (int r = 0; r < RANKS; r++)
            {
              const TdTapeRankSum *g = find (r, it[r], TD_TAPE_SUM_GRADIENT, path_of (0, m));

              assert_non_null (g);
              assert_int_equal (g->at, m->at);
              assert_true (g->at < g->size);
              sum += g->sample;
            }
          assert_true (fabs (sum / RANKS - m->sample) <= 1e-6 * fabs (m->sample));
          n_other_than_0 += m->sample != 0;
        }
      unload (it);
    }
  assert_true (n_other_than_0 > ITERATIONS); /* else nothing was compared */
}

/* Both tapes are of one machine, whose clock they share. */
static void
nobody__leaves_a_meeting_before_all_have_come (void **state)
{
  int n = 0, n_before = 0;

  (void)state;
  for (uint64_t i = 0; i <= ITERATIONS; i++)
    {
      const TdTapeIteration *it[RANKS];

      load (i, it);
      for (uint32_t a = 0; a < it[0]->n_collectives; a++)
        for (uint32_t b = 0; b < it[1]->n_collectives; b++)
          {
            const TdTapeCollective *c[RANKS]
                = { &it[0]->collectives[a], &it[1]->collectives[b] };
            uint64_t start[RANKS], end[RANKS];

            if (c[0]->wait != TD_TAPE_WAIT_MEET || c[1]->wait != TD_TAPE_WAIT_MEET
                || c[0]->comm != c[1]->comm || c[0]->seq != c[1]->seq)
              continue;
            for (int r = 0; r < RANKS; r++)
              {
                start[r] = td_tape_reader_header (tapes[r])->mono_ns + c[r]->start_ns;
                end[r] = start[r] + c[r]->duration_ns;
                assert_int_equal (c[r]->rank, r);
                assert_int_equal (c[r]->size, RANKS);
                assert_true (c[r]->flags & TD_TAPE_COLLECTIVE_WHOLE);
                n_before += (c[r]->flags & TD_TAPE_COLLECTIVE_BEFORE) != 0;
              }
            assert_true (start[0] <= end[1] && start[1] <= end[0]);
            assert_string_equal (td_tape_reader_string (tapes[0], c[0]->call),
                                 td_tape_reader_string (tapes[1], c[1]->call));
            n++;
          }
      unload (it);
    }
  assert_true (n >= ITERATIONS + 5); /* one an update, and those of setting up */
  assert_true (n_before >= 5);
}

/* Three ranks, of which one writes to something after an update; recorded, or not. */
static TdTestChild
drift (const char *what, int rank, int update, bool recorded)
{
  char recorder[9000] = "";

  if (recorded)
    snprintf (recorder, sizeof recorder, "%s run --quiet --force -o %s", tapedeck,
              td_test_tmp ("drift.tdtape"));
  return td_test_shell ("%s %s 3 %s %s %s %d %d", with_ranks, module, recorder, drifting, what,
                        rank, update);
}

/* The place of the write is on that rank's tape, once, and on no other. */
static void
assert_written_at (int rank, const char *site)
{
  for (int r = 0; r < 3; r++)
    {
      char name[40];
      TdTestChild c;
      const char *at;

      snprintf (name, sizeof name, "drift-rank-%d.tdtape", r);
      c = TD_TEST_RUN (tapedeck, "cat", td_test_tmp (name));
      assert_child_status (c, 0);
      at = strstr (c.out, ", written at ");
      assert_true ((at != NULL) == (r == rank));
      if (at != NULL)
        {
          assert_non_null (strstr (at, site));
          assert_null (strstr (at + 1, ", written at "));
        }
      td_test_child_clear (&c);
    }
}

static void
write_of_one_rank_alone__is_said_with_its_array_rank_and_update (void **state)
{
  static const struct
  {
    const char *what;
    int rank, update;
    const char *said, *site;
  } cases[] = {
    /* what is written after update 3 is in the sums of update 4: .. l1/b is the first of them
     */
    { "weights", 1, 2, "ranks have parted: after update 4 l1/b of rank 1 of 3 is not",
      "drifting.c:25" },
    { "weights", 0, 1, "ranks have parted: after update 3 l1/b of rank 0 of 3 is not",
      "drifting.c:25" },
    { "state", 2, 2, "ranks have parted: after update 4 l1/b of rank 2 of 3 is not",
      "drifting.c:27" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild c = drift (cases[i].what, cases[i].rank, cases[i].update, true);
      const char *first = strstr (c.err, "ranks have parted");

      assert_child_status (c, 0);
      assert_contains (c.err, cases[i].said);
      assert_contains (c.err, "drifting.c:");
      assert_null (strstr (first + 1, "ranks have parted")); /* once, by one rank */
      td_test_child_clear (&c);
      assert_written_at (cases[i].rank, cases[i].site);
    }
}

static void
ranks_that_differ_where_they_may__are_not_said_to_have_parted (void **state)
{
  static const char *const whats[] = { "nothing", "persistent" };

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      TdTestChild c = drift (whats[i], 1, 2, true);

      assert_child_status (c, 0);
      assert_null (strstr (c.err, "parted"));
      td_test_child_clear (&c);
    }
}

/* Weights that wait for their shapes are made by each rank for itself, and its first gradients
 * are of those. */
static void
gradients_of_weights_that_were_not_rank_0s__are_left_out_and_said_to_be (void **state)
{
  TdTestChild c = drift ("seed", 9, 9, true);

  (void)state;
  assert_child_status (c, 0);
  assert_null (strstr (c.err, "parted"));
  td_test_child_clear (&c);
  for (int r = 0; r < 3; r++)
    {
      char name[40];
      const char *first;

      snprintf (name, sizeof name, "drift-rank-%d.tdtape", r);
      c = TD_TEST_RUN (tapedeck, "cat", td_test_tmp (name));
      assert_child_status (c, 0);
      first = strstr (c.out, "gradient l1/W left out");
      assert_int_equal (first != NULL, r != 0);
      if (first != NULL)
        assert_null (strstr (first + 1, "gradient l1/W left out")); /* the first update alone */
      assert_null (strstr (c.out, " absent"));
      td_test_child_clear (&c);
    }
}

/* The meeting of td_finish, where all come to it, makes no iteration of its own. */
static void
tapes__end_with_the_last_iteration (void **state)
{
  TdTestChild c = drift ("nothing", 9, 9, true);

  (void)state;
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  c = TD_TEST_RUN (tapedeck, "info", td_test_tmp ("drift-rank-0.tdtape"));
  assert_child_status (c, 0);
  assert_non_null (strstr (c.out, "\niterations       6\n")); /* that drifting.c makes */
  td_test_child_clear (&c);
}

static void
sums__are_made_for_recorders_alone (void **state)
{
  TdTestChild c = drift ("weights", 1, 2, false);

  (void)state;
  assert_child_status (c, 0);
  assert_null (strstr (c.err, "parted"));
  td_test_child_clear (&c);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (ranks__have_sums_of_one_model_and_of_gradients_of_their_own),
    cmocka_unit_test (sampled_elements_of_the_mean__are_the_mean_of_those_of_gradients),
    cmocka_unit_test (nobody__leaves_a_meeting_before_all_have_come),
    cmocka_unit_test (write_of_one_rank_alone__is_said_with_its_array_rank_and_update),
    cmocka_unit_test (ranks_that_differ_where_they_may__are_not_said_to_have_parted),
    cmocka_unit_test (gradients_of_weights_that_were_not_rank_0s__are_left_out_and_said_to_be),
    cmocka_unit_test (tapes__end_with_the_last_iteration),
    cmocka_unit_test (sums__are_made_for_recorders_alone),
  };

  if (argc != 6)
    return 1;
  example = argv[1];
  with_ranks = argv[2];
  module = argv[3];
  tapedeck = argv[4];
  drifting = argv[5];
  return cmocka_run_group_tests (tests, record, forget);
}
