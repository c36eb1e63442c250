/* The runner counts what fails: in the test, in its begin, in its end; where it is killed, it
 * says in which test.
 *
 * SPDX-License-Identifier: MIT */
#include "cmocka.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int n_ends;

static int
end (void **state)
{
  n_ends++;
  return 0;
}

static int
bad (void **state)
{
  return 1;
}

static void
good_test (void **state)
{
  assert_int_equal (1, 1);
  assert_string_equal ("a", "a");
}

static void
bad_test (void **state)
{
  assert_int_equal (1, 2);
}

static void
bad_text (void **state)
{
  assert_string_equal ("a", "b");
}

static void
killed_test (void **state)
{
  raise (SIGTERM);
}

/* What was printed before is there too, although that is no terminal. */
static bool
killed_one_is_named (void)
{
  const struct CMUnitTest tests[] = { { "bad one", bad_test, NULL, NULL, NULL },
                                      { "killed", killed_test, NULL, NULL, NULL } };
  char text[400] = "";
  int ends[2], status = 0;
  ssize_t n = 0, more;
  pid_t child;

  if (pipe (ends) != 0 || (child = fork ()) < 0)
    return false;
  if (child == 0)
    {
      dup2 (ends[1], STDOUT_FILENO);
      _exit (_cmocka_run_group_tests ("runner", tests, 2, NULL, NULL));
    }
  close (ends[1]);
  while ((more = read (ends[0], text + n, sizeof text - 1 - (size_t)n)) > 0)
    n += more;
  close (ends[0]);
  waitpid (child, &status, 0);
  return WIFSIGNALED (status) && WTERMSIG (status) == SIGTERM
         && strstr (text, "not ok bad one\nended by a signal in killed\n") != NULL;
}

/* Of the good one and the bad one, each part has one. */
static bool
parts_are_the_whole (const struct CMUnitTest *all, size_t n)
{
  n_ends = 0;
  setenv ("TD_BARE_PART", "0/2", 1);
  if (_cmocka_run_group_tests ("runner", all, n, NULL, NULL) != 0 || n_ends != 1)
    return false;
  setenv ("TD_BARE_PART", "1/2", 1);
  return _cmocka_run_group_tests ("runner", all, n, NULL, NULL) == 1 && n_ends == 2;
}

int
main (void)
{
  const struct CMUnitTest tests[] = { { "good one", good_test, NULL, end, NULL },
                                      { "bad one", bad_test, NULL, end, NULL },
                                      { "bad text", bad_text, NULL, end, NULL },
                                      { "bad begin", good_test, bad, end, NULL },
                                      { "bad end", good_test, NULL, bad, NULL } };

  if (!killed_one_is_named ())
    return 1;
  if (_cmocka_run_group_tests ("runner", tests, 5, NULL, NULL) != 4 || n_ends != 3)
    return 1;
  cmocka_set_test_filter ("* one");
  if (_cmocka_run_group_tests ("runner", tests, 5, NULL, NULL) != 1)
    return 1;
  return !parts_are_the_whole (tests, 5);
}
