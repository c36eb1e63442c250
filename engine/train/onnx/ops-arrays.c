/* ONNX operators that give arrays another shape, join them and cut them, and make them.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include <math.h>
#include <string.h>

enum
{
  MOST_BYTES = 1 << 30 /* of what a few numbers of a file ask for */
};

/* The same elements in another shape, on the host or not. */
static void
shaped (TdOnnxRun *r, const TdShape *shape)
{
  const TdOnnxHost *h = td__run_known (r, 0);

  if (r->failed)
    return;
  if (h == NULL)
    td__run_out (r, 0, td_reshape (td__run_var (r, 0), *shape));
  else if (td__size (shape) != h->n)
    td__run_fail (r, TD_ERR_SHAPE, "a shape of %lld elements expected", (long long)h->n);
  else
    td__run_out_host (r, 0, td__host_view (&r->arena, h, shape));
}

/* 0 stays what it is, -1 takes what is left. */
static void
reshape (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0);
  const bool zeros = td__onnx_attr_int (r->node, "allowzero", 0) != 0;
  int64_t given[TD_MAX_DIMS], rest = 1;
  TdShape shape = { 0, { 0 } };
  int open = -1, n = td__run_ints (r, 1, NULL, given, TD_MAX_DIMS);

  for (int d = 0; d < n; d++)
    {
      int64_t size = given[d] == 0 && !zeros && d < x.ndim ? x.dim[d] : given[d];

      if (size < -1 || (size == -1 && open >= 0) || (size > 0 && rest > INT64_MAX / size))
        td__run_fail (r, TD_ERR_SHAPE, "size %lld of axis %d", (long long)size, d);
      if (size == -1)
        open = d;
      else if (!r->failed)
        rest *= size;
      shape.dim[shape.ndim++] = size;
    }
  if (open >= 0 && !r->failed)
    shape.dim[open] = rest > 0 ? td__size (&x) / rest : 0;
  shaped (r, &shape);
}

static void
flatten (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0);
  int64_t axis = td__onnx_attr_int (r->node, "axis", 1);
  TdShape shape = { 2, { 1, 1 } };

  axis += axis < 0 ? x.ndim : 0;
  if (axis < 0 || axis > x.ndim)
    td__run_fail (r, TD_ERR_ARG, "axis %lld of %d axes", (long long)axis, x.ndim);
  for (int d = 0; d < x.ndim; d++)
    if (__builtin_mul_overflow (shape.dim[d >= axis], x.dim[d], &shape.dim[d >= axis]))
      td__run_fail (r, TD_ERR_SHAPE, "sizes whose product is in range expected");
  shaped (r, &shape);
}

static void
squeeze (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0);
  int axes[TD_MAX_DIMS], n;
  TdShape shape = { 0, { 0 } };

  if (!td__run_axes (r, 1, "axes", x.ndim, axes, &n))
    return;
  for (int d = 0; d < x.ndim; d++)
    {
      bool drops = n == 0 && x.dim[d] == 1;

      for (int k = 0; k < n; k++)
        drops |= axes[k] == d;
      if (drops && x.dim[d] != 1)
        td__run_fail (r, TD_ERR_SHAPE, "axis %d of size 1 expected, got %lld", d,
                      (long long)x.dim[d]);
      if (!drops)
        shape.dim[shape.ndim++] = x.dim[d];
    }
  shaped (r, &shape);
}

static void
unsqueeze (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0);
  int64_t given[TD_MAX_DIMS];
  int axes[TD_MAX_DIMS], n, from = 0;
  const int more = td__run_ints (r, 1, "axes", given, TD_MAX_DIMS);
  TdShape shape = { x.ndim + (more > 0 ? more : 0), { 0 } };

  if (shape.ndim > TD_MAX_DIMS)
    td__run_fail (r, TD_ERR_SHAPE, "at most %d dimensions expected", TD_MAX_DIMS);
  if (r->failed || !td__run_axes (r, 1, "axes", shape.ndim, axes, &n))
    return;
  for (int k = 0; k < n; k++)
    shape.dim[axes[k]] = 1;
  for (int d = 0; d < shape.ndim; d++)
    if (shape.dim[d] == 0)
      shape.dim[d] = x.dim[from++];
  shaped (r, &shape);
}

static void
identity (TdOnnxRun *r)
{
  if (td__run_known (r, 0) != NULL)
    td__run_out_host (r, 0, td__run_known (r, 0));
  if (td__run_known (r, 0) == NULL || r->values[r->node->in[0]].var != NULL)
    td__run_out (r, 0, td__run_var (r, 0));
}

static void
transpose (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  int axes[TD_MAX_DIMS], n;

  if (!td__run_axes (r, -1, "perm", td_ndim (x), axes, &n))
    return;
  if (n != 0 && n != td_ndim (x))
    td__run_fail (r, TD_ERR_ARG, "perm of %d axes expected, got %d", td_ndim (x), n);
  else
    td__run_out (r, 0, td_transpose (x, n > 0 ? axes : NULL));
}

/* --- several --- */

static void
concat (TdOnnxRun *r)
{
  TdVar **xs = td__onnx_alloc (&r->arena, (size_t)r->node->n_in, sizeof (TdVar *));
  const int axis = td__run_axis (r, 1, td__run_shape (r, 0).ndim);

  for (int i = 0; i < r->node->n_in; i++)
    xs[i] = td__run_var (r, i);
  if (axis >= 0 && !r->failed)
    td__run_out (
        r, 0, r->node->n_in == 1 ? td_identity (xs[0]) : td_concat (xs, r->node->n_in, axis));
}

static const TdOnnxHost *
host_concat (TdOnnxRun *r)
{
  TdShape shape = td__run_shape (r, 0);
  const int axis = td__run_axis (r, 1, shape.ndim);
  int64_t outer = 1, at = 0;
  TdOnnxHost *to;

  if (axis < 0)
    return NULL;
  shape.dim[axis] = 0;
  for (int i = 0; i < r->node->n_in; i++)
    {
      TdShape part = td__run_known (r, i)->shape;

      if (part.ndim != shape.ndim || td__run_known (r, i)->dtype != td__run_known (r, 0)->dtype)
        return NULL;
      shape.dim[axis] += part.dim[axis];
      part.dim[axis] = shape.dim[axis];
      if (!td_shape_equal (&part, &shape))
        return NULL;
    }
  for (int d = 0; d < axis; d++)
    outer *= shape.dim[d];
  to = td__host_new (&r->arena, td__run_known (r, 0)->dtype, &shape);
  for (int64_t o = 0; to != NULL && o < outer; o++)
    for (int i = 0; i < r->node->n_in; i++)
      {
        const TdOnnxHost *h = td__run_known (r, i);

        for (int64_t k = o * (h->n / outer); k < (o + 1) * (h->n / outer); k++, at++)
          if (to->f != NULL)
            to->f[at] = h->f[k];
          else
            to->i[at] = h->i[k];
      }
  return to;
}

static void
split (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *out[TD_ONNX_MOST_OUT];
  const int n = r->node->n_out, axis = td__run_axis (r, 0, td_ndim (x));
  int64_t sizes[TD_ONNX_MOST_OUT], at = 0, size;
  const int given = td__run_ints (r, 1, "split", sizes, TD_ONNX_MOST_OUT);

  if (axis < 0 || r->failed)
    return;
  if (n > TD_ONNX_MOST_OUT || (given >= 0 && given != n))
    {
      td__run_fail (r, TD_ERR_ARG, "%d sizes for %d outputs", given, n);
      return;
    }
  size = td_shape (x).dim[axis];
  for (int k = 0; k < n; k++)
    {
      at += given >= 0 ? sizes[k] : (size + n - 1) / n;
      sizes[k] = given < 0 && at > size ? size : at;
    }
  if (sizes[n - 1] != size)
    td__run_fail (r, TD_ERR_SHAPE, "sizes of %lld in all expected, got %lld", (long long)size,
                  (long long)sizes[n - 1]);
  else if (n == 1)
    td__run_out (r, 0, td_identity (x));
  else if (td_split_axis_indices (x, sizes, n - 1, axis, out) == TD_OK)
    for (int k = 0; k < n; k++)
      td__run_out (r, k, out[k]);
  else
    r->failed = true;
}

/* --- repeated --- */

static bool
shape_of (TdOnnxRun *r, int i, TdShape *shape)
{
  int64_t sizes[TD_MAX_DIMS];
  const int n = td__run_ints (r, i, NULL, sizes, TD_MAX_DIMS);

  *shape = (TdShape){ 0, { 0 } };
  for (int d = 0; d < n; d++)
    {
      shape->dim[shape->ndim++] = sizes[d];
      if (sizes[d] < 0)
        td__run_fail (r, TD_ERR_SHAPE, "size %lld of axis %d", (long long)sizes[d], d);
    }
  return !r->failed;
}

static void
expand (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0);
  TdShape given, shape;

  if (!shape_of (r, 1, &given))
    return;
  if (!td__shape_broadcast (&x, &given, &shape))
    td__run_fail (r, TD_ERR_SHAPE, "shapes that broadcast expected");
  else if (td__run_known (r, 0) != NULL && td__host_holds (&shape))
    td__run_out_host (r, 0, td__host_expand (&r->arena, td__run_known (r, 0), &shape));
  else
    td__run_out (r, 0, td_broadcast_to (td__run_var (r, 0), shape));
}

static void
tile (TdOnnxRun *r)
{
  int64_t given[TD_MAX_DIMS];
  int reps[TD_MAX_DIMS], n = td__run_ints (r, 1, NULL, given, TD_MAX_DIMS);

  for (int d = 0; d < n; d++)
    {
      reps[d] = (int)given[d];
      if (given[d] < 0 || given[d] > INT32_MAX)
        td__run_fail (r, TD_ERR_ARG, "%lld repetitions", (long long)given[d]);
    }
  if (n >= 0 && !r->failed)
    td__run_out (r, 0, td_tile (td__run_var (r, 0), reps, n));
}

/* --- made --- */

static void
shape (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0);
  int64_t from = td__onnx_attr_int (r->node, "start", 0),
          to = td__onnx_attr_int (r->node, "end", x.ndim);

  from += from < 0 ? x.ndim : 0;
  to += to < 0 ? x.ndim : 0;
  from = from < 0 ? 0 : from;
  to = to > x.ndim ? x.ndim : to;
  td__run_out_host (r, 0,
                    td__host_ints (&r->arena, &x.dim[from < to ? from : 0],
                                   from < to ? (int)(to - from) : 0));
}

static void
size (TdOnnxRun *r)
{
  const TdShape x = td__run_shape (r, 0);
  const int64_t n = td__size (&x);
  const TdShape scalar = { 0, { 0 } };

  td__run_out_host (r, 0, td__host_view (&r->arena, td__host_ints (&r->arena, &n, 1), &scalar));
}

/* Drawn anew in each call, by the engine's own stream: of a shape, or that of an input. */
static void
random_array (TdOnnxRun *r)
{
  const TdOnnxNode *n = r->node;
  const bool like = n->n_in > 0, normal = n->type[6] == 'N';
  const int64_t asked = td__onnx_attr_int (n, "dtype", 0);
  const TdDtype dtype = asked != 0 ? (TdDtype)td__onnx_dtype_of (asked)
                        : like     ? td_dtype (td__run_var (r, 0))
                                   : TD_F32;
  const double from = td__onnx_attr_float (n, normal ? "mean" : "low", 0),
               by = td__onnx_attr_float (n, normal ? "scale" : "high", 1) - (normal ? 0 : from);
  int64_t sizes[TD_MAX_DIMS];
  TdShape shape = { 0, { 0 } };
  size_t bytes = 0;
  TdVar *v;

  if (like)
    shape = td__run_shape (r, 0);
  else
    shape.ndim = td__run_ints (r, -1, "shape", sizes, TD_MAX_DIMS);
  for (int d = 0; d < shape.ndim && !like; d++)
    shape.dim[d] = sizes[d];
  if (shape.ndim < 0 || !td__onnx_is_float (dtype) || !td__shape_bytes (&shape, dtype, &bytes)
      || bytes > MOST_BYTES)
    {
      td__run_fail (r, TD_ERR_ARG,
                    "a shape of at most 1 GB, and a floating-point type expected");
      return;
    }
  v = normal ? td_randn (dtype, shape) : td_rand (dtype, shape);
  v = by != 1 ? td_mul_scalar (v, by) : v;
  td__run_out (r, 0, from != 0 ? td_add_scalar (v, from) : v);
}

static void
constant_of_shape (TdOnnxRun *r)
{
  const TdOnnxAttr *a = td__onnx_attr (r->node, "value");
  const TdShape scalar = { 0, { 0 } };
  TdOnnxHost *one
      = td__host_new (&r->arena, a != NULL ? (TdDtype)a->tensor->dtype : TD_F32, &scalar);
  TdShape to;

  if (one == NULL || !shape_of (r, 0, &to))
    {
      td__run_fail (r, TD_ERR_MEMORY, "numbers of sizes beyond 1 GB");
      return;
    }
  if (one->f != NULL)
    one->f[0] = a != NULL ? a->f : 0;
  else
    one->i[0] = a->i;
  if (td__host_holds (&to))
    td__run_out_host (r, 0, td__host_expand (&r->arena, one, &to));
  else
    td__run_out (r, 0, td_full (one->dtype, to, td__host_float (one, 0)));
}

static const char *
constant_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  TdOnnxAttr *a = (TdOnnxAttr *)(uintptr_t)td__onnx_attr (n, "value");

  (void)g;
  if (a == NULL)
    return NULL;
  if (a->tensor == NULL || a->tensor->why != NULL || a->tensor->is_int8
      || a->tensor->elements == NULL || td__size (&a->tensor->shape) != 1)
    return "the value, one number,";
  a->f = td__host_element_of (a->tensor->elements, (TdDtype)a->tensor->dtype, 0);
  a->i = td__onnx_is_float ((TdDtype)a->tensor->dtype) ? 0 : (int64_t)a->f;
  return NULL; /* the elements go with the file */
}

static void
range (TdOnnxRun *r)
{
  const TdOnnxHost *h[3];
  TdShape shape = { 1, { 0 } };
  TdOnnxHost *to;
  double n;

  for (int i = 0; i < 3; i++)
    if ((h[i] = td__run_numbers (r, i)) == NULL || h[i]->n != 1)
      {
        td__run_fail (r, TD_ERR_ARG, "a single start, limit and step expected");
        return;
      }
  n = ceil ((td__host_float (h[1], 0) - td__host_float (h[0], 0)) / td__host_float (h[2], 0));
  if (!(fabs (n) <= TD_ONNX_HOST_MOST))
    {
      td__run_fail (r, TD_ERR_ARG, "%g numbers", n);
      return;
    }
  shape.dim[0] = n > 0 ? (int64_t)n : 0;
  to = td__host_new (&r->arena, h[0]->dtype, &shape);
  for (int64_t i = 0; to != NULL && i < to->n; i++)
    if (to->f != NULL)
      to->f[i] = td__host_float (h[0], 0) + (double)i * td__host_float (h[2], 0);
    else
      to->i[i] = td__host_int (h[0], 0) + i * td__host_int (h[2], 0);
  td__run_out_host (r, 0, to);
}

/* --- pictures and their channels --- */

static bool
blocks (TdOnnxRun *r, TdShape *x, int64_t *b)
{
  *x = td__run_shape (r, 0);
  *b = td__onnx_attr_int (r->node, "blocksize", 0);
  if (x->ndim != 4 || *b < 1 || *b > 1024)
    td__run_fail (r, TD_ERR_SHAPE, "4 axes and a blocksize above 0 expected");
  return !r->failed;
}

static void
rearrange (TdOnnxRun *r, TdShape parts, const int *axes, TdShape to)
{
  td__run_out (r, 0,
               td_reshape (td_transpose (td_reshape (td__run_var (r, 0), parts), axes), to));
}

static void
depth_to_space (TdOnnxRun *r)
{
  static const int depth_first[] = { 0, 3, 4, 1, 5, 2 }, column_first[] = { 0, 1, 4, 2, 5, 3 };
  const bool column = strcmp (td__onnx_attr_text (r->node, "mode", "DCR"), "CRD") == 0;
  TdShape x;
  int64_t b, c;

  if (!blocks (r, &x, &b))
    return;
  c = x.dim[1] / (b * b);
  rearrange (r,
             column ? TD_SHAPE (x.dim[0], c, b, b, x.dim[2], x.dim[3])
                    : TD_SHAPE (x.dim[0], b, b, c, x.dim[2], x.dim[3]),
             column ? column_first : depth_first,
             TD_SHAPE (x.dim[0], c, x.dim[2] * b, x.dim[3] * b));
}

static void
space_to_depth (TdOnnxRun *r)
{
  static const int axes[] = { 0, 3, 5, 1, 2, 4 };
  TdShape x;
  int64_t b;

  if (blocks (r, &x, &b))
    rearrange (r, TD_SHAPE (x.dim[0], x.dim[1], x.dim[2] / b, b, x.dim[3] / b, b), axes,
               TD_SHAPE (x.dim[0], x.dim[1] * b * b, x.dim[2] / b, x.dim[3] / b));
}

#define NONE .least_in = 0, .most_in = 0
#define DRAWN "without a seed"
#define ONE .least_in = 1, .most_in = 1
#define TWO .least_in = 2, .most_in = 2

/* clang-format off */
const TdOnnxRow td__onnx_arrays[] = {
  { "Concat", .from = 4, .least_in = 1, .most_in = -1, .attributes = "axis", .run = concat, .host = host_concat },
  { "Constant", .from = 1, .limits = "no text" },
  { "ConstantOfShape", .from = 9, ONE, .attributes = "value", .read = 1,
    .run = constant_of_shape, .lacks = constant_lacks },
  { "DepthToSpace", .from = 1, ONE, .attributes = "blocksize mode", .run = depth_to_space },
  { "Expand", .from = 8, TWO, .read = 2, .run = expand },
  { "Flatten", .from = 1, ONE, .attributes = "axis", .run = flatten },
  { "Identity", .from = 1, ONE, .run = identity },
  { "RandomNormal", .from = 1, NONE, .attributes = "dtype mean scale shape", .run = random_array, .limits = DRAWN },
  { "RandomNormalLike", .from = 1, ONE, .attributes = "dtype mean scale", .run = random_array, .limits = DRAWN },
  { "RandomUniform", .from = 1, NONE, .attributes = "dtype high low shape", .run = random_array, .limits = DRAWN },
  { "RandomUniformLike", .from = 1, ONE, .attributes = "dtype high low", .run = random_array, .limits = DRAWN },
  { "Range", .from = 11, .least_in = 3, .most_in = 3, .read = 7, .run = range },
  { "Reshape", .from = 5, TWO, .read = 2, .attributes = "allowzero", .run = reshape },
  { "Shape", .from = 1, ONE, .attributes = "start end", .run = shape },
  { "Size", .from = 1, ONE, .run = size },
  { "SpaceToDepth", .from = 1, ONE, .attributes = "blocksize", .run = space_to_depth, .limits = "mode DCR" },
  { "Split", .from = 2, .to = 12, ONE, .most_out = -1, .attributes = "axis split", .run = split },
  { "Split", .from = 13, .least_in = 1, .most_in = 2, .most_out = -1, .read = 2, .attributes = "axis num_outputs",
    .run = split },
  { "Squeeze", .from = 1, .to = 12, ONE, .attributes = "axes", .run = squeeze },
  { "Squeeze", .from = 13, .least_in = 1, .most_in = 2, .read = 2, .run = squeeze },
  { "Tile", .from = 6, TWO, .read = 2, .run = tile },
  { "Transpose", .from = 1, ONE, .attributes = "perm", .run = transpose },
  { "Unsqueeze", .from = 1, .to = 12, ONE, .attributes = "axes", .run = unsqueeze },
  { "Unsqueeze", .from = 13, TWO, .read = 2, .run = unsqueeze },
  { 0 },
};
/* clang-format on */
