/* `tapedeck eval`: its command line, files and errors.  What functions compute is compared with
 * NumPy in eval-values.py.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *
tapedeck (void)
{
  return td_test_program ("app/tapedeck");
}

/* Write `values` as an array of f32 into the test's folder. */
static const char *
array (const char *name, TdShape shape, const float *values)
{
  const char *path = td_test_tmp (name);

  assert_int_equal (td_save_npy (path, td_tensor (TD_F32, shape, values)), TD_OK);
  return path;
}

static void
assert_file (const char *name, TdShape shape, const float *values)
{
  TdVar *v = td_load_npy (td_test_tmp (name));
  TdShape got = td_shape (v);
  float numbers[64];

  assert_null (td_error ());
  assert_int_equal (got.ndim, shape.ndim);
  for (int i = 0; i < shape.ndim; i++)
    assert_int_equal (got.dim[i], shape.dim[i]);
  assert_int_equal (td_read (v, numbers, (size_t)td_size (v) * sizeof *numbers), TD_OK);
  for (int64_t i = 0; i < td_size (v); i++)
    assert_true (numbers[i] == values[i]);
}

static void
eval__writes_outputs_and_gradients (void **state)
{
  const char *x = array ("x.npy", TD_SHAPE (2, 2), (float[]){ 1, -2, 3, -4 });
  const char *gy = array ("gy.npy", TD_SHAPE (2, 2), (float[]){ 5, 6, 7, 8 });
  TdTestChild child = TD_TEST_RUN (tapedeck (), "eval", "mul", "--in", x, "--in", gy, "--gy",
                                   gy, "-o", td_test_tmp ("made"));

  (void)state;
  assert_child_status (child, 0);
  assert_string_equal (child.err, "");
  assert_file ("made/out0.npy", TD_SHAPE (2, 2), (float[]){ 5, -12, 21, -32 });
  assert_file ("made/gin0.npy", TD_SHAPE (2, 2), (float[]){ 25, 36, 49, 64 });
  assert_file ("made/gin1.npy", TD_SHAPE (2, 2), (float[]){ 5, -12, 21, -32 });
  td_test_child_clear (&child);
}

static void
eval__numbers_gradients_by_their_place_among_the_inputs (void **state)
{
  const char *W = array ("W.npy", TD_SHAPE (3, 1), (float[]){ 1, 2, 3 });
  const char *gy = array ("gy.npy", TD_SHAPE (2, 1), (float[]){ 10, 20 });
  const char *x = td_test_tmp ("x.npy");
  TdTestChild child;

  (void)state;
  td_save_npy (x, td_tensor (TD_I32, TD_SHAPE (2), (int32_t[]){ 2, 0 }));
  child = TD_TEST_RUN (tapedeck (), "eval", "embed_id", "--in", x, "--in", W, "--gy", gy, "-o",
                       td_test_tmp ("made"));
  assert_child_status (child, 0);
  assert_file ("made/out0.npy", TD_SHAPE (2, 1), (float[]){ 3, 1 });
  assert_file ("made/gin1.npy", TD_SHAPE (3, 1), (float[]){ 20, 0, 10 });
  assert_int_not_equal (access (td_test_tmp ("made/gin0.npy"), F_OK), 0);
  td_test_child_clear (&child);
}

static void
eval__calls_an_operation_that_is_no_function_by_its_class (void **state)
{
  const char *y = array ("y.npy", TD_SHAPE (3), (float[]){ 0, 2, 0 });
  const char *gy = array ("gy.npy", TD_SHAPE (3), (float[]){ 4, 5, 6 });
  TdTestChild child = TD_TEST_RUN (tapedeck (), "eval", "relu_grad", "--in", y, "--in", gy,
                                   "-o", td_test_tmp ("made"));

  (void)state;
  assert_child_status (child, 0);
  assert_file ("made/out0.npy", TD_SHAPE (3), (float[]){ 0, 5, 0 });
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "eval", "add_scalar", "--in", y, "--attr", "value=1.5",
                       "-o", td_test_tmp ("made"));
  assert_child_status (child, 0);
  assert_file ("made/out0.npy", TD_SHAPE (3), (float[]){ 1.5F, 3.5F, 1.5F });
  td_test_child_clear (&child);
}

static void
eval__takes_slices_as_python_writes_them (void **state)
{
  static const struct
  {
    const char *slices;
    TdShape shape;
    float values[4];
  } cases[] = {
    { "slices=1", { 1, { 3 } }, { 3, 4, 5 } },
    { "slices=:, -1", { 1, { 2 } }, { 2, 5 } },
    { "slices=::-1,0:3:2", { 2, { 2, 2 } }, { 3, 5, 0, 2 } },
    { "slices=...,1", { 1, { 2 } }, { 1, 4 } },
    { "slices=None,0,1:", { 2, { 1, 2 } }, { 1, 2 } },
  };
  const char *x = array ("x.npy", TD_SHAPE (2, 3), (float[]){ 0, 1, 2, 3, 4, 5 });

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child = TD_TEST_RUN (tapedeck (), "eval", "get_item", "--in", x, "--attr",
                                       cases[i].slices, "-o", td_test_tmp ("made"));

      assert_child_status (child, 0);
      assert_file ("made/out0.npy", cases[i].shape, cases[i].values);
      td_test_child_clear (&child);
    }
}

static void
eval__checks_gradients_against_differences (void **state)
{
  const char *x = array ("x.npy", TD_SHAPE (4), (float[]){ -1, 0.5F, 2, 3 });
  TdTestChild child = TD_TEST_RUN (tapedeck (), "eval", "tanh", "--in", x, "--check");

  (void)state;
  assert_child_status (child, 0);
  assert_string_equal (child.out, "gradient check: first order agrees with differences\n"
                                  "gradient check: second order agrees with differences\n");
  td_test_child_clear (&child);
  /* At its kink relu has no derivative: that is said, with the slope to each side. */
  x = array ("kink.npy", TD_SHAPE (2), (float[]){ 1, 0 });
  child = TD_TEST_RUN (tapedeck (), "eval", "relu", "--in", x, "--check");
  assert_child_status (child, 1);
  assert_contains (child.err, "input 0 at (1) lies at a kink: slope 0 to its left, 0.");
  td_test_child_clear (&child);
}

static void
eval__prints_what_is_not_written (void **state)
{
  const char *x = array ("x.npy", TD_SHAPE (2, 2), (float[]){ 1, 2.5F, -3, 4 });
  TdTestChild child = TD_TEST_RUN (tapedeck (), "eval", "transpose", "--in", x);

  (void)state;
  assert_child_status (child, 0);
  assert_string_equal (child.out, "out0 (2, 2) f32\n  1 -3\n  2.5 4\n");
  td_test_child_clear (&child);
}

static void
eval__says_in_one_line_what_is_wrong (void **state)
{
  const char *x = array ("x.npy", TD_SHAPE (2, 3), NULL);
  const char *big = array ("big.npy", TD_SHAPE (4, 4), NULL), *tmp = td_test_tmp (".");
  static const char cut[] = "\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'";
  const struct
  {
    const char *arguments;
    int status;
    const char *says;
  } cases[] = {
    { "relux --in x.npy", 2, "eval: relux: no such operation" },
    { "relu", 2, "eval: relu: 1 input expected (x), got 0" },
    { "relu --in x.npy --in x.npy", 2, "1 input expected" },
    { "linear --in x.npy", 2, "eval: linear: 2 to 3 inputs expected (x, W, [b]), got 1" },
    { "relu --in x.npy --attr slope=1", 2, "relu has no attribute slope and takes none" },
    { "clip --in x.npy --attr max=1", 2, "clip has no attribute max; it has x_min, x_max" },
    { "clip --in x.npy --attr x_min=1", 2, "clip: --attr x_max=... is missing" },
    { "clip --in x.npy --attr x_min=a --attr x_max=1", 2, "x_min=a: a number expected" },
    { "sum --in x.npy --attr axis=1.5", 2, "axis=1.5: whole numbers" },
    { "sum --in x.npy --attr keepdims=maybe", 2, "keepdims=maybe: true or false expected" },
    { "cast --in x.npy --attr typ=f3", 2, "typ=f3: an element type" },
    { "softmax --in x.npy --attr axis=99999999999999999999", 2, "a whole number expected" },
    { "get_item --in x.npy --attr slices=a", 2, "attribute slices: slices such as" },
    { "relu --in nowhere.npy", 2, "nowhere.npy: No such file" },
    { "relu --in .", 2, ".: it is not a file" },
    { "relu --in cut.npy", 2, "cut.npy: it is not an npy array" },
    { "relu --in x.npy --gy x.npy --gy x.npy", 2, "one --gy for each of 1 outputs" },
    { "relu --in x.npy --gy big.npy", 2, "big.npy: the output's shape (2, 3) expected" },
    { "relu --what", 2, "--what: no such option" },
    { "relu --in", 2, "--in: no such option, or its value is missing" },
    { "--check", 2, "an operation expected" },
    { "relu --in x.npy -o x.npy/y", 2, "x.npy/y: Not a directory" },
    { "max --in x.npy --attr axis=99999999999", 2, "axis: a number is too large" },
    { "reshape --in x.npy --attr shape=1,1,1,1,1,1,1,1,1", 2, "at most 8 sizes expected" },
    /* a list in a class's own struct, where other attributes lie behind it */
    { "resize_images_grad --in x.npy --attr input_shape=1,1,1,1,1,1,1,1,1", 2,
      "input_shape: at most 2 numbers expected, got 9" },
    { "resize_images_grad --in x.npy --attr input_shape=4,4,4", 2, "at most 2 numbers" },
    { "softmax_grad --in x.npy --in x.npy --attr axis=2", 1, "0 <= axis < y.ndim expected" },
    { "softmax --in x.npy --attr axis=5", 1, "softmax: " },
    { "add --in x.npy --in big.npy", 1, "a (2, 3) f32, b (4, 4) f32" },
    { "argmax --in x.npy --attr axis=7", 1, "argmax: " },
  };

  (void)state;
  (void)x;
  (void)big;
  td_test_write_file (td_test_tmp ("cut.npy"), cut, sizeof cut - 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      char command[9000];
      TdTestChild child;
      const char *line_end;

      snprintf (command, sizeof command, "cd '%s' && exec '%s' eval %s", tmp, tapedeck (),
                cases[i].arguments);
      child = TD_TEST_RUN ("sh", "-c", command);
      assert_child_status (child, cases[i].status);
      assert_contains (child.err, cases[i].says);
      assert_int_equal (strncmp (child.err, "tapedeck: ", 10), 0);
      line_end = strchr (child.err, '\n');
      assert_true (line_end != NULL && line_end[1] == '\0');
      assert_string_equal (child.out, "");
      td_test_child_clear (&child);
    }
}

static void
eval__lists_and_describes_operations (void **state)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "eval", "--list");

  (void)state;
  assert_child_status (child, 0);
  assert_contains (child.out, "\nclip (x; x_min, x_max)  ");
  assert_contains (child.out, "\nlinear (x, W, [b]; n_batch_axes=1)  x @ W.T + b\n");
  assert_contains (child.out, "\nrelu_grad (");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "eval", "max_pooling_2d", "--help");
  assert_child_status (child, 0);
  assert_contains (child.out, "stride=...  whole numbers by commas; default None");
  assert_contains (child.out, "ksize=...  whole numbers by commas; must be given");
  td_test_child_clear (&child);
}

static int
setup (void **state)
{
  td_init (NULL, NULL);
  return td_test_setup (state);
}

static int
teardown (void **state)
{
  return td_test_teardown (state) + td_finish ();
}

#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    row (eval__writes_outputs_and_gradients),
    row (eval__numbers_gradients_by_their_place_among_the_inputs),
    row (eval__calls_an_operation_that_is_no_function_by_its_class),
    row (eval__takes_slices_as_python_writes_them),
    row (eval__checks_gradients_against_differences),
    row (eval__prints_what_is_not_written),
    row (eval__says_in_one_line_what_is_wrong),
    row (eval__lists_and_describes_operations),
  };

  return cmocka_run_group_tests_name ("eval", tests, NULL, NULL);
}
