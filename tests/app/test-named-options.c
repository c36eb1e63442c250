/* Options are given by name. One that comes without is not dropped in silence: the compiler
 * says that it is too many, at its place in the program, and `tapedeck run` runs nothing.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <string.h>

/* A call, and an option of it as it may come. */
static const struct
{
  const char *call, *named;
} calls[] = {
  { "td_leaky_relu (x%s)", "slope = 0.5" },
  { "td_elu (x%s)", "alpha = 0.5" },
  { "td_softmax (x%s)", "axis = 0" },
  { "td_log_softmax (x%s)", "axis = 0" },
  { "td_sgd_new (net%s)", "lr = 0.5" },
  { "td_adam_new (net%s)", "lr = 0.5" },
  { "td_linear_new (net, \"l\", 2, 2%s)", "nobias = true" },
  { "td_batch_normalization_new (net, \"l\", 2%s)", "eps = 1e-3" },
  { "td_lstm_new (net, \"l\", 2, 2%s)", "bias_init = td_init_zero ()" },
  { "td_gru_new (net, \"l\", 2, 2%s)", "init = td_init_zero ()" },
};

/* Compiles and runs a program of one call, on line 10; what comes after its other arguments is
 * between `before` and the end. */
static TdTestChild
run_call (int call, const char *before, const char *option)
{
  const char *at = strstr (calls[call].call, "%s"), *path = td_test_tmp ("model.c");
  char program[600];

  snprintf (program, sizeof program,
            "#include <tapedeck.h>\n"
            "int\n"
            "main (int argc, char **argv)\n"
            "{\n"
            "  td_init (&argc, &argv);\n"
            "  TdVar *x = td_ones (TD_F32, TD_SHAPE (1, 2));\n"
            "  TdLink *net = td_chain_new (\"net\");\n"
            "  (void)x;\n"
            "  (void)net;\n"
            "  (void)%.*s%s%s%s;\n"
            "  return td_finish ();\n"
            "}\n",
            (int)(at - calls[call].call), calls[call].call, before, option, at + 2);
  td_test_write_file (path, program, strlen (program));
  return TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", path);
}

static void
options__without_a_name_are_refused (void **state)
{
  (void)state;
  for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++)
    {
      TdTestChild child = run_call (i, ", ", strchr (calls[i].named, '=') + 2);

      assert_child_status (child, 2);
      assert_contains (child.err, "model.c:10:");
      assert_contains (child.err, "warning: excess elements in struct initializer");
      assert_contains (child.err, "model.c does not compile: ");
      td_test_child_clear (&child);
    }
}

static void
options__by_name_are_taken_and_may_be_left_out (void **state)
{
  (void)state;
  for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++)
    for (int has = 0; has < 2; has++)
      {
        TdTestChild child = run_call (i, has ? ", ." : "", has ? calls[i].named : "");

        assert_child_status (child, 0);
        assert_not_contains (child.err, "warning");
        td_test_child_clear (&child);
      }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (options__without_a_name_are_refused),
    td_test (options__by_name_are_taken_and_may_be_left_out),
  };

  return cmocka_run_group_tests_name ("named-options", tests, NULL, NULL);
}
