/* A program with an operation, a link and a hook of its own, from its source to its tape.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

static void
dy13_dy14__own_operations_and_links_train_and_are_on_the_tape (void **state)
{
  const char *tapedeck = td_test_program ("app/tapedeck"), *tape = td_test_tmp ("t.tdtape");
  TdTestChild child = TD_TEST_RUN (tapedeck, "run", "-o", tape, "--iterations", "100",
                                   td_test_source ("tests/models/own.c"));

  (void)state;
  assert_child_status (child, 0);
  assert_contains (child.out, "gradients agree\n");
  assert_contains (child.out,
                   "loss fell, hook heard 120 calls\n"); /* 60 forward, 60 backward */
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "show", tape, "--view", "graph", "--format", "json");
  if (child.status == 0)
    {
      assert_contains (child.out, "own_softsign");
      assert_contains (child.out, "net/gate/inner");
    }
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "cat", tape, "--iterations", "3:4");
  assert_child_status (child, 0);
  assert_contains (child.out, "own_softsign");
  assert_contains (child.out, "net/gate");
  assert_contains (child.out, "own.c:");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "info", "--json", tape);
  assert_contains (child.out, "net/gate/scale");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (dy13_dy14__own_operations_and_links_train_and_are_on_the_tape),
  };

  return cmocka_run_group_tests_name ("own", tests, NULL, NULL);
}
