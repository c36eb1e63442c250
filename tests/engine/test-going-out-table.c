/* Every row of op-cases as a static function that is saved as C and as ONNX: what is written
 * computes the same elsewhere, and what is refused stands in GOING-OUT.md, with the reason.
 *
 * C is compiled with warnings as errors; ONNX is checked by onnx's own checker and run by
 * onnxruntime and by onnx's reference, where a Python has them.  TD_UPDATE_GOLDEN=1 writes the
 * list.
 *
 * SPDX-License-Identifier: MIT */
#include "going-out-rows.h"
#include "td-test.h"
#include "train/onnx/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  FIRST_OPSET = 17,
  LAST_OPSET = 21
};
static int n_batches;

/* --- other batches --- */

/* The rows of an input again and again, so that there are n of them along its open axes: what
 * is an index stays one. */
static TdVar *
of_another_batch (const Row *row, int k, const TdOnnxInfo *info, const TdShape *was, int64_t n)
{
  const size_t bytes = td_dtype_bytes (row->dtype[k]);
  TdShape shape = *was;
  int64_t size = 1;
  char *numbers;
  TdVar *v;

  for (int d = 0; d < shape.ndim; d++)
    {
      if (info->symbol[d] != NULL)
        shape.dim[d] = n;
      size *= shape.dim[d];
    }
  numbers = calloc ((size_t)size + 1, bytes);
  for (int64_t i = 0; i < size; i++)
    {
      int64_t rest = i, from = 0, step = 1;

      for (int d = shape.ndim - 1; d >= 0; d--)
        {
          from += rest % shape.dim[d] % was->dim[d] * step;
          rest /= shape.dim[d];
          step *= was->dim[d];
        }
      memcpy (numbers + (size_t)i * bytes, (char *)row->arrays[k] + (size_t)from * bytes,
              bytes);
    }
  v = td_tensor (row->dtype[k], shape, numbers);
  free (numbers);
  return v;
}

/* What the engine computes of other batches than the one that went out.  A row whose code has
 * the size as a number fails in the engine, too. */
static void
call_other_batches (Row *row)
{
  static const int64_t sizes[] = { 1, 3, 7 };
  TdOnnxLook *look;
  char why[256];
  int n_open = 0;

  /* The code of broadcast_to has the size as a number, which one row fits by chance. */
  if (row->said[1][0] != '\0' || row->random || strcmp (row->c->op, "broadcast_to") == 0)
    return;
  look = td__onnx_look (row_file (row, "onnx"), why, sizeof why);
  assert_non_null (look);
  assert_int_equal (look->n_in, row->c->n_in);
  for (int k = 0; k < look->n_in; k++)
    for (int d = 0; d < look->in[k].info.ndim; d++)
      n_open += look->in[k].info.symbol[d] != NULL;
  row->is_open = n_open > 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && n_open > 0 && td_error () == NULL; i++)
    TD_SCOPE ("batch")
      {
        TdVar *x[6], *y[3] = { NULL };
        char ending[48];

        for (int k = 0; k < row->c->n_in; k++)
          {
            const TdOnnxInfo *info = &look->in[k].info;

            assert_int_equal (info->ndim, row->shape[k].ndim);
            x[k] = of_another_batch (row, k, info, &row->shape[k], sizes[i]);
          }
        row->c->call (x, y);
        for (int k = 0; k < row->c->n_out && td_error () == NULL; k++)
          {
            snprintf (ending, sizeof ending, "batch%d.out%d.npy", (int)sizes[i], k);
            td_save_npy (row_file (row, ending), y[k]);
          }
        for (int k = 0; k < row->c->n_in && td_error () == NULL; k++)
          {
            snprintf (ending, sizeof ending, "batch%d.in%d.npy", (int)sizes[i], k);
            td_save_npy (row_file (row, ending), x[k]);
          }
        n_batches += td_error () == NULL;
        td_error_clear ();
      }
  td_error_clear ();
  td__onnx_look_free (look);
}

/* What ONNX needs of a row: its numbers as files, and models of each opset. */
static void
go_out_as_onnx (Row *row, TdStatic *s, TdVar *const *x, TdVar *const *y)
{
  char ending[48];

  if (row->run != TD_F32)
    return;
  for (int k = 0; k < row->c->n_in; k++)
    {
      snprintf (ending, sizeof ending, "in%d.npy", k);
      td_save_npy (row_file (row, ending), x[k]);
    }
  for (int k = 0; k < row->c->n_out; k++)
    {
      snprintf (ending, sizeof ending, "out%d.npy", k);
      td_save_npy (row_file (row, ending), y[k]);
    }
  assert_null (td_error ());
  row_save (row, s, 1);
  for (int opset = FIRST_OPSET + 1; opset <= LAST_OPSET && row->said[1][0] == '\0'; opset++)
    {
      snprintf (ending, sizeof ending, "%d.onnx", opset);
      assert_int_equal (td_static_save_at (s, row_file (row, ending),
                                           (TdStaticSaveOpt){ .opset = opset }, NULL),
                        TD_OK);
    }
  call_other_batches (row);
}

/* C is written of every type, and run in test-going-out-types.c. */
static int
all_go_out (void **state)
{
  static const TdDtype runs[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };

  if (td_test_setup (state) != 0)
    return -1;
  rows_make (runs, 4, go_out_as_onnx);
  return 0;
}

static int
forget (void **state)
{
  rows_forget ();
  return td_test_teardown (state);
}

static void
c__of_every_row_computes_the_same (void **state)
{
  static const TdDtype runs[] = { TD_F32 };

  (void)state;
  rows_agree_as_c (runs, 1, "cc -std=c99 -O1");
}

static void
onnx__of_every_row_computes_the_same (void **state)
{
  static const char script[]
      = "import sys, glob, numpy, onnx, onnxruntime\n"
        "from onnx.reference import ReferenceEvaluator\n"
        "n = wrong = 0\n"
        "def fail (what, why):\n"
        "    global wrong\n"
        "    wrong += 1\n"
        "    print (what, str (why).replace ('\\n', ' ')[:300])\n"
        "def session (path):\n"
        "    o = onnxruntime.SessionOptions ()\n"
        "    o.log_severity_level = 4\n"
        "    return onnxruntime.InferenceSession (path, o, "
        "providers=['CPUExecutionProvider'])\n"
        "def compare (run, arrays, op, what):\n"
        "    names = sorted (glob.glob (arrays + '.in*.npy'))\n"
        "    x = {'input' + f[len (arrays) + 3:-4]: numpy.load (f) for f in names}\n"
        "    want = [numpy.load (f) for f in sorted (glob.glob (arrays + '.out*.npy'))]\n"
        "    try:\n"
        "        got = run (x)\n"
        "    except Exception as e:\n"
        "        return fail ('%s: %s:' % (op, what), e)\n"
        "    for g, w in zip (got, want):\n"
        "        g = numpy.asarray (g)\n"
        "        if g.shape != w.shape or g.dtype != w.dtype or not numpy.allclose (g, w, "
        "1e-5, 1e-5, equal_nan=True):\n"
        "            return fail ('%s: %s:' % (op, what), (g.dtype, g.shape, "
        "g.ravel ()[:4], w.shape, w.ravel ()[:4]))\n"
        "def run (path, model, random, op, wholly):\n"
        "    global n\n"
        "    n += 1\n"
        "    try:\n"
        "        m = onnx.load (model)\n"
        "        onnx.checker.check_model (m, full_check=True)\n"
        "        s = session (model)\n"
        "    except Exception as e:\n"
        "        return fail (op + ': checker:', e)\n"
        "    if random == '1':\n"
        "        return\n"
        "    there = [i.name for i in m.graph.input]\n"
        "    pick = lambda x: {k: v for k, v in x.items () if k in there}\n"
        "    compare (lambda x: s.run (None, pick (x)), path, op, 'onnxruntime')\n"
        "    if not wholly:\n"
        "        return\n"
        "    for batch in ['.batch1', '.batch3', '.batch7']:\n"
        "        if glob.glob (path + batch + '.*'):\n"
        "            compare (lambda x: s.run (None, pick (x)), path + batch, op, batch)\n"
        /* the reference does not know groups of these, and takes images for channels of those
         */
        "    if not any (k.op_type == 'LRN' or (k.op_type == 'ConvTranspose' and a.name == "
        "'group' and a.i > 1) for k in m.graph.node for a in k.attribute):\n"
        "        compare (lambda x: ReferenceEvaluator (m).run (None, pick (x)), path, op, "
        "'reference')\n"
        "for line in sys.stdin:\n"
        "    path, random, op = line.rstrip ('\\n').split ('\\t')\n"
        "    run (path, path + '.onnx', random, op, True)\n"
        "    for opset in sys.argv[1:]:\n"
        "        run (path, '%s.%s.onnx' % (path, opset), random, op + ' ' + opset, "
        "opset == sys.argv[-1])\n"
        "print (n, 'models,', wrong, 'wrong')\n"
        "sys.exit (wrong != 0)\n";
  const char *python = td_test_python ("onnxruntime");
  TdTestChild child;
  FILE *list = fopen (td_test_tmp ("list"), "w");

  (void)state;
  assert_non_null (list);
  for (int i = 0; i < n_rows; i++)
    if (rows[i].run == TD_F32 && rows[i].said[1][0] == '\0')
      {
        char path[512];

        snprintf (path, sizeof path, "%s", row_file (&rows[i], ""));
        path[strlen (path) - 1] = '\0';
        fprintf (list, "%s\t%d\t%s %s\n", path, rows[i].random, rows[i].c->op,
                 rows[i].c->variant);
      }
  fclose (list);
  td_test_write_file (td_test_tmp ("run.py"), script, sizeof script - 1);
  child = td_test_shell ("'%s' '%s/run.py' 18 19 20 21 < '%s/list' 2>&1", python,
                         td_test_tmp ("."), td_test_tmp ("."));
  fputs (child.out, stdout); /* longer than a message may be */
  print_message ("%d of them with other batches\n", n_batches);
  assert_child_status (child, 0);
  assert_true (n_batches > 850);
  td_test_child_clear (&child);
}

/* --- the list --- */

/* What stands in the way, without lines: "max_pooling_2d with the places of the largest". */
static void
reason_of (const char *said, char *text, size_t size)
{
  static const char *const begins[] = { " does not have ", " to write: trace: " };
  const char *at = NULL;
  size_t n = 0;

  for (size_t i = 0; i < sizeof begins / sizeof *begins && at == NULL; i++)
    if ((at = strstr (said, begins[i])) != NULL)
      at += strlen (begins[i]);
  if (at == NULL)
    at = said;
  while (*at != '\0' && *at != ':' && strncmp (at, " (", 2) != 0 && n + 1 < size)
    {
      if (strncmp (at, " at ", 4) == 0 && strncmp (at, " at most", 8) != 0)
        {
          at += strcspn (at, ":");
          at += *at == ':' ? 1 + strspn (at + 1, "0123456789") : 0;
        }
      else
        text[n++] = *at++;
    }
  text[n] = '\0';
}

static bool
has_no_schedule (const Row *row)
{
  return strstr (row->said[0], " has no schedule to write") != NULL;
}

/* Is it of that operation and format, and of use?  Rows without a schedule are if there are no
 * others; as ONNX only those of f32 are looked at. */
static bool
counts (const Row *row, const char *op, int format, bool all)
{
  return strcmp (row->c->op, op) == 0 && (all || !has_no_schedule (row))
         && (format == 0 || row->run == TD_F32);
}

/* "yes", or "no: why", or for which rows it is one or the other. */
static void
tell (FILE *f, const char *op, int format)
{
  int n = 0, n_yes = 0, any = 0;
  char text[1024], before[1024] = "";
  bool random = false, all;

  for (int i = 0; i < n_rows; i++)
    n += counts (&rows[i], op, format, false);
  all = n == 0;
  n = 0;
  for (int i = 0; i < n_rows; i++)
    if (counts (&rows[i], op, format, all))
      {
        n++;
        n_yes += rows[i].said[format][0] == '\0';
        random = random || rows[i].random;
      }
  fprintf (f,
           n_yes == n  ? " | yes%s"
           : n_yes > 0 ? " | partly%s"
                       : " | no%s",
           n_yes > 0 && random && format == 1 ? ", other random numbers" : "");
  for (int i = 0; i < n_rows; i++)
    if (counts (&rows[i], op, format, all) && rows[i].said[format][0] != '\0')
      {
        reason_of (rows[i].said[format], text, sizeof text);
        if (n_yes > 0)
          fprintf (f, "%s %s%s%s: %s", any++ > 0 ? ";" : ",",
                   rows[i].c->variant[0] != '\0' ? rows[i].c->variant : "plain",
                   rows[i].run != TD_F32 ? " of " : "",
                   rows[i].run != TD_F32 ? td_dtype_name (rows[i].run) : "", text);
        else if (strcmp (text, op) != 0 && strcmp (text, before) != 0)
          fprintf (f, "%s %s", any++ > 0 ? ";" : ":", text);
        snprintf (before, sizeof before, "%s", text);
      }
}

static bool
is_first (int i)
{
  for (int k = 0; k < i; k++)
    if (strcmp (rows[k].c->op, rows[i].c->op) == 0)
      return false;
  return true;
}

static void
list__is_what_is_refused (void **state)
{
  // clang-format off
  static const char head[] =
        "# What goes out\n"
        "\n"
        "What `td_static_save` writes of each operation, as a C program and as ONNX (opset 17 to 21), and `td_save_onnx` of the\n"
        "graph that ran, by the same table. What is written computes the same elsewhere, within 1e-5; what is not is refused with\n"
        "its line before a file is written. `tests/engine/test-going-out-table.c` makes this list of the rows of\n"
        "`tests/engine/op-cases-*.c`, whose names stand where only some of an operation's rows go out, and runs what is written:\n"
        "in onnxruntime with each opset, and with batches of 1, 3 and 7 where the axis is open; in onnx's reference with opset 17\n"
        "and 21 (but for groups of ConvTranspose, and LRN, which it does not know rightly). As ONNX, batch normalization in training\n"
        "leaves the running moments as they are, and dropout draws other numbers. Recurrent layers (td_n_step_lstm and its relatives,\n"
        "LSTM links) over sequences that are equally long are LSTM, GRU or RNN, one for each layer and direction, where nothing reads\n"
        "what is inside them; others are written step by step.\n"
        "\n"
        "C is of float32, float64, float16, bfloat16 and whole numbers. Float64 is the same within 1e-12. Float16 and bfloat16\n"
        "are stored as `uint16_t`, computed in float and rounded where the engine rounds, so that what is written needs no\n"
        "compiler that knows them: it is the same number, or the one beside it where the order of a sum or a function of the C\n"
        "library decides. `tests/engine/test-going-out-types.c` runs every row in these three types. NaN and infinity go through\n"
        "as in the engine, but for weights of convolutions, where padding is multiplied by them or left out, and an infinite gamma\n"
        "in the gradient of group normalization.\n"
        "\n"
        "As ONNX float64, float16 and bfloat16 are of types that the standard allows, by onnx's checker: where an operator does\n"
        "not take one (convolutions and pooling of bfloat16 ...) it is of float32, between casts. Of doubles an operator that has\n"
        "its number as an attribute, which is a float, is composed. `tests/engine/test-going-out-numbers.c` runs every row in\n"
        "these types: float64 in onnxruntime, the same within 1e-9; float16 in onnxruntime, within 1e-2; bfloat16 in onnx's\n"
        "reference, within 6e-2; and in the reference, too, what onnxruntime does not have for a type.\n"
        "\n"
        "An ONNX file leaves open the axes that the option `axes` names, axis 0 of every input unless it does. A size that\n"
        "follows such an axis is computed in the file; where an operation has it as a number (one row of the batch, a split, a\n"
        "sum divided by the batch's size, as many classes of td_one_hot or places of td_pad, a window of pooling over all of it,\n"
        "the keys that td_causal_mask has before the queries), or the code could mean both, the axis stays what it was: the\n"
        "option `fixed` hears why, and so says the file's metadata under `fixed`. A number that the code computes from a size in\n"
        "C is not seen, but for a factor that may count elements of the batch, as in the gradient of a mean: it keeps the batch.\n"
        "Export with a batch that is no other size of the model and divides none, as 5 or 7: where a reshape has its size twice\n"
        "the batch stays. Where another size is a multiple of it (6 of a batch of 2, which may be three times the batch), a -1\n"
        "stands beside it, or an array of the code is as long, the likelier is taken; and a batch of 1 may be a number 1 of the\n"
        "code, as in a mask or in labels that it filled. A size of an array that the code makes from nothing (td_zeros, td_full;\n"
        "of td_arange in a static function, which is else as brought), or that td_broadcast_to gives, is a number while the\n"
        "operations that use it accept one, and else the batch or a multiple of it; td_arange that begins or ends by the size,\n"
        "or has steps that are parts of it, is a number always. Where nothing uses an array with the batch and it is as large,\n"
        "the batch stays. Each such size that could be the other is said, be it only because a batch of 1 broadcasts: so zeros\n"
        "of the batch that are added to what has it are, too; and so is td_squeeze without an axis, which drops the batch where\n"
        "that is 1, as the file does not. What each was taken for stands in the metadata under `assumed`; the option `assumed`\n"
        "hears it, of a batch of 1 a line on stderr says else how many there are, and `tapedeck info` shows them. A -1 is taken\n"
        "to be what follows, which is said where several axes of 1 do, and not of the batch alone. An input whose axis 0 stays\n"
        "while the batch is open is said as well. A function whose host draws numbers (td_walker_alias_sample, the\n"
        "NegativeSampling link) is refused in both formats: they would be those of one call.\n"
        "`tests/engine/test-onnx-batch-of-one.c` searches random programs for differences of which nothing is said.\n"
        "\n"
        "Gradients of average pooling, unpooling, adaptive pooling, images in another size and im2col are products with constant\n"
        "matrices as ONNX, one for each axis: an infinite number makes NaN of its row and column. Else NaN and infinity go through\n"
        "an ONNX file as in the engine, by the same test, but for: maxima and minima of NaN, and where they are (max, min, argmax,\n"
        "argmin, max pooling, maxout, accuracy), as onnxruntime leaves NaN out; casts to whole numbers; an infinite gamma of batch\n"
        "normalization, or slope of PRelu, which may be NaN as well; infinite queries of attention; and local response\n"
        "normalization, which they go through to other channels.\n"
        "\n"
        "| operation | C | ONNX |\n"
        "|---|---|---|\n";
  // clang-format on
  char *text = NULL, *now;
  size_t n, n_now;
  FILE *f = open_memstream (&text, &n);
  const char *path = td_test_source ("engine/train/serial/GOING-OUT.md");

  (void)state;
  fputs (head, f);
  for (int i = 0; i < n_rows; i++)
    if (is_first (i))
      {
        fprintf (f, "| %s", rows[i].c->op);
        for (int format = 0; format < N_FORMATS; format++)
          tell (f, rows[i].c->op, format);
        fprintf (f, " |\n");
      }
  fclose (f);
  if (getenv ("TD_UPDATE_GOLDEN") != NULL)
    td_test_write_file (path, text, n);
  now = td_test_read_file (path, &n_now);
  assert_string_equal (now, text);
  free (now), free (text);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (c__of_every_row_computes_the_same),
    cmocka_unit_test (onnx__of_every_row_computes_the_same),
    cmocka_unit_test (list__is_what_is_refused),
  };
  int failed;

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  failed = cmocka_run_group_tests_name ("going-out-table", tests, all_go_out, forget);
  return td_finish () != 0 || failed != 0;
}
