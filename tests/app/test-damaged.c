/* What the commands say of a tape that was cut: the damage, and what to do.
 * SPDX-License-Identifier: MIT */
#include "../support/td-test.h"

#include <string.h>
#include <unistd.h>

static const char *
cut_tape (const char *program, off_t bytes)
{
  const char *tape = td_test_tmp ("cut.tdtape");
  TdTestChild c = TD_TEST_RUN (program, "run", "--quiet", "-f", "-o", tape,
                               td_test_program ("tests/app/model-train"), "14");

  assert_child_status (c, 0);
  td_test_child_clear (&c);
  assert_int_equal (truncate (tape, bytes), 0);
  return tape;
}

#define DAMAGE "the tape is damaged at offset 6000: the file ends too early; see tapedeck check"

static void
commands__name_the_damage_of_a_cut_tape (void **state)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = cut_tape (program, 6000);
  const char *out = td_test_tmp ("out.pickle");
  TdTestChild c;

  (void)state;
  c = TD_TEST_RUN (program, "check", tape);
  assert_child_status (c, 1);
  assert_contains (c.out, "damaged at offset 6000: the file ends too early; 0 of its 14 "
                          "iterations can be loaded");
  td_test_child_clear (&c);
  c = TD_TEST_RUN (program, "info", tape);
  assert_contains (c.out, "\nlost             0 of 14 are whole; 14 are lost to damage\n");
  assert_contains (c.out, "\ndamage           " DAMAGE "\n");
  assert_not_contains (c.out, "thinned");
  td_test_child_clear (&c);
  c = TD_TEST_RUN (program, "export", tape, "--format", "torch-snapshot", "-o", out);
  assert_child_status (c, 2);
  assert_contains (c.err, DAMAGE);
  td_test_child_clear (&c);
#ifdef TD_WITH_VIZ
  c = TD_TEST_RUN (program, "show", tape, "--view", "memory");
  assert_int_not_equal (c.status, 0);
  assert_contains (c.err, DAMAGE);
  td_test_child_clear (&c);
#endif
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (commands__name_the_damage_of_a_cut_tape),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
