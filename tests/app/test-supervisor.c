/* A supervisor that is killed: the model runs on, says so once, and the tape tells.
 *
 * SPDX-License-Identifier: MIT */
#include "recorded-run.h"

#include "record/recorder.h"
#include "td-test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* What the model says of its recording, and whether the tape is as it says. */
static void
assert_says_once (const char *out, const char *tape)
{
  char *text = td_test_read_file (out, NULL), says[4400];
  const char *at = strstr (text, "tapedeck: the recorder is gone and recording has stopped: ");

  assert_non_null (at);
  assert_null (strstr (at + 20, "the recorder is gone"));
  if (run_iterations (tape) > 0)
    snprintf (says, sizeof says, "%s ends with iteration %ld; what follows", tape,
              (long)run_iterations (tape) - 1);
  else
    snprintf (says, sizeof says, "%s has no whole iteration; what follows", tape);
  assert_contains (at, says);
  free (text);
}

static void
supervisor__that_is_killed_leaves_the_model_and_a_tape_that_tells (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out");
  const char *whole = td_test_tmp ("whole.tdtape");
  pid_t pid = run_gated (tape, out), victim;
  TdTestChild repaired;

  (void)state;
  run_wait_for_half (tape);
  run_assert_check (tape, 0, "it is being recorded");
  victim = run_child (pid);
  kill (pid, SIGKILL);
  assert_int_equal (run_status (pid), 128 + SIGKILL);
  run_open_gate ();
  assert_int_equal (run_status (victim), 0);
  run_assert_file_says (out, run_plain_result ());
  assert_says_once (out, tape);
  run_assert_check (tape, 0,
                    "the recording was cut: nobody wrote how the program ended; a ring "
                    "beside it holds more");
  run_assert_info (tape, "nobody saw it: the recorder is gone, the recording was cut");
  repaired = TD_TEST_RUN (run_tapedeck (), "check", tape, "--repair", whole);
  assert_child_status (repaired, 0);
  td_test_child_clear (&repaired);
  assert_int_equal (run_iterations (whole), atoi (RUN_ITERATIONS));
}

/* Has a model had to wait for room in its ring? It counts that at this place of the file. */
static bool
has_waited (void *tape)
{
  char ring[4200];
  uint64_t n_stalls = 0;
  int fd;

  snprintf (ring, sizeof ring, "%s.ring", (const char *)tape);
  fd = open (ring, O_RDONLY);
  if (fd >= 0)
    {
      (void)!pread (fd, &n_stalls, sizeof n_stalls, 72);
      close (fd);
    }
  return n_stalls > 0;
}

static bool
has_one (void *tape)
{
  return access (tape, F_OK) == 0 && run_iterations (tape) > 0;
}

/* The same while the ring is full: the model has to wait. */
static void
supervisor__that_is_killed_while_the_model_waits_is_told_of (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out");
  const char *const argv[]
      = { run_tapedeck (), "run", "-o", tape, run_model (), "200000", NULL };
  pid_t pid = run_start (argv, out), victim;

  (void)state;
  td_test_wait ("the first iteration", has_one, (void *)(uintptr_t)tape);
  victim = run_child (pid);
  kill (pid, SIGSTOP);
  td_test_wait ("a full ring", has_waited, (void *)(uintptr_t)tape);
  kill (pid, SIGKILL);
  assert_int_equal (run_status (pid), 128 + SIGKILL);
  assert_int_equal (run_status (victim), 0);
  assert_says_once (out, tape);
}

/* It says what is on the tape a batch at a time, and may be killed before. */
static void
supervisor__that_has_written_more_than_it_said_is_told_of (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out");
  const char *const argv[] = { run_tapedeck (), "run", "-o", tape, run_model (), "30", NULL };
  const TdRingOptions options = { .tape = tape };
  char error[160];
  TdRing *ring = td_ring_new (NULL, &options, error, sizeof error);
  pid_t pid;

  (void)state;
  assert_non_null (ring);
  assert_int_equal (run_status (run_start (argv, out)), 0);
  assert_int_equal (run_iterations (tape), 30);
  atomic_store (&ring->shared->n_taped, 3);
  pid = fork ();
  if (pid == 0)
    {
      (void)!freopen (out, "w", stderr);
      td__recorder_say_lost (ring);
      _exit (0);
    }
  assert_int_equal (run_status (pid), 0);
  assert_says_once (out, tape);
  td_ring_free (ring);
}

/* Whoever reads what it says may have gone as well: that ends no program. */
static void
supervisor__that_is_killed_with_its_terminal_changes_no_status (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out");
  pid_t pid, victim;
  int ends[2];

  (void)state;
  unlink (run_gate ());
  assert_int_equal (pipe (ends), 0);
  pid = fork ();
  if (pid == 0)
    {
      (void)!freopen (out, "w", stdout);
      dup2 (ends[1], 2);
      close (ends[0]);
      close (ends[1]);
      execl (run_tapedeck (), "tapedeck", "run", "-o", tape, run_model (), RUN_ITERATIONS, "0",
             run_gate (), (char *)NULL);
      _exit (127);
    }
  close (ends[1]);
  run_wait_for_half (tape);
  victim = run_child (pid);
  close (ends[0]);
  kill (pid, SIGKILL);
  assert_int_equal (run_status (pid), 128 + SIGKILL);
  run_open_gate ();
  assert_int_equal (run_status (victim), 0);
  run_assert_file_says (out, run_plain_result ());
}

/* A program that another one has started without what the environment names has files of its
 * own under these numbers. */
static void
model__that_has_lost_its_supervisor_keeps_its_own_files (void **state)
{
  TdTestChild child
      = td_test_shell ("cd '%s' && TAPEDECK_RING=3 TAPEDECK_CONTROL=4 '%s' files 3>a 4>b",
                       td_test_tmp (""), td_test_build ("tests/app/model-trouble"));

  (void)state;
  assert_child_status (child, 0);
  assert_string_equal (child.err,
                       "tapedeck: the recorder's ring: not a ring: Invalid argument; "
                       "the program runs unrecorded\n");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (supervisor__that_is_killed_leaves_the_model_and_a_tape_that_tells),
    td_test (supervisor__that_is_killed_while_the_model_waits_is_told_of),
    td_test (supervisor__that_has_written_more_than_it_said_is_told_of),
    td_test (supervisor__that_is_killed_with_its_terminal_changes_no_status),
    td_test (model__that_has_lost_its_supervisor_keeps_its_own_files),
  };

  prctl (PR_SET_CHILD_SUBREAPER, 1); /* a model whose supervisor is killed becomes our child */
  return cmocka_run_group_tests (tests, NULL, NULL);
}
