/* What is said of ranks whose numbers part, for every cause: tapes with the fault planted, and
 * their cured twins, of which nothing is said.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "planted-ranks.h"
#include "td-test.h"

static void
ranks__says_nothing_of_a_run_without_faults (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (NULL);
  g_autofree char *text = NULL;

  planted_assert_nothing (ranks);
  text = td_ranks_print (ranks, "text");
  assert_contains (text, "Nothing found: 6 steps with updates of 4 ranks compared.");
  for (guint i = 0; i < 4; i++)
    {
      assert_int_equal (td_ranks_get (ranks, i)->n_iterations, 6);
      assert_int_equal (td_ranks_get (ranks, i)->n_updating, 6);
      assert_string_equal (td_ranks_get (ranks, i)->end, "ended");
    }
}

static void
ranks__says_nothing_of_300_iterations_without_faults (void **state)
{
  PlantedRun run = { .n_steps = 300, .n_ranks = 3 };
  g_autoptr (TdRanks) ranks = planted_look (&run);

  planted_assert_nothing (ranks);
}

/* Look at a run whose tape of rank 1 is cut to `permille` of its bytes. */
static TdRanks *
look_at_cut (guint permille)
{
  PlantedRun run = { .n_ranks = 3, .n_steps = 20 };
  const char *folder = planted_write (&run);
  g_autofree char *path = g_build_filename (folder, "rank-1.tdtape", NULL), *bytes = NULL;
  g_autoptr (GError) error = NULL;
  TdRanks *ranks;
  gsize n;

  assert_true (g_file_get_contents (path, &bytes, &n, NULL));
  assert_true (g_file_set_contents (path, bytes, (gssize)(n * permille / 1000), NULL));
  ranks = td_ranks_open (&folder, 1, &error);
  if (!ranks)
    fail_msg ("%s", error->message);
  td_ranks_look (ranks);
  return ranks;
}

static void
ranks__do_not_count_steps_that_are_not_whole_as_compared (void **state)
{
  g_autoptr (TdRanks) some = look_at_cut (500), none = NULL;
  g_autofree char *of_some = td_ranks_print (some, "text"), *of_none = NULL;

  assert_true (td_ranks_get (some, 1)->n_compared > 0);
  assert_true (td_ranks_get (some, 1)->n_compared < 20);
  assert_contains (of_some, "Nothing found: 20 steps with updates of 3 ranks compared; not all "
                            "of rank 1, whose tape has not all of them whole");
  none = look_at_cut (60);
  of_none = td_ranks_print (none, "text");
  assert_int_equal (td_ranks_get (none, 1)->n_compared, 0);
  assert_contains (of_none, "Nothing found: 20 steps with updates of 2 ranks compared; none of "
                            "rank 1, whose tape has not all of them whole");
}

/* ---- parameters ---- */

/* Rank 2 writes l2/W after the update of iteration 2; it stays different. */
static void
write_parameter (PlantedStep *step)
{
  if (step->rank == 2 && step->iteration >= 3)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->sum[0] ^= 1;
}

static void
parameters__are_told_with_rank_iteration_and_name (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (write_parameter);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 3);

  ASSERT_RANKS (f, 2);
  assert_string_equal (f->array, "l2/W");
  assert_int_equal (f->after, 2);
  assert_contains (f->sentence, "rank 2 parted in iteration 3: parameter `l2/W`");
  assert_contains (f->sentence, "rank 2 wrote it after the update before");
}

/* And the tape says where: at model.c:77, since the update before. */
static void
write_parameter_at_77 (PlantedStep *step)
{
  write_parameter (step);
  if (step->rank == 2 && step->iteration == 3)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->n_averaged = 77;
}

static void
parameters__are_told_with_the_line_that_wrote_them (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (write_parameter_at_77);
  g_autoptr (TdRanks) unknown = planted_look_at (write_parameter);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 3);

  assert_string_equal (f->site, "model.c:77");
  assert_contains (f->sentence, "; rank 2 wrote it at model.c:77");
  f = planted_assert_found (unknown, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 3);
  assert_contains (f->sentence, "; that was between the updates of iterations 2 and 3 at ");
}

/* In every second step another optimizer updates, and says nothing of l2/W. */
static void
write_parameter_of_one_of_two_optimizers (PlantedStep *step)
{
  write_parameter (step);
  if (step->iteration % 2 == 0)
    return;
  for (guint i = 0; i < step->n_sums; i++)
    if (step->sums[i].path == planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->path
        && step->sums[i].kind == TD_TAPE_SUM_PARAMETER)
      {
        step->sums[i] = step->sums[--step->n_sums];
        return;
      }
}

static void
parameters__of_one_of_two_optimizers_are_told_once (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (write_parameter_of_one_of_two_optimizers);

  ASSERT_RANKS (planted_assert_found (ranks, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 4), 2);
}

static void
differ_from_start (PlantedStep *step)
{
  if (step->rank == 1)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l1/W")->sum[1] ^= 1;
}

static void
parameters__that_were_never_equal_are_told_so (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (differ_from_start);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 0);

  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence, "not equal at the start");
}

static void
parameters__of_two_ranks_have_no_majority (void **state)
{
  PlantedRun run = { .n_ranks = 2, .plant = differ_from_start };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 0);

  ASSERT_RANKS (f, 0, 1);
  assert_contains (f->sentence, "ranks 0 and 1 parted");
}

/* Equal again from iteration 3 on, and different again in 5. */
static void
part_twice (PlantedStep *step)
{
  if (step->rank == 1 && (step->iteration == 2 || step->iteration == 5))
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l1/W")->sum[1] ^= 1;
}

static void
parameters__that_part_again_are_told_again (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (part_twice);

  assert_int_equal (td_ranks_get_n_findings (ranks), 2);
  assert_int_equal (td_ranks_get_finding (ranks, 0)->iteration, 2);
  assert_int_equal (td_ranks_get_finding (ranks, 1)->iteration, 5);
}

/* Iterations 1 to 3 of rank 0 were thinned. */
static void
part_where_nothing_is_left (PlantedStep *step)
{
  step->is_left_out = step->rank == 0 && step->iteration >= 1 && step->iteration <= 3;
  if (step->rank == 0 && step->iteration == 4)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l1/W")->sum[1] ^= 1;
}

static void
parameters__that_part_in_a_gap_are_told_with_what_was_compared_last (void **state)
{
  PlantedRun run = { .n_ranks = 2, .plant = part_where_nothing_is_left };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  const TdRanksFinding *f = planted_find (ranks, TD_RANKS_PARAMETERS);

  assert_non_null (f);
  assert_int_equal (f->after, 0);
  assert_contains (f->sentence, "by iteration 4 (before it, the tapes have 0 last)");
}

/* ---- persistents, states, numbers ---- */

static void
drift_persistents (PlantedStep *step)
{
  planted_sum (step, TD_TAPE_SUM_PERSISTENT, "bn/mean")->sum[0] += step->rank;
}

static void
persistents__that_drift_are_a_note (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (drift_persistents);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_PERSISTENTS, TD_RANKS_NOTE, 0);

  assert_string_equal (f->array, "bn/mean");
  assert_contains (f->advice, "td_comm_allreduce_persistent");
  ASSERT_RANKS (f, 0, 1, 2, 3);
}

/* The state differs, and the parameter by it. */
static void
load_state (PlantedStep *step)
{
  if (step->rank != 3 || step->iteration < 2)
    return;
  planted_sum (step, TD_TAPE_SUM_STATE, "l1/W/m")->sum[0] ^= 1;
  planted_sum (step, TD_TAPE_SUM_PARAMETER, "l1/W")->sum[0] ^= 1;
}

static void
state__is_the_cause_of_the_parameters_that_follow (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (load_state);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_STATE, TD_RANKS_ERROR, 2);

  ASSERT_RANKS (f, 3);
  assert_string_equal (f->array, "l1/W/m");
  assert_contains (f->sentence, "since iteration 2 parameter `l1/W`, too");
  assert_null (planted_find (ranks, TD_RANKS_PARAMETERS));
}

static void
change_rate (PlantedStep *step)
{
  const double rate = 0.01;

  if (step->rank != 1 || step->iteration < 4)
    return;
  memcpy (&planted_sum (step, TD_TAPE_SUM_NUMBER, "lr")->sum[0], &rate, sizeof rate);
  planted_sum (step, TD_TAPE_SUM_PARAMETER, "l1/W")->sum[0] ^= 1;
}

static void
numbers__are_told_with_both_values (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (change_rate);
  const TdRanksFinding *f = planted_assert_found (ranks, TD_RANKS_NUMBERS, TD_RANKS_ERROR, 4);

  ASSERT_RANKS (f, 1);
  assert_string_equal (f->array, "lr");
  assert_contains (f->sentence, "rank 1 has 0.01, the others 0.1");
}

/* Rank 1 leaves its second update out. */
static void
skip_update (PlantedStep *step)
{
  const double t = (double)step->iteration;

  if (step->rank != 1 || step->iteration < 1)
    return;
  memcpy (&planted_sum (step, TD_TAPE_SUM_NUMBER, "t")->sum[0], &t, sizeof t);
  if (step->iteration > 1)
    return;
  step->n_sums = 0;
  step->no_update = TRUE;
}

static void
updates__that_one_rank_leaves_out_are_counted (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (skip_update);
  const TdRanksFinding *counts = planted_find (ranks, TD_RANKS_UPDATES),
                       *numbers = planted_find (ranks, TD_RANKS_NUMBERS);

  assert_non_null (counts);
  assert_int_equal (counts->level, TD_RANKS_ERROR);
  ASSERT_RANKS (counts, 1);
  assert_contains (counts->sentence, "6 on rank 0, 5 on rank 1");
  assert_contains (counts->sentence, "first in iteration 1");
  assert_int_equal (counts->iteration, 1);
  assert_non_null (numbers);
  assert_string_equal (numbers->array, "t");
  assert_contains (numbers->sentence, "rank 1 has 2, the others 3");
}

/* The rank waits in its first call, and has come no further. */
static void
stand_in_first_call (PlantedStep *step)
{
  step->is_live = step->no_update = TRUE;
  step->n_sums = 0;
  step->n_waits = 1;
  step->waits[0].duration_ns = 0;
  step->waits[0].flags |= TD_TAPE_COLLECTIVE_WAITS;
}

/* Rank 1 makes none in iteration 2, and is an update behind: at the end the others wait. */
static gboolean evaluates; /* it trains nothing there */
static gboolean broken;    /* or a call in it failed */

static void
leave_one_out (PlantedStep *step)
{
  if (step->rank == 1 && step->iteration == 2)
    {
      step->no_update = TRUE;
      step->no_backward = evaluates;
      step->n_sums = 0;
      step->n_waits = broken ? 1 : 0;
      step->waits[0].call = td_tape_writer_string (step->w, "td_comm_barrier");
      step->waits[0].comm = 12;
      step->waits[0].size = 1;
      step->waits[0].flags = TD_TAPE_COLLECTIVE_FAILED;
    }
  for (guint i = 0; step->rank == 1 && step->iteration > 2 && i < step->n_waits; i++)
    step->waits[i].seq--;
  if (step->rank == 1 || step->iteration != 5)
    return;
  stand_in_first_call (step);
}

static void
updates__that_part_before_a_hang_are_told_with_their_first_iteration (void **state)
{
  g_autoptr (TdRanks) trained = NULL, evaluated = NULL, failed = NULL;
  const TdRanksFinding *f;

  evaluates = broken = FALSE;
  trained = planted_look_at (leave_one_out);
  f = planted_find (trained, TD_RANKS_UPDATES);
  assert_non_null (planted_find (trained, TD_RANKS_HANG));
  assert_non_null (f);
  assert_int_equal (f->level, TD_RANKS_ERROR);
  assert_int_equal (f->iteration, 2);
  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence,
                   "rank 1 made no update in iteration 2, where ranks 0, 2 and 3 came to one");
  evaluates = TRUE;
  evaluated = planted_look_at (leave_one_out);
  assert_non_null (planted_find (evaluated, TD_RANKS_HANG));
  assert_null (planted_find (evaluated, TD_RANKS_UPDATES));
  evaluates = FALSE;
  broken = TRUE;
  failed = planted_look_at (leave_one_out);
  assert_null (planted_find (failed, TD_RANKS_UPDATES));
}

static gint64 recorded = 3; /* the last iteration of rank 1 that is; -1: none is */

/* Rank 1 goes on, but its disk is full. */
static void
stop_recording (PlantedStep *step)
{
  TdTapeNotice notice = { .kind = TD_TAPE_NOTICE_RECORDING };

  step->is_left_out = step->rank == 1 && step->iteration > recorded;
  if (step->rank != 1 || step->iteration != MAX (recorded, 0))
    return;
  notice.text = td_tape_writer_string (
      step->w, "recording stopped, cannot write the tape: No space left on device");
  td_tape_writer_notice (step->w, &notice);
}

static void
updates__that_are_not_on_a_tape_are_not_counted (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (stop_recording);
  const TdRanksFinding *f = planted_find (ranks, TD_RANKS_UPDATES);

  assert_non_null (f);
  assert_int_equal (f->level, TD_RANKS_NOTE);
  assert_int_equal (f->iteration, 3);
  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence, "rank 1 is on its tape up to iteration 3 (recording stopped, "
                                "cannot write the tape: No space left on device)");
}

static void
updates__of_which_none_is_on_a_tape_are_said_to_be_none (void **state)
{
  g_autoptr (TdRanks) ranks = NULL;
  const TdRanksFinding *f;

  recorded = -1;
  ranks = planted_look_at (stop_recording);
  recorded = 3;
  f = planted_find (ranks, TD_RANKS_UPDATES);
  assert_non_null (f);
  assert_int_equal (f->iteration, -1);
  assert_contains (f->sentence, "no iteration of rank 1 is on its tape (recording stopped, ");
}

/* Rank 1 makes two in iteration 2: at the end it waits for the others. */
static void
make_one_more (PlantedStep *step)
{
  const guint n = step->n_waits;

  if (step->rank != 1)
    return;
  for (guint i = 0; step->iteration > 2 && i < n; i++)
    step->waits[i].seq++;
  if (step->iteration == 2)
    {
      step->updates_twice = TRUE;
      for (guint i = 0; i < n; i++)
        {
          step->waits[step->n_waits] = step->waits[i];
          step->waits[step->n_waits++].seq++;
        }
    }
  if (step->iteration != 5)
    return;
  stand_in_first_call (step);
}

/* The same calls, but no more operations of an update. */
static void
train_more (PlantedStep *step)
{
  make_one_more (step);
  step->updates_twice = FALSE;
}

static void
updates__that_are_more_before_a_hang_are_told_with_their_iteration (void **state)
{
  g_autoptr (TdRanks) more = planted_look_at (make_one_more),
                      other = planted_look_at (train_more);
  g_autofree char *text = NULL;
  const TdRanksFinding *f = planted_find (more, TD_RANKS_UPDATES);

  assert_non_null (planted_find (more, TD_RANKS_HANG));
  assert_non_null (f);
  assert_int_equal (f->level, TD_RANKS_ERROR);
  assert_int_equal (f->iteration, 2);
  ASSERT_RANKS (f, 1);
  assert_contains (f->sentence,
                   "rank 1 made more updates in iteration 2 than ranks 0, 2 and 3; from then "
                   "on they are an update apart");
  text = td_ranks_print (other, "text");
  assert_not_contains (text, "made more updates");
}

/* Gradients are averaged by td_comm_allreduce_grad: no optimizer tells its numbers, and
 * parameters are told of before their update. */
static void
part_by_hand (PlantedStep *step)
{
  guint n = 0;

  for (guint i = 0; i < step->n_sums; i++)
    if (step->sums[i].kind != TD_TAPE_SUM_NUMBER && step->sums[i].kind != TD_TAPE_SUM_STATE)
      step->sums[n++] = step->sums[i];
  step->n_sums = n;
  if (step->rank == 1 && step->iteration >= 4)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->sum[0] ^= 1;
}

static void
parameters__that_part_when_averaged_by_hand_are_told_with_their_update (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (part_by_hand);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_PARAMETERS, TD_RANKS_ERROR, 3);

  ASSERT_RANKS (f, 1);
  assert_int_equal (f->after, 2);
  assert_contains (f->sentence, "rank 1 parted in iteration 3: parameter `l2/W` differs after "
                                "the update");
  assert_contains (f->advice, "optimizers and hooks");
}

static const char *sharing; /* the call in the last step */

static void
drift_until_shared (PlantedStep *step)
{
  TdTapeCollective *w = &step->waits[0];

  planted_sum (step, TD_TAPE_SUM_PERSISTENT, "bn/mean")->sum[0] += step->rank;
  if (step->iteration == 5)
    w->call = td_tape_writer_string (step->w, sharing);
}

static void
persistents__that_all_are_given_before_the_end_are_no_note (void **state)
{
  static const char *const calls[] = { "td_comm_bcast_link", "td_comm_allreduce_persistent" };

  for (guint i = 0; i < G_N_ELEMENTS (calls); i++)
    {
      g_autoptr (TdRanks) ranks = NULL;

      sharing = calls[i];
      ranks = planted_look_at (drift_until_shared);
      assert_null (planted_find (ranks, TD_RANKS_PERSISTENTS));
    }
}

/* ---- gradients ---- */

static void
plant_nan (PlantedStep *step)
{
  if (step->iteration < 3)
    return;
  for (guint i = 0; i < step->n_sums; i++)
    if (step->sums[i].kind == TD_TAPE_SUM_MEAN)
      step->sums[i].sample = NAN;
  if (step->rank != 2)
    return;
  step->nan = step->iteration == 3;
  planted_sum (step, TD_TAPE_SUM_GRADIENT, "l2/W")->n_not_finite = 5;
  planted_sum (step, TD_TAPE_SUM_GRADIENT, "l2/W")->sample = NAN;
}

static void
nan__of_one_rank_is_told_with_what_made_it (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (plant_nan);
  const TdRanksFinding *f = planted_find (ranks, TD_RANKS_NOT_FINITE);

  assert_non_null (f);
  assert_int_equal (f->level, TD_RANKS_ERROR);
  assert_int_equal (f->iteration, 3);
  ASSERT_RANKS (f, 2);
  assert_string_equal (f->array, "l2/W");
  assert_string_equal (f->site, "model.c:88");
  assert_contains (f->sentence,
                   "rank 2 parted in iteration 3: the gradient of `l2/W` has 5 NaN");
  assert_contains (f->sentence, "first in exp at model.c:88");
}

/* A sum over all ranks, as of a multi-node batch normalization, hands rank 2's to all. */
static void
plant_nan_in_sum (PlantedStep *step)
{
  plant_nan (step);
  step->summed = TRUE;
  if (step->iteration < 3)
    return;
  step->received = step->iteration == 3;
  planted_sum (step, TD_TAPE_SUM_GRADIENT, "l1/W")->n_not_finite = 5;
  planted_sum (step, TD_TAPE_SUM_GRADIENT, "l2/W")->n_not_finite = 5;
}

static void
nan__that_a_sum_of_all_ranks_handed_on_is_of_the_rank_that_had_it_before (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (plant_nan_in_sum);
  const TdRanksFinding *f = planted_find (ranks, TD_RANKS_NOT_FINITE);

  assert_non_null (f);
  assert_int_equal (f->iteration, 3);
  ASSERT_RANKS (f, 2);
  assert_string_equal (f->site, "model.c:88");
  assert_contains (f->sentence, "rank 2 parted in iteration 3: the gradient of `l1/W` has 5");
  assert_contains (f->sentence,
                   "first in exp at model.c:88; the other ranks got it by a call of all");
}

static void
nan_without_statistics (PlantedStep *step)
{
  plant_nan (step);
  step->nan = FALSE;
}

static void
nan__without_statistics_says_so (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (nan_without_statistics);
  const TdRanksFinding *f = planted_find (ranks, TD_RANKS_NOT_FINITE);

  assert_non_null (f);
  assert_null (f->site);
  assert_contains (f->sentence, "record with --level stats");
}

/* An optimizer with loss scaling leaves such an update out: parameters stay finite. */
static gboolean scaled; /* by 1024 */

static void
overflow_scale (PlantedStep *step)
{
  TdTapeRankSum scale = *planted_sum (step, TD_TAPE_SUM_NUMBER, "lr");
  const double by = scaled ? 1024 : 1;

  memcpy (&scale.sum[0], &by, sizeof by);
  scale.path = td_tape_writer_string (step->w, "loss scale");
  step->sums[step->n_sums++] = scale;
  if (step->iteration == 1 && step->rank == 0)
    {
      planted_sum (step, TD_TAPE_SUM_GRADIENT, "l2/W")->n_not_finite = 5;
      planted_sum (step, TD_TAPE_SUM_GRADIENT, "l2/W")->sample = INFINITY;
    }
}

static void
nan__that_loss_scaling_leaves_out_is_a_note (void **state)
{
  g_autoptr (TdRanks) with = NULL, without = NULL;

  scaled = TRUE;
  with = planted_look_at (overflow_scale);
  planted_assert_found (with, TD_RANKS_NOT_FINITE, TD_RANKS_NOTE, 1);
  scaled = FALSE;
  without = planted_look_at (overflow_scale);
  planted_assert_found (without, TD_RANKS_NOT_FINITE, TD_RANKS_ERROR, 1);
}

static void
sum_instead_of_mean (PlantedStep *step)
{
  if (step->iteration >= 2)
    planted_sum (step, TD_TAPE_SUM_MEAN, "l1/W")->sample *= 4;
}

static void
mean__that_is_a_sum_is_told_so (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (sum_instead_of_mean);
  const TdRanksFinding *f
      = planted_assert_found (ranks, TD_RANKS_MEAN_CHECK, TD_RANKS_ERROR, 2);

  assert_string_equal (f->array, "l1/W");
  assert_contains (f->sentence, "it is their sum");
  assert_contains (f->sentence, "element 5 is ");
}

static void
mean_off_by_little (PlantedStep *step)
{
  if (step->iteration >= 2)
    planted_sum (step, TD_TAPE_SUM_MEAN, "l1/W")->sample *= 1.0001;
}

/* The same error is no error where 16 bits are all that was sent. */
static void
mean__is_held_to_the_precision_it_was_sent_in (void **state)
{
  PlantedRun half = { .half = TRUE, .plant = mean_off_by_little }, clean = { .half = TRUE };
  g_autoptr (TdRanks) a = planted_look_at (mean_off_by_little);
  g_autoptr (TdRanks) b = planted_look (&half);
  g_autoptr (TdRanks) c = planted_look (&clean);

  planted_assert_found (a, TD_RANKS_MEAN_CHECK, TD_RANKS_ERROR, 2);
  planted_assert_nothing (b);
  planted_assert_nothing (c);
}

static void
different_means (PlantedStep *step)
{
  if (step->rank == 0 && step->iteration >= 1)
    planted_sum (step, TD_TAPE_SUM_MEAN, "l2/W")->sum[0] ^= 1;
}

static void
mean__that_one_rank_got_differently_is_told (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (different_means);

  ASSERT_RANKS (planted_assert_found (ranks, TD_RANKS_MEANS, TD_RANKS_ERROR, 1), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (ranks__says_nothing_of_a_run_without_faults),
    td_test (ranks__says_nothing_of_300_iterations_without_faults),
    td_test (ranks__do_not_count_steps_that_are_not_whole_as_compared),
    td_test (parameters__are_told_with_rank_iteration_and_name),
    td_test (parameters__are_told_with_the_line_that_wrote_them),
    td_test (parameters__of_one_of_two_optimizers_are_told_once),
    td_test (parameters__that_were_never_equal_are_told_so),
    td_test (parameters__of_two_ranks_have_no_majority),
    td_test (parameters__that_part_again_are_told_again),
    td_test (parameters__that_part_in_a_gap_are_told_with_what_was_compared_last),
    td_test (persistents__that_drift_are_a_note),
    td_test (persistents__that_all_are_given_before_the_end_are_no_note),
    td_test (parameters__that_part_when_averaged_by_hand_are_told_with_their_update),
    td_test (state__is_the_cause_of_the_parameters_that_follow),
    td_test (numbers__are_told_with_both_values),
    td_test (updates__that_one_rank_leaves_out_are_counted),
    td_test (updates__that_part_before_a_hang_are_told_with_their_first_iteration),
    td_test (updates__that_are_more_before_a_hang_are_told_with_their_iteration),
    td_test (updates__that_are_not_on_a_tape_are_not_counted),
    td_test (updates__of_which_none_is_on_a_tape_are_said_to_be_none),
    td_test (nan__of_one_rank_is_told_with_what_made_it),
    td_test (nan__that_a_sum_of_all_ranks_handed_on_is_of_the_rank_that_had_it_before),
    td_test (nan__without_statistics_says_so),
    td_test (nan__that_loss_scaling_leaves_out_is_a_note),
    td_test (mean__that_is_a_sum_is_told_so),
    td_test (mean__is_held_to_the_precision_it_was_sent_in),
    td_test (mean__that_one_rank_got_differently_is_told),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
