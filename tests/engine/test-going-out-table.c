/* Every row of op-cases as a static function that is saved as C and as ONNX: what is written
 * computes the same elsewhere, and what is refused stands in GOING-OUT.md, with the reason.
 *
 * C is compiled with warnings as errors; ONNX is checked by onnx's own checker and run by
 * onnxruntime and by onnx's reference, where a Python has them.  TD_UPDATE_GOLDEN=1 writes the
 * list.
 *
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"
#include "td-test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MOST_ARRAYS = 9,
  N_FORMATS = 2,
  FIRST_OPSET = 17,
  LAST_OPSET = 21
};
static const char *const formats[N_FORMATS] = { "c", "onnx" };

/* One row of the tables, called once. */
typedef struct
{
  const OpCase *c;
  void *arrays[MOST_ARRAYS]; /* inputs, then outputs */
  size_t bytes[MOST_ARRAYS];
  TdDtype dtype[MOST_ARRAYS];
  TdShape shape[MOST_ARRAYS];
  bool random, is_open;       /* as ONNX it takes other batches */
  char said[N_FORMATS][1024]; /* why it is refused; "": it is written */
} Row;

static Row *rows;
static int n_rows, n_batches;

/* Rows of what draws: those of the tables set the seed, which no schedule can contain. */
static void
call_dropout (TdVar *const *x, TdVar **y)
{
  TD_USING (train, true)
    y[0] = td_dropout (x[0], 0.3);
}

static void
call_masked_dropout (TdVar *const *x, TdVar **y)
{
  TdVar *mask;

  TD_USING (train, true)
    y[0] = td_dropout_with_at (x[0], 0.3, (TdDropoutOpt){ .return_mask = &mask }, NULL);
  y[1] = mask;
}

static void
call_gaussian (TdVar *const *x, TdVar **y)
{
  y[0] = td_gaussian_ (x[0], x[1], NULL);
}

static void
call_gumbel (TdVar *const *x, TdVar **y)
{
  y[0] = td_gumbel_softmax_ (x[0], NULL);
}

static void
call_arrays (TdVar *const *x, TdVar **y)
{
  y[0] = td_add (x[0], td_randn (TD_F32, td_shape (x[0])));
  y[1] = td_mul (x[0], td_rand (TD_F32, td_shape (x[0])));
}

#define NUMBERS                                                                                \
  {                                                                                            \
    { 2, { 7, 5 } }, -2, 2                                                                     \
  }
static const OpCase random_cases[] = {
  { "dropout", "", call_dropout, 1, 1, { NUMBERS } },
  { "random_like", "mask", call_masked_dropout, 1, 2, { NUMBERS } },
  { "gumbel_softmax", "", call_gumbel, 1, 1, { NUMBERS } },
  { "gaussian", "", call_gaussian, 2, 1, { NUMBERS, NUMBERS } },
  { "td_randn, td_rand", "", call_arrays, 1, 2, { NUMBERS } },
};
enum
{
  N_RANDOM = (int)(sizeof random_cases / sizeof *random_cases)
};

static void
call_case (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  ((const OpCase *)user)->call (in, out);
}

static void
keep (Row *row, int i, TdVar *v)
{
  row->dtype[i] = td_dtype (v);
  row->shape[i] = td_shape (v);
  row->bytes[i] = (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));
  row->arrays[i] = calloc (row->bytes[i] + 1, 1);
  if (row->bytes[i] > 0)
    assert_int_equal (td_read (v, row->arrays[i], row->bytes[i]), TD_OK);
}

/* "case12.c" in the test's folder. */
static const char *
file_of (const Row *row, const char *ending)
{
  char name[64];

  snprintf (name, sizeof name, "case%d.%s", (int)(row - rows), ending);
  return td_test_tmp (name);
}

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
  TdLink *link;
  int n_open = 0;

  /* The code of broadcast_to has the size as a number, which one row fits by chance. */
  if (row->said[1][0] != '\0' || row->random || strcmp (row->c->op, "broadcast_to") == 0)
    return;
  link = td_onnx_load (file_of (row, "onnx"));
  for (int k = 0; k < row->c->n_in && td_error () == NULL; k++)
    for (int d = 0; d < td_onnx_input (link, k).ndim; d++)
      n_open += td_onnx_input (link, k).symbol[d] != NULL;
  row->is_open = n_open > 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && n_open > 0 && td_error () == NULL; i++)
    TD_SCOPE ("batch")
      {
        TdVar *x[6], *y[3] = { NULL };
        char ending[24];

        for (int k = 0; k < row->c->n_in; k++)
          {
            const TdOnnxInfo info = td_onnx_input (link, k);

            assert_int_equal (info.ndim, row->shape[k].ndim);
            x[k] = of_another_batch (row, k, &info, &row->shape[k], sizes[i]);
          }
        row->c->call (x, y);
        for (int k = 0; k < row->c->n_out && td_error () == NULL; k++)
          {
            snprintf (ending, sizeof ending, "batch%d.out%d.npy", (int)sizes[i], k);
            td_save_npy (file_of (row, ending), y[k]);
          }
        for (int k = 0; k < row->c->n_in && td_error () == NULL; k++)
          {
            snprintf (ending, sizeof ending, "batch%d.in%d.npy", (int)sizes[i], k);
            td_save_npy (file_of (row, ending), x[k]);
          }
        n_batches += td_error () == NULL;
        td_error_clear ();
      }
  td_error_clear ();
  td_link_free (link);
}

static void
go_out (Row *row)
{
  const OpCase *c = row->c;
  TdStatic *s = td_static_new_at (call_case, (void *)(uintptr_t)c, td_static_options (), NULL);
  TdVar *x[6], *y[3] = { NULL };

  td_set_seed (7);
  TD_SCOPE ("case")
    {
      for (int k = 0; k < c->n_in; k++)
        {
          char ending[16];

          keep (row, k, x[k] = op_input (c, k, TD_F32, NULL));
          snprintf (ending, sizeof ending, "in%d.npy", k);
          td_save_npy (file_of (row, ending), x[k]);
        }
      td_static_call (s, x, c->n_in, y, c->n_out);
      for (int k = 0; k < c->n_out; k++)
        {
          char ending[16];

          keep (row, c->n_in + k, y[k]);
          snprintf (ending, sizeof ending, "out%d.npy", k);
          td_save_npy (file_of (row, ending), y[k]);
        }
      if (td_error () != NULL)
        fail_msg ("%s %s: %s", c->op, c->variant, td_error ()->message);
      for (int f = 0; f < N_FORMATS; f++)
        {
          const TdStatus status = td_static_save (s, file_of (row, formats[f]));

          assert_int_equal (status == TD_OK, td_error () == NULL);
          if (status != TD_OK)
            snprintf (row->said[f], sizeof row->said[f], "%s", td_error ()->message);
          td_error_clear ();
        }
      for (int opset = FIRST_OPSET + 1; opset <= LAST_OPSET && row->said[1][0] == '\0'; opset++)
        {
          char ending[16];

          snprintf (ending, sizeof ending, "%d.onnx", opset);
          assert_int_equal (td_static_save_at (s, file_of (row, ending),
                                               (TdStaticSaveOpt){ .opset = opset }, NULL),
                            TD_OK);
        }
      call_other_batches (row);
    }
  td_static_free (s);
}

static int
all_go_out (void **state)
{
  if (td_test_setup (state) != 0)
    return -1;
  for (const OpCaseTable *t = op_case_tables; t < op_case_tables + N_OP_CASE_TABLES; t++)
    n_rows += *t->n_cases;
  rows = calloc ((size_t)n_rows + N_RANDOM, sizeof *rows);
  n_rows = 0;
  for (; n_rows < N_RANDOM; n_rows++)
    {
      rows[n_rows] = (Row){ .c = &random_cases[n_rows], .random = true };
      go_out (&rows[n_rows]);
    }
  for (const OpCaseTable *t = op_case_tables; t < op_case_tables + N_OP_CASE_TABLES; t++)
    for (int k = 0; k < *t->n_cases; k++)
      {
        rows[n_rows].c = &t->cases[k];
        go_out (&rows[n_rows++]);
      }
  return 0;
}

static int
forget (void **state)
{
  for (int i = 0; i < n_rows; i++)
    for (int k = 0; k < MOST_ARRAYS; k++)
      free (rows[i].arrays[k]);
  free (rows);
  return td_test_teardown (state);
}

/* Numbers of the call, and of the file elsewhere. */
static double
number_at (const void *numbers, TdDtype dtype, size_t i)
{
  return dtype == TD_F32   ? (double)((const float *)numbers)[i]
         : dtype == TD_F64 ? ((const double *)numbers)[i]
         : dtype == TD_I32 ? ((const int32_t *)numbers)[i]
         : dtype == TD_I64 ? (double)((const int64_t *)numbers)[i]
                           : ((const uint8_t *)numbers)[i];
}

static int
differences (const Row *row, void *const *got)
{
  int n = 0;

  for (int k = row->c->n_in; k < row->c->n_in + row->c->n_out; k++)
    for (size_t i = 0; i < row->bytes[k] / td_dtype_bytes (row->dtype[k]); i++)
      {
        const double want = number_at (row->arrays[k], row->dtype[k], i),
                     have = number_at (got[k], row->dtype[k], i);

        if (!(fabs (have - want) <= 1e-5 * (1 + fabs (want))) && !(isnan (have) && isnan (want))
            && have != want && n++ == 0)
          print_message ("%s %s: number %zu of output %d is %g, expected %g\n", row->c->op,
                         row->c->variant, i, k - row->c->n_in, have, want);
      }
  return n > 0;
}

/* A file that has every program's call under its number, so that all are one library. */
static void
write_calls (const char *path)
{
  FILE *f = fopen (path, "w");

  assert_non_null (f);
  for (int i = 0; i < n_rows; i++)
    if (rows[i].said[0][0] == '\0')
      {
        fprintf (f,
                 "#include \"case%d.h\"\nint call%d (void *const *p);\nint call%d (void "
                 "*const *p)\n{\n  (void)p;\n  return case%d_run (",
                 i, i, i, i);
        for (int k = 0; k < rows[i].c->n_in + rows[i].c->n_out; k++)
          fprintf (f, "%sp[%d]", k > 0 ? ", " : "", k);
        fprintf (f, ");\n}\n");
      }
  fclose (f);
}

static void
c__of_every_row_computes_the_same (void **state)
{
  char folder[512];
  TdTestChild child;
  int n_wrong = 0, n_written = 0;
  void *library;

  (void)state;
  snprintf (folder, sizeof folder, "%s", td_test_tmp ("."));
  write_calls (td_test_tmp ("calls.c"));
  child = td_test_shell ("cd '%s' && ls *.c | xargs -P 2 -n 25 cc -std=c99 -Wall -Wextra "
                         "-Werror -O1 -fPIC -c && cc -shared -o all.so *.o -lm",
                         folder);
  assert_string_equal (child.err, "");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  library = dlopen (td_test_tmp ("all.so"), RTLD_NOW);
  assert_non_null (library);
  for (int i = 0; i < n_rows; i++)
    if (rows[i].said[0][0] == '\0')
      {
        void *p[MOST_ARRAYS] = { NULL };
        int (*call) (void *const *p);
        char name[32];

        snprintf (name, sizeof name, "call%d", i);
        *(void **)&call = dlsym (library, name);
        assert_non_null (call);
        for (int k = 0; k < rows[i].c->n_in + rows[i].c->n_out; k++)
          {
            p[k] = calloc (rows[i].bytes[k] + 1, 1);
            if (k < rows[i].c->n_in)
              memcpy (p[k], rows[i].arrays[k], rows[i].bytes[k]);
          }
        n_written++;
        if (call (p) != 0)
          {
            print_message ("%s %s: an index out of range\n", rows[i].c->op, rows[i].c->variant);
            n_wrong++;
          }
        n_wrong += differences (&rows[i], p);
        for (int k = 0; k < MOST_ARRAYS; k++)
          free (p[k]);
      }
  dlclose (library);
  print_message ("%d of %d rows are written as C\n", n_written, n_rows);
  assert_true (n_written > 0);
  assert_int_equal (n_wrong, 0);
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
        /* the reference does not know their groups */
        "    if not any (k.op_type == 'ConvTranspose' and a.name == 'group' and a.i > 1 "
        "for k in m.graph.node for a in k.attribute):\n"
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
    if (rows[i].said[1][0] == '\0')
      {
        char path[512];

        snprintf (path, sizeof path, "%s", file_of (&rows[i], ""));
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
  assert_true (n_batches > 600);
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

/* Is it of that operation, and of use?  Rows without a schedule are if there are no others. */
static bool
counts (const Row *row, const char *op, bool all)
{
  return strcmp (row->c->op, op) == 0 && (all || !has_no_schedule (row));
}

/* "yes", or "no: why", or for which rows it is one or the other. */
static void
tell (FILE *f, const char *op, int format)
{
  int n = 0, n_yes = 0, any = 0;
  char text[1024], before[1024] = "";
  bool random = false, all;

  for (int i = 0; i < n_rows; i++)
    n += counts (&rows[i], op, false);
  all = n == 0;
  n = 0;
  for (int i = 0; i < n_rows; i++)
    if (counts (&rows[i], op, all))
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
    if (counts (&rows[i], op, all) && rows[i].said[format][0] != '\0')
      {
        reason_of (rows[i].said[format], text, sizeof text);
        if (n_yes > 0)
          fprintf (f, "%s %s: %s", any++ > 0 ? ";" : ",",
                   rows[i].c->variant[0] != '\0' ? rows[i].c->variant : "plain", text);
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
        "and 21 (which does not know groups of ConvTranspose). As ONNX, batch normalization in training leaves the running moments\n"
        "as they are, and dropout draws other numbers.\n"
        "\n"
        "C is of float32 and of whole numbers: sums, comparisons and what goes element by\n"
        "element is there of float64 too, but products, windows, normalisations, softmax and losses of float64 are refused\n"
        "(\"matmul of f64\"), and so is everything of float16 and bfloat16.\n"
        "\n"
        "An ONNX file leaves open the axes that the option `axes` names, axis 0 of every input unless it does. A size that\n"
        "follows such an axis is computed in the file; where an operation has it as a number (one row of the batch, a split, a\n"
        "sum divided by the batch's size), or the code could mean both, the axis stays what it was: the option `fixed` hears why,\n"
        "and so says the file's metadata under `fixed`. A number that the code computes from a size in C is not seen, but for\n"
        "that division.\n"
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
