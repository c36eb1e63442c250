/* Which parameters do not learn is found whatever hooks of the optimizer add to their
 * gradients: programs drawn at random, with faults that are planted in all of them.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-test.h"

#ifndef N_PROGRAMS
#define N_PROGRAMS 40
#endif

static void
assert_count (const char *csv, const char *text, unsigned expected, unsigned seed)
{
  unsigned n = 0;

  for (const char *p = csv; (p = strstr (p, text)) != NULL; p++)
    n++;
  if (n != expected)
    fail_msg ("program %u: \"%s\" is there %u times, not %u:\n%s", seed, text, n, expected,
              csv);
}

/* What is found in the tape of a program. `level` graph has no numbers: nothing can be dead. */
static void
check (const char *csv, bool has_numbers, bool clears, unsigned seed)
{
  static const char *const always[]
      = { "missing,net/unused/W,", "missing,net/unused/b,", "missing,net/cut/W,",
          "missing,net/cut/b,",    "not-updated,free/l/W,", "not-updated,free/l/b," };

  for (unsigned i = 0; i < sizeof always / sizeof always[0]; i++)
    assert_count (csv, always[i], 1, seed);
  assert_count (csv, "\nmissing,", 4, seed);
  assert_count (csv, "\nnot-updated,", 2, seed);
  assert_count (csv, "\ndead,", has_numbers && clears ? 1 : 0, seed);
  assert_count (csv, "\ndead,net/key,", has_numbers && clears ? 1 : 0, seed);
  assert_count (csv, "net/mean", 0, seed);
}

static void
findings__are_what_was_planted_whatever_hooks_do (void **state)
{
  const char *program = td_test_program ("app/tapedeck");
  const char *model = td_test_program ("tests/app/model-findings"),
             *tape = td_test_tmp ("t.tdtape");

  td_test_program ("app/tapedeck-viz");
  srand (1);
  for (unsigned seed = 0; seed < N_PROGRAMS; seed++)
    {
      char hooks[8], kind[8];
      bool clears = rand () % 4 != 0, has_numbers = rand () % 4 != 0;

      snprintf (hooks, sizeof hooks, "%d", rand () % 32);
      snprintf (kind, sizeof kind, "%d", rand () % 3);
      TdTestChild child
          = TD_TEST_RUN (program, "run", "-f", "--level", has_numbers ? "stats" : "graph", "-o",
                         tape, model, hooks, kind, clears ? "1" : "0");
      assert_child_status (child, 0);
      td_test_child_clear (&child);
      child = TD_TEST_RUN (program, "show", tape, "--view", "findings", "--format", "csv");
      assert_child_status (child, 0);
      check (child.out, has_numbers, clears, seed);
      td_test_child_clear (&child);
    }
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (findings__are_what_was_planted_whatever_hooks_do),
  };

  return cmocka_run_group_tests_name ("findings", tests, NULL, NULL);
}
