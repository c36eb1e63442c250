/* ONNX operators that go element by element, and reductions.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* --- on the host --- */

/* clang-format off */
#define ON_BOTH(name, expression)                                                              \
  static int64_t name##_i (int64_t a, int64_t b) { (void)b; return expression; }               \
  static double name##_f (double a, double b) { (void)b; return expression; }
#define ON_INTS(name, expression)                                                              \
  static int64_t name##_i (int64_t a, int64_t b) { (void)b; return expression; }
#define ON_FLOATS(name, expression)                                                            \
  static double name##_f (double a, double b) { (void)b; return expression; }
#define WRAP(op) (int64_t)((uint64_t)a op (uint64_t)b)
ON_INTS (add, WRAP (+))
ON_INTS (sub, WRAP (-))
ON_INTS (mul, WRAP (*))
ON_FLOATS (add, a + b)
ON_FLOATS (sub, a - b)
ON_FLOATS (mul, a * b)
ON_FLOATS (div, a / b)
ON_INTS (div, b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
ON_INTS (mod, b == 0 || b == -1 ? 0 : a % b != 0 && (a ^ b) < 0 ? a % b + b : a % b)
ON_FLOATS (pow, pow (a, b))
ON_INTS (pow, (int64_t)fmin (fmax (pow ((double)a, (double)b), -0x1p62), 0x1p62))
ON_BOTH (least, a < b ? a : b)
ON_BOTH (most, a > b ? a : b)
ON_BOTH (equal, a == b)
ON_BOTH (less, a < b)
ON_BOTH (less_equal, a <= b)
ON_BOTH (greater, a > b)
ON_BOTH (greater_equal, a >= b)
ON_INTS (both, a != 0 && b != 0)
ON_INTS (either, a != 0 || b != 0)
ON_INTS (one, (a != 0) != (b != 0))
ON_INTS (not, a == 0)
ON_INTS (neg, (int64_t)(0 - (uint64_t)a))
ON_FLOATS (neg, -a)
ON_INTS (abs, a < 0 ? (int64_t)(0 - (uint64_t)a) : a)
ON_FLOATS (abs, fabs (a))
ON_FLOATS (floor, floor (a))
ON_FLOATS (ceil, ceil (a))
ON_FLOATS (round, rint (a))
ON_FLOATS (sqrt, sqrt (a))
ON_FLOATS (exp, exp (a))
ON_FLOATS (log, log (a))
ON_FLOATS (reciprocal, 1 / a)
/* clang-format on */
#define HOST(name, ...) .host = host_pair, .numbers = { name##_i, name##_f, __VA_ARGS__ }
#define HOST_INTS(name, ...) .host = host_pair, .numbers = { name##_i, NULL, __VA_ARGS__ }
#define HOST_FLOATS(name) .host = host_one, .numbers = { NULL, name##_f, false }

/* Any number of inputs, from the left; of one: with itself. */
static const TdOnnxHost *
host_pair (TdOnnxRun *r)
{
  const TdOnnxHost *h = td__run_known (r, 0);
  const TdOnnxHostOp *op = &r->node->row->numbers;

  if (r->node->n_in == 1 && r->node->row->unary != NULL)
    return td__host_binary (&r->arena, h, h, op);
  for (int i = 1; i < r->node->n_in && h != NULL; i++)
    h = td__host_binary (&r->arena, h, td__run_known (r, i), op);
  return h;
}

static const TdOnnxHost *
host_one (TdOnnxRun *r)
{
  const TdOnnxHost *h = td__run_known (r, 0);

  return td__host_binary (&r->arena, h, h, &r->node->row->numbers);
}

/* --- one array --- */

static void
unary (TdOnnxRun *r)
{
  td__run_out (r, 0, r->node->row->unary (td__run_var (r, 0)));
}

static TdVar *
with_alpha (TdOnnxRun *r, TdVar *x, double otherwise)
{
  const double alpha = td__onnx_attr_float (r->node, "alpha", otherwise);
  const TdLeakyReluOpt leaky = { .slope = alpha };
  const TdEluOpt elu = { .alpha = alpha };

  return strcmp (r->node->type, "Elu") == 0 ? td_elu_ (x, &elu) : td_leaky_relu_ (x, &leaky);
}

static void
leaky (TdOnnxRun *r)
{
  td__run_out (r, 0, with_alpha (r, td__run_var (r, 0), 0.01));
}

static void
elu (TdOnnxRun *r)
{
  td__run_out (r, 0, with_alpha (r, td__run_var (r, 0), 1));
}

static void
selu (TdOnnxRun *r)
{
  const TdSeluOpt o
      = { .alpha = td__onnx_attr_float (r->node, "alpha", 1.67326319217681884765625),
          .scale = td__onnx_attr_float (r->node, "gamma", 1.05070102214813232421875) };

  td__run_out (r, 0, td_selu_ (td__run_var (r, 0), &o));
}

/* The two halves of the definition meet only where alpha is above 0. */
static const char *
celu_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  (void)g;
  return td__onnx_attr_float (n, "alpha", 1) > 0 ? NULL : "alpha of 0 or less";
}

/* alpha elu (x / alpha). */
static void
celu (TdOnnxRun *r)
{
  const double alpha = td__onnx_attr_float (r->node, "alpha", 1);

  td__run_out (r, 0,
               td_mul_scalar ((td_elu)(td_mul_scalar (td__run_var (r, 0), 1 / alpha)), alpha));
}

static TdVar *
line_in_unit (TdVar *x, double alpha, double beta)
{
  return td_clip (td_add_scalar (td_mul_scalar (x, alpha), beta), 0, 1);
}

static void
hard_sigmoid (TdOnnxRun *r)
{
  td__run_out (r, 0,
               line_in_unit (td__run_var (r, 0), td__onnx_attr_float (r->node, "alpha", 0.2),
                             td__onnx_attr_float (r->node, "beta", 0.5)));
}

static TdVar *
hard_swish (TdVar *x)
{
  return td_mul (x, line_in_unit (x, 1.0 / 6, 0.5));
}

static TdVar *
mish (TdVar *x)
{
  return td_mul (x, td_tanh ((td_softplus)(x)));
}

static TdVar *
softsign (TdVar *x)
{
  return td_div (x, td_add_scalar (td_absolute (x), 1));
}

static TdVar *
reciprocal (TdVar *x)
{
  return td_rdiv_scalar (x, 1);
}

static void
gelu (TdOnnxRun *r)
{
  const TdGeluOpt o
      = { .approximate
          = strcmp (td__onnx_attr_text (r->node, "approximate", "none"), "tanh") == 0 };

  td__run_out (r, 0, td_gelu_ (td__run_var (r, 0), &o));
}

/* An end of a range: an input, or before opset 11 an attribute. */
static double
bound (TdOnnxRun *r, int i, const char *attribute, double otherwise)
{
  const TdOnnxHost *h = td__run_there (r, i) ? td__run_numbers (r, i) : NULL;

  return h != NULL && h->n == 1 ? td__host_float (h, 0)
                                : td__onnx_attr_float (r->node, attribute, otherwise);
}

static void
clip (TdOnnxRun *r)
{
  const double none
      = r->g->opset < 11 ? FLT_MAX : INFINITY, /* what bounds are where not said */
      least = bound (r, 1, "min", -none), most = bound (r, 2, "max", none);

  if (isnan (least) || isnan (most))
    td__run_fail (r, TD_ERR_ARG, "bounds that are numbers expected, got %g and %g", least,
                  most);
  else
    td__run_out (r, 0, td_clip (td__run_var (r, 0), least < most ? least : most, most));
}

/* The slope lies under the last axes; before opset 7 one of one axis under the channels. */
static void
prelu (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *slope = td__run_var (r, 1);
  const int ndim = td_ndim (x);
  TdShape shape = td_shape (slope);

  if (r->g->opset < TD_ONNX_OPSET_FIRST && shape.ndim == 1 && ndim > 2)
    {
      for (shape.ndim = ndim - 1; shape.ndim > 1; shape.ndim--)
        shape.dim[shape.ndim - 1] = 1;
      shape.ndim = ndim - 1;
      slope = td_reshape (slope, shape);
    }
  /* Chosen, not added: an infinite slope times 0 is no number. */
  td__run_out (
      r, 0,
      td_where (td_greater (x, td_zeros (td_dtype (x), TD_SCALAR)), x, td_mul (slope, x)));
}

/* Zero points of PyTorch are made so: int32 that hold what an int8 would. */
static bool
casts_to_int8 (const TdOnnxNode *n)
{
  return n->n_in == 1 && td__onnx_attr_int (n, "to", 0) == TD_ONNX_INT8;
}

static void
cast (TdOnnxRun *r)
{
  const int dtype = r->node->n_in == 2
                        ? (int)td_dtype (td__run_var (r, 1))
                        : td__onnx_dtype_of (td__onnx_attr_int (r->node, "to", 0));
  TdVar *x = td__run_var (r, 0);

  if (casts_to_int8 (r->node))
    td__run_fail (r, TD_ERR_DTYPE, "a constant expected to become int8, got an array");
  else
    td__run_out (r, 0, td_dtype (x) == (TdDtype)dtype ? x : td_cast (x, (TdDtype)dtype));
}

static const TdOnnxHost *
host_cast_to_int8 (TdOnnxRun *r)
{
  TdOnnxHost *to = td__host_cast (&r->arena, td__run_known (r, 0), TD_I32);

  for (int64_t i = 0; to != NULL && i < to->n; i++)
    to->i[i] = (int8_t)to->i[i];
  return to;
}

static const TdOnnxHost *
host_cast (TdOnnxRun *r)
{
  const int dtype = r->node->n_in == 2
                        ? (int)td__run_known (r, 1)->dtype
                        : td__onnx_dtype_of (td__onnx_attr_int (r->node, "to", 0));

  if (casts_to_int8 (r->node))
    return host_cast_to_int8 (r);
  return td__host_cast (&r->arena, td__run_known (r, 0), (TdDtype)dtype);
}

static const char *
cast_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  (void)g;
  return n->n_in == 1 && !casts_to_int8 (n)
                 && td__onnx_dtype_of (td__onnx_attr_int (n, "to", 0)) < 0
             ? "the element type"
             : NULL;
}

/* --- two arrays and more --- */

/* Truth values and bytes are computed with as integers. */
static TdVar *
as_number (TdVar *x)
{
  return td_dtype (x) >= TD_U8 ? td_cast (x, TD_I32) : x;
}

/* A number that leaves the other's shape as it is. */
static bool
is_number (TdOnnxRun *r, int i)
{
  const TdOnnxHost *h = td__run_known (r, i);

  return h != NULL && h->n == 1 && td__run_known (r, 1 - i) == NULL
         && td_ndim (td__run_var (r, 1 - i)) >= h->shape.ndim;
}

static void
binary (TdOnnxRun *r)
{
  const TdOnnxRow *row = r->node->row;
  TdVar *y;

  for (int i = 0; i < 2; i++)
    if (row->number[i] != NULL && r->node->n_in == 2 && is_number (r, 1 - i))
      {
        td__run_out (
            r, 0,
            row->number[i](td__run_var (r, i), td__host_float (td__run_known (r, 1 - i), 0)));
        return;
      }
  y = td__run_var (r, 0);
  for (int i = 1; i < r->node->n_in; i++)
    y = row->binary (y, td__run_var (r, i));
  td__run_out (r, 0, y);
}

static void
mean (TdOnnxRun *r)
{
  TdVar *y = td__run_var (r, 0);

  for (int i = 1; i < r->node->n_in; i++)
    y = td_add (y, td__run_var (r, i));
  td__run_out (r, 0, td_div_scalar (y, r->node->n_in));
}

/* The exponent may be of another dtype. */
static void
power (TdOnnxRun *r)
{
  TdVar *x, *y;

  if (is_number (r, 1) || is_number (r, 0))
    {
      binary (r);
      return;
    }
  x = td__run_var (r, 0), y = td__run_var (r, 1);
  td__run_out (r, 0, td_pow (x, td_dtype (x) != td_dtype (y) ? td_cast (y, td_dtype (x)) : y));
}

static void
compare (TdOnnxRun *r)
{
  TdVar *a = as_number (td__run_var (r, 0)), *b = as_number (td__run_var (r, 1));

  td__run_out (r, 0, td_cast (r->node->row->binary (a, b), TD_BOOL));
}

static TdVar *
differ (TdVar *a, TdVar *b)
{
  return td_absolute (td_sub (a, b));
}

static TdVar *
opposite (TdVar *x)
{
  return td_cast (td_rsub_scalar (as_number (x), 1), TD_BOOL);
}

static void
where (TdOnnxRun *r)
{
  td__run_out (r, 0, td_where (td__run_var (r, 0), td__run_var (r, 1), td__run_var (r, 2)));
}

static const TdOnnxHost *
host_where (TdOnnxRun *r)
{
  const TdOnnxHost *h[3];
  TdOnnxHost *to;
  TdShape both, shape;

  if (!td__shape_broadcast (&td__run_known (r, 1)->shape, &td__run_known (r, 2)->shape, &both)
      || !td__shape_broadcast (&td__run_known (r, 0)->shape, &both, &shape)
      || td__run_known (r, 1)->dtype != td__run_known (r, 2)->dtype)
    return NULL;
  for (int i = 0; i < 3; i++)
    if ((h[i] = td__host_expand (&r->arena, td__run_known (r, i), &shape)) == NULL)
      return NULL;
  to = td__host_view (&r->arena, h[1], &shape);
  for (int64_t i = 0; i < to->n; i++)
    if (td__host_float (h[0], i) == 0 && to->f != NULL)
      to->f[i] = h[2]->f[i];
    else if (td__host_float (h[0], i) == 0)
      to->i[i] = h[2]->i[i];
  return to;
}

/* --- over axes --- */

static TdVar *
sum_of_squares (TdVar *x, const int *axes, int n, bool keepdims)
{
  return td_sum_axes (td_square (x), axes, n, keepdims);
}

static TdVar *
sum_of_sizes (TdVar *x, const int *axes, int n, bool keepdims)
{
  return td_sum_axes (td_absolute (x), axes, n, keepdims);
}

static TdVar *
log_of_sum (TdVar *x, const int *axes, int n, bool keepdims)
{
  return td_log (td_sum_axes (x, axes, n, keepdims));
}

static void
reduce (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *y;
  int axes[TD_MAX_DIMS], n;
  bool whole, keeps = td__onnx_attr_int (r->node, "keepdims", 1) != 0;

  if (!td__run_axes (r, 1, "axes", td_ndim (x), axes, &n))
    return;
  whole = n == 0 && td__onnx_attr_int (r->node, "noop_with_empty_axes", 0) == 0;
  if (whole && td_ndim (x) == 0) /* a scalar is the one element of an axis */
    {
      x = td_expand_dims (x, 0);
      keeps = false;
    }
  for (int d = 0; whole && d < td_ndim (x); d++)
    axes[n++] = d;
  if (n > 0)
    y = r->node->row->reduce (x, axes, n, keeps);
  else /* over no axis: what is done to an element beside the reduction is done to each */
    y = td_reshape (r->node->row->reduce (td_expand_dims (x, 0), (int[]){ 0 }, 1, false),
                    td_shape (x));
  td__run_out (r, 0, y);
}

/* The element of the result that each of x goes into; `*shape` becomes that of the result, with
 * the axes that are reduced as 1. */
static int64_t *
places_of (TdOnnxRun *r, const TdShape *x, const bool *reduced, TdShape *shape)
{
  const int64_t n = td__size (x);
  int64_t *places = td__onnx_alloc (&r->arena, (size_t)n + 1, sizeof *places),
          index[TD_MAX_DIMS] = { 0 };

  *shape = *x;
  for (int d = 0; d < x->ndim; d++)
    shape->dim[d] = reduced[d] ? 1 : x->dim[d];
  for (int64_t k = 0; k < n; k++)
    {
      for (int d = 0; d < x->ndim; d++)
        places[k] = places[k] * shape->dim[d] + (reduced[d] ? 0 : index[d]);
      for (int d = x->ndim - 1; d >= 0 && ++index[d] == x->dim[d]; d--)
        index[d] = 0;
    }
  return places;
}

/* Without the axes of size 1 that were reduced, where they are not kept. */
static void
drop_reduced (TdShape *shape, const bool *reduced)
{
  int kept = 0;

  for (int d = 0; d < shape->ndim; d++)
    if (!reduced[d])
      shape->dim[kept++] = shape->dim[d];
  shape->ndim = kept;
}

/* Sums and products of sizes, and the least and the most of them. */
static const TdOnnxHost *
host_reduce (TdOnnxRun *r)
{
  const TdOnnxHost *h = td__run_known (r, 0);
  const TdOnnxHostOp *op = &r->node->row->numbers;
  bool reduced[TD_MAX_DIMS] = { false };
  int axes[TD_MAX_DIMS], n;
  int64_t *places, *first;
  TdOnnxHost *to;
  TdShape shape;

  if (!td__run_axes (r, 1, "axes", h->shape.ndim, axes, &n))
    return NULL;
  if (h->n == 0 || (h->f != NULL ? op->f == NULL : op->i == NULL))
    {
      td__run_fail (r, TD_ERR_ARG, "numbers that can be reduced expected");
      return NULL;
    }
  for (int d = 0; d < h->shape.ndim; d++)
    reduced[d] = n == 0 && td__onnx_attr_int (r->node, "noop_with_empty_axes", 0) == 0;
  for (int k = 0; k < n; k++)
    reduced[axes[k]] = true;
  places = places_of (r, &h->shape, reduced, &shape);
  first = td__onnx_alloc (&r->arena, (size_t)td__size (&shape) + 1, sizeof *first);
  for (int64_t k = h->n - 1; k >= 0; k--)
    first[places[k]] = k;
  if (td__onnx_attr_int (r->node, "keepdims", 1) == 0)
    drop_reduced (&shape, reduced);
  to = td__host_gather (&r->arena, h, &shape, first);
  for (int64_t k = 0; to != NULL && k < h->n; k++)
    if (first[places[k]] == k)
      continue;
    else if (to->f != NULL)
      to->f[places[k]] = op->f (to->f[places[k]], h->f[k]);
    else
      to->i[places[k]] = op->i (to->i[places[k]], h->i[k]);
  return to;
}

static void
arg (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *y;
  const int axis = td__run_axis (r, 0, td_ndim (x));

  if (axis < 0)
    return;
  y = strcmp (r->node->type, "ArgMax") == 0 ? td_argmax (x, axis) : td_argmin (x, axis);
  y = td_cast (y, TD_I64);
  if (td__onnx_attr_int (r->node, "keepdims", 1) != 0)
    y = td_expand_dims (y, axis);
  td__run_out (r, 0, y);
}

static void
cumsum (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  int axis, n;

  if (!td__run_axes (r, 1, NULL, td_ndim (x), &axis, &n) || n != 1)
    return;
  td__run_out (r, 0,
               td__onnx_attr_int (r->node, "reverse", 0) != 0
                   ? td_flip (td_cumsum (td_flip (x, axis), axis), axis)
                   : td_cumsum (x, axis));
}

/* Before opset 13 over all axes from that one on. */
static void
softmax (TdOnnxRun *r)
{
  const bool old = r->g->opset < 13, logarithm = r->node->type[0] == 'L';
  TdVar *x = td__run_var (r, 0), *y;
  const TdShape shape = td_shape (x);
  int axis = td__run_axis (r, old ? 1 : -1, shape.ndim);
  TdShape rows = { 2, { 1, 1 } };
  TdSoftmaxOpt o = { .axis = axis };

  if (axis < 0)
    return;
  for (int d = 0; d < shape.ndim; d++)
    rows.dim[d >= axis] *= shape.dim[d];
  if (old && axis < shape.ndim - 1)
    {
      x = td_reshape (x, rows);
      o.axis = 1;
    }
  y = logarithm ? td_log_softmax_ (x, &o) : td_softmax_ (x, &o);
  td__run_out (r, 0, td_ndim (y) != shape.ndim || old ? td_reshape (y, shape) : y);
}

#define FLOATS "of floating-point numbers"
#define INTEGERS "integers only where they are sizes or constants"
#define NO_BYTES "not of uint8 arrays"
#define NO_BYTES_OR_BOOL "not of arrays of uint8 or bool"
#define ONE .least_in = 1, .most_in = 1
#define TWO .least_in = 2, .most_in = 2
#define MANY .least_in = 1, .most_in = -1
#define UNARY(since, fn) .from = since, ONE, .run = unary, .unary = fn
#define BINARY(since, fn) .from = since, TWO, .run = binary, .binary = fn
#define COMPARE(since, fn, name)                                                               \
  .from = since, TWO, .run = compare, .binary = fn, HOST (name, true)
#define LOGIC(since, fn, name)                                                                 \
  .from = since, TWO, .run = compare, .binary = fn, HOST_INTS (name, true)
#define REDUCE(since, until, fn)                                                               \
  .from = since, .to = until, ONE, .attributes = "axes keepdims", .run = reduce, .reduce = fn
#define REDUCE_IN(since, fn)                                                                   \
  .from = since, .least_in = 1, .most_in = 2, .read = 2,                                       \
  .attributes = "keepdims noop_with_empty_axes", .run = reduce, .reduce = fn
#define OF_SIZES(name) .host = host_reduce, .numbers = { name##_i, name##_f, false }

/* clang-format off */
const TdOnnxRow td__onnx_math[] = {
  { "Abs", UNARY (6, td_absolute), HOST (abs, false) },
  { "Cos", UNARY (7, td_cos) },
  { "Erf", UNARY (9, td_erf) },
  { "Exp", UNARY (6, td_exp), HOST_FLOATS (exp) },
  { "HardSwish", UNARY (14, hard_swish) },
  { "Log", UNARY (6, td_log), HOST_FLOATS (log) },
  { "Mish", UNARY (18, mish) },
  { "Neg", UNARY (6, td_neg), HOST (neg, false) },
  { "Not", UNARY (1, opposite), HOST_INTS (not, true) },
  { "Reciprocal", UNARY (6, reciprocal), HOST_FLOATS (reciprocal) },
  { "Relu", UNARY (6, td_relu), .limits = FLOATS },
  { "Sigmoid", UNARY (6, td_sigmoid) },
  { "Sign", UNARY (9, td_sign) },
  { "Sin", UNARY (7, td_sin) },
  { "Softplus", UNARY (1, td_softplus) },
  { "Softsign", UNARY (1, softsign) },
  { "Sqrt", UNARY (6, td_sqrt), HOST_FLOATS (sqrt) },
  { "Tanh", UNARY (6, td_tanh) },
  { "Ceil", .from = 6, ONE, HOST_FLOATS (ceil), .limits = "of sizes and constants only" },
  { "Floor", .from = 6, ONE, HOST_FLOATS (floor), .limits = "of sizes and constants only" },
  { "Round", .from = 11, ONE, HOST_FLOATS (round), .limits = "of sizes and constants only" },
  { "Celu", .from = 12, ONE, .attributes = "alpha", .run = celu, .lacks = celu_lacks, .limits = "alpha above 0" },
  { "Elu", .from = 6, ONE, .attributes = "alpha", .run = elu },
  { "Gelu", .from = 20, ONE, .attributes = "approximate", .run = gelu },
  { "HardSigmoid", .from = 6, ONE, .attributes = "alpha beta", .run = hard_sigmoid },
  { "LeakyRelu", .from = 6, ONE, .attributes = "alpha", .run = leaky },
  { "Selu", .from = 6, ONE, .attributes = "alpha gamma", .run = selu },
  { "PRelu", .from = 6, TWO, .run = prelu },
  { "Clip", .from = 6, .to = 10, ONE, .attributes = "min max", .run = clip, .limits = FLOATS },
  { "Clip", .from = 11, .least_in = 1, .most_in = 3, .read = 6, .run = clip, .limits = FLOATS },
  { "Cast", .from = 6, ONE, .attributes = "to saturate", .run = cast, .host = host_cast,
    .lacks = cast_lacks, .limits = "no text, no integers but int32, int64, uint8, and int8 of constants" },
  { "CastLike", .from = 15, TWO, .attributes = "saturate", .run = cast, .host = host_cast },
  { "Add", BINARY (7, td_add), .number = { td_add_scalar, td_add_scalar }, HOST (add, false),
    .limits = NO_BYTES },
  { "Sub", BINARY (7, td_sub), .number = { td_sub_scalar, td_rsub_scalar }, HOST (sub, false),
    .limits = NO_BYTES },
  { "Mul", BINARY (7, td_mul), .number = { td_mul_scalar, td_mul_scalar }, HOST (mul, false),
    .limits = NO_BYTES },
  { "Div", BINARY (7, td_div), .number = { td_div_scalar, td_rdiv_scalar }, HOST (div, false),
    .limits = INTEGERS },
  { "Mod", .from = 10, TWO, .attributes = "fmod=0", HOST_INTS (mod, false),
    .limits = "of integers that are sizes or constants only" },
  { "Pow", .from = 7, TWO,
    .run = power, .binary = td_pow, .number = { td_pow_scalar, td_rpow_scalar }, HOST (pow, false), .limits = INTEGERS },
  { "Max", .from = 6, MANY, .run = binary, .binary = td_maximum, HOST (most, false), .limits = NO_BYTES },
  { "Min", .from = 6, MANY, .run = binary, .binary = td_minimum, HOST (least, false), .limits = NO_BYTES },
  { "Sum", .from = 6, MANY, .run = binary, .binary = td_add, HOST (add, false) },
  { "Mean", .from = 6, MANY, .run = mean },
  { "Equal", COMPARE (7, td_equal, equal) },
  { "Greater", COMPARE (7, td_greater, greater) },
  { "GreaterOrEqual", COMPARE (12, td_greater_equal, greater_equal) },
  { "Less", COMPARE (7, td_less, less) },
  { "LessOrEqual", COMPARE (12, td_less_equal, less_equal) },
  { "And", LOGIC (7, td_mul, both) },
  { "Or", LOGIC (7, td_maximum, either) },
  { "Xor", LOGIC (7, differ, one) },
  { "Where", .from = 9, .least_in = 3, .most_in = 3, .run = where, .host = host_where },
  { "ReduceL1", REDUCE (1, 17, sum_of_sizes) },
  { "ReduceL1", REDUCE_IN (18, sum_of_sizes) },
  { "ReduceL2", REDUCE (1, 17, td_sqrt_sum_square_axes), .limits = FLOATS },
  { "ReduceL2", REDUCE_IN (18, td_sqrt_sum_square_axes), .limits = FLOATS },
  { "ReduceLogSum", REDUCE (1, 17, log_of_sum), .limits = FLOATS },
  { "ReduceLogSum", REDUCE_IN (18, log_of_sum), .limits = FLOATS },
  { "ReduceLogSumExp", REDUCE (1, 17, td_logsumexp_axes), .limits = FLOATS },
  { "ReduceLogSumExp", REDUCE_IN (18, td_logsumexp_axes), .limits = FLOATS },
  { "ReduceMax", REDUCE (1, 17, td_max_axes), OF_SIZES (most), .limits = NO_BYTES_OR_BOOL },
  { "ReduceMax", REDUCE_IN (18, td_max_axes), OF_SIZES (most), .limits = NO_BYTES_OR_BOOL },
  { "ReduceMean", REDUCE (1, 17, td_mean_axes), .limits = FLOATS },
  { "ReduceMean", REDUCE_IN (18, td_mean_axes), .limits = FLOATS },
  { "ReduceMin", REDUCE (1, 17, td_min_axes), OF_SIZES (least), .limits = NO_BYTES_OR_BOOL },
  { "ReduceMin", REDUCE_IN (18, td_min_axes), OF_SIZES (least), .limits = NO_BYTES_OR_BOOL },
  { "ReduceProd", REDUCE (1, 17, td_prod_axes), OF_SIZES (mul) },
  { "ReduceProd", REDUCE_IN (18, td_prod_axes), OF_SIZES (mul) },
  { "ReduceSum", REDUCE (1, 12, td_sum_axes), OF_SIZES (add) },
  { "ReduceSum", REDUCE_IN (13, td_sum_axes), OF_SIZES (add) },
  { "ReduceSumSquare", REDUCE (1, 17, sum_of_squares) },
  { "ReduceSumSquare", REDUCE_IN (18, sum_of_squares) },
  { "ArgMax", .from = 1, ONE, .attributes = "axis keepdims select_last_index=0", .run = arg,
    .limits = "not the last of equal ones" },
  { "ArgMin", .from = 1, ONE, .attributes = "axis keepdims select_last_index=0", .run = arg,
    .limits = "not the last of equal ones" },
  { "CumSum", .from = 11, TWO, .read = 2, .attributes = "exclusive=0 reverse", .run = cumsum,
    .limits = "not exclusive" },
  { "LogSoftmax", .from = 1, ONE, .attributes = "axis", .run = softmax },
  { "Softmax", .from = 1, ONE, .attributes = "axis", .run = softmax },
  { 0 },
};
/* clang-format on */
