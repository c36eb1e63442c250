/* `tapedeck run MODEL.onnx` and `tapedeck info MODEL.onnx`: what runs, on which inputs, under
 * which names, and what is said of models that cannot run.
 *
 * SPDX-License-Identifier: MIT */
#include "../engine/onnx-file.h"
#include "json-read.h"
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

static const float numbers[] = { 1, 2, 3, 4, 5, 6 };
static const int64_t batch_of_2[] = { -1, 2 }, three_of_2[] = { 3, 2 }, two[] = { 2 };

/* Two layers as PyTorch's exporter names them, of a table with three rows. */
static const char *
write_model (void)
{
  const char *path = td_test_tmp ("layers.onnx");
  OnnxFile f = { .opset = 13 };

  onnx_input (&f, "x", batch_of_2, 2);
  onnx_input_of (&f, "ids", 7, batch_of_2, 2);
  onnx_initializer (&f, "table", 1, three_of_2, 2, numbers, sizeof numbers);
  onnx_initializer (&f, "w", 1, two, 1, numbers, 2 * sizeof *numbers);
  onnx_node (&f, "/layers/layers.0/mul/Mul", "Mul", NULL, "x w", "a", NULL, 0);
  onnx_node (&f, "/layers/layers.0/Tanh", "Tanh", NULL, "a", "b", NULL, 0);
  onnx_node (&f, "/layers/layers.1/mul/Mul", "Mul", NULL, "b w", "c", NULL, 0);
  onnx_node (&f, "/layers/layers.1/Tanh_1", "Tanh", NULL, "c", "y", NULL, 0);
  onnx_node (&f, "/wte/Gather", "Gather", NULL, "table ids", "e", NULL, 0);
  onnx_output (&f, "y");
  onnx_output (&f, "e");
  onnx_write (&f, path);
  return path;
}

/* One of whose operators nothing is there, nor of its input. */
static const char *
write_lacking_model (void)
{
  const char *path = td_test_tmp ("lacking.onnx");
  OnnxFile f = { .opset = 13 };

  onnx_input_of (&f, "x", 3, two, 1);
  onnx_node (&f, "n1", "Det", NULL, "x", "u", NULL, 0);
  onnx_node (&f, "n2", "Relu", NULL, "u", "y", NULL, 0);
  onnx_output (&f, "y");
  onnx_write (&f, path);
  return path;
}

static TdTestChild
info_of (const char *path)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "info", path);

  assert_child_status (child, 0);
  return child;
}

/* Each whole type, made up: on the tape there is one iteration, and nothing before it. */
static void
run__makes_up_whole_numbers_before_the_first_iteration (void **state)
{
  static const struct
  {
    const char *name;
    int type;
  } inputs[] = { { "bytes", 2 }, { "halves", 6 }, { "longs", 7 }, { "truths", 9 } };
  const char *model = td_test_tmp ("bytes.onnx"), *tape = td_test_tmp ("bytes.tdtape");
  OnnxFile f = { .opset = 13 };
  TdTestChild child;

  (void)state;
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    {
      char out[16];

      snprintf (out, sizeof out, "y%zu", i);
      onnx_input_of (&f, inputs[i].name, inputs[i].type, two, 1);
      onnx_node (&f, out, "Identity", NULL, inputs[i].name, out, NULL, 0);
      onnx_output (&f, out);
    }
  onnx_write (&f, model);
  child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model);
  assert_child_status (child, 0);
  assert_contains (child.out, "input bytes (2) u8: made up, 0 or 1\n");
  assert_contains (child.out, "output y0 (2) u8\n");
  td_test_child_clear (&child);
  child = info_of (tape);
  assert_contains (child.out, "iterations       1\n");
  td_test_child_clear (&child);
}

/* What was asked wrongly is asked again under the same name. */
static void
run__that_is_asked_wrongly_leaves_no_tape (void **state)
{
  static const char *const wrong[][2] = { { "--input", "x=/nowhere.npy" },
                                          { "--input", "nothing=x.npy" },
                                          { "--size", "batch=many" },
                                          { "--colour", "red" } };
  const char *tape = td_test_tmp ("again.tdtape"), *model = write_model ();
  TdTestChild child;

  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    {
      child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model, wrong[i][0], wrong[i][1]);
      assert_child_status (child, 2);
      assert_int_not_equal (access (tape, F_OK), 0);
      td_test_child_clear (&child);
    }
  child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model, "--size", "batch=2");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
run__goes_forward_and_backward_once (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *model = write_model ();
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model, "--size", "batch=2");

  (void)state;
  assert_child_status (child, 0);
  assert_string_equal (child.out,
                       "input x (2, 2) f32: made up, normal (0, 1)\n"
                       "input ids (2, 2) i64: made up, from 0 to 2, as it indexes table\n"
                       "output y (2, 2) f32\n"
                       "output e (2, 2, 2) f32\n"
                       "3 gradients of the sum of the outputs, in inputs and parameters\n");
  td_test_child_clear (&child);
  child = info_of (tape);
  assert_contains (child.out, "iterations       1\n");
  assert_contains (child.out, "parameters       2\n");
  assert_contains (child.out, "exit             status 0\n");
  td_test_child_clear (&child);
}

static void
run__goes_as_often_as_it_is_told (void **state)
{
  const char *tape = td_test_tmp ("t.tdtape"), *model = write_model ();
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, "--iterations", "3", model);

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  child = info_of (tape);
  assert_contains (child.out, "iterations       3\n");
  assert_contains (child.out, "distinct graphs  1\n"); /* the same inputs each time */
  td_test_child_clear (&child);
}

/* Input and results of the run, which is recorded with values. */
static void
run__takes_inputs_from_files (void **state)
{
  const float x[] = { 0.5F, -0.25F };
  const char *tape = td_test_tmp ("t.tdtape"), *model = write_model ();
  char input[600], text[64];
  TdTestChild child;

  (void)state;
  snprintf (input, sizeof input, "x=%s", td_test_tmp ("x.npy"));
  td_init (NULL, NULL);
  td_save_npy (input + 2, td_tensor (TD_F32, TD_SHAPE (1, 2), x));
  assert_int_equal (td_finish (), 0);
  child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, "--level", "values", model, "--input",
                       input);
  assert_child_status (child, 0);
  snprintf (text, sizeof text, "input x (1, 2) f32: /");
  assert_contains (child.out, text);
  td_test_child_clear (&child);
#ifdef TD_WITH_VIZ
  child = TD_TEST_RUN (tapedeck (), "show", tape, "--view", "tensor", "--node", "#0",
                       "--format", "csv");
  assert_child_status (child, 0);
  assert_contains (child.out, "0.5,-0.5\n"); /* times 1, 2 */
  td_test_child_clear (&child);
#endif
}

static void
run__has_the_links_that_the_names_of_nodes_speak_of (void **state)
{
  static const char *const links[]
      = { "\"link\": \"layers/layers/0/mul\"", "\"link\": \"layers/layers/1/mul\"",
          "\"link\": \"layers/layers/0\"", "\"link\": \"layers/layers/1\"",
          "\"link\": \"layers/wte\"" };
  const char *tape = td_test_tmp ("t.tdtape"), *model = write_model ();
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "-o", tape, model);

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
#ifdef TD_WITH_VIZ
  child = TD_TEST_RUN (tapedeck (), "show", tape, "--view", "graph", "--format", "json",
                       "--fold", "all");
  assert_child_status (child, 0);
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    assert_contains (child.out, links[i]);
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "show", tape, "--view", "graph");
  assert_contains (child.out, "open 1 in 0: layers\nopen 2 in 1: 0\nopen 3 in 1: 1\n");
  td_test_child_clear (&child);
#else
  child = TD_TEST_RUN (tapedeck (), "cat", tape);
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    assert_contains (child.out, strchr (links[i], 'l') + 9);
  td_test_child_clear (&child);
#endif
}

#ifdef TD_WITH_VIZ
/* The size of a picture of PNG, as its header has it. */
static void
read_size (const char *path, unsigned *width, unsigned *height)
{
  size_t n;
  unsigned char *png = (unsigned char *)td_test_read_file (path, &n);

  assert_true (n > 24 && memcmp (png, "\x89PNG", 4) == 0);
  *width = (unsigned)png[18] << 8 | png[19];
  *height = (unsigned)png[22] << 8 | png[23];
  free (png);
}

/* Without arithmetic, and the second time without a run; whoever cannot run is no picture. */
static void
show__draws_a_model_as_small_as_is_asked (void **state)
{
  const char *model = write_model (), *picture = td_test_tmp ("model.png");
  unsigned width, height;
  TdTestChild child;

  (void)state;
  setenv ("XDG_CACHE_HOME", td_test_tmp ("cache"), 1);
  for (int turn = 0; turn < 2; turn++)
    {
      child = TD_TEST_RUN (tapedeck (), "show", model, "--view", "graph", "--format", "png",
                           "--fit", turn == 0 ? "64" : "128", "-o", picture);
      assert_child_status (child, 0);
      assert_string_equal (child.out, "");
      td_test_child_clear (&child);
      read_size (picture, &width, &height);
      assert_int_equal (width > height ? width : height, turn == 0 ? 64 : 128);
    }
  /* Its backward is not the file's: a small picture has all its room for the model. */
  for (int small = 0; small < 2; small++)
    {
      size_t n;
      char *svg;

      child = TD_TEST_RUN (tapedeck (), "show", model, "--view", "graph", "--format", "svg",
                           "--fit", small ? "128" : "4000", "-o", picture);
      assert_child_status (child, 0);
      td_test_child_clear (&child);
      svg = td_test_read_file (picture, &n);
      assert_contains (svg, "Forward");
      assert_null (strstr (svg, "Backward"));
      free (svg);
    }
  child = TD_TEST_RUN (tapedeck (), "show", write_lacking_model (), "--view", "graph", "-o",
                       picture);
  assert_child_status (child, 2);
  assert_contains (child.err, "not there: operator Det (node n1)");
  td_test_child_clear (&child);
  unsetenv ("XDG_CACHE_HOME");
}
#endif

/* Of one input alone, though the file gives both sizes one name. */
static void
run__takes_the_size_of_an_axis (void **state)
{
  TdTestChild child
      = TD_TEST_RUN (tapedeck (), "run", "--quiet", write_model (), "--size", "x.0=3");

  (void)state;
  assert_child_status (child, 0);
  assert_contains (child.out, "input x (3, 2) f32: made up");
  assert_contains (child.out, "input ids (1, 2) i64: made up");
  assert_contains (child.err, "size batch is 3 in input x and 1 in input ids\n");
  td_test_child_clear (&child);
}

static void
run__says_what_is_wrong_with_how_it_is_called (void **state)
{
  static const struct
  {
    const char *option, *value, *says;
  } cases[] = {
    { "--size", "bathc=2", "it has no open size bathc\n" },
    { "--size", "batch=two", "--size batch=two: a number expected\n" },
    { "--size", "batch", "--size: NAME=N expected\n" },
    { "--input", "z=x.npy", "it has no input z\n" },
    { "--input", "x=not-there.npy", "not-there.npy: No such file" },
    { "--seed", "3", "--seed: no such option of an ONNX model (--input, --size)\n" },
  };
  const char *model = write_model ();

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
      TdTestChild child
          = TD_TEST_RUN (tapedeck (), "run", "--quiet", model, cases[i].option, cases[i].value);

      assert_child_status (child, 2);
      assert_contains (child.err, cases[i].says);
      td_test_child_clear (&child);
    }
}

static void
run__lists_what_is_not_there (void **state)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "run", "--quiet", write_lacking_model ());

  (void)state;
  assert_child_status (child, 2);
  assert_contains (child.err, "not there: operator Det (node n1)\n");
  assert_contains (child.err, "not there: input x of int8\n");
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "run", "--quiet", td_test_tmp ("none.onnx"));
  assert_child_status (child, 127);
  td_test_child_clear (&child);
}

static void
info__says_what_a_model_has_and_what_is_not_there (void **state)
{
  TdTestChild child = info_of (write_model ());

  (void)state;
  assert_contains (child.out, "opset            13 (IR version 8)\n"
                              "graph            \n"
                              "input            x f32 (batch, 2)\n"
                              "input            ids i64 (batch, 2)\n"
                              "output           y f32 of any shape\n"
                              "output           e f32 of any shape\n"
                              "initializers     2, 8 numbers, 32 bytes\n"
                              "parameters       2, 8 numbers\n"
                              "nodes            5\n"
                              "       2         Mul\n"
                              "       2         Tanh\n"
                              "       1         Gather\n"
                              "not there        nothing\n");
  td_test_child_clear (&child);
  child = info_of (write_lacking_model ());
  assert_contains (child.out, "input            x int8 (2)\n");
  assert_contains (child.out, "not there        operator Det (node n1)\n");
  assert_null (strstr (child.out, "parameters"));
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--oom", write_model ());
  assert_child_status (child, 2);
  td_test_child_clear (&child);
  td_test_write_file (td_test_tmp ("bad.onnx"), "no model", 8);
  child = TD_TEST_RUN (tapedeck (), "info", td_test_tmp ("bad.onnx"));
  assert_child_status (child, 2);
  assert_contains (child.err, "it is not an ONNX model");
  td_test_child_clear (&child);
}

static void
info__is_json_as_well (void **state)
{
  TdTestChild child = TD_TEST_RUN (tapedeck (), "info", "--json", write_lacking_model ());

  (void)state;
  assert_child_status (child, 0);
  assert_contains (child.out, "\"opset\": 13,");
  assert_contains (
      child.out, "{\"name\": \"x\", \"type\": \"int8\", \"shape\": [2], \"optional\": false}");
  assert_contains (child.out, "\"parameters\": null,");
  assert_contains (child.out, "{\"name\": \"Det\", \"domain\": \"\", \"count\": 1}");
  assert_contains (child.out, "\"operator Det (node n1)\"");
  td_test_child_clear (&child);
}

/* What td_save_onnx writes of sizes, behind a model: an entry of its metadata each. */
static const char *
write_model_with_words (void)
{
  static const char words[] = "\x72\x14\x0a\x07"
                              "assumed"
                              "\x12\x09"
                              "one\nother"
                              "\x72\x16\x0a\x05"
                              "fixed"
                              "\x12\x0d"
                              "batch stays 4"
                              "\x72\x0c\x0a\x06"
                              "author"
                              "\x12\x02"
                              "me";
  const char *path = write_model ();
  FILE *f = fopen (path, "ab");

  assert_non_null (f);
  fwrite (words, 1, sizeof words - 1, f);
  fclose (f);
  return path;
}

static void
info__says_what_of_the_sizes_stays_or_was_assumed (void **state)
{
  TdTestChild child = info_of (write_model_with_words ());

  (void)state;
  assert_contains (child.out, "fixed            batch stays 4\n"
                              "assumed          one\n"
                              "assumed          other\n");
  assert_null (strstr (child.out, "author"));
  td_test_child_clear (&child);
  child = TD_TEST_RUN (tapedeck (), "info", "--json", write_model_with_words ());
  assert_contains (child.out, "\"fixed\": [\"batch stays 4\"]");
  assert_contains (child.out, "\"assumed\": [\"one\", \"other\"]");
  td_test_child_clear (&child);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (run__goes_forward_and_backward_once),
    td_test (run__makes_up_whole_numbers_before_the_first_iteration),
    td_test (run__that_is_asked_wrongly_leaves_no_tape),
    td_test (run__goes_as_often_as_it_is_told),
    td_test (run__takes_inputs_from_files),
    td_test (run__has_the_links_that_the_names_of_nodes_speak_of),
#ifdef TD_WITH_VIZ
    td_test (show__draws_a_model_as_small_as_is_asked),
#endif
    td_test (run__takes_the_size_of_an_axis),
    td_test (run__says_what_is_wrong_with_how_it_is_called),
    td_test (run__lists_what_is_not_there),
    td_test (info__says_what_a_model_has_and_what_is_not_there),
    td_test (info__is_json_as_well),
    td_test (info__says_what_of_the_sizes_stays_or_was_assumed),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
