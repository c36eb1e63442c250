/* Training that goes on with another number of ranks, each run a program of its own, beside one
 * process that has all examples and never stopped.
 *
 * test-resumed RESUMED WITH-RANKS MODULE
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  NUMBERS = 5 * 7 + 7 + 7, /* that resumed.c prints */
  FIRST = 6,               /* iterations until it stops, and in all */
  ALL = 12
};

typedef struct
{
  long first;
  double numbers[NUMBERS];
} Run;

static const char *program, *with_ranks, *module;

static Run
train (int n_ranks, int iterations, const char *folder)
{
  TdTestChild c = td_test_shell ("exec %s %s %d %s %d %s", with_ranks, module, n_ranks, program,
                                 iterations, folder);
  Run run;
  char *at;

  assert_child_status (c, 0);
  at = strstr (c.out, "first ");
  assert_non_null (at);
  run.first = strtol (at + strlen ("first "), &at, 10);
  for (int i = 0; i < NUMBERS; i++)
    {
      char *begin = at;

      run.numbers[i] = strtod (begin, &at);
      assert_ptr_not_equal (begin, at);
    }
  td_test_child_clear (&c);
  return run;
}

/* The largest difference, of numbers around 1. */
static double
distance (const Run *a, const Run *b)
{
  double most = 0;

  for (int i = 0; i < NUMBERS; i++)
    most = fmax (most, fabs (a->numbers[i] - b->numbers[i]));
  return most;
}

static void
training__that_goes_on_with_another_number_of_ranks_is_that_of_one_process (void **state)
{
  static const int rows[][2] = { { 4, 2 }, { 4, 1 }, { 4, 3 }, { 2, 4 }, { 1, 4 } };
  const Run whole = train (1, ALL, td_test_tmp ("whole"));

  (void)state;
  assert_int_equal (whole.first, 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      char folder[4200];
      Run begun, resumed;

      snprintf (folder, sizeof folder, "%s%zu", td_test_tmp ("out"), i);
      begun = train (rows[i][0], FIRST, folder);
      resumed = train (rows[i][1], ALL, folder);
      print_message ("# %d ranks, then %d: within %.2g\n", rows[i][0], rows[i][1],
                     distance (&resumed, &whole));
      assert_int_equal (begun.first, 1);
      assert_int_equal (resumed.first, FIRST + 1);
      assert_true (distance (&begun, &whole) > 1e-2); /* there was something to learn */
      assert_true (distance (&resumed, &whole) < 1e-6);
    }
}

/* It goes on from the newest, whichever number of ranks has written it. */
static void
training__goes_on_from_the_newest_of_several_numbers_of_ranks (void **state)
{
  const char *folder = td_test_tmp ("out");
  const Run whole = train (1, ALL, td_test_tmp ("whole"));
  Run last;

  (void)state;
  train (4, 4, folder);
  assert_int_equal (train (2, 8, folder).first, 5);
  last = train (4, ALL, folder);
  assert_int_equal (last.first, 9);
  assert_true (distance (&last, &whole) < 1e-6);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (training__that_goes_on_with_another_number_of_ranks_is_that_of_one_process),
    td_test (training__goes_on_from_the_newest_of_several_numbers_of_ranks),
  };

  if (argc != 4)
    return 1;
  program = argv[1];
  with_ranks = argv[2];
  module = argv[3];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
