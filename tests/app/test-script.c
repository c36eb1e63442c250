/* `tapedeck run train.py`, without Python: a program in its place writes its tape itself.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *
tapedeck (void)
{
  return td_test_program ("app/tapedeck");
}

/* Run a script, which goes as `way` and its argument say, to a tape in the test's folder. */
static TdTestChild
run_script (const char *tape, const char *way, const char *argument)
{
  char python[4200];
  const char *script = td_test_tmp ("train.py");
  const char *const env[] = { python, NULL };
  const char *const argv[]
      = { tapedeck (), "run", "-o", tape, "--break", "nan", script, way, argument, NULL };

  snprintf (python, sizeof python, "TAPEDECK_PYTHON=%s",
            td_test_build ("tests/app/model-script"));
  td_test_write_file (script, "", 0);
  return td_test_run (argv, NULL, env);
}

/* One that lives until somebody ends it. */
static pid_t
start_script (const char *tape, const char *socket, const char *way)
{
  const char *script = td_test_tmp ("train.py");
  pid_t pid;

  td_test_write_file (script, "", 0);
  pid = fork ();
  if (pid == 0)
    {
      setenv ("TAPEDECK_PYTHON", td_test_build ("tests/app/model-script"), 1);
      execl (tapedeck (), "tapedeck", "run", "-o", tape, "--control", socket, script, way, "",
             (char *)NULL);
      _exit (127);
    }
  assert_true (pid > 0);
  return pid;
}

static void
assert_exit (const char *tape, const char *exit)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);

  assert_child_status (child, 0);
  assert_contains (child.out, exit);
  td_test_child_clear (&child);
}

static bool
has_iterations (const char *tape, const char *n)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "info", tape);
  const bool has = strstr (child.out, n) != NULL;

  td_test_child_clear (&child);
  return has;
}

static bool
has_one (void *tape)
{
  return has_iterations (tape, "iterations       1\n");
}

static bool
has_two (void *tape)
{
  return has_iterations (tape, "iterations       2\n");
}

static void
script__that_could_not_say_its_end_has_it_on_its_tape (void **state)
{
  static const struct
  {
    const char *way, *argument;
    int status;
    const char *exit, *info;
  } rows[] = {
    { "by-signal", "9", 128 + 9, "\"exit\":{\"status\":-1,\"signal\":9,\"by\":\"model\"",
      "signal 9\n" },
    { "by-signal", "15", 128 + 15, "\"exit\":{\"status\":-1,\"signal\":15,\"by\":\"model\"",
      "signal 15\n" },
    { "without-end", "7", 7, "\"exit\":{\"status\":7,\"signal\":0,\"by\":\"model\"",
      "status 7\n" },
    { "with-end", "0", 0, "\"exit\":{\"status\":0,\"signal\":0,\"by\":\"model\"",
      "status 0\n" },
  };
  const char *tape = td_test_tmp ("t.tdtape");

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      TdTestChild child = run_script (tape, rows[i].way, rows[i].argument);

      assert_child_status (child, rows[i].status);
      td_test_child_clear (&child);
      assert_exit (tape, rows[i].exit);
      child = TD_TEST_RUN (tapedeck (), "info", tape);
      assert_contains (child.out, rows[i].info);
      td_test_child_clear (&child);
      child = TD_TEST_RUN (tapedeck (), "check", tape);
      assert_child_status (child, 0);
      assert_not_contains (child.out, "was cut");
      td_test_child_clear (&child);
      unlink (tape);
    }
}

static void
script__that_tapedeck_ends_has_that_on_its_tape (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *address = td_test_tmp ("socket");
  const pid_t pid = start_script (tape, address, "wait");
  char answer[16] = "";
  int fd, status;

  (void)state;
  td_test_wait ("an iteration", has_one, (void *)(uintptr_t)tape);
  fd = td_test_connect (address);
  assert_int_equal (write (fd, "stop\n", 5), 5);
  assert_int_equal (read (fd, answer, 11), 11);
  assert_string_equal (answer, "{\"ok\":true}");
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (WEXITSTATUS (status), 128 + SIGTERM);
  close (fd);
  assert_exit (tape, "\"exit\":{\"status\":-1,\"signal\":15,\"by\":\"tapedeck\"");
}

static void
script__may_take_its_time_over_sigterm (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  const pid_t pid = start_script (tape, td_test_tmp ("socket"), "saving-first");
  int status;

  (void)state;
  td_test_wait ("its handler", has_two, (void *)(uintptr_t)tape);
  kill (pid, SIGTERM);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 0);
  assert_exit (tape, "\"exit\":{\"status\":0,\"signal\":0,\"by\":\"model\"");
}

/* Its number may be another program's by now: nobody is ended, nor said to have been. */
static void
script__that_has_ended_is_not_ended_again (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  TdTestChild child;

  (void)state;
  child = run_script (tape, "unseen", "7");
  assert_contains (child.err, "stopped at train.py:1: relu\n");
  assert_child_status (child, 3);
  td_test_child_clear (&child);
  assert_exit (tape, "\"exit\":{\"status\":7,\"signal\":0,\"by\":\"model\"");
}

/* It did not get to write there: whatever the tape lacks is not its own. */
static void
script__that_is_refused_leaves_an_older_tape_alone (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  char option[4200], *before, *after;
  size_t n_before, n_after;
  TdTestChild child;

  (void)state;
  snprintf (option, sizeof option, "--tape=%s", tape);
  child = TD_TEST_RUN (td_test_build ("tests/app/model-script"), option, "--", "train.py",
                       "by-signal", "9");
  assert_int_equal (child.signal, 9);
  td_test_child_clear (&child);
  before = td_test_read_file (tape, &n_before);
  child = run_script (tape, "by-signal", "9");
  assert_child_status (child, 2);
  assert_string_equal (child.err, "tapedeck: exists; will not write over it\n");
  td_test_child_clear (&child);
  after = td_test_read_file (tape, &n_after);
  assert_int_equal (n_before, n_after);
  assert_memory_equal (before, after, n_before);
  free (before);
  free (after);
}

static void
script__may_end_with_2_which_is_said (void **state)
{
  TdTestChild child = run_script (td_test_tmp ("t.tdtape"), "with-end", "2");

  (void)state;
  assert_child_status (child, 2);
  assert_string_equal (child.err, "tapedeck: model exited with 2\n");
  td_test_child_clear (&child);
}

/* The package has to take it for a name, not for an option: it is one argument. */
static void
tape__may_have_a_name_that_begins_with_a_dash (void **state)
{
  TdTestChild child;

  (void)state;
  td_test_write_file (td_test_tmp ("train.py"), "", 0);
  child
      = td_test_shell ("cd '%s' && TAPEDECK_PYTHON='%s' '%s' run -o -f train.py with-end 0 && "
                       "test -s ./-f",
                       td_test_tmp (""), td_test_build ("tests/app/model-script"), tapedeck ());
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
python__that_is_missing_is_named (void **state)
{
  const char *script = td_test_tmp ("train.py");
  const char *const argv[] = { tapedeck (), "run", script, NULL };
  const char *const env[] = { "TAPEDECK_PYTHON=no-such-python", NULL };
  TdTestChild child;

  (void)state;
  td_test_write_file (script, "", 0);
  child = td_test_run (argv, NULL, env);
  assert_child_status (child, 127);
  assert_string_equal (child.err, "tapedeck: no-such-python: No such file or directory\n");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (script__that_could_not_say_its_end_has_it_on_its_tape),
    td_test (script__that_tapedeck_ends_has_that_on_its_tape),
    td_test (script__may_take_its_time_over_sigterm),
    td_test (script__that_has_ended_is_not_ended_again),
    td_test (script__that_is_refused_leaves_an_older_tape_alone),
    td_test (script__may_end_with_2_which_is_said),
    td_test (tape__may_have_a_name_that_begins_with_a_dash),
    td_test (python__that_is_missing_is_named),
  };

  return cmocka_run_group_tests_name ("script", tests, NULL, NULL);
}
