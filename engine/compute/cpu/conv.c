/* Convolution on the CPU in f32 over one, two or three axes: forward and data gradient.
 *
 * Both go over the output in tiles of pixels that fit the second-level cache.  Forward packs
 * the windows of a tile straight into panels of B (no image-wide im2col) and multiplies them
 * with filters packed once for the whole batch; the data gradient multiplies first and then
 * adds each panel of columns back to the image.  Images are shared out over the threads.
 *
 * SPDX-License-Identifier: MIT */
#include "conv.h"
#include "halves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conv-onednn.h"
#include "cpu.h"
#include "gemm.h"
#include "twins.h"

enum
{
  TILE_FLOATS = 131072 /* packed windows of one tile: 512 KiB */
};

/* Pixels of one panel that lie side by side in one row of the output: where in the panel, how
 * many, and where in the image the window of the first begins. */
typedef struct
{
  int64_t at, length, begin;
} Span;

typedef struct
{
  const TdConvSizes *s;
  const TdGemmTiles *tiles;
  const float *packed; /* filters, group after group */
  const float *in, *bias;
  float *out;
  int64_t tile; /* pixels */
  TdGemm end;   /* td__conv_end */
  bool failed;
} Job;

/* Padding included, as far as windows reach. */
static int64_t
padded_size (int64_t size, int64_t ksize, int64_t n, int64_t stride, int64_t pad,
             int64_t dilate)
{
  const int64_t reach = (n - 1) * stride + (ksize - 1) * dilate + 1;

  return size + pad > reach ? size + pad : reach;
}

TdConvSizes
td__conv_sizes (const TdConv *a, const TdShape *x, const TdShape *W, const TdShape *y)
{
  TdConvSizes s = { .n = x->dim[0], .c = x->dim[1], .o = W->dim[0], .groups = a->groups };
  int64_t *const sizes[3][6] = {
    { &s.d, &s.kd, &s.od, &s.sz, &s.pz, &s.dz },
    { &s.h, &s.kh, &s.oh, &s.sy, &s.py, &s.dy },
    { &s.w, &s.kw, &s.ow, &s.sx, &s.px, &s.dx },
  };

  for (int axis = 0; axis < 3; axis++)
    {
      const int i = axis - 3 + a->ndim;
      const bool there = i >= 0;
      const int64_t values[6]
          = { there ? x->dim[2 + i] : 1, there ? W->dim[2 + i] : 1, there ? y->dim[2 + i] : 1,
              there ? a->stride[i] : 1,  there ? a->pad[i] : 0,     there ? a->dilate[i] : 1 };

      for (int k = 0; k < 6; k++)
        *sizes[axis][k] = values[k];
    }
  s.cg = s.c / s.groups;
  s.og = s.o / s.groups;
  s.k = s.cg * s.kd * s.kh * s.kw;
  s.pixels = s.od * s.oh * s.ow;
  s.image = s.d * s.h * s.w;
  s.dp = padded_size (s.d, s.kd, s.od, s.sz, s.pz, s.dz);
  s.hp = padded_size (s.h, s.kh, s.oh, s.sy, s.py, s.dy);
  s.wp = padded_size (s.w, s.kw, s.ow, s.sx, s.px, s.dx);
  return s;
}

/* Where row i of slice z begins in a padded channel. */
static inline int64_t
padded_row (const TdConvSizes *s, int64_t z, int64_t i)
{
  return ((z + s->pz) * s->hp + i + s->py) * s->wp + s->px;
}

const float *
td__conv_image (const TdConvSizes *s, const float *x, int64_t *stride, int64_t *plane)
{
  float *copy;

  if (!td__conv_padded (s))
    {
      *stride = s->w;
      *plane = s->image;
      return x;
    }
  *stride = s->wp;
  *plane = s->dp * s->hp * s->wp;
  copy = td__cpu_scratch (TD_SCRATCH_IMAGE, (size_t)(s->cg * *plane) * sizeof *copy);
  if (copy == NULL)
    return NULL;
  memset (copy, 0, (size_t)(s->cg * *plane) * sizeof *copy);
  for (int64_t cz = 0; cz < s->cg * s->d; cz++)
    for (int64_t i = 0; i < s->h; i++)
      memcpy (copy + cz / s->d * *plane + padded_row (s, cz % s->d, i),
              x + (cz * s->h + i) * s->w, (size_t)s->w * sizeof *copy);
  return copy;
}

/* Cut n pixels from p on into spans of an image with such rows; returns how many. */
static int
spans_of (const TdConvSizes *s, int64_t p, int64_t n, int64_t stride, Span *spans)
{
  int count = 0;

  for (int64_t at = 0; at < n; count++)
    {
      const int64_t row = (p + at) / s->ow, ox = (p + at) % s->ow;
      const int64_t left = s->ow - ox, length = left < n - at ? left : n - at;

      spans[count] = (Span){ at, length, td__conv_row (s, row, stride) + ox * s->sx };
      at += length;
    }
  return count;
}

/* One span of one panel, for every place in the window.  length is a constant where it is
 * inlined with one, so that short copies are a few instructions. */
static inline __attribute__ ((always_inline)) void
pack_span (const TdConvSizes *s, const float *x, int64_t stride, int64_t plane, int64_t sx,
           int64_t length, int64_t nr, float *out)
{
  const int64_t slice = s->dz * td__conv_slice (s);

  for (int64_t c = 0; c < s->cg; c++)
    for (int64_t z = 0; z < s->kd; z++)
      for (int64_t i = 0; i < s->kh; i++)
        for (int64_t j = 0; j < s->kw; j++, out += nr)
          {
            const float *from = x + c * plane + z * slice + i * s->dy * stride + j * s->dx;

            if (sx == 1)
              memcpy (out, from, (size_t)length * sizeof *out);
            else
              for (int64_t t = 0; t < length; t++)
                out[t] = from[t * sx];
          }
}

/* The windows of n <= nr pixels from p on: out[k][nr]. */
static inline __attribute__ ((always_inline)) void
pack_windows_body (const TdConvSizes *s, const float *x, int64_t stride, int64_t plane,
                   int64_t p, int64_t n, int64_t nr, float *out)
{
  Span spans[32];
  const int count = spans_of (s, p, n, stride, spans);

  if (n < nr)
    memset (out, 0, (size_t)(s->k * nr) * sizeof *out);
  for (int q = 0; q < count; q++)
    {
      const Span *v = &spans[q];
      const float *from = x + v->begin;

      if (s->sx != 1)
        pack_span (s, from, stride, plane, s->sx, v->length, nr, out + v->at);
      else if (v->length == 8)
        pack_span (s, from, stride, plane, 1, 8, nr, out + v->at);
      else if (v->length == 16)
        pack_span (s, from, stride, plane, 1, 16, nr, out + v->at);
      else if (v->length == 32)
        pack_span (s, from, stride, plane, 1, 32, nr, out + v->at);
      else
        pack_span (s, from, stride, plane, 1, v->length, nr, out + v->at);
    }
}

#define WINDOWS_PARAMS                                                                         \
  const TdConvSizes *s, const float *x, int64_t stride, int64_t plane, int64_t p, int64_t n,   \
      int64_t nr, float *out
TD_TWINS (pack_windows, (WINDOWS_PARAMS), (s, x, stride, plane, p, n, nr, out))

/* Images [begin, end) forward. */
static void
forward_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const TdConvSizes *s = job->s;
  const int64_t nr = job->tiles->nr;
  float *b = td__cpu_scratch (TD_SCRATCH_B, (size_t)(job->tile * s->k) * sizeof *b);

  for (int64_t ig = begin * s->groups; ig < end * s->groups; ig++)
    {
      const int64_t g = ig % s->groups;
      float *y = job->out + ig * s->og * s->pixels;
      int64_t stride, plane;
      const float *x = td__conv_image (s, job->in + ig * s->cg * s->image, &stride, &plane);

      if (b == NULL || x == NULL)
        {
          __atomic_store_n (&job->failed, true, __ATOMIC_RELAXED);
          return;
        }
      if (job->bias != NULL)
        for (int64_t o = 0; o < s->og; o++)
          for (int64_t p = 0; p < s->pixels; p++)
            y[o * s->pixels + p] = job->bias[g * s->og + o];
      for (int64_t p = 0; p < s->pixels; p += job->tile)
        {
          const int64_t n = s->pixels - p < job->tile ? s->pixels - p : job->tile;

          for (int64_t q = 0; q < n; q += nr)
            pack_windows (s, x, stride, plane, p + q, n - q < nr ? n - q : nr, nr,
                          b + q * s->k);
          td__gemm_block (job->tiles, s->og, n, s->k, job->packed + g * s->og * s->k, b, y + p,
                          s->pixels, job->bias != NULL);
          td__gemm_end_f32 (&job->end, ig * s->og, s->og, p, n, y + p);
        }
    }
}

/* Add the columns of n pixels from p on, col[k][nr], to the image they came from. */
static inline __attribute__ ((always_inline)) void
add_windows_body (const TdConvSizes *s, const float *col, int64_t p, int64_t n, int64_t nr,
                  float *x, int64_t stride, int64_t plane)
{
  const int64_t slice = s->dz * td__conv_slice (s);
  Span spans[32];
  const int count = spans_of (s, p, n, stride, spans);

  for (int64_t c = 0; c < s->cg; c++)
    for (int64_t z = 0; z < s->kd; z++)
      for (int64_t i = 0; i < s->kh; i++)
        for (int64_t j = 0; j < s->kw; j++, col += nr)
          for (int q = 0; q < count; q++)
            {
              const Span *v = &spans[q];
              float *to = x + c * plane + z * slice + i * s->dy * stride + j * s->dx + v->begin;
              const float *from = col + v->at;

              if (s->sx == 1 && v->length == 8)
                for (int t = 0; t < 8; t++)
                  to[t] += from[t];
              else if (s->sx == 1)
                for (int64_t t = 0; t < v->length; t++)
                  to[t] += from[t];
              else
                for (int64_t t = 0; t < v->length; t++)
                  to[t * s->sx] += from[t];
            }
}

#define ADD_PARAMS                                                                             \
  const TdConvSizes *s, const float *col, int64_t p, int64_t n, int64_t nr, float *x,          \
      int64_t stride, int64_t plane
TD_TWINS (add_windows, (ADD_PARAMS), (s, col, p, n, nr, x, stride, plane))

/* Copy the image out of its padding. */
static void
crop (const TdConvSizes *s, const float *padded, float *gx)
{
  for (int64_t cz = 0; cz < s->cg * s->d; cz++)
    for (int64_t i = 0; i < s->h; i++)
      {
        const float *from
            = padded + cz / s->d * s->dp * s->hp * s->wp + padded_row (s, cz % s->d, i);
        float *to = gx + (cz * s->h + i) * s->w;

        memcpy (to, from, (size_t)s->w * sizeof *to);
      }
}

/* What the columns are added to: zeros, or the bias of each channel. */
static void
begin_image (float *x, int64_t channels, int64_t plane, const float *bias)
{
  for (int64_t c = 0; c < channels; c++)
    for (int64_t i = 0; i < plane; i++)
      x[c * plane + i] = bias != NULL ? bias[c] : 0;
}

/* Images [begin, end): the gradient of the data. */
static void
data_grad_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const TdConvSizes *s = job->s;
  const int64_t nr = job->tiles->nr;
  const bool pads = td__conv_padded (s);
  const int64_t stride = pads ? s->wp : s->w;
  const int64_t plane = pads ? s->dp * s->hp * s->wp : s->image;
  const size_t image_bytes = (size_t)(s->cg * plane) * sizeof (float);
  float *b = td__cpu_scratch (TD_SCRATCH_B, (size_t)(nr * s->og) * sizeof *b);
  float *col = td__cpu_scratch (TD_SCRATCH_C, (size_t)(nr * s->k) * sizeof *col);
  float *padded = pads ? td__cpu_scratch (TD_SCRATCH_IMAGE, image_bytes) : NULL;

  if (b == NULL || col == NULL || (pads && padded == NULL))
    {
      __atomic_store_n (&job->failed, true, __ATOMIC_RELAXED);
      return;
    }
  for (int64_t ig = begin * s->groups; ig < end * s->groups; ig++)
    {
      const int64_t g = ig % s->groups;
      const float *gy = job->in + ig * s->og * s->pixels;
      float *gx = job->out + ig * s->cg * s->image;
      float *to = pads ? padded : gx;

      begin_image (to, s->cg, plane, job->bias != NULL ? job->bias + g * s->cg : NULL);
      for (int64_t p = 0; p < s->pixels; p += nr)
        {
          const int64_t n = s->pixels - p < nr ? s->pixels - p : nr;

          td__gemm_pack (b, nr, gy + p, 1, s->pixels, n, s->og);
          td__gemm_block (job->tiles, s->k, n, s->og, job->packed + g * s->og * s->k, b, col,
                          nr, false);
          add_windows (s, col, p, n, nr, to, stride, plane);
        }
      if (pads)
        crop (s, padded, gx);
      td__gemm_end_f32 (&job->end, ig * s->cg, s->cg, 0, s->image, gx);
    }
}

/* Pack the filters of every group as panels of A: m rows, k long. */
static float *
pack_filters (const Job *job, const float *W, int64_t m, int64_t k, int64_t row_stride,
              int64_t k_stride)
{
  const TdConvSizes *s = job->s;
  const int64_t n_panels = (m + job->tiles->mr - 1) / job->tiles->mr;
  float *packed = td__cpu_scratch (TD_SCRATCH_A, (size_t)(s->groups * m * k) * sizeof *packed);

  if (packed == NULL)
    return NULL;
  for (int64_t g = 0; g < s->groups; g++)
    for (int64_t p = 0; p < n_panels; p++)
      {
        const int64_t row = td__gemm_panel_row (m, n_panels, p);
        const int64_t rows = td__gemm_panel_row (m, n_panels, p + 1) - row;

        td__gemm_pack (packed + g * m * k + row * k, rows, W + g * m * k + row * row_stride,
                       row_stride, k_stride, rows, k);
      }
  return packed;
}

/* A 1 x 1 window without stride sees rows as one long row. */
static void
flatten_rows (TdConvSizes *s)
{
  if (s->kd != 1 || s->kh != 1 || s->kw != 1 || s->sz != 1 || s->sy != 1 || s->sx != 1
      || td__conv_padded (s))
    return;
  s->w = s->wp = s->ow = s->image;
  s->d = s->dp = s->od = s->h = s->hp = s->oh = 1;
}

static TdStatus
conv_f32 (TdConvKind kind, const TdConv *attrs, TdConvSizes *s, const TdTensor *in, int n_in,
          TdTensor *out)
{
  Job job = { .s = s,
              .tiles = td__gemm_tiles (),
              .bias = n_in > 2 ? in[2].data : NULL,
              .out = out->data,
              .end = td__conv_end (attrs, kind == TD_CONV_FORWARD ? s->pixels : s->image) };
  const int64_t nr = job.tiles->nr;

  flatten_rows (s);
  if (kind == TD_CONV_WEIGHT_GRAD)
    return td__conv_weight_grad (s, in[0].data, in[1].data, out->data, attrs->accumulate);
  if (kind == TD_CONV_FORWARD)
    {
      int64_t tile = TILE_FLOATS / s->k / nr * nr, all = (s->pixels + nr - 1) / nr * nr;

      job.in = in[0].data;
      job.packed = pack_filters (&job, in[1].data, s->og, s->k, s->k, 1);
      tile = tile < 2 * nr ? 2 * nr : tile;
      job.tile = tile < all ? tile : all;
    }
  else
    {
      job.in = in[1].data;
      job.packed = pack_filters (&job, in[0].data, s->k, s->og, 1, s->k);
    }
  if (job.packed == NULL)
    return TD_ERR_MEMORY;
  td__cpu_parallel (s->n, 1, kind == TD_CONV_FORWARD ? forward_body : data_grad_body, &job);
  return job.failed ? TD_ERR_MEMORY : TD_OK;
}

/* "im2col:avx512" */
static const char *
tiles_name (void)
{
  static char name[32];

  if (name[0] == '\0')
    snprintf (name, sizeof name, "im2col:%s", td__gemm_tiles ()->name);
  return name;
}

/* Leave word of what computed. */
static TdStatus
note (TdDevice *d, const char *algorithm, TdStatus status)
{
  if (d != NULL)
    d->algorithm = algorithm;
  return status;
}

TdStatus
td__cpu_conv (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
              TdTensor *out)
{
  const TdShape *x = kind == TD_CONV_DATA_GRAD ? out->shape : in[0].shape;
  const TdShape *W = kind == TD_CONV_FORWARD     ? in[1].shape
                     : kind == TD_CONV_DATA_GRAD ? in[0].shape
                                                 : out->shape;
  const TdShape *y = kind == TD_CONV_FORWARD ? out->shape : in[1].shape;
  TdConvSizes s;

  if (td__is_half (out->dtype))
    return td__cpu_half_conv (d, kind, attrs, in, n_in, out);
  if (out->dtype != TD_F32 || attrs->ndim > 3 || in[0].size == 0 || in[1].size == 0)
    return note (d, "definition", td__conv_by_definition (kind, attrs, in, n_in, out));
  if (out->size == 0)
    return TD_OK;
  s = td__conv_sizes (attrs, x, W, y);
#if defined(TD_HAVE_ONEDNN)
  if (td__conv_onednn_prefers (kind, &s))
    {
      const char *algorithm = NULL;
      const TdStatus status = td__conv_onednn (kind, attrs, &s, in, n_in, out, &algorithm);

      if (status != TD_ERR_STATE)
        return note (d, algorithm, status);
    }
#endif
  return note (d, tiles_name (), conv_f32 (kind, attrs, &s, in, n_in, out));
}
