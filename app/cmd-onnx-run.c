/* `tapedeck run MODEL.onnx`: the program that is supervised.  It gives the model inputs, from
 * files or made up, and runs it forward, and backward from the sum of its outputs.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "command.h"
#include "eval.h"

#include "plural.h"
#include "train/onnx/look.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MOST_GIVEN = 128
};

/* NAME=VALUE of the command line. */
typedef struct
{
  const char *text, *value;
  size_t n; /* of the name */
  bool used;
} Given;

typedef struct
{
  const char *path;
  Given inputs[MOST_GIVEN], sizes[MOST_GIVEN];
  int n_inputs, n_sizes;
  TdLink *model;
  const char **names; /* of those inputs that are given or made */
  TdVar **in, **out;
  int n_in, n_out;
} Run;

static const char help[]
    = "Usage: tapedeck run [OPTIONS] MODEL.onnx [--input NAME=FILE.npy]... "
      "[--size NAME=N]...\n\n"
      "An ONNX model, forward and then backward from the sum of its floating-point outputs;\n"
      "once, or as often as the option --iterations of tapedeck run says.\n\n"
      "  --input NAME=FILE.npy  an input; what is not given is made up from the seed, and "
      "said\n"
      "  --size NAME=N          an open size, by its name, or INPUT.AXIS where it has none\n"
      "                         (1 otherwise)";

/* --- the command line --- */

static bool
take (Given *list, int *n, const char *text)
{
  const char *equals = strchr (text, '=');

  if (equals == NULL || equals == text || *n == MOST_GIVEN)
    return false;
  list[(*n)++] = (Given){ text, equals + 1, (size_t)(equals - text), false };
  return true;
}

static int
parse (int argc, char **argv, Run *r)
{
  for (int i = 1; i < argc; i += 2)
    {
      const bool input = strcmp (argv[i], "--input") == 0,
                 size = strcmp (argv[i], "--size") == 0;

      if (!input && !size)
        return td_usage_error (NULL,
                               "%s: %s: no such option of an ONNX model (--input, --size)",
                               r->path, argv[i]);
      if (i + 1 == argc
          || !take (input ? r->inputs : r->sizes, input ? &r->n_inputs : &r->n_sizes,
                    argv[i + 1]))
        return td_usage_error (NULL, "%s: %s: %s expected", r->path, argv[i],
                               input ? "NAME=FILE.npy" : "NAME=N");
    }
  return TD_EXIT_OK;
}

static Given *
find (Given *list, int n, const char *name)
{
  for (int i = 0; name != NULL && i < n; i++)
    if (strlen (name) == list[i].n && strncmp (list[i].text, name, list[i].n) == 0)
      {
        list[i].used = true;
        return &list[i];
      }
  return NULL;
}

/* Is it an open size of an input, which a file that was given has set? */
static bool
is_set_by_file (const Run *r, const Given *given)
{
  TdOnnxInfo info;

  for (int i = 0; info = td_onnx_input (r->model, i), info.name != NULL; i++)
    for (int d = 0; d < info.ndim; d++)
      if (info.dim[d] < 0 && info.symbol[d] != NULL && strlen (info.symbol[d]) == given->n
          && strncmp (info.symbol[d], given->text, given->n) == 0)
        return true;
  return false;
}

/* A name on the command line that is none of the model's. */
static bool
all_used (const Run *r, const Given *list, int n, const char *what)
{
  for (int i = 0; i < n; i++)
    if (!list[i].used)
      {
        const bool is_set = list == r->sizes && is_set_by_file (r, &list[i]);

        fprintf (stderr,
                 is_set ? "tapedeck: %s: the %s %.*s is what --input's file has\n"
                        : "tapedeck: %s: it has no %s %.*s\n",
                 r->path, what, (int)list[i].n, list[i].text);
        return false;
      }
  return true;
}

/* --- inputs --- */

/* The size of an axis; -1 after saying what is wrong. */
static int64_t
size_of (Run *r, const TdOnnxInfo *info, int d)
{
  char by_axis[300], *end;
  const Given *given;
  long long size;

  snprintf (by_axis, sizeof by_axis, "%.250s.%d", info->name, d);
  given = info->dim[d] < 0 ? find (r->sizes, r->n_sizes, info->symbol[d]) : NULL;
  if (given == NULL && info->dim[d] < 0)
    given = find (r->sizes, r->n_sizes, by_axis);
  if (given == NULL)
    return info->dim[d] >= 0 ? info->dim[d] : 1;
  size = strtoll (given->value, &end, 10);
  if (end != given->value && *end == '\0' && size >= 0 && size <= INT_MAX)
    return size;
  fprintf (stderr, "tapedeck: %s: --size %s: a number expected\n", r->path, given->text);
  return -1;
}

/* Whole numbers from 0 to most, equally often; made on the host, as what an operation makes
 * before the first iteration would be one of its own on the tape. */
static TdVar *
whole_numbers (TdDtype dtype, TdShape shape, int64_t most)
{
  TdVar *parts = td_rand (TD_F64, shape), *v;
  const size_t n = (size_t)td_size (parts), width = td_dtype_bytes (dtype);
  double *host = calloc (n + 1, sizeof *host);
  char *whole = calloc (n + 1, width);

  if (host == NULL || whole == NULL)
    abort ();
  if (td_device (parts) != td_device_get ("null")) /* which keeps none: zeros there */
    td_read (parts, host, n * sizeof *host);
  for (size_t i = 0; i < n; i++)
    {
      const int64_t wide = (int64_t)floor (host[i] * (double)(most + 1));
      const int32_t half = (int32_t)wide;
      const uint8_t byte = (uint8_t)wide;

      memcpy (whole + i * width,
              width == sizeof wide   ? (const void *)&wide
              : width == sizeof half ? (const void *)&half
                                     : (const void *)&byte,
              width);
    }
  v = td_tensor (dtype, shape, whole);
  free (host);
  free (whole);
  return v;
}

static TdVar *
made_up (Run *r, int i, const TdOnnxInfo *info, char *how, size_t size)
{
  TdShape shape = { info->ndim, { 0 } };
  const char *of;
  int64_t rows;

  for (int d = 0; d < info->ndim; d++)
    if ((shape.dim[d] = size_of (r, info, d)) < 0)
      return NULL;
  if (info->dtype <= TD_BF16)
    {
      snprintf (how, size, "made up, normal (0, 1)");
      return td_randn (info->dtype, shape);
    }
  rows = td__onnx_rows_for (r->model, i, &of);
  if (rows > 0)
    snprintf (how, size, "made up, from 0 to %" PRId64 ", as it indexes %.100s", rows - 1, of);
  else
    snprintf (how, size, "made up, %s", info->dtype == TD_BOOL ? "true or false" : "0 or 1");
  return whole_numbers (info->dtype, shape, rows > 0 ? rows - 1 : 1);
}

/* Input i of the model, if there is to be one.  False after saying what is wrong. */
static bool
prepare (Run *r, int i)
{
  const TdOnnxInfo info = td_onnx_input (r->model, i);
  const Given *given = find (r->inputs, r->n_inputs, info.name);
  char how[300], text[160];
  TdShape shape;
  TdVar *v = NULL;

  if (given == NULL && info.is_optional)
    return true;
  if (given == NULL && info.ndim < 0)
    fprintf (stderr, "tapedeck: %s: input %s has no shape: --input %s=FILE.npy\n", r->path,
             info.name, info.name);
  else if (given != NULL)
    {
      snprintf (how, sizeof how, "%.250s", given->value);
      v = td_load_npy (given->value);
    }
  else
    v = made_up (r, i, &info, how, sizeof how);
  if (v == NULL || td_error () != NULL)
    {
      td_eval_say_error ();
      return false;
    }
  if (td_dtype (v) <= TD_BF16)
    td_variable (v, info.name);
  else
    td_name (v, info.name);
  r->names[r->n_in] = info.name;
  r->in[r->n_in++] = v;
  shape = td_shape (v);
  printf ("input %s %s %s: %s\n", info.name, td_shape_text (&shape, text, sizeof text),
          td_dtype_name (td_dtype (v)), how);
  return true;
}

static bool
prepare_all (Run *r)
{
  int n = 0;

  while (td_onnx_input (r->model, n).name != NULL)
    n++;
  while (td_onnx_output (r->model, r->n_out).name != NULL)
    r->n_out++;
  r->names = calloc ((size_t)n + 1, sizeof *r->names);
  r->in = calloc ((size_t)n + 1, sizeof *r->in);
  r->out = calloc ((size_t)r->n_out + 1, sizeof *r->out);
  if (r->names == NULL || r->in == NULL || r->out == NULL)
    abort ();
  for (int i = 0; i < n; i++)
    if (!prepare (r, i))
      return false;
  return all_used (r, r->inputs, r->n_inputs, "input")
         && all_used (r, r->sizes, r->n_sizes, "open size");
}

/* --- iterations --- */

/* The sum of all floating-point outputs, or NULL. */
static TdVar *
sum_of_outputs (const Run *r)
{
  TdVar *sum = NULL;

  for (int k = 0; k < r->n_out; k++)
    if (td_dtype (r->out[k]) <= TD_BF16)
      {
        TdVar *one = td_sum (r->out[k]);

        if (sum != NULL && td_dtype (one) != td_dtype (sum))
          one = td_cast (one, td_dtype (sum));
        sum = sum != NULL ? td_add (sum, one) : one;
      }
  return sum != NULL ? td_name (sum, "sum of outputs") : NULL;
}

static void
print_outputs (const Run *r)
{
  char text[160];

  for (int k = 0; k < r->n_out; k++)
    {
      const TdShape shape = td_shape (r->out[k]);

      printf ("output %s %s %s\n", td_onnx_output (r->model, k).name,
              td_shape_text (&shape, text, sizeof text), td_dtype_name (td_dtype (r->out[k])));
    }
}

static void
count_gradient (const char *path, TdVar *param, void *user)
{
  (void)path;
  *(int *)user += td_grad (param) != NULL;
}

/* What backward has come to: parameters and inputs. */
static void
print_gradients (const Run *r)
{
  int n = 0;

  for (int k = 0; k < r->n_in; k++)
    n += td_grad (r->in[k]) != NULL;
  td_link_each_param (r->model, count_gradient, &n);
  printf ("%d %s of the sum of the outputs, in inputs and parameters\n", n,
          td_plural ((uint64_t)n, "gradient", "gradients"));
}

static void
iterate (Run *r, int64_t n)
{
  TD_ITERATIONS (i, n)
    {
      TdVar *sum;

      td_cleargrads (r->model);
      for (int k = 0; k < r->n_in; k++)
        td_cleargrad (r->in[k]);
      if (td_onnx_call (r->model, r->names, r->in, r->n_in, r->out, r->n_out) != TD_OK)
        break;
      if (i == 0)
        print_outputs (r);
      sum = sum_of_outputs (r);
      if (sum != NULL)
        td_backward (sum, 0);
      if (i == 0 && td_error () == NULL)
        print_gradients (r);
    }
}

/* --- the command --- */

/* Can it be run at all?  Asked before there is a program to be debugged: a window stops where
 * an error is, and would stand there with nothing to look at.  Says what is missing. */
static bool
can_run (const char *path)
{
  char why[400];
  TdOnnxLook *look = td__onnx_look (path, why, sizeof why);
  const bool good = look != NULL && look->n_lacks == 0;

  if (look == NULL)
    fprintf (stderr, "tapedeck: %s: %s\n", path, why);
  for (int i = 0; look != NULL && i < look->n_lacks; i++)
    fprintf (stderr, "tapedeck: %s: not there: %s\n", path, look->lacks[i]);
  td__onnx_look_free (look);
  return good;
}

static void
clear (Run *r)
{
  free (r->names);
  free (r->in);
  free (r->out);
}

int
td_command_onnx_run (int argc, char **argv)
{
  const bool limited = getenv ("TAPEDECK_ITERATIONS") != NULL; /* td_init takes it */
  Run r = { .path = argv[0] };
  int status = TD_EXIT_USAGE;

  if (argc == 2 && strcmp (argv[1], "--help") == 0)
    return puts (help), TD_EXIT_OK;
  if (!can_run (r.path))
    return TD_EXIT_USAGE;
  if (td_init (&argc, &argv) != TD_OK)
    return td_finish ();
  if (parse (argc, argv, &r) == TD_EXIT_OK && (r.model = td_eval_load (r.path)) != NULL
      && prepare_all (&r))
    {
      iterate (&r, limited ? INT64_MAX : 1);
      status = TD_EXIT_OK;
    }
  clear (&r);
  return td_finish () != 0 && status == TD_EXIT_OK ? TD_EXIT_FINDING : status;
}
