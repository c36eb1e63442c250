/* Operations on windows of images, as ONNX: what a window sees is gathered by its places, which
 * are numbers of the file, so that no other program computes them differently.
 *
 * Places outside an image are those of one more pixel, behind it, that is 0 (or -inf).  An
 * image (n, c, h, w) becomes (n, c, oh, kh, ow, kw): for each window its pixels.  The sizes of
 * the axes that are cut into windows are fixed; batches and channels may be any.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"
#include "host-memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT,
  AXES = TD_MAX_DIMS,
  LINE = 2000, /* of a recipe */
  MOST_GIVEN = AXES + 4
};

/* What is gathered from one axis: the pixel of place k of window o is of[o * n_places + k]. */
typedef struct
{
  int64_t size, n, n_places;
  int64_t *of;
} Axis;

typedef struct
{
  TdOnnx *o;
  const TdStep *step;
  uint32_t x; /* which input */
  int first, n_axes;
  Axis axis[AXES];
  char name[MOST_GIVEN][TEXT];
  TdOnnxGiven given[MOST_GIVEN];
  int n_given;
  char line[LINE];
  size_t at; /* in line */
} Windows;

static const TdShape *
shape_of_input (const Windows *w)
{
  return &w->o->s->nodes[td__step_in (w->o->s, w->step, w->x)].shape;
}

static const TdNodeInfo *
output (const Windows *w, uint32_t k)
{
  return &w->o->s->nodes[td__step_out (w->o->s, w->step, k)];
}

static Windows
windows_of (TdOnnx *o, const TdStep *step, uint32_t x, int first, int n_axes)
{
  Windows w = { .o = o, .step = step, .x = x, .first = first, .n_axes = n_axes };

  for (int i = 0; i < n_axes; i++)
    w.axis[i].size = td__onnx_fixed (o, step, td__step_in (o->s, step, x), first + i);
  return w;
}

static void say (Windows *w, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

/* More of the recipe. */
static void
say (Windows *w, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  w->at += (size_t)vsnprintf (w->line + w->at, LINE - w->at, format, args);
  va_end (args);
}

/* "0,1,5": numbers from first on, by step. */
static void
say_numbers (Windows *w, int64_t first, int64_t step, int n)
{
  for (int i = 0; i < n; i++)
    say (w, "%s%lld", i > 0 ? "," : "", (long long)(first + i * step));
}

/* Write what the recipe says. */
static void
end (Windows *w)
{
  td__onnx_compose (w->o, w->step, w->line, w->given, w->n_given);
  for (int i = 0; i < w->n_axes; i++)
    free (w->axis[i].of);
}

/* A constant that the recipe calls by a letter. */
static void
give (Windows *w, char letter, TdDtype dtype, const TdShape *shape, const void *numbers)
{
  td__onnx_constant (w->o, dtype, shape, numbers, w->name[w->n_given], TEXT);
  w->given[w->n_given] = (TdOnnxGiven){ letter, w->name[w->n_given] };
  w->n_given++;
}

/* The same of floating-point numbers, of the input's type. */
static void
give_floats (Windows *w, char letter, const TdShape *shape, const double *numbers)
{
  td__onnx_constant_floats (w->o,
                            (TdDtype)w->o->s->nodes[td__step_in (w->o->s, w->step, w->x)].dtype,
                            shape, numbers, w->name[w->n_given], TEXT);
  w->given[w->n_given] = (TdOnnxGiven){ letter, w->name[w->n_given] };
  w->n_given++;
}

static bool
is_inside (const Axis *a, int64_t i)
{
  return a->of[i] >= 0 && a->of[i] < a->size;
}

static void
axis_new (Axis *a, int64_t n, int64_t n_places)
{
  a->n = n;
  a->n_places = n_places;
  a->of = td__xcalloc ((size_t)(n * n_places) + 1, sizeof *a->of);
}

/* Windows side by side: of ksize places, dilate apart, the first of them pad before the image.
 */
static void
axis_slides (Axis *a, int64_t n, int64_t ksize, int64_t stride, int64_t pad, int64_t dilate)
{
  axis_new (a, n, ksize);
  for (int64_t i = 0; i < n * ksize; i++)
    a->of[i] = i / ksize * stride + i % ksize * dilate - pad;
}

/* Ints of an attribute, one for each axis, or one for all; the default where it has none. */
static void
ints_of (const TdStep *step, const char *name, int n, const int64_t *otherwise, int64_t *to)
{
  int64_t values[AXES];
  const int count = td__export_ints (step, name, values, AXES);

  for (int i = 0; i < n; i++)
    to[i] = count <= 0 ? otherwise[i] : values[count == 1 ? 0 : i];
}

/* ksize, stride, pad and dilate say the windows; as many as the sizes n. */
static void
sliding (Windows *w, const int64_t *n)
{
  static const int64_t ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 }, zeros[AXES] = { 0 };
  int64_t ksize[AXES], stride[AXES], pad[AXES], dilate[AXES];

  ints_of (w->step, "ksize", w->n_axes, ones, ksize);
  ints_of (w->step, "stride", w->n_axes, ksize, stride);
  ints_of (w->step, "pad", w->n_axes, zeros, pad);
  ints_of (w->step, "dilate", w->n_axes, ones, dilate);
  for (int i = 0; i < w->n_axes; i++)
    axis_slides (&w->axis[i], n[i], ksize[i], stride[i], pad[i], dilate[i]);
}

/* --- what windows see --- */

/* The text of x by windows, with that number outside it; constants i, j ... have the places. */
static void
say_seen (Windows *w, const char *x, const char *outside)
{
  const int ndim = shape_of_input (w)->ndim;
  bool pads[AXES] = { false }, any = false;

  for (int i = 0; i < w->n_axes; i++)
    {
      Axis *a = &w->axis[i];

      for (int64_t k = 0; k < a->n * a->n_places; k++)
        if (!is_inside (a, k))
          {
            pads[i] = any = true;
            a->of[k] = a->size;
          }
      give (w, (char)('m' + i), TD_I64, &(TdShape){ 2, { a->n, a->n_places } }, a->of);
    }
  for (int i = 0; i < w->n_axes; i++)
    say (w, "Gather(");
  say (w, any ? "Pad(%s,[" : "%s", x);
  if (any)
    {
      say_numbers (w, 0, 0, ndim);
      for (int d = 0; d < ndim; d++)
        say (w, ",%d", d >= w->first && d < w->first + w->n_axes && pads[d - w->first]);
      say (w, "],%s)", outside);
    }
  for (int i = 0; i < w->n_axes; i++)
    say (w, ",%c;axis=%d)", 'm' + i, w->first + 2 * i);
}

/* The axes of the places' order, before or after those of the windows. */
static void
say_order (Windows *w, bool places_first)
{
  say (w, ";perm=[");
  say_numbers (w, 0, 1, w->first);
  say (w, ",");
  say_numbers (w, w->first + places_first, 2, w->n_axes);
  say (w, ",");
  say_numbers (w, w->first + !places_first, 2, w->n_axes);
  say (w, "]");
}

/* A window's pixels as the last axis, in the order of its places. */
static void
say_rows (Windows *w, const char *x, const char *outside)
{
  int64_t n_places = 1;

  say (w, "Reshape(Transpose(");
  say_seen (w, x, outside);
  say_order (w, false);
  for (int i = 0; i < w->n_axes; i++)
    n_places *= w->axis[i].n_places;
  say (w, "),[");
  say_numbers (w, 0, 0, w->first + w->n_axes);
  say (w, ",%lld])", (long long)n_places);
}

/* Sum over what each window sees, without the axes of places. */
static void
say_sum (Windows *w, const char *x)
{
  say (w, "ReduceSum(");
  say_seen (w, x, "0");
  say (w, ";axes=[");
  say_numbers (w, w->first + 1, 2, w->n_axes);
  say (w, "],keepdims=0)");
}

/* --- the operations --- */

static void
im2col (TdOnnx *o, const TdStep *step)
{
  Windows w = windows_of (o, step, 0, 2, 2);

  sliding (&w, output (&w, 0)->shape.dim + 2);
  say (&w, "Reshape(Transpose(");
  say_seen (&w, "a", "0");
  say_order (&w, true);
  say (&w, "),$0)");
  end (&w);
}

/* Which of an image's pixels place `place` of window `window` is, by their order; -1: none. */
static int64_t
pixel_of (const Windows *w, int64_t window, int64_t place)
{
  int64_t pixel = 0, stride = 1;

  for (int i = w->n_axes - 1; i >= 0; i--)
    {
      const Axis *a = &w->axis[i];
      const int64_t at = window % a->n * a->n_places + place % a->n_places;

      if (!is_inside (a, at))
        return -1;
      pixel += a->of[at] * stride;
      stride *= a->size;
      window /= a->n;
      place /= a->n_places;
    }
  return pixel;
}

/* Windows and places in their order. */
static int64_t
count_windows (const Windows *w, TdShape *shape, int64_t *n_places)
{
  *shape = (TdShape){ .ndim = w->n_axes };
  *n_places = 1;
  for (int i = 0; i < w->n_axes; i++)
    {
      shape->dim[i] = w->axis[i].n;
      *n_places *= w->axis[i].n_places;
    }
  return td__size (shape);
}

/* Which places of windows are in the image: (windows ..., places); false: all of them. */
static bool
give_inside (Windows *w, char letter)
{
  TdShape shape;
  int64_t n_places;
  const int64_t n = count_windows (w, &shape, &n_places);
  bool *inside = td__xcalloc ((size_t)(n * n_places) + 1, sizeof *inside), all = true;

  for (int64_t k = 0; k < n * n_places; k++)
    {
      inside[k] = pixel_of (w, k / n_places, k % n_places) >= 0;
      all = all && inside[k];
    }
  shape.dim[shape.ndim++] = n_places;
  if (!all)
    give (w, letter, TD_BOOL, &shape, inside);
  free (inside);
  return !all;
}

/* The places count from 1, in the window; 0: it sees nothing of the image.  The first of the
 * largest is taken, and of numbers that are all -inf one that is in the image. */
static void
max_pooling_places (TdOnnx *o, const TdStep *step)
{
  const int n_axes = o->s->nodes[td__step_in (o->s, step, 0)].shape.ndim - 2;
  Windows w = windows_of (o, step, 0, 2, n_axes);
  bool some;

  sliding (&w, output (&w, 0)->shape.dim + 2);
  say (&w, "w=");
  say_rows (&w, "a", "-inf");
  some = give_inside (&w, 'v');
  say (&w,
       ";u=ReduceMax(w;axes=[-1],keepdims=1);Squeeze(u,[-1])|"
       "t=%sEqual(w,u)%s;s=Add(ArgMax(Cast(t;to=F);axis=-1,keepdims=0),:1);"
       "Cast(%s;to=R)",
       some ? "And(" : "", some ? ",v)" : "",
       some ? "Mul(s,Squeeze(ReduceMax(Cast(v;to=I);axes=[-1],keepdims=1),[-1]))" : "s");
  end (&w);
}

/* Tables of pixels by place, one for each window and one after the other; for each window where
 * its table begins.  Place 0, and those outside, are a pixel behind the image's. */
static void
give_tables (Windows *w, char tables, char begins)
{
  TdShape shape;
  int64_t n_places, n_pixels = 1;
  const int64_t n = count_windows (w, &shape, &n_places);
  int64_t *pixels = td__xcalloc ((size_t)(n * (n_places + 1)) + 1, sizeof *pixels),
          *from = td__xcalloc ((size_t)n + 1, sizeof *from);

  for (int i = 0; i < w->n_axes; i++)
    n_pixels *= w->axis[i].size;
  for (int64_t k = 0; k < n; k++)
    {
      from[k] = k * (n_places + 1);
      for (int64_t place = 0; place <= n_places; place++)
        {
          const int64_t pixel = place > 0 ? pixel_of (w, k, place - 1) : -1;

          pixels[from[k] + place] = pixel >= 0 ? pixel : n_pixels;
        }
    }
  give (w, tables, TD_I64, &TD_SHAPE (n * (n_places + 1)), pixels);
  give (w, begins, TD_I64, &shape, from);
  free (pixels);
  free (from);
}

static void
max_pooling_gather (TdOnnx *o, const TdStep *step)
{
  const int n_axes = o->s->nodes[td__step_in (o->s, step, 1)].shape.ndim - 2;
  const double zero = 0;
  Windows w = windows_of (o, step, 1, 2, n_axes);

  for (int i = 0; i < n_axes; i++)
    td__onnx_fixed (o, step, td__step_in (o->s, step, 0), 2 + i);
  sliding (&w, output (&w, 0)->shape.dim + 2);
  give_tables (&w, 'p', 'q');
  give_floats (&w, 'z', &(TdShape){ .ndim = 0 }, &zero);
  say (&w, "u=Gather(p,Add(Cast(a;to=I),q));Reshape(GatherElements(Pad(Flatten(b;axis=2),"
           "[0,0,0,1],z),Flatten(u;axis=2);axis=1),^0)");
  end (&w);
}

/* A pixel is the sum of the numbers whose windows cover it: those are its window. */
static void
unpooling (TdOnnx *o, const TdStep *step)
{
  Windows w = windows_of (o, step, 0, 2, 2);
  int64_t ksize[2], stride[2], pad[2];

  ints_of (step, "ksize", 2, (const int64_t[]){ 2, 2 }, ksize);
  ints_of (step, "stride", 2, ksize, stride);
  ints_of (step, "pad", 2, (const int64_t[]){ 0, 0 }, pad);
  for (int i = 0; i < 2; i++)
    {
      Axis *a = &w.axis[i];

      axis_new (a, output (&w, 0)->shape.dim[2 + i], (ksize[i] + stride[i] - 1) / stride[i]);
      for (int64_t y = 0; y < a->n; y++)
        for (int64_t k = 0; k < a->n_places; k++)
          {
            const int64_t from = (y + pad[i]) / stride[i] - k;

            a->of[y * a->n_places + k]
                = y + pad[i] - from * stride[i] < ksize[i] ? from : a->size;
          }
    }
  say_sum (&w, "a");
  end (&w);
}

/* Window o of n covers [floor (o h / n), ceil ((o + 1) h / n)). */
static int64_t
adaptive_window (const Axis *a, int64_t n, int64_t window, int64_t *from)
{
  *from = window * a->size / n;
  return ((window + 1) * a->size + n - 1) / n - *from;
}

static void
adaptive_pooling (TdOnnx *o, const TdStep *step)
{
  Windows w = windows_of (o, step, 0, 2, 2);
  const int64_t *n = output (&w, 0)->shape.dim + 2;
  double *covered = td__xcalloc ((size_t)(n[0] * n[1]) + 1, sizeof *covered);
  int64_t from, longest[2] = { 0, 0 };

  for (int i = 0; i < 2; i++)
    {
      Axis *a = &w.axis[i];

      for (int64_t k = 0; k < n[i]; k++)
        if (adaptive_window (a, n[i], k, &from) > longest[i])
          longest[i] = adaptive_window (a, n[i], k, &from);
      axis_new (a, n[i], longest[i]);
      for (int64_t k = 0; k < n[i] * longest[i]; k++)
        {
          const int64_t place = k % longest[i],
                        size = adaptive_window (a, n[i], k / longest[i], &from);

          a->of[k] = place < size ? from + place : a->size;
        }
    }
  for (int64_t k = 0; k < n[0] * n[1]; k++)
    covered[k] = (double)(adaptive_window (&w.axis[0], n[0], k / n[1], &from)
                          * adaptive_window (&w.axis[1], n[1], k % n[1], &from));
  give_floats (&w, 'z', &(TdShape){ 2, { n[0], n[1] } }, covered);
  say (&w, "Div(");
  say_sum (&w, "a");
  say (&w, ",z)");
  end (&w);
  free (covered);
}

static void
channel_window_sum (TdOnnx *o, const TdStep *step)
{
  Windows w = windows_of (o, step, 0, 1, 1);
  const int64_t half = (int64_t)td__export_number (step, "n", 5) / 2;

  axis_slides (&w.axis[0], w.axis[0].size, 2 * half + 1, 1, half, 1);
  say_sum (&w, "a");
  end (&w);
}

/* LRN divides alpha by its size, which is odd here; it wants four axes. */
static void
local_response_normalization (TdOnnx *o, const TdStep *step)
{
  Windows w = { .o = o, .step = step };
  const bool planes = shape_of_input (&w)->ndim == 4;
  const int size = 2 * ((int)td__export_number (step, "n", 5) / 2) + 1;

  say (&w, planes ? "LRN(a" : "Reshape(LRN(Reshape(a,[0,0,-1,1])");
  say (&w, ";size=%d,alpha=%#.9g,beta=%#.9g,bias=%#.9g)", size,
       size * td__export_number (step, "alpha", 1e-4), td__export_number (step, "beta", 0.75),
       td__export_number (step, "k", 2));
  if (!planes)
    say (&w, ",$0)");
  end (&w);
}

/* Of each pixel of the result the one or two that it lies between along an axis, and by how
 * much.  Resize would find the same, but programs compute its places in f32, which is off by
 * more than 1e-5 from images of some hundred pixels on. */
static void
resize_images (TdOnnx *o, const TdStep *step)
{
  const TdResize r = { strcmp (td__export_word (step, "mode"), "nearest") == 0,
                       td__export_number (step, "align_corners", 1) != 0 };
  Windows w = windows_of (o, step, 0, 2, 2);
  const int64_t *n = output (&w, 0)->shape.dim + 2;

  for (int i = 0; i < 2; i++)
    {
      Axis *a = &w.axis[i];
      double scale, shift, *share = td__xcalloc (2 * (size_t)n[i] + 1, sizeof *share);
      const bool halfway = td__resize_line (&r, a->size, n[i], &scale, &shift);

      axis_new (a, n[i], r.nearest ? 1 : 2);
      for (int64_t k = 0; k < n[i]; k++)
        {
          double at = halfway ? ((double)k + 0.5) * scale + shift : (double)k * scale;

          at = fmin (fmax (at, 0), (double)(a->size - 1));
          a->of[k * a->n_places] = (int64_t)at;
          if (!r.nearest)
            {
              a->of[2 * k + 1] = (int64_t)at + ((int64_t)at + 1 < a->size);
              share[2 * k + 1] = at - floor (at);
              share[2 * k] = 1 - share[2 * k + 1];
            }
        }
      if (!r.nearest) /* (oh, 2, 1, 1) and (ow, 2), beside (n, c, oh, 2, ow, 2) */
        give_floats (&w, (char)('u' + i), &(TdShape){ i == 0 ? 4 : 2, { n[i], 2, 1, 1 } },
                     share);
      free (share);
    }
  if (r.nearest)
    say_sum (&w, "a");
  else
    {
      say (&w, "ReduceSum(Mul(Mul(");
      say_seen (&w, "a", "0");
      say (&w, ",u),v);axes=[3,5],keepdims=0)");
    }
  end (&w);
}

static const TdOnnxWriter writers[] = {
  { "im2col", im2col },
  { "max_pooling_2d", max_pooling_places },
  { "max_pooling_nd", max_pooling_places },
  { "max_pooling_2d_gather", max_pooling_gather },
  { "max_pooling_nd_gather", max_pooling_gather },
  { "unpooling_2d", unpooling },
  { "adaptive_average_pooling_2d", adaptive_pooling },
  { "channel_window_sum", channel_window_sum },
  { "local_response_normalization", local_response_normalization },
  { "resize_images", resize_images },
};

bool
td__onnx_windows (TdOnnx *o, const TdStep *step)
{
  return td__onnx_write_by (writers, sizeof writers / sizeof *writers, o, step);
}
