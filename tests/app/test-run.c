/* `tapedeck run`: what becomes of a model's status, output and recording, however it ends.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *
tapedeck (void)
{
  return td_test_program ("app/tapedeck");
}

static const char *
model (const char *name)
{
  char path[256];

  snprintf (path, sizeof path, "tests/app/model-%s", name);
  return td_test_build (path);
}

static void
run__passes_the_models_status_and_output_through (void **state)
{
  static const struct
  {
    const char *how;
    int status;
    const char *says;
  } cases[] = {
    { "", 0, "" },
    { "exit3", 3, "tapedeck: model exited with 3" },
    { "exit2", 2, "tapedeck: model exited with 2" },
    { "segv", 128 + SIGSEGV, "ended by signal 11" },
    { "abort", 128 + SIGABRT, "ended by signal 6" },
    { "error", 1, "tapedeck: add:" },
    { "oom", 1, "out of memory" },
  };

  (void)state;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", td_test_tmp ("t.tdtape"),
                                       model ("trouble"), cases[i].how);

      assert_child_status (child, cases[i].status);
      assert_contains (child.err, cases[i].says);
      td_test_child_clear (&child);
    }
}

static void
run__puts_on_the_tape_how_the_model_ended (void **state)
{
  static const struct
  {
    const char *how, *exit;
  } cases[] = {
    { "exit3", "\"exit\":{\"status\":3,\"signal\":0,\"by\":\"model\"}" },
    { "segv", "\"signal\":11,\"by\":\"model\"" },
    { "abort", "\"signal\":6,\"by\":\"model\"" },
  };

  (void)state;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      const char *tape = td_test_tmp ("t.tdtape");
      TdTestChild child
          = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", tape, model ("trouble"), cases[i].how);

      td_test_child_clear (&child);
      child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
      assert_child_status (child, 0);
      assert_contains (child.out, cases[i].exit);
      assert_contains (child.out, "\"last_op\":{\"op\":\"");
      assert_contains (child.out, "trouble.c:");
      td_test_child_clear (&child);
      child = TD_TEST_RUN (tapedeck (), "check", tape);
      assert_child_status (child, 0);
      td_test_child_clear (&child);
    }
}

static void
run__tells_the_first_error_of_a_model_that_does_not_compile (void **state)
{
  const char *source = td_test_tmp ("bad.c");
  static const char text[] = "#include <tapedeck.h>\nint main (void)\n{\n  return hh;\n}\n";

  (void)state;
  td_test_write_file (source, text, sizeof text - 1);
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", source);
  assert_child_status (child, 2);
  assert_contains (child.err, "bad.c:4:10: error:");
  assert_contains (child.err, "does not compile: ");
  td_test_child_clear (&child);
}

static void
run__says_so_when_there_is_no_compiler (void **state)
{
  const char *source = td_test_tmp ("good.c");
  static const char text[]
      = "#include <tapedeck.h>\nint main (void)\n{\n  return td_finish ();\n}\n";
  const char *const env[] = { "CC=no-such-compiler", NULL };
  const char *const argv[] = { tapedeck (), "run", source, NULL };

  (void)state;
  td_test_write_file (source, text, sizeof text - 1);
  TdTestChild child = td_test_run (argv, NULL, env);
  assert_child_status (child, 2);
  assert_contains (child.err, "no C compiler: no-such-compiler");
  td_test_child_clear (&child);
}

static void
run__never_overwrites_a_tape_unasked (void **state)
{
  const char *tape = td_test_tmp ("mine.tdtape");

  (void)state;
  td_test_write_file (tape, "precious", 8);
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model ("trouble"));
  assert_child_status (child, 2);
  assert_contains (child.err, "mine.tdtape");
  td_test_child_clear (&child);
  char *text = td_test_read_file (tape, NULL);
  assert_string_equal (text, "precious");
  free (text);
}

/* "line == trouble.c:26": where the model calls exp, wherever that is now. */
static void
line_of_exp (char *out, size_t size)
{
  char *text = td_test_read_file (td_test_source ("tests/models/trouble.c"), NULL);
  const char *at = strstr (text, "td_exp");
  int line = 1;

  assert_non_null (at);
  for (const char *s = text; s < at; s++)
    line += *s == '\n';
  snprintf (out, size, "line == trouble.c:%d", line);
  free (text);
}

static void
run__stops_at_breakpoints_and_says_where_and_why (void **state)
{
  char line[64];
  static const struct
  {
    const char *expr, *how, *says;
  } cases[] = {
    { "nan", "nan", "log made NaN (4 of its numbers)" },
    { "op == exp && iteration >= 2", "spin", "before exp" },
    { "error", "error", "add:" },
    { "line == LINE", "spin", "before" },
    { "bytes > 300", "spin", "breakpoint 1: bytes > 300" },
    { "norm(grad) > 14", "spin", "norm of 14.7" },
    { "phase == backward", "spin", "before" },
  };

  (void)state;
  line_of_exp (line, sizeof line);
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      const char *expr = strstr (cases[i].expr, "LINE") != NULL ? line : cases[i].expr;
      TdTestChild child
          = TD_TEST_RUN (tapedeck (), "run", "--break", expr, model ("trouble"), cases[i].how);

      assert_child_status (child, 3);
      assert_contains (child.err, "tapedeck: stopped at ");
      assert_contains (child.err, "trouble.c:");
      assert_contains (child.err, cases[i].says);
      td_test_child_clear (&child);
    }
}

static void
run__refuses_wrong_usage_with_one_line_and_advice (void **state)
{
  static const char *const cases[][3] = {
    { "--level", "loud", "graph, stats or values expected" },
    { "--break", "op > 3", "op wants == or !=" },
    { "--break", "colour == red", "expected at \"colour == red\"" },
    { "--iterations", "0", "a number above 0 expected" },
    { "--nonsense", "1", "no such option" },
    { "--mem-limit", "12Q", "a number of bytes expected" },
  };

  (void)state;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child
          = TD_TEST_RUN (tapedeck (), "run", cases[i][0], cases[i][1], model ("trouble"));

      assert_child_status (child, 2);
      assert_contains (child.err, cases[i][2]);
      td_test_child_clear (&child);
    }
}

static void
weights_line (TdTestChild *child, char *out, size_t size)
{
  const char *line = strstr (child->out, "weights ");

  assert_child_status (*child, 0);
  assert_non_null (line);
  snprintf (out, size, "%.24s", line);
  td_test_child_clear (child);
}

static void
weights__are_bitwise_equal_recorded_or_not (void **state)
{
  char plain[32], recorded[32];
  TdTestChild child = TD_TEST_RUN (model ("train"), "100");
  static const char *const levels[] = { "graph", "stats", "values" };

  (void)state;
  weights_line (&child, plain, sizeof plain);
  for (int i = 0; i < 3; i++)
    {
      child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", td_test_tmp ("t.tdtape"), "--level",
                           levels[i], model ("train"), "100");
      weights_line (&child, recorded, sizeof recorded);
      assert_string_equal (recorded, plain);
    }
}

static void
iterations__option_ends_the_run_cleanly (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, "--iterations", "7",
                                   model ("train"), "100000");

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
  assert_contains (child.out, "\"iterations\":7,");
  td_test_child_clear (&child);
}

/* Start a program without waiting for it. */
static pid_t
start (const char *const *argv)
{
  pid_t pid = fork ();

  if (pid == 0)
    {
      (void)!freopen ("/dev/null", "w", stdout);
      (void)!freopen ("/dev/null", "w", stderr);
      execv (argv[0], (char *const *)(uintptr_t)argv);
      _exit (127);
    }
  assert_true (pid > 0);
  return pid;
}

/* The model is the supervisor's only child. */
static pid_t
child_of (pid_t pid)
{
  char path[64], *text;
  pid_t child = 0;

  snprintf (path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
  text = td_test_read_file (path, NULL);
  child = (pid_t)strtol (text, NULL, 10);
  free (text);
  return child;
}

static void
nap (long us)
{
  struct timespec t = { us / 1000000, us % 1000000 * 1000 };

  nanosleep (&t, NULL);
}

static long
file_size (const char *path)
{
  FILE *f = fopen (path, "rb");
  long n = -1;

  if (f != NULL)
    {
      fseek (f, 0, SEEK_END);
      n = ftell (f);
      fclose (f);
    }
  return n;
}

/* Wait until the tape holds iterations; fails after ten seconds. */
static void
wait_for_iterations (const char *tape)
{
  for (int i = 0; i < 1000; i++)
    {
      if (file_size (tape) > 4096)
        {
          TdTestChild child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
          const char *at = strstr (child.out, "\"iterations\":");
          long n = at != NULL ? strtol (at + 13, NULL, 10) : 0;

          td_test_child_clear (&child);
          if (n > 0)
            return;
        }
      nap (10000);
    }
  fail_msg ("no iteration within ten seconds");
}

static void
kill_9__of_the_model_leaves_a_tape_that_says_so_100_times (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  const char *const argv[]
      = { tapedeck (), "run", "-f", "-o", tape, model ("trouble"), "spin", NULL };

  (void)state;
  for (int i = 0; i < 100; i++)
    {
      pid_t pid, victim;
      int status;

      unlink (tape);
      pid = start (argv);
      wait_for_iterations (tape);
      victim = child_of (pid);
      assert_true (victim > 0);
      nap (373 * i); /* wherever in an iteration that is */
      assert_int_equal (kill (victim, SIGKILL), 0);
      assert_int_equal (waitpid (pid, &status, 0), pid);
      assert_true (WIFEXITED (status));
      assert_int_equal (WEXITSTATUS (status), 128 + SIGKILL);
      TdTestChild child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
      assert_child_status (child, 0);
      assert_contains (child.out, "\"signal\":9,\"by\":\"model\"");
      assert_contains (child.out, "\"last_op\":{\"op\":\"");
      assert_contains (child.out, "trouble.c:");
      td_test_child_clear (&child);
    }
}

static void
kill_9__of_the_supervisor_leaves_a_ring_that_repair_recovers (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *out = td_test_tmp ("out.tdtape");
  const char *const argv[]
      = { tapedeck (), "run", "-f", "-o", tape, model ("train"), "1000000", "1000", NULL };
  pid_t pid = start (argv), victim;
  TdTestChild child;

  (void)state;
  wait_for_iterations (tape);
  victim = child_of (pid);
  assert_true (victim > 0);
  kill (pid, SIGKILL);
  waitpid (pid, NULL, 0);
  nap (50000);
  kill (victim, SIGKILL);
  child = TD_TEST_RUN (tapedeck (), "check", tape, "--repair", out);
  assert_true (child.status <= 1);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "check", out);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--json", out);
  assert_child_status (child, 0);
  assert_not_contains (child.out, "\"iterations\":0,");
  td_test_child_clear (&child);
}

static void
full_disk__stops_recording_and_never_the_training (void **state)
{
  char command[1024];
  const char *tape = td_test_tmp ("t.tdtape");

  (void)state;
  snprintf (command, sizeof command,
            "ulimit -f 33000; exec %s run -o %s --level values %s 20000", tapedeck (), tape,
            model ("train"));
  TdTestChild child = TD_TEST_RUN ("/bin/sh", "-c", command);
  assert_child_status (child, 0);
  assert_contains (child.out, "weights ");
  assert_contains (child.err, "runs on unrecorded");
  td_test_child_clear (&child);
}

static void
tape__of_an_endless_model_stays_within_its_budget (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, "--tape-budget", "4M",
                                   "--level", "stats", model ("train"), "20000");

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  assert_true (file_size (tape) <= 4 << 20);
  child = TD_TEST_RUN (tapedeck (), "check", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
commands__refuse_what_is_no_tape_with_one_line (void **state)
{
  static const char *const commands[] = { "info", "cat", "check" };
  const char *garbage = td_test_tmp ("garbage.tdtape");

  (void)state;
  td_test_write_file (garbage, "this is no tape, it is a sentence of some length", 48);
  for (int i = 0; i < 3; i++)
    {
      TdTestChild child = TD_TEST_RUN (tapedeck (), commands[i], garbage);

      assert_child_status (child, 2);
      assert_contains (child.err, "garbage.tdtape: ");
      assert_ptr_equal (strchr (child.err, '\n'), child.err + strlen (child.err) - 1);
      td_test_child_clear (&child);
      child = TD_TEST_RUN (tapedeck (), commands[i], td_test_tmp ("missing.tdtape"));
      assert_child_status (child, 2);
      td_test_child_clear (&child);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (run__passes_the_models_status_and_output_through),
    td_test (run__puts_on_the_tape_how_the_model_ended),
    td_test (run__tells_the_first_error_of_a_model_that_does_not_compile),
    td_test (run__says_so_when_there_is_no_compiler),
    td_test (run__never_overwrites_a_tape_unasked),
    td_test (run__stops_at_breakpoints_and_says_where_and_why),
    td_test (run__refuses_wrong_usage_with_one_line_and_advice),
    td_test (weights__are_bitwise_equal_recorded_or_not),
    td_test (iterations__option_ends_the_run_cleanly),
    td_test (kill_9__of_the_model_leaves_a_tape_that_says_so_100_times),
    td_test (kill_9__of_the_supervisor_leaves_a_ring_that_repair_recovers),
    td_test (full_disk__stops_recording_and_never_the_training),
    td_test (tape__of_an_endless_model_stays_within_its_budget),
    td_test (commands__refuse_what_is_no_tape_with_one_line),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
