/* Operations that move elements, as ONNX: pieces, axes, arrays beside each other; and the
 * transposed convolution.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT,
  PER_SLICE = 4, /* start, stop, step, kind: 0 a range, 1 an index, 2 a new axis */
  AXES = TD_MAX_DIMS
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
out (const TdOnnx *o, const TdStep *step, uint32_t i)
{
  return td__step_out (o->s, step, i);
}

static int64_t
axis_of (const TdStep *step, const char *name, int ndim)
{
  const int64_t axis = (int64_t)td__export_number (step, name, 0);

  return axis < 0 ? axis + ndim : axis;
}

/* to = type (from, lists ...): names of values, and lists of whole numbers as constants. */
static void
with_lists (TdOnnx *o, const char *type, const char *from, const int64_t *const *lists,
            const int *sizes, int n_lists, const char *to)
{
  char names[4][TEXT];
  TdOnnxNodeWriter n;

  for (int i = 0; i < n_lists; i++)
    td__onnx_constant_ints (o, lists[i], sizes[i], names[i], TEXT);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in (&n, from);
  for (int i = 0; i < n_lists; i++)
    td__onnx_in (&n, names[i]);
  td__onnx_out (&n, to);
  td__onnx_end (&n);
}

static void
with_list (TdOnnx *o, const char *type, const char *from, const int64_t *list, int size,
           const char *to)
{
  with_lists (o, type, from, &list, &size, 1, to);
}

/* to = type (from, sizes). */
static void
with_sizes (TdOnnx *o, const char *type, const char *from, const TdOnnxSize *sizes, int n_sizes,
            const char *to)
{
  char list[TEXT];
  TdOnnxNodeWriter n;

  if (strcmp (type, "Reshape") == 0)
    td__onnx_reshape_list (o, NULL, 0, sizes, n_sizes, list, sizeof list);
  else
    td__onnx_size_list (o, sizes, n_sizes, list, sizeof list);
  n = td__onnx_node (o, type, NULL);
  td__onnx_in (&n, from);
  td__onnx_in (&n, list);
  td__onnx_out (&n, to);
  td__onnx_end (&n);
}

static const TdOnnxSize *
sizes_of (const TdOnnx *o, uint32_t node)
{
  return o->sizes.of[node];
}

static void
moveaxis (TdOnnx *o, const TdStep *step)
{
  const int ndim = shape_of (o, in (o, step, 0))->ndim;
  const int64_t from = axis_of (step, "source", ndim), to = axis_of (step, "destination", ndim);
  TdOnnxNodeWriter n = td__onnx_node (o, "Transpose", NULL);
  int64_t order[AXES], k = 0;

  for (int d = 0; d < ndim; d++)
    {
      k += k == from;
      order[d] = d == to ? from : k++;
    }
  td__onnx_in_node (&n, in (o, step, 0));
  td__onnx_ints (&n, "perm", order, ndim);
  td__onnx_out_node (&n, out (o, step, 0));
  td__onnx_end (&n);
}

void
td__onnx_sliced (TdOnnx *o, const TdStep *step, const char *from, char *to)
{
  int64_t slices[PER_SLICE * 2 * AXES], parts[4][AXES];
  const int64_t *const lists[] = { parts[0], parts[1], parts[2], parts[3] };
  const int n = td__export_ints (step, "slices", slices, PER_SLICE * 2 * AXES);
  int count = 0, axis = 0, sizes[4];

  for (const int64_t *s = slices; s < slices + n; s += PER_SLICE)
    if (s[3] != 2)
      {
        const int64_t stop = s[3] == 1         ? s[0] == -1 ? INT64_MAX : s[0] + 1
                             : s[1] == INT_MAX ? s[2] > 0 ? INT64_MAX : -INT64_MAX
                                               : s[1];

        parts[0][count] = s[0] == INT_MAX ? INT64_MAX : s[0] == INT_MIN ? -INT64_MAX : s[0];
        parts[1][count] = stop == INT_MIN ? -INT64_MAX : stop;
        parts[2][count] = axis++;
        parts[3][count++] = s[3] == 1 ? 1 : s[2];
      }
  for (int i = 0; i < 4; i++)
    sizes[i] = count;
  snprintf (to, TEXT, "%s", from);
  if (count > 0)
    with_lists (o, "Slice", from, lists, sizes, 4, td__onnx_made (o, to, TEXT));
}

/* Slice, by axes that are sliced; Reshape gives the axes that are new or gone. */
static void
get_item (TdOnnx *o, const TdStep *step)
{
  const TdShape *y = shape_of (o, out (o, step, 0));
  char sliced[TEXT];

  td__onnx_sliced (o, step, td__onnx_value (o, in (o, step, 0)), sliced);
  with_sizes (o, "Reshape", sliced, sizes_of (o, out (o, step, 0)), y->ndim,
              td__onnx_value (o, out (o, step, 0)));
}

/* Inputs in the shape that `shape_in` gives them, one after the other along an axis. */
static void
join (TdOnnx *o, const TdStep *step, int64_t axis,
      int (*shape_in) (const TdOnnxSize *x, int ndim, TdOnnxSize *like))
{
  char made[TEXT];
  TdOnnxNodeWriter n = td__onnx_node (o, "Concat", NULL);

  for (uint32_t k = 0; k < step->n_in; k++)
    {
      const uint32_t x = in (o, step, k);
      TdOnnxSize like[AXES];
      const int ndim = shape_in (sizes_of (o, x), shape_of (o, x)->ndim, like);

      with_sizes (o, "Reshape", td__onnx_value (o, x), like, ndim,
                  td__onnx_made (o, made, sizeof made));
      td__onnx_in (&n, made);
    }
  td__onnx_int (&n, "axis", axis);
  td__onnx_out_node (&n, out (o, step, 0));
  td__onnx_end (&n);
}

static int
as_row (const TdOnnxSize *x, int ndim, TdOnnxSize *like)
{
  memcpy (like, x, (size_t)ndim * sizeof *x);
  if (ndim >= 2)
    return ndim;
  like[0] = td__onnx_size (1);
  like[1] = ndim > 0 ? x[0] : td__onnx_size (1);
  return 2;
}

static int
as_vector (const TdOnnxSize *x, int ndim, TdOnnxSize *like)
{
  memcpy (like, x, (size_t)ndim * sizeof *x);
  like[0] = ndim > 0 ? x[0] : td__onnx_size (1);
  return ndim > 0 ? ndim : 1;
}

static void
hstack (TdOnnx *o, const TdStep *step)
{
  join (o, step, shape_of (o, out (o, step, 0))->ndim < 2 ? 0 : 1, as_vector);
}

static void
vstack (TdOnnx *o, const TdStep *step)
{
  join (o, step, 0, as_row);
}

/* Pad with a number of x's own type; widths before, then behind. */
static void
padded (TdOnnx *o, uint32_t x, const int64_t *widths, int n, double with, const char *to)
{
  char list[TEXT], number[TEXT];
  TdOnnxNodeWriter node;

  td__onnx_constant_ints (o, widths, n, list, sizeof list);
  td__onnx_constant_number (o, with, (TdDtype)o->s->nodes[x].dtype, number, sizeof number);
  node = td__onnx_node (o, "Pad", NULL);
  td__onnx_in_node (&node, x);
  td__onnx_in (&node, list);
  td__onnx_in (&node, number);
  td__onnx_out (&node, to);
  td__onnx_end (&node);
}

static void
pad (TdOnnx *o, const TdStep *step)
{
  const int ndim = shape_of (o, in (o, step, 0))->ndim;
  int64_t pairs[2 * AXES], widths[2 * AXES];
  td__export_ints (step, "pad_width", pairs, 2 * AXES);
  for (int d = 0; d < ndim; d++)
    {
      widths[d] = pairs[2 * d];
      widths[ndim + d] = pairs[2 * d + 1];
    }
  padded (o, in (o, step, 0), widths, 2 * ndim, td__export_number (step, "constant_values", 0),
          td__onnx_value (o, out (o, step, 0)));
}

static void
pad_sequence (TdOnnx *o, const TdStep *step)
{
  const TdShape *y = shape_of (o, out (o, step, 0));
  const int64_t first[] = { 0 };
  TdOnnxNodeWriter n = td__onnx_node (o, "Concat", NULL);

  for (uint32_t k = 0; k < step->n_in; k++)
    {
      const uint32_t x = in (o, step, k);
      int64_t widths[2 * AXES] = { 0 };
      char wide[TEXT], row[TEXT];

      widths[shape_of (o, x)->ndim] = y->dim[1] - td__onnx_fixed (o, step, x, 0);
      padded (o, x, widths, 2 * shape_of (o, x)->ndim, td__export_number (step, "padding", 0),
              td__onnx_made (o, wide, sizeof wide));
      with_list (o, "Unsqueeze", wide, first, 1, td__onnx_made (o, row, sizeof row));
      td__onnx_in (&n, row);
    }
  td__onnx_int (&n, "axis", 0);
  td__onnx_out_node (&n, out (o, step, 0));
  td__onnx_end (&n);
}

static void
broadcast (TdOnnx *o, const TdStep *step)
{
  for (uint32_t k = 0; k < step->n_out; k++)
    with_sizes (o, "Expand", td__onnx_value (o, in (o, step, k)),
                sizes_of (o, out (o, step, k)), shape_of (o, out (o, step, k))->ndim,
                td__onnx_value (o, out (o, step, k)));
}

static void
tile (TdOnnx *o, const TdStep *step)
{
  const TdShape *x = shape_of (o, in (o, step, 0)), *y = shape_of (o, out (o, step, 0));
  const int more = y->ndim - x->ndim;
  TdOnnxSize under[AXES];
  int64_t times[AXES];
  char wide[TEXT];

  for (int d = 0; d < y->ndim; d++)
    {
      under[d] = d < more ? td__onnx_size (1) : sizes_of (o, in (o, step, 0))[d - more];
      times[d] = under[d].v[0] > 0 ? y->dim[d] / under[d].v[0] : 1;
    }
  with_sizes (o, "Reshape", td__onnx_value (o, in (o, step, 0)), under, y->ndim,
              td__onnx_made (o, wide, sizeof wide));
  with_list (o, "Tile", wide, times, y->ndim, td__onnx_value (o, out (o, step, 0)));
}

/* An axis of 1 behind the one that is repeated is spread. */
static void
repeat (TdOnnx *o, const TdStep *step)
{
  const TdShape *x = shape_of (o, in (o, step, 0)), *y = shape_of (o, out (o, step, 0));
  const int axis = (int)axis_of (step, "axis", x->ndim);
  TdOnnxSize apart[AXES + 1], spread[AXES + 1];
  char made[2][TEXT];
  int n = 0;

  for (int d = 0; d < x->ndim; d++)
    {
      apart[n] = spread[n] = sizes_of (o, in (o, step, 0))[d];
      n++;
      if (d == axis)
        {
          apart[n] = td__onnx_size (1);
          spread[n++] = td__onnx_size (x->dim[d] > 0 ? y->dim[d] / x->dim[d] : 1);
        }
    }
  with_sizes (o, "Reshape", td__onnx_value (o, in (o, step, 0)), apart, n,
              td__onnx_made (o, made[0], TEXT));
  with_sizes (o, "Expand", made[0], spread, n, td__onnx_made (o, made[1], TEXT));
  with_sizes (o, "Reshape", made[1], sizes_of (o, out (o, step, 0)), y->ndim,
              td__onnx_value (o, out (o, step, 0)));
}

/* What a size that was asked for has more than the windows give is output_padding. */
static void
deconvolution (TdOnnx *o, const TdStep *step)
{
  const TdShape *w = shape_of (o, in (o, step, 1)), *y = shape_of (o, out (o, step, 0));
  const int ndim = y->ndim - 2;
  int64_t lists[3][AXES], pads[2 * AXES], more[AXES];
  static const char *const names[] = { "stride", "pad", "dilate" };
  TdOnnxNodeWriter n = td__onnx_node (o, "ConvTranspose", NULL);

  for (int i = 0; i < 3; i++)
    {
      const int count = td__export_ints (step, names[i], lists[i], AXES);

      for (int d = 0; d < ndim; d++)
        lists[i][d] = count <= 0 ? i != 1 : lists[i][count == 1 ? 0 : d];
    }
  for (int d = 0; d < ndim; d++)
    {
      pads[d] = pads[ndim + d] = lists[1][d];
      more[d] = y->dim[2 + d]
                - (lists[0][d] * (td__onnx_fixed (o, step, in (o, step, 0), 2 + d) - 1)
                   + (w->dim[2 + d] - 1) * lists[2][d] + 1 - 2 * lists[1][d]);
      if (more[d] < 0) /* a window that reaches over the edge: cut off behind */
        {
          pads[ndim + d] -= more[d];
          more[d] = 0;
        }
    }
  for (uint32_t i = 0; i < step->n_in; i++)
    td__onnx_in_node (&n, in (o, step, i));
  td__onnx_ints (&n, "strides", lists[0], ndim);
  td__onnx_ints (&n, "pads", pads, 2 * ndim);
  td__onnx_ints (&n, "dilations", lists[2], ndim);
  td__onnx_ints (&n, "output_padding", more, ndim);
  td__onnx_int (&n, "group", (int64_t)td__export_number (step, "groups", 1));
  td__onnx_out_node (&n, out (o, step, 0));
  td__onnx_end (&n);
}

bool
td__onnx_write_by (const TdOnnxWriter *writers, size_t n, TdOnnx *o, const TdStep *step)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (writers[i].op, step->cls->name) == 0)
      {
        writers[i].write (o, step);
        return true;
      }
  return false;
}

static const TdOnnxWriter writers[] = {
  { "moveaxis", moveaxis },
  { "get_item", get_item },
  { "hstack", hstack },
  { "vstack", vstack },
  { "pad", pad },
  { "pad_sequence", pad_sequence },
  { "broadcast", broadcast },
  { "tile", tile },
  { "repeat", repeat },
  { "deconvolution_2d", deconvolution },
  { "deconvolution_nd", deconvolution },
};

bool
td__onnx_shape (TdOnnx *o, const TdStep *step)
{
  return td__onnx_write_by (writers, sizeof writers / sizeof *writers, o, step);
}
