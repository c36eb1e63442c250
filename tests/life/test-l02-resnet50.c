/* L02: the graph of ResNet-50 without arithmetic: everything is there but the numbers.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <string.h>

static void
resnet50__is_planned_on_the_null_device (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *tapedeck = td_test_program ("app/tapedeck");
  TdTestChild child
      = TD_TEST_RUN (tapedeck, "run", "--quiet", "--device", "null", "-f", "-o", tape,
                     td_test_build ("tests/life/l02-resnet50"), "iterations=2");
  size_t n = 0;

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "info", "--json", tape);
  assert_child_status (child, 0);
  assert_contains (child.out, "\"iterations\":2");
  assert_contains (child.out, "\"distinct_graphs\":1");
  for (const char *at = child.out; (at = strstr (at, "\"dtype\"")) != NULL; at++)
    n++;
  /* 53 convolutions, 2 of each of 53 normalisations, 2 of the end are trained; each
   * normalisation keeps a mean, a variance and a count besides. */
  assert_int_equal (n, 161 + 3 * 53);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck, "leaks", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = { td_test (resnet50__is_planned_on_the_null_device) };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
