/* What a run depends on besides the model is on its tape, and a comparison begins with it (row
 * BP01).
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <tapedeck.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *
recorded (const char *name)
{
  const char *tape = td_test_tmp (name), *tapedeck = td_test_program ("app/tapedeck");
  TdTestChild child = TD_TEST_RUN (tapedeck, "run", "--quiet", "--iterations", "2", "-o", tape,
                                   td_test_build ("tests/app/model-train"));

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

static void
bp01__a_tape_says_what_its_numbers_depend_on (void **state)
{
  const char *tape = recorded ("run.tdtape"), *tapedeck = td_test_program ("app/tapedeck");
  TdTestChild child = TD_TEST_RUN (tapedeck, "info", "--json", tape);
  char engine[80];

  (void)state;
  snprintf (engine, sizeof engine, "\"engine\":\"%s\",\"blas\":\"", td_version ());
  assert_child_status (child, 0);
  assert_contains (child.out, "\"versions\":{\"tapedeck\":\"");
  assert_contains (child.out, engine);
  assert_contains (child.out, "\"compiler\":\"");
  td_test_child_clear (&child);
}

/* A tape of another writer, against one of today's: versions, and only then operations. */
static void
bp01__diff_names_other_versions_first (void **state)
{
  const char *tape = recorded ("run.tdtape"), *viz = td_test_program ("app/tapedeck-viz");
  TdTestChild child
      = TD_TEST_RUN (viz, "diff", td_test_source ("tests/golden/tape-1.0.tdtape"), tape);
  const char *end, *sentence;

  (void)state;
  assert_child_status (child, 1);
  assert_int_equal (strncmp (child.out, "version", 7), 0);
  assert_contains (child.out, "\nversion.blas: unknown in A, ");
  end = strstr (child.out, "version.compiler: ");
  sentence = strstr (child.out, " in operations of ");
  assert_true (end != NULL && sentence != NULL && end < sentence);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (viz, "diff", tape, recorded ("again.tdtape"));
  assert_child_status (child, 0);
  assert_not_contains (child.out, "version");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (bp01__a_tape_says_what_its_numbers_depend_on),
    td_test (bp01__diff_names_other_versions_first),
  };

  return cmocka_run_group_tests_name ("versions", tests, NULL, NULL);
}
