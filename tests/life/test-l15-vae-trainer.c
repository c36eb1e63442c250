/* L15: a Trainer that is stopped after its second epoch and goes on in another process ends
 * with the weights of one that ran through, recorded or not. SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* before: what comes before the program, to NULL. */
static char *
weights_of (const char *const *before, const char *epochs, const char *folder, bool is_static)
{
  const char *argv[20];
  char out[4200];
  TdTestChild child;
  char *said;
  int n = 0;

  for (; *before != NULL; before++)
    argv[n++] = *before;
  snprintf (out, sizeof out, "out=%s", folder);
  argv[n++] = td_test_build ("tests/life/l15-vae-trainer");
  argv[n++] = epochs;
  argv[n++] = out;
  if (is_static)
    {
      argv[n++] = "static=1";
      argv[n++] = "batch=0";
    }
  argv[n] = NULL;
  child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  said = strdup (child.out);
  assert_contains (said, "weights ");
  td_test_child_clear (&child);
  return said;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static char *
weights_after (const char *epochs, const char *folder, const char *tape)
{
  const char *tapedeck = td_test_program ("app/tapedeck");

  return weights_of (
      tape == NULL ? (const char *const[]){ NULL }
                   : WORDS (tapedeck, "run", "--quiet", "-f", "--level", "stats", "-o", tape),
      epochs, folder, false);
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

static void
trainer__has_the_same_weights_through_static_functions (void **state)
{
  static const char *const modes[] = { "off", "auto", "as-is", "verify=1" };
  const char *tapedeck = td_test_program ("app/tapedeck"), *tape = td_test_tmp ("s.tdtape");
  char *plain = weights_after ("epochs=3", td_test_tmp ("code"), NULL), *other, name[32];

  (void)state;
  for (int i = 0; i < 4; i++)
    {
      snprintf (name, sizeof name, "static-%s", modes[i]);
      other = weights_of (WORDS (tapedeck, "run", "--quiet", "--static", modes[i]), "epochs=3",
                          td_test_tmp (name), true);
      assert_string_equal (other, plain);
      free (other);
    }
  other = weights_of (WORDS (tapedeck, "run", "--quiet", "-f", "--level", "stats", "-o", tape),
                      "epochs=3", td_test_tmp ("static-recorded"), true);
  assert_string_equal (other, plain);
  free (other);
  free (plain);
}

static void
leaks__finds_none (void **state)
{
  const char *tapedeck = td_test_program ("app/tapedeck"), *tape = td_test_tmp ("l.tdtape");
  TdTestChild child;

  (void)state;
  (void)td_test_program ("app/tapedeck-viz");
  free (weights_after ("epochs=3", td_test_tmp ("leaks"), tape));
  child = TD_TEST_RUN (tapedeck, "leaks", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (trainer__goes_on_from_a_snapshot_bit_for_bit),
    td_test (trainer__has_the_same_weights_recorded),
    td_test (trainer__has_the_same_weights_through_static_functions),
    td_test (leaks__finds_none),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
