/* Every row of op-cases in double and half precision, as a static function that is written as
 * C: it computes what the engine computes; and as ONNX of each opset: what is written is what
 * the standard allows, by onnx's own checker.
 *
 * SPDX-License-Identifier: MIT */
#include "going-out-rows.h"
#include "td-test.h"

#include <stdio.h>

enum
{
  FIRST_OPSET = 17,
  LAST_OPSET = 21
};
static const TdDtype runs[] = { TD_F64, TD_F16, TD_BF16 };

static void
go_out_as_onnx (Row *row, TdStatic *s, TdVar *const *x, TdVar *const *y)
{
  (void)x;
  (void)y;
  row_save (row, s, 1);
  for (int opset = FIRST_OPSET + 1; opset <= LAST_OPSET && row->said[1][0] == '\0'; opset++)
    {
      char ending[48];

      snprintf (ending, sizeof ending, "%d.onnx", opset);
      assert_int_equal (td_static_save_at (s, row_file (row, ending),
                                           (TdStaticSaveOpt){ .opset = opset }, NULL),
                        TD_OK);
    }
}

static int
all_go_out (void **state)
{
  if (td_test_setup (state) != 0)
    return -1;
  rows_make (runs, 3, go_out_as_onnx);
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

/* Check the models of the list, each "path\twhat", of these endings. */
static void
assert_allowed (const char *python, const char *list, const char *endings)
{
  static const char script[]
      = "import sys, onnx\n"
        "n = wrong = 0\n"
        "for line in open (sys.argv[1]):\n"
        "    path, what = line.rstrip ('\\n').split ('\\t')\n"
        "    for ending in sys.argv[2:]:\n"
        "        n += 1\n"
        "        try:\n"
        "            onnx.checker.check_model (path + ending, full_check=True)\n"
        "        except Exception as e:\n"
        "            wrong += 1\n"
        "            print (what, ending, str (e).strip ().replace ('\\n', ' ')[:300])\n"
        "print (n, 'models,', wrong, 'wrong')\n"
        "sys.exit (wrong != 0)\n";
  TdTestChild child;

  td_test_write_file (td_test_tmp ("check.py"), script, sizeof script - 1);
  child = td_test_shell ("cd '%s' && '%s' check.py '%s' %s 2>&1", td_test_tmp ("."), python,
                         list, endings);
  fputs (child.out, stdout); /* longer than a message may be */
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
onnx__of_each_type_is_what_the_standard_allows (void **state)
{
  const char *python = td_test_python ("onnx");
  FILE *list = fopen (td_test_tmp ("list"), "w");
  int n = 0;

  (void)state;
  assert_non_null (list);
  for (int i = 0; i < n_rows; i++)
    if (rows[i].said[1][0] == '\0')
      {
        n++;
        fprintf (list, "case%d\t%s %s of %s\n", i, rows[i].c->op, rows[i].c->variant,
                 td_dtype_name (rows[i].run));
      }
  fclose (list);
  assert_true (n > 1000);
  assert_allowed (python, "list", ".onnx .18.onnx .19.onnx .20.onnx .21.onnx");
}

/* What no row has: arrays that code makes, whose size is a number, and a recurrent layer. */
static void
with_arrays (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const TdDtype dtype = td_dtype (in[0]);

  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_add (in[0], td_arange (dtype, 1, 6, 1));
  out[1] = td_mul (in[0], td_randn (dtype, TD_SHAPE (5)));
  out[2] = td_sub (in[0], td_rand (dtype, TD_SHAPE (5)));
}

static void
onnx__of_arrays_and_recurrent_layers_is_what_the_standard_allows (void **state)
{
  enum
  {
    STEPS = 3
  };
  const char *python = td_test_python ("onnx");
  FILE *list = fopen (td_test_tmp ("list2"), "w");
  char name[64];

  (void)state;
  assert_non_null (list);
  for (int r = 0; r < 3; r++)
    TD_SCOPE ("call")
      {
        TdStatic *s = td_static_new_at (with_arrays, NULL, td_static_options (), NULL);
        TdVar *x = td_zeros (runs[r], TD_SHAPE (4, 5)), *y[STEPS], *all = NULL;
        TdOnnxOpt options = td_save_onnx_options ();
        TdLink *lstm = NULL;

        td_static_call (s, &x, 1, y, 3);
        snprintf (name, sizeof name, "arrays%d.onnx", r);
        assert_int_equal (td_static_save (s, td_test_tmp (name)), TD_OK);
        td_static_free (s);
        x = td_zeros (runs[r], TD_SHAPE (2, STEPS, 5));
        TD_USING (dtype, (int)runs[r])
          lstm = td_lstm_new_ (NULL, "lstm", 5, 4, NULL);
        TD_USING (keep_graph, 1)
          {
            for (int t = 0; t < STEPS; t++)
              y[t] = td_link (lstm, td_get_item (x, (TdSlice[]){ TD_ALL, TD_AT (t) }, 2));
            all = td_concat (y, STEPS, 0);
          }
        snprintf (name, sizeof name, "lstm%d.onnx", r);
        options.in = &x;
        options.n_in = 1;
        assert_int_equal (td_save_onnx_at (&all, 1, td_test_tmp (name), options, NULL), TD_OK);
        td_link_free (lstm);
        fprintf (list, "arrays%d\tarrays of %s\nlstm%d\tLSTM of %s\n", r,
                 td_dtype_name (runs[r]), r, td_dtype_name (runs[r]));
      }
  fclose (list);
  assert_allowed (python, "list2", ".onnx");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (onnx__of_each_type_is_what_the_standard_allows),
    cmocka_unit_test (onnx__of_arrays_and_recurrent_layers_is_what_the_standard_allows),
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
