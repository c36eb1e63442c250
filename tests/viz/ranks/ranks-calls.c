/* What is said of ranks whose examples and calls part, that hang or fail; clocks and files.
 *
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>

#include "planted-ranks.h"
#include "td-test.h"

/* ---- batches ---- */

static void
unequal_batch (PlantedStep *step)
{
  step->batch = step->iteration == 5 && step->rank == 3 ? 3 : 8;
}

static void
batches__that_are_unequal_are_told_with_their_numbers (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (unequal_batch);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_BATCHES, TD_RANKS_WARNING, 5);

  ASSERT_RANKS (f, 0, 3);
  assert_contains (f->sentence, "8 and 3 examples in `x`");
}

/* In a mean of sums all examples count alike. */
static void
unequal_batch_of_sum (PlantedStep *step)
{
  unequal_batch (step);
  step->adds = TRUE;
}

static void
batches__that_are_unequal_are_well_where_losses_are_sums (void **state)
{
  planted_assert_cured (unequal_batch_of_sum);
}

/* There are 2 to the 60 ways up to the weights. */
static void
unequal_batch_of_ways (PlantedStep *step)
{
  unequal_batch (step);
  step->doubled = 60;
}

static void
batches__of_a_loss_that_many_ways_lead_to_are_looked_at_at_once (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (unequal_batch_of_ways);

  planted_assert_found (ranks, TD_RANKS_BATCHES, TD_RANKS_WARNING, 5);
}

/* Both have a smaller last batch. */
static void
equal_last_batch (PlantedStep *step)
{
  step->batch = step->iteration == 5 ? 3 : 8;
}

static void
batches__that_are_all_smaller_are_equal (void **state)
{
  planted_assert_cured (equal_last_batch);
}

/* Parts of what is evaluated need not be equal: no gradient comes of it. */
static void
unequal_evaluation (PlantedStep *step)
{
  step->evaluated = step->iteration % 3 == 2 ? 2 + step->rank : 0;
}

static void
batches__of_an_evaluation_may_be_unequal (void **state)
{
  planted_assert_cured (unequal_evaluation);
}

static void
unequal_batch_beside_evaluation (PlantedStep *step)
{
  unequal_evaluation (step);
  unequal_batch (step);
}

static void
batches__that_are_unequal_are_told_beside_an_evaluation (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (unequal_batch_beside_evaluation);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_BATCHES, TD_RANKS_WARNING, 5);

  ASSERT_RANKS (f, 0, 3);
  assert_contains (f->sentence, "8 and 3 examples in `x`");
  assert_contains (f->advice, ".force_equal_length");
}

/* ---- the same data ---- */

/* Ranks are written one after the other: what rank 1 has in each step is kept. */
static TdTapeRankSum kept[16][PLANTED_MOST_ROWS];

static void
same_gradients (PlantedStep *step)
{
  if (step->rank == 1)
    memcpy (kept[step->iteration], step->sums, sizeof step->sums);
  for (guint i = 0; step->rank == 2 && i < step->n_sums; i++)
    if (step->sums[i].kind == TD_TAPE_SUM_GRADIENT)
      step->sums[i] = kept[step->iteration][i];
  for (guint i = 0; i < step->n_sums; i++)
    if (step->sums[i].kind == TD_TAPE_SUM_MEAN)
      step->sums[i].n_averaged = 0; /* not what is tested here */
}

static void
data__that_two_ranks_share_is_told_by_their_gradients (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (same_gradients);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_SAME_DATA, TD_RANKS_WARNING, 0);

  ASSERT_RANKS (f, 1, 2);
  assert_contains (f->advice, "td_scatter_dataset");
}

static void
same_inputs (PlantedStep *step)
{
  step->input_mean = 1 + (double)step->iteration + (step->rank < 2 ? 0 : step->rank);
}

static void
constant_inputs (PlantedStep *step)
{
  step->input_mean = 1;
}

static void
data__that_two_ranks_share_is_told_by_their_inputs (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (same_inputs);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_SAME_DATA, TD_RANKS_WARNING, -1);

  ASSERT_RANKS (f, 0, 1);
  planted_assert_cured (constant_inputs);
}

/* ---- calls ---- */

static void
other_call (PlantedStep *step)
{
  if (step->iteration != 4)
    return;
  for (guint i = 0; i < step->n_waits; i++)
    {
      step->waits[i].flags |= TD_TAPE_COLLECTIVE_FAILED;
      if (step->rank == 1)
        {
          step->waits[i].call = td_tape_writer_string (step->w, "td_comm_bcast");
          step->waits[i].site = td_tape_writer_site (step->w, "/src/model.c", 77, "main");
        }
    }
}

static void
calls__that_met_others_are_told_with_both_places (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (other_call);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_MISMATCH, TD_RANKS_ERROR, 4);

  ASSERT_RANKS (f, 1);
  assert_string_equal (f->site, "model.c:77");
  assert_contains (f->sentence, "rank 1 in td_comm_bcast at model.c:77");
  assert_contains (f->sentence, "ranks 0, 2 and 3 in td_opt_update at model.c:30");
}

static void
other_exit (PlantedStep *step)
{
  for (guint i = 0; step->iteration == 4 && i < step->n_waits; i++)
    {
      step->waits[i].flags |= TD_TAPE_COLLECTIVE_FAILED;
      if (step->rank == 1)
        step->waits[i].call = td_tape_writer_string (step->w, "td_finish");
    }
}

static void
calls__that_met_an_exit_are_told_with_its_status (void **state)
{
  PlantedRun run = { .plant = other_exit };
  g_autoptr (TdRanks) ranks = NULL;
  const TdRanksFinding *f;

  for (guint r = 0; r < 4; r++)
    run.end[r].status = r == 1 ? 3 : 1;
  ranks = planted_look (&run);
  f = planted_find (ranks, TD_RANKS_MISMATCH);
  assert_non_null (f);
  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence,
                   "rank 1 in td_finish at model.c:30; rank 1 ended with status 3");
  assert_not_contains (f->sentence, "status 1");
}

/* ---- hangs and deaths ---- */

/* The others wait in the last step for rank 2, which has none. */
static void
never_comes (PlantedStep *step)
{
  if (step->iteration != 5)
    return;
  if (step->rank == 2)
    step->is_left_out = TRUE;
  step->is_live = TRUE;
  step->n_sums = 0;
  step->n_waits = 1;
  step->waits[0].duration_ns = 0;
  step->waits[0].flags |= TD_TAPE_COLLECTIVE_WAITS;
}

static void
plan_hang (PlantedRun *run)
{
  run->plant = never_comes;
  for (guint r = 0; r < 4; r++)
    run->end[r] = (TdTapeEnd){ .status = -1, .signal = SIGTERM, .iteration = 5 };
  run->end[2] = (TdTapeEnd){
    .status = -1, .signal = SIGKILL, .last_op = 1, .running = 1, .iteration = 5
  };
}

static void
break__is_told_as_such_and_not_as_a_death (void **state)
{
  PlantedRun run = { .note = { [1] = "stopped at model.c:12: before relu (breakpoint 1)" } };
  g_autoptr (TdRanks) ranks = NULL;
  const TdRanksFinding *f;

  for (guint r = 0; r < 4; r++)
    run.end[r] = (TdTapeEnd){ .status = -1, .signal = r == 1 ? SIGKILL : SIGTERM };
  ranks = planted_look (&run);
  f = planted_assert_found (ranks, TD_RANKS_DEATH, TD_RANKS_NOTE, 5);
  ASSERT_RANKS (f, 1);
  assert_string_equal (f->sentence, "rank 1 stopped at model.c:12: before relu (breakpoint 1)");
  assert_string_equal (td_ranks_get (ranks, 1)->end,
                       "stopped at model.c:12: before relu (breakpoint 1)");
}

static void
hang__names_who_waits_and_who_never_came (void **state)
{
  PlantedRun run = { 0 };
  g_autoptr (TdRanks) ranks = NULL;
  g_autofree char *text = NULL;
  const TdRanksFinding *f;

  plan_hang (&run);
  ranks = planted_look (&run);
  f = planted_assert_found (ranks, TD_RANKS_HANG, TD_RANKS_ERROR, 5);
  ASSERT_RANKS (f, 2);
  assert_string_equal (f->site, "model.c:30");
  assert_contains (f->sentence, "ranks 0, 1 and 3 wait in td_opt_update at model.c:30");
  assert_contains (f->sentence, "rank 2 never came: it was killed by SIGKILL in iteration 5, "
                                "in relu at model.c:12");
  text = td_ranks_print (ranks, "text");
  assert_contains (text, " 0:waits 1:waits 2:MISSING 3:waits");
  assert_contains (text, " 0:left 1:left 2:left 3:left");
}

static void
hang__of_a_rank_that_did_something_else_is_no_death (void **state)
{
  PlantedRun run = { 0 };
  g_autoptr (TdRanks) ranks = NULL;
  const TdRanksFinding *f;

  plan_hang (&run);
  run.end[2] = (TdTapeEnd){ .status = -1, .signal = SIGTERM, .last_op = 1, .iteration = 5 };
  ranks = planted_look (&run);
  f = planted_assert_found (ranks, TD_RANKS_HANG, TD_RANKS_ERROR, 5);
  assert_contains (f->sentence, "rank 2 never came: it was in iteration 5, after relu at "
                                "model.c:12, until it was killed by SIGTERM");
}

/* Ended by the user while all of them waited together: nobody was missing. */
static void
all_wait (PlantedStep *step)
{
  guint rank = step->rank;

  step->rank = 0;
  never_comes (step);
  step->rank = rank;
}

static void
hang__is_none_where_all_have_come (void **state)
{
  PlantedRun run = { .plant = all_wait };
  g_autoptr (TdRanks) ranks = NULL;

  for (guint r = 0; r < 4; r++)
    run.end[r] = (TdTapeEnd){ .status = -1, .signal = SIGINT };
  ranks = planted_look (&run);
  assert_int_equal (td_ranks_count_faults (ranks), 0);
}

/* Rank 2 has left the call in which the others still are, and waits in the next one: told to
 * end then, none of them is at fault. */
static void
one_is_ahead (PlantedStep *step)
{
  all_wait (step);
  if (step->iteration == 5 && step->rank == 2)
    {
      step->waits[1] = step->waits[0];
      step->waits[0].flags &= (guint8)~TD_TAPE_COLLECTIVE_WAITS;
      step->waits[0].duration_ns = 1000;
      step->waits[1].seq++;
      step->n_waits = 2;
    }
}

static void
plan_end (PlantedRun *run, gboolean told, guint64 time_ns)
{
  for (guint r = 0; r < 4; r++)
    {
      run->end[r] = (TdTapeEnd){ .status = -1, .signal = SIGTERM, .time_ns = time_ns };
      run->note[r] = told ? "the run was told to end (Terminated)" : NULL;
    }
}

static void
hang__is_none_where_the_run_was_told_to_end (void **state)
{
  PlantedRun run = { .plant = one_is_ahead };

  for (guint told = 0; told < 2; told++)
    {
      plan_end (&run, told, 1000000000);
      g_autoptr (TdRanks) ranks = planted_look (&run);

      assert_int_equal (td_ranks_count_faults (ranks), told ? 0 : 1);
    }
  run.plant = never_comes; /* one computed, as far as anybody knows */
  g_autoptr (TdRanks) ranks = planted_look (&run);
  assert_int_equal (td_ranks_count_faults (ranks), 0);
}

/* Rank 0 waits for a letter of rank 1, which waits for the others in a meeting. */
static void
letter_and_meeting (PlantedStep *step)
{
  all_wait (step);
  if (step->iteration == 5 && step->rank == 0)
    {
      step->waits[0].call = td_tape_writer_string (step->w, "td_recv");
      step->waits[0].wait = TD_TAPE_WAIT_RECEIVE;
      step->waits[0].peer = 1;
    }
}

static void
hang__that_was_long_or_cannot_end_is_one_though_the_run_was_told_to_end (void **state)
{
  PlantedRun run = { .plant = never_comes };
  g_autoptr (TdRanks) ranks = NULL, of_each_other = NULL;

  plan_end (&run, TRUE, 60000000000);
  ranks = planted_look (&run);
  planted_assert_found (ranks, TD_RANKS_HANG, TD_RANKS_ERROR, 5);
  run.plant = letter_and_meeting;
  plan_end (&run, TRUE, 1000000000);
  of_each_other = planted_look (&run);
  planted_assert_found (of_each_other, TD_RANKS_HANG, TD_RANKS_ERROR, 5);
}

static void
hang__of_ranks_that_wait_for_each_other_names_both_calls (void **state)
{
  PlantedRun run = { .plant = letter_and_meeting };
  g_autoptr (TdRanks) ranks = NULL;
  const TdRanksFinding *f;

  for (guint r = 0; r < 4; r++)
    run.end[r] = (TdTapeEnd){ .status = -1, .signal = SIGTERM };
  ranks = planted_look (&run);
  f = planted_assert_found (ranks, TD_RANKS_HANG, TD_RANKS_ERROR, 5);
  assert_contains (f->sentence, "td_recv from rank 1");
  assert_contains (f->sentence, "td_opt_update");
}

static void
death__of_one_rank_is_told_without_those_it_took_along (void **state)
{
  PlantedRun run = { 0 };
  g_autoptr (TdRanks) ranks = NULL;
  const TdRanksFinding *f;

  for (guint r = 0; r < 4; r++)
    run.end[r] = (TdTapeEnd){ .status = -1, .signal = SIGTERM };
  run.end[1] = (TdTapeEnd){ .status = 3 };
  ranks = planted_look (&run);
  f = planted_assert_found (ranks, TD_RANKS_DEATH, TD_RANKS_ERROR, 5);
  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence, "rank 1 ended with status 3");
}

/* ---- the run ---- */

static void
plain_optimizer (PlantedStep *step)
{
  step->n_sums = step->n_waits = 0;
}

/* Sums of the program's own are another way to average. */
static void
own_average (PlantedStep *step)
{
  step->n_sums = 0;
}

/* Nothing is updated: an evaluation on many ranks. */
static void
only_forward (PlantedStep *step)
{
  plain_optimizer (step);
  step->no_backward = step->no_update = TRUE;
}

static void
plain_optimizer__is_told_with_its_line (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (plain_optimizer);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_PLAIN, TD_RANKS_ERROR, 0);

  ASSERT_RANKS (f, 0, 1, 2, 3);
  assert_contains (f->sentence, "sgd");
  assert_contains (f->advice, "td_multi_node_optimizer_new");
  planted_assert_cured (own_average);
  planted_assert_cured (only_forward);
}

static void
device__that_two_ranks_share_is_told (void **state)
{
  PlantedRun run = { .n_ranks = 3,
                     .device = { "cuda:0", "cuda:1", "cuda:0" },
                     .uuid = { "GPU-a", "GPU-b", "GPU-a" } };
  PlantedRun cured = { .n_ranks = 3,
                       .device = { "cuda:0", "cuda:0", "cuda:0" },
                       .uuid = { "GPU-a", "GPU-b", "GPU-c" } };
  PlantedRun unsure = { .n_ranks = 2, .device = { "cuda:0", "cuda:0" } };
  g_autoptr (TdRanks) a = planted_look (&run);
  g_autoptr (TdRanks) b = planted_look (&cured);
  g_autoptr (TdRanks) c = planted_look (&unsure);

  ASSERT_RANKS (planted_assert_found (a, TD_RANKS_DEVICE, TD_RANKS_WARNING, -1), 0, 2);
  planted_assert_nothing (b);
  assert_contains (planted_assert_found (c, TD_RANKS_DEVICE, TD_RANKS_NOTE, -1)->sentence,
                   "CUDA_VISIBLE_DEVICES");
}

static void
straggler__is_a_note_with_times (void **state)
{
  PlantedRun run = { .n_steps = 1600, .late_ns = { 0, 0, 400000, 0 } };
  PlantedRun brief = { .n_steps = 100, .late_ns = { 0, 0, 400000, 0 } };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  g_autoptr (TdRanks) few = planted_look (&brief);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_STRAGGLER, TD_RANKS_NOTE, -1);

  ASSERT_RANKS (f, 2);
  assert_contains (f->sentence, "an iteration longer than it did");
  planted_assert_nothing (few);
}

/* ---- how they ended ---- */

/* What a rank says that has waited for too long, of a call that no iteration has. */
static void
says_who_does_not_come (PlantedStep *step)
{
  static const char text[]
      = "rank 0 of 4 has waited 3 s in td_comm_barrier (call 9, a.c:7) for rank "
        "2; rank 2 (pid 7) is stopped";
  TdTapeNotice notice = { .kind = TD_TAPE_NOTICE_ERROR };

  if (step->rank != 0 || step->iteration != 0)
    return;
  notice.text = td_tape_writer_string (step->w, text);
  td_tape_writer_notice (step->w, &notice);
}

static void
hang_outside_iterations__is_told_by_what_was_said_of_it (void **state)
{
  PlantedRun run
      = { .plant = says_who_does_not_come,
          .end = { { .status = 1 }, { .signal = 15 }, { .signal = 15 }, { .signal = 15 } } };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_HANG, TD_RANKS_ERROR, -1);

  ASSERT_RANKS (f, 2);
  assert_contains (f->sentence, "rank 2 (pid 7) is stopped");
  assert_null (planted_find (ranks, TD_RANKS_DEATH));
}

static void
rank_that_ends_before_the_others__is_the_one_that_is_named (void **state)
{
  PlantedRun run
      = { .end = { { .signal = 15 }, { .status = 0 }, { .signal = 15 }, { .signal = 15 } } };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_DEATH, TD_RANKS_ERROR, -1);

  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence, "rank 1 ended while others still ran");
}

/* Rank 3 trains nothing: it is in no group. */
static void
trains_nothing (PlantedStep *step)
{
  if (step->rank == 3)
    only_forward (step);
}

static void
rank_that_trains_nothing__has_not_made_too_few_updates (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (trains_nothing);

  assert_null (planted_find (ranks, TD_RANKS_UPDATES));
}

/* ---- clocks ---- */

/* Clocks that differ by minutes, of tapes that begin at other times: by how much is found
 * within what is said to be the error, which is at most half of the shortest two waits. */
static void
clocks__are_aligned_by_meetings_within_the_error (void **state)
{
  PlantedRun run = { .n_ranks = 4,
                     .n_steps = 20,
                     .host = { "a", "b", "c", "a" },
                     .clock_ns = { 0, 100000000000, -3000000000, 0 },
                     .start_ns = { 1000, 2000000, 30000000, 7000 },
                     .late_ns = { 0, 900, 0, 200 } };
  g_autoptr (TdRanks) ranks = planted_look (&run);

  for (guint r = 1; r < 4; r++)
    {
      const TdRank *rank = td_ranks_get (ranks, r);
      gint64 true_offset = (gint64)run.start_ns[r] - (gint64)run.start_ns[0];

      assert_true (rank->has_offset);
      assert_int_equal (rank->one_clock, r == 3);
      assert_true (ABS (rank->offset_ns - true_offset) <= (gint64)rank->error_ns);
      assert_true (rank->error_ns < 10000);
    }
  assert_int_equal (td_ranks_get (ranks, 3)->error_ns, 0);
}

/* Machines of one name that are not the same: what their clocks say cannot be. */
static void
clocks__of_two_machines_with_one_name_are_not_one (void **state)
{
  PlantedRun run = { .n_ranks = 2, .clock_ns = { 0, 100000000000 } };
  g_autoptr (TdRanks) ranks = planted_look (&run);

  assert_false (td_ranks_get (ranks, 1)->one_clock);
  assert_true (ABS (td_ranks_get (ranks, 1)->offset_ns)
               <= (gint64)td_ranks_get (ranks, 1)->error_ns);
}

/* ---- steps and files ---- */

/* Rank 0 has an iteration more, before all others, in which it evaluates alone: it numbers all
 * others differently. */
static void
evaluates_alone (PlantedStep *step)
{
  if (step->rank == 0 && step->iteration == 0)
    {
      only_forward (step);
      return;
    }
  if (step->rank == 0)
    return;
  step->is_left_out = step->iteration == 0;
  step->iteration--;
}

static void
evaluates_alone_and_parts (PlantedStep *step)
{
  if (step->rank == 1 && step->iteration == 3)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l1/W")->sum[0] ^= 1;
  evaluates_alone (step);
}

static void
steps__are_found_where_one_rank_has_more_iterations (void **state)
{
  g_autoptr (TdRanks) ranks = NULL;

  planted_assert_cured (evaluates_alone);
  ranks = planted_look_at (evaluates_alone_and_parts);
  ASSERT_RANKS (planted_assert_found (ranks, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 3), 1);
}

static void
files__that_are_not_of_one_run_are_refused (void **state)
{
  PlantedRun run = { .n_ranks = 3 };
  const char *folder = planted_write (&run);
  g_autofree char *one = g_build_filename (folder, "rank-1.tdtape", NULL),
                  *none = g_build_filename (folder, "none", NULL);
  const char *twice[] = { one, one };
  const char *missing = none, *sibling = one;
  g_autoptr (GError) a = NULL, b = NULL, c = NULL;
  g_autoptr (TdRanks) all = td_ranks_open (&sibling, 1, &a);

  assert_non_null (all);
  assert_int_equal (td_ranks_get_n (all), 3);
  assert_null (td_ranks_open (twice, 2, &b));
  assert_contains (b->message, "both of rank 1");
  assert_null (td_ranks_open (&missing, 1, &c));
}

static void
files__that_are_missing_are_said (void **state)
{
  PlantedRun run = { .no_tape = { 0, 1 } };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  g_autofree char *text = td_ranks_print (ranks, "text"),
                  *json = td_ranks_print (ranks, "json");

  planted_assert_nothing (ranks);
  assert_int_equal (td_ranks_get_n_started (ranks), 4);
  assert_contains (text, "No tape here of rank 1\n");
  assert_contains (json, "\"missing\"");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (batches__that_are_unequal_are_told_with_their_numbers),
    td_test (batches__that_are_unequal_are_well_where_losses_are_sums),
    td_test (batches__of_a_loss_that_many_ways_lead_to_are_looked_at_at_once),
    td_test (batches__that_are_all_smaller_are_equal),
    td_test (batches__of_an_evaluation_may_be_unequal),
    td_test (batches__that_are_unequal_are_told_beside_an_evaluation),
    td_test (data__that_two_ranks_share_is_told_by_their_gradients),
    td_test (data__that_two_ranks_share_is_told_by_their_inputs),
    td_test (calls__that_met_others_are_told_with_both_places),
    td_test (calls__that_met_an_exit_are_told_with_its_status),
    td_test (break__is_told_as_such_and_not_as_a_death),
    td_test (hang__names_who_waits_and_who_never_came),
    td_test (hang__of_a_rank_that_did_something_else_is_no_death),
    td_test (hang__is_none_where_all_have_come),
    td_test (hang__is_none_where_the_run_was_told_to_end),
    td_test (hang__that_was_long_or_cannot_end_is_one_though_the_run_was_told_to_end),
    td_test (hang__of_ranks_that_wait_for_each_other_names_both_calls),
    td_test (death__of_one_rank_is_told_without_those_it_took_along),
    td_test (plain_optimizer__is_told_with_its_line),
    td_test (device__that_two_ranks_share_is_told),
    td_test (straggler__is_a_note_with_times),
    td_test (hang_outside_iterations__is_told_by_what_was_said_of_it),
    td_test (rank_that_ends_before_the_others__is_the_one_that_is_named),
    td_test (rank_that_trains_nothing__has_not_made_too_few_updates),
    td_test (clocks__are_aligned_by_meetings_within_the_error),
    td_test (clocks__of_two_machines_with_one_name_are_not_one),
    td_test (steps__are_found_where_one_rank_has_more_iterations),
    td_test (files__that_are_not_of_one_run_are_refused),
    td_test (files__that_are_missing_are_said),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
