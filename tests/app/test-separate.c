/* Training and inference of one model stand apart, on the tape and in files (row BP04).
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Run the model; its tape, and both files. */
static const char *
run_model (const char *model, const char *optimizer)
{
  const char *tape = td_test_tmp ("run.tdtape");
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "-o", tape,
                     td_test_build ("tests/app/model-separate"), model, optimizer);

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

static void
bp04__training_and_inference_are_two_graphs_of_one_model (void **state)
{
  const char *tapedeck = td_test_program ("app/tapedeck");
  const char *tape = run_model (td_test_tmp ("model.npz"), td_test_tmp ("opt.npz"));
  TdTestChild child = TD_TEST_RUN (tapedeck, "info", "--json", tape);
  int structure[5];

  (void)state;
  assert_child_status (child, 0);
  assert_contains (child.out, "\"iterations\":5,\"distinct_graphs\":2,");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "cat", tape);
  assert_child_status (child, 0);
  for (int i = 0; i < 5; i++)
    {
      char head[80];
      const char *at;

      snprintf (head, sizeof head, "\niteration %d '%d' structure ", i, i);
      at = strstr (child.out, head);
      assert_non_null (at);
      structure[i] = atoi (at + strlen (head));
    }
  /* The first one also makes the optimizer's state. */
  assert_int_equal (structure[1], structure[2]);
  assert_int_not_equal (structure[2], structure[3]);
  assert_int_equal (structure[3], structure[4]);
  td_test_child_clear (&child);
}

static bool
has_member (const char *path, const char *name)
{
  size_t n;
  char *bytes = td_test_read_file (path, &n);
  bool found = memmem (bytes, n, name, strlen (name)) != NULL;

  free (bytes);
  return found;
}

static void
bp04__the_file_of_a_model_has_no_optimizer_state (void **state)
{
  const char *model = td_test_tmp ("model.npz"), *optimizer = td_test_tmp ("opt.npz");

  (void)state;
  run_model (model, optimizer);
  assert_true (has_member (model, "l1/W.npy"));
  assert_true (has_member (model, "norm/avg_mean.npy"));
  assert_false (has_member (model, "/m.npy"));
  assert_false (has_member (model, "t.npy"));
  assert_true (has_member (optimizer, "l1/W/m.npy"));
  assert_false (has_member (optimizer, "l1/W.npy"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (bp04__training_and_inference_are_two_graphs_of_one_model),
    td_test (bp04__the_file_of_a_model_has_no_optimizer_state),
  };

  return cmocka_run_group_tests_name ("separate", tests, NULL, NULL);
}
