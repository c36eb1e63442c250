/* What is linear along each axis of an image, as ONNX: poolings by average and their gradients,
 * images in another size, columns added back.  Along an axis it is a product with a constant
 * matrix, so that there is one way for all of them, over any number of axes; a matrix has as
 * many numbers as the axis has before and behind, multiplied.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"

#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT,
  AXES = TD_MAX_DIMS,
  PLACES = 2 /* axes of an array before its image */
};

/* One axis: windows, the image that they lie over, and how. */
typedef struct
{
  int64_t n, size, ksize, stride, pad, dilate;
  bool by_covered;       /* a mean is over what lies inside the image */
  bool nearest, aligned; /* of images in another size */
} Line;

/* --- what element o of the windows' side and j of the image have to do with each other --- */

static double
covers (const Line *l, int64_t o, int64_t j)
{
  const int64_t first = o * l->stride - l->pad;

  return j >= first && j < first + l->ksize;
}

static double
share (const Line *l, int64_t o, int64_t j)
{
  const int64_t first = o * l->stride - l->pad, last = first + l->ksize;
  const int64_t inside = (last < l->size ? last : l->size) - (first > 0 ? first : 0);

  return covers (l, o, j) / (double)(l->by_covered && inside > 0 ? inside : l->ksize);
}

static double
adaptive (const Line *l, int64_t o, int64_t j)
{
  const int64_t begin = o * l->size / l->n, end = ((o + 1) * l->size + l->n - 1) / l->n;

  return j >= begin && j < end ? 1 / (double)(end - begin) : 0;
}

/* A pixel of the result, o, lies between two of the image: on the line from corner to corner,
 * or where its middle is. */
static double
between (const Line *l, int64_t o, int64_t j)
{
  const double scale = (double)l->size / (double)l->n;
  double at = l->nearest    ? (double)o * scale
              : !l->aligned ? ((double)o + 0.5) * scale - 0.5
              : l->n > 1    ? (double)o * ((double)(l->size - 1) / (double)(l->n - 1))
                            : 0;
  double behind;
  int64_t low;

  at = at < 0 ? 0 : at > (double)(l->size - 1) ? (double)(l->size - 1) : at;
  low = (int64_t)at;
  behind = l->nearest || low + 1 == l->size ? 0 : at - (double)low;
  return j == low ? 1 - behind : j == low + 1 ? behind : 0;
}

/* Windows by the place in them: place 0 of all, place 1 of all ... */
static double
column (const Line *l, int64_t o, int64_t j)
{
  return j == o % l->n * l->stride - l->pad + o / l->n * l->dilate;
}

typedef struct
{
  const char *op;
  double (*weight) (const Line *l, int64_t o, int64_t j);
  bool to_image; /* else from it */
  bool columns;  /* the windows' side is (c * places, windows) of each image */
} Map;

static const Map maps[] = {
  { "average_pooling_2d_grad", share, true, false },
  { "average_pooling_nd_grad", share, true, false },
  { "unpooling_2d_grad", covers, false, false },
  { "adaptive_average_pooling_2d_grad", adaptive, true, false },
  { "resize_images_grad", between, true, false },
  { "im2col_grad", column, true, true },
};

/* --- writing --- */

/* (in, out), or (out, in) to stand on the left. */
static void
matrix (TdOnnx *o, const Map *m, const Line *l, bool left, TdDtype dtype, char *to)
{
  const int64_t n = m->columns ? l->n * l->ksize : l->n;
  const bool image_first = m->to_image == left;
  const TdShape shape = { 2, { image_first ? l->size : n, image_first ? n : l->size } };
  double *numbers = td__xcalloc ((size_t)(n * l->size) + 1, sizeof *numbers);

  for (int64_t i = 0; i < n * l->size; i++)
    {
      const int64_t a = i / shape.dim[1], b = i % shape.dim[1];

      numbers[i] = m->weight (l, image_first ? b : a, image_first ? a : b);
    }
  td__onnx_constant_floats (o, dtype, &shape, numbers, to, TEXT);
  free (numbers);
}

static int64_t
of_axis (const TdStep *step, const char *name, int d, int64_t otherwise)
{
  int64_t values[AXES];
  const int n = td__export_ints (step, name, values, AXES);

  return n <= 0 ? otherwise : values[n == 1 ? 0 : d];
}

static Line
line_of (TdOnnx *o, const TdStep *step, const Map *m, int d)
{
  const int64_t from = td__onnx_fixed (o, step, td__step_in (o->s, step, 0), PLACES + d),
                to = td__onnx_fixed (o, step, td__step_out (o->s, step, 0), PLACES + d);
  const int64_t ksize = of_axis (step, "ksize", d, 1);

  return (Line){ .n = m->to_image ? from : to,
                 .size = m->to_image ? to : from,
                 .ksize = ksize,
                 .stride = of_axis (step, "stride", d, ksize),
                 .pad = of_axis (step, "pad", d, 0),
                 .dilate = of_axis (step, "dilate", d, 1),
                 .by_covered = td__export_number (step, "pad_value", 0) == (double)TD_NONE,
                 .nearest = strcmp (td__export_word (step, "mode"), "nearest") == 0,
                 .aligned = td__export_number (step, "align_corners", 1) != 0 };
}

static void
reshape (TdOnnx *o, const TdOnnxSize *sizes, int n, char *value)
{
  char list[TEXT];

  td__onnx_reshape_list (o, NULL, 0, sizes, n, list, sizeof list);
  td__onnx_call (o, (TdOnnxCall){ "Reshape", { value, list } }, NULL, value);
}

/* (n, c kh kw, oh, ow) to (n, c, kh oh, kw ow). */
static void
by_axis (TdOnnx *o, const TdOnnxSize *image, const Line *lines, char *value)
{
  static const int64_t order[] = { 0, 1, 2, 4, 3, 5 };
  const TdOnnxSize apart[] = { image[0],
                               image[1],
                               td__onnx_size (lines[0].ksize),
                               td__onnx_size (lines[1].ksize),
                               td__onnx_size (lines[0].n),
                               td__onnx_size (lines[1].n) };
  const TdOnnxSize joined[] = { image[0], image[1], td__onnx_size (lines[0].ksize * lines[0].n),
                                td__onnx_size (lines[1].ksize * lines[1].n) };

  reshape (o, apart, 6, value);
  td__onnx_call (
      o, (TdOnnxCall){ "Transpose", { value }, .list = "perm", .values = order, .n_values = 6 },
      NULL, value);
  reshape (o, joined, 4, value);
}

static void
write_map (TdOnnx *o, const TdStep *step, const Map *m)
{
  const uint32_t x = td__step_in (o->s, step, 0), y = td__step_out (o->s, step, 0);
  const TdOnnxSize *to = o->sizes.of[y];
  const int n_axes = o->s->nodes[x].shape.ndim - PLACES;
  const TdDtype dtype = (TdDtype)o->s->nodes[x].dtype;
  const char *result = td__onnx_value (o, y);
  char value[TEXT], by[TEXT];
  Line lines[AXES];
  int64_t before = 1, behind = 1;

  for (int d = 0; d < n_axes; d++)
    {
      lines[d] = line_of (o, step, m, d);
      before *= m->to_image ? lines[d].n : lines[d].size;
    }
  strcpy (value, td__onnx_value (o, x));
  if (m->columns)
    by_axis (o, to, lines, value);
  for (int d = n_axes - 1; d >= 0; d--)
    {
      const Line *l = &lines[d];
      const int64_t from = m->to_image ? l->n : l->size;
      const bool last = d == n_axes - 1;

      before = from > 0 ? before / from : 0;
      if (n_axes > 2 && !last)
        reshape (o,
                 (TdOnnxSize[]){ to[0], to[1], td__onnx_size (before), td__onnx_size (from),
                                 td__onnx_size (behind) },
                 5, value);
      matrix (o, m, l, !last, dtype, by);
      td__onnx_call (o, (TdOnnxCall){ "MatMul", { last ? value : by, last ? by : value } },
                     d == 0 && n_axes <= 2 ? result : NULL, value);
      behind *= m->to_image ? l->size : l->n;
    }
  if (n_axes <= 2)
    return;
  td__onnx_reshape_list (o, NULL, 0, to, PLACES + n_axes, by, sizeof by);
  td__onnx_call (o, (TdOnnxCall){ "Reshape", { value, by } }, result, value);
}

bool
td__onnx_map (TdOnnx *o, const TdStep *step)
{
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
    if (strcmp (maps[i].op, step->cls->name) == 0)
      {
        write_map (o, step, &maps[i]);
        return true;
      }
  return false;
}
