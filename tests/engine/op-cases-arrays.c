/* Rows for what rearranges, picks, repeats and fills up arrays.  References say for each place
 * of the result where it comes from, or add up what comes there. SPDX-License-Identifier: MIT
 */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#define S(...) TD_SHAPE (__VA_ARGS__)
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }
/* From the result's place o to the input's, i; `from`: which input, -1: none. */
#define SOURCE(name, from, ...)                                                                \
  static int source_##name (int k, const int64_t *o, int64_t *i)                               \
  {                                                                                            \
    (void)k;                                                                                   \
    (void)o;                                                                                   \
    __VA_ARGS__;                                                                               \
    return from;                                                                               \
  }
#define WHOLE(name)                                                                            \
  static void whole_##name (const OpCase *c, const double *const *in, double *const *out)

/* --- axes --- */

CALL (broadcast, td_broadcast (x, 2, y))
SOURCE (broadcast, k, i[0] = k == 0 ? o[0] : o[1])
CALL (swapaxes, y[0] = td_swapaxes (x[0], 0, -1))
SOURCE (swapaxes, 0, i[0] = o[2]; i[1] = o[1]; i[2] = o[0])
CALL (moveaxis, y[0] = td_moveaxis (x[0], 0, 2))
SOURCE (moveaxis, 0, i[0] = o[2]; i[1] = o[0]; i[2] = o[1])
CALL (moveaxis_back, y[0] = td_moveaxis (x[0], -1, 0))
SOURCE (moveaxis_back, 0, i[0] = o[1]; i[1] = o[2]; i[2] = o[0])
CALL (flip, y[0] = td_flip (x[0], 1))
SOURCE (flip, 0, i[0] = o[0]; i[1] = 2 - o[1]; i[2] = o[2])

/* --- joining and cutting --- */

CALL (hstack, y[0] = td_hstack (x, 2))
SOURCE (hstack, o[1] >= 3, i[0] = o[0]; i[1] = o[1] >= 3 ? o[1] - 3 : o[1])
CALL (hstack_flat, y[0] = td_hstack (x, 3))
SOURCE (hstack_flat,
        o[0] == 0   ? 0
        : o[0] == 4 ? 2
                    : 1,
        i[0] = o[0] > 0 && o[0] < 4 ? o[0] - 1 : 0)
CALL (vstack, y[0] = td_vstack (x, 2))
SOURCE (vstack, o[0] >= 2, i[0] = o[0] >= 2 ? o[0] - 2 : o[0]; i[1] = o[1])
CALL (vstack_flat, y[0] = td_vstack (x, 2))
SOURCE (vstack_flat, (int)o[0], i[0] = o[1])
CALL (split_indices, td_split_axis_indices (x[0], (const int64_t[]){ 1, 4 }, 2, -1, y))
SOURCE (split_indices, 0, i[0] = o[0]; i[1] = o[1] + (k == 0 ? 0 : k == 1 ? 1 : 4))
/* What depends on the shape cannot say how many pieces a poisoned x has. */
CALL (separate, if (td_poisoned (x[0])) y[0] = y[1] = y[2] = x[0];
      else td_separate (x[0], 1, y))
SOURCE (separate, 0, i[0] = o[0]; i[1] = k; i[2] = o[1])

/* --- repeating --- */

CALL (repeat, y[0] = td_repeat (x[0], (const int[]){ 2 }, 1, 1))
SOURCE (repeat, 0, i[0] = o[0]; i[1] = o[1] / 2; i[2] = o[2])
CALL (repeat_all, y[0] = td_repeat (x[0], (const int[]){ 3 }, 1, TD_NO_AXIS))
SOURCE (repeat_all, 0, i[0] = o[0] / 6; i[1] = o[0] / 3 % 2)
CALL (repeat_each, y[0] = td_repeat (x[0], (const int[]){ 2, 0, 1 }, 3, -1))
SOURCE (repeat_each, 0, i[0] = o[0]; i[1] = o[1] < 2 ? 0 : 2)
static const int by_2[] = { 2, 1 }; /* repeats, axis */
CALL (repeat_grad, y[0] = td__apply1 (&td__repeat_grad_class, by_2, NULL, x[0]))
WHOLE (repeat_grad)
{
  (void)c;
  for (int64_t i = 0; i < 12; i++)
    out[0][i / 6 * 3 + i % 6 / 2] += in[0][i];
}
CALL (tile, y[0] = td_tile (x[0], (const int[]){ 2, 1, 2 }, 3))
SOURCE (tile, 0, i[0] = o[1]; i[1] = o[2] % 3)
CALL (tile_last, y[0] = td_tile (x[0], (const int[]){ 3 }, 1))
SOURCE (tile_last, 0, i[0] = o[0]; i[1] = o[1] % 3)

/* --- filling up --- */

static const int around[] = { 1, 0, 2, 1 };
CALL (pad, y[0] = td_pad (x[0], around, TD_PAD_CONSTANT, 0))
SOURCE (pad, o[0] < 1 || o[1] < 2 || o[1] > 4 ? -1 : 0, i[0] = o[0] - 1; i[1] = o[1] - 2)
CALL (pad_edge, y[0] = td_pad (x[0], around, TD_PAD_EDGE, 0))
SOURCE (pad_edge, 0, i[0] = o[0] < 1 ? 0 : o[0] - 1; i[1] = o[1] < 2   ? 0
                                                            : o[1] > 4 ? 2
                                                                       : o[1] - 2)
CALL (pad_reflect, y[0] = td_pad (x[0], around, TD_PAD_REFLECT, 0))
SOURCE (pad_reflect, 0, i[0] = o[0] < 1 ? 1 : o[0] - 1; i[1] = o[1] < 2   ? 2 - o[1]
                                                               : o[1] > 4 ? 1
                                                                          : o[1] - 2)
CALL (pad_value, y[0] = td_pad (x[0], around, TD_PAD_CONSTANT, -2.5))
WHOLE (pad_value)
{
  (void)c;
  for (int64_t i = 0; i < 18; i++)
    out[0][i] = i / 6 < 1 || i % 6 < 2 || i % 6 > 4 ? -2.5 : in[0][(i / 6 - 1) * 3 + i % 6 - 2];
}
CALL (pad_sequence, y[0] = td_pad_sequence (x, 3, -1, 0))
SOURCE (pad_sequence,
        o[1] < (o[0] == 0   ? 2
                : o[0] == 1 ? 3
                            : 1)
            ? (int)o[0]
            : -1,
        i[0] = o[1];
        i[1] = o[2])
CALL (pad_sequence_long, y[0] = td_pad_sequence (x, 2, 4, 0))
SOURCE (pad_sequence_long, o[1] < 2 - o[0] ? (int)o[0] : -1, i[0] = o[1])

/* --- windows: of 3 x 2, stride 2 x 1, padding 1 x 0, dilate 1 x 2, hanging over the edge ---
 */

static const TdIm2colOpt windows = {
  .ksize = { 3, 2 }, .stride = { 2, 1 }, .pad = { 1, 0 }, .dilate = { 1, 2 }, .cover_all = true
};
static const TdIm2colOpt plain = { .ksize = { 2, 2 }, .stride = { 1, 2 }, .dilate = { 1, 1 } };
/* Attributes as the class has them: ksize, stride, pad, dilate, cover_all, size. */
typedef struct
{
  int ksize[2], stride[2], pad[2], dilate[2];
  bool cover_all;
  int size[2];
} WindowAttrs;
static const WindowAttrs grad_windows
    = { { 3, 2 }, { 2, 1 }, { 1, 0 }, { 1, 2 }, true, { 4, 5 } };
static const WindowAttrs grad_plain
    = { { 2, 2 }, { 1, 2 }, { 0, 0 }, { 1, 1 }, false, { 4, 5 } };

/* The place of (2, 2, 4, 5) that place o of the columns shows, or -1. */
static int64_t
shown (const TdIm2colOpt *w, const int64_t *o)
{
  const int64_t window = o[1] % (w->ksize[0] * w->ksize[1]),
                c = o[1] / (w->ksize[0] * w->ksize[1]);
  const int64_t r = o[2] * w->stride[0] + window / w->ksize[1] * w->dilate[0] - w->pad[0];
  const int64_t s = o[3] * w->stride[1] + window % w->ksize[1] * w->dilate[1] - w->pad[1];

  return r < 0 || r >= 4 || s < 0 || s >= 5 ? -1 : ((o[0] * 2 + c) * 4 + r) * 5 + s;
}
static void
columns (const TdIm2colOpt *w, const TdShape *s, const double *in, double *out, bool back)
{
  for (int64_t at = 0; at < td_shape_size (s); at++)
    {
      const int64_t o[]
          = { at / s->dim[3] / s->dim[2] / s->dim[1], at / s->dim[3] / s->dim[2] % s->dim[1],
              at / s->dim[3] % s->dim[2], at % s->dim[3] };
      const int64_t i = shown (w, o);

      if (i >= 0 && back)
        out[i] += in[at];
      else if (i >= 0)
        out[at] = in[i];
    }
}
CALL (im2col, y[0] = td_im2col_ (x[0], &plain))
CALL (im2col_windows, y[0] = td_im2col_ (x[0], &windows))
CALL (im2col_grad, y[0] = td__apply1 (&td__im2col_grad_class, &grad_plain, NULL, x[0]))
CALL (im2col_grad_windows,
      y[0] = td__apply1 (&td__im2col_grad_class, &grad_windows, NULL, x[0]))
WHOLE (im2col)
{
  columns (&plain, &c->out[0], in[0], out[0], false);
}
WHOLE (im2col_windows)
{
  columns (&windows, &c->out[0], in[0], out[0], false);
}
WHOLE (im2col_grad)
{
  columns (&plain, &c->in[0].shape, in[0], out[0], true);
}
WHOLE (im2col_grad_windows)
{
  columns (&windows, &c->in[0].shape, in[0], out[0], true);
}

/* --- images in another size --- */

/* The weight of pixel i of n_in in pixel o of n_out. */
static double
share_of (int64_t i, int64_t n_in, int64_t o, int64_t n_out, bool nearest, bool aligned)
{
  double at = aligned ? (n_out > 1 ? (double)(o * (n_in - 1)) / (double)(n_out - 1) : 0)
                      : ((double)o + 0.5) * (double)n_in / (double)n_out - 0.5;

  if (nearest)
    return i == o * n_in / n_out;
  at = fmin (fmax (at, 0), (double)(n_in - 1));
  return fmax (0, 1 - fabs (at - (double)i));
}

/* y of x, or gx of gy. */
static void
resize (const TdShape *x, const TdShape *y, const double *from, double *to, bool grad,
        bool nearest, bool aligned)
{
  const int64_t *a = x->dim, *b = y->dim;

  memset (to, 0, (size_t)td_shape_size (grad ? x : y) * sizeof *to);
  for (int64_t n = 0; n < a[0] * a[1]; n++)
    for (int64_t p = 0; p < a[2] * a[3]; p++)
      for (int64_t q = 0; q < b[2] * b[3]; q++)
        {
          const double share = share_of (p / a[3], a[2], q / b[3], b[2], nearest, aligned)
                               * share_of (p % a[3], a[3], q % b[3], b[3], nearest, aligned);
          const int64_t at = n * a[2] * a[3] + p, place = n * b[2] * b[3] + q;

          to[grad ? at : place] += share * from[grad ? place : at];
        }
}

/* Attributes as the class has them. */
typedef struct
{
  int size[2], n_size, mode;
  bool align_corners;
} ResizeAttrs;

#define RESIZE(name, h, w, text, place, aligned)                                               \
  CALL (resize_##name,                                                                         \
        y[0] = td_resize_images_ (x[0], h, w, &(TdResizeImagesOpt){ text, aligned, 0 }))       \
  WHOLE (resize_##name)                                                                        \
  {                                                                                            \
    resize (&c->in[0].shape, &c->out[0], in[0], out[0], false, place, aligned);                \
  }                                                                                            \
  static const ResizeAttrs back_##name = { { h, w }, 2, place, aligned };                      \
  CALL (resize_back_##name,                                                                    \
        y[0] = td__applyn (&td__resize_images_grad_class, &back_##name, NULL, x, 1))           \
  WHOLE (resize_back_##name)                                                                   \
  {                                                                                            \
    resize (&c->out[0], &c->in[0].shape, in[0], out[0], true, place, aligned);                 \
  }

RESIZE (larger, 5, 7, "bilinear", 0, true)
RESIZE (smaller, 2, 3, "bilinear", 0, true)
RESIZE (to_one, 1, 1, "bilinear", 0, true)
RESIZE (halfway, 5, 7, "bilinear", 0, false)
RESIZE (halfway_down, 2, 3, "bilinear", 0, false)
RESIZE (nearest, 5, 7, "nearest", 1, true)
RESIZE (nearest_down, 2, 3, "nearest", 1, false)

/* --- places --- */

static const double rows[] = { 2, 0, 2 }, others[] = { 1, 3, 0 }, square[] = { 3, 1, 1, 0 };
CALL (arrays, y[0] = td_get_item_arrays (x[0], x + 1, 1, 0))
SOURCE (arrays, 0, i[0] = (int64_t)rows[o[0]]; i[1] = o[1])
CALL (arrays_inside, y[0] = td_get_item_arrays (x[0], x + 1, 1, 1))
SOURCE (arrays_inside, 0, i[0] = o[0]; i[1] = (int64_t)square[2 * o[1] + o[2]]; i[2] = o[3])
CALL (arrays_two, y[0] = td_get_item_arrays (x[0], x + 1, 2, -2))
SOURCE (arrays_two, 0, i[0] = o[0]; i[1] = (int64_t)rows[o[1]]; i[2] = (int64_t)others[o[1]])

/* axis, and the shape of x, as the class has them. */
typedef struct
{
  int axis;
  TdShape shape;
} PlaceAttrs;
static const PlaceAttrs of_two = { 1, { 3, { 2, 3, 4 } } };
CALL (arrays_grad, y[0] = td__applyn (&td__get_item_arrays_grad_class, &of_two, NULL, x, 3))
CALL (scatter_arrays, y[0] = td_scatter_add_arrays (x[0], x + 2, 2, 1, x[1]))
/* Numbers (2, 3) to places of (2, 3, 4); the first and the last index may be of one row. */
static void
scatter (const double *from, double *to)
{
  for (int64_t at = 0; at < 6; at++)
    to[(at / 3 * 3 + (int64_t)rows[at % 3]) * 4 + (int64_t)others[at % 3]] += from[at];
}
WHOLE (arrays_grad)
{
  (void)c;
  scatter (in[0], out[0]);
}
WHOLE (scatter_arrays)
{
  (void)c;
  memcpy (out[0], in[0], 24 * sizeof (double));
  scatter (in[1], out[0]);
}
static const double twice[] = { 1, 1 };
CALL (scatter_twice, y[0] = td_scatter_add_arrays (x[0], x + 2, 1, 0, x[1]))
WHOLE (scatter_twice)
{
  (void)c;
  memcpy (out[0], in[0], 6 * sizeof (double));
  for (int64_t k = 0; k < 4; k++)
    out[0][2 + k % 2] += in[1][k];
}
static const TdSlice places[] = { { 0, TD_END, 2, 0 }, { 1, 0, 1, 1 } };
CALL (scatter_add, y[0] = td_scatter_add (x[0], places, 2, x[1]))
WHOLE (scatter_add)
{
  (void)c;
  memcpy (out[0], in[0], 12 * sizeof (double));
  out[0][1] += in[1][0];
  out[0][9] += in[1][1];
}
CALL (one_hot, y[0] = td_one_hot (x[0], 4, TD_F64))
CALL (one_hot_int, y[0] = td_one_hot (x[0], 4, TD_I32))
WHOLE (one_hot)
{
  (void)c;
  (void)in;
  for (int64_t k = 0; k < 4; k++)
    out[0][4 * k + (int64_t)square[k]] = 1;
}

// clang-format off
#define X(...) { S (__VA_ARGS__), -1.5, 1.5, 0, 0, NULL }
#define NUMBER { { 0, { 0 } }, 0.5, 2, 0, 0, NULL }
#define I32(numbers, ...) { S (__VA_ARGS__), 0, 0, TD_I32, 0, numbers }
#define I64(numbers, ...) { S (__VA_ARGS__), 0, 0, TD_I64, 0, numbers }
#define ROW(op_name, name, n, m, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = m, .source = source_##name, __VA_ARGS__ }
#define SUMS(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .whole = whole_##name, __VA_ARGS__ }

const OpCase op_cases_arrays[] = {
  ROW ("broadcast", broadcast, 2, 2, .in = { X (2, 1), X (3) }, .out = { S (2, 3), S (2, 3) }),
  ROW ("swapaxes", swapaxes, 1, 1, .in = { X (2, 3, 4) }, .out = { S (4, 3, 2) }),
  ROW ("moveaxis", moveaxis, 1, 1, .in = { X (2, 3, 4) }, .out = { S (3, 4, 2) }),
  ROW ("moveaxis", moveaxis_back, 1, 1, .in = { X (2, 3, 4) }, .out = { S (4, 2, 3) }),
  ROW ("flip", flip, 1, 1, .in = { X (2, 3, 2) }, .out = { S (2, 3, 2) }),
  ROW ("hstack", hstack, 2, 1, .in = { X (2, 3), X (2, 2) }, .out = { S (2, 5) }),
  ROW ("hstack", hstack_flat, 3, 1, .in = { NUMBER, X (3), NUMBER }, .out = { S (5) }),
  ROW ("vstack", vstack, 2, 1, .in = { X (2, 3), X (1, 3) }, .out = { S (3, 3) }),
  ROW ("vstack", vstack_flat, 2, 1, .in = { X (3), X (3) }, .out = { S (2, 3) }),
  ROW ("split_axis_indices", split_indices, 1, 3, .in = { X (2, 6) }, .out = { S (2, 1), S (2, 3), S (2, 2) }),
  ROW ("split_axis", separate, 1, 3, .in = { X (2, 3, 2) }, .out = { S (2, 2), S (2, 2), S (2, 2) }),
  ROW ("repeat", repeat, 1, 1, .in = { X (2, 3, 2) }, .out = { S (2, 6, 2) }),
  ROW ("repeat", repeat_all, 1, 1, .in = { X (2, 2) }, .out = { S (12) }),
  ROW ("repeat", repeat_each, 1, 1, .in = { X (2, 3) }, .out = { S (2, 3) }),
  SUMS ("repeat_grad", repeat_grad, 1, .in = { X (2, 6) }, .out = { S (2, 3) }),
  ROW ("tile", tile, 1, 1, .in = { X (2, 3) }, .out = { S (2, 2, 6) }),
  ROW ("tile", tile_last, 1, 1, .in = { X (2, 3) }, .out = { S (2, 9) }),
  ROW ("pad", pad, 1, 1, .in = { X (2, 3) }, .out = { S (3, 6) }),
  ROW ("pad", pad_edge, 1, 1, .in = { X (2, 3) }, .out = { S (3, 6) }),
  ROW ("pad", pad_reflect, 1, 1, .in = { X (2, 3) }, .out = { S (3, 6) }),
  SUMS ("pad", pad_value, 1, .in = { X (2, 3) }, .out = { S (3, 6) }),
  ROW ("pad_sequence", pad_sequence, 3, 1, .in = { X (2, 2), X (3, 2), X (1, 2) }, .out = { S (3, 3, 2) }),
  ROW ("pad_sequence", pad_sequence_long, 2, 1, .in = { X (2), X (1) }, .out = { S (2, 4) }),
  SUMS ("im2col", im2col, 1, .in = { X (2, 2, 4, 5) }, .out = { S (2, 8, 3, 2) }),
  SUMS ("im2col", im2col_windows, 1, .in = { X (2, 2, 4, 5) }, .out = { S (2, 12, 3, 3) }),
  SUMS ("im2col_grad", im2col_grad, 1, .in = { X (2, 8, 3, 2) }, .out = { S (2, 2, 4, 5) }),
  SUMS ("im2col_grad", im2col_grad_windows, 1, .in = { X (2, 12, 3, 3) }, .out = { S (2, 2, 4, 5) }),
  SUMS ("resize_images", resize_larger, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 5, 7) }),
  SUMS ("resize_images_grad", resize_back_larger, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 5, 7) }),
  SUMS ("resize_images", resize_smaller, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 2, 3) }),
  SUMS ("resize_images_grad", resize_back_smaller, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 2, 3) }),
  SUMS ("resize_images", resize_to_one, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 1, 1) }),
  SUMS ("resize_images_grad", resize_back_to_one, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 1, 1) }),
  SUMS ("resize_images", resize_halfway, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 5, 7) }),
  SUMS ("resize_images_grad", resize_back_halfway, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 5, 7) }),
  SUMS ("resize_images", resize_halfway_down, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 2, 3) }),
  SUMS ("resize_images_grad", resize_back_halfway_down, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 2, 3) }),
  SUMS ("resize_images", resize_nearest, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 5, 7) }),
  SUMS ("resize_images_grad", resize_back_nearest, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 5, 7) }),
  SUMS ("resize_images", resize_nearest_down, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 2, 3) }),
  SUMS ("resize_images_grad", resize_back_nearest_down, 1, .in = { X (2, 2, 3, 4) }, .out = { S (2, 2, 2, 3) }),
  ROW ("get_item_arrays", arrays, 2, 1, .in = { X (4, 3), I64 (rows, 3) }, .out = { S (3, 3) }),
  ROW ("get_item_arrays", arrays_inside, 2, 1, .in = { X (2, 4, 2), I32 (square, 2, 2) }, .out = { S (2, 2, 2, 2) }),
  ROW ("get_item_arrays", arrays_two, 3, 1, .in = { X (2, 3, 4), I32 (rows, 3), I64 (others, 3) }, .out = { S (2, 3) }),
  SUMS ("get_item_arrays_grad", arrays_grad, 3, .in = { X (2, 3), I32 (rows, 3), I64 (others, 3) }, .out = { S (2, 3, 4) }),
  SUMS ("scatter_add_arrays", scatter_arrays, 4, .in = { X (2, 3, 4), X (2, 3), I32 (rows, 3), I64 (others, 3) }, .out = { S (2, 3, 4) }),
  SUMS ("scatter_add_arrays", scatter_twice, 3, .in = { X (3, 2), X (2, 2), I32 (twice, 2) }, .out = { S (3, 2) }),
  SUMS ("scatter_add", scatter_add, 2, .in = { X (3, 4), X (2) }, .out = { S (3, 4) }),
  SUMS ("one_hot", one_hot, 1, .in = { I32 (square, 2, 2) }, .out = { S (2, 2, 4) }, .out_dtype = TD_F64, .flags = OP_NO_GRAD),
  { .op = "one_hot", .variant = "i32", .call = call_one_hot_int, .n_in = 1, .n_out = 1, .whole = whole_one_hot, .in = { I64 (square, 2, 2) }, .out = { S (2, 2, 4) }, .out_dtype = TD_I32, .flags = OP_NO_GRAD },
};
const int n_op_cases_arrays = (int)(sizeof op_cases_arrays / sizeof op_cases_arrays[0]);

#define E1(d, s) 1, { { d, s } }
#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
CALL (resize_nothing, y[0] = td_resize_images_ (x[0], 0, 3, NULL))
CALL (resize_cubic, y[0] = td_resize_images_ (x[0], 2, 3, &(TdResizeImagesOpt){ "cubic", true, 0 }))
const OpError op_errors_arrays[] = {
  { "resize_images", call_resize_larger, E1 (TD_F32, S (2, 3, 4)), TD_ERR_SHAPE, "resize_images: x.ndim == 4 expected, got 3: x (2, 3, 4) f32" },
  { "resize_images", call_resize_larger, E1 (TD_I32, S (2, 3, 4, 4)), TD_ERR_DTYPE, "resize_images: x.dtype.kind == f expected, got i32: x (2, 3, 4, 4) i32" },
  { "resize_images", call_resize_larger, E1 (TD_F32, S (2, 3, 0, 4)), TD_ERR_SHAPE, "resize_images: an image that is not empty expected: x (2, 3, 0, 4) f32" },
  { "resize_images", call_resize_nothing, E1 (TD_F32, S (2, 3, 4, 4)), TD_ERR_ARG, "resize_images: output_shape: a height and a width above 0 expected: x (2, 3, 4, 4) f32" },
  { "resize_images", call_resize_cubic, E1 (TD_F32, S (2, 3, 4, 4)), TD_ERR_ARG, "resize_images: mode is bilinear or nearest, got 'cubic'" },
  { "broadcast", call_broadcast, E2 (TD_F32, S (2, 3), TD_F32, S (2)), TD_ERR_SHAPE, "broadcast: shapes that broadcast expected, input 1 does not: input 0 (2, 3) f32, input 1 (2) f32" },
  { "swapaxes", call_swapaxes, E1 (TD_F32, TD_SCALAR), TD_ERR_SHAPE, "swapaxes: -x.ndim <= axis < x.ndim expected, got axis 0: x () f32" },
  { "flip", call_flip, E1 (TD_F32, S (3)), TD_ERR_SHAPE, "flip: -x.ndim <= axis < x.ndim expected, got axis 1: x (3) f32" },
  { "hstack", call_hstack, E2 (TD_F32, S (2, 3), TD_F32, S (3, 3)), TD_ERR_SHAPE, "hstack: inputs that differ along axis 1 only expected, input 1 differs elsewhere: input 0 (2, 3) f32, input 1 (3, 3) f32" },
  { "split_axis_indices", call_split_indices, E1 (TD_F32, S (2, 3)), TD_ERR_ARG, "split_axis_indices: indices that rise from 0 to x.shape[1] expected, got 4 after 1: x (2, 3) f32" },
  { "pad", call_pad_reflect, E1 (TD_F32, S (2, 2)), TD_ERR_ARG, "pad: 0 <= pad_width <= 1 expected for axis 1 of size 2, got 2" },
  { "im2col", call_im2col, E1 (TD_F32, S (2, 2, 1, 5)), TD_ERR_SHAPE, "im2col: height of the output > 0 expected, the window does not fit the image: x (2, 2, 1, 5) f32" },
  { "get_item_arrays", call_arrays, E2 (TD_F32, S (0, 3), TD_I32, S (2)), TD_ERR_ARG, "get_item_arrays: 0 <= index[i] < 0 expected, got 0 at element 0: x (0, 3) f32, index (2) i32" },
  { "get_item_arrays", call_arrays, E2 (TD_F32, S (4, 3), TD_F32, S (2)), TD_ERR_DTYPE, "get_item_arrays: index.dtype.kind == i expected, got f32: x (4, 3) f32, index (2) f32" },
  { "scatter_add", call_scatter_add, E2 (TD_F32, S (3, 4), TD_F32, S (3)), TD_ERR_SHAPE, "scatter_add: b of the slice's shape expected: a (3, 4) f32, b (3) f32" },
  { "one_hot", call_one_hot, E1 (TD_F32, S (3)), TD_ERR_DTYPE, "one_hot: t.dtype.kind == i expected, got f32: t (3) f32" },
};
// clang-format on
const int n_op_errors_arrays = (int)(sizeof op_errors_arrays / sizeof op_errors_arrays[0]);
