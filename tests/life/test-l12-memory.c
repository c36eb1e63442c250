/* An iteration of 1,000,000 operations that was never seen before: what its tape and its
 * supervisor take.  SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  OPERATIONS = 1000000,
  MOST_KB = 300000,
  MOST_BYTES = 150 /* of the tape, an operation */
};

/* VmHWM of a process, in kB; 0: it is gone. */
static long
peak_of (pid_t pid)
{
  char path[64], line[256];
  long kb = 0;
  FILE *f;

  snprintf (path, sizeof path, "/proc/%d/status", (int)pid);
  f = fopen (path, "r");
  while (f != NULL && fgets (line, sizeof line, f) != NULL)
    if (strncmp (line, "VmHWM:", 6) == 0)
      kb = strtol (line + 6, NULL, 10);
  if (f != NULL)
    fclose (f);
  return kb;
}

/* The peak only grows, and the end of a recording takes less than its iterations: the last look
 * that finds the process is near enough to the whole. */
static void
record (const char *level, const char *backward)
{
  const char *tape = td_test_tmp ("many.tdtape");
  const char *program = strdup (td_test_build ("tests/life/l12-many-operations"));
  const char *const argv[] = { td_test_program ("app/tapedeck"),
                               "run",
                               "--quiet",
                               "-f",
                               "--level",
                               level,
                               "-o",
                               tape,
                               program,
                               "iterations=1",
                               "operations=1000000",
                               backward,
                               NULL };
  long peak = 0, now;
  struct stat st;
  int status = -1;
  pid_t pid = fork ();

  if (pid == 0)
    {
      (void)!freopen ("/dev/null", "w", stdout);
      unsetenv ("MALLOC_PERTURB_"); /* meson's: it writes to memory that nobody uses */
      execv (argv[0], (char *const *)(uintptr_t)argv);
      _exit (127);
    }
  assert_true (pid > 0);
  while (waitpid (pid, &status, WNOHANG) == 0)
    {
      now = peak_of (pid);
      peak = now > peak ? now : peak;
      usleep (2000);
    }
  assert_int_equal (status, 0);
  assert_int_equal (stat (tape, &st), 0);
  printf ("%s, %s: %ld kB of memory, %.1f bytes of tape an operation\n", level, backward, peak,
          (double)st.st_size / OPERATIONS);
  assert_in_range (peak, 50000, MOST_KB);
  assert_in_range (st.st_size, OPERATIONS, (int64_t)OPERATIONS * MOST_BYTES);
  free ((char *)(uintptr_t)program);
}

static void
supervisor__of_a_million_operations_takes_300_mb (void **state)
{
  (void)state;
  record ("graph", "backward=0");
}

/* Two million events. */
static void
supervisor__of_a_million_operations_and_their_backward_takes_300_mb (void **state)
{
  (void)state;
  record ("graph", "backward=1");
}

static void
supervisor__of_a_million_statistics_takes_300_mb (void **state)
{
  (void)state;
  record ("stats", "backward=0");
}

static void
supervisor__of_two_million_statistics_takes_300_mb (void **state)
{
  (void)state;
  record ("stats", "backward=1");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (supervisor__of_a_million_operations_takes_300_mb),
    td_test (supervisor__of_a_million_operations_and_their_backward_takes_300_mb),
    td_test (supervisor__of_a_million_statistics_takes_300_mb),
    td_test (supervisor__of_two_million_statistics_takes_300_mb),
  };

  return cmocka_run_group_tests_name ("l12-memory", tests, NULL, NULL);
}
