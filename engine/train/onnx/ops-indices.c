/* ONNX operators that pick elements by their places.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include "host-memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Gather and its kin --- */

/* Indices as they lie behind the first element: those that count from the end are known. */
static TdVar *
index_of (TdOnnxRun *r, int i, int64_t size)
{
  const TdOnnxHost *h = td__run_known (r, i);
  TdOnnxHost *from_front;

  if (h == NULL || h->i == NULL)
    return td__run_var (r, i);
  from_front = td__host_cast (&r->arena, h, TD_I64);
  if (from_front == NULL)
    return td__run_var (r, i);
  for (int64_t k = 0; k < h->n; k++)
    from_front->i[k] += from_front->i[k] < 0 ? size : 0;
  return td__run_upload (r, from_front);
}

static void
gather (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *index;
  const TdShape shape = td_shape (x);
  const int axis = td__run_axis (r, 0, shape.ndim);
  const TdOnnxHost *h = td__run_known (r, 1);
  TdSlice at[TD_MAX_DIMS];

  if (axis < 0)
    return;
  if (h != NULL && h->shape.ndim == 0)
    {
      for (int d = 0; d < axis; d++)
        at[d] = TD_ALL;
      at[axis] = TD_AT (td__host_int (h, 0));
      td__run_out (r, 0, td_get_item (x, at, axis + 1));
      return;
    }
  index = index_of (r, 1, shape.dim[axis]);
  if (axis == 0 && shape.ndim == 2 && td__onnx_is_float (td_dtype (x)))
    td__run_out (r, 0, (td_embed_id)(index, x));
  else
    td__run_out (r, 0, td_get_item_arrays (x, &index, 1, axis));
}

static const TdOnnxHost *
host_gather (TdOnnxRun *r)
{
  const TdOnnxHost *x = td__run_known (r, 0), *index = td__run_known (r, 1);
  const int axis = td__run_axis (r, 0, x->shape.ndim);
  int64_t inner = 1, outer = 1, *at, n = 0;
  TdShape shape = { 0, { 0 } };

  if (axis < 0 || x->shape.ndim - 1 + index->shape.ndim > TD_MAX_DIMS || index->i == NULL)
    return NULL;
  for (int d = 0; d < x->shape.ndim; d++)
    if (d != axis)
      shape.dim[shape.ndim++] = x->shape.dim[d];
    else
      for (int k = 0; k < index->shape.ndim; k++)
        shape.dim[shape.ndim++] = index->shape.dim[k];
  for (int d = 0; d < x->shape.ndim; d++)
    *(d < axis ? &outer : d > axis ? &inner : &(int64_t){ 1 }) *= x->shape.dim[d];
  if ((double)outer * (double)inner * (double)index->n > TD_ONNX_HOST_MOST)
    return NULL;
  at = td__onnx_alloc (&r->arena, (size_t)(outer * inner * index->n) + 1, sizeof *at);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < index->n; k++)
      {
        const int64_t size = x->shape.dim[axis],
                      row = index->i[k] + (index->i[k] < 0 ? size : 0);

        if (row < 0 || row >= size)
          {
            td__run_fail (r, TD_ERR_ARG, "index %lld of %lld", (long long)index->i[k],
                          (long long)size);
            return NULL;
          }
        for (int64_t i = 0; i < inner; i++)
          at[n++] = (o * size + row) * inner + i;
      }
  return td__host_gather (&r->arena, x, &shape, at);
}

/* Along one axis the element's index says where, along the others its own place: a place in
 * each axis, for each index.  False after a failure. */
static bool
places_of_elements (TdOnnxRun *r, TdVar **index)
{
  const TdShape picked = td__run_shape (r, 1), shape = td__run_shape (r, 0);
  const int axis = td__run_axis (r, 0, shape.ndim);

  if (axis < 0)
    return false;
  if (picked.ndim != shape.ndim || td__size (&picked) > TD_ONNX_HOST_MOST)
    {
      td__run_fail (r, TD_ERR_SHAPE, "indices of %d axes expected, got %d", shape.ndim,
                    picked.ndim);
      return false;
    }
  for (int d = 0; d < shape.ndim; d++)
    if (d == axis)
      index[d] = td_cast (index_of (r, 1, shape.dim[d]), TD_I64);
    else
      {
        TdShape row = { shape.ndim, { 0 } };

        for (int k = 0; k < shape.ndim; k++)
          row.dim[k] = k == d ? picked.dim[d] : 1;
        index[d] = td_broadcast_to (
            td_reshape (td_arange (TD_I64, 0, (double)picked.dim[d], 1), row), picked);
      }
  return true;
}

static void
gather_elements (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *index[TD_MAX_DIMS];

  if (places_of_elements (r, index))
    td__run_out (r, 0, td_get_item_arrays (x, index, td_ndim (x), 0));
}

/* The last axis of the indices says where along the first axes: how many; 0 after a failure. */
static int
places_of_rows (TdOnnxRun *r, TdVar **index)
{
  TdVar *all = td__run_var (r, 1);
  const int ndim = td__run_shape (r, 0).ndim;
  const TdShape shape = td_shape (all);
  const int64_t n = shape.ndim > 0 ? shape.dim[shape.ndim - 1] : 0;

  if (n < 1 || n > ndim)
    td__run_fail (r, TD_ERR_SHAPE, "indices of 1 to %d axes expected, got %lld", ndim,
                  (long long)n);
  else if (td_separate (all, shape.ndim - 1, index) == TD_OK)
    return (int)n;
  r->failed = true;
  return 0;
}

static void
gather_nd (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0), *index[TD_MAX_DIMS];
  const int n = places_of_rows (r, index);

  if (n > 0)
    td__run_out (r, 0, td_get_item_arrays (x, index, n, 0));
}

/* The axes of x that indices are for.  Each update has a row of indices, one for each of these
 * axes; or, along `axis`, one index, and its own place along the others. */
typedef struct
{
  TdShape axes;
  int axis; /* -1: rows */
} Places;

/* Where update k goes; -1: there is no such place. */
static int64_t
place_of (const Places *p, const TdOnnxHost *index, int64_t k)
{
  int64_t place = 0, step = 1, rest = k;

  for (int d = p->axes.ndim - 1; d >= 0; d--)
    {
      const int64_t size = p->axes.dim[d];
      int64_t at;

      if (p->axis < 0)
        at = index->i[k * p->axes.ndim + d];
      else
        {
          at = d == p->axis ? index->i[k] : rest % index->shape.dim[d];
          rest /= index->shape.dim[d];
        }
      at += at < 0 ? size : 0;
      if (at < 0 || at >= size)
        return -1;
      place += at * step;
      step *= size;
    }
  return place;
}

/* Numbers that a computation made: few enough, on a device that keeps them. */
static bool
may_be_read (TdOnnxRun *r, int i)
{
  TdVar *v = td__run_var (r, i);

  return td_device (v) != td_device_get ("null")
         && td_size (v) <= TD_ONNX_HOST_MOST / (int64_t)sizeof (int64_t);
}

/* Which updates count: of several for one place the last, as in onnxruntime (the standard
 * leaves it open).  NULL where each has a place of its own, or after a failure. */
static TdVar *
last_of_each (TdOnnxRun *r, TdShape shape, const Places *p)
{
  const TdOnnxHost *index = td__run_known (r, 1);
  bool twice = false;
  TdOnnxHost *counts;
  char *seen;

  if (index == NULL && may_be_read (r, 1))
    index = td__run_numbers (r, 1);
  if (index == NULL || index->i == NULL)
    return NULL;
  counts = td__host_new (&r->arena, TD_BOOL, &shape);
  seen = td__xcalloc ((size_t)td__size (&p->axes) + 1, 1);
  for (int64_t k = counts != NULL ? counts->n - 1 : -1; k >= 0; k--)
    {
      const int64_t place = place_of (p, index, k);

      counts->i[k] = place < 0 || !seen[place];
      twice |= !counts->i[k];
      if (place >= 0)
        seen[place] = 1;
    }
  free (seen);
  return twice ? td__run_upload (r, counts) : NULL;
}

/* Added at the places, or put there: what was there is left out. */
static void
scatter_at (TdOnnxRun *r, TdVar *const *index, int n, TdVar *counted)
{
  TdVar *x = td__run_var (r, 0), *by = td__run_var (r, 2), *put, *count;
  const bool adds = strcmp (td__onnx_attr_text (r->node, "reduction", "none"), "add") == 0;

  if (counted != NULL)
    by = td_where (counted, by, td_zeros (td_dtype (by), TD_SCALAR));
  put = td_scatter_add_arrays (adds ? x : td_zeros (td_dtype (x), td_shape (x)), index, n, 0,
                               by);
  if (!adds)
    {
      count = td_scatter_add_arrays (td_zeros (TD_F32, td_shape (x)), index, n, 0,
                                     td_full (TD_F32, td_shape (by), 1));
      put = td_where (td_greater (count, td_zeros (TD_F32, TD_SCALAR)), put, x);
    }
  td__run_out (r, 0, put);
}

static bool
replaces (const TdOnnxRun *r)
{
  return strcmp (td__onnx_attr_text (r->node, "reduction", "none"), "none") == 0;
}

static void
scatter_elements (TdOnnxRun *r)
{
  TdVar *index[TD_MAX_DIMS], *counted = NULL;
  Places p = { .axes = td__run_shape (r, 0) };

  if (!places_of_elements (r, index))
    return;
  p.axis = td__run_axis (r, 0, p.axes.ndim);
  if (replaces (r))
    counted = last_of_each (r, td__run_shape (r, 1), &p);
  scatter_at (r, index, p.axes.ndim, counted);
}

static void
scatter_nd (TdOnnxRun *r)
{
  TdVar *index[TD_MAX_DIMS], *counted = NULL;
  Places p = { .axes = td__run_shape (r, 0), .axis = -1 };
  TdShape rows = td__run_shape (r, 1);
  const int n = places_of_rows (r, index), ndim = p.axes.ndim;

  if (n <= 0)
    return;
  rows.ndim--;
  p.axes.ndim = n;
  if (replaces (r))
    counted = last_of_each (r, rows, &p);
  for (int d = n; counted != NULL && d < ndim; d++)
    counted = td_expand_dims (counted, -1);
  scatter_at (r, index, n, counted);
}

static const char *
scatter_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const char *how = td__onnx_attr_text (n, "reduction", "none");

  (void)g;
  return strcmp (how, "none") != 0 && strcmp (how, "add") != 0 ? "the reduction" : NULL;
}

static void
one_hot (TdOnnxRun *r)
{
  const TdOnnxHost *depth = td__run_numbers (r, 1), *values = td__run_numbers (r, 2);
  const int ndim = td__run_shape (r, 0).ndim + 1, axis = td__run_axis (r, -1, ndim);
  TdVar *t = td__run_var (r, 0), *y;

  if (depth == NULL || values == NULL || depth->n != 1 || values->n != 2 || axis < 0
      || td__host_int (depth, 0) < 1 || td__host_int (depth, 0) > INT32_MAX)
    {
      td__run_fail (r, TD_ERR_ARG, "a depth above 0 and two values expected");
      return;
    }
  if (td_dtype (t) != TD_I64)
    t = td_cast (t, TD_I64);
  y = td_one_hot (t, (int)td__host_int (depth, 0), TD_F32);
  y = td_add_scalar (td_mul_scalar (y, td__host_float (values, 1) - td__host_float (values, 0)),
                     td__host_float (values, 0));
  if (values->dtype != TD_F32)
    y = td_cast (y, values->dtype);
  td__run_out (r, 0, axis == ndim - 1 ? y : td_moveaxis (y, ndim - 1, axis));
}

/* Where numbers are not 0: a row of places for each axis. */
static const TdOnnxHost *
host_non_zero (TdOnnxRun *r)
{
  const TdOnnxHost *x = td__run_known (r, 0);
  TdShape shape = { 2, { x->shape.ndim, 0 } };
  TdOnnxHost *to;
  int64_t n = 0;

  for (int64_t i = 0; i < x->n; i++)
    shape.dim[1] += td__host_float (x, i) != 0;
  to = td__host_new (&r->arena, TD_I64, &shape);
  for (int64_t i = 0; to != NULL && i < x->n; i++)
    if (td__host_float (x, i) != 0)
      {
        int64_t rest = i;

        for (int d = x->shape.ndim - 1; d >= 0; d--)
          {
            to->i[d * shape.dim[1] + n] = rest % x->shape.dim[d];
            rest /= x->shape.dim[d];
          }
        n++;
      }
  return to;
}

/* --- Slice --- */

/* From, in steps, how many: of an axis.  Other than NumPy's, a start before the front is at the
 * front also for steps back. */
typedef struct
{
  int64_t start, step, count;
} Cut;

static Cut
cut_of (int64_t size, int64_t start, int64_t end, int64_t step)
{
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  Cut c = { start, step, 0 };

  c.start += c.start < 0 ? size : 0;
  end += end < 0 ? size : 0;
  c.start = c.start < 0 ? 0 : c.start > high ? high : c.start;
  end = end < low ? low : end > high ? high : end;
  if (step > 0 && end > c.start)
    c.count = (end - c.start - 1) / step + 1;
  else if (step < 0 && end < c.start)
    c.count = (c.start - end - 1) / -step + 1;
  return c;
}

/* Of each axis; false after a failure. */
static bool
cuts (TdOnnxRun *r, const TdShape *x, Cut *to)
{
  int64_t starts[TD_MAX_DIMS], ends[TD_MAX_DIMS], steps[TD_MAX_DIMS];
  const int n = td__run_ints (r, 1, "starts", starts, TD_MAX_DIMS),
            n_ends = td__run_ints (r, 2, "ends", ends, TD_MAX_DIMS),
            n_steps = td__run_ints (r, 4, NULL, steps, TD_MAX_DIMS);
  int axes[TD_MAX_DIMS], n_axes;

  if (!td__run_axes (r, 3, "axes", x->ndim, axes, &n_axes))
    return false;
  if (n < 0 || n != n_ends || (n_axes > 0 && n_axes != n) || (n_steps >= 0 && n_steps != n)
      || n > x->ndim)
    td__run_fail (r, TD_ERR_ARG, "as many ends, axes and steps as starts expected");
  for (int d = 0; d < x->ndim; d++)
    to[d] = (Cut){ 0, 1, x->dim[d] };
  for (int k = 0; k < n && !r->failed; k++)
    {
      const int64_t step = n_steps < 0 ? 1 : steps[k], most = INT32_MAX;
      const int axis = n_axes > 0 ? axes[k] : k;

      if (step == 0)
        td__run_fail (r, TD_ERR_ARG, "a step that is not 0 expected");
      else
        to[axis] = cut_of (x->dim[axis], starts[k], ends[k],
                           step > most    ? most
                           : step < -most ? -most
                                          : step);
    }
  return !r->failed;
}

static TdVar *
cut (TdVar *x, const Cut *c)
{
  const TdShape shape = td_shape (x);
  TdSlice slices[TD_MAX_DIMS];

  for (int d = 0; d < shape.ndim; d++)
    {
      const int64_t stop = c[d].start + c[d].count * c[d].step;

      slices[d] = c[d].count == 0 ? TD_RANGE (0, 0)
                                  : TD_STEP (c[d].start, stop < 0 ? TD_END : stop, c[d].step);
    }
  return td_get_item (x, slices, shape.ndim);
}

static void
slice (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  const TdShape shape = td_shape (x);
  Cut c[TD_MAX_DIMS];

  if (cuts (r, &shape, c))
    td__run_out (r, 0, cut (x, c));
}

static const TdOnnxHost *
host_slice (TdOnnxRun *r)
{
  const TdOnnxHost *x = td__run_known (r, 0);
  TdShape shape = x->shape;
  int64_t index[TD_MAX_DIMS] = { 0 }, *at, n;
  Cut c[TD_MAX_DIMS];

  if (!cuts (r, &x->shape, c))
    return NULL;
  for (int d = 0; d < shape.ndim; d++)
    shape.dim[d] = c[d].count;
  n = td__size (&shape);
  at = td__onnx_alloc (&r->arena, (size_t)n + 1, sizeof *at);
  for (int64_t k = 0; k < n; k++)
    {
      for (int d = 0; d < shape.ndim; d++)
        at[k] = at[k] * x->shape.dim[d] + c[d].start + index[d] * c[d].step;
      for (int d = shape.ndim - 1; d >= 0 && ++index[d] == shape.dim[d]; d--)
        index[d] = 0;
    }
  return td__host_gather (&r->arena, x, &shape, at);
}

/* --- around and above --- */

static void
pad (TdOnnxRun *r)
{
  TdVar *x = td__run_var (r, 0);
  const char *mode = td__onnx_attr_text (r->node, "mode", "constant");
  const TdOnnxHost *value = td__run_there (r, 2) ? td__run_numbers (r, 2) : NULL;
  TdShape shape = td_shape (x);
  int64_t pads[2 * TD_MAX_DIMS];
  const int n = td__run_ints (r, 1, "pads", pads, 2 * TD_MAX_DIMS);
  int axes[TD_MAX_DIMS], n_axes, width[2 * TD_MAX_DIMS] = { 0 };
  Cut c[TD_MAX_DIMS];

  if (!td__run_axes (r, 3, NULL, shape.ndim, axes, &n_axes))
    return;
  for (int d = 0; n_axes == 0 && !td__run_there (r, 3) && d < shape.ndim; d++)
    axes[d] = d;
  n_axes = td__run_there (r, 3) ? n_axes : shape.ndim;
  if (n != 2 * n_axes)
    td__run_fail (r, TD_ERR_ARG, "%d pads expected, got %d", 2 * n_axes, n);
  for (int d = 0; d < shape.ndim; d++)
    c[d] = (Cut){ 0, 1, shape.dim[d] };
  for (int k = 0; k < 2 * n_axes && !r->failed; k++)
    {
      const int d = axes[k % n_axes], end = k >= n_axes;

      if (pads[k] > INT32_MAX || pads[k] < -c[d].count)
        td__run_fail (r, TD_ERR_ARG, "a pad of %lld", (long long)pads[k]);
      else if (pads[k] >= 0)
        width[2 * d + end] = (int)pads[k];
      else
        {
          c[d].start -= end ? 0 : pads[k];
          c[d].count += pads[k];
        }
    }
  if (r->failed)
    return;
  for (int k = 0; k < n; k++)
    if (pads[k] < 0)
      {
        x = cut (x, c);
        break;
      }
  td__run_out (r, 0,
               td_pad (x, width,
                       mode[0] == 'r'   ? TD_PAD_REFLECT
                       : mode[0] == 'e' ? TD_PAD_EDGE
                                        : TD_PAD_CONSTANT,
                       value != NULL && value->n == 1
                           ? td__host_float (value, 0)
                           : td__onnx_attr_float (r->node, "value", 0)));
}

static const char *
pad_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const char *mode = td__onnx_attr_text (n, "mode", "constant");

  (void)g;
  return strcmp (mode, "constant") != 0 && strcmp (mode, "reflect") != 0
                 && strcmp (mode, "edge") != 0
             ? "the mode"
             : NULL;
}

/* Which elements of the last two axes stay. */
static TdOnnxHost *
triangle (TdOnnxRun *r, const TdShape *x)
{
  const bool upper = td__onnx_attr_int (r->node, "upper", 1) != 0;
  const TdShape shape = { 2, { x->ndim > 1 ? x->dim[x->ndim - 2] : 0, x->dim[x->ndim - 1] } };
  int64_t k = 0;
  TdOnnxHost *mask;

  if (x->ndim < 2 || td__run_ints (r, 1, NULL, &k, 1) > 1 || r->failed)
    {
      td__run_fail (r, TD_ERR_SHAPE, "two axes and more expected");
      return NULL;
    }
  mask = td__host_new (&r->arena, TD_BOOL, &shape);
  for (int64_t i = 0; mask != NULL && i < mask->n; i++)
    {
      const int64_t above = i % shape.dim[1] - i / shape.dim[1];

      mask->i[i] = upper ? above >= k : above <= k;
    }
  return mask;
}

static void
trilu (TdOnnxRun *r)
{
  const TdShape shape = td__run_shape (r, 0);
  TdOnnxHost *mask = triangle (r, &shape);
  TdVar *x = td__run_var (r, 0);

  if (mask != NULL)
    td__run_out (r, 0,
                 td_where (td__run_upload (r, mask), x, td_zeros (td_dtype (x), TD_SCALAR)));
}

static const TdOnnxHost *
host_trilu (TdOnnxRun *r)
{
  const TdOnnxHost *x = td__run_known (r, 0);
  TdOnnxHost *mask = triangle (r, &x->shape);
  int64_t *at;

  if (mask == NULL)
    return NULL;
  at = td__onnx_alloc (&r->arena, (size_t)x->n + 1, sizeof *at);
  for (int64_t i = 0; i < x->n; i++)
    at[i] = mask->i[i % mask->n] != 0 ? i : -1;
  return td__host_gather (&r->arena, x, &x->shape, at);
}

#define SCATTER_LIMITS                                                                         \
  "as Gather; reductions none and add; which of computed indices come twice is read by the "   \
  "host, of 524288 at most"
#define ONE .least_in = 1, .most_in = 1
#define TWO .least_in = 2, .most_in = 2

/* clang-format off */
const TdOnnxRow td__onnx_indices[] = {
  { "Gather", .from = 1, TWO, .attributes = "axis", .run = gather, .host = host_gather,
    .limits = "indices that are computed from arrays count from the front" },
  { "GatherElements", .from = 11, TWO, .attributes = "axis", .run = gather_elements,
    .limits = "as Gather" },
  { "GatherND", .from = 11, TWO, .attributes = "batch_dims=0", .run = gather_nd,
    .limits = "as Gather, and no batch_dims" },
  { "NonZero", .from = 9, ONE, .host = host_non_zero, .limits = "of sizes and integer constants only" },
  { "OneHot", .from = 9, .least_in = 3, .most_in = 3, .read = 6, .attributes = "axis", .run = one_hot,
    .limits = "indices count from the front" },
  { "Pad", .from = 2, .to = 10, ONE, .attributes = "mode pads value", .run = pad, .lacks = pad_lacks },
  { "Pad", .from = 11, .least_in = 2, .most_in = 4, .read = 14, .attributes = "mode", .run = pad, .lacks = pad_lacks,
    .limits = "not mode wrap" },
  { "ScatterElements", .from = 11, .least_in = 3, .most_in = 3, .attributes = "axis reduction", .run = scatter_elements,
    .lacks = scatter_lacks, .limits = SCATTER_LIMITS },
  { "ScatterND", .from = 11, .least_in = 3, .most_in = 3, .attributes = "reduction", .run = scatter_nd,
    .lacks = scatter_lacks, .limits = SCATTER_LIMITS },
  { "Slice", .from = 1, .to = 9, ONE, .attributes = "starts ends axes", .run = slice, .host = host_slice },
  { "Slice", .from = 10, .least_in = 3, .most_in = 5, .read = 30, .run = slice, .host = host_slice },
  { "Trilu", .from = 14, .least_in = 1, .most_in = 2, .read = 2, .attributes = "upper",
    .run = trilu, .host = host_trilu },
  { 0 },
};
/* clang-format on */
