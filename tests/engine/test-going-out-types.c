/* Every row of op-cases in double and half precision, as a static function that is written as
 * C: it computes what the engine computes.
 *
 * SPDX-License-Identifier: MIT */
#include "going-out-rows.h"
#include "td-test.h"

static const TdDtype runs[] = { TD_F64, TD_F16, TD_BF16 };

static int
all_go_out (void **state)
{
  if (td_test_setup (state) != 0)
    return -1;
  rows_make (runs, 3, NULL);
  return 0;
}

static int
forget (void **state)
{
  rows_forget ();
  return td_test_teardown (state);
}

static void
c__of_doubles_computes_the_same (void **state)
{
  (void)state;
  rows_agree_as_c (runs, 1, "cc -std=c99 -O1");
}

static void
c__of_float16_computes_the_same (void **state)
{
  (void)state;
  rows_agree_as_c (runs + 1, 1, "cc -std=c11 -O1");
}

static void
c__of_bfloat16_computes_the_same (void **state)
{
  (void)state;
  rows_agree_as_c (runs + 2, 1, "cc -std=c11 -O1");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (c__of_doubles_computes_the_same),
    cmocka_unit_test (c__of_float16_computes_the_same),
    cmocka_unit_test (c__of_bfloat16_computes_the_same),
  };
  int failed;

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  failed = cmocka_run_group_tests_name ("going-out-types", tests, all_go_out, forget);
  return td_finish () != 0 || failed != 0;
}
