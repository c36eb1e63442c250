/* Sizes that infer does not know of: where the code wrote numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-sizes.h"

#include "export.h"
#include "onnx-loops.h"
#include "onnx-size-numbers.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  PER_SLICE = 4, /* of get_item: start, stop, step, kind: 0 a range, 1 an index, 2 a new axis */
  MOST_NUMBERS = PER_SLICE * 2 * TD_MAX_DIMS,
  MOST_STEPS_BACK = 6 /* to the first number of a gradient */
};

static const TdOnnxSize *
sizes_in (const TdOnnxSizes *z, const TdStep *step, uint32_t i)
{
  return z->of[td__step_in (z->s, step, i)];
}

static const TdShape *
shape_in (const TdOnnxSizes *z, const TdStep *step, uint32_t i)
{
  return &z->s->nodes[td__step_in (z->s, step, i)].shape;
}

static int
axis_of (const TdOnnxSizes *z, const TdStep *step)
{
  const int axis = (int)td__export_number (step, "axis", 0);

  return axis < 0 ? axis + shape_in (z, step, 0)->ndim : axis;
}

/* Does a slice take all of its axis? */
static bool
is_whole (const int64_t *s)
{
  return s[3] == 0 && s[2] == 1 && s[1] == INT_MAX && (s[0] == 0 || s[0] == INT_MAX);
}

/* A row of the batch, or some of its rows: which ones the code chose by its size, maybe. */
static const char *
get_item (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  int64_t slices[MOST_NUMBERS];
  const int n = td__export_ints (step, "slices", slices, MOST_NUMBERS);
  int axis = 0;

  for (const int64_t *s = slices; s < slices + n; s += PER_SLICE)
    if (s[3] != 2)
      {
        if (!is_whole (s) && axis < shape_in (z, step, 0)->ndim)
          *mask |= sizes_in (z, step, 0)[axis].mask;
        axis++;
      }
  return *mask != 0 ? "takes some of its rows by number" : NULL;
}

static const char *
along_axis (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  *mask = sizes_in (z, step, 0)[axis_of (z, step)].mask;
  return *mask != 0 ? "cuts it into a number of parts" : NULL;
}

/* How often may be the batch's size. */
static const char *
repeating (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const TdShape *x = shape_in (z, step, 0),
                *y = &z->s->nodes[td__step_out (z->s, step, 0)].shape;

  for (int d = 0; d < y->ndim; d++)
    {
      const int c = d + x->ndim - y->ndim;
      const int64_t times = c < 0 || x->dim[c] == 0 ? y->dim[d] : y->dim[d] / x->dim[c];

      if (times == 1)
        continue;
      if (c >= 0)
        *mask |= sizes_in (z, step, 0)[c].mask;
      for (int i = 0; i < z->n_symbols; i++)
        if (z->symbols[i].why[0] == '\0' && z->symbols[i].v[0] == times)
          *mask |= (uint64_t)1 << i;
    }
  return *mask != 0 ? "repeats something as often as it was large, or repeats it" : NULL;
}

/* Rows by index, which inputs [from, to) are; indices that the code brought are of the rows
 * that there were. */
static const char *
indexing (const TdOnnxSizes *z, const TdStep *step, uint32_t from, uint32_t to,
          const TdOnnxSize *indexed, uint64_t *mask)
{
  uint64_t index = 0;

  for (uint32_t i = from; i < to; i++)
    {
      index |= z->depends[td__step_in (z->s, step, i)];
      for (int d = 0; d < shape_in (z, step, i)->ndim; d++)
        index |= sizes_in (z, step, i)[d].mask;
    }
  for (uint32_t i = 0; i < to - from; i++)
    *mask |= indexed[i].mask & ~index;
  return *mask != 0 ? "takes some of its rows by number" : NULL;
}

static const char *
gathering (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  return indexing (z, step, 1, step->n_in, sizes_in (z, step, 0) + axis_of (z, step), mask);
}

static const char *
scattering (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  return indexing (z, step, 2, step->n_in, sizes_in (z, step, 0) + axis_of (z, step), mask);
}

static const char *
embedding (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  return indexing (z, step, 0, 1, sizes_in (z, step, 1), mask);
}

/* Do a node's numbers come from one number that the code brought, as a gradient's first do? */
static bool
is_seed (const TdOnnxSizes *z, uint32_t node, int depth)
{
  if (z->is_uniform != NULL && z->is_uniform[node])
    return true;
  for (uint32_t i = 0; i < z->s->forward.n && depth > 0; i++)
    {
      const TdStep *step = &z->s->forward.steps[i];

      for (uint32_t k = 0; k < step->n_out; k++)
        if (td__step_out (z->s, step, k) == node)
          {
            bool all = true;

            for (uint32_t j = 0; j < step->n_in && all; j++)
              all = is_seed (z, td__step_in (z->s, step, j), depth - 1);
            return all;
          }
    }
  return false;
}

/* May a factor be how many elements something with that size has, one by it, or two by it as in
 * the gradient of a mean of squares? */
static bool
may_count (double factor, int64_t was)
{
  const double counts[] = { factor, 1 / factor, 2 / factor };

  for (int i = 0; i < 3; i++)
    {
      const double times = fabs (counts[i]) / (double)was;

      if (times > 0.5 && times < 1e15 && fabs (times - nearbyint (times)) < 1e-7 * times
          && (was > 1 || times > 1.5))
        return true;
    }
  return false;
}

/* A sum over the batch that is divided by the batch's size, and the gradient of a mean. */
static const char *
scaled_by (const TdOnnxSizes *z, uint32_t node, double value, uint64_t *mask)
{
  uint64_t has = 0, from = z->depends[node];

  for (int d = 0; d < z->s->nodes[node].shape.ndim; d++)
    has |= z->of[node][d].mask;
  for (int i = 0; i < z->n_symbols; i++)
    if (z->symbols[i].why[0] == '\0' && may_count (value, z->symbols[i].v[0])
        && ((from & ~has) >> i & 1 || is_seed (z, node, MOST_STEPS_BACK)))
      *mask |= (uint64_t)1 << i;
  return *mask != 0 ? "has a number that may be its size, or one by it" : NULL;
}

static const char *
scaling (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  return scaled_by (z, td__step_in (z->s, step, 0), td__export_number (step, "value", 0), mask);
}

/* The same by an array of one number, which the code filled. */
static const char *
scaling_by_array (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  for (uint32_t k = 0; k < 2 && *mask == 0; k++)
    {
      const uint32_t node = td__step_in (z->s, step, k);
      const TdDtype dtype = (TdDtype)z->s->nodes[node].dtype;
      char *numbers = z->is_uniform[node] && (dtype == TD_F32 || dtype == TD_F64)
                          ? td__export_numbers (z->s, node, NULL)
                          : NULL;
      float single = 0;
      double value = 0;

      if (numbers == NULL)
        continue;
      if (dtype == TD_F32)
        memcpy (&single, numbers, sizeof single);
      else
        memcpy (&value, numbers, sizeof value);
      scaled_by (z, td__step_in (z->s, step, 1 - k), dtype == TD_F32 ? (double)single : value,
                 mask);
      free (numbers);
    }
  return *mask != 0 ? "has a number that may be its size, or one by it, in an array that the "
                      "code filled"
                    : NULL;
}

/* A list of as many as the batch has, one for each. */
static const char *
many_parts (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  for (uint32_t i = 0; i < step->n_in; i++)
    *mask |= sizes_in (z, step, i)[0].mask;
  return *mask != 0 ? "pads sequences to the longest" : NULL;
}

/* Sizes of an array that is not here, as numbers: rows of a matrix, columns. */
static const char *
given_sizes (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const int64_t size
      = (int64_t)td__export_number (step, "rows", td__export_number (step, "n_columns", 0));

  for (int i = 0; i < z->n_symbols; i++)
    if (z->symbols[i].why[0] == '\0' && z->symbols[i].v[0] == size)
      *mask |= (uint64_t)1 << i;
  return *mask != 0 ? "has a size as a number that may be it" : NULL;
}

static const struct
{
  const char *op;
  const char *(*refuses) (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask);
} rules[] = {
  { "get_item", get_item },
  { "get_item_arrays", gathering },
  { "scatter_add", get_item },
  { "scatter_add_arrays", scattering },
  { "embed_id", embedding },
  { "split_axis", along_axis },
  { "split_axis_indices", along_axis },
  { "pad", td__onnx_number_padding },
  { "pad_sequence", many_parts },
  { "tile", repeating },
  { "repeat", repeating },
  { "mul_scalar", scaling },
  { "div_scalar", scaling },
  { "rdiv_scalar", scaling },
  { "mul", scaling_by_array },
  { "div", scaling_by_array },
  { "one_hot", td__onnx_number_classes },
  { "max_pooling_2d", td__onnx_number_window },
  { "max_pooling_nd", td__onnx_number_window },
  { "average_pooling_2d", td__onnx_number_window },
  { "average_pooling_nd", td__onnx_number_window },
  { "adaptive_average_pooling_2d", td__onnx_number_images },
  { "resize_images", td__onnx_number_images },
  { "greater_equal", td__onnx_number_mask },
  { "embed_id_grad", given_sizes },
  { "select_item_grad", given_sizes },
};

const char *
td__onnx_size_refuses (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  if (td__onnx_size_is_cut (z, step))
    return NULL;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (strcmp (rules[i].op, step->cls->name) == 0)
      return rules[i].refuses (z, step, mask);
  return NULL;
}

/* lstm takes more rows of c than of x, those of sequences that have ended. */
bool
td__onnx_size_accepts (const TdStep *step, int j, TdOnnxSize (*in)[TD_MAX_DIMS])
{
  return strcmp (step->cls->name, "lstm") != 0 || in[0][0].v[0] != in[1][0].v[0]
         || in[0][0].v[j] == in[1][0].v[j];
}

/* --- gradients of indexing: the shape is an attribute --- */

/* For each axis of the result, the axis of gy that it is as a whole, or -1. */
static void
axes_of_slices (const TdStep *step, int ndim, int *whole)
{
  int64_t slices[MOST_NUMBERS];
  const int n = td__export_ints (step, "slices", slices, MOST_NUMBERS);
  int axis = 0, from = 0;

  for (const int64_t *s = slices; s < slices + n; s += PER_SLICE)
    {
      if (s[3] != 2)
        whole[axis++] = is_whole (s) ? from : -1;
      from += s[3] != 1;
    }
  while (axis < ndim)
    whole[axis++] = from++;
}

static void
axes_of_arrays (const TdOnnxSizes *z, const TdStep *step, int ndim, int *whole)
{
  const int given = (int)td__export_number (step, "axis", 0), n = (int)step->n_in - 1;
  const int axis = given < 0 ? given + ndim : given;

  for (int d = 0; d < ndim; d++)
    whole[d] = d < axis ? d : d < axis + n ? -1 : d - n + shape_in (z, step, 1)->ndim;
}

bool
td__onnx_size_put_back (TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const uint32_t node = td__step_out (z->s, step, 0);
  const TdShape *y = &z->s->nodes[node].shape;
  int whole[TD_MAX_DIMS];
  uint64_t carried = 0;

  if (strcmp (step->cls->name, "get_item_grad") == 0)
    axes_of_slices (step, y->ndim, whole);
  else
    axes_of_arrays (z, step, y->ndim, whole);
  for (int d = 0; d < y->ndim; d++)
    if (whole[d] >= 0)
      {
        z->of[node][d] = sizes_in (z, step, 0)[whole[d]];
        carried |= z->of[node][d].mask;
      }
  for (int d = 0; d < y->ndim; d++)
    for (int i = 0; i < z->n_symbols && whole[d] < 0; i++)
      if (z->symbols[i].why[0] == '\0' && (carried >> i & 1) == 0
          && y->dim[d] == z->symbols[i].v[0])
        *mask |= (uint64_t)1 << i;
  for (int d = 0; d < shape_in (z, step, 0)->ndim; d++)
    {
      bool kept = step->n_in > 1; /* axes of indices are summed over */

      for (int c = 0; c < y->ndim; c++)
        kept = kept || whole[c] == d;
      if (!kept)
        *mask |= sizes_in (z, step, 0)[d].mask;
    }
  return *mask == 0;
}

/* --- the steps of a recurrent layer --- */

bool
td__onnx_size_is_cut (const TdOnnxSizes *z, const TdStep *step)
{
  return z->loops != NULL && z->loops->role[step - z->s->forward.steps].splits;
}

bool
td__onnx_size_cut (TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const TdOnnxSize *all = sizes_in (z, step, 0);
  TdOnnxSize part = all[0];

  part.times /= step->n_out;
  part.fixed /= step->n_out;
  for (int j = 0; j < TD_ONNX_SAMPLES; j++)
    part.v[j] /= step->n_out;
  memset (part.outer, 0, sizeof part.outer);
  for (int i = 0; i < z->n_symbols; i++)
    part.outer[i] = part.times == 1 && part.fixed == 0 && part.mask == (uint64_t)1 << i;
  for (int j = 0; j < TD_ONNX_SAMPLES; j++)
    part.known = part.known && part.v[j] * (int64_t)step->n_out == all[0].v[j];
  *mask = all[0].mask;
  if (!part.known && all[0].mask != 0)
    return false;
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      TdOnnxSize *to = z->of[td__step_out (z->s, step, k)];

      to[0] = part;
      to[1] = all[1];
    }
  return true;
}

/* --- reshape --- */

/* Elements before the next of an axis. */
static int64_t
before (const TdShape *shape, int axis)
{
  int64_t n = 1;

  for (int d = 0; d < axis; d++)
    n *= shape->dim[d];
  return n;
}

/* Where in y a symbol is that takes the elements [at, at * size) of the order: in which axis;
 * -1: in none.  like: the axis where it was. */
static int
axis_with (const TdShape *y, int64_t at, int64_t size, int like)
{
  int found = -1;

  for (int d = 0; d < y->ndim; d++)
    {
      const int64_t from = before (y, d), to = from * y->dim[d];

      if (from == 0 || at % from != 0 || to % (at * size) != 0)
        continue;
      if (y->dim[d] == size && from == at && (found < 0 || d == like))
        return d;
      found = found < 0 ? d : found;
    }
  return found;
}

/* The axes of y, [*first, *end), that share their elements with an axis of x and with no other
 * of either beyond them: a shape is cut where both have the same number of elements before. */
static void
group_of (const TdShape *x, const TdShape *y, int axis, int *first, int *end)
{
  int a = 0, b = 0;

  *first = *end = 0;
  while (a < x->ndim || b < y->ndim)
    {
      const int from = a;
      int64_t of_x = a < x->ndim ? x->dim[a++] : 1, of_y = b < y->ndim ? y->dim[b++] : 1;

      *first = *end;
      while (of_x != of_y && (a < x->ndim || b < y->ndim))
        if ((of_x < of_y && a < x->ndim) || b == y->ndim)
          of_x *= x->dim[a++];
        else
          of_y *= y->dim[b++];
      *end = b;
      if (from <= axis && axis < a)
        break;
    }
  while (*end < y->ndim && y->dim[*end] == 1)
    (*end)++;
}

/* The axis that the code left open, as -1; -1: none. */
static int
left_open (const TdStep *step)
{
  const TdShape *written = step->attrs; /* all that reshape has */

  for (int d = 0; d < written->ndim; d++)
    if (written->dim[d] == -1)
      return d;
  return -1;
}

/* Can nothing else be meant than that this axis of y follows?  No other size that the code
 * wrote is the symbol's; and it is where the symbol was and as large, or no other axis of those
 * that share its elements could hold it.  What the code left open, as -1, follows before any
 * number that it wrote. */
static bool
is_only_one (const TdStep *step, const TdShape *x, const TdShape *y, int d, int64_t at,
             int64_t size, int axis)
{
  const bool exact = y->dim[axis] == size && before (y, axis) == at;
  const int open = left_open (step);
  int first, end;

  for (int e = 0; e < y->ndim; e++)
    if (e != axis && size > 1 && y->dim[e] == size)
      return false;
  if (exact && axis == d)
    return true;
  group_of (x, y, d, &first, &end);
  for (int e = first; e < end; e++)
    {
      if (e == axis)
        continue;
      if (e == open || (!exact && (size > 1 ? y->dim[e] % size == 0 : y->dim[e] > 0)))
        return false;
    }
  return true;
}

/* A symbol that is in it twice, as in the rows of all pairs, is no product of those in mask. */
static void
check_parts (const TdOnnxSizes *z, TdOnnxSize *size)
{
  for (int j = 0; j < TD_ONNX_SAMPLES; j++)
    {
      int64_t by = size->times;

      for (int bit = 0; bit < 64; bit++)
        if (size->mask >> bit & 1)
          by *= td__onnx_size_values (z, bit)[j];
      size->known = size->known && (size->mask == 0 || size->v[j] == size->fixed + by);
    }
}

const char *
td__onnx_size_reshape (TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const uint32_t from = td__step_in (z->s, step, 0), node = td__step_out (z->s, step, 0);
  const TdShape *x = &z->s->nodes[from].shape, *y = &z->s->nodes[node].shape;
  TdOnnxSize *to = z->of[node];
  int64_t all[TD_ONNX_SAMPLES] = { 1, 1, 1 };

  for (int d = 0; d < x->ndim; d++)
    {
      const TdOnnxSize *size = &z->of[from][d];

      for (int i = 0; i < 64; i++)
        if (size->mask >> i & 1)
          {
            const int64_t *v
                = i < TD_ONNX_SYMBOLS ? z->symbols[i].v : z->open[i - TD_ONNX_SYMBOLS].v;
            const int64_t outer = i < TD_ONNX_SYMBOLS  ? size->outer[i]
                                  : size->v[0] == v[0] ? 1
                                                       : 0;
            const int64_t at = before (x, d) * outer;
            const int axis
                = at > 0 && size->fixed == 0 && size->known ? axis_with (y, at, v[0], d) : -1;

            if (axis < 0 || !is_only_one (step, x, y, d, at, v[0], axis))
              {
                *mask |= size->mask;
                return axis < 0
                           ? "has the size that there was as a number"
                           : "has its size in more than one place, by it or by chance: run "
                             "it with another";
              }
            for (int j = 0; j < TD_ONNX_SAMPLES; j++)
              to[axis].v[j] = to[axis].v[j] / v[0] * v[j];
            to[axis].mask |= (uint64_t)1 << i;
            to[axis].fixed = 0;
            to[axis].times = (to[axis].mask & (to[axis].mask - 1)) == 0 ? y->dim[axis] / v[0]
                                                                        : to[axis].times / v[0];
            if (i < TD_ONNX_SYMBOLS)
              to[axis].outer[i] = at / before (y, axis);
          }
      for (int j = 0; j < TD_ONNX_SAMPLES; j++)
        all[j] *= size->v[j];
    }
  for (int d = 0; d < y->ndim; d++)
    check_parts (z, &to[d]);
  for (int d = 0; d < y->ndim; d++)
    for (int j = 0; j < TD_ONNX_SAMPLES; j++)
      all[j] = to[d].v[j] > 0 && all[j] % to[d].v[j] == 0 ? all[j] / to[d].v[j] : -1;
  if (all[0] == 1 && all[1] == 1 && all[2] == 1)
    return NULL;
  for (int d = 0; d < x->ndim; d++)
    *mask |= z->of[from][d].mask;
  return "has the size that there was as a number";
}
