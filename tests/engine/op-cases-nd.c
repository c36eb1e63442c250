/* Rows for convolutions and poolings over one, two, three and four axes.  References are the
 * definitions: loops over every pair of an output element and a place of its window.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#include "compute/ops/windows.h"

#define S(...) TD_SHAPE (__VA_ARGS__)
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }

/* Windows of a row: as many numbers as axes. */
typedef struct
{
  int ksize[4], stride[4], pad[4], dilate[4], groups;
} Windows;

/* A pair of an output element and a place of its window: elements of one channel. */
typedef void (*Visit) (void *user, int64_t image, int64_t pixel, int64_t place);

/* Call visit for each pair that lies inside the image, pixel after pixel, place after place. */
static void
each_pair (const Windows *w, const TdShape *image, const TdShape *pixels, Visit visit,
           void *user)
{
  const int ndim = image->ndim - 2;
  int64_t n_pixels = 1, n_places = 1;

  for (int i = 0; i < ndim; i++)
    {
      n_pixels *= pixels->dim[2 + i];
      n_places *= w->ksize[i];
    }
  for (int64_t p = 0; p < n_pixels; p++)
    for (int64_t k = 0; k < n_places; k++)
      {
        int64_t at = 0, step = 1, pixel = p, place = k;
        bool inside = true;

        for (int i = ndim - 1; i >= 0; i--)
          {
            const int64_t v = pixel % pixels->dim[2 + i] * w->stride[i]
                              + place % w->ksize[i] * (w->dilate[i] > 0 ? w->dilate[i] : 1)
                              - w->pad[i];

            inside = inside && v >= 0 && v < image->dim[2 + i];
            at += v * step;
            step *= image->dim[2 + i];
            pixel /= pixels->dim[2 + i];
            place /= w->ksize[i];
          }
        if (inside)
          visit (user, at, p, k);
      }
}

static int64_t
spatial (const TdShape *s)
{
  int64_t n = 1;

  for (int i = 2; i < s->ndim; i++)
    n *= s->dim[i];
  return n;
}

/* --- convolution --- */

/* x, W and y of one convolution; the one that is NULL among the first three collects in out. */
typedef struct
{
  const double *xs, *ws, *ys;
  double *out;
  const TdShape *x, *W, *y;
  int groups;
} Convolution;

static void
add_products (void *user, int64_t image, int64_t pixel, int64_t place)
{
  const Convolution *c = user;
  const int64_t og = c->W->dim[0] / c->groups, cg = c->W->dim[1];
  const int64_t n_image = spatial (c->x), n_pixels = spatial (c->y), n_places = spatial (c->W);

  for (int64_t i = 0; i < c->x->dim[0]; i++)
    for (int64_t o = 0; o < c->W->dim[0]; o++)
      for (int64_t ch = 0; ch < cg; ch++)
        {
          const int64_t ix = (i * c->x->dim[1] + o / og * cg + ch) * n_image + image;
          const int64_t iw = (o * cg + ch) * n_places + place;
          const int64_t iy = (i * c->W->dim[0] + o) * n_pixels + pixel;

          if (c->ys == NULL)
            c->out[iy] += c->xs[ix] * c->ws[iw];
          else if (c->xs == NULL)
            c->out[ix] += c->ws[iw] * c->ys[iy];
          else
            c->out[iw] += c->xs[ix] * c->ys[iy];
        }
}

static void
convolve (const Windows *w, Convolution c, const double *bias)
{
  const TdShape *o = c.ys == NULL ? c.y : c.xs == NULL ? c.x : c.W;

  c.groups = w->groups;
  for (int64_t i = 0; i < td_shape_size (o); i++)
    c.out[i] = bias != NULL ? bias[i / spatial (o) % o->dim[1]] : 0;
  each_pair (w, c.x, c.y, add_products, &c);
}

static TdConvAttrs
attrs_of (const Windows *w, int ndim, const int *size)
{
  TdConvAttrs a = { .n_stride = ndim, .n_pad = ndim, .n_dilate = ndim, .groups = w->groups };

  for (int i = 0; i < ndim; i++)
    {
      a.stride[i] = w->stride[i];
      a.pad[i] = w->pad[i];
      a.dilate[i] = w->dilate[i];
      a.size[i] = size[i];
    }
  a.n_size = ndim;
  return a;
}

static TdConvNdOpt
conv_options (const Windows *w)
{
  TdConvNdOpt o = { .groups = w->groups };

  memcpy (o.stride, w->stride, sizeof w->stride);
  memcpy (o.pad, w->pad, sizeof w->pad);
  memcpy (o.dilate, w->dilate, sizeof w->dilate);
  return o;
}

static TdConv2dOpt
conv_options_2d (const Windows *w)
{
  return (TdConv2dOpt){ .stride = { w->stride[0], w->stride[1] },
                        .pad = { w->pad[0], w->pad[1] },
                        .dilate = { w->dilate[0], w->dilate[1] },
                        .groups = w->groups };
}

/* Forward, transposed and the weight gradient with the same windows; the transposed one is
 * asked for the image's size. */
#define CONVOLUTION(name, nd, ndim, forward, ...)                                              \
  static const int image_##name[] = { __VA_ARGS__ };                                           \
  CALL (conv_##name, y[0] = forward)                                                           \
  CALL (deconv_##name, TdConvAttrs a = attrs_of (&name, ndim, image_##name);                   \
        y[0] = x[2] == NULL ? NULL                                                             \
                            : td__apply3 (nd ? &td__deconvolution_nd_class                     \
                                             : &td__deconvolution_2d_class,                    \
                                          &a, NULL, x[0], x[1], x[2]))                         \
  CALL (grad_w_##name, TdConvAttrs a = attrs_of (&name, ndim, name.ksize);                     \
        y[0] = td__convolution_grad_w (nd, x[0], x[1], &a))                                    \
  static void whole_conv_##name (const OpCase *c, const double *const *in, double *const *out) \
  {                                                                                            \
    convolve (&name,                                                                           \
              (Convolution){ in[0], in[1], NULL, out[0], &c->in[0].shape, &c->in[1].shape,     \
                             &c->out[0], 1 },                                                  \
              c->n_in > 2 ? in[2] : NULL);                                                     \
  }                                                                                            \
  static void whole_deconv_##name (const OpCase *c, const double *const *in,                   \
                                   double *const *out)                                         \
  {                                                                                            \
    convolve (&name,                                                                           \
              (Convolution){ NULL, in[1], in[0], out[0], &c->out[0], &c->in[1].shape,          \
                             &c->in[0].shape, 1 },                                             \
              in[2]);                                                                          \
  }                                                                                            \
  static void whole_grad_w_##name (const OpCase *c, const double *const *in,                   \
                                   double *const *out)                                         \
  {                                                                                            \
    convolve (&name,                                                                           \
              (Convolution){ in[0], NULL, in[1], out[0], &c->in[0].shape, &c->out[0],          \
                             &c->in[1].shape, 1 },                                             \
              NULL);                                                                           \
  }

static const Windows plain = { { 3, 2 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 };
static const Windows strided = { { 3, 2 }, { 2, 1 }, { 1, 2 }, { 1, 2 }, 2 };
static const Windows line = { { 3 }, { 2 }, { 2 }, { 2 }, 1 };
static const Windows space = { { 2, 3, 2 }, { 2, 1, 1 }, { 1, 1, 0 }, { 1, 1, 2 }, 2 };
static const Windows four
    = { { 2, 1, 2, 2 }, { 1, 1, 1, 2 }, { 0, 0, 1, 0 }, { 1, 1, 1, 1 }, 1 };
CONVOLUTION (plain, false, 2,
             td_convolution_2d_at (x[0], x[1], x[2], conv_options_2d (&plain), NULL), 4, 5)
CONVOLUTION (strided, false, 2,
             td_convolution_2d_at (x[0], x[1], x[2], conv_options_2d (&strided), NULL), 4, 5)
CONVOLUTION (line, true, 1, td_convolution_1d_at (x[0], x[1], x[2], conv_options (&line), NULL),
             7)
CONVOLUTION (space, true, 3,
             td_convolution_3d_at (x[0], x[1], x[2], conv_options (&space), NULL), 3, 3, 4)
CONVOLUTION (four, true, 4, td_convolution_nd_at (x[0], x[1], NULL, conv_options (&four), NULL),
             2, 1, 2, 4)

/* The last windows hang over the edge. */
static const Windows covering = { { 2, 2 }, { 2, 3 }, { 0, 0 }, { 1, 1 }, 1 };
CALL (conv_covering, TdConv2dOpt o = conv_options_2d (&covering); o.cover_all = true;
      y[0] = td_convolution_2d_at (x[0], x[1], NULL, o, NULL))
static void
whole_conv_covering (const OpCase *c, const double *const *in, double *const *out)
{
  convolve (&covering,
            (Convolution){ in[0], in[1], NULL, out[0], &c->in[0].shape, &c->in[1].shape,
                           &c->out[0], 1 },
            NULL);
}

/* Transposed, by Chainer's size: stride (h - 1) + k - 2 pad. */
static const Windows up = { { 3, 2 }, { 2, 3 }, { 1, 0 }, { 1, 1 }, 1 };
CALL (deconv_up, y[0] = td_deconvolution_2d_ (x[0], x[1], NULL,
                                              &(TdDeconv2dOpt){ .stride = { 2, 3 },
                                                                .pad = { 1, 0 },
                                                                .dilate = { 1, 1 },
                                                                .groups = 1 }))
CALL (deconv_up_nd, y[0] = td_deconvolution_nd_ (x[0], x[1], NULL,
                                                 &(TdDeconvNdOpt){ .stride = { 2, 3 },
                                                                   .pad = { 1, 0 },
                                                                   .dilate = { 1, 1 },
                                                                   .groups = 1 }))
/* 6 wide, of windows that reach 5: the sixth column is empty. */
CALL (deconv_wide, y[0] = td_deconvolution_2d_ (x[0], x[1], NULL,
                                                &(TdDeconv2dOpt){ .stride = { 2, 3 },
                                                                  .pad = { 1, 0 },
                                                                  .outsize = { 4, 6 },
                                                                  .dilate = { 1, 1 },
                                                                  .groups = 1 }))
static void
whole_deconv_up (const OpCase *c, const double *const *in, double *const *out)
{
  convolve (&up,
            (Convolution){ NULL, in[1], in[0], out[0], &c->out[0], &c->in[1].shape,
                           &c->in[0].shape, 1 },
            NULL);
}

CALL (dilated, TdConv2dOpt o = conv_options_2d (&strided);
      y[0] = td_dilated_convolution_2d_ (x[0], x[1], x[2], &o))

/* Two filters for each of three channels: W (2, 3, 2, 2); groups of one channel. */
static const Windows depthwise = { { 2, 2 }, { 1, 2 }, { 1, 0 }, { 1, 1 }, 3 };
CALL (depthwise, TdConv2dOpt o = conv_options_2d (&depthwise); o.groups = 1;
      y[0] = td_depthwise_convolution_2d_ (x[0], x[1], x[2], &o))
static void
whole_depthwise (const OpCase *c, const double *const *in, double *const *out)
{
  const TdShape W = S (6, 1, 2, 2);
  double w[24];

  for (int m = 0; m < 2; m++)
    for (int ch = 0; ch < 3; ch++)
      memcpy (w + (ch * 2 + m) * 4, in[1] + (m * 3 + ch) * 4, 4 * sizeof *w);
  convolve (&depthwise,
            (Convolution){ in[0], w, NULL, out[0], &c->in[0].shape, &W, &c->out[0], 1 }, in[2]);
}

/* --- pooling --- */

typedef struct
{
  const double *in, *other;
  double *out, *places;
  const double *covered; /* elements under each window, or NULL: divide by `divisor` */
  double divisor;
  int64_t n_image, n_pixels;
} Pooling;

static void
count (void *user, int64_t image, int64_t pixel, int64_t place)
{
  ((double *)user)[pixel]++;
}

static void
take_larger (void *user, int64_t image, int64_t pixel, int64_t place)
{
  const Pooling *p = user;

  if (p->in[image] > p->out[pixel])
    {
      p->out[pixel] = p->in[image];
      p->places[pixel] = (double)place;
    }
}

static double
divisor_of (const Pooling *p, int64_t pixel)
{
  return p->covered != NULL ? p->covered[pixel] : p->divisor;
}

static void
take_share (void *user, int64_t image, int64_t pixel, int64_t place)
{
  const Pooling *p = user;

  p->out[pixel] += p->in[image] / divisor_of (p, pixel);
}

static void
give_share (void *user, int64_t image, int64_t pixel, int64_t place)
{
  const Pooling *p = user;

  p->out[image] += p->in[pixel] / divisor_of (p, pixel);
}

static void
give_to_place (void *user, int64_t image, int64_t pixel, int64_t place)
{
  const Pooling *p = user;

  if (p->other[pixel] == (double)(place + 1))
    p->out[image] += p->in[pixel];
}

static void
take_from_place (void *user, int64_t image, int64_t pixel, int64_t place)
{
  const Pooling *p = user;

  if (p->other[pixel] == (double)(place + 1))
    p->out[pixel] = p->in[image];
}

typedef enum
{
  BY_WINDOW,
  BY_COVERED,
  BY_ONE
} Divisor;

/* One channel after the other; `in` walks with the image or with the pixels as `visit` reads.
 */
static void
pool (const Windows *w, const TdShape *image, const TdShape *pixels, Visit visit, Divisor by,
      const double *in, const double *other, double *out, double *places)
{
  const bool image_in = visit == take_larger || visit == take_share || visit == take_from_place;
  const int64_t n_image = spatial (image), n_pixels = spatial (pixels);
  double covered[256] = { 0 };
  double window = 1;

  each_pair (w, image, pixels, count, covered);
  for (int i = 0; i < image->ndim - 2; i++)
    window *= w->ksize[i];
  for (int64_t c = 0; c < image->dim[0] * image->dim[1]; c++)
    {
      Pooling p = { .in = in + c * (image_in ? n_image : n_pixels),
                    .other = other != NULL ? other + c * n_pixels : NULL,
                    .out = out + c * (image_in ? n_pixels : n_image),
                    .places = places != NULL ? places + c * n_pixels : NULL,
                    .covered = by == BY_COVERED ? covered : NULL,
                    .divisor = by == BY_ONE ? 1 : window };

      for (int64_t i = 0; visit == take_larger && i < n_pixels; i++)
        p.out[i] = -INFINITY;
      each_pair (w, image, pixels, visit, &p);
    }
}

static TdPoolNdOpt
pool_options (const Windows *w)
{
  TdPoolNdOpt o = { .pad_value = 0 };

  memcpy (o.ksize, w->ksize, sizeof w->ksize);
  memcpy (o.stride, w->stride, sizeof w->stride);
  memcpy (o.pad, w->pad, sizeof w->pad);
  return o;
}

static TdPool2dOpt
pool_options_2d (const Windows *w)
{
  return (TdPool2dOpt){ .ksize = { w->ksize[0], w->ksize[1] },
                        .stride = { w->stride[0], w->stride[1] },
                        .pad = { w->pad[0], w->pad[1] } };
}

static TdPoolAttrs
pool_attrs (const Windows *w, int ndim, const int *size)
{
  TdPoolAttrs a = { .n_ksize = ndim, .n_stride = ndim, .n_pad = ndim, .n_size = ndim };

  for (int i = 0; i < ndim; i++)
    {
      a.ksize[i] = w->ksize[i];
      a.stride[i] = w->stride[i];
      a.pad[i] = w->pad[i];
      a.size[i] = size[i];
    }
  return a;
}

#define WHOLE_POOL(name, windows, image, pixels, visit, by, other, places)                     \
  static void whole_##name (const OpCase *c, const double *const *in, double *const *out)      \
  {                                                                                            \
    pool (&windows, &image, &pixels, visit, by, in[c->n_in - 1], other, out[0], places);       \
  }
#define IN0 c->in[0].shape
#define IN1 c->in[1].shape
#define OUT c->out[0]

static const Windows plane = { .ksize = { 3, 2 }, .stride = { 2, 1 }, .pad = { 1, 1 } };
static const Windows cube = { .ksize = { 2, 3, 2 }, .stride = { 1, 2, 2 }, .pad = { 0, 1, 1 } };
static const Windows bar = { .ksize = { 3 }, .stride = { 2 }, .pad = { 1 } };
static const int plane_size[] = { 5, 4 }, cube_size[] = { 3, 4, 3 };

/* Output 1 as numbers, which the rows can hold against places. */
#define MAX_POOLING(name, f, options, type, windows, ...)                                      \
  CALL (max_##name, type o = options; TdVar * places; __VA_ARGS__; o.indices = &places;        \
        y[0] = f (x[0], o, NULL); y[1] = td_cast (places, td_dtype (x[0])))                    \
  WHOLE_POOL (max_##name, windows, IN0, OUT, take_larger, BY_ONE, NULL, out[1])

/* Windows of 2 x 2 side by side, which have loops of their own; the last hang over. */
static const Windows halves = { .ksize = { 2, 2 }, .stride = { 2, 2 } };
MAX_POOLING (2d, td_max_pooling_2d_at, pool_options_2d (&plane), TdPool2dOpt, plane)
MAX_POOLING (3d, td_max_pooling_3d_at, pool_options (&cube), TdPoolNdOpt, cube)
MAX_POOLING (1d, td_max_pooling_1d_at, pool_options (&bar), TdPoolNdOpt, bar,
             o.cover_all = true)
MAX_POOLING (halves, td_max_pooling_2d_at, pool_options_2d (&halves), TdPool2dOpt, halves,
             o.cover_all = true)

/* More places than a byte tells apart. */
static const Windows wide = { .ksize = { 16, 17 }, .stride = { 5, 5 }, .pad = { 14, 15 } };
static const int wide_size[] = { 3, 3 };
MAX_POOLING (wide, td_max_pooling_2d_at, pool_options_2d (&wide), TdPool2dOpt, wide)

/* Remembered places, from 1 on: one that is nowhere, and some that lie in the padding. */
static const double places_2d[] = { 4, 6, 0, 1, 5, 6, 2, 3, 4, 5, 6, 1, 2, 3, 4,
                                    4, 4, 4, 6, 6, 2, 5, 5, 3, 1, 1, 3, 2, 4, 0 };
static const double places_3d[] = { 12, 1, 6, 0, 8, 8, 4, 10, 12, 3, 2, 11, 5, 7, 9, 4 };
static const double places_wide[]
    = { 272, 254, 255, 256, 257, 0, 145, 144, 126, 127, 128, 162, 161, 1, 16, 17 };
CALL (max_grad_wide, TdPoolAttrs a = pool_attrs (&wide, 2, wide_size);
      y[0] = td__apply2 (&td__max_pooling_2d_grad_class, &a, NULL, x[0], x[1]))
WHOLE_POOL (max_grad_wide, wide, OUT, IN0, give_to_place, BY_ONE, in[0], NULL)
CALL (max_gather_wide, TdPoolAttrs a = pool_attrs (&wide, 2, wide_size);
      y[0] = td__apply2 (&td__max_pooling_nd_gather_class, &a, NULL, x[0], x[1]))
WHOLE_POOL (max_gather_wide, wide, IN1, IN0, take_from_place, BY_ONE, in[0], NULL)
CALL (max_grad_2d, TdPoolAttrs a = pool_attrs (&plane, 2, plane_size);
      y[0] = td__apply2 (&td__max_pooling_2d_grad_class, &a, NULL, x[0], x[1]))
WHOLE_POOL (max_grad_2d, plane, OUT, IN0, give_to_place, BY_ONE, in[0], NULL)
CALL (max_grad_3d, TdPoolAttrs a = pool_attrs (&cube, 3, cube_size);
      y[0] = td__apply2 (&td__max_pooling_nd_grad_class, &a, NULL, x[0], x[1]))
WHOLE_POOL (max_grad_3d, cube, OUT, IN0, give_to_place, BY_ONE, in[0], NULL)
CALL (max_gather_2d, TdPoolAttrs a = pool_attrs (&plane, 2, plane_size);
      y[0] = td__apply2 (&td__max_pooling_2d_gather_class, &a, NULL, x[0], x[1]))
WHOLE_POOL (max_gather_2d, plane, IN1, OUT, take_from_place, BY_ONE, in[0], NULL)
CALL (max_gather_3d, TdPoolAttrs a = pool_attrs (&cube, 3, cube_size);
      y[0] = td__apply2 (&td__max_pooling_nd_gather_class, &a, NULL, x[0], x[1]))
WHOLE_POOL (max_gather_3d, cube, IN1, OUT, take_from_place, BY_ONE, in[0], NULL)

CALL (average_2d, TdPool2dOpt o = pool_options_2d (&plane);
      y[0] = td_average_pooling_2d_at (x[0], o, NULL))
WHOLE_POOL (average_2d, plane, IN0, OUT, take_share, BY_WINDOW, NULL, NULL)
CALL (average_3d, TdPoolNdOpt o = pool_options (&cube);
      y[0] = td_average_pooling_3d_at (x[0], o, NULL))
WHOLE_POOL (average_3d, cube, IN0, OUT, take_share, BY_WINDOW, NULL, NULL)
CALL (average_1d, TdPoolNdOpt o = pool_options (&bar);
      y[0] = td_average_pooling_1d_at (x[0], o, NULL))
WHOLE_POOL (average_1d, bar, IN0, OUT, take_share, BY_WINDOW, NULL, NULL)
CALL (average_covered, TdPoolNdOpt o = pool_options (&plane); o.pad_value = TD_NONE;
      y[0] = td_average_pooling_nd_at (x[0], o, NULL))
WHOLE_POOL (average_covered, plane, IN0, OUT, take_share, BY_COVERED, NULL, NULL)
CALL (average_grad_2d, TdPoolAttrs a = pool_attrs (&plane, 2, plane_size);
      y[0] = td__apply1 (&td__average_pooling_2d_grad_class, &a, NULL, x[0]))
WHOLE_POOL (average_grad_2d, plane, OUT, IN0, give_share, BY_WINDOW, NULL, NULL)
CALL (average_grad_covered, TdPoolAttrs a = pool_attrs (&plane, 2, plane_size);
      a.pad_value = TD_NONE;
      y[0] = td__apply1 (&td__average_pooling_nd_grad_class, &a, NULL, x[0]))
WHOLE_POOL (average_grad_covered, plane, OUT, IN0, give_share, BY_COVERED, NULL, NULL)

CALL (unpooling, y[0] = td_unpooling_2d_ (x[0], &(TdUnpool2dOpt){ .ksize = { 3, 2 },
                                                                  .stride = { 2, 1 },
                                                                  .pad = { 1, 1 } }))
WHOLE_POOL (unpooling, plane, OUT, IN0, give_share, BY_ONE, NULL, NULL)
CALL (unpooling_cut, y[0] = td_unpooling_2d_ (x[0], &(TdUnpool2dOpt){ TD_UNPOOL_2D_DEFAULTS,
                                                                      .outsize = { 3, 4 } }))
WHOLE_POOL (unpooling_cut, halves, OUT, IN0, give_share, BY_ONE, NULL, NULL)
/* Chainer's smallest image that cover_all would have pooled to this. */
CALL (unpooling_covering, y[0] = td_unpooling_2d_ (x[0], NULL))
WHOLE_POOL (unpooling_covering, halves, OUT, IN0, give_share, BY_ONE, NULL, NULL)
static const int pooled_size[] = { 3, 5 };
CALL (unpooling_grad, TdPoolAttrs a = pool_attrs (&plane, 2, pooled_size);
      y[0] = td__apply1 (&td__unpooling_2d_grad_class, &a, NULL, x[0]))
WHOLE_POOL (unpooling_grad, plane, IN0, OUT, take_share, BY_ONE, NULL, NULL)

CALL (adaptive, y[0] = td_adaptive_average_pooling_2d (x[0], 3, 2))
static void
whole_adaptive (const OpCase *c, const double *const *in, double *const *out)
{
  for (int o = 0; o < 2 * 3 * 2; o++)
    {
      const int r0 = o / 2 % 3 * 5 / 3, r1 = ((o / 2 % 3 + 1) * 5 + 2) / 3;
      const int s0 = o % 2 * 7 / 2, s1 = ((o % 2 + 1) * 7 + 1) / 2;

      for (int r = r0; r < r1; r++)
        for (int s = s0; s < s1; s++)
          out[0][o] += in[0][(o / 6 * 5 + r) * 7 + s] / ((r1 - r0) * (s1 - s0));
    }
}
CALL (
    adaptive_grad,
    const struct {
      TdAxisInts size;
      int n;
    } a
    = { { 5, 7 }, 2 };
    y[0] = td__apply1 (&td__adaptive_average_pooling_2d_grad_class, &a, NULL, x[0]))
static void
whole_adaptive_grad (const OpCase *c, const double *const *in, double *const *out)
{
  for (int o = 0; o < 2 * 3 * 2; o++)
    {
      const int r0 = o / 2 % 3 * 5 / 3, r1 = ((o / 2 % 3 + 1) * 5 + 2) / 3;
      const int s0 = o % 2 * 7 / 2, s1 = ((o % 2 + 1) * 7 + 1) / 2;

      for (int r = r0; r < r1; r++)
        for (int s = s0; s < s1; s++)
          out[0][(o / 6 * 5 + r) * 7 + s] += in[0][o] / ((r1 - r0) * (s1 - s0));
    }
}

/* --- calls that must fail --- */

CALL (conv_2d, y[0] = td_convolution_2d_ (x[0], x[1], x[2], NULL))
CALL (conv_nd, y[0] = td_convolution_nd_ (x[0], x[1], NULL, NULL))
CALL (conv_1d, y[0] = td_convolution_1d_ (x[0], x[1], NULL, NULL))
CALL (conv_stride_0,
      y[0] = td_convolution_nd_ (x[0], x[1], NULL,
                                 &(TdConvNdOpt){
                                     .stride = { 1, 2 }, .dilate = { 1, 1, 1 }, .groups = 1 }))
CALL (deconv_2d, y[0] = td_deconvolution_2d_ (x[0], x[1], x[2], NULL))
CALL (deconv_no, y[0] = td_deconvolution_2d_ (x[0], x[1], NULL,
                                              &(TdDeconv2dOpt){ TD_DECONV_2D_DEFAULTS,
                                                                .outsize = { 9, 5 } }))
CALL (max_pooling_2d, y[0] = td_max_pooling_2d_ (x[0], NULL))
CALL (max_pooling_nd, y[0] = td_max_pooling_nd_ (x[0], NULL))
CALL (average_pooling_2d, y[0] = td_average_pooling_2d_ (x[0], NULL))
CALL (pad_value,
      y[0] = td_average_pooling_nd_ (x[0], &(TdPoolNdOpt){ TD_AVERAGE_POOL_ND_DEFAULTS,
                                                           .pad_value = 3 }))
CALL (adaptive_0, y[0] = td_adaptive_average_pooling_2d (x[0], 2, 0))
CALL (huge_window,
      y[0] = td_max_pooling_nd_ (x[0], &(TdPoolNdOpt){ .ksize = { 65536, 65536 } }))

/* --- the tables --- */

// clang-format off
#define X(...) { S (__VA_ARGS__), -1.5, 1.5, 0, 0, NULL }
#define INDICES(numbers, ...) { S (__VA_ARGS__), 0, 0, TD_U8, 0, numbers }
#define WIDE_INDICES(numbers, ...) { S (__VA_ARGS__), 0, 0, TD_I32, 0, numbers }
#define ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .whole = whole_##name, __VA_ARGS__ }

const OpCase op_cases_nd[] = {
  ROW ("convolution_2d", conv_plain, 3, .in = { X (2, 2, 4, 5), X (3, 2, 3, 2), X (3) }, .out = { S (2, 3, 2, 4) }),
  ROW ("convolution_2d", conv_strided, 3, .in = { X (2, 2, 4, 5), X (4, 1, 3, 2), X (4) }, .out = { S (2, 4, 2, 7) }),
  ROW ("convolution_2d", conv_covering, 2, .in = { X (2, 2, 5, 6), X (3, 2, 2, 2) }, .out = { S (2, 3, 3, 3) }),
  { .op = "convolution_2d", .variant = "dilated", .call = call_dilated, .n_in = 3, .n_out = 1, .in = { X (2, 2, 4, 5), X (4, 1, 3, 2), X (4) }, .out = { S (2, 4, 2, 7) }, .whole = whole_conv_strided },
  ROW ("convolution_2d", depthwise, 3, .in = { X (2, 3, 3, 4), X (2, 3, 2, 2), X (6) }, .out = { S (2, 6, 4, 2) }),
  ROW ("convolution_2d_grad_w", grad_w_plain, 2, .in = { X (2, 2, 4, 5), X (2, 3, 2, 4) }, .out = { S (3, 2, 3, 2) }),
  ROW ("convolution_2d_grad_w", grad_w_strided, 2, .in = { X (2, 2, 4, 5), X (2, 4, 2, 7) }, .out = { S (4, 1, 3, 2) }),
  ROW ("convolution_nd", conv_line, 3, .in = { X (2, 3, 7), X (2, 3, 3), X (2) }, .out = { S (2, 2, 4) }),
  ROW ("convolution_nd", conv_space, 3, .in = { X (2, 2, 3, 3, 4), X (4, 1, 2, 3, 2), X (4) }, .out = { S (2, 4, 2, 3, 2) }),
  ROW ("convolution_nd", conv_four, 2, .in = { X (2, 2, 2, 1, 2, 4), X (3, 2, 2, 1, 2, 2) }, .out = { S (2, 3, 1, 1, 3, 2) }),
  ROW ("convolution_nd_grad_w", grad_w_line, 2, .in = { X (2, 3, 7), X (2, 2, 4) }, .out = { S (2, 3, 3) }),
  ROW ("convolution_nd_grad_w", grad_w_space, 2, .in = { X (2, 2, 3, 3, 4), X (2, 4, 2, 3, 2) }, .out = { S (4, 1, 2, 3, 2) }),
  ROW ("convolution_nd_grad_w", grad_w_four, 2, .in = { X (2, 2, 2, 1, 2, 4), X (2, 3, 1, 1, 3, 2) }, .out = { S (3, 2, 2, 1, 2, 2) }),
  ROW ("deconvolution_2d", deconv_plain, 3, .in = { X (2, 3, 2, 4), X (3, 2, 3, 2), X (2) }, .out = { S (2, 2, 4, 5) }),
  ROW ("deconvolution_2d", deconv_strided, 3, .in = { X (2, 4, 2, 7), X (4, 1, 3, 2), X (2) }, .out = { S (2, 2, 4, 5) }),
  ROW ("deconvolution_2d", deconv_up, 2, .in = { X (2, 3, 2, 2), X (3, 2, 3, 2) }, .out = { S (2, 2, 3, 5) }),
  { .op = "deconvolution_2d", .variant = "outsize", .call = call_deconv_wide, .n_in = 2, .n_out = 1, .in = { X (2, 3, 2, 2), X (3, 2, 3, 2) }, .out = { S (2, 2, 4, 6) }, .whole = whole_deconv_up },
  ROW ("deconvolution_nd", deconv_line, 3, .in = { X (2, 2, 4), X (2, 3, 3), X (3) }, .out = { S (2, 3, 7) }),
  ROW ("deconvolution_nd", deconv_space, 3, .in = { X (2, 4, 2, 3, 2), X (4, 1, 2, 3, 2), X (2) }, .out = { S (2, 2, 3, 3, 4) }),
  ROW ("deconvolution_nd", deconv_four, 3, .in = { X (2, 3, 1, 1, 3, 2), X (3, 2, 2, 1, 2, 2), X (2) }, .out = { S (2, 2, 2, 1, 2, 4) }),
  { .op = "deconvolution_nd", .variant = "up", .call = call_deconv_up_nd, .n_in = 2, .n_out = 1, .in = { X (2, 3, 2, 2), X (3, 2, 3, 2) }, .out = { S (2, 2, 3, 5) }, .whole = whole_deconv_up },
  { .op = "max_pooling_2d", .variant = "max_2d", .call = call_max_2d, .n_in = 1, .n_out = 2, .in = { X (1, 2, 5, 4) }, .out = { S (1, 2, 3, 5), S (1, 2, 3, 5) }, .whole = whole_max_2d },
  { .op = "max_pooling_2d", .variant = "max_halves", .call = call_max_halves, .n_in = 1, .n_out = 2, .in = { X (1, 2, 5, 7) }, .out = { S (1, 2, 3, 4), S (1, 2, 3, 4) }, .whole = whole_max_halves },
  ROW ("max_pooling_2d_grad", max_grad_2d, 2, .in = { INDICES (places_2d, 1, 2, 3, 5), X (1, 2, 3, 5) }, .out = { S (1, 2, 5, 4) }),
  ROW ("max_pooling_2d_gather", max_gather_2d, 2, .in = { INDICES (places_2d, 1, 2, 3, 5), X (1, 2, 5, 4) }, .out = { S (1, 2, 3, 5) }),
  { .op = "max_pooling_2d", .variant = "max_wide", .call = call_max_wide, .n_in = 1, .n_out = 2, .in = { X (1, 2, 3, 3) }, .out = { S (1, 2, 4, 4), S (1, 2, 4, 4) }, .whole = whole_max_wide },
  ROW ("max_pooling_2d_grad", max_grad_wide, 2, .in = { WIDE_INDICES (places_wide, 1, 1, 4, 4), X (1, 1, 4, 4) }, .out = { S (1, 1, 3, 3) }),
  ROW ("max_pooling_nd_gather", max_gather_wide, 2, .in = { WIDE_INDICES (places_wide, 1, 1, 4, 4), X (1, 1, 3, 3) }, .out = { S (1, 1, 4, 4) }),
  { .op = "max_pooling_nd", .variant = "max_1d", .call = call_max_1d, .n_in = 1, .n_out = 2, .in = { X (2, 2, 6) }, .out = { S (2, 2, 4), S (2, 2, 4) }, .whole = whole_max_1d },
  { .op = "max_pooling_nd", .variant = "max_3d", .call = call_max_3d, .n_in = 1, .n_out = 2, .in = { X (2, 1, 3, 4, 3) }, .out = { S (2, 1, 2, 2, 2), S (2, 1, 2, 2, 2) }, .whole = whole_max_3d },
  ROW ("max_pooling_nd_grad", max_grad_3d, 2, .in = { INDICES (places_3d, 2, 1, 2, 2, 2), X (2, 1, 2, 2, 2) }, .out = { S (2, 1, 3, 4, 3) }),
  ROW ("max_pooling_nd_gather", max_gather_3d, 2, .in = { INDICES (places_3d, 2, 1, 2, 2, 2), X (2, 1, 3, 4, 3) }, .out = { S (2, 1, 2, 2, 2) }),
  ROW ("average_pooling_2d", average_2d, 1, .in = { X (1, 2, 5, 4) }, .out = { S (1, 2, 3, 5) }),
  ROW ("average_pooling_2d_grad", average_grad_2d, 1, .in = { X (1, 2, 3, 5) }, .out = { S (1, 2, 5, 4) }),
  ROW ("average_pooling_nd", average_1d, 1, .in = { X (2, 2, 7) }, .out = { S (2, 2, 4) }),
  ROW ("average_pooling_nd", average_3d, 1, .in = { X (2, 1, 3, 4, 3) }, .out = { S (2, 1, 2, 2, 2) }),
  ROW ("average_pooling_nd", average_covered, 1, .in = { X (1, 2, 5, 4) }, .out = { S (1, 2, 3, 5) }),
  ROW ("average_pooling_nd_grad", average_grad_covered, 1, .in = { X (1, 2, 3, 5) }, .out = { S (1, 2, 5, 4) }),
  ROW ("unpooling_2d", unpooling, 1, .in = { X (1, 2, 3, 5) }, .out = { S (1, 2, 5, 4) }),
  ROW ("unpooling_2d", unpooling_cut, 1, .in = { X (1, 2, 2, 2) }, .out = { S (1, 2, 3, 4) }),
  ROW ("unpooling_2d", unpooling_covering, 1, .in = { X (1, 2, 2, 3) }, .out = { S (1, 2, 3, 5) }),
  ROW ("unpooling_2d_grad", unpooling_grad, 1, .in = { X (1, 2, 5, 4) }, .out = { S (1, 2, 3, 5) }),
  ROW ("adaptive_average_pooling_2d", adaptive, 1, .in = { X (1, 2, 5, 7) }, .out = { S (1, 2, 3, 2) }),
  ROW ("adaptive_average_pooling_2d_grad", adaptive_grad, 1, .in = { X (1, 2, 3, 2) }, .out = { S (1, 2, 5, 7) }),
};
const int n_op_cases_nd = (int)(sizeof op_cases_nd / sizeof op_cases_nd[0]);

#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
#define E3(d, s, e, t, f, u) 3, { { d, s }, { e, t }, { f, u } }
const OpError op_errors_nd[] = {
  { "convolution_2d", call_conv_2d, E3 (TD_F32, S (1, 3, 8, 8), TD_F32, S (4, 2, 3, 3), TD_F32, S (4)), TD_ERR_SHAPE, "convolution_2d: x.shape[1] == W.shape[1] * groups and W.shape[0] % groups == 0 expected, got 3, 2 * 1 and 4: x (1, 3, 8, 8) f32, W (4, 2, 3, 3) f32, b (4) f32" },
  { "convolution_2d", call_conv_2d, E3 (TD_F32, S (1, 3, 2, 8), TD_F32, S (4, 3, 3, 3), TD_F32, S (4)), TD_ERR_SHAPE, "convolution_2d: height of the output > 0 expected, the window does not fit the image: x (1, 3, 2, 8) f32, W (4, 3, 3, 3) f32, b (4) f32" },
  { "convolution_nd", call_conv_nd, E2 (TD_F32, S (1, 3), TD_F32, S (4, 3)), TD_ERR_SHAPE, "convolution_nd: x.ndim >= 3 expected, got 2: x (1, 3) f32, W (4, 3) f32" },
  { "convolution_nd", call_conv_nd, E2 (TD_F32, S (1, 3, 5, 5, 5), TD_F32, S (4, 3, 3, 3)), TD_ERR_SHAPE, "convolution_nd: W.ndim == 5 expected, got 4: x (1, 3, 5, 5, 5) f32, W (4, 3, 3, 3) f32" },
  { "convolution_nd", call_conv_1d, E2 (TD_F32, S (1, 3, 5, 5), TD_F32, S (4, 3, 3, 3)), TD_ERR_SHAPE, "convolution_nd: x.ndim == 3 expected, got 4: x (1, 3, 5, 5) f32, W (4, 3, 3, 3) f32" },
  { "convolution_nd", call_conv_stride_0, E2 (TD_F32, S (1, 3, 5, 5, 5), TD_F32, S (4, 3, 3, 3, 3)), TD_ERR_ARG, "convolution_nd: stride >= 1 expected, got (1, 2, 0)" },
  { "deconvolution_2d", call_deconv_2d, E3 (TD_F32, S (1, 3, 4, 4), TD_F32, S (4, 3, 3, 3), TD_F32, S (3)), TD_ERR_SHAPE, "deconvolution_2d: x.shape[1] == W.shape[0] expected, got 3 != 4: x (1, 3, 4, 4) f32, W (4, 3, 3, 3) f32, b (3) f32" },
  { "deconvolution_2d", call_deconv_2d, E3 (TD_F32, S (1, 4, 4, 4), TD_F32, S (4, 3, 3, 3), TD_F32, S (4)), TD_ERR_SHAPE, "deconvolution_2d: b.shape[0] == W.shape[1] * groups expected, got 4 != 3 * 1: x (1, 4, 4, 4) f32, W (4, 3, 3, 3) f32, b (4) f32" },
  { "deconvolution_2d", call_deconv_no, E2 (TD_F32, S (1, 4, 4, 4), TD_F32, S (4, 3, 2, 2)), TD_ERR_SHAPE, "deconvolution_2d: height of 8 to 8 expected for an image of 9, got 4: x (1, 4, 4, 4) f32, W (4, 3, 2, 2) f32" },
  { "max_pooling_2d", call_max_pooling_2d, 1, { { TD_F32, S (2, 3) } }, TD_ERR_SHAPE, "max_pooling_2d: x.ndim == 4 expected, got 2: x (2, 3) f32" },
  { "max_pooling_nd", call_max_pooling_nd, 1, { { TD_F32, S (2, 3) } }, TD_ERR_SHAPE, "max_pooling_nd: x.ndim >= 3 expected, got 2: x (2, 3) f32" },
  { "max_pooling_nd", call_huge_window, 1, { { TD_F32, S (1, 1, 3, 3) } }, TD_ERR_ARG, "max_pooling_nd: windows of at most 2147483647 places expected" },
  { "max_pooling_2d_grad", call_max_grad_2d, 2, { { TD_I32, S (1, 2, 3, 5) }, { TD_F32, S (1, 2, 3, 5) } }, TD_ERR_DTYPE, "max_pooling_2d_grad: index.dtype == u8 expected, got i32: index (1, 2, 3, 5) i32, gy (1, 2, 3, 5) f32" },
  { "max_pooling_nd_gather", call_max_gather_wide, 2, { { TD_U8, S (1, 1, 4, 4) }, { TD_F32, S (1, 1, 3, 3) } }, TD_ERR_DTYPE, "max_pooling_nd_gather: index.dtype == i32 expected, got u8: index (1, 1, 4, 4) u8, gy (1, 1, 3, 3) f32" },
  { "average_pooling_2d", call_average_pooling_2d, 1, { { TD_I32, S (1, 1, 4, 4) } }, TD_ERR_DTYPE, "average_pooling_2d: x.dtype.kind == f expected, got i32: x (1, 1, 4, 4) i32" },
  { "average_pooling_nd", call_pad_value, 1, { { TD_F32, S (1, 1, 4) } }, TD_ERR_ARG, "average_pooling_nd: pad_value 0 or None expected, got 3" },
  { "adaptive_average_pooling_2d", call_adaptive_0, 1, { { TD_F32, S (1, 1, 4, 4) } }, TD_ERR_ARG, "adaptive_average_pooling_2d: output_size >= 1 expected, got (2, 0)" },
};
// clang-format on
const int n_op_errors_nd = (int)(sizeof op_errors_nd / sizeof op_errors_nd[0]);
