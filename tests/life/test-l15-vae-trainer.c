/* L15: a Trainer that is stopped after its second epoch and goes on in another process ends
 * with the weights of one that ran through, recorded or not. SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *
weights_after (const char *epochs, const char *folder, const char *tape)
{
  const char *program = td_test_build ("tests/life/l15-vae-trainer");
  const char *tapedeck = td_test_program ("app/tapedeck");
  char out[4200];
  TdTestChild child;
  char *said;

  snprintf (out, sizeof out, "out=%s", folder);
  child = tape == NULL ? TD_TEST_RUN (program, epochs, out)
                       : TD_TEST_RUN (tapedeck, "run", "--quiet", "-f", "--level", "stats",
                                      "-o", tape, program, epochs, out);
  assert_child_status (child, 0);
  said = strdup (child.out);
  assert_contains (said, "weights ");
  td_test_child_clear (&child);
  return said;
}

static void
trainer__goes_on_from_a_snapshot_bit_for_bit (void **state)
{
  char *through = weights_after ("epochs=4", td_test_tmp ("through"), NULL);
  char *half = weights_after ("epochs=2", td_test_tmp ("halves"), NULL);
  char *rest = weights_after ("epochs=4", td_test_tmp ("halves"), NULL);

  (void)state;
  assert_string_not_equal (half, through);
  assert_string_equal (rest, through);
  free (through);
  free (half);
  free (rest);
}

static void
trainer__has_the_same_weights_recorded (void **state)
{
  char *plain = weights_after ("epochs=3", td_test_tmp ("plain"), NULL);
  char *recorded
      = weights_after ("epochs=3", td_test_tmp ("recorded"), td_test_tmp ("t.tdtape"));

  (void)state;
  assert_string_equal (recorded, plain);
  free (plain);
  free (recorded);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (trainer__goes_on_from_a_snapshot_bit_for_bit),
    td_test (trainer__has_the_same_weights_recorded),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
