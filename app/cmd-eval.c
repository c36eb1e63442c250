/* `tapedeck eval`: one operation on arrays in files, its gradients, a check of them.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "command.h"
#include "eval.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the command line asks for. */
typedef struct
{
  const char *op, *folder;
  const char *in[TD_EVAL_MAX_ARRAYS], *gy[TD_EVAL_MAX_ARRAYS], *attrs[TD_EVAL_MAX_ATTRS];
  int n_in, n_gy, n_attrs;
  bool check, list, list_onnx, help;
} Request;

__attribute__ ((format (printf, 1, 2))) static int
usage (const char *format, ...)
{
  va_list args;

  va_start (args, format);
  fputs ("tapedeck: eval: ", stderr);
  vfprintf (stderr, format, args);
  fputc ('\n', stderr);
  va_end (args);
  return TD_EXIT_USAGE;
}

/* --- the command line --------------------------------------------------------------------- */

static bool
take (const char **list, int *n, int most, const char *value)
{
  if (*n == most)
    return false;
  list[(*n)++] = value;
  return true;
}

static int
parse (int argc, char **argv, Request *r)
{
  for (int i = 1; i < argc; i++)
    {
      const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
      bool room = true;

      if (strcmp (arg, "--help") == 0)
        r->help = true;
      else if (strcmp (arg, "--list") == 0)
        r->list = true;
      else if (strcmp (arg, "--list-onnx") == 0)
        r->list_onnx = true;
      else if (strcmp (arg, "--check") == 0)
        r->check = true;
      else if (strcmp (arg, "--in") == 0 && value != NULL)
        room = take (r->in, &r->n_in, TD_EVAL_MAX_ARRAYS, argv[++i]);
      else if (strcmp (arg, "--gy") == 0 && value != NULL)
        room = take (r->gy, &r->n_gy, TD_EVAL_MAX_ARRAYS, argv[++i]);
      else if (strcmp (arg, "--attr") == 0 && value != NULL)
        room = take (r->attrs, &r->n_attrs, TD_EVAL_MAX_ATTRS, argv[++i]);
      else if (strcmp (arg, "-o") == 0 && value != NULL)
        r->folder = argv[++i];
      else if (arg[0] == '-')
        return usage ("%s: no such option, or its value is missing", arg);
      else if (r->op != NULL)
        return usage ("%s: one operation expected", arg);
      else
        r->op = arg;
      if (!room)
        return usage ("%s: too many of them", arg);
    }
  if (r->op == NULL && !r->list && !r->list_onnx && !r->help)
    return usage ("an operation expected (tapedeck eval --list)");
  return TD_EXIT_OK;
}

static void
print_usage (void)
{
  puts (
      "Usage: tapedeck eval OP [--in A.npy]... [--attr K=V]... [--gy G.npy]... [--check] "
      "[-o DIR]\n"
      "       tapedeck eval MODEL.onnx [--in A.npy]... [--gy G.npy]... [-o DIR]\n"
      "       tapedeck eval --list | --list-onnx | OP --help\n\n"
      "One operation on arrays, by Chainer's name; or an ONNX model, opsets 7 to 21, as it is "
      "used\n"
      "(its inputs in the graph's order, those that have a default last; with --gy "
      "DIR/grads.npz\n"
      "has the gradients of its parameters, under the names of the file's initializers).\n\n"
      "  --in A.npy     an input; in the function's order\n"
      "  --attr K=V     an attribute by Chainer's argument name; lists by commas, nested "
      "lists\n"
      "                 flattened: stride=2,1; true, false, None\n"
      "  --gy G.npy     the gradient of an output; one for each of them\n"
      "  -o DIR         write DIR/out0.npy ... and, with --gy, DIR/ginK.npy for each input K\n"
      "                 that has a gradient; without -o and --check they are printed\n"
      "  --check        hold gradients of first and second order against differences\n"
      "  --list         all operations, with arguments, attributes, defaults, formula\n"
      "  --list-onnx    the operators of ONNX models, with opsets and what is left out\n\n"
      "Files are npy of float16, float32, float64, int32, int64, uint8 or bool; bfloat16 is\n"
      "written as float32, and so it is given to a model that asks for it.\n"
      "Exit status: 0 done; 1 the operation or the check failed; 2 unknown operation or\n"
      "attribute, a value that cannot be read, wrong number of inputs, unreadable file.\n"
      "The man page is tapedeck-eval(1).");
}

/* --- arrays ------------------------------------------------------------------------------- */

static bool
is_float (const TdVar *v)
{
  return td_dtype (v) <= TD_BF16;
}

/* Load arrays.  False after printing what is wrong. */
static bool
load (const char *const *paths, int n, TdVar **vars)
{
  for (int i = 0; i < n; i++)
    {
      vars[i] = td_load_npy (paths[i]);
      if (td_error () == NULL)
        continue;
      td_eval_say_error ();
      return false;
    }
  return true;
}

/* npy has no bfloat16: it comes as float32, as it is written. */
static TdVar *
as_asked (TdVar *v, TdDtype dtype)
{
  return dtype == TD_BF16 && td_dtype (v) == TD_F32 ? td_cast (v, TD_BF16) : v;
}

static void
print_elements (const TdVar *v)
{
  TdShape shape = td_shape (v);
  int64_t n = td_size (v), shown = n < 100 ? n : 100;
  TdVar *wide = td_reshape (td_cast ((TdVar *)v, TD_F64), TD_SHAPE (n));
  double *host = malloc ((size_t)n * sizeof *host + 1);

  if (host != NULL && td_read (wide, host, (size_t)n * sizeof *host) == TD_OK)
    for (int64_t i = 0; i < shown; i++)
      {
        int64_t row = shape.ndim > 0 ? shape.dim[shape.ndim - 1] : 1;

        printf ("%s%.9g%s", i % row == 0 ? "  " : " ", host[i],
                i % row == row - 1 || i == shown - 1 ? "\n" : "");
      }
  if (shown < n)
    printf ("  ... %lld more\n", (long long)(n - shown));
  free (host);
}

static const char *
path_of (const Request *r, const char *name, int i, char *path, size_t size)
{
  snprintf (path, size, "%s/%s%d.npy", r->folder, name, i);
  return path;
}

/* Is DIR/NAMEi.npy one of the arrays that were read?  Says so. */
static bool
is_input (const Request *r, const char *name, int i)
{
  char path[4200];
  bool is = false;

  path_of (r, name, i, path, sizeof path);
  for (int k = 0; k < r->n_in && !is; k++)
    is = td_same_file (r->in[k], path);
  for (int k = 0; k < r->n_gy && !is; k++)
    is = td_same_file (r->gy[k], path);
  if (is)
    fprintf (stderr, "tapedeck: %s: it is what is read, and is not written over\n", path);
  return is;
}

/* Write an array to DIR/NAMEi.npy, or print it. */
static void
put (const Request *r, const char *name, int i, const TdVar *v)
{
  char path[4200], text[160];
  TdShape shape = td_shape (v);

  if (r->folder == NULL && r->check)
    return;
  if (r->folder == NULL)
    {
      printf ("%s%d %s %s\n", name, i, td_shape_text (&shape, text, sizeof text),
              td_dtype_name (td_dtype (v)));
      print_elements (v);
      return;
    }
  td_save_npy (path_of (r, name, i, path, sizeof path), v);
}

/* --- gradients ---------------------------------------------------------------------------- */

/* A gradient has its output's shape.  False after saying so. */
static bool
fits (const char *path, const TdVar *gy, const TdVar *y)
{
  TdShape a = td_shape (gy), b = td_shape (y);
  char want[160], got[160];

  if (!is_float (y) || td_shape_equal (&a, &b))
    return true;
  fprintf (stderr, "tapedeck: %s: the output's shape %s expected, got %s\n", path,
           td_shape_text (&b, want, sizeof want), td_shape_text (&a, got, sizeof got));
  return false;
}

/* Gradients of all outputs in all inputs, NULL where there is none; those of a model's
 * parameters take the parameters' places. */
static void
gradients (TdEval *e, TdVar **gy, TdVar **gin, TdEvalParams *params)
{
  TdVar *ys[TD_EVAL_MAX_ARRAYS], *gys[TD_EVAL_MAX_ARRAYS];
  TdVar **xs = calloc ((size_t)(2 * (e->n_in + params->n) + 1), sizeof *xs),
        **gxs = xs + e->n_in + params->n;
  int n_y = 0, n_x = 0;

  if (xs == NULL)
    abort ();
  for (int k = 0; k < e->n_out; k++)
    if (is_float (e->out[k]))
      {
        ys[n_y] = e->out[k];
        gys[n_y++] = td_dtype (gy[k]) != td_dtype (e->out[k])
                         ? td_cast (gy[k], td_dtype (e->out[k]))
                         : gy[k];
      }
  for (int i = 0; i < e->n_in; i++)
    if (td_eval_wants_grad (e, i))
      xs[n_x++] = e->in[i];
  for (int i = 0; i < params->n; i++)
    xs[n_x++] = params->vars[i];
  if (n_y > 0 && n_x > 0)
    td_grad_of (ys, n_y, xs, n_x, gys, 0, gxs);
  n_x = 0;
  for (int i = 0; i < e->n_in; i++)
    gin[i] = td_eval_wants_grad (e, i) ? gxs[n_x++] : NULL;
  for (int i = 0; i < params->n; i++)
    params->vars[i] = gxs[n_x++];
  free (xs);
}

static void
call_again (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdEval *e = user;

  memcpy (e->in, in, (size_t)n_in * sizeof *in);
  if (!td_eval_call (e) && td_error () == NULL)
    fprintf (stderr, "tapedeck: eval: %s\n", e->wrong);
  memcpy (out, e->out, (size_t)n_out * sizeof *out);
}

/* Gradients against differences, in double precision. */
static int
check (TdEval *e)
{
  static const char *const orders[] = { "first", "second" };
  TdVar *in[TD_EVAL_MAX_ARRAYS];
  TdCheckOpt options = td_check_options ();
  int n_in = e->n_in, n_out = e->n_out, n_float_in = 0, n_float_out = 0;

  options.eps = 1e-4;
  options.max_elements = 200;
  for (int k = 0; k < n_out; k++)
    n_float_out += is_float (e->out[k]);
  for (int i = 0; i < n_in; i++)
    {
      n_float_in += td_eval_wants_grad (e, i);
      if (!td_eval_wants_grad (e, i) && i < 32)
        options.no_grads |= 1u << i;
      in[i] = is_float (e->in[i]) ? td_cast (e->in[i], TD_F64) : e->in[i];
    }
  if (n_float_in == 0 || n_float_out == 0)
    {
      puts ("gradient check: nothing here has a gradient");
      return TD_EXIT_OK;
    }
  for (int order = 0; order < 2; order++)
    {
      TdStatus status
          = order == 0
                ? td_check_backward_ (call_again, e, in, n_in, NULL, n_out, &options)
                : td_check_double_backward_ (call_again, e, in, n_in, NULL, n_out, &options);

      if (status != TD_OK)
        return TD_EXIT_FINDING;
      printf ("gradient check: %s order agrees with differences\n", orders[order]);
    }
  return TD_EXIT_OK;
}

/* --- the command -------------------------------------------------------------------------- */

/* Arrays to files or to stdout. */
static int
put_all (const Request *r, TdEval *e, TdVar **gin, TdEvalParams *params)
{
  char path[4200];

  if (r->folder != NULL && mkdir (r->folder, 0777) != 0 && errno != EEXIST)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", r->folder, strerror (errno));
      return TD_EXIT_USAGE;
    }
  for (int k = 0; k < e->n_out && r->folder != NULL; k++)
    if (is_input (r, "out", k))
      return TD_EXIT_USAGE;
  for (int i = 0; i < e->n_in && r->folder != NULL; i++)
    if (gin[i] != NULL && is_input (r, "gin", i))
      return TD_EXIT_USAGE;
  for (int k = 0; k < e->n_out && td_error () == NULL; k++)
    put (r, "out", k, e->out[k]);
  for (int i = 0; i < e->n_in && td_error () == NULL; i++)
    if (gin[i] != NULL)
      put (r, "gin", i, gin[i]);
  snprintf (path, sizeof path, "%s/grads.npz", r->folder != NULL ? r->folder : "");
  if (r->folder != NULL && params->n > 0 && td_error () == NULL)
    td_eval_params_save (params, path);
  return td_error () != NULL ? TD_EXIT_FINDING : TD_EXIT_OK;
}

static int
evaluate (const Request *r, TdEval *e)
{
  TdVar *gy[TD_EVAL_MAX_ARRAYS], *gin[TD_EVAL_MAX_ARRAYS] = { NULL };
  TdEvalParams params;
  int status;

  e->n_in = r->n_in;
  if (e->model_path != NULL && !td_eval_load_model (e, r->n_in))
    return e->wrong[0] != '\0' ? usage ("%s", e->wrong) : TD_EXIT_USAGE;
  if (!load (r->in, r->n_in, e->in) || !load (r->gy, r->n_gy, gy))
    return TD_EXIT_USAGE;
  for (int i = 0; i < e->n_in && e->model != NULL; i++)
    e->in[i] = as_asked (e->in[i], td_onnx_input (e->model, i).dtype);
  for (int i = 0; i < e->n_in; i++)
    if (td_eval_wants_grad (e, i))
      td_variable (e->in[i], NULL);
  if (!td_eval_call (e))
    {
      if (e->wrong[0] == '\0')
        return TD_EXIT_FINDING;
      td_error_clear (); /* what came of numbers that are wrong anyway */
      return usage ("%s", e->wrong);
    }
  if (r->n_gy > 0 && r->n_gy != e->n_out)
    return usage ("%s: one --gy for each of %d outputs expected, got %d", td_eval_name (e),
                  e->n_out, r->n_gy);
  for (int k = 0; k < r->n_gy; k++)
    gy[k] = as_asked (gy[k], td_dtype (e->out[k]));
  for (int k = 0; k < r->n_gy; k++)
    if (!fits (r->gy[k], gy[k], e->out[k]))
      return TD_EXIT_USAGE;
  td_eval_params (&params, r->n_gy > 0 ? e->model : NULL);
  if (r->n_gy > 0)
    gradients (e, gy, gin, &params);
  status = td_error () != NULL ? TD_EXIT_FINDING : put_all (r, e, gin, &params);
  td_eval_params_clear (&params);
  if (status != TD_EXIT_OK)
    return status;
  return r->check ? check (e) : TD_EXIT_OK;
}

int
td_command_eval (int argc, char **argv)
{
  Request r = { 0 };
  int status = parse (argc, argv, &r), failed;
  TdEval e;

  if (status != TD_EXIT_OK)
    return status;
  if (r.list)
    return td_eval_print_list (), TD_EXIT_OK;
  if (r.list_onnx)
    return td_eval_print_onnx (), TD_EXIT_OK;
  if (r.op == NULL)
    return print_usage (), TD_EXIT_OK;
  if (td_is_onnx (r.op) && (r.check || r.n_attrs > 0 || r.help))
    return usage ("%.200s: a model takes --in, --gy and -o", r.op);
  if (td_is_onnx (r.op))
    td_eval_begin_model (&e, r.op);
  else if (!td_eval_begin (&e, r.op))
    return usage ("%.100s: no such operation (tapedeck eval --list)", r.op);
  if (r.help)
    {
      td_eval_print_help (&e);
      td_eval_clear (&e);
      return TD_EXIT_OK;
    }
  for (int i = 0; i < r.n_attrs && e.wrong[0] == '\0'; i++)
    td_eval_set (&e, r.attrs[i]);
  if (e.wrong[0] != '\0' || !td_eval_complete (&e, r.n_in))
    status = usage ("%s", e.wrong);
  else if (td_init (NULL, NULL) != TD_OK)
    status = td_finish ();
  else
    {
      status = evaluate (&r, &e);
      failed = td_finish (); /* prints the operation's error, if there is one */
      status = status == TD_EXIT_OK && failed != 0 ? TD_EXIT_FINDING : status;
    }
  td_eval_clear (&e);
  return status;
}
