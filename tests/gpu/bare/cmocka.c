/* Runs tests and counts: see cmocka.h beside this.
 *
 * SPDX-License-Identifier: MIT */
#include "cmocka.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static const char *filter, *current;
static jmp_buf running;

void
cmocka_set_test_filter (const char *pattern)
{
  filter = pattern;
}

void
bare_fail (const char *file, int line, const char *format, ...)
{
  va_list args;

  printf ("%s:%d: ", file, line);
  va_start (args, format);
  vprintf (format, args);
  va_end (args);
  putchar ('\n');
  longjmp (running, 1);
}

/* The test between its two ends; each may fail. */
static bool
passes (const struct CMUnitTest *t)
{
  void *state = t->initial_state;
  volatile bool ok = false;

  if (setjmp (running) == 0)
    {
      if (t->setup_func != NULL && t->setup_func (&state) != 0)
        return false;
      t->test_func (&state);
      ok = true;
    }
  if (setjmp (running) != 0)
    return false;
  return (t->teardown_func == NULL || t->teardown_func (&state) == 0) && ok;
}

/* A program that is killed, or falls, says in which test. */
static void
say_where (int number)
{
  static const char in[] = "ended by a signal in ";
  ssize_t n = write (STDOUT_FILENO, in, sizeof in - 1);

  if (n > 0)
    n = write (STDOUT_FILENO, current, strlen (current));
  if (n > 0)
    n = write (STDOUT_FILENO, "\n", 1);
  signal (number, SIG_DFL);
  raise (number);
}

static void
watch (void)
{
  static const int numbers[] = { SIGTERM, SIGSEGV, SIGABRT, SIGBUS, SIGFPE };

  setvbuf (stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    signal (numbers[i], say_where);
}

/* TD_BARE_PART=K/N: of the tests in turn, every Nth from K on; others run the rest. */
static bool
is_of_this_part (int turn)
{
  const char *part = getenv ("TD_BARE_PART");
  int k, n;

  return part == NULL || sscanf (part, "%d/%d", &k, &n) != 2 || n < 1 || turn % n == k;
}

int
_cmocka_run_group_tests (const char *name, const struct CMUnitTest *tests, size_t n,
                         CMFixtureFunction setup, CMFixtureFunction teardown)
{
  int n_failed = 0, n_run = 0, turn = 0;

  watch ();
  for (size_t i = 0; i < n; i++)
    if ((filter == NULL || fnmatch (filter, tests[i].name, 0) == 0) && is_of_this_part (turn++))
      {
        n_run++;
        current = tests[i].name;
        if (!passes (&tests[i]))
          {
            printf ("not ok %s\n", tests[i].name);
            n_failed++;
          }
      }
  printf ("%s: %d run, %d failed\n", name, n_run, n_failed);
  return n_failed;
}
