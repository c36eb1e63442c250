/* `tapedeck run`: one recording on one tape, and what is left of it when somebody deletes or
 * cuts its files or the disk is full.  The model never notices.
 *
 * SPDX-License-Identifier: MIT */
#include "recorded-run.h"

#include "td-test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  ROUNDS = 20,
  AT_ONCE = 4
};

/* ------------------------------------------------------------------------ one at a time */

typedef struct
{
  pid_t pid;
  int status; /* -1: it runs */
} Run;

/* All but one have ended; that one waits at the gate, with the tape. */
static bool
one_is_left (void *data)
{
  Run *run = data;
  int n = 0;

  for (int k = 0; k < AT_ONCE; k++)
    {
      int status;

      if (run[k].status < 0 && waitpid (run[k].pid, &status, WNOHANG) == run[k].pid)
        run[k].status = WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
      n += run[k].status < 0;
    }
  return n <= 1;
}

static void
runs__at_once_on_one_tape_have_one_winner_whose_tape_is_whole (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out[AT_ONCE];
  const char *const argv[] = { run_tapedeck (), "run", "-f", "-o",        tape,
                               run_model (),    "40",  "0",  run_gate (), NULL };

  (void)state;
  for (int k = 0; k < AT_ONCE; k++)
    {
      char name[16];

      snprintf (name, sizeof name, "out%d", k);
      out[k] = td_test_tmp (name);
    }
  for (int round = 0; round < ROUNDS; round++)
    {
      Run run[AT_ONCE];
      int n_won = 0;

      if (round % 2 == 0)
        unlink (tape); /* else each of them would write over the tape */
      unlink (run_gate ());
      for (int k = 0; k < AT_ONCE; k++)
        run[k] = (Run){ run_start (argv, out[k]), -1 };
      td_test_wait ("the end of all runs but one", one_is_left, run);
      run_open_gate ();
      for (int k = 0; k < AT_ONCE; k++)
        if (run[k].status < 0)
          {
            assert_int_equal (run_status (run[k].pid), 0);
            n_won++;
          }
        else
          {
            assert_int_equal (run[k].status, 2);
            run_assert_file_says (out[k], "t.tdtape: another run is recording to it");
          }
      assert_int_equal (n_won, 1);
      run_assert_check (tape, 0, ": whole");
      assert_int_equal (run_iterations (tape), 40);
      assert_int_not_equal (access (td_test_tmp ("t.tdtape.ring"), F_OK), 0);
    }
}

static void
run__has_its_tape_alone_under_another_name_and_without_its_ring (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *name = td_test_tmp ("u.tdtape");
  pid_t pid = run_gated (tape, td_test_tmp ("out"));
  TdTestChild child;

  (void)state;
  run_wait_for_half (tape);
  assert_int_equal (symlink (tape, name), 0);
  child = TD_TEST_RUN (run_tapedeck (), "run", "-f", "-o", name, run_model (), "5");
  assert_child_status (child, 2);
  assert_contains (child.err, "u.tdtape: another run is recording to it");
  td_test_child_clear (&child);
  assert_int_equal (unlink (td_test_tmp ("t.tdtape.ring")), 0);
  child = TD_TEST_RUN (run_tapedeck (), "run", "-f", "-o", tape, run_model (), "5");
  assert_child_status (child, 2);
  assert_contains (child.err, "t.tdtape: another run is recording to it");
  td_test_child_clear (&child);
  run_open_gate ();
  assert_int_equal (run_status (pid), 0);
  run_assert_check (tape, 0, ": whole");
  assert_int_equal (run_iterations (tape), 200);
}

/* Two names of a tape that is not there yet: each of the runs has a ring of its own, and only
 * the tape's lock tells one of the other. */
static void
runs__at_once_by_two_names_of_a_tape_have_one_winner_whose_tape_is_whole (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"),
             *name[] = { td_test_tmp ("l1.tdtape"), td_test_tmp ("l2.tdtape") },
             *out[] = { td_test_tmp ("out0"), td_test_tmp ("out1") };

  (void)state;
  for (int k = 0; k < 2; k++)
    assert_int_equal (symlink ("t.tdtape", name[k]), 0);
  for (int round = 0; round < ROUNDS / 2; round++)
    {
      pid_t pid[2];
      int n_won = 0;

      unlink (tape);
      for (int k = 0; k < 2; k++)
        {
          const char *const argv[] = { run_tapedeck (), "run", "-f",   "-o", name[k],
                                       run_model (),    "100", "3000", NULL };

          pid[k] = run_start (argv, out[k]);
        }
      for (int k = 0; k < 2; k++)
        {
          int status = run_status (pid[k]);

          n_won += status == 0;
          if (status == 0)
            continue;
          assert_int_equal (status, 2);
          run_assert_file_says (out[k], ".tdtape: another run is recording to it");
        }
      assert_int_equal (n_won, 1);
      run_assert_check (tape, 0, ": whole");
      assert_int_equal (run_iterations (tape), 100);
    }
}

/* The model of the dead run still lives and has the old ring mapped. */
static void
lock__of_a_killed_run_keeps_nobody_out_and_its_model_unharmed (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out");
  pid_t pid = run_gated (tape, out), victim;
  TdTestChild child;

  (void)state;
  run_wait_for_half (tape);
  victim = run_child (pid);
  kill (pid, SIGKILL);
  assert_int_equal (run_status (pid), 128 + SIGKILL);
  assert_int_equal (kill (victim, 0), 0);
  child = TD_TEST_RUN (run_tapedeck (), "run", "-f", "-o", tape, run_model (), "30");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  run_assert_check (tape, 0, ": whole");
  assert_int_equal (run_iterations (tape), 30);
  run_open_gate ();
  assert_int_equal (run_status (victim), 0);
  run_assert_file_says (out, run_plain_result ());
}

static void
run__that_is_refused_leaves_the_ring_of_a_dead_one (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *ring = td_test_tmp ("t.tdtape.ring");
  TdTestChild child;

  (void)state;
  td_test_write_file (tape, "a tape", 6);
  td_test_write_file (ring, "what is left", 12);
  child = TD_TEST_RUN (run_tapedeck (), "run", "-o", tape, run_model (), "5");
  assert_child_status (child, 2);
  assert_contains (child.err, "exists already");
  td_test_child_clear (&child);
  run_assert_file_says (ring, "what is left");
  run_assert_file_says (tape, "a tape");
}

/* ------------------------------------------------------------------------ harm */

/* Between two looks of the supervisor, which stands still. */
static void
cut_and_regrow (pid_t supervisor, const char *path, off_t size)
{
  struct stat st;

  kill (supervisor, SIGSTOP);
  assert_int_equal (stat (path, &st), 0);
  assert_int_equal (truncate (path, size), 0);
  assert_int_equal (truncate (path, st.st_size + (1 << 20)), 0);
  kill (supervisor, SIGCONT);
}

typedef struct
{
  const char *file; /* "t.tdtape" or "t.tdtape.ring" */
  long size;        /* cut to; -1: deleted */
  const char *says;
  bool grows; /* again, at once */
} Harm;

static void
do_harm (const Harm *h, const char *plain)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out");
  pid_t pid;

  unlink (tape);
  pid = run_gated (tape, out);
  run_wait_for_half (tape);
  if (h->size < 0)
    assert_int_equal (unlink (td_test_tmp (h->file)), 0);
  else if (h->grows)
    cut_and_regrow (pid, td_test_tmp (h->file), h->size);
  else
    assert_int_equal (truncate (td_test_tmp (h->file), h->size), 0);
  run_open_gate ();
  assert_int_equal (run_status (pid), 1);
  run_assert_file_says (out, plain);
  run_assert_file_says (out, h->says);
  run_assert_file_says (out, "the program runs on unrecorded");
  if (access (tape, F_OK) != 0)
    return;
  run_assert_check (tape, 0, ": whole");
  run_assert_check (tape, 0, h->says);
  run_assert_info (tape, h->says);
  run_assert_info (tape, "status 0");
}

static void
tape__that_is_cut_or_deleted_while_recorded_is_what_was_left_and_says_so (void **state)
{
  static const Harm harms[] = {
    { "t.tdtape", -1, "the tape was deleted while it was recorded" },
    { "t.tdtape", 0, "the tape was cut to 0 bytes while it was recorded" },
    { "t.tdtape", 1500, "the tape was cut to 1500 bytes while it was recorded" },
    { "t.tdtape", 70001, "the tape was cut to 70001 bytes while it was recorded" },
    { "t.tdtape", 100000, "the tape was cut to 100000 bytes while it was recorded" },
  };
  const char *plain = run_plain_result ();

  (void)state;
  for (unsigned i = 0; i < sizeof harms / sizeof *harms; i++)
    do_harm (&harms[i], plain);
}

static void
tape__that_is_cut_and_grows_again_at_once_is_what_was_left_and_says_so (void **state)
{
  static const long sizes[] = { 0, 600, 1500, 5000, 70001, 100000 };
  const char *plain = run_plain_result ();

  (void)state;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
    {
      const Harm harm = { "t.tdtape", sizes[i],
                          "somebody else wrote to the tape while it was recorded", true };

      do_harm (&harm, plain);
    }
}

static bool
says_cut (void *out)
{
  char *text = td_test_read_file (out, NULL);
  const bool says = strstr (text, "the tape was cut to 0 bytes") != NULL;

  free (text);
  return says;
}

/* As cp does: the same file with another's bytes.  They are not ours to change, whether the
 * supervisor saw the file empty in between or not. */
static void
tape__that_is_replaced_in_place_is_left_alone (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *other = td_test_tmp ("other.tdtape"),
             *out = td_test_tmp ("out"), *plain = run_plain_result ();
  TdTestChild child = TD_TEST_RUN (run_tapedeck (), "run", "-o", other, "--level", "values",
                                   run_model (), "300");
  size_t n, n_now;
  char *bytes, *now;

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  bytes = td_test_read_file (other, &n);
  for (int is_seen = 0; is_seen < 2; is_seen++)
    {
      pid_t pid;

      unlink (tape);
      pid = run_gated (tape, out);
      run_wait_for_half (tape);
      if (!is_seen)
        kill (pid, SIGSTOP);
      assert_int_equal (truncate (tape, 0), 0);
      if (is_seen)
        td_test_wait ("the supervisor's look", says_cut, (void *)(uintptr_t)out);
      td_test_write_file (tape, bytes, n);
      run_open_gate ();
      kill (pid, SIGCONT);
      assert_int_equal (run_status (pid), 1);
      run_assert_file_says (out, plain);
      run_assert_file_says (out, is_seen
                                     ? "the tape was cut to 0 bytes while it was recorded"
                                     : "somebody else wrote to the tape while it was recorded");
      now = td_test_read_file (tape, &n_now);
      assert_int_equal (n_now, n);
      assert_memory_equal (now, bytes, n);
      free (now);
    }
  free (bytes);
}

static void
ring__that_is_cut_kills_neither_the_model_nor_what_was_recorded (void **state)
{
  static const Harm harms[] = {
    { "t.tdtape.ring", 0, "the ring was cut short" },
    { "t.tdtape.ring", 2048, "the ring was cut short" },
    { "t.tdtape.ring", 4096, "the ring was cut short" },
    { "t.tdtape.ring", 8 << 20, "the ring was cut short" },
  };
  const char *plain = run_plain_result ();

  (void)state;
  for (unsigned i = 0; i < sizeof harms / sizeof *harms; i++)
    {
      do_harm (&harms[i], plain);
      assert_true (run_iterations (td_test_tmp ("t.tdtape")) > 0);
    }
}

static void
disk__that_is_full_leaves_a_whole_tape_that_says_so (void **state)
{
  char command[2048];
  const char *folder = td_test_tmp ("small"), *copy = td_test_tmp ("t.tdtape");
  TdTestChild child;

  (void)state;
  assert_int_equal (mkdir (folder, 0700), 0);
  /* 20 MB: the ring has its 16 MB, the tape what is left. */
  snprintf (command, sizeof command,
            "mount -t tmpfs -o size=20M none %s || exit 77; %s run -o %s/t --level values %s "
            "4000; s=$?; cp %s/t %s; exit $s",
            folder, run_tapedeck (), folder, run_model (), folder, copy);
  child = TD_TEST_RUN ("unshare", "-rm", "/bin/sh", "-c", command);
  if (strstr (child.out, "weights ") == NULL
      && (child.status == 77 || strstr (child.err, "unshare") != NULL))
    {
      print_message ("no file system of its own can be mounted here\n");
      td_test_child_clear (&child);
      skip ();
    }
  assert_child_status (child, 1);
  assert_contains (child.out, "weights ");
  assert_contains (child.err, "No space left on device; the program runs on unrecorded");
  td_test_child_clear (&child);
  run_assert_check (copy, 0, ": whole");
  run_assert_check (copy, 0, "No space left on device");
  run_assert_info (copy, "No space left on device");
  run_assert_info (copy, "exit             status 0");
}

/* ------------------------------------------------------------------------ no supervisor */

static bool
has_begun (void *tape)
{
  struct stat st;

  return stat (tape, &st) == 0 && st.st_size >= 4096;
}

/* The model records itself. */
static pid_t
start_alone (const char *tape, const char *out)
{
  char variable[4200];
  const char *const argv[]
      = { "/usr/bin/env", variable, "TAPEDECK_LEVEL=values", run_model (), RUN_ITERATIONS,
          "3000",         NULL };
  pid_t pid;

  snprintf (variable, sizeof variable, "TAPEDECK_TAPE=%s", tape);
  unlink (tape);
  pid = run_start (argv, out);
  td_test_wait ("the tape's beginning", has_begun, (void *)(uintptr_t)tape);
  return pid;
}

static void
program__that_records_itself_says_that_its_tape_was_harmed (void **state)
{
  static const Harm harms[] = {
    { "t.tdtape", -1, "the tape was deleted while it was recorded" },
    { "t.tdtape", 0, "the tape was cut to 0 bytes while it was recorded" },
    { "t.tdtape", 1500, "the tape was cut to 1500 bytes while it was recorded" },
    { "t.tdtape", 0, "somebody else wrote to the tape while it was recorded", true },
  };
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out"),
             *plain = run_plain_result ();

  (void)state;
  for (unsigned i = 0; i < sizeof harms / sizeof *harms; i++)
    {
      pid_t pid = start_alone (tape, out);

      if (harms[i].size < 0)
        unlink (tape);
      else if (harms[i].grows)
        cut_and_regrow (pid, tape, harms[i].size);
      else
        assert_int_equal (truncate (tape, harms[i].size), 0);
      assert_int_equal (run_status (pid), 1);
      run_assert_file_says (out, plain);
      run_assert_file_says (out, harms[i].says);
    }
}

static void
program__that_records_itself_has_its_tape_alone (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out");
  pid_t pid = start_alone (tape, out);
  TdTestChild child = TD_TEST_RUN (run_tapedeck (), "run", "-f", "-o", tape, run_model (), "5");

  (void)state;
  assert_child_status (child, 2);
  assert_contains (child.err, "t.tdtape: another run is recording to it");
  td_test_child_clear (&child);
  assert_int_equal (run_status (pid), 0);
  run_assert_check (tape, 0, ": whole");
  assert_int_equal (run_iterations (tape), 200);
}

static void
program__that_records_itself_lives_on_beyond_the_limit_of_file_sizes (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  char command[9000];
  TdTestChild child;

  (void)state;
  snprintf (command, sizeof command,
            "ulimit -f 64; TAPEDECK_TAPE='%s' TAPEDECK_LEVEL=values exec %s %s", tape,
            run_model (), RUN_ITERATIONS);
  child = TD_TEST_RUN ("/bin/sh", "-c", command);
  assert_child_status (child, 1);
  assert_string_equal (child.out, run_plain_result ());
  assert_contains (child.err,
                   "t.tdtape: recording stopped, cannot write the tape: File too large");
  td_test_child_clear (&child);
  run_assert_check (tape, 0, ": whole");
  run_assert_info (tape, "File too large");
  run_assert_info (tape, "exit             status 1");
}

/* What is there stays; the program ends as it would, but not as if it had been recorded. */
static void
program__that_can_not_record_itself_runs_on_and_says_so_by_its_status (void **state)
{
  static const char kept[] = "not a tape";
  const char *file = td_test_tmp ("there"), *paths[] = { file, td_test_tmp ("none/t.tdtape") };
  char command[9000];

  (void)state;
  td_test_write_file (file, kept, sizeof kept - 1);
  for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++)
    {
      TdTestChild child;

      snprintf (command, sizeof command, "TAPEDECK_TAPE='%s' exec %s %s", paths[i],
                run_model (), RUN_ITERATIONS);
      child = TD_TEST_RUN ("/bin/sh", "-c", command);
      assert_child_status (child, 1);
      assert_string_equal (child.out, run_plain_result ());
      assert_contains (child.err, "; the program runs unrecorded");
      td_test_child_clear (&child);
    }
  char *text = td_test_read_file (file, NULL);
  assert_string_equal (text, kept);
  free (text);
}

/* ------------------------------------------------------------------------ little memory */

static void
run__ends_with_little_address_space_and_loads_no_mathematics (void **state)
{
  char path[64], *maps;
  const char *tape = td_test_tmp ("t.tdtape");
  pid_t pid;
  TdTestChild child;

  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip (); /* its shadow alone is larger */
#endif
  child = td_test_shell (
      "OPENBLAS_NUM_THREADS=64; export OPENBLAS_NUM_THREADS; ulimit -v 2000000; exec "
      "%s run -o %s %s 20",
      run_tapedeck (), tape, run_model ());
  assert_child_status (child, 0);
  assert_contains (child.out, "weights ");
  td_test_child_clear (&child);
  assert_int_equal (run_iterations (tape), 20);

  unlink (tape);
  pid = run_gated (tape, td_test_tmp ("out"));
  run_child (pid);
  snprintf (path, sizeof path, "/proc/%d/maps", pid);
  maps = td_test_read_file (path, NULL);
  assert_contains (maps, "libtdtape");
  assert_not_contains (maps, "blas");
  assert_not_contains (maps, "dnnl");
  free (maps);
  run_open_gate ();
  assert_int_equal (run_status (pid), 0);
}

/* Too little for the buffers of OpenBLAS' own threads; enough for a small model. */
static void
model__ends_where_openblas_has_no_address_space_for_its_threads (void **state)
{
  static const int kilobytes[] = { 130000, 150000, 180000 };
  const char *plain = run_plain_result ();

  (void)state;
#ifdef __SANITIZE_ADDRESS__
  skip (); /* its shadow alone is larger */
#endif
  for (unsigned i = 0; i < sizeof kilobytes / sizeof *kilobytes; i++)
    {
      char command[9000];
      TdTestChild child;

      snprintf (command, sizeof command,
                "unset OPENBLAS_NUM_THREADS; ulimit -v %d; exec timeout -k 1 30 %s %s",
                kilobytes[i], run_model (), RUN_ITERATIONS);
      child = TD_TEST_RUN ("/bin/sh", "-c", command);
      assert_child_status (child, 0);
      assert_string_equal (child.out, plain);
      td_test_child_clear (&child);
    }
}

/* ------------------------------------------------------------------------ order */

/* The number of the event that says that the file was made; 0: none yet. */
static int
made (const char *events, ssize_t n, const char *name)
{
  const struct inotify_event *e;
  int k = 1;

  for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof *e + e->len), k++)
    {
      e = (const struct inotify_event *)(const void *)(events + at);
      if (e->len > 0 && strcmp (e->name, name) == 0)
        return k;
    }
  return 0;
}

/* Who sees the tape can connect: the window does so at once. */
static void
socket__is_there_before_the_tape (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *name = td_test_tmp ("control");
  const char *const argv[]
      = { run_tapedeck (), "run",          "-o", tape,        "--control", name,
          run_model (),    RUN_ITERATIONS, "0",  run_gate (), NULL };
  int watch = inotify_init1 (IN_CLOEXEC);
  _Alignas(struct inotify_event) char events[4096];
  char folder[512];
  ssize_t n;
  pid_t pid;

  (void)state;
  snprintf (folder, sizeof folder, "%s", tape);
  *strrchr (folder, '/') = '\0';
  assert_true (watch >= 0 && inotify_add_watch (watch, folder, IN_CREATE) >= 0);
  pid = run_start (argv, td_test_tmp ("out"));
  run_wait_for_half (tape);
  kill (pid, SIGTERM);
  run_status (pid);
  n = read (watch, events, sizeof events);
  close (watch);
  assert_int_not_equal (made (events, n, "t.tdtape"), 0);
  assert_int_not_equal (made (events, n, "control"), 0);
  assert_true (made (events, n, "control") < made (events, n, "t.tdtape"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (runs__at_once_on_one_tape_have_one_winner_whose_tape_is_whole),
    td_test (run__has_its_tape_alone_under_another_name_and_without_its_ring),
    td_test (runs__at_once_by_two_names_of_a_tape_have_one_winner_whose_tape_is_whole),
    td_test (lock__of_a_killed_run_keeps_nobody_out_and_its_model_unharmed),
    td_test (run__that_is_refused_leaves_the_ring_of_a_dead_one),
    td_test (tape__that_is_cut_or_deleted_while_recorded_is_what_was_left_and_says_so),
    td_test (tape__that_is_cut_and_grows_again_at_once_is_what_was_left_and_says_so),
    td_test (tape__that_is_replaced_in_place_is_left_alone),
    td_test (ring__that_is_cut_kills_neither_the_model_nor_what_was_recorded),
    td_test (disk__that_is_full_leaves_a_whole_tape_that_says_so),
    td_test (program__that_records_itself_says_that_its_tape_was_harmed),
    td_test (program__that_records_itself_has_its_tape_alone),
    td_test (program__that_records_itself_lives_on_beyond_the_limit_of_file_sizes),
    td_test (program__that_can_not_record_itself_runs_on_and_says_so_by_its_status),
    td_test (run__ends_with_little_address_space_and_loads_no_mathematics),
    td_test (model__ends_where_openblas_has_no_address_space_for_its_threads),
    td_test (socket__is_there_before_the_tape),
  };

  prctl (PR_SET_CHILD_SUBREAPER, 1); /* models of killed runs become our children */
  return cmocka_run_group_tests (tests, NULL, NULL);
}
