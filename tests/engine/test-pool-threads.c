/* Threads that are kept awake: regions are the same ones, and once let go they sleep.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compute/cpu/cpu.h"

enum
{
  N = 1000
};

static atomic_int hits[N];

static void
count_piece (int64_t begin, int64_t end, int worker, void *context)
{
  assert_in_range (worker, 0, td__cpu_threads () - 1);
  for (int64_t i = begin; i < end; i++)
    atomic_fetch_add (&hits[i], 1);
}

static void
expect_hits (int n)
{
  for (int i = 0; i < N; i++)
    assert_int_equal (atomic_exchange (&hits[i], 0), n);
}

static int
clear (void **state)
{
  for (int i = 0; i < N; i++)
    atomic_store (&hits[i], 0);
  return 0;
}

/* Short regions, back to back, awake and not, on ever other numbers of threads. */
static void
awake__threads_do_every_piece_once (void **state)
{
  enum
  {
    N_ROUNDS = 3000
  };

  for (int round = 0; round < N_ROUNDS; round++)
    {
      td__cpu_set_threads (2 + round / 100 % 3);
      if (round % 3 > 0)
        td__cpu_stay_awake (true);
      for (int k = 0; k < 3; k++)
        td__cpu_parallel (N, 1 + round % 300, count_piece, NULL);
      if (round % 3 > 0)
        td__cpu_stay_awake (false);
    }
  expect_hits (3 * N_ROUNDS);
}

static bool
are_not_awake (void *unused)
{
  return !td__cpu_are_awake ();
}

/* They spin a while, and may have to wait for a processor to do so. */
static void
wait_for_sleep (void)
{
  td_test_wait ("sleep", are_not_awake, NULL);
}

/* 'S' of a thread that sleeps, 'R' of one that runs or would if there were a processor. */
static char
state_of (const char *thread)
{
  char path[300], *text, state;

  snprintf (path, sizeof path, "/proc/self/task/%s/stat", thread);
  text = td_test_read_file (path, NULL);
  state = strrchr (text, ')')[2];
  free (text);
  return state;
}

/* Ten times in a row: one that spins may be caught as it waits for a lock. */
static bool
others_sleep (void *data)
{
  int *n = data;
  DIR *threads = opendir ("/proc/self/task");
  struct dirent *entry;

  assert_non_null (threads);
  ++*n;
  while ((entry = readdir (threads)) != NULL)
    if (entry->d_name[0] != '.' && atoi (entry->d_name) != getpid ()
        && state_of (entry->d_name) != 'S')
      *n = 0;
  closedir (threads);
  return *n == 10;
}

static void
awake__is_said_while_anybody_asks (void **state)
{
  td__cpu_set_threads (2);
  wait_for_sleep (); /* of the test before */
  td__cpu_stay_awake (true);
  td__cpu_stay_awake (true);
  td__cpu_stay_awake (false);
  assert_true (td__cpu_are_awake ());
  td__cpu_stay_awake (false);
  wait_for_sleep ();
  td__cpu_set_threads (1);
  td__cpu_stay_awake (true);
  assert_false (td__cpu_are_awake ()); /* there are no others */
  td__cpu_stay_awake (false);
}

/* All of the process's threads, once the regions are over. */
static void
awake__threads_sleep_once_they_are_let_go (void **state)
{
  int n = 0;

  td__cpu_set_threads (3);
  td__cpu_stay_awake (true);
  td__cpu_parallel (N, 10, count_piece, NULL);
  td__cpu_stay_awake (false);
  wait_for_sleep ();
  td_test_wait ("threads that sleep", others_sleep, &n);
  td__cpu_parallel (N, 10, count_piece, NULL);
  expect_hits (2);
}

static void
awake__holds_in_a_forked_child (void **state)
{
  pid_t pid;
  int status = 0;

  td__cpu_set_threads (3);
  td__cpu_stay_awake (true);
  td__cpu_parallel (N, 10, count_piece, NULL);
  pid = fork ();
  if (pid == 0)
    {
      td__cpu_parallel (N, 10, count_piece, NULL);
      td__cpu_stay_awake (false);
      td__cpu_parallel (N, 10, count_piece, NULL);
      for (int i = 0; i < N; i++)
        if (hits[i] != 3)
          _exit (1);
      _exit (0);
    }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  td__cpu_stay_awake (false);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup (awake__threads_do_every_piece_once, clear),
    cmocka_unit_test_setup (awake__is_said_while_anybody_asks, clear),
    cmocka_unit_test_setup (awake__threads_sleep_once_they_are_let_go, clear),
    cmocka_unit_test_setup (awake__holds_in_a_forked_child, clear),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
