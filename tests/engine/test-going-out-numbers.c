/* Every row of op-cases as an ONNX file, with numbers that others seldom try: NaN and infinity
 * in each input, and doubles and halves.  What is written computes what the engine computes.
 *
 * onnxruntime runs it where it has the operator for the type, else onnx's reference.
 *
 * SPDX-License-Identifier: MIT */
#include "going-out-rows.h"
#include "td-test.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const TdDtype runs[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };

/* All arrays one behind the other, and a line for each call: the model, the type, what it is,
 * and of each array dtype:shape:where. */
static FILE *numbers, *calls;
static int n_planted;

static void
list_call (const Row *row, const Row *of, const char *with)
{
  fprintf (calls, "case%d.onnx\t%s\t%s %s%s", (int)(row - rows), td_dtype_name (row->run),
           row->c->op, row->c->variant, with);
  for (int k = 0; k < row->c->n_in + row->c->n_out; k++)
    {
      fprintf (calls, "\t%s%d:%s:", k < row->c->n_in ? "input" : "output",
               k < row->c->n_in ? k : k - row->c->n_in, td_dtype_name (row->dtype[k]));
      for (int d = 0; d < row->shape[k].ndim; d++)
        fprintf (calls, "%s%" PRId64, d > 0 ? "," : "", row->shape[k].dim[d]);
      fprintf (calls, ":%ld", ftell (numbers));
      fwrite (of->arrays[k], 1, of->bytes[k], numbers);
    }
  fputc ('\n', calls);
}

/* Where others do otherwise than the engine with numbers that are none, as GOING-OUT.md says:
 * of infinity alone, or of NaN alone, or both. */
enum
{
  OF_NAN = 1,
  OF_INFINITY = 2,
  OF_BOTH = 3
};
static const struct
{
  const char *op;
  int input, of;
} left_open[] = {
  /* products with constant matrices */
  { "adaptive_average_pooling_2d_grad", 0, OF_BOTH },
  { "average_pooling_2d_grad", 0, OF_BOTH },
  { "average_pooling_nd_grad", 0, OF_BOTH },
  { "im2col_grad", 0, OF_BOTH },
  { "resize_images_grad", 0, OF_BOTH },
  { "unpooling_2d_grad", 0, OF_BOTH },
  /* onnxruntime's maxima leave NaN out */
  { "accuracy", 0, OF_NAN },
  { "argmax", 0, OF_NAN },
  { "argmin", 0, OF_NAN },
  { "max", 0, OF_NAN },
  { "max_pooling_2d", 0, OF_NAN },
  { "max_pooling_nd", 0, OF_NAN },
  { "maxout", 0, OF_NAN },
  { "min", 0, OF_NAN },
  /* no whole number is any of them */
  { "cast", 0, OF_BOTH },
  /* sums and products in another order: infinity by 0, or from infinity */
  { "batch_normalization_grad", 1, OF_INFINITY },
  { "fixed_batch_normalization", 1, OF_INFINITY },
  { "prelu", 1, OF_BOTH },
  { "scaled_dot_product_attention", 0, OF_INFINITY },
  { "scaled_dot_product_attention_grad", 0, OF_INFINITY },
  { "local_response_normalization", 0, OF_BOTH },
};
static bool met[sizeof left_open / sizeof *left_open];

static bool
is_left_open (const Row *row, const Planting *p)
{
  for (size_t i = 0; i < sizeof left_open / sizeof *left_open; i++)
    if (strcmp (left_open[i].op, row->c->op) == 0 && left_open[i].input == p->input
        && (left_open[i].of & (isnan (p->number) ? OF_NAN : OF_INFINITY)) != 0)
      return met[i] = true;
  return false;
}

static void
list_planted (const Row *planted, const Planting *p, void *user)
{
  char with[60];

  if (is_left_open (user, p))
    return;
  snprintf (with, sizeof with, ", %g in input %d%s", p->number, p->input,
            p->first ? ", first" : "");
  list_call (user, planted, with);
}

static void
go_out_as_onnx (Row *row, TdStatic *s, TdVar *const *x, TdVar *const *y)
{
  (void)x, (void)y;
  row_save (row, s, 1);
}

static int
all_go_out (void **state)
{
  if (td_test_setup (state) != 0)
    return -1;
  rows_make (runs, 4, go_out_as_onnx);
  numbers = fopen (td_test_tmp ("numbers"), "wb");
  calls = fopen (td_test_tmp ("calls"), "w");
  if (numbers == NULL || calls == NULL)
    return -1;
  for (int i = 0; i < n_rows; i++)
    if (rows[i].said[1][0] == '\0' && !rows[i].random)
      {
        list_call (&rows[i], &rows[i], "");
        if (rows[i].run == TD_F32)
          n_planted += row_each_planted (&rows[i], list_planted, &rows[i]);
      }
  fclose (numbers);
  return fclose (calls);
}

static int
forget (void **state)
{
  rows_forget ();
  return td_test_teardown (state);
}

/* Run the calls whose lines have this type: those with planted numbers, or the others. */
static void
assert_same_elsewhere (const char *type, bool planted, const char *tolerance)
{
  static const char script[]
      = "import sys, numpy, ml_dtypes, onnx, onnxruntime\n"
        "from onnx.reference import ReferenceEvaluator\n"
        "folder, type, planted, tolerance = sys.argv[1:5]\n"
        "planted, tolerance = planted == '1', float (tolerance)\n"
        "types = dict (f32='float32', f64='float64', f16='float16', bf16=ml_dtypes.bfloat16, "
        "i32='int32', i64='int64', u8='uint8', bool='bool')\n"
        "numbers = open (folder + '/numbers', 'rb').read ()\n"
        "o = onnxruntime.SessionOptions ()\n"
        "o.log_severity_level = 4\n"
        "def array (text):\n"
        "    name, dtype, shape, at = text.split (':')\n"
        "    shape = [int (d) for d in shape.split (',') if d]\n"
        "    return name, numpy.frombuffer (numbers, types[dtype], int (numpy.prod (shape, "
        "dtype=int)), int (at)).reshape (shape)\n"
        "models = {}\n"
        "def model (path):\n"
        "    if path in models: return models[path]\n"
        "    m = onnx.load (folder + '/' + path)\n"
        "    try:\n"
        "        s = onnxruntime.InferenceSession (m.SerializeToString (), o, "
        "providers=['CPUExecutionProvider']) if type != 'bf16' else None\n"
        "    except Exception as e:\n"
        "        if 'NOT_IMPLEMENTED' not in str (e): raise\n"
        "        s = None\n"
        "    models[path] = m, s, None if s else ReferenceEvaluator (m)\n"
        "    return models[path]\n"
        "n = wrong = reference = 0\n"
        "for line in open (folder + '/calls'):\n"
        "    path, dtype, what, *arrays = line.rstrip ('\\n').split ('\\t')\n"
        "    if dtype != type or (' in input ' in what) != planted: continue\n"
        "    n += 1\n"
        "    arrays = dict (array (a) for a in arrays)\n"
        "    try:\n"
        "        m, s, r = model (path)\n"
        "        x = {i.name: arrays[i.name] for i in m.graph.input}\n"
        "        if s is None and any (k.op_type == 'LRN' or (k.op_type == 'ConvTranspose' and "
        "a.name == 'group' and a.i > 1) for k in m.graph.node for a in k.attribute):\n"
        "            continue\n"
        "        reference += s is None\n"
        "        try:\n"
        "            got = (s or r).run (None, x)\n"
        "        except Exception as e:\n"
        "            if 'is not supported' not in str (e): raise\n"
        "            r = ReferenceEvaluator (m)\n"
        "            s, reference = None, reference + 1\n"
        "            got = r.run (None, x)\n"
        "        for k, g in enumerate (got):\n"
        "            w, g = arrays['output%d' % k], numpy.asarray (g)\n"
        "            assert g.shape == w.shape and g.dtype == w.dtype, (g.shape, g.dtype, "
        "w.shape, w.dtype)\n"
        "            if w.dtype.kind not in 'iub': g, w = g.astype ('float64'), w.astype "
        "('float64')\n"
        "            t = tolerance if s else max (tolerance, 1e-6)\n"
        "            same = numpy.isclose (g, w, t, t, equal_nan=True)\n"
        "            assert same.all (), (k, g[~same][:4], w[~same][:4])\n"
        "    except Exception as e:\n"
        "        wrong += 1\n"
        "        print (type, what + ':', '' if s else 'reference:', str (e).replace ('\\n', ' "
        "')[:300])\n"
        "print (n, 'calls of', type + ',', reference, 'of them in the reference,', wrong, "
        "'wrong')\n"
        "sys.exit (wrong != 0)\n";
  const char *python = td_test_python ("onnxruntime");
  TdTestChild child;

  td_test_write_file (td_test_tmp ("run.py"), script, sizeof script - 1);
  child = td_test_shell ("'%s' '%s' '%s' %s %d %s 2>&1", python, td_test_tmp ("run.py"),
                         td_test_tmp ("."), type, planted, tolerance);
  fputs (child.out, stdout); /* longer than a message may be */
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
onnx__of_nan_and_infinity_computes_the_same (void **state)
{
  (void)state;
  assert_same_elsewhere ("f32", true, "1e-5");
  assert_true (n_planted > 3600);
  for (size_t i = 0; i < sizeof left_open / sizeof *left_open; i++)
    assert_true (met[i]);
}

static void
onnx__of_doubles_computes_the_same (void **state)
{
  (void)state;
  assert_same_elsewhere ("f64", false, "1e-9");
}

static void
onnx__of_float16_computes_the_same (void **state)
{
  (void)state;
  assert_same_elsewhere ("f16", false, "1e-2");
}

static void
onnx__of_bfloat16_computes_the_same (void **state)
{
  (void)state;
  assert_same_elsewhere ("bf16", false, "6e-2");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (onnx__of_nan_and_infinity_computes_the_same),
    cmocka_unit_test (onnx__of_doubles_computes_the_same),
    cmocka_unit_test (onnx__of_float16_computes_the_same),
    cmocka_unit_test (onnx__of_bfloat16_computes_the_same),
  };
  int failed;

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  failed = cmocka_run_group_tests_name ("going-out-numbers", tests, all_go_out, forget);
  return td_finish () != 0 || failed != 0;
}
