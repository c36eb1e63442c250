/* What is seen of mixed precision: the dtype of every operation, casts, and what the loss scale
 * cost, in `info` and in the views of a recording.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "td-test.h"

#include <math.h>
#include <stdlib.h>

enum
{
  STEPS = 4,
  BAD_STEP = 2
};

/* A layer in bf16 between casts, whose loss is infinite once.  *Owner*: the test's folder. */
static const char *
record (void)
{
  const char *path = td_test_tmp ("t.tdtape");
  TdLink *net, *l1 = NULL;
  TdOpt *opt;

  setenv ("TAPEDECK_TAPE", path, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  net = td_chain_new ("net");
  TD_USING (dtype, TD_BF16)
    l1 = td_linear_new (net, "l1", 4, 3);
  opt = td_sgd_new (net, .lr = 0.1);
  td_opt_use_fp32_update (opt, true);
  td_opt_loss_scaling (opt, .interval = 10);
  TD_ITERATIONS (i, STEPS)
    {
      TdVar *x = td_cast (td_ones (TD_F32, TD_SHAPE (2, 4)), TD_BF16);
      TdVar *h = td_tanh (td_link (l1, x));
      TdVar *loss = td_sum (td_cast (h, TD_F32));

      td_cleargrads (net);
      td_opt_backward (opt, i == BAD_STEP ? td_mul_scalar (loss, INFINITY) : loss, 0);
      td_opt_update (opt);
    }
  assert_int_equal (td_opt_skipped (opt), 1);
  td_opt_free (opt);
  td_link_free (net);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  unsetenv ("TAPEDECK_TAPE");
  return path;
}

/* *Owner*: the caller, td_test_child_clear. */
static TdTestChild
show (const char *tape, const char *view, const char *format)
{
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck-viz"), "show", tape, "--view",
                                   view, "--iteration", "1", "--format", format);

  assert_child_status (child, 0);
  return child;
}

static void
graph__shows_halves_and_the_casts_around_them (void **state)
{
  const char *tape = record ();
  TdTestChild child = show (tape, "graph", "text");

  assert_contains (child.out, "op 0 F in 0: cast");
  assert_contains (child.out, "op 3 F in 0: cast");
  assert_contains (child.out, "copy_converted l1/W"); /* from the copy in float */
  td_test_child_clear (&child);
  child = show (tape, "graph", "json");
  assert_contains (child.out, "\"dtype\": \"bfloat16\"");
  assert_contains (child.out, "\"dtype\": \"float32\"");
  td_test_child_clear (&child);
  child = show (tape, "graph", "dot");
  assert_contains (child.out, "bfloat16");
  td_test_child_clear (&child);
}

static void
info__says_what_the_loss_scale_cost_and_where_it_began (void **state)
{
  const char *tape = record (), *program = td_test_program ("app/tapedeck");
  TdTestChild child = TD_TEST_RUN (program, "info", tape);

  assert_child_status (child, 0);
  /* 1, 2, 4, and 2 in the last update */
  assert_contains (child.out, "loss scale       2, 1 updates skipped, begun in l1/W 1\n");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "info", tape, "--json");
  assert_child_status (child, 0);
  assert_contains (child.out,
                   "\"loss_scaling\":{\"scale\":2,\"skipped\":1,\"begun_in\":{\"l1/W\":1}}");
  td_test_child_clear (&child);
}

static void
curves__of_the_scale_and_of_overflows_are_drawn (void **state)
{
  TdTestChild child = show (record (), "curves", "json");

  assert_contains (child.out, "\"loss_scale\"");
  assert_contains (child.out, "\"overflows\"");
  assert_contains (child.out, "\"overflows/l1/W\"");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (graph__shows_halves_and_the_casts_around_them),
    td_test (info__says_what_the_loss_scale_cost_and_where_it_began),
    td_test (curves__of_the_scale_and_of_overflows_are_drawn),
  };

  return cmocka_run_group_tests_name ("mixed-views", tests, NULL, NULL);
}
