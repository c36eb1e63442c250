/* Elements at other places, in a C program: axes in another order, pieces, arrays beside each
 * other.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include "compute/core/operands.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define P TD_C_PRINT

static TdCLoops
loops_of (const TdShape *shape)
{
  TdCLoops l = { .ndim = shape->ndim };

  memcpy (l.dim, shape->dim, sizeof shape->dim);
  return l;
}

static int
axis_of (const TdStep *step, const char *name, int ndim)
{
  const int axis = (int)td__export_number (step, name, 0);

  return axis < 0 ? axis + ndim : axis;
}

/* --- axes --- */

/* Which axis of x each axis of y is. */
static const char *
in_order (TdCOut *o, const TdStep *step, const int *order)
{
  const TdCWalk x = td__c_walk (o, td__c_in (o, step, 0));
  TdCWalk from = x;
  const TdShape *y = td__c_shape (o, td__c_out (o, step, 0));
  const TdCLoops l = loops_of (y);

  for (int d = 0; d < y->ndim; d++)
    from.stride[d] = x.stride[order[d]];
  td__c_copy (o, &l, td__c_walk (o, td__c_out (o, step, 0)), from, "=");
  return NULL;
}

static const char *
transpose (TdCOut *o, const TdStep *step, const char *text)
{
  const int ndim = td__c_shape (o, td__c_in (o, step, 0))->ndim;
  int64_t axes[TD_MAX_DIMS];
  int order[TD_MAX_DIMS];
  const int n = td__export_ints (step, "axes", axes, TD_MAX_DIMS);

  (void)text;
  for (int d = 0; d < ndim; d++)
    order[d] = n <= 0 ? ndim - 1 - d : (int)(axes[d] < 0 ? axes[d] + ndim : axes[d]);
  return in_order (o, step, order);
}

static const char *
swapaxes (TdCOut *o, const TdStep *step, const char *text)
{
  const int ndim = td__c_shape (o, td__c_in (o, step, 0))->ndim;
  const int a = axis_of (step, "axis1", ndim), b = axis_of (step, "axis2", ndim);
  int order[TD_MAX_DIMS];

  (void)text;
  for (int d = 0; d < ndim; d++)
    order[d] = d == a ? b : d == b ? a : d;
  return in_order (o, step, order);
}

static const char *
moveaxis (TdCOut *o, const TdStep *step, const char *text)
{
  const int ndim = td__c_shape (o, td__c_in (o, step, 0))->ndim;
  const int from = axis_of (step, "source", ndim), to = axis_of (step, "destination", ndim);
  int order[TD_MAX_DIMS], k = 0;

  (void)text;
  for (int d = 0; d < ndim; d++)
    {
      k += k == from;
      order[d] = d == to ? from : k++;
    }
  return in_order (o, step, order);
}

static const char *
flip (TdCOut *o, const TdStep *step, const char *text)
{
  const TdShape *x = td__c_shape (o, td__c_in (o, step, 0));
  const int axis = axis_of (step, "axis", x->ndim);
  const TdCLoops l = loops_of (x);
  TdCWalk from = td__c_walk (o, td__c_in (o, step, 0));

  (void)text;
  from.offset = (x->dim[axis] - 1) * from.stride[axis];
  from.stride[axis] = -from.stride[axis];
  td__c_copy (o, &l, td__c_walk (o, td__c_out (o, step, 0)), from, "=");
  return NULL;
}

/* --- pieces --- */

enum
{
  PER_SLICE = 4 /* start, stop, step, kind: 0 a range, 1 an index, 2 a new axis */
};

/* The first of a range on an axis of n elements, by NumPy's rules: an open end is INT_MAX. */
static int64_t
first_of (const int64_t *s, int64_t n)
{
  const int64_t low = s[2] > 0 ? 0 : -1, high = s[2] > 0 ? n : n - 1;
  int64_t first = s[0] == INT_MAX && s[2] < 0 ? n - 1 : s[0];

  first += first < 0 ? n : 0;
  return first < low ? low : first > high ? high : first;
}

/* How the result of slices walks over an array of shape x. */
static TdCWalk
sliced (const TdStep *step, const TdShape *x, uint32_t node)
{
  int64_t slices[PER_SLICE * 2 * TD_MAX_DIMS], stride[TD_MAX_DIMS];
  const int n = td__export_ints (step, "slices", slices, PER_SLICE * 2 * TD_MAX_DIMS);
  TdCWalk w = { .node = node };
  int axis = 0, d = 0;

  td__row_major (x, stride);
  for (const int64_t *s = slices; s < slices + n; s += PER_SLICE)
    {
      if (s[3] == 2)
        {
          d++;
          continue;
        }
      if (s[3] == 0)
        w.stride[d++] = s[2] * stride[axis];
      w.offset += (s[3] == 0  ? first_of (s, x->dim[axis])
                   : s[0] < 0 ? s[0] + x->dim[axis]
                              : s[0])
                  * stride[axis];
      axis++;
    }
  for (; axis < x->ndim; axis++)
    w.stride[d++] = stride[axis];
  return w;
}

static const char *
get_item (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t x = td__c_in (o, step, 0), y = td__c_out (o, step, 0);
  const TdCLoops l = loops_of (td__c_shape (o, y));

  (void)text;
  td__c_copy (o, &l, td__c_walk (o, y), sliced (step, td__c_shape (o, x), x), "=");
  return NULL;
}

static void
copy_whole (TdCOut *o, uint32_t from, uint32_t to)
{
  P (o, "  memcpy (%s, %s, %lld * sizeof *%s);\n", td__c_v (o, to), td__c_v (o, from),
     td__c_count (o, to), td__c_v (o, to));
}

/* What is written into zeros, or added to a copy. */
static const char *
into_item (TdCOut *o, const TdStep *step, const char *combine)
{
  const bool adds = combine[0] == '+';
  const uint32_t x = td__c_in (o, step, adds ? 1 : 0), y = td__c_out (o, step, 0);
  const TdCLoops l = loops_of (td__c_shape (o, x));

  if (adds)
    copy_whole (o, td__c_in (o, step, 0), y);
  else
    td__c_fill (o, y, 0);
  td__c_copy (o, &l, sliced (step, td__c_shape (o, y), y), td__c_walk (o, x), combine);
  return NULL;
}

/* Pieces of x along an axis. */
static const char *
split (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t x = td__c_in (o, step, 0);
  const int axis = axis_of (step, "axis", td__c_shape (o, x)->ndim);
  TdCWalk from = td__c_walk (o, x);

  (void)text;
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      const uint32_t y = td__c_out (o, step, k);
      const TdCLoops l = loops_of (td__c_shape (o, y));

      td__c_copy (o, &l, td__c_walk (o, y), from, "=");
      from.offset += l.dim[axis] * from.stride[axis];
    }
  return NULL;
}

/* --- arrays beside each other --- */

/* All inputs along an axis of the result; those that have fewer axes are under its last ones.
 */
static const char *
side_by_side (TdCOut *o, const TdStep *step, int axis)
{
  const uint32_t y = td__c_out (o, step, 0);
  const int ndim = td__c_shape (o, y)->ndim;
  TdCWalk to = td__c_walk (o, y);

  for (uint32_t k = 0; k < step->n_in; k++)
    {
      const uint32_t x = td__c_in (o, step, k);
      const TdShape *shape = td__c_shape (o, x);
      TdCLoops l = { .ndim = ndim };

      for (int d = 0; d < ndim; d++)
        l.dim[d] = d < ndim - shape->ndim ? 1 : shape->dim[d - (ndim - shape->ndim)];
      td__c_copy (o, &l, to, td__c_walk_under (o, x, td__c_shape (o, y)), "=");
      to.offset += l.dim[axis] * to.stride[axis];
    }
  return NULL;
}

static const char *
concat (TdCOut *o, const TdStep *step, const char *text)
{
  (void)text;
  return side_by_side (o, step,
                       axis_of (step, "axis", td__c_shape (o, td__c_out (o, step, 0))->ndim));
}

static const char *
stack (TdCOut *o, const TdStep *step, const char *text)
{
  const int ndim = td__c_shape (o, td__c_out (o, step, 0))->ndim;

  return side_by_side (o, step, text[0] == 'v' || ndim < 2 ? 0 : 1);
}

static const char *
pad (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t x = td__c_in (o, step, 0), y = td__c_out (o, step, 0);
  const TdCLoops l = loops_of (td__c_shape (o, x));
  int64_t widths[2 * TD_MAX_DIMS];
  TdCWalk to = td__c_walk (o, y);

  (void)text;
  td__export_ints (step, "pad_width", widths, 2 * TD_MAX_DIMS);
  for (int d = 0; d < l.ndim; d++)
    to.offset += widths[2 * d] * to.stride[d];
  td__c_fill (o, y, td__export_number (step, "constant_values", 0));
  td__c_copy (o, &l, to, td__c_walk (o, x), "=");
  return NULL;
}

static const char *
pad_sequence (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t y = td__c_out (o, step, 0);
  const TdCWalk whole = td__c_walk (o, y);
  TdCWalk to = { .node = y };

  (void)text;
  td__c_fill (o, y, td__export_number (step, "padding", 0));
  memcpy (to.stride, whole.stride + 1, sizeof to.stride - sizeof *to.stride);
  for (uint32_t k = 0; k < step->n_in; k++)
    {
      const uint32_t x = td__c_in (o, step, k);
      const TdCLoops l = loops_of (td__c_shape (o, x));

      to.offset = k * whole.stride[0];
      td__c_copy (o, &l, to, td__c_walk (o, x), "=");
    }
  return NULL;
}

/* --- several times --- */

static const char *
broadcast (TdCOut *o, const TdStep *step, const char *text)
{
  (void)text;
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      const uint32_t y = td__c_out (o, step, k);
      const TdCLoops l = loops_of (td__c_shape (o, y));

      td__c_copy (o, &l, td__c_walk (o, y),
                  td__c_walk_under (o, td__c_in (o, step, k), td__c_shape (o, y)), "=");
    }
  return NULL;
}

/* Axis by axis, the whole and what is repeated: (reps, n) or (n, repeats). */
static const char *
tile (TdCOut *o, const TdStep *step, const char *text)
{
  const uint32_t in = td__c_in (o, step, 0), out = td__c_out (o, step, 0);
  const TdShape *x = td__c_shape (o, in), *y = td__c_shape (o, out);
  const TdCWalk whole = td__c_walk (o, out), under = td__c_walk_under (o, in, y);
  TdCWalk to = { .node = out }, from = { .node = in };
  TdCLoops l = { .ndim = 2 * y->ndim };

  (void)text;
  for (int d = 0; d < y->ndim; d++)
    {
      const int of_x = d - (y->ndim - x->ndim);
      const int64_t n = of_x < 0 ? 1 : x->dim[of_x];

      l.dim[2 * d] = n > 0 ? y->dim[d] / n : 0;
      l.dim[2 * d + 1] = n;
      to.stride[2 * d] = n * whole.stride[d];
      to.stride[2 * d + 1] = whole.stride[d];
      from.stride[2 * d + 1] = under.stride[d];
    }
  td__c_copy (o, &l, to, from, "=");
  return NULL;
}

static const char *
repeat (TdCOut *o, const TdStep *step, const char *combine)
{
  const bool back = combine[0] == '+';
  const uint32_t in = td__c_in (o, step, 0), out = td__c_out (o, step, 0);
  const uint32_t few = back ? out : in, many = back ? in : out;
  const TdShape *y = td__c_shape (o, many);
  const int axis = axis_of (step, "axis", y->ndim);
  const TdCWalk of_many = td__c_walk (o, many), of_few = td__c_walk (o, few);
  TdCWalk all = { .node = many }, once = { .node = few };
  TdCLoops l = { 0 };

  for (int d = 0; d < y->ndim; d++)
    {
      const int64_t n = td__c_shape (o, few)->dim[d];

      l.dim[l.ndim] = n;
      all.stride[l.ndim] = of_many.stride[d] * (n > 0 ? y->dim[d] / n : 0);
      once.stride[l.ndim++] = of_few.stride[d];
      if (d != axis)
        continue;
      l.dim[l.ndim] = n > 0 ? y->dim[d] / n : 0;
      all.stride[l.ndim++] = of_many.stride[d];
    }
  if (back)
    td__c_fill (o, out, 0);
  td__c_copy (o, &l, back ? once : all, back ? all : once, combine);
  return NULL;
}

const TdCRow td__c_moves[] = {
  { "transpose", transpose, NULL },
  { "swapaxes", swapaxes, NULL },
  { "moveaxis", moveaxis, NULL },
  { "flip", flip, NULL },
  { "get_item", get_item, NULL },
  { "get_item_grad", into_item, "=" },
  { "scatter_add", into_item, "+=", .in_floats = true },
  { "split_axis", split, NULL },
  { "split_axis_indices", split, NULL },
  { "concat", concat, NULL },
  { "hstack", stack, "h" },
  { "vstack", stack, "v" },
  { "pad", pad, NULL },
  { "pad_sequence", pad_sequence, NULL },
  { "broadcast", broadcast, NULL },
  { "tile", tile, NULL },
  { "repeat", repeat, "=" },
  { "repeat_grad", repeat, "+=", .in_floats = true },
  { 0 },
};
