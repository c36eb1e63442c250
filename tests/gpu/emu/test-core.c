/* The emulator itself: what it runs right, and what it stops at.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broken.h"
#include "td-test.h"

/* Run a kernel in a child and give back what it said before it died. */
static void
run_to_death (const char *name, unsigned grid, unsigned block, const char *said)
{
  const unsigned blocks[3] = { grid, 1, 1 };
  char text[1024] = "";
  int pipes[2], status;
  ssize_t n, total = 0;
  pid_t child;

  assert_int_equal (pipe (pipes), 0);
  child = fork ();
  assert_true (child >= 0);
  if (child == 0)
    {
      BrokenParams p = { rig_guarded (64 * sizeof (int), true), 64 };

      dup2 (pipes[1], STDERR_FILENO);
      rig_launcher ();
      td_emu_run (td_emu_find (name), blocks, block, &p);
      _exit (0);
    }
  close (pipes[1]);
  while ((n = read (pipes[0], text + total, sizeof text - 1 - (size_t)total)) > 0)
    total += n;
  close (pipes[0]);
  assert_int_equal (waitpid (child, &status, 0), child);
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
    fail_msg ("%s ran to its end", name);
  assert_contains (text, said);
}

static void
emulator__stops_at_a_barrier_that_some_threads_leave_out (void **state)
{
  run_to_death ("broken_half_a_barrier", 1, 64, "broken_half_a_barrier: divergence: thread");
  run_to_death ("broken_half_a_barrier", 1, 64, "has ended");
}

static void
emulator__stops_at_two_different_barriers (void **state)
{
  run_to_death ("broken_two_barriers", 1, 64, "waits at the barrier of broken.cpp:");
}

static void
emulator__stops_at_a_shuffle_without_its_partner (void **state)
{
  run_to_death ("broken_shuffle", 1, 64, "broken_shuffle: divergence: thread");
}

static void
emulator__stops_at_an_index_beyond_shared_memory (void **state)
{
  run_to_death ("broken_shared", 2, 64, "shared memory: room[40] of 40, block (0, 0, 0)");
}

static void
emulator__stops_at_an_address_outside_every_array (void **state)
{
  run_to_death ("broken_global", 2, 64, "broken_global: outside every array, block (1, 0, 0)");
}

static void
emulator__stops_where_a_barrier_is_missing (void **state)
{
  run_to_death ("broken_race", 1, 64, "broken_race: race: room[");
  run_to_death ("broken_race", 1, 64, "by this thread, read by thread 0, and no barrier");
  run_to_death ("broken_late_race", 1, 64,
                "by this thread, written by thread 0, and no barrier");
  run_to_death ("broken_warps", 1, 64, "is read by this thread, written by thread");
}

/* Neighbours are read before or after they are written. */
static void
emulator__shows_what_has_no_order_by_changing_it (void **state)
{
  const unsigned grid[3] = { 1, 1, 1 };
  int *a = rig_guarded (64 * sizeof (int), true), *b = rig_guarded (64 * sizeof (int), true);

  td_emu_order (TD_EMU_FORWARD);
  td_emu_run (td_emu_find ("broken_order"), grid, 64, &(BrokenParams){ a, 64 });
  td_emu_order (TD_EMU_BACKWARD);
  td_emu_run (td_emu_find ("broken_order"), grid, 64, &(BrokenParams){ b, 64 });
  td_emu_order (TD_EMU_FORWARD);
  assert_memory_not_equal (a, b, 64 * sizeof (int));
  rig_release (a, 64 * sizeof (int));
  rig_release (b, 64 * sizeof (int));
}

static void
emulator__runs_barriers_and_shuffles_in_every_order (void **state)
{
  const unsigned grid[3] = { 3, 1, 1 };

  for (int order = 0; order < TD_EMU_ORDERS; order++)
    {
      int *out = rig_guarded (192 * sizeof (int), true);

      td_emu_order ((TdEmuOrder)order);
      td_emu_run (td_emu_find ("sound_sums"), grid, 64, &(BrokenParams){ out, 192 });
      for (int i = 0; i < 192; i++)
        assert_int_equal (out[i], 64 * 63 / 2 + (63 - i % 64) + 32);
      rig_release (out, 192 * sizeof (int));
    }
  td_emu_order (TD_EMU_FORWARD);
}

static void
emulator__fills_shared_memory_with_nan_before_a_block (void **state)
{
  const unsigned grid[3] = { 2, 1, 1 };
  int *out = rig_guarded (64 * sizeof (int), true);

  td_emu_run (td_emu_find ("broken_unset"), grid, 32, &(BrokenParams){ out, 64 });
  for (int i = 0; i < 64; i++)
    assert_int_equal (out[i], 1);
  rig_release (out, 64 * sizeof (int));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (emulator__stops_at_a_barrier_that_some_threads_leave_out),
    cmocka_unit_test (emulator__stops_at_two_different_barriers),
    cmocka_unit_test (emulator__stops_at_a_shuffle_without_its_partner),
    cmocka_unit_test (emulator__stops_at_an_index_beyond_shared_memory),
    cmocka_unit_test (emulator__stops_at_an_address_outside_every_array),
    cmocka_unit_test (emulator__stops_where_a_barrier_is_missing),
    cmocka_unit_test (emulator__shows_what_has_no_order_by_changing_it),
    cmocka_unit_test (emulator__runs_barriers_and_shuffles_in_every_order),
    cmocka_unit_test (emulator__fills_shared_memory_with_nan_before_a_block),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
