/* What is said when there is no host memory, of which a program cannot go on.
 * SPDX-License-Identifier: MIT */
#include "host-memory.h"

#include "td-test.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run `f` in a child and take what it says; it has to end by abort. */
static void
assert_dies (void (*f) (void), const char *expected)
{
  const struct rlimit no_core = { 0, 0 };
  char text[512] = "";
  int fds[2], status;
  ssize_t n = 0, got;
  pid_t pid;

  assert_int_equal (pipe (fds), 0);
  pid = fork ();
  if (pid == 0)
    {
      dup2 (fds[1], 2);
      setrlimit (RLIMIT_CORE, &no_core);
      f ();
      _exit (0);
    }
  close (fds[1]);
  while ((got = read (fds[0], text + n, sizeof text - 1 - (size_t)n)) > 0)
    n += got;
  close (fds[0]);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT);
  assert_string_equal (text, expected);
}

static void
plan_of_a_schedule (void)
{
  td__host_memory_fail_after (2);
  free (td__xmalloc (8));
  free (td__xstrdup ("text"));
  free (td__xcalloc (3, 4));
}

#ifndef __SANITIZE_ADDRESS__ /* whose own allocator ends a program that asks for as much */
static void
more_than_there_is (void)
{
  free (td__xrealloc (malloc (1), SIZE_MAX / 4));
}

static void
more_than_can_be_counted (void)
{
  free (td__xcalloc (SIZE_MAX / 2, 4));
}
#endif

static void
host_memory__that_is_not_there_ends_the_program_with_a_line (void **state)
{
  (void)state;
  assert_dies (plan_of_a_schedule,
               "tapedeck: out of host memory: asked 12 bytes in plan_of_a_schedule\n");
#ifndef __SANITIZE_ADDRESS__
  char expected[200];

  snprintf (expected, sizeof expected,
            "tapedeck: out of host memory: asked %zu bytes in more_than_there_is\n",
            SIZE_MAX / 4);
  assert_dies (more_than_there_is, expected);
  snprintf (expected, sizeof expected,
            "tapedeck: out of host memory: asked %zu bytes in more_than_can_be_counted\n",
            SIZE_MAX);
  assert_dies (more_than_can_be_counted, expected);
#endif
}

static void
host_memory__of_no_bytes_is_no_failure (void **state)
{
  void *memory = td__xrealloc (NULL, 0);

  (void)state;
  free (memory);
  memory = td__xcalloc (0, 8);
  assert_non_null (memory);
  free (memory);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (host_memory__that_is_not_there_ends_the_program_with_a_line),
    td_test (host_memory__of_no_bytes_is_no_failure),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
