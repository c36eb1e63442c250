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

/* It would be taken for an address, and only there the program would fail. */
static void
run__refuses_an_option_that_is_given_without_its_name (void **state)
{
  const char *source = td_test_tmp ("unnamed.c");
  static const char text[] = "#include <tapedeck.h>\nint main (void)\n{\n"
                             "  td_max_pooling_2d (td_ones (TD_F32, TD_SHAPE (4)), 2);\n}\n";

  (void)state;
  td_test_write_file (source, text, sizeof text - 1);
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", source);
  assert_child_status (child, 2);
  assert_contains (child.err, "unnamed.c:4:");
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
    { "inf", "update", "sgd made Inf (4 of its numbers)" },
    { "nan", "update", "sgd made NaN (4 of its numbers)" },
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
run__breaks_at_an_operation_that_runs_fused (void **state)
{
  static const char *const cases[][2] = {
    { "op == tanh && iteration == 3", "before tanh in " },
    { "op == exp && iteration == 2", "before exp in " },
    { "op == tanh_grad && iteration == 3", "before tanh_grad in " },
    { "op == mul && phase == backward && iteration == 3", "before mul" },
    { "op == tanh && norm > 0 && iteration == 3", "tanh in " },
    { "op == exp && norm > 0 && iteration == 2", "exp in " },
    { "op == tanh_grad && norm(grad) > 0 && iteration == 3", "tanh_grad in " },
    { "op == log && nan", "log in " },
  };

  (void)state;
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "--static", "as-is", "--break",
                                       cases[i][0], model ("fused"), "8",
                                       strstr (cases[i][0], "nan") != NULL ? "5" : "100");

      assert_child_status (child, 3);
      assert_contains (child.err, "fused.c:");
      assert_contains (child.err, cases[i][1]);
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
    { "--window", "--seed=3", "--seed does not go with --window" },
    { "--mem-limit", "12Q", "a number of bytes expected" },
    { "--mem-limit", "12 ", "a number of bytes expected" },
    { "--tape-budget", "inf", "a number of bytes expected" },
    { "--tape-rate", "fast", "a number of bytes expected" },
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

static bool
has_iterations (void *tape)
{
  TdTestChild child;
  const char *at;
  long n;

  if (file_size (tape) <= 4096)
    return false;
  child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
  at = strstr (child.out, "\"iterations\":");
  n = at != NULL ? strtol (at + 13, NULL, 10) : 0;
  td_test_child_clear (&child);
  return n > 0;
}

static void
wait_for_iterations (const char *tape)
{
  td_test_wait ("iterations on the tape", has_iterations, (void *)(uintptr_t)tape);
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
  assert_child_status (child, 1);
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

static void
run__ends_though_its_caller_ignores_the_end_of_children (void **state)
{
  TdTestChild child = td_test_shell ("exec env --ignore-signal=CHLD %s run %s 5", tapedeck (),
                                     model ("train"));

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
run__keeps_its_messages_out_of_the_tape_when_stderr_is_closed (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  TdTestChild child = td_test_shell ("exec %s run -o %s %s exit3 <&- >&- 2>&-", tapedeck (),
                                     tape, model ("trouble"));

  (void)state;
  assert_child_status (child, 3);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "check", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
run__needs_neither_a_runtime_folder_nor_a_control_socket (void **state)
{
  TdTestChild child = td_test_shell ("XDG_RUNTIME_DIR=/proc/nowhere exec %s run %s 5",
                                     tapedeck (), model ("train"));

  (void)state;
  assert_child_status (child, 0);
  assert_string_equal (child.err, "");
  td_test_child_clear (&child);
  child = td_test_shell ("exec %s run --control /proc/nowhere/x --break 'op == exp' %s spin",
                         tapedeck (), model ("trouble"));
  assert_child_status (child, 3);
  assert_contains (child.err, "without control");
  assert_contains (child.err, "tapedeck: stopped at ");
  td_test_child_clear (&child);
}

static void
break__loses_nothing_of_what_the_model_printed (void **state)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "--break", "iteration == 2",
                                   model ("trouble"), "print");

  (void)state;
  assert_child_status (child, 3);
  assert_string_equal (child.out, "printed before");
  td_test_child_clear (&child);
}

static void
run__records_one_program_of_a_script_and_says_so (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  TdTestChild child = td_test_shell ("exec %s run -o %s /bin/sh -c '%s 5; %s 7; exit 4'",
                                     tapedeck (), tape, model ("train"), model ("train"));

  (void)state;
  assert_child_status (child, 4);
  assert_contains (child.err, "runs unrecorded");
  assert_non_null (strstr (strstr (child.out, "weights ") + 1, "weights "));
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
  assert_contains (child.out, "\"iterations\":5,");
  td_test_child_clear (&child);
}

static void
fork__of_a_model_leaves_its_recording_alone (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model ("trouble"), "fork");

  (void)state;
  assert_child_status (child, 0);
  assert_contains (child.out, "child ended with 5");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
  assert_contains (child.out, "\"iterations\":4,");
  assert_contains (child.out, "\"exit\":{\"status\":0,\"signal\":0,\"by\":\"model\"}");
  td_test_child_clear (&child);
}

static void
tape__in_a_missing_folder_is_one_line_before_the_model_starts (void **state)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", td_test_tmp ("no/such/t.tdtape"),
                                   model ("train"), "5");

  (void)state;
  assert_child_status (child, 2);
  assert_string_equal (child.out, "");
  assert_contains (child.err, "no/such/t.tdtape: ");
  assert_contains (child.err, "No such file or directory");
  assert_ptr_equal (strchr (child.err, '\n'), child.err + strlen (child.err) - 1);
  td_test_child_clear (&child);
}

/* A model.c that prints what its header says, in a folder of its own. */
static void
write_model (const char *folder, const char *word)
{
  static const char source[] = "#include <stdio.h>\n#include \"word.h\"\n"
                               "int main (void)\n{\n  puts (WORD);\n  return 0;\n}\n";
  char path[600], text[100];
  int n = snprintf (text, sizeof text, "#define WORD \"%s\"\n", word);

  snprintf (path, sizeof path, "%s/model.c", folder);
  if (access (path, F_OK) != 0)
    td_test_write_file (path, source, sizeof source - 1);
  snprintf (path, sizeof path, "%s/word.h", folder);
  td_test_write_file (path, text, (size_t)n);
}

static void
run__compiles_again_when_an_included_file_is_another (void **state)
{
  const char *a = td_test_tmp ("a b"), *b = td_test_tmp ("b'c");
  static const char *const words[] = { "first", "second", "second" };
  TdTestChild child;

  (void)state;
  child = TD_TEST_RUN ("mkdir", a, b);
  td_test_child_clear (&child);
  write_model (b, "other");
  for (int i = 0; i < 3; i++)
    {
      write_model (a, words[i]);
      child = td_test_shell ("cd \"%s\"; XDG_CACHE_HOME=\"%s\" exec %s run model.c", a, a,
                             tapedeck ());
      assert_child_status (child, 0);
      assert_contains (child.out, words[i]);
      td_test_child_clear (&child);
    }
  child = td_test_shell ("cd \"%s\"; XDG_CACHE_HOME=\"%s\" exec %s run model.c", b, a,
                         tapedeck ());
  assert_child_status (child, 0);
  assert_contains (child.out, "other");
  td_test_child_clear (&child);
}

static void
run__outlives_a_compiler_that_warns_at_length (void **state)
{
  const char *source = td_test_tmp ("warns.c");
  char *text = malloc (200000);
  size_t n = (size_t)sprintf (text, "int main (void)\n{\n");

  (void)state;
  for (int i = 0; i < 1500; i++)
    n += (size_t)sprintf (text + n, "  int a_name_that_nobody_uses_%d;\n", i);
  n += (size_t)sprintf (text + n, "  return 6;\n}\n");
  td_test_write_file (source, text, n);
  free (text);
  TdTestChild child = td_test_shell ("XDG_CACHE_HOME=%s exec %s run %s", td_test_tmp ("cache"),
                                     tapedeck (), source);
  assert_child_status (child, 6);
  assert_true (child.err_bytes > 60000);
  td_test_child_clear (&child);
}

static void
iterations__option_counts_alike_recorded_or_not (void **state)
{
  TdTestChild plain
      = TD_TEST_RUN (tapedeck (), "run", "--iterations", "7", model ("trouble"), "outside");
  TdTestChild recorded = TD_TEST_RUN (tapedeck (), "run", "--iterations", "7", "-o",
                                      td_test_tmp ("t.tdtape"), model ("trouble"), "outside");

  (void)state;
  assert_child_status (plain, 0);
  assert_child_status (recorded, 0);
  assert_string_equal (plain.out, "7 iterations\n");
  assert_string_equal (recorded.out, plain.out);
  td_test_child_clear (&plain);
  td_test_child_clear (&recorded);
}

static void
names__with_line_ends_stay_on_their_line_and_td_finish_may_be_called_twice (void **state)
{
  const char *tape = td_test_tmp ("t 'q\".tdtape");
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model ("trouble"), "names");

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "cat", tape);
  assert_child_status (child, 0);
  assert_contains (child.out, "'two lines'");
  assert_contains (child.out, "report three lines 3");
  assert_contains (child.out, "nnnnnnnnnn");
  td_test_child_clear (&child);
}

/* Ctrl+C: the whole foreground group gets the signal. */
static int
interrupt_group (const char *tape, const char *how)
{
  const char *const argv[] = { tapedeck (), "run", "-o", tape, model ("trouble"), how, NULL };
  pid_t pid = fork ();
  int status;

  if (pid == 0)
    {
      setpgid (0, 0);
      (void)!freopen ("/dev/null", "w", stderr);
      execv (argv[0], (char *const *)(uintptr_t)argv);
      _exit (127);
    }
  wait_for_iterations (tape);
  assert_int_equal (kill (-pid, SIGINT), 0);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  return WEXITSTATUS (status);
}

static void
ctrl_c__ends_with_130_and_lets_a_model_save_first (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *second = td_test_tmp ("u.tdtape");
  TdTestChild child;

  (void)state;
  assert_int_equal (interrupt_group (tape, "spin"), 130);
  child = TD_TEST_RUN (tapedeck (), "check", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
  assert_contains (child.out, "\"signal\":2,");
  td_test_child_clear (&child);
  assert_int_equal (interrupt_group (second, "save"), 7);
}

static void
force__spares_a_tape_that_is_being_recorded (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape");
  const char *const argv[]
      = { tapedeck (), "run", "-o", tape, model ("trouble"), "spin", NULL };
  pid_t pid = start (argv);
  int status;
  TdTestChild child;

  (void)state;
  wait_for_iterations (tape);
  child = TD_TEST_RUN (tapedeck (), "run", "-f", "-o", tape, model ("train"), "5");
  kill (pid, SIGTERM);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_child_status (child, 2);
  assert_contains (child.err, "t.tdtape: another run is recording to it");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--json", tape);
  assert_contains (child.out, "\"signal\":15,");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (run__ends_though_its_caller_ignores_the_end_of_children),
    td_test (run__keeps_its_messages_out_of_the_tape_when_stderr_is_closed),
    td_test (run__needs_neither_a_runtime_folder_nor_a_control_socket),
    td_test (break__loses_nothing_of_what_the_model_printed),
    td_test (run__records_one_program_of_a_script_and_says_so),
    td_test (fork__of_a_model_leaves_its_recording_alone),
    td_test (tape__in_a_missing_folder_is_one_line_before_the_model_starts),
    td_test (run__compiles_again_when_an_included_file_is_another),
    td_test (run__outlives_a_compiler_that_warns_at_length),
    td_test (iterations__option_counts_alike_recorded_or_not),
    td_test (names__with_line_ends_stay_on_their_line_and_td_finish_may_be_called_twice),
    td_test (ctrl_c__ends_with_130_and_lets_a_model_save_first),
    td_test (force__spares_a_tape_that_is_being_recorded),
    td_test (run__passes_the_models_status_and_output_through),
    td_test (run__puts_on_the_tape_how_the_model_ended),
    td_test (run__tells_the_first_error_of_a_model_that_does_not_compile),
    td_test (run__refuses_an_option_that_is_given_without_its_name),
    td_test (run__says_so_when_there_is_no_compiler),
    td_test (run__never_overwrites_a_tape_unasked),
    td_test (run__stops_at_breakpoints_and_says_where_and_why),
    td_test (run__breaks_at_an_operation_that_runs_fused),
    td_test (run__refuses_wrong_usage_with_one_line_and_advice),
    td_test (weights__are_bitwise_equal_recorded_or_not),
    td_test (iterations__option_ends_the_run_cleanly),
    td_test (kill_9__of_the_model_leaves_a_tape_that_says_so_100_times),
    td_test (kill_9__of_the_supervisor_leaves_a_ring_that_repair_recovers),
    td_test (full_disk__stops_recording_and_never_the_training),
    td_test (tape__of_an_endless_model_stays_within_its_budget),
    td_test (commands__refuse_what_is_no_tape_with_one_line),
  };

  /* A sanitizer would turn signals and leaks of models that end early into statuses of its own.
   */
  setenv ("ASAN_OPTIONS", "handle_segv=0:handle_abort=0:detect_leaks=0", 1);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
