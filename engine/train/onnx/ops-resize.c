/* ONNX operators that give arrays another size: Resize and Upsample.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include <math.h>
#include <string.h>

typedef struct
{
  const char *where, *round; /* coordinate_transformation_mode, nearest_mode */
  bool linear;
} ResizeMode;

/* Where output o of an axis lies in the input. */
static double
source (const ResizeMode *m, int64_t o, int64_t n_in, int64_t n_out, double scale)
{
  if (strcmp (m->where, "align_corners") == 0)
    return n_out > 1 ? (double)o * (double)(n_in - 1) / (double)(n_out - 1) : 0;
  if (strcmp (m->where, "asymmetric") == 0)
    return (double)o / scale;
  if (strcmp (m->where, "pytorch_half_pixel") == 0 && n_out == 1)
    return 0;
  return ((double)o + 0.5) / scale - 0.5;
}

static double
nearest (const ResizeMode *m, double at)
{
  return strcmp (m->round, "floor") == 0               ? floor (at)
         : strcmp (m->round, "ceil") == 0              ? ceil (at)
         : strcmp (m->round, "round_prefer_ceil") == 0 ? floor (at + 0.5)
                                                       : ceil (at - 0.5);
}

static TdVar *
rows_of (TdOnnxRun *r, TdVar *x, const TdOnnxHost *at, int axis)
{
  TdVar *index = td__run_upload (r, at);

  return td_get_item_arrays (x, &index, 1, axis);
}

/* One axis: the rows that are nearest, or between the two that it lies between. */
static TdVar *
resize_axis (TdOnnxRun *r, const ResizeMode *m, TdVar *x, int axis, int64_t n_out, double scale)
{
  const TdShape shape = td_shape (x), line = { 1, { n_out } };
  const int64_t last = shape.dim[axis] - 1;
  TdShape column = { shape.ndim, { 0 } };
  TdOnnxHost *low = td__host_new (&r->arena, TD_I64, &line),
             *high = td__host_new (&r->arena, TD_I64, &line),
             *share = td__host_new (&r->arena, TD_F32, &line);
  TdVar *a, *b;

  if (low == NULL || high == NULL || share == NULL || last < 0)
    return td__run_fail (r, TD_ERR_SHAPE, "an axis of size %lld", (long long)n_out), x;
  for (int64_t o = 0; o < n_out; o++)
    {
      double at = source (m, o, last + 1, n_out, scale);

      at = m->linear ? at : nearest (m, at);
      at = at < 0 ? 0 : at > (double)last ? (double)last : at;
      low->i[o] = (int64_t)at;
      high->i[o] = low->i[o] < last ? low->i[o] + 1 : last;
      share->f[o] = at - (double)low->i[o];
    }
  a = rows_of (r, x, low, axis);
  if (!m->linear)
    return a;
  for (int d = 0; d < shape.ndim; d++)
    column.dim[d] = d == axis ? n_out : 1;
  b = td_sub (rows_of (r, x, high, axis), a);
  return td_add (
      a, td_mul (b, td_cast (td__run_upload (r, td__host_view (&r->arena, share, &column)),
                             td_dtype (x))));
}

/* The whole of the last two axes as one operation, where the engine's is the same. */
static bool
resize_images (TdOnnxRun *r, const ResizeMode *m, TdVar *x, const int64_t *to,
               const double *scales)
{
  const TdShape shape = td_shape (x);
  const bool corners = strcmp (m->where, "align_corners") == 0;
  const TdResizeImagesOpt o = { .mode = "bilinear", .align_corners = corners };

  if (!m->linear || shape.ndim != 4 || to[0] != shape.dim[0] || to[1] != shape.dim[1]
      || (!corners && strcmp (m->where, "half_pixel") != 0))
    return false;
  for (int d = 2; d < 4; d++)
    if (to[d] < 2 || shape.dim[d] < 2
        || (!corners && fabs (scales[d] * (double)shape.dim[d] - (double)to[d]) > 1e-6))
      return false;
  td__run_out (r, 0, td_resize_images_ (x, to[2], to[3], &o));
  return true;
}

static void
resize_to (TdOnnxRun *r, const ResizeMode *m, const int64_t *to, const double *scales)
{
  TdVar *x = td__run_var (r, 0);
  const TdShape shape = td_shape (x);

  for (int d = 0; d < shape.ndim; d++)
    if (to[d] < 1)
      td__run_fail (r, TD_ERR_SHAPE, "size %lld of axis %d", (long long)to[d], d);
  if (m->linear && !td__onnx_is_float (td_dtype (x)))
    td__run_fail (r, TD_ERR_DTYPE,
                  "floating-point numbers expected between two of which to be");
  if (r->failed || resize_images (r, m, x, to, scales))
    return;
  for (int d = 0; d < shape.ndim && !r->failed; d++)
    if (to[d] != shape.dim[d])
      x = resize_axis (r, m, x, d, to[d], scales[d]);
  td__run_out (r, 0, x == td__run_var (r, 0) ? td_identity (x) : x);
}

/* Sizes by scales. */
static bool
scaled (TdOnnxRun *r, const TdShape *x, const TdOnnxHost *h, int64_t *to, double *scales)
{
  if (h == NULL || h->n != x->ndim)
    {
      td__run_fail (r, TD_ERR_ARG, "%d scales expected, got %lld", x->ndim,
                    h != NULL ? (long long)h->n : 0);
      return false;
    }
  for (int d = 0; d < x->ndim; d++)
    {
      const double size = floor ((double)x->dim[d] * td__host_float (h, d));

      scales[d] = td__host_float (h, d);
      to[d] = size >= 0 && size < 0x1p31 ? (int64_t)size : 0;
    }
  return true;
}

static void
resize (TdOnnxRun *r)
{
  const bool first = r->g->opset < 11; /* X, scales; else X, roi, scales, sizes */
  const TdShape x = td__run_shape (r, 0);
  const ResizeMode m
      = { .where = td__onnx_attr_text (r->node, "coordinate_transformation_mode",
                                       first ? "asymmetric" : "half_pixel"),
          .round = td__onnx_attr_text (r->node, "nearest_mode",
                                       first ? "floor" : "round_prefer_floor"),
          .linear = strcmp (td__onnx_attr_text (r->node, "mode", "nearest"), "linear") == 0 };
  int64_t to[TD_MAX_DIMS], sizes[TD_MAX_DIMS];
  double scales[TD_MAX_DIMS];
  const int n = first ? -1 : td__run_ints (r, 3, NULL, sizes, TD_MAX_DIMS);

  if (r->failed)
    return;
  if (n <= 0)
    {
      if (scaled (r, &x,
                  td__run_there (r, first ? 1 : 2) ? td__run_numbers (r, first ? 1 : 2) : NULL,
                  to, scales))
        resize_to (r, &m, to, scales);
      return;
    }
  if (n != x.ndim)
    td__run_fail (r, TD_ERR_ARG, "%d sizes expected, got %d", x.ndim, n);
  for (int d = 0; d < n && !r->failed; d++)
    {
      to[d] = sizes[d];
      scales[d] = x.dim[d] > 0 ? (double)to[d] / (double)x.dim[d] : 0;
    }
  if (!r->failed)
    resize_to (r, &m, to, scales);
}

/* By an attribute before opset 9, as Resize of opset 10 from then on. */
static void
upsample (TdOnnxRun *r)
{
  const TdOnnxAttr *a = td__onnx_attr (r->node, "scales");
  const TdShape x = td__run_shape (r, 0);
  const ResizeMode m
      = { .where = "asymmetric",
          .round = "floor",
          .linear = strcmp (td__onnx_attr_text (r->node, "mode", "nearest"), "linear") == 0 };
  const TdShape line = { 1, { a != NULL ? a->n : 0 } };
  TdOnnxHost *h = td__host_new (&r->arena, TD_F32, &line);
  int64_t to[TD_MAX_DIMS];
  double scales[TD_MAX_DIMS];

  for (int d = 0; h != NULL && a != NULL && a->floats != NULL && d < a->n; d++)
    h->f[d] = a->floats[d];
  if (scaled (r, &x, td__run_there (r, 1) ? td__run_numbers (r, 1) : h, to, scales))
    resize_to (r, &m, to, scales);
}

static const char *
resize_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  static const char *const modes[]
      = { "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners" };
  const char *mode = td__onnx_attr_text (n, "mode", "nearest"),
             *where = td__onnx_attr_text (n, "coordinate_transformation_mode", "half_pixel");
  bool is_known = false;

  (void)g;
  for (int i = 0; i < TD_ARRAY_LENGTH (modes); i++)
    is_known |= strcmp (where, modes[i]) == 0;
  return strcmp (mode, "nearest") != 0 && strcmp (mode, "linear") != 0 ? "the mode"
         : !is_known ? "the coordinate_transformation_mode"
         : strcmp (td__onnx_attr_text (n, "keep_aspect_ratio_policy", "stretch"), "stretch")
                 != 0
             ? "the keep_aspect_ratio_policy"
             : NULL;
}

#define RESIZE_LIMITS                                                                          \
  .limits = "modes nearest and linear, without roi, antialias, axes", .lacks = resize_lacks
#define ONE .least_in = 1, .most_in = 1
#define TWO .least_in = 2, .most_in = 2

/* clang-format off */
const TdOnnxRow td__onnx_sizes[] = {
  { "Upsample", .from = 7, .to = 8, ONE, .attributes = "mode scales", .run = upsample, RESIZE_LIMITS },
  { "Upsample", .from = 9, .to = 9, TWO, .read = 2, .attributes = "mode", .run = upsample, RESIZE_LIMITS },
  { "Resize", .from = 10, .to = 10, TWO, .read = 2, .attributes = "mode", .run = resize, RESIZE_LIMITS },
  { "Resize", .from = 11, .least_in = 1, .most_in = 4, .read = 14,
    .attributes = "coordinate_transformation_mode cubic_coeff_a exclude_outside=0 extrapolation_value mode nearest_mode "
                  "antialias=0 keep_aspect_ratio_policy",
    .run = resize, RESIZE_LIMITS },
  { 0 },
};
/* clang-format on */
