/* Operations that pick elements by their places, or add to them, as ONNX: axes that are indexed
 * together become one.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx.h"
#include "host-memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT,
  LINE = 1000,  /* of a recipe */
  PER_SLICE = 4 /* start, stop, step, kind: 0 a range, 1 an index, 2 a new axis */
};

static const TdShape *
shape_of (const TdOnnx *o, const TdStep *step, uint32_t i)
{
  return &o->s->nodes[td__step_in (o->s, step, i)].shape;
}

/* The sizes of input i with n of its axes, from one on, as a single one: for Reshape.  Those
 * that become one are fixed, unless there is but one. */
static void
joined (TdOnnx *o, const TdStep *step, uint32_t i, int axis, int n, char *text)
{
  const uint32_t node = td__step_in (o->s, step, i);
  const int ndim = o->s->nodes[node].shape.ndim;
  TdOnnxSize sizes[TD_MAX_DIMS + 1];
  int64_t all = 1;
  int count = 0;

  for (int d = 0; d < axis; d++)
    sizes[count++] = o->sizes.of[node][d];
  for (int d = axis; d < axis + n && n != 1; d++)
    all *= td__onnx_fixed (o, step, node, d);
  sizes[count++] = n == 1 ? o->sizes.of[node][axis] : td__onnx_size (all);
  for (int d = axis + n; d < ndim; d++)
    sizes[count++] = o->sizes.of[node][d];
  td__onnx_reshape_list (o, o->sizes.of[node], axis, sizes, count, text, TEXT);
}

/* A list for Reshape of places, beside arrays of ndim axes: all along one. */
static void
along (TdOnnx *o, int axis, int ndim, char *text)
{
  int64_t list[TD_MAX_DIMS + 1];

  for (int d = 0; d < ndim; d++)
    list[d] = d == axis ? -1 : 1;
  td__onnx_constant_ints (o, list, ndim, text, TEXT);
}

static int
axis_of (const TdOnnx *o, const TdStep *step)
{
  const int axis = (int)td__export_number (step, "axis", 0);

  return axis < 0 ? axis + shape_of (o, step, 0)->ndim : axis;
}

/* "u=...;": the place along the axis that the indexed ones become, of inputs from `first` on.
 */
static size_t
say_flat (TdOnnx *o, const TdStep *step, uint32_t first, char *line, size_t size)
{
  const int axis = axis_of (o, step);
  size_t n = (size_t)snprintf (line, size, "u=Cast(%c;to=I);", (int)('a' + first));

  for (uint32_t i = first + 1; i < step->n_in; i++)
    n += (size_t)snprintf (line + n, size - n, "u=Add(Mul(u,:%lld),Cast(%c;to=I));",
                           (long long)td__onnx_fixed (o, step, td__step_in (o->s, step, 0),
                                                      axis + (int)(i - first)),
                           (int)('a' + i));
  return n;
}

static void
get_item_arrays (TdOnnx *o, const TdStep *step)
{
  char line[LINE], sizes[TEXT];
  const TdOnnxGiven given = { 'x', sizes };
  const int axis = axis_of (o, step);
  const size_t n = say_flat (o, step, 1, line, sizeof line);

  if (step->n_in > 2)
    joined (o, step, 0, axis, (int)step->n_in - 1, sizes);
  snprintf (line + n, sizeof line - n, "Gather(%s,u;axis=%d)",
            step->n_in > 2 ? "Reshape(a,x)" : "a", axis);
  td__onnx_compose (o, step, line, &given, step->n_in > 2);
}

/* a with b added where the value u says along one axis: n_a of a's axes and n_b of b's become
 * it. */
static void
add_at (TdOnnx *o, const TdStep *step, int axis, int n_a, int n_b, const char *u)
{
  char line[LINE];
  char of_a[TEXT], of_b[TEXT], of_u[TEXT];
  const TdOnnxGiven given[] = { { 'x', of_a }, { 'y', of_b }, { 'z', of_u }, { 'u', u } };

  joined (o, step, 0, axis, n_a, of_a);
  joined (o, step, 1, axis, n_b, of_b);
  along (o, axis, shape_of (o, step, 0)->ndim - n_a + 1, of_u);
  snprintf (line, sizeof line,
            "v=Reshape(b,y);Reshape(ScatterElements(Reshape(a,x),Expand(Reshape(u,z),Shape(v)),"
            "v;axis=%d,reduction=add),$0)",
            axis);
  td__onnx_compose (o, step, line, given, 4);
}

/* How many slices from the first on take all of an axis. */
static int
whole_axes (const int64_t *slices, int n)
{
  int count = 0;

  for (const int64_t *s = slices; s < slices + n; s += PER_SLICE, count++)
    if (s[3] != 0 || s[2] != 1 || s[1] != INT_MAX || (s[0] != 0 && s[0] != INT_MAX))
      break;
  return count;
}

/* The places of what the slices take are sliced out of numbers that count a's elements. */
static void
scatter_add (TdOnnx *o, const TdStep *step)
{
  const TdShape *a = shape_of (o, step, 0);
  int64_t slices[PER_SLICE * 2 * TD_MAX_DIMS], *numbers;
  const int n = td__export_ints (step, "slices", slices, PER_SLICE * 2 * TD_MAX_DIMS);
  const int whole = whole_axes (slices, n), axis = whole < a->ndim ? whole : a->ndim;
  TdShape counted = *a;
  char all[TEXT], taken[TEXT];

  for (int d = 0; d < a->ndim; d++)
    counted.dim[d] = d < axis ? 1 : td__onnx_fixed (o, step, td__step_in (o->s, step, 0), d);
  numbers = td__xcalloc ((size_t)td__size (&counted) + 1, sizeof *numbers);
  for (int64_t i = 0; i < td__size (&counted); i++)
    numbers[i] = i;
  td__onnx_constant (o, TD_I64, &counted, numbers, all, sizeof all);
  free (numbers);
  td__onnx_sliced (o, step, all, taken);
  add_at (o, step, axis, a->ndim - axis, shape_of (o, step, 1)->ndim - axis, taken);
}

static const TdOnnxWriter writers[] = {
  { "get_item_arrays", get_item_arrays },
  { "scatter_add", scatter_add },
};

bool
td__onnx_places (TdOnnx *o, const TdStep *step)
{
  return td__onnx_write_by (writers, sizeof writers / sizeof *writers, o, step);
}
