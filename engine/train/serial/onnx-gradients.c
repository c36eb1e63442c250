/* Gradients that put elements back where they came from, and those of convolutions' filters, as
 * ONNX.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"

#include "host-memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT,
  AXES = TD_MAX_DIMS,
  PLACES = 2,   /* axes of an array before its image */
  PER_SLICE = 4 /* start, stop, step, kind: 0 a range, 1 an index, 2 a new axis */
};

static const TdShape *
shape_of (const TdOnnx *o, uint32_t node)
{
  return &o->s->nodes[node].shape;
}

static uint32_t
in (const TdOnnx *o, const TdStep *step, uint32_t i)
{
  return td__step_in (o->s, step, i);
}

static uint32_t
out (const TdOnnx *o, const TdStep *step)
{
  return td__step_out (o->s, step, 0);
}

static const char *
result (TdOnnx *o, const TdStep *step)
{
  return td__onnx_value (o, out (o, step));
}

/* value = type (value, b). */
static void
onto (TdOnnx *o, const char *type, const char *b, char *value)
{
  td__onnx_call (o, (TdOnnxCall){ type, { value, b } }, NULL, value);
}

static void
reshape (TdOnnx *o, const TdOnnxSize *sizes, int n, const char *to, char *value)
{
  char list[TEXT];

  td__onnx_reshape_list (o, NULL, 0, sizes, n, list, sizeof list);
  td__onnx_call (o, (TdOnnxCall){ "Reshape", { value, list } }, to, value);
}

static void
transpose (TdOnnx *o, const int64_t *order, int n, const char *to, char *value)
{
  td__onnx_call (
      o, (TdOnnxCall){ "Transpose", { value }, .list = "perm", .values = order, .n_values = n },
      to, value);
}

/* Whole numbers by name, one for each of n axes. */
static void
spread (const TdStep *step, const char *name, int64_t otherwise, int n, int64_t *to)
{
  const int count = td__export_ints (step, name, to, AXES);

  for (int d = n - 1; d >= 0; d--)
    to[d] = count <= 0 ? otherwise : to[count == 1 ? 0 : d];
}

/* --- elements put back --- */

/* Neighbours are summed up on an axis of their own. */
static void
repeat_grad (TdOnnx *o, const TdStep *step)
{
  const int ndim = shape_of (o, out (o, step))->ndim;
  const int64_t given = (int64_t)td__export_number (step, "axis", 0);
  const int64_t axis = given < 0 ? given + ndim : given, sum[] = { axis + 1 };
  TdOnnxSize apart[AXES + 1];
  char value[TEXT], axes[TEXT];

  for (int d = 0; d <= ndim; d++)
    apart[d] = d == axis + 1 ? td__onnx_size ((int64_t)td__export_number (step, "repeats", 1))
                             : o->sizes.of[out (o, step)][d - (d > axis)];
  strcpy (value, td__onnx_value (o, in (o, step, 0)));
  reshape (o, apart, ndim + 1, NULL, value);
  td__onnx_constant_ints (o, sum, 1, axes, sizeof axes);
  td__onnx_call (o,
                 (TdOnnxCall){ "ReduceSum", { value, axes }, .number = "keepdims", .value = 0 },
                 result (o, step), value);
}

/* Where the first of count elements lies that a range of an axis of n takes. */
static int64_t
first_of (const int64_t *slice, int64_t n)
{
  const int64_t first = slice[0] == INT_MAX && slice[2] < 0 ? n - 1
                        : slice[0] < 0                      ? slice[0] + n
                                                            : slice[0];

  return first < 0 ? 0 : first > n - 1 ? n - 1 : first;
}

/* Elements of an axis by their places: behind them comes a zero, which is everywhere else. */
static void
by_places (TdOnnx *o, int axis, int64_t n, int64_t first, int64_t step, int64_t count,
           const char *zero, int ndim, char *value)
{
  int64_t widths[2 * AXES] = { 0 }, *from = td__xmalloc ((size_t)(n + 1) * sizeof *from);
  char list[TEXT];

  widths[ndim + axis] = 1;
  for (int64_t i = 0; i < n; i++)
    from[i] = count;
  for (int64_t i = 0; i < count; i++)
    from[first + i * step] = i;
  td__onnx_constant_ints (o, widths, 2 * ndim, list, sizeof list);
  td__onnx_call (o, (TdOnnxCall){ "Pad", { value, list, zero } }, NULL, value);
  td__onnx_constant_ints (o, from, (int)n, list, sizeof list);
  td__onnx_call (o, (TdOnnxCall){ "Gather", { value, list }, .number = "axis", .value = axis },
                 NULL, value);
  free (from);
}

static void
get_item_grad (TdOnnx *o, const TdStep *step)
{
  const uint32_t x = out (o, step), gy = in (o, step, 0);
  const TdShape *shape = shape_of (o, x);
  int64_t slices[PER_SLICE * 2 * AXES], widths[2 * AXES] = { 0 };
  const int n = td__export_ints (step, "slices", slices, PER_SLICE * 2 * AXES);
  const int64_t *ranges[AXES] = { NULL };
  TdOnnxSize sliced[AXES];
  char value[TEXT], zero[TEXT], list[TEXT];
  int axis = 0, from = 0;

  for (const int64_t *s = slices; s < slices + n; s += PER_SLICE)
    {
      if (s[3] != 2)
        {
          ranges[axis] = s;
          sliced[axis++] = s[3] == 1 ? td__onnx_size (1) : o->sizes.of[gy][from];
        }
      from += s[3] != 1;
    }
  for (; axis < shape->ndim; axis++)
    sliced[axis] = o->sizes.of[gy][from++];
  strcpy (value, td__onnx_value (o, gy));
  reshape (o, sliced, axis, NULL, value);
  td__onnx_constant_number (o, 0, (TdDtype)o->s->nodes[x].dtype, zero, sizeof zero);
  for (int d = 0; d < axis; d++)
    {
      const int64_t *s = ranges[d], size = shape->dim[d], count = sliced[d].v[0];
      const int64_t first = s != NULL && count > 0 ? first_of (s, size) : 0;

      if (s == NULL || (s[3] == 0 && s[2] == 1 && count == size))
        continue;
      if (s[3] == 1 || s[2] == 1)
        {
          widths[d] = first;
          widths[axis + d] = size - first - count;
        }
      else
        by_places (o, d, size, first, s[2], count, zero, axis, value);
    }
  td__onnx_constant_ints (o, widths, 2 * axis, list, sizeof list);
  td__onnx_call (o, (TdOnnxCall){ "Pad", { value, list, zero } }, result (o, step), value);
}

/* The indices' arrays as one, with an axis of them behind. */
static void
indices (TdOnnx *o, const TdStep *step, uint32_t first, char *to)
{
  const int64_t last[] = { -1 };
  char axis[TEXT], (*index)[TEXT] = td__xmalloc (step->n_in * sizeof *index);
  TdOnnxNodeWriter n;

  td__onnx_constant_ints (o, last, 1, axis, sizeof axis);
  for (uint32_t i = first; i < step->n_in; i++)
    {
      td__onnx_call (o,
                     (TdOnnxCall){ "Cast",
                                   { td__onnx_value (o, in (o, step, i)) },
                                   .number = "to",
                                   .value = td__onnx_dtype (TD_I64) },
                     NULL, index[i]);
      onto (o, "Unsqueeze", axis, index[i]);
    }
  n = td__onnx_node (o, "Concat", NULL);
  for (uint32_t i = first; i < step->n_in; i++)
    td__onnx_in (&n, index[i]);
  td__onnx_int (&n, "axis", -1);
  td__onnx_out (&n, td__onnx_made (o, to, TEXT));
  td__onnx_end (&n);
  free (index);
}

/* Axes [from, from + n) come first, then the others. */
static void
to_front (int from, int n, int ndim, int64_t *order)
{
  for (int d = 0; d < ndim; d++)
    order[d] = d < n ? from + d : d < from + n ? d - n : d;
}

/* Added at places of some axes in a row: gy into zeros (into: -1), or input 1 into input 0. */
static void
add_at_places (TdOnnx *o, const TdStep *step, int into)
{
  const uint32_t first = (uint32_t)into + 2, from = in (o, step, first - 1), y = out (o, step);
  const int ndim = shape_of (o, y)->ndim, n = (int)(step->n_in - first),
            n_index = shape_of (o, in (o, step, first))->ndim;
  const int given = (int)td__export_number (step, "axis", 0);
  const int axis = given < 0 ? given + ndim : given;
  char value[TEXT], places[TEXT], add[TEXT];
  int64_t order[2 * AXES], back[2 * AXES];
  TdOnnxSize sizes[AXES];

  to_front (axis, n, ndim, order);
  for (int d = 0; d < ndim; d++)
    {
      sizes[d] = o->sizes.of[y][order[d]];
      back[order[d]] = d;
    }
  indices (o, step, first, places);
  if (into < 0)
    td__onnx_zeros (o, (TdDtype)o->s->nodes[y].dtype, sizes, ndim, value, sizeof value);
  else
    {
      strcpy (value, td__onnx_value (o, in (o, step, 0)));
      if (axis > 0)
        transpose (o, order, ndim, NULL, value);
    }
  strcpy (add, td__onnx_value (o, from));
  if (axis > 0)
    {
      to_front (axis, n_index, shape_of (o, from)->ndim, order);
      transpose (o, order, shape_of (o, from)->ndim, NULL, add);
    }
  td__onnx_call (
      o,
      (TdOnnxCall){ "ScatterND", { value, places, add }, .word = "reduction", .text = "add" },
      axis > 0 ? NULL : result (o, step), value);
  if (axis > 0)
    transpose (o, back, ndim, result (o, step), value);
}

static void
get_item_arrays_grad (TdOnnx *o, const TdStep *step)
{
  add_at_places (o, step, -1);
}

static void
scatter_add_arrays (TdOnnx *o, const TdStep *step)
{
  add_at_places (o, step, 0);
}

/* --- places of the largest --- */

/* Windows over an image that is large enough for all of them: elements outside are cut off, or
 * are zeros. */
typedef struct
{
  int n_axes;
  int64_t ksize[AXES], stride[AXES], pad[AXES];
  int64_t size[AXES], wide[AXES]; /* of the image, and of the large one */
  int64_t steps[AXES];            /* elements of the large one */
  bool pads;
  char at[TEXT];   /* (n c, windows): elements of the large one, i64, 0 for none */
  char none[TEXT]; /* where there is none */
} Largest;

static void
windows (TdOnnx *o, const TdStep *step, uint32_t image, Largest *l)
{
  int64_t elements = 1;

  *l = (Largest){ .n_axes = shape_of (o, image)->ndim - PLACES };
  spread (step, "ksize", 1, l->n_axes, l->ksize);
  spread (step, "stride", 0, l->n_axes, l->stride);
  spread (step, "pad", 0, l->n_axes, l->pad);
  for (int d = l->n_axes - 1; d >= 0; d--)
    {
      const int64_t n = td__onnx_fixed (o, step, in (o, step, 0), PLACES + d);
      int64_t reach;

      l->stride[d] = l->stride[d] > 0 ? l->stride[d] : l->ksize[d];
      reach = (n - 1) * l->stride[d] + l->ksize[d];
      l->size[d] = td__onnx_fixed (o, step, image, PLACES + d);
      l->wide[d] = reach > l->pad[d] + l->size[d] ? reach : l->pad[d] + l->size[d];
      l->pads = l->pads || l->wide[d] != l->size[d];
      l->steps[d] = elements;
      elements *= l->wide[d];
    }
}

/* The first element of each of these places: of a window's (by 1), or of windows. */
static void
table (TdOnnx *o, const Largest *l, const int64_t *sizes, const int64_t *by, bool none_first,
       char *to)
{
  int64_t n = 1, *places;

  for (int d = 0; d < l->n_axes; d++)
    n *= sizes[d];
  places = td__xcalloc ((size_t)n + 1, sizeof *places);
  for (int64_t i = 0; i < n; i++)
    for (int64_t d = l->n_axes - 1, rest = i; d >= 0; rest /= sizes[d--])
      places[none_first + i] += rest % sizes[d] * (by != NULL ? by[d] : 1) * l->steps[d];
  td__onnx_constant_ints (o, places, (int)n + none_first, to, TEXT);
  free (places);
}

/* By what input 0 remembers: places in each window from 1 on, 0 for none. */
static void
largest (TdOnnx *o, const TdStep *step, uint32_t image, Largest *l)
{
  const uint32_t index = in (o, step, 0);
  char places[TEXT], zero[TEXT], begins[TEXT];

  windows (o, step, image, l);
  td__onnx_call (o,
                 (TdOnnxCall){ "Cast",
                               { td__onnx_value (o, index) },
                               .number = "to",
                               .value = td__onnx_dtype (TD_I64) },
                 NULL, places);
  td__onnx_call (o, (TdOnnxCall){ "Flatten", { places }, .number = "axis", .value = PLACES },
                 NULL, places);
  td__onnx_constant_number (o, 0, TD_I64, zero, sizeof zero);
  td__onnx_call (o, (TdOnnxCall){ "Equal", { places, zero } }, NULL, l->none);
  table (o, l, l->ksize, NULL, true, begins);
  td__onnx_call (o, (TdOnnxCall){ "Gather", { begins, places } }, NULL, places);
  table (o, l, shape_of (o, index)->dim + PLACES, l->stride, false, begins);
  onto (o, "Add", begins, places);
  td__onnx_call (o, (TdOnnxCall){ "Where", { l->none, zero, places } }, NULL, l->at);
}

static void
flatten (TdOnnx *o, char *value)
{
  td__onnx_call (o, (TdOnnxCall){ "Flatten", { value }, .number = "axis", .value = PLACES },
                 NULL, value);
}

static void
or_zero (TdOnnx *o, const TdStep *step, const Largest *l, char *value)
{
  char zero[TEXT];

  td__onnx_constant_number (o, 0, (TdDtype)o->s->nodes[in (o, step, 1)].dtype, zero,
                            sizeof zero);
  td__onnx_call (o, (TdOnnxCall){ "Where", { l->none, zero, value } }, NULL, value);
}

/* The image out of the large one, with n c in front. */
static void
cut (TdOnnx *o, const Largest *l, const TdOnnxSize *wide, char *value)
{
  int64_t end[AXES], axes[AXES];
  char list[3][TEXT];
  TdOnnxNodeWriter n;

  reshape (o, wide, PLACES + l->n_axes, NULL, value);
  for (int d = 0; d < l->n_axes; d++)
    {
      end[d] = l->pad[d] + l->size[d];
      axes[d] = PLACES + d;
    }
  td__onnx_constant_ints (o, l->pad, l->n_axes, list[0], TEXT);
  td__onnx_constant_ints (o, end, l->n_axes, list[1], TEXT);
  td__onnx_constant_ints (o, axes, l->n_axes, list[2], TEXT);
  n = td__onnx_node (o, "Slice", NULL);
  td__onnx_in (&n, value);
  for (int i = 0; i < 3; i++)
    td__onnx_in (&n, list[i]);
  td__onnx_out (&n, td__onnx_made (o, value, TEXT));
  td__onnx_end (&n);
}

static void
max_pooling_grad (TdOnnx *o, const TdStep *step)
{
  const uint32_t y = out (o, step);
  char value[TEXT], add[TEXT];
  TdOnnxSize wide[AXES];
  Largest l;

  largest (o, step, y, &l);
  memcpy (wide, o->sizes.of[y], sizeof wide);
  for (int d = 0; d < l.n_axes; d++)
    wide[PLACES + d] = td__onnx_size (l.wide[d]);
  strcpy (add, td__onnx_value (o, in (o, step, 1)));
  flatten (o, add);
  or_zero (o, step, &l, add);
  td__onnx_zeros (o, (TdDtype)o->s->nodes[y].dtype, wide, PLACES + l.n_axes, value,
                  sizeof value);
  flatten (o, value);
  td__onnx_call (o,
                 (TdOnnxCall){ "ScatterElements",
                               { value, l.at, add },
                               .number = "axis",
                               .value = 1,
                               .word = "reduction",
                               .text = "add" },
                 NULL, value);
  if (l.pads)
    cut (o, &l, wide, value);
  reshape (o, o->sizes.of[y], PLACES + l.n_axes, result (o, step), value);
}

/* --- filters --- */

/* Axes 0 and 1 exchanged. */
static void
exchange (TdOnnx *o, int ndim, const char *to, char *value)
{
  int64_t order[AXES + 1];

  for (int d = 0; d < ndim; d++)
    order[d] = d < 2 ? 1 - d : d;
  transpose (o, order, ndim, to, value);
}

/* (n, groups c, ...) to (c, groups n, ...): what a convolution by groups takes, with examples
 * as channels. */
static void
examples_as_channels (TdOnnx *o, const TdOnnxSize *x, int ndim, int64_t groups, char *value)
{
  TdOnnxSize apart[AXES + 1], joined[AXES];
  int64_t order[AXES + 1];

  apart[0] = x[0];
  apart[1] = td__onnx_size (groups);
  apart[2] = td__onnx_size (x[1].v[0] / groups);
  joined[0] = apart[2];
  for (int d = 0; d <= ndim; d++)
    order[d] = d < 3 ? 2 - d : d;
  for (int d = 2; d < ndim; d++)
    apart[d + 1] = joined[d] = x[d];
  joined[1] = x[0];
  joined[1].times *= groups;
  joined[1].fixed *= groups;
  for (int j = 0; j < TD_ONNX_SAMPLES; j++)
    joined[1].v[j] *= groups;
  reshape (o, apart, ndim + 1, NULL, value);
  transpose (o, order, ndim + 1, NULL, value);
  reshape (o, joined, ndim, NULL, value);
}

/* A convolution of x with gy, whose places are a filter with the strides as dilations and the
 * other way round; examples are its channels. */
static void
convolution_grad_w (TdOnnx *o, const TdStep *step)
{
  const uint32_t x = in (o, step, 0), gy = in (o, step, 1);
  const TdShape *y = shape_of (o, out (o, step));
  const int ndim = y->ndim, n_axes = ndim - PLACES;
  const int64_t groups = (int64_t)td__export_number (step, "groups", 1);
  int64_t stride[AXES], dilate[AXES], pads[2 * AXES], kernel[AXES];
  int64_t from[AXES] = { 0 }, axes[AXES];
  char value[TEXT], filter[TEXT], list[3][TEXT];
  TdOnnxNodeWriter n;

  spread (step, "stride", 1, n_axes, stride);
  spread (step, "dilate", 1, n_axes, dilate);
  spread (step, "pad", 0, n_axes, pads);
  for (int d = 0; d < n_axes; d++)
    {
      const int64_t size = td__onnx_fixed (o, step, x, PLACES + d);
      int64_t more;

      kernel[d] = td__onnx_fixed (o, step, gy, PLACES + d);
      more = (y->dim[PLACES + d] - 1) * dilate[d] + (kernel[d] - 1) * stride[d] + 1 - size
             - pads[d];
      pads[n_axes + d] = more > 0 ? more : 0;
      axes[d] = PLACES + d;
    }
  strcpy (value, td__onnx_value (o, x));
  strcpy (filter, td__onnx_value (o, gy));
  if (groups > 1)
    {
      td__onnx_fixed (o, step, x, 1);
      examples_as_channels (o, o->sizes.of[x], ndim, groups, value);
    }
  else
    exchange (o, ndim, NULL, value);
  exchange (o, ndim, NULL, filter);
  n = td__onnx_node (o, "Conv", NULL);
  td__onnx_in (&n, value);
  td__onnx_in (&n, filter);
  td__onnx_ints (&n, "kernel_shape", kernel, n_axes);
  td__onnx_ints (&n, "strides", dilate, n_axes);
  td__onnx_ints (&n, "dilations", stride, n_axes);
  td__onnx_ints (&n, "pads", pads, 2 * n_axes);
  td__onnx_int (&n, "group", groups);
  td__onnx_out (&n, td__onnx_made (o, value, TEXT));
  td__onnx_end (&n);
  /* Rows that no filter reached are behind those of the filter. */
  td__onnx_constant_ints (o, from, n_axes, list[0], TEXT);
  td__onnx_constant_ints (o, y->dim + PLACES, n_axes, list[1], TEXT);
  td__onnx_constant_ints (o, axes, n_axes, list[2], TEXT);
  n = td__onnx_node (o, "Slice", NULL);
  td__onnx_in (&n, value);
  for (int i = 0; i < 3; i++)
    td__onnx_in (&n, list[i]);
  td__onnx_out (&n, td__onnx_made (o, value, TEXT));
  td__onnx_end (&n);
  exchange (o, ndim, result (o, step), value);
}

static const TdOnnxWriter writers[] = {
  { "repeat_grad", repeat_grad },
  { "get_item_grad", get_item_grad },
  { "get_item_arrays_grad", get_item_arrays_grad },
  { "scatter_add_arrays", scatter_add_arrays },
  { "max_pooling_2d_grad", max_pooling_grad },
  { "max_pooling_nd_grad", max_pooling_grad },
  { "convolution_2d_grad_w", convolution_grad_w },
  { "convolution_nd_grad_w", convolution_grad_w },
};

bool
td__onnx_gradient (TdOnnx *o, const TdStep *step)
{
  return td__onnx_write_by (writers, sizeof writers / sizeof *writers, o, step);
}
