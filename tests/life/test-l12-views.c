/* Every view of an iteration with 1,000,000 operations, forward and backward, as text, JSON and
 * picture: it is shown, and takes 500 MB at most.  SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  MOST_KB = 500000000 / 1024,
  NO_CALLS = 2 /* what the exit status is where there is nothing to show */
};

static const char *tape, *out;

/* Run a command with its standard output in `out`.  Returns its exit status; `kb`: of its peak
 * of memory, `seconds` of the processor it took. */
static int
run (const char *const *argv, long *kb, double *seconds)
{
  struct rusage used;
  int status = -1;
  pid_t pid = fork ();

  if (pid == 0)
    {
      const int fd = open (out, O_WRONLY | O_CREAT | O_TRUNC, 0600);

      if (fd < 0 || dup2 (fd, STDOUT_FILENO) < 0)
        _exit (126);
      unsetenv ("MALLOC_PERTURB_"); /* meson's: it writes to memory that nobody uses */
      execv (argv[0], (char *const *)(uintptr_t)argv);
      _exit (127);
    }
  assert_true (pid > 0);
  assert_int_equal (wait4 (pid, &status, 0, &used), pid);
  *kb = used.ru_maxrss;
  *seconds = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;
  assert_true (WIFEXITED (status));
  return WEXITSTATUS (status);
}

static void
record (void)
{
  const char *const argv[] = { td_test_program ("app/tapedeck"),
                               "run",
                               "--quiet",
                               "-f",
                               "-o",
                               tape,
                               td_test_build ("tests/life/l12-many-operations"),
                               "iterations=2",
                               "operations=500000",
                               "backward=1",
                               NULL };
  double seconds;
  long kb;

  assert_int_equal (run (argv, &kb, &seconds), 0);
}

static void
assert_fits (const char *const *argv, const char *what, int expected)
{
  struct stat st;
  double seconds;
  long kb;
  const int status = run (argv, &kb, &seconds);

  assert_int_equal (stat (out, &st), 0);
  printf ("%-20s status %d, %6ld kB of memory, %.2f s, %ld bytes\n", what, status, kb, seconds,
          (long)st.st_size);
  assert_int_equal (status, expected);
  assert_true (expected != 0 || st.st_size > 0);
  assert_in_range (kb, 1000, MOST_KB);
}

static void
show (const char *view, const char *format, int expected)
{
  const char *const argv[] = {
    td_test_program ("app/tapedeck"), "show", tape, "--view", view, "--format", format, NULL
  };
  char what[40];

  snprintf (what, sizeof what, "%s, %s", view, format);
  assert_fits (argv, what, expected);
}

/* The program has no static function and no NaN: for two views that is an answer. */
static void
show_all (void)
{
  static const struct
  {
    const char *name;
    int status;
  } views[] = {
    { "graph", 0 },    { "backward", 0 }, { "curves", 0 },         { "memory", 0 },
    { "blocks", 0 },   { "holders", 0 },  { "growth", 0 },         { "retained", 0 },
    { "schedule", 0 }, { "timeline", 0 }, { "flame", 0 },          { "gradients", 0 },
    { "findings", 0 }, { "ridge", 0 },    { "explain", NO_CALLS }, { "origin", NO_CALLS },
    { "what-if", 0 },
  };
  static const char *const formats[] = { "text", "json", "svg" };
  static const char *const others[][2]
      = { { "graph", "dot" },    { "memory", "csv" }, { "schedule", "csv" },
          { "timeline", "csv" }, { "flame", "csv" },  { "flame", "folded" } };

  for (size_t v = 0; v < sizeof views / sizeof *views; v++)
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
      show (views[v].name, formats[f], views[v].status);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    show (others[i][0], others[i][1], 0);
}

/* Two iterations of the recording, which are the same. */
static void
compare (const char *option, const char *what)
{
  const char *const argv[]
      = { td_test_program ("app/tapedeck"), "diff", td_test_tmp ("many.tdtape:0"),
          td_test_tmp ("many.tdtape:1"),    option, NULL };

  assert_fits (argv, what, 0);
}

static void
views__of_a_million_operations_take_500_mb (void **state)
{
  static const char *const commands[] = { "info", "check", "leaks" };

  (void)state;
  out = td_test_tmp ("out");
  tape = td_test_tmp ("many.tdtape");
  record ();
  show_all ();
  compare (NULL, "diff, text");
  compare ("--json", "diff, json");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    {
      const char *const argv[] = { td_test_program ("app/tapedeck"), commands[i], tape, NULL };

      assert_fits (argv, commands[i], 0);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (views__of_a_million_operations_take_500_mb),
  };

  return cmocka_run_group_tests_name ("l12-views", tests, NULL, NULL);
}
