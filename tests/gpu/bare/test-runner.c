/* The runner counts what fails: in the test, in its begin, in its end.
 *
 * SPDX-License-Identifier: MIT */
#include "cmocka.h"

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

int
main (void)
{
  const struct CMUnitTest tests[] = { { "good one", good_test, NULL, end, NULL },
                                      { "bad one", bad_test, NULL, end, NULL },
                                      { "bad text", bad_text, NULL, end, NULL },
                                      { "bad begin", good_test, bad, end, NULL },
                                      { "bad end", good_test, NULL, bad, NULL } };

  if (_cmocka_run_group_tests ("runner", tests, 5, NULL, NULL) != 4 || n_ends != 3)
    return 1;
  cmocka_set_test_filter ("* one");
  return _cmocka_run_group_tests ("runner", tests, 5, NULL, NULL) != 1;
}
