/* Models in the programs of others.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-run.h"

#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *
run_onnx (const char *model, bool reference)
{
  static const char script[]
      = "import sys, glob, os, numpy, onnx, onnxruntime\n"
        "from onnx.reference import ReferenceEvaluator\n"
        "path = sys.argv[1]\n"
        "onnx.checker.check_model (path, full_check=True)\n"
        "m = onnx.load (path)\n"
        "runs = [onnxruntime.InferenceSession (path, providers=['CPUExecutionProvider'])]\n"
        "if sys.argv[2] == '1':\n"
        "    runs.append (ReferenceEvaluator (m))\n"
        "n = 0\n"
        "while glob.glob ('%s.%d.out*' % (path, n)):\n"
        "    load = lambda what, k: numpy.load ('%s.%d.%s%d.npy' % (path, n, what, k))\n"
        "    x = {i.name: load ('in', k) for k, i in enumerate (m.graph.input)}\n"
        "    for run in runs:\n"
        "        for k, got in enumerate (run.run (None, x)):\n"
        "            want = load ('out', k)\n"
        "            assert got.shape == want.shape and got.dtype == want.dtype, (n, k, "
        "got.shape, want.shape)\n"
        "            apart = numpy.abs (got - want) - 1e-5 * (1 + numpy.abs (want))\n"
        "            assert apart.size == 0 or apart.max () <= 0, (n, k, got, want)\n"
        "    n += 1\n"
        "info = lambda i: i.name + '(%s)' % ','.join (d.dim_param or str (d.dim_value) for d "
        "in i.type.tensor_type.shape.dim)\n"
        "print (n, 'runs')\n"
        "print (*[info (i) for i in m.graph.input], '->', *[info (i) for i in "
        "m.graph.output])\n"
        "print (*['%s=%s' % (e.key, e.value) for e in m.metadata_props], sep=';')\n"
        "print (*[k.name for k in m.graph.node])\n"
        "print (*sorted (i.name for i in m.graph.initializer))\n"
        "names = [k.name for k in m.graph.node]\n"
        "assert len (names) == len (set (names)) and all (names)\n";
  const char *python = td_test_python ("onnxruntime");
  TdTestChild child
      = TD_TEST_RUN (python, "-c", script, td_test_tmp (model), reference ? "1" : "0");
  char *out;

  assert_child_status (child, 0);
  out = strdup (child.out);
  td_test_child_clear (&child);
  assert_non_null (out);
  return out;
}

void
keep_case (const char *model, int k, TdVar *const *in, int n_in, TdVar *const *out, int n_out)
{
  char name[128];

  for (int i = 0; i < n_in + n_out; i++)
    {
      snprintf (name, sizeof name, "%s.%d.%s%d.npy", model, k, i < n_in ? "in" : "out",
                i < n_in ? i : i - n_in);
      td_save_npy (td_test_tmp (name), i < n_in ? in[i] : out[i - n_in]);
    }
  assert_null (td_error ());
}
