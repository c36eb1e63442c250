/* Several recordings with one budget (`tapedeck run --runs-budget`): what they take together,
 * while they run.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  RUNS = 3,
  BUDGET = 64 << 20, /* three rings of 16 MiB, and not half of what the tapes would take */
};

static const char iterations[] = "20000";

static const char *
path_of (int run, const char *file)
{
  static char path[2][4200];
  static int which;

  which ^= 1;
  snprintf (path[which], sizeof path[which], "%s/%d/%s", td_test_tmp ("runs"), run, file);
  return path[which];
}

static int64_t
size_of (const char *path)
{
  struct stat st;

  return stat (path, &st) == 0 ? (int64_t)st.st_size : 0;
}

static int64_t
size_of_all (void)
{
  int64_t bytes = 0;

  for (int i = 0; i < RUNS; i++)
    bytes += size_of (path_of (i, "run.tdtape")) + size_of (path_of (i, "run.tdtape.ring"))
             + size_of (path_of (i, "stdout.log")) + size_of (path_of (i, "stderr.log"));
  return bytes;
}

static pid_t
start (int run, const char *level)
{
  char folder[4200];
  pid_t pid;

  snprintf (folder, sizeof folder, "%s", path_of (run, ""));
  assert_int_equal (mkdir (folder, 0700), 0);
  pid = fork ();
  if (pid == 0)
    {
      char budget[32];

      snprintf (budget, sizeof budget, "%d", (int)BUDGET);
      (void)!freopen (path_of (run, "stdout.log"), "w", stdout);
      (void)!freopen (path_of (run, "stderr.log"), "w", stderr);
      execl (td_test_program ("app/tapedeck"), "tapedeck", "run", "--quiet", "--level", level,
             "--tape-rate", "0", "--runs-budget", budget, "-o", path_of (run, "run.tdtape"),
             td_test_build ("tests/app/model-train"), iterations, (char *)NULL);
      _exit (127);
    }
  assert_true (pid > 0);
  return pid;
}

static void
run_at_once (const char *level)
{
  pid_t pids[RUNS];
  int64_t most = 0, now;
  int n_left = RUNS, status;

  assert_int_equal (mkdir (td_test_tmp ("runs"), 0700), 0);
  for (int i = 0; i < RUNS; i++)
    pids[i] = start (i, level);
  while (n_left > 0)
    {
      now = size_of_all ();
      most = now > most ? now : most;
      for (int i = 0; i < RUNS; i++)
        if (pids[i] > 0 && waitpid (pids[i], &status, WNOHANG) == pids[i])
          {
            assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
            pids[i] = 0;
            n_left--;
          }
      usleep (5000);
    }
  print_message ("%s: %ld of %d bytes\n", level, (long)most, (int)BUDGET);
  assert_in_range (most, BUDGET / 2, BUDGET);
}

/* Each tape is whole, has the newest iterations, and says why the old ones are gone. */
static void
assert_tapes (void)
{
  for (int i = 0; i < RUNS; i++)
    {
      TdTestChild c
          = TD_TEST_RUN (td_test_program ("app/tapedeck"), "check", path_of (i, "run.tdtape"));
      char all[64];

      snprintf (all, sizeof all, "of %s are whole, the newest from", iterations);
      assert_child_status (c, 0);
      assert_contains (c.out, ": whole, ");
      assert_contains (c.out, all);
      assert_contains (c.out, "all runs have together what their budget allows");
      td_test_child_clear (&c);
    }
}

static void
runs__at_once_keep_to_their_budget (void **state)
{
  (void)state;
  run_at_once ("graph");
  assert_tapes ();
}

static void
runs__at_once_keep_to_their_budget_with_values (void **state)
{
  (void)state;
  run_at_once ("values");
  assert_tapes ();
}

static void
run__with_hardly_a_budget_says_so (void **state)
{
  const char *tape = td_test_tmp ("alone/run.tdtape");
  TdTestChild c;

  (void)state;
  assert_int_equal (mkdir (td_test_tmp ("alone"), 0700), 0);
  c = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--runs-budget", "1M", "-o", tape,
                   td_test_build ("tests/app/model-train"), "20");
  assert_child_status (c, 0);
  assert_contains (c.err,
                   "the budget of all recordings is taken: this one keeps its first iteration");
  td_test_child_clear (&c);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (runs__at_once_keep_to_their_budget),
    td_test (runs__at_once_keep_to_their_budget_with_values),
    td_test (run__with_hardly_a_budget_says_so),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
