/* A schedule as a C program without dependencies: its parameters as arrays, its operations as
 * loops over float, in order.
 *
 * Meant to be read and to be carried to where nothing else is: no speed, no training.  The
 * operations of a network's inference are known; others are refused by name.
 *
 * SPDX-License-Identifier: MIT */
#include "export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  const TdSchedule *s;
  TdExport *to;
  TdExportLacks lacks;
} Out;

#define P(o, ...) td__export_print ((o)->to, __VA_ARGS__)

static uint32_t
in (const Out *o, const TdStep *step, uint32_t i)
{
  return td__step_in (o->s, step, i);
}

static const TdShape *
shape_of (const Out *o, uint32_t node)
{
  return &o->s->nodes[node].shape;
}

static long long
count (const Out *o, uint32_t node)
{
  return (long long)td__size (shape_of (o, node));
}

/* y[i] = an expression of x[i]. */
static bool
unary (Out *o, const TdStep *step)
{
  static const struct
  {
    const char *op, *text;
  } table[] = { { "relu", "x > 0 ? x : 0" },
                { "sigmoid", "1 / (1 + expf (-x))" },
                { "tanh", "tanhf (x)" },
                { "exp", "expf (x)" },
                { "log", "logf (x)" },
                { "sqrt", "sqrtf (x)" },
                { "neg", "-x" },
                { "absolute", "fabsf (x)" },
                { "square", "x * x" },
                { "sin", "sinf (x)" },
                { "cos", "cosf (x)" },
                { "silu", "x / (1 + expf (-x))" },
                { "copy", "x" },
                { "to_layout", "x" }, /* what is written is row-major throughout */
                { "leaky_relu", "x > 0 ? x : p * x" },
                { "elu", "x > 0 ? x : p * expm1f (x)" },
                { "add_scalar", "x + p" },
                { "mul_scalar", "x * p" },
                { "div_scalar", "x / p" },
                { "rsub_scalar", "p - x" },
                { "rdiv_scalar", "p / x" },
                { "pow_scalar", "powf (x, p)" } };
  double p = td__export_number (
      step, "value", td__export_number (step, "slope", td__export_number (step, "alpha", 0)));

  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp (table[i].op, step->cls->name) == 0)
      {
        P (o,
           "  for (long i = 0; i < %lld; i++)\n    {\n      const float x = v%u[i], p = %af;"
           "\n\n      (void)p;\n      v%u[i] = %s;\n    }\n",
           count (o, in (o, step, 0)), in (o, step, 0), p, td__step_out (o->s, step, 0),
           table[i].text);
        return true;
      }
  return false;
}

/* The place of element i of the result in an operand that is broadcast to it. */
static void
print_place (Out *o, const TdShape *y, const TdShape *x)
{
  int64_t stride = 1, below = 1;
  bool any = false;

  for (int d = y->ndim - 1; d >= 0; d--)
    {
      const int xd = d - (y->ndim - x->ndim);

      if (xd >= 0 && x->dim[xd] > 1)
        {
          P (o, "%si / %lld %% %lld * %lld", any ? " + " : "", (long long)below,
             (long long)y->dim[d], (long long)stride);
          stride *= x->dim[xd];
          any = true;
        }
      below *= y->dim[d];
    }
  if (!any)
    P (o, "0");
}

static bool
binary (Out *o, const TdStep *step)
{
  static const char *const table[][2] = { { "add", "a + b" },
                                          { "sub", "a - b" },
                                          { "mul", "a * b" },
                                          { "div", "a / b" },
                                          { "pow", "powf (a, b)" },
                                          { "maximum", "a > b ? a : b" },
                                          { "minimum", "a < b ? a : b" } };
  uint32_t y = td__step_out (o->s, step, 0);

  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp (table[i][0], step->cls->name) == 0)
      {
        P (o, "  for (long i = 0; i < %lld; i++)\n    {\n      const float a = v%u[",
           count (o, y), in (o, step, 0));
        print_place (o, shape_of (o, y), shape_of (o, in (o, step, 0)));
        P (o, "], b = v%u[", in (o, step, 1));
        print_place (o, shape_of (o, y), shape_of (o, in (o, step, 1)));
        P (o, "];\n\n      v%u[i] = %s;\n    }\n", y, table[i][1]);
        return true;
      }
  return false;
}

static bool
linear (Out *o, const TdStep *step)
{
  const TdShape *w = shape_of (o, in (o, step, 1));

  if (strcmp (step->cls->name, "linear") != 0)
    return false;
  P (o, "  linear (v%u, v%u, ", in (o, step, 0), in (o, step, 1));
  if (step->n_in > 2)
    P (o, "v%u", in (o, step, 2));
  else
    P (o, "0");
  P (o, ", v%u, %lld, %lld, %lld);\n", td__step_out (o->s, step, 0),
     count (o, in (o, step, 0)) / (long long)w->dim[1], (long long)w->dim[1],
     (long long)w->dim[0]);
  return true;
}

static bool
matmul (Out *o, const TdStep *step)
{
  const TdShape *y = shape_of (o, td__step_out (o->s, step, 0)),
                *a = shape_of (o, in (o, step, 0));
  const bool ta = td__export_number (step, "transa", 0) != 0,
             tb = td__export_number (step, "transb", 0) != 0;

  if (strcmp (step->cls->name, "matmul") != 0 || y->ndim != 2)
    return false;
  P (o, "  matmul (v%u, v%u, v%u, %lld, %lld, %lld, %d, %d);\n", in (o, step, 0),
     in (o, step, 1), td__step_out (o->s, step, 0), (long long)y->dim[0],
     (long long)a->dim[ta ? 0 : 1], (long long)y->dim[1], ta, tb);
  return true;
}

/* Pairs of numbers, with what stands for none. */
static void
pair (const TdStep *step, const char *name, int64_t to[2], int64_t otherwise)
{
  to[0] = to[1] = otherwise;
  if (td__export_ints (step, name, to, 2) == 1)
    to[1] = to[0];
}

static bool
convolution (Out *o, const TdStep *step)
{
  const TdShape *x = shape_of (o, in (o, step, 0)), *w = shape_of (o, in (o, step, 1)),
                *y = shape_of (o, td__step_out (o->s, step, 0));
  int64_t s[2], p[2], d[2];

  if (strcmp (step->cls->name, "convolution_2d") != 0)
    return false;
  pair (step, "stride", s, 1);
  pair (step, "pad", p, 0);
  pair (step, "dilate", d, 1);
  P (o, "  convolution (v%u, v%u, ", in (o, step, 0), in (o, step, 1));
  if (step->n_in > 2)
    P (o, "v%u", in (o, step, 2));
  else
    P (o, "0");
  P (o, ", v%u, (const long[]){ %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, ",
     td__step_out (o->s, step, 0), (long long)x->dim[0], (long long)x->dim[1],
     (long long)x->dim[2], (long long)x->dim[3], (long long)y->dim[1], (long long)y->dim[2],
     (long long)y->dim[3], (long long)w->dim[2], (long long)w->dim[3],
     (long long)td__export_number (step, "groups", 1));
  P (o, "%lld, %lld, %lld, %lld, %lld, %lld });\n", (long long)s[0], (long long)s[1],
     (long long)p[0], (long long)p[1], (long long)d[0], (long long)d[1]);
  return true;
}

static bool
pooling (Out *o, const TdStep *step)
{
  const bool largest = strcmp (step->cls->name, "max_pooling_2d") == 0;
  const TdShape *x = shape_of (o, in (o, step, 0)),
                *y = shape_of (o, td__step_out (o->s, step, 0));
  int64_t k[2], s[2], p[2];

  if (!largest && strcmp (step->cls->name, "average_pooling_2d") != 0)
    return false;
  pair (step, "ksize", k, 1);
  s[0] = k[0];
  s[1] = k[1];
  if (td__export_ints (step, "stride", s, 2) == 1)
    s[1] = s[0];
  pair (step, "pad", p, 0);
  P (o, "  pooling (v%u, v%u, %d, (const long[]){ %lld, %lld, %lld, %lld, %lld, ",
     in (o, step, 0), td__step_out (o->s, step, 0), largest, (long long)(x->dim[0] * x->dim[1]),
     (long long)x->dim[2], (long long)x->dim[3], (long long)y->dim[2], (long long)y->dim[3]);
  P (o, "%lld, %lld, %lld, %lld, %lld, %lld });\n", (long long)k[0], (long long)k[1],
     (long long)s[0], (long long)s[1], (long long)p[0], (long long)p[1]);
  return true;
}

static bool
softmax (Out *o, const TdStep *step)
{
  const TdShape *x = shape_of (o, in (o, step, 0));
  const bool logs = strcmp (step->cls->name, "log_softmax") == 0;
  int64_t axis = (int64_t)td__export_number (step, "axis", 1), inner = 1;

  if (!logs && strcmp (step->cls->name, "softmax") != 0)
    return false;
  axis += axis < 0 ? x->ndim : 0;
  for (int d = (int)axis + 1; d < x->ndim; d++)
    inner *= x->dim[d];
  P (o, "  softmax (v%u, v%u, %lld, %lld, %lld, %d);\n", in (o, step, 0),
     td__step_out (o->s, step, 0),
     count (o, in (o, step, 0)) / (long long)(x->dim[axis] * inner), (long long)x->dim[axis],
     (long long)inner, logs);
  return true;
}

static bool
normalization (Out *o, const TdStep *step)
{
  const TdShape *x = shape_of (o, in (o, step, 0));
  int64_t inner = 1;

  if (strcmp (step->cls->name, "fixed_batch_normalization") != 0 || x->ndim < 2)
    return false;
  for (int d = 2; d < x->ndim; d++)
    inner *= x->dim[d];
  P (o, "  normalize (v%u, v%u, v%u, v%u, v%u, v%u, %lld, %lld, %lld, %af);\n", in (o, step, 0),
     in (o, step, 1), in (o, step, 2), in (o, step, 3), in (o, step, 4),
     td__step_out (o->s, step, 0), (long long)x->dim[0], (long long)x->dim[1], (long long)inner,
     td__export_number (step, "eps", 2e-5));
  return true;
}

static bool
view (Out *o, const TdStep *step)
{
  if (!(step->cls->flags & TD_OP_VIEW))
    return false;
  P (o, "  memcpy (v%u, v%u, sizeof v%u);\n", td__step_out (o->s, step, 0), in (o, step, 0),
     td__step_out (o->s, step, 0));
  return true;
}

static const char helpers[]
    = "static void\nlinear (const float *x, const float *w, const float *b, float *y, long "
      "rows, "
      "long n_in, long n_out)\n{\n  for (long r = 0; r < rows; r++)\n    for (long o = 0; o < "
      "n_out; o++)\n      {\n        float sum = 0;\n\n        for (long i = 0; i < n_in; "
      "i++)\n  "
      "        sum += x[r * n_in + i] * w[o * n_in + i];\n        y[r * n_out + o] = sum + (b "
      "!= 0 "
      "? b[o] : 0);\n      }\n}\n\n"
      "static void\nmatmul (const float *a, const float *b, float *y, long m, long k, long n, "
      "int "
      "ta, int tb)\n{\n  for (long r = 0; r < m; r++)\n    for (long c = 0; c < n; c++)\n      "
      "{\n "
      "       float sum = 0;\n\n        for (long i = 0; i < k; i++)\n          sum += (ta ? "
      "a[i * m "
      "+ r] : a[r * k + i]) * (tb ? b[c * k + i] : b[i * n + c]);\n        y[r * n + c] = "
      "sum;\n   "
      "   }\n}\n\n"
      "/* n, c, h, w; channels, h, w of the result; kernel h, w; groups; stride, pad, dilation "
      "*/\n"
      "static void\nconvolution (const float *x, const float *w, const float *b, float *y, "
      "const "
      "long *d)\n{\n  const long cin = d[1] / d[9], per = d[4] / d[9];\n\n  for (long n = 0; n "
      "< "
      "d[0]; n++)\n    for (long o = 0; o < d[4]; o++)\n      for (long i = 0; i < d[5]; "
      "i++)\n    "
      "    for (long j = 0; j < d[6]; j++)\n          {\n            float sum = b != 0 ? b[o] "
      ": "
      "0;\n\n            for (long c = 0; c < cin; c++)\n              for (long p = 0; p < "
      "d[7]; "
      "p++)\n                for (long q = 0; q < d[8]; q++)\n                  {\n            "
      "    "
      "    const long h = i * d[10] - d[12] + p * d[14], v = j * d[11] - d[13] + q * "
      "d[15];\n\n    "
      "                if (h >= 0 && h < d[2] && v >= 0 && v < d[3])\n                      "
      "sum += "
      "x[((n * d[1] + o / per * cin + c) * d[2] + h) * d[3] + v]\n                             "
      "* "
      "w[((o * cin + c) * d[7] + p) * d[8] + q];\n                  }\n            y[((n * "
      "d[4] + "
      "o) * d[5] + i) * d[6] + j] = sum;\n          }\n}\n\n"
      "/* planes; h, w; h, w of the result; window; stride; pad */\n"
      "static void\npooling (const float *x, float *y, int largest, const long *d)\n{\n  for "
      "(long "
      "n = 0; n < d[0]; n++)\n    for (long i = 0; i < d[3]; i++)\n      for (long j = 0; j < "
      "d[4]; "
      "j++)\n        {\n          float best = -INFINITY, sum = 0;\n\n          for (long p = "
      "0; p < "
      "d[5]; p++)\n            for (long q = 0; q < d[6]; q++)\n              {\n              "
      "  "
      "const long h = i * d[7] - d[9] + p, v = j * d[8] - d[10] + q;\n\n                if (h "
      "< 0 "
      "|| h >= d[1] || v < 0 || v >= d[2])\n                  continue;\n                if "
      "(x[(n * "
      "d[1] + h) * d[2] + v] > best)\n                  best = x[(n * d[1] + h) * d[2] + v];\n "
      "    "
      "           sum += x[(n * d[1] + h) * d[2] + v];\n              }\n          y[(n * d[3] "
      "+ i) "
      "* d[4] + j] = largest ? best : sum / (float)(d[5] * d[6]);\n        }\n}\n\n"
      "static void\nsoftmax (const float *x, float *y, long outer, long n, long inner, int "
      "logs)\n{\n  for (long o = 0; o < outer; o++)\n    for (long i = 0; i < inner; i++)\n    "
      "  "
      "{\n        const float *a = x + o * n * inner + i;\n        float *b = y + o * n * "
      "inner + i, "
      "top = -INFINITY, sum = 0;\n\n        for (long k = 0; k < n; k++)\n          top = a[k "
      "* "
      "inner] > top ? a[k * inner] : top;\n        for (long k = 0; k < n; k++)\n          sum "
      "+= "
      "expf (a[k * inner] - top);\n        for (long k = 0; k < n; k++)\n          b[k * "
      "inner] = "
      "logs ? a[k * inner] - top - logf (sum) : expf (a[k * inner] - top) / sum;\n      "
      "}\n}\n\n"
      "static void\nnormalize (const float *x, const float *gamma, const float *beta, const "
      "float "
      "*mean, const float *var,\n           float *y, long n, long c, long inner, float "
      "eps)\n{\n  "
      "for (long i = 0; i < n * c * inner; i++)\n    {\n      const long k = i / inner % "
      "c;\n\n     "
      " y[i] = gamma[k] * (x[i] - mean[k]) / sqrtf (var[k] + eps) + beta[k];\n    }\n}\n";

/* Is the array used, by a step or as a result?  Places of the largest are not. */
static bool
is_used (const TdSchedule *s, uint32_t node)
{
  bool used = false;

  for (uint32_t k = 0; k < s->n_outputs; k++)
    used |= s->outputs[k].node == node;
  for (uint32_t i = 0; i < s->forward.n && !used; i++)
    for (uint32_t k = 0; k < s->forward.steps[i].n_in; k++)
      used |= td__step_in (s, &s->forward.steps[i], k) == node;
  return used;
}

/* The first array that is not of float: its name and type, or "". */
static const char *
other_type (const Out *o, char *text, size_t size)
{
  const TdSchedule *s = o->s;
  char name[300];

  text[0] = '\0';
  for (uint32_t n = 0; n < s->n_nodes; n++)
    if (s->nodes[n].dtype != TD_F32 && is_used (s, n))
      {
        snprintf (text, size, "%s is %s", td__export_name (s, n, name, sizeof name),
                  td_dtype_name ((TdDtype)s->nodes[n].dtype));
        break;
      }
  return text;
}

static TdStatus
print_arrays (Out *o, const TdSite *site)
{
  const TdSchedule *s = o->s;
  char name[300];

  for (uint32_t n = 0; n < s->n_nodes; n++)
    {
      float *numbers;

      if (s->nodes[n].dtype != TD_F32)
        continue; /* no step uses it */
      P (o, "static %sfloat v%u[%lld]", td__export_is_given (s, n) ? "const " : "", n,
         count (o, n) > 0 ? count (o, n) : 1);
      if (td__export_is_given (s, n))
        {
          numbers = td__export_numbers (s, n, site);
          if (numbers == NULL)
            return td__error_status ();
          P (o, " = { /* %s */", td__export_name (s, n, name, sizeof name));
          for (long long i = 0; i < count (o, n); i++)
            P (o, "%s%a", i % 8 == 0 ? "\n  " : " ", (double)numbers[i]), P (o, "f,");
          P (o, "\n}");
          free (numbers);
        }
      P (o, ";\n");
    }
  return TD_OK;
}

static void
print_step (Out *o, const TdStep *step)
{
  static bool (*const writers[]) (Out *, const TdStep *)
      = { view, unary, binary, linear, matmul, convolution, pooling, normalization, softmax };

  if (step->kind == TD_STEP_FILL && step->how.origin == TD_ARRAY_FILL)
    {
      uint32_t y = td__step_out (o->s, step, 0);

      P (o, "  for (long i = 0; i < %lld; i++)\n    v%u[i] = %af;\n", count (o, y), y,
         step->how.a);
      return;
    }
  if (step->kind == TD_STEP_FILL && step->how.origin == TD_ARRAY_ARANGE)
    {
      uint32_t y = td__step_out (o->s, step, 0);

      P (o, "  for (long i = 0; i < %lld; i++)\n    v%u[i] = (float)(%a + %a * (double)i);\n",
         count (o, y), y, step->how.a, step->how.b);
      return;
    }
  if (step->kind == TD_STEP_FILL || step->kind == TD_STEP_COPY)
    td__export_lack (&o->lacks, step,
                     step->kind == TD_STEP_COPY ? "an array that is changed in place"
                                                : "an array of random numbers");
  if (step->kind != TD_STEP_OP)
    return;
  if (step->site != NULL)
    P (o, "  /* %s, %s:%d */\n", step->cls->name, step->site->file, step->site->line);
  for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
    if (writers[i](o, step))
      return;
  td__export_lack (&o->lacks, step, NULL);
}

/* The body of run (): TD_ERR_ARG with the list of what a C program does not have. */
static TdStatus
print_steps (Out *o, const TdSite *site)
{
  const TdSchedule *s = o->s;
  char type[400];

  for (uint32_t i = 0; i < s->forward.n; i++)
    print_step (o, &s->forward.steps[i]);
  other_type (o, type, sizeof type);
  if (o->lacks.n == 0 && type[0] == '\0')
    return TD_OK;
  if (o->lacks.n == 0)
    return td__fail (TD_ERR_DTYPE, "td_static_save", site,
                     "a C program of float arrays can be written, %s", type);
  return td__fail (TD_ERR_ARG, "td_static_save", site, "a C program does not have %s%s%s",
                   o->lacks.text, type[0] != '\0' ? "; its arrays are f32, " : "", type);
}

/* A program around run () for a pipe. */
static void
print_main (Out *o)
{
  const TdSchedule *s = o->s;

  P (o, "#ifdef MAIN\nint\nmain (void)\n{\n");
  for (uint32_t i = 0; i < s->n_arguments; i++)
    P (o, "  static float in%u[%lld];\n", i, count (o, s->externals[i].node));
  for (uint32_t k = 0; k < s->n_outputs; k++)
    P (o, "  static float out%u[%lld];\n", k, count (o, s->outputs[k].node));
  P (o, "  const float *const inputs[] = { ");
  for (uint32_t i = 0; i < s->n_arguments; i++)
    P (o, "in%u, ", i);
  P (o, "0 };\n  float *const outputs[] = { ");
  for (uint32_t k = 0; k < s->n_outputs; k++)
    P (o, "out%u, ", k);
  P (o, "0 };\n\n");
  for (uint32_t i = 0; i < s->n_arguments; i++)
    P (o, "  if (fread (in%u, sizeof in%u, 1, stdin) != 1)\n    return 1;\n", i, i);
  P (o, "  run (inputs, outputs);\n");
  for (uint32_t k = 0; k < s->n_outputs; k++)
    P (o, "  if (fwrite (out%u, sizeof out%u, 1, stdout) != 1)\n    return 1;\n", k, k);
  P (o, "  return 0;\n}\n#endif\n");
}

TdStatus
td__export_c (const TdStatic *function, const TdSchedule *s, TdExport *to, const TdSite *site)
{
  TdExport body = { NULL, 0, 0 };
  Out o = { .s = s, .to = &body };
  TdStatus status = print_steps (&o, site); /* before millions of weights are */

  o.to = to;
  if (status == TD_OK)
    {
      P (&o,
         "/* Static function %s, written by tapedeck %s.\n *\n * run (const float *const "
         "*inputs, "
         "float *const *outputs): one call.  With -DMAIN: reads the\n * inputs as raw float "
         "from "
         "standard input, writes the outputs.  Link with -lm. */\n#include <math.h>\n#include "
         "<stdio.h>\n#include <string.h>\n\n%s\n",
         function->name, td_version (), helpers);
      status = print_arrays (&o, site);
      P (&o, "\nvoid run (const float *const *inputs, float *const *outputs);\n\nvoid\n"
             "run (const float *const *inputs, float *const *outputs)\n{\n");
      for (uint32_t i = 0; i < s->n_arguments; i++)
        P (&o, "  memcpy (v%u, inputs[%u], sizeof v%u);\n", s->externals[i].node, i,
           s->externals[i].node);
      P (&o, "%s", body.bytes != NULL ? body.bytes : "");
      for (uint32_t k = 0; k < s->n_outputs; k++)
        P (&o, "  memcpy (outputs[%u], v%u, sizeof v%u);\n", k, s->outputs[k].node,
           s->outputs[k].node);
      P (&o, "  (void)linear, (void)matmul, (void)convolution, (void)pooling, (void)softmax, "
             "(void)normalize;\n}\n\n");
      print_main (&o);
    }
  free (body.bytes);
  return status;
}
