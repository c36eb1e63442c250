/* What is said of ranks whose operations part, or the attributes of these.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "planted-ranks.h"
#include "td-test.h"

/* In iteration 2 rank 1 does not use l2. */
static void
unused_layer (PlantedStep *step)
{
  TdTapeRankSum *g;

  if (step->rank != 1 || step->iteration != 2)
    return;
  step->unused = TRUE;
  g = planted_sum (step, TD_TAPE_SUM_GRADIENT, "l2/W");
  g->flags = TD_TAPE_SUM_ABSENT;
  g->sample = 0;
}

static void
gradient_missing__names_the_operation_that_is_not_there (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (unused_layer);
  const TdRanksFinding *f = planted_find (ranks, TD_RANKS_ABSENT);

  assert_non_null (f);
  assert_int_equal (f->level, TD_RANKS_WARNING);
  assert_int_equal (f->iteration, 2);
  ASSERT_RANKS (f, 1);
  assert_string_equal (f->array, "l2/W");
  assert_contains (f->sentence, "only rank 0 runs linear");
  assert_contains (f->sentence, "model.c:14");
}

/* The first update, before which rank 1 had weights of its own. */
static void
not_yet_rank_0s (PlantedStep *step)
{
  if (step->rank == 1 && step->iteration == 0)
    planted_sum (step, TD_TAPE_SUM_GRADIENT, "l2/W")->flags
        = TD_TAPE_SUM_ABSENT | TD_TAPE_SUM_LEFT_OUT;
}

static void
gradient_that_is_left_out__is_not_said_to_be_missing (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (not_yet_rank_0s);

  assert_null (planted_find (ranks, TD_RANKS_ABSENT));
}

static void
other_operation_behind_a_sum (PlantedStep *step)
{
  step->summed = TRUE;
  step->other_op = step->rank == 3;
}

/* Its attribute `rank` differs on all. */
static void
graphs__that_differ_behind_a_sum_of_all_ranks_do_not_blame_it (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (other_operation_behind_a_sum);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 0);

  ASSERT_RANKS (f, 3);
  assert_not_contains (f->sentence, "comm_allreduce");
  assert_contains (f->sentence, "model.c:12");
}

static void
other_operation (PlantedStep *step)
{
  step->other_op = step->rank == 3;
}

static void
graphs__of_a_rank_that_always_differs_are_a_warning (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (other_operation);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 0);

  ASSERT_RANKS (f, 3);
  assert_contains (f->sentence, "relu");
  assert_contains (f->sentence, "6 of 6 steps");
}

/* Not in the first step: a gradient that is never cleared is added to from the second on. */
static void
other_operation_after_the_first (PlantedStep *step)
{
  step->other_op = step->rank == 3 && step->iteration > 0;
}

static void
graphs__of_a_rank_that_differs_in_all_steps_but_the_first_are_a_warning (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (other_operation_after_the_first);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 1);

  ASSERT_RANKS (f, 3);
  assert_contains (f->sentence, "5 of 6 steps");
}

static void
other_operation_beside_an_evaluation (PlantedStep *step)
{
  step->other_op = step->rank == 3;
  step->evaluated = step->iteration % 3 == 2 ? 4 : 0;
}

static void
graphs__of_a_rank_that_always_differs_are_a_warning_beside_an_evaluation (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (other_operation_beside_an_evaluation);

  planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 0);
}

static void
clip_of_one_rank (PlantedStep *step)
{
  step->clips = step->rank == 1;
}

static void
graphs__in_which_one_rank_changes_a_gradient_are_a_warning (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (clip_of_one_rank);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 0);

  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence, "only rank 1 runs clip at model.c:22");
}

static void
clip_in_vain (PlantedStep *step)
{
  step->clips = step->rank == 1;
  step->clips_in_vain = !step->clips;
}

/* The same operations, in another order of hands. */
static void
graphs__in_which_one_rank_updates_by_another_gradient_are_a_warning (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (clip_in_vain);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 0);

  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence, "between ranks 0 and 1 sgd at model.c:99 differs first: it "
                                "reads or writes other variables");
}

/* Rank 0 prints what a gradient is like, and how well it does. */
static void
prints_of_one_rank (PlantedStep *step)
{
  step->reads = step->rank == 0;
  step->evaluated = step->rank == 0 ? 5 : 0;
}

static void
graphs__in_which_one_rank_only_looks_are_a_note (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (prints_of_one_rank);

  planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_NOTE, 0);
}

/* ---- attributes ---- */

static void
other_attribute (PlantedStep *step)
{
  step->attrs = step->rank == 2 ? "axis=1 value=2" : "axis=1 value=1";
}

static void
attributes__of_a_rank_that_always_differ_are_a_warning (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (other_attribute);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 0);

  ASSERT_RANKS (f, 2);
  assert_string_equal (f->site, "model.c:12");
  assert_contains (f->sentence, "rank 2 runs another graph than the others in iteration 0: "
                                "between ranks 0 and 2 relu at model.c:12 differs "
                                "(value=1 → value=2); so in 6 of 6 steps of equal "
                                "shapes");
}

static void
other_attribute_beside_prints (PlantedStep *step)
{
  other_attribute (step);
  prints_of_one_rank (step);
}

static void
attributes__of_a_rank_are_a_warning_whatever_one_does_beside_the_training (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (other_attribute_beside_prints);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_WARNING, 0);

  ASSERT_RANKS (f, 2);
  assert_contains (f->sentence, "relu at model.c:12 differs (value=1 → value=2)");
}

/* A crop that each rank draws, and where the random stream stands. */
static char drawn[64];

static void
drawn_attributes (PlantedStep *step)
{
  g_snprintf (drawn, sizeof drawn, "at=%d offset=%u seed=%u",
              (int)(step->iteration * step->iteration * (step->rank + 1)), step->rank,
              step->rank);
  step->attrs = drawn;
  step->summed = TRUE;
}

static void
other_stream (PlantedStep *step)
{
  g_snprintf (drawn, sizeof drawn, "ratio=0.5 offset=%u seed=%u key=%u algorithm=%u",
              step->rank, step->rank, step->rank, step->rank);
  step->attrs = drawn;
  step->summed = TRUE;
}

static void
attributes__that_are_drawn_or_each_ranks_own_say_nothing (void **state)
{
  planted_assert_cured (drawn_attributes);
  planted_assert_cured (other_stream);
}

static void
attributes_of_sizes (PlantedStep *step)
{
  other_attribute (step);
  step->batch = step->rank == 2 ? 6 : 8;
}

/* What is divided by a number of examples differs with it, and rightly. */
static void
attributes__are_not_compared_where_sizes_differ (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (attributes_of_sizes);

  planted_assert_found (ranks, TD_RANKS_BATCHES, TD_RANKS_WARNING, 0);
  assert_null (planted_find (ranks, TD_RANKS_GRAPHS));
}

/* Which examples each rank takes are attributes, of which backward has others, too. */
static void
prints_beside_examples (PlantedStep *step)
{
  prints_of_one_rank (step);
  g_snprintf (drawn, sizeof drawn, "start=%d", (int)(step->iteration * 4 + step->rank));
  step->attrs = drawn;
}

static void
graphs__in_which_one_rank_only_looks_are_a_note_whatever_its_examples_are (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (prints_beside_examples);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_GRAPHS, TD_RANKS_NOTE, 0);

  assert_not_contains (f->sentence, "backward");
}

/* By the data: now this rank, now that. */
static void
operation_by_data (PlantedStep *step)
{
  step->other_op = (step->iteration + step->rank) % 3 == 0;
}

static void
graphs__that_differ_by_the_data_are_a_note (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (operation_by_data);

  assert_int_equal (td_ranks_count_faults (ranks), 0);
  assert_non_null (planted_find (ranks, TD_RANKS_GRAPHS));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (gradient_missing__names_the_operation_that_is_not_there),
    td_test (gradient_that_is_left_out__is_not_said_to_be_missing),
    td_test (graphs__that_differ_behind_a_sum_of_all_ranks_do_not_blame_it),
    td_test (graphs__of_a_rank_that_always_differs_are_a_warning),
    td_test (graphs__of_a_rank_that_differs_in_all_steps_but_the_first_are_a_warning),
    td_test (graphs__of_a_rank_that_always_differs_are_a_warning_beside_an_evaluation),
    td_test (graphs__in_which_one_rank_changes_a_gradient_are_a_warning),
    td_test (graphs__in_which_one_rank_updates_by_another_gradient_are_a_warning),
    td_test (graphs__in_which_one_rank_only_looks_are_a_note),
    td_test (attributes__of_a_rank_that_always_differ_are_a_warning),
    td_test (attributes__of_a_rank_are_a_warning_whatever_one_does_beside_the_training),
    td_test (attributes__that_are_drawn_or_each_ranks_own_say_nothing),
    td_test (attributes__are_not_compared_where_sizes_differ),
    td_test (graphs__in_which_one_rank_only_looks_are_a_note_whatever_its_examples_are),
    td_test (graphs__that_differ_by_the_data_are_a_note),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
