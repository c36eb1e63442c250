/* Sizes that infer does not know of: where the code wrote numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-sizes.h"

#include "export.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum
{
  PER_SLICE = 4, /* of get_item: start, stop, step, kind: 0 a range, 1 an index, 2 a new axis */
  MOST_NUMBERS = PER_SLICE * 2 * TD_MAX_DIMS
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
        const bool whole
            = s[3] == 0 && s[2] == 1 && s[1] == INT_MAX && (s[0] == 0 || s[0] == INT_MAX);

        if (!whole && axis < shape_in (z, step, 0)->ndim)
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

static const char *
padding (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  int64_t pairs[2 * TD_MAX_DIMS];
  const int n = td__export_ints (step, "pad_width", pairs, 2 * TD_MAX_DIMS);

  for (int i = 0; i < n; i++)
    if (pairs[i] != 0)
      *mask |= sizes_in (z, step, 0)[i / 2].mask;
  return *mask != 0 ? "pads it by a number of rows" : NULL;
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

/* Rows by index; indices that the code brought are of the rows that there were. */
static const char *
gathering (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const int axis = axis_of (z, step);
  uint64_t index = 0;

  for (uint32_t i = 1; i < step->n_in; i++)
    {
      index |= z->depends[td__step_in (z->s, step, i)];
      for (int d = 0; d < shape_in (z, step, i)->ndim; d++)
        index |= sizes_in (z, step, i)[d].mask;
    }
  for (uint32_t i = 0; i + 1 < step->n_in; i++)
    *mask |= sizes_in (z, step, 0)[axis + (int)i].mask & ~index;
  return *mask != 0 ? "takes some of its rows by number" : NULL;
}

/* A sum over the batch that is divided by the batch's size. */
static const char *
scaling (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const uint32_t node = td__step_in (z->s, step, 0);
  const double value = td__export_number (step, "value", 0);
  uint64_t has = 0;

  for (int d = 0; d < shape_in (z, step, 0)->ndim; d++)
    has |= z->of[node][d].mask;
  for (int i = 0; i < z->n_symbols; i++)
    {
      const double was = (double)z->symbols[i].v[0];

      if (z->symbols[i].why[0] == '\0' && (z->depends[node] & ~has) >> i & 1
          && (value == was || fabs (value - 1 / was) < 1e-7 / was))
        *mask |= (uint64_t)1 << i;
    }
  return *mask != 0 ? "has its size, or one by it, as a number" : NULL;
}

/* A list of as many as the batch has, one for each. */
static const char *
many_parts (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  for (uint32_t i = 0; i < step->n_in; i++)
    *mask |= sizes_in (z, step, i)[0].mask;
  return *mask != 0 ? "pads sequences to the longest" : NULL;
}

static const struct
{
  const char *op;
  const char *(*refuses) (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask);
} rules[] = {
  { "get_item", get_item },     { "get_item_arrays", gathering },
  { "split_axis", along_axis }, { "split_axis_indices", along_axis },
  { "pad", padding },           { "pad_sequence", many_parts },
  { "tile", repeating },        { "repeat", repeating },
  { "mul_scalar", scaling },    { "div_scalar", scaling },
  { "rdiv_scalar", scaling },
};

const char *
td__onnx_size_refuses (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
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

bool
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

            if (axis < 0)
              {
                *mask |= size->mask;
                return false;
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
    for (int j = 0; j < TD_ONNX_SAMPLES; j++)
      all[j] = to[d].v[j] > 0 && all[j] % to[d].v[j] == 0 ? all[j] / to[d].v[j] : -1;
  if (all[0] == 1 && all[1] == 1 && all[2] == 1)
    return true;
  for (int d = 0; d < x->ndim; d++)
    *mask |= z->of[from][d].mask;
  return false;
}
