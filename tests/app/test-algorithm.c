/* Attributes on the tape: which implementation computed an operation, where there are several;
 * and none that are of one call only.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdlib.h>
#include <string.h>

static const char model[]
    = "#include <tapedeck.h>\n"
      "int main (int argc, char **argv)\n"
      "{\n"
      "  td_init (&argc, &argv);\n"
      "  TD_ITERATIONS (i, 1)\n"
      "    {\n"
      "      TdVar *x = td_ones (TD_F32, TD_SHAPE (2, 16, 8, 8));\n"
      "      TdVar *W = td_variable (td_ones (TD_F32, TD_SHAPE (16, 16, 3, 3)), \"W\");\n"
      "      TdVar *V = td_variable (td_ones (TD_F32, TD_SHAPE (5, 16, 3, 3)), \"V\");\n"
      "      TdVar *y = td_convolution_2d (x, W, NULL), *z = td_convolution_2d (x, V, NULL);\n"
      "      td_backward (td_add (td_sum (y), td_sum (z)), 0);\n"
      "    }\n"
      "  return td_finish ();\n"
      "}\n";

/* The tape of the model as text.  *Owner*: the caller, td_test_child_clear. */
static TdTestChild
recorded (void)
{
  const char *program = td_test_program ("app/tapedeck");
  const char *source = td_test_tmp ("model.c"), *tape = td_test_tmp ("t.tdtape");
  TdTestChild child;

  td_test_write_file (source, model, sizeof model - 1);
  child = TD_TEST_RUN (program, "run", "-f", "-o", tape, source);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "cat", tape);
  assert_child_status (child, 0);
  return child;
}

static void
algorithm__of_a_convolution_is_on_the_tape (void **state)
{
  TdTestChild child = recorded ();

  assert_contains (child.out, "algorithm=im2col:"); /* five filters fill no block */
#if defined(TD_WITH_ONEDNN)
  if (getenv ("TAPEDECK_TILES") == NULL && getenv ("TAPEDECK_ONEDNN") == NULL)
    assert_contains (child.out, "algorithm=onednn:");
#else
  assert_null (strstr (child.out, "onednn"));
#endif
  td_test_child_clear (&child);
}

static void
algorithm__is_ours_where_onednn_is_off (void **state)
{
  TdTestChild child;

  setenv ("TAPEDECK_ONEDNN", "off", 1);
  child = recorded ();
  unsetenv ("TAPEDECK_ONEDNN");
  assert_contains (child.out, "algorithm=im2col:");
  assert_null (strstr (child.out, "onednn"));
  td_test_child_clear (&child);
}

/* The place in the stream of random numbers was that of the first call with these attributes.
 */
static void
attributes__of_what_draws_are_those_of_every_call (void **state)
{
  const char *program = td_test_program ("app/tapedeck"), *tape = td_test_tmp ("d.tdtape");
  TdTestChild child = TD_TEST_RUN (program, "run", "-f", "-o", tape,
                                   td_test_source ("tests/models/dropout.c"));

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (program, "cat", tape);
  assert_contains (child.out, "ratio=0.25");
  assert_contains (child.out, "ratio=0.5");
  assert_null (strstr (child.out, "offset="));
  assert_null (strstr (child.out, "seed="));
  td_test_child_clear (&child);
  td_test_program ("app/tapedeck-viz");
  child = td_test_shell ("%s diff %s:2 %s:3", program, tape, tape);
  assert_child_status (child, 1);
  assert_contains (child.out, "ratio=0.25");
  assert_null (strstr (child.out, "offset"));
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (algorithm__of_a_convolution_is_on_the_tape),
    td_test (algorithm__is_ours_where_onednn_is_off),
    td_test (attributes__of_what_draws_are_those_of_every_call),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
