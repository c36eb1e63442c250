/* What the views of a step say: of lanes, of the ladder and of the matrix.
 *
 * SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>

#include "planted-ranks.h"
#include "ranks/td-ranks-views.h"
#include "td-test.h"

static TdRanksStep *
step_of (TdRanks *ranks, gint64 iteration)
{
  g_autoptr (GError) error = NULL;
  TdRanksStep *step = td_ranks_step_new (ranks, iteration, &error);

  if (!step)
    fail_msg ("%s", error->message);
  return step;
}

/* What is in a picture: its primitives, and behind them what its places say. */
static char *
dump (TdScene *scene)
{
  g_autoptr (GHashTable) said = g_hash_table_new (NULL, NULL);
  g_autofree char *primitives = td_scene_dump (scene);
  GString *out = g_string_new (primitives);

  for (double y = 1; y < td_scene_height (scene); y += 4)
    for (double x = 1; x < td_scene_width (scene); x += 2)
      {
        TdSceneHit hit;

        if (td_scene_hit (scene, x, y, 0, &hit) && hit.tooltip
            && g_hash_table_add (said, (gpointer)hit.tooltip))
          g_string_append_printf (out, "%s\n", hit.tooltip);
      }
  td_scene_unref (scene);
  return g_string_free (out, FALSE);
}

static const TdPanelView view = { .event = -1, .head = -1 };

static void
part (PlantedStep *step)
{
  if (step->rank == 2 && step->iteration >= 3)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->sum[0] ^= 1;
  if (step->rank == 1 && step->iteration == 3)
    planted_sum (step, TD_TAPE_SUM_GRADIENT, "l1/W")->flags = TD_TAPE_SUM_ABSENT;
}

static void
matrix__marks_the_odd_rank_and_what_is_not_there (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (part);
  g_autoptr (TdRanksStep) step = step_of (ranks, -1), before = step_of (ranks, 2);
  g_autofree char *text = td_ranks_matrix_print (step, "text"),
                  *json = td_ranks_matrix_print (step, "json"),
                  *well = td_ranks_matrix_print (before, "text"),
                  *picture = dump (td_ranks_matrix_scene (step, &view)),
                  *well_picture = dump (td_ranks_matrix_scene (before, &view));

  g_autofree char *csv = td_ranks_matrix_print (step, "csv");

  assert_int_equal (td_ranks_step_get_number (step), 3); /* of the first finding */
  assert_contains (csv, "kind,path,turn,odd,rank 0,rank 1,rank 2,rank 3\n");
  assert_contains (csv, "l2/W,0,1,A,A,B,A\n");
  assert_contains (csv, "l1/W,0,0,A,none,B,C\n");
  assert_contains (text, "! l2/W                             A A B! A\n");
  assert_contains (text, "  l1/W                             A none B C\n");
  assert_contains (json, "\"odd\"");
  assert_contains (picture, "l2/W on rank 2: differs");
  assert_contains (picture, "l2/W on rank 1: as most ranks have it");
  assert_contains (picture, "l1/W on rank 1: not there");
  assert_not_contains (well, "!  ");
  assert_contains (well, "  l2/W                             A A A A\n");
  assert_not_contains (well_picture, "differs");
}

static void
wait_for_rank_2 (PlantedStep *step)
{
  if (step->iteration != 5)
    return;
  step->is_left_out = step->rank == 2;
  step->is_live = TRUE;
  step->n_sums = 0;
  step->n_waits = 1;
  step->waits[0].duration_ns = 0;
  step->waits[0].flags |= TD_TAPE_COLLECTIVE_WAITS;
}

static TdRanks *
look_at_hang (void)
{
  PlantedRun run = { .plant = wait_for_rank_2 };

  for (guint r = 0; r < 4; r++)
    run.end[r] = (TdTapeEnd){ .status = -1, .signal = r == 2 ? SIGKILL : SIGTERM };
  return planted_look (&run);
}

static void
ladder__has_a_dashed_rung_for_the_rank_that_is_missing (void **state)
{
  g_autoptr (TdRanks) ranks = look_at_hang ();
  g_autoptr (TdRanksStep) step = step_of (ranks, -1), well = step_of (ranks, 2);
  g_autofree char *text = td_ranks_ladder_print (step, "text"),
                  *json = td_ranks_ladder_print (step, "json"),
                  *picture = dump (td_ranks_ladder_scene (step, &view)),
                  *of_step = td_ranks_ladder_print (well, "text"),
                  *well_picture = dump (td_ranks_ladder_scene (well, &view));

  g_autofree char *csv = td_ranks_ladder_print (step, "csv");

  assert_contains (csv, "number,call,rank,state,bytes,ns,waited_ns\n");
  assert_contains (csv, ",2,missing,,,\n");
  assert_contains (csv, ",3,waits,");
  assert_contains (text, "0:waits 1:waits 2:MISSING 3:waits");
  assert_contains (json, "\"state\": \"missing\"");
  assert_contains (picture, "rank 2 never came");
  assert_contains (picture, "rank 0 waits in td_opt_update at model.c:30");
  assert_contains (picture, "dashed");
  assert_string_equal (
      of_step, "       3 td_opt_update            0:left 1:left 2:left 3:left  sum 128 B; "
               "came 0:+0 ns 1:+1.00 µs 2:+2.00 µs 3:+3.00 µs\n");
  assert_not_contains (well_picture, "dashed");
}

/* Rank 1 is a step behind: it comes to the call in which all fail an iteration later. */
static void
come_late (PlantedStep *step)
{
  if (step->iteration == 4 && step->rank != 1)
    {
      step->waits[1] = step->waits[0];
      step->waits[1].seq++;
      step->waits[1].flags |= TD_TAPE_COLLECTIVE_FAILED;
      step->n_waits = 2;
    }
  if (step->iteration != 5)
    return;
  step->is_left_out = step->rank != 1;
  step->n_waits = 1;
  step->waits[0].flags |= TD_TAPE_COLLECTIVE_FAILED;
}

static void
ladder__has_who_came_in_another_iteration (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (come_late);
  g_autoptr (TdRanksStep) step = step_of (ranks, 4);
  g_autofree char *text = td_ranks_ladder_print (step, "text");

  assert_contains (text, "       6 td_opt_update            0:left 1:left 2:left 3:left");
  assert_not_contains (text, "MISSING");
}

static void
make_no_calls (PlantedStep *step)
{
  step->n_waits = 0;
}

static void
ladder__without_calls_says_so (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (make_no_calls);
  g_autoptr (TdRanksStep) step = step_of (ranks, 2);
  g_autofree char *text = td_ranks_ladder_print (step, "text");

  assert_string_equal (text, "No calls in iteration 2: ranks did nothing together in it.\n");
}

static void
lanes__are_on_one_clock (void **state)
{
  PlantedRun run = { .start_ns = { 0, 7000000 }, .late_ns = { 0, 200000 }, .n_ranks = 2 };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  g_autoptr (TdRanksStep) step = step_of (ranks, 4);
  g_autofree char *text = td_ranks_lanes_print (step, "text"),
                  *out = td_ranks_lanes_print (step, "json"),
                  *picture = dump (td_ranks_lanes_scene (step, &view));

  g_autofree char *csv = td_ranks_lanes_print (step, "csv");

  assert_contains (csv, "rank,kind,start_ns,ns,call,site,bytes\n");
  assert_contains (csv, "\n0,");
  assert_contains (csv, "\n1,");
  /* Meetings of step 4 begin at 54 ms of the run, rank 1's 201 us later; it waits 4.3 us. */
  assert_contains (text, "waits for others 205 µs");
  assert_contains (text, "waits for others 4.30 µs");
  assert_contains (text, "transfers 9.00 µs");
  assert_contains (out, "\"start_ns\": 54000000");
  assert_contains (out, "\"start_ns\": 54201000");
  assert_contains (picture, "rank 0: waits for others in td_opt_update at model.c:30, 205 µs");
}

static void
lanes__of_a_rank_that_is_not_there_say_so (void **state)
{
  g_autoptr (TdRanks) ranks = look_at_hang ();
  g_autoptr (TdRanksStep) step = step_of (ranks, 5);
  g_autofree char *text = td_ranks_lanes_print (step, "text"),
                  *picture = dump (td_ranks_lanes_scene (step, &view));

  assert_contains (text, "rank 2: not on its tape");
  assert_contains (picture, "and never left");
}

/* A call without a meeting: sent, and waited for 2 us later. */
static void
send_and_wait (PlantedStep *step)
{
  TdTapeCollective *sent = &step->waits[0], *wait = &step->waits[1];

  sent->wait = TD_TAPE_WAIT_SUM;
  sent->bytes = 128;
  sent->dtype = TD_TAPE_F32 + 1;
  *wait = *sent;
  sent->flags |= TD_TAPE_COLLECTIVE_BEHIND;
  wait->bytes = 0;
  wait->start_ns += 2000;
  wait->duration_ns -= 2000;
}

static void
lanes__part_what_is_waited_from_what_is_brought (void **state)
{
  PlantedRun run
      = { .plant = send_and_wait, .late_ns = { 0, 200000 }, .n_ranks = 2, .n_steps = 6 };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  g_autoptr (TdRanksStep) step = step_of (ranks, 4);
  g_autofree char *text = td_ranks_lanes_print (step, "text"),
                  *ladder = td_ranks_ladder_print (step, "text");

  /* Rank 0 sends at 54 ms, rank 1 201 us later; all has come 4 us and 4.3 us after that. */
  assert_contains (text, "waits for others 199 µs, transfers 4.00 µs, transfers behind other "
                         "work 205 µs");
  assert_contains (text, "waits for others 0 ns, transfers 2.30 µs, transfers behind other "
                         "work 4.30 µs");
  assert_contains (ladder, "0:left 1:left  sum float32 128 B; came 0:+0 ns 1:+201 µs");
  /* What it takes by itself, 2.3 us, is no waiting. */
  assert_int_equal (td_ranks_get (ranks, 0)->waited_ns, 6 * (203000 - 2300));
  assert_int_equal (td_ranks_get (ranks, 1)->waited_ns, 0);
  assert_int_equal (td_ranks_get (ranks, 1)->kept_ns, 6 * (203000 - 2300));
  assert_int_equal (td_ranks_count_faults (ranks), 0);
}

/* Rank 1 gives to all: rank 0 leaves as soon as it has, the others when all have come. */
static void
give_from_rank_1 (PlantedStep *step)
{
  step->n_waits = 1;
  if (step->rank == 0)
    step->waits[0].duration_ns = 210000;
  step->waits[0].wait = TD_TAPE_WAIT_BCAST;
  step->waits[0].bytes = 128;
  step->waits[0].peer = 1;
}

static void
lanes__wait_for_the_root_that_gives (void **state)
{
  PlantedRun run = { .plant = give_from_rank_1,
                     .start_ns = { 7000000, 0, 0 },
                     .late_ns = { 0, 200000, 500000 },
                     .n_ranks = 3 };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  g_autoptr (TdRanksStep) step = step_of (ranks, 4);
  g_autofree char *text = td_ranks_lanes_print (step, "text");

  /* Until 54.201 ms, whenever rank 2 comes at 54.502; that one has nothing to wait for. */
  assert_contains (text, "waits for others 201 µs");
  assert_contains (text, "waits for others 301 µs");
  assert_int_equal (td_ranks_get (ranks, 0)->waited_ns, 6 * 201000);
  assert_int_equal (td_ranks_get (ranks, 1)->waited_ns, 6 * 301000);
  assert_int_equal (td_ranks_get (ranks, 2)->waited_ns, 0);
  assert_int_equal (td_ranks_get (ranks, 1)->kept_ns, 6 * 201000);
  assert_int_equal (td_ranks_get (ranks, 2)->kept_ns, 6 * 301000);
}

/* A root that has given waits for rank 2, and comes late to the sum, where the others wait for
 * it: for rank 2, that is. Two broadcasts at once are one wait. */
static void
give_and_sum (PlantedStep *step)
{
  TdTapeCollective *w = step->waits;
  const guint64 late = step->rank == 2 ? 400000 : 0;

  w[0].seq = 3 * (guint64)step->iteration + 1;
  w[0].wait = TD_TAPE_WAIT_BCAST;
  w[0].bytes = 128;
  w[0].peer = 0;
  w[0].duration_ns = step->rank == 0 ? 410000 : 10000;
  w[0].start_ns += late;
  w[2] = w[1];
  w[1] = w[0];
  w[1].seq++;
  w[2].seq = w[1].seq + 1;
  w[2].start_ns = w[0].start_ns + w[0].duration_ns + 1000;
  w[2].duration_ns = step->rank == 0 || step->rank == 2 ? 2000 : 402000 - 1000 * step->rank;
  step->n_waits = 3;
}

static void
waiting__that_a_root_does_is_for_who_comes_late_to_it (void **state)
{
  PlantedRun run = { .plant = give_and_sum, .n_ranks = 4, .n_steps = 1600 };
  g_autoptr (TdRanks) ranks = planted_look (&run);
  const TdRanksFinding *f = planted_find (ranks, TD_RANKS_STRAGGLER);

  assert_non_null (f);
  ASSERT_RANKS (f, 2);
  assert_true (td_ranks_get (ranks, 2)->waited_ns < 1600 * 10000);
  for (guint i = 0; i < 4; i++)
    {
      const TdRank *rank = td_ranks_get (ranks, i);

      assert_true (i == 2
                   || (rank->waited_ns > 1600 * 390000 && rank->waited_ns < 1600 * 410000));
      assert_true (i == 2 ? rank->kept_ns > 1600u * 3 * 390000 : rank->kept_ns < 1600 * 10000);
    }
}

static void
step__that_no_tape_has_is_an_error (void **state)
{
  g_autoptr (TdRanks) ranks = planted_look_at (NULL);
  g_autoptr (GError) error = NULL;

  assert_null (td_ranks_step_new (ranks, 77, &error));
  assert_contains (error->message, "iteration 77 is whole on no tape");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (matrix__marks_the_odd_rank_and_what_is_not_there),
    td_test (ladder__has_a_dashed_rung_for_the_rank_that_is_missing),
    td_test (ladder__has_who_came_in_another_iteration),
    td_test (ladder__without_calls_says_so),
    td_test (lanes__are_on_one_clock),
    td_test (lanes__part_what_is_waited_from_what_is_brought),
    td_test (lanes__wait_for_the_root_that_gives),
    td_test (waiting__that_a_root_does_is_for_who_comes_late_to_it),
    td_test (lanes__of_a_rank_that_is_not_there_say_so),
    td_test (step__that_no_tape_has_is_an_error),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
