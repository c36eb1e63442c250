/* A schedule as a file: others compute the same numbers from it.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "tapedeck-op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct
{
  TdLink *c1, *bn, *l1, *l2;
} Net;

/* A convolution net without its loss. */
static void
net_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_link (net->bn, td_link (net->c1, in[0]));

  (void)n_in;
  (void)n_out;
  h = td_max_pooling_2d (td_leaky_relu (h, .slope = 0.1), .ksize = { 2, 2 },
                         .stride = { 2, 2 });
  h = td_average_pooling_2d (td_add_scalar (h, 0.25), .ksize = { 2, 2 }, .stride = { 1, 1 });
  h = td_tanh (td_link (net->l1, h));
  h = td_mul (h, td_sigmoid (h));
  out[0] = td_softmax (td_link (net->l2, h), .axis = 1);
}

typedef struct
{
  TdLink *root;
  TdStatic *s;
  float x[2 * 3 * 9 * 9], y[2 * 4];
} Model;

/* A model whose schedule is there, with what it computes. */
static void
model_new (Model *m, Net *net)
{
  TdVar *x, *y;

  m->root = td_chain_new ("net");
  net->c1 = td_convolution_2d_new (m->root, "c1", 3, 4, 3, .pad = { 1, 1 });
  net->bn = td_batch_normalization_new (m->root, "bn", 4);
  net->l1 = td_linear_new (m->root, "l1", TD_INFER, 10);
  net->l2 = td_linear_new (m->root, "l2", 10, 4);
  for (size_t i = 0; i < sizeof m->x / sizeof *m->x; i++)
    m->x[i] = (float)((i * 31) % 41) / 20 - 1;
  m->s = td_static_new (net_forward, net, .name = "net");
  TD_USING (train, 0)
    TD_NO_BACKPROP
      TD_SCOPE ("call")
        {
          x = td_tensor (TD_F32, TD_SHAPE (2, 3, 9, 9), m->x);
          y = td_static_call1 (m->s, x);
          fill_params (m->root, 9);
          fill (td_link_param (net->bn, "avg_mean"), 3);
          y = td_static_call1 (m->s, x);
          assert_int_equal (td_static_info (m->s).n_replays, 1);
          assert_int_equal (td_read (y, m->y, sizeof m->y), TD_OK);
        }
}

static void
write_numbers (const char *path, const float *x, size_t bytes)
{
  FILE *f = fopen (path, "wb");

  assert_non_null (f);
  assert_int_equal (fwrite (x, bytes, 1, f), 1);
  fclose (f);
}

static void
assert_near (const float *a, const float *b, int n)
{
  for (int i = 0; i < n; i++)
    assert_float_equal (a[i], b[i], 2e-6);
}

static void
export__onnxruntime_computes_the_same_from_an_onnx_file (void **state)
{
  static const char script[]
      = "import sys, numpy, onnx, onnxruntime\n"
        "m = onnx.load (sys.argv[1])\n"
        "onnx.checker.check_model (m)\n"
        "s = onnxruntime.InferenceSession (sys.argv[1], providers=['CPUExecutionProvider'])\n"
        "x = numpy.fromfile (sys.argv[2], dtype=numpy.float32).reshape (2, 3, 9, 9)\n"
        "s.run (None, {'input0': x})[0].tofile (sys.argv[3])\n"
        "n = [n.op_type for n in m.graph.node]\n" /* to_layout, on a GPU, is Identity */
        "print (' '.join ([t for t in n[:-1] if t != 'Identity'] + n[-1:]))\n";
  const char *python = td_test_python ("onnxruntime");
  char model[512], x[512], y[512];
  float read[8];
  Model m;
  Net net;
  FILE *f;

  (void)state;
  model_new (&m, &net);
  snprintf (model, sizeof model, "%s", td_test_tmp ("net.onnx"));
  snprintf (x, sizeof x, "%s", td_test_tmp ("x.raw"));
  snprintf (y, sizeof y, "%s", td_test_tmp ("y.raw"));
  assert_int_equal (td_static_save (m.s, model), TD_OK);
  write_numbers (x, m.x, sizeof m.x);
  TdTestChild child = TD_TEST_RUN (python, "-c", script, model, x, y);
  assert_child_status (child, 0);
  assert_string_equal (child.out,
                       "Conv BatchNormalization LeakyRelu MaxPool Add AveragePool Flatten Gemm "
                       "Tanh Sigmoid Mul Gemm Softmax Identity\n");
  td_test_child_clear (&child);
  f = fopen (y, "rb");
  assert_non_null (f);
  assert_int_equal (fread (read, sizeof read, 1, f), 1);
  fclose (f);
  assert_near (read, m.y, 8);
}

static void
export__a_c_program_computes_the_same_without_anything_else (void **state)
{
  char source[512], x[512], y[512], command[4000];
  float read[8];
  Model m;
  Net net;
  FILE *f;

  (void)state;
  model_new (&m, &net);
  snprintf (source, sizeof source, "%s", td_test_tmp ("net.c"));
  snprintf (x, sizeof x, "%s", td_test_tmp ("cx.raw"));
  snprintf (y, sizeof y, "%s", td_test_tmp ("cy.raw"));
  assert_int_equal (td_static_save (m.s, source), TD_OK);
  write_numbers (x, m.x, sizeof m.x);
  snprintf (command, sizeof command,
            "cc -DMAIN -std=c99 -Wall -Wextra -Werror -O1 -o '%s.out' '%s' -lm && '%s.out' < "
            "'%s' > '%s'",
            source, source, source, x, y);
  TdTestChild child = TD_TEST_RUN ("sh", "-c", command);
  assert_string_equal (child.err, "");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  f = fopen (y, "rb");
  assert_non_null (f);
  assert_int_equal (fread (read, sizeof read, 1, f), 1);
  fclose (f);
  assert_near (read, m.y, 8);
}

static void
export__npz_holds_what_the_schedule_reads_and_dot_its_operations (void **state)
{
  static const char keys[]
      = "import sys, numpy\n"
        "z = numpy.load (sys.argv[1])\n"
        "print (' '.join (sorted (k + str (z[k].shape) for k in z.files)))\n";
  char path[512], text[20000];
  Model m;
  Net net;
  FILE *f;
  size_t n;

  (void)state;
  model_new (&m, &net);
  snprintf (path, sizeof path, "%s", td_test_tmp ("net.npz"));
  assert_int_equal (td_static_save (m.s, path), TD_OK);
  assert_python_says (keys, path,
                      "net/bn/avg_mean(4,) net/bn/avg_var(4,) net/bn/beta(4,) "
                      "net/bn/gamma(4,) net/c1/W(4, 3, 3, 3) net/c1/b(4,) net/l1/W(10, 64) "
                      "net/l1/b(10,) net/l2/W(4, 10) net/l2/b(4,)\n");
  snprintf (path, sizeof path, "%s", td_test_tmp ("net.dot"));
  assert_int_equal (td_static_save (m.s, path), TD_OK);
  f = fopen (path, "r");
  assert_non_null (f);
  n = fread (text, 1, sizeof text - 1, f);
  fclose (f);
  text[n] = '\0';
  assert_non_null (strstr (text, "digraph \"net\""));
  assert_non_null (strstr (text, "convolution_2d"));
  assert_non_null (strstr (text, "net/c1/W\\n(4, 3, 3, 3) f32"));
}

/* Operations of the program's own, which no format has. */
static TdStatus
own_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
own_forward (TdOpCall *call)
{
  for (int64_t i = 0; i < call->out[0].size; i++)
    ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i] + 1;
  return TD_OK;
}

#define OWN_CLASS(op_name)                                                                     \
  {                                                                                            \
    .name = op_name, .label = op_name, .group = "own", .formula = "x + 1", .n_in_min = 1,      \
    .n_in_max = 1, .n_out = 1, .flags = TD_OP_HOST | TD_OP_NO_GRAD, .infer = own_infer,        \
    .forward = own_forward,                                                                    \
  }
static const TdOpClass mine_class = OWN_CLASS ("mine"), yours_class = OWN_CLASS ("yours");

static void
with_own (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y;

  (void)self;
  (void)n_in;
  (void)n_out;
  td_apply (&mine_class, NULL, in, 1, &y, 1);
  y = td_add (y, in[1]);
  td_apply (&yours_class, NULL, &y, 1, out, 1);
}

/* --- what is drawn --- */

static void
with_noise (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0]
      = td_dropout (td_add (td_link (self, in[0]), td_randn (TD_F32, td_shape (in[0]))), 0.4);
}

/* What a program of the file name prints for these inputs, read as floats. */
static void
run_program (const char *source, const char *libraries, const void *x, size_t bytes, float *y,
             size_t n)
{
  char in[512];
  TdTestChild child;
  size_t n_got;
  char *got;

  snprintf (in, sizeof in, "%s.raw", source);
  td_test_write_file (in, x, bytes);
  child = td_test_shell ("cc -std=c99 -Wall -Wextra -Werror -O1 -o '%s.out' %s -lm && '%s.out' "
                         "'%s' < '%s' > '%s.got'",
                         source, libraries, source, td_test_tmp ("noise.bin"), in, source);
  assert_string_equal (child.err, "");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  snprintf (in, sizeof in, "%s.got", source);
  got = td_test_read_file (in, &n_got);
  assert_int_equal (n_got, n * sizeof *y);
  memcpy (y, got, n_got);
  free (got);
}

/* Two calls are as the first two of the engine; weights come from the file beside. */
static void
export__a_c_program_draws_the_numbers_of_the_stream (void **state)
{
  static const char calls[] = "#include \"noise.h\"\n#include <stdio.h>\n"
                              "int main (int argc, char **argv)\n{\n  float x[35], y[35];\n"
                              "  if (argc != 2 || noise_load (argv[1]) != 0 "
                              "|| fread (x, sizeof x, 1, stdin) != 1)\n    return 1;\n"
                              "  for (int i = 0; i < 2; i++)\n    {\n"
                              "      if (noise_run (x, y) != 0)\n        return 1;\n"
                              "      fwrite (y, sizeof y, 1, stdout);\n    }\n  return 0;\n}\n";
  TdLink *link = td_linear_new (NULL, "l", 5, 5);
  TdStatic *s = td_static_new (with_noise, link);
  float x[35], want[70], got[70];
  char source[512], both[2000];

  (void)state;
  for (int i = 0; i < 35; i++)
    x[i] = (float)(i % 7) - 3;
  for (int i = 0; i < 2; i++)
    TD_USING (train, 1)
      TD_SCOPE ("call")
        assert_int_equal (td_read (td_static_call1 (s, td_tensor (TD_F32, TD_SHAPE (7, 5), x)),
                                   want + 35 * i, sizeof want / 2),
                          TD_OK);
  assert_int_equal (td_static_info (s).n_replays, 1);
  snprintf (source, sizeof source, "%s", td_test_tmp ("noise.c"));
  assert_int_equal (td_static_save (s, source, .weights_beside = true), TD_OK);
  td_test_write_file (td_test_tmp ("calls.c"), calls, sizeof calls - 1);
  snprintf (both, sizeof both, "'%s' '%s'", source, td_test_tmp ("calls.c"));
  run_program (td_test_tmp ("calls.c"), both, x, sizeof x, got, 70);
  for (int i = 0; i < 70; i++)
    if (!(fabsf (got[i] - want[i]) <= 1e-6F))
      fail_msg ("number %d is %g, expected %g", i, (double)got[i], (double)want[i]);
  assert_true (memcmp (got, got + 35, sizeof got / 2) != 0);
  td_static_free (s);
  td_link_free (link);
}

/* --- before weights, and for another compiler --- */

static void
with_link (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_link (self, in[0]);
}

/* It prints what each call returned, and whether the result was written. */
static void
export__a_c_program_does_not_run_before_its_weights_are_loaded (void **state)
{
  static const char calls[]
      = "#include \"late.h\"\n#include <stdio.h>\n"
        "static void run (void)\n{\n  const float x[6] = { 1, 2, 3, 4, 5, 6 };\n"
        "  float y[4] = { 7, 7, 7, 7 };\n  const int r = late_run (x, y);\n\n"
        "  printf (\"%d %d\\n\", r, y[0] == 7);\n}\n\n"
        "int main (int argc, char **argv)\n{\n  (void)argc;\n  run ();\n"
        "  printf (\"%d\\n\", late_load (\"/nowhere\"));\n  run ();\n"
        "  printf (\"%d\\n\", late_load (argv[1]));\n  run ();\n  return 0;\n}\n";
  TdLink *link = td_linear_new (NULL, "l", 3, 2);
  TdStatic *s = td_static_new (with_link, link);
  TdTestChild child;
  char *header;
  size_t n;

  (void)state;
  TD_SCOPE ("call")
    td_static_call1 (s, td_zeros (TD_F32, TD_SHAPE (2, 3)));
  assert_int_equal (td_static_save (s, td_test_tmp ("late.c"), .weights_beside = true), TD_OK);
  header = td_test_read_file (td_test_tmp ("late.h"), &n);
  assert_non_null (strstr (header, "-1, and nothing is\n * computed, while no weights are"));
  free (header);
  td_test_write_file (td_test_tmp ("late_calls.c"), calls, sizeof calls - 1);
  child = td_test_shell ("cd '%s' && cc -std=c99 -Wall -Wextra -Werror -o late late.c "
                         "late_calls.c -lm && ./late late.bin",
                         td_test_tmp ("."));
  assert_string_equal (child.err, "");
  assert_child_status (child, 0);
  assert_string_equal (child.out, "-1 1\n-1\n-1 1\n0\n0 0\n");
  td_test_child_clear (&child);
  td_static_free (s);
  td_link_free (link);
}

/* Loops, each with what has none behind it. */
static void
with_scalars (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_cumsum (in[0], 1);
  out[1] = td_mean (in[0]);
  out[2] = td_flip (in[0], 1);
  out[3] = td_logsumexp (in[0]);
  out[4] = td_exp (td_swapaxes (in[0], 0, 1));
  out[5] = td_square (out[1]);
}

static void
export__a_c_program_is_clean_to_clang (void **state)
{
  TdTestChild child = td_test_shell ("command -v clang > /dev/null");
  const bool is_there = child.status == 0;
  TdStatic *s = td_static_new (with_scalars, NULL);

  (void)state;
  td_test_child_clear (&child);
  TD_SCOPE ("call")
    {
      TdVar *x = td_zeros (TD_F32, TD_SHAPE (3, 4)), *y[6];

      td_static_call (s, &x, 1, y, 6);
    }
  assert_int_equal (td_static_save (s, td_test_tmp ("scalars.c")), TD_OK);
  td_static_free (s);
  if (!is_there)
    skip ();
  child = td_test_shell ("cd '%s' && clang -std=c99 -Wall -Wextra -Werror -c scalars.c",
                         td_test_tmp ("."));
  assert_string_equal (child.err, "");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
with_sums (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_sum (in[0]);
  out[1] = td_max (in[0]);
  out[2] = td_min (in[0]);
  out[3] = td_prod (in[0]);
}

/* Whole numbers that doubles do not have, and a product that goes round. */
static void
export__a_c_program_reduces_whole_numbers_exactly (void **state)
{
  static const int64_t x[]
      = { 9007199254740993, -9007199254740995, 4611686018427387905, 9007199254740997 };
  TdStatic *s = td_static_new (with_sums, NULL);
  int64_t want[4];
  float got[8];
  char quoted[600];

  (void)state;
  TD_SCOPE ("call")
    {
      TdVar *in = td_tensor (TD_I64, TD_SHAPE (4), x), *y[4];

      td_static_call (s, &in, 1, y, 4);
      for (int i = 0; i < 4; i++)
        assert_int_equal (td_read (y[i], &want[i], sizeof want[i]), TD_OK);
    }
  assert_int_equal (want[0], 4620693217682128900);
  assert_int_equal (td_static_save (s, td_test_tmp ("sums.c")), TD_OK);
  snprintf (quoted, sizeof quoted, "-DMAIN '%s'", td_test_tmp ("sums.c"));
  run_program (td_test_tmp ("sums.c"), quoted, x, sizeof x, got, 8);
  assert_memory_equal (got, want, sizeof want);
  td_static_free (s);
}

static void
with_casts (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  static const TdDtype types[] = { TD_I32, TD_I64, TD_U8 };

  (void)self;
  (void)n_in;
  (void)n_out;
  for (int i = 0; i < 3; i++)
    out[i] = td_cast (td_cast (in[0], types[i]), TD_F32);
}

/* C leaves open what becomes of these as whole numbers. */
static void
export__a_c_program_casts_numbers_beyond_as_the_engine_does (void **state)
{
  static const float x[] = { NAN, INFINITY, -INFINITY, 3e9F, -3e9F, 1e30F, -7.9F, 300 };
  TdStatic *s = td_static_new (with_casts, NULL);
  float want[24], got[24];
  char quoted[600];

  (void)state;
  TD_SCOPE ("call")
    {
      TdVar *in = td_tensor (TD_F32, TD_SHAPE (8), x), *y[3];

      td_static_call (s, &in, 1, y, 3);
      for (int i = 0; i < 3; i++)
        assert_int_equal (td_read (y[i], want + 8 * i, sizeof want / 3), TD_OK);
    }
  assert_int_equal (td_static_save (s, td_test_tmp ("casts.c")), TD_OK);
  snprintf (quoted, sizeof quoted, "-DMAIN '%s'", td_test_tmp ("casts.c"));
  run_program (td_test_tmp ("casts.c"), quoted, x, sizeof x, got, 24);
  for (int i = 0; i < 24; i++)
    if (!(got[i] == want[i]))
      fail_msg ("number %d is %.9g, expected %.9g", i, (double)got[i], (double)want[i]);
  td_static_free (s);
}

/* A number that the code reads, which may decide what it does. */
static void
with_read (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  float number;

  (void)self;
  (void)n_in;
  (void)n_out;
  td_read (td_sum (in[0]), &number, sizeof number);
  out[0] = number > 0 ? td_relu (in[0]) : td_tanh (in[0]);
}

static void
export__code_that_a_file_cannot_have_is_named (void **state)
{
  static const char *const endings[] = { "c", "onnx" };
  TdStatic *s = td_static_new (with_read, NULL);

  (void)state;
  TD_SCOPE ("call")
    td_static_call1 (s, td_ones (TD_F32, TD_SHAPE (2, 3)));
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    {
      char name[32];

      snprintf (name, sizeof name, "read.%s", endings[i]);
      assert_int_equal (td_static_save (s, td_test_tmp (name)), TD_ERR_ARG);
      assert_non_null (
          strstr (said (TD_ERR_ARG),
                  " does not have numbers that the code reads at test-static-export.c:"));
      assert_int_not_equal (access (td_test_tmp (name), F_OK), 0);
    }
  td_static_free (s);
}

static void
export__other_opsets_are_refused (void **state)
{
  static const int opsets[] = { 0, 16, 22 };
  Model m;
  Net net;

  (void)state;
  model_new (&m, &net);
  for (size_t i = 0; i < sizeof opsets / sizeof *opsets; i++)
    {
      assert_int_equal (td_static_save (m.s, td_test_tmp ("old.onnx"), .opset = opsets[i]),
                        TD_ERR_ARG);
      assert_non_null (strstr (said (TD_ERR_ARG), "opset 17 to 21 expected"));
      assert_int_not_equal (access (td_test_tmp ("old.onnx"), F_OK), 0);
    }
}

static void
export__what_a_format_lacks_is_named (void **state)
{
  TdStatic *s, *never;

  (void)state;
  td_test_needs_cpu ("a device's schedule has no operations that the host computes");
  s = td_static_new (with_own, NULL);
  never = td_static_new (with_own, NULL);
  TD_ITERATION (0)
    {
      TdVar *in[] = { td_ones (TD_F32, TD_SHAPE (2, 3)), td_zeros (TD_F32, TD_SHAPE (2, 3)) };
      const char *message;
      TdVar *y;

      td_static_call (s, in, 2, &y, 1);
      assert_int_equal (td_static_save (s, td_test_tmp ("loss.onnx")), TD_ERR_ARG);
      message = said (TD_ERR_ARG);
      assert_non_null (strstr (message, "ONNX does not have mine at test-static-export.c:"));
      assert_non_null (strstr (message, ", yours at test-static-export.c:"));
      assert_int_not_equal (access (td_test_tmp ("loss.onnx"), F_OK), 0);
      assert_int_equal (td_static_save (s, td_test_tmp ("loss.onnx"), .custom_domains = true),
                        TD_OK);
      assert_int_equal (access (td_test_tmp ("loss.onnx"), F_OK), 0);
      assert_int_equal (td_static_save (s, td_test_tmp ("loss.c")), TD_ERR_ARG);
      message = said (TD_ERR_ARG);
      assert_non_null (
          strstr (message, "a C program does not have mine at test-static-export.c:"));
      assert_non_null (strstr (message, ", yours at test-static-export.c:"));
      assert_int_not_equal (access (td_test_tmp ("loss.c"), F_OK), 0);
      assert_int_not_equal (access (td_test_tmp ("loss.h"), F_OK), 0);
      assert_int_equal (td_static_save (s, "loss.txt"), TD_ERR_ARG);
      assert_non_null (strstr (said (TD_ERR_ARG), ".dot, .onnx, .npz or .c expected"));
      assert_int_equal (td_static_save (never, "loss.onnx"), TD_ERR_STATE);
      said (TD_ERR_STATE);
      assert_int_equal (td_static_save (s, "/nowhere/loss.dot"), TD_ERR_IO);
      said (TD_ERR_IO);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (export__onnxruntime_computes_the_same_from_an_onnx_file),
    engine_test (export__a_c_program_computes_the_same_without_anything_else),
    engine_test (export__a_c_program_draws_the_numbers_of_the_stream),
    engine_test (export__a_c_program_does_not_run_before_its_weights_are_loaded),
    engine_test (export__a_c_program_is_clean_to_clang),
    engine_test (export__a_c_program_reduces_whole_numbers_exactly),
    engine_test (export__a_c_program_casts_numbers_beyond_as_the_engine_does),
    engine_test (export__npz_holds_what_the_schedule_reads_and_dot_its_operations),
    engine_test (export__code_that_a_file_cannot_have_is_named),
    engine_test (export__other_opsets_are_refused),
    engine_test (export__what_a_format_lacks_is_named),
  };

  return cmocka_run_group_tests_name ("static_export", tests, NULL, NULL);
}
