/* What gradient clipping does is on the tape and in the gradients view: norms before and after,
 * and in how many iterations it had anything to do.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

/* The gradient in iteration i is (3, 4) (i + 1): norms 5, 10, 15, 20. The other parameter gets
 * zeros from the optimizer. */
static const char model[]
    = "#include <tapedeck.h>\n"
      "#include <string.h>\n"
      "int main (int argc, char **argv)\n"
      "{\n"
      "  td_init (&argc, &argv);\n"
      "  TdLink *net = td_chain_new (\"net\");\n"
      "  TdVar *W = td_link_add_param (net, \"W\", TD_SHAPE (2));\n"
      "  td_link_add_param (net, \"unused\", TD_SHAPE (3));\n"
      "  TdOpt *opt = td_sgd_new (net);\n"
      "  td_opt_add_hook (opt, strcmp (argv[1], \"hard\") == 0\n"
      "                            ? td_gradient_hard_clipping_new (-10, 10)\n"
      "                            : td_gradient_clipping_new (7.5));\n"
      "  TD_ITERATIONS (i, 4)\n"
      "    {\n"
      "      float k[] = { 3 * (float)(i + 1), 4 * (float)(i + 1) };\n"
      "      td_cleargrads (net);\n"
      "      td_backward (td_sum (td_mul (W, td_tensor (TD_F32, TD_SHAPE (2), k))), 0);\n"
      "      td_opt_update (opt);\n"
      "    }\n"
      "  return td_finish ();\n"
      "}\n";

/* The gradients view of the model, recorded at a level.  *Owner*: the caller,
 * td_test_child_clear. */
static TdTestChild
shown (const char *kind, const char *level, const char *format)
{
  const char *program = td_test_program ("app/tapedeck");
  const char *source = td_test_tmp ("model.c"), *tape = td_test_tmp ("t.tdtape");
  TdTestChild child;

  td_test_program ("app/tapedeck-viz");
  td_test_write_file (source, model, sizeof model - 1);
  child = TD_TEST_RUN (program, "run", "-f", "--level", level, "-o", tape, source, kind);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "show", tape, "--view", "gradients", "--format", format);
  assert_child_status (child, 0);
  return child;
}

static void
bp03__view_shows_the_norm_before_and_after_clipping (void **state)
{
  TdTestChild child = shown ("l2", "stats", "csv");

  assert_contains (child.out, "(norm before clipping),5,10,15,20\n");
  assert_contains (child.out, "(norm after clipping),5,7.5,7.5,7.5\n");
  td_test_child_clear (&child);
  child = shown ("l2", "stats", "text");
  assert_contains (child.out, "clipped in 3 of 4 iterations (75 %)\n");
  td_test_child_clear (&child);
  child = shown ("l2", "stats", "json");
  assert_contains (child.out, "\"clipped\": [false, true, true, true]");
  td_test_child_clear (&child);
}

/* (9, 12) is cut to (9, 10), (12, 16) to (10, 10). */
static void
bp03__hard_clipping_is_shown_like_the_other (void **state)
{
  TdTestChild child = shown ("hard", "stats", "csv");

  assert_contains (child.out, "(norm before clipping),5,10,15,20\n");
  assert_contains (child.out, "(norm after clipping),5,10,13.453624,14.1421356\n");
  td_test_child_clear (&child);
  child = shown ("hard", "stats", "json");
  assert_contains (child.out, "\"clipped\": [false, false, true, true]");
  td_test_child_clear (&child);
}

static void
bp03__without_statistics_no_norm_is_made_up (void **state)
{
  TdTestChild child = shown ("l2", "graph", "text");

  assert_contains (child.out,
                   "clipping of 4 iterations is not known: record with --level stats");
  assert_not_contains (child.out, "clipped in");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (bp03__view_shows_the_norm_before_and_after_clipping),
    td_test (bp03__hard_clipping_is_shown_like_the_other),
    td_test (bp03__without_statistics_no_norm_is_made_up),
  };

  return cmocka_run_group_tests_name ("clipping", tests, NULL, NULL);
}
