/* Convolution by its definition: one loop nest for all three kinds and any number of axes, read
 * where the window lies inside the image.  Slow; gradients are checked with it in f64, and what
 * the other files do not know goes this way.
 *
 * SPDX-License-Identifier: MIT */
#include "conv.h"

#include <string.h>

#include "cpu.h"
#include "gemm.h"

typedef struct
{
  const TdConv *attrs;
  const TdShape *x, *W, *y;
  int64_t pixels, window; /* of one channel of y, of one filter's channel */
} Sizes;

static int64_t
spatial_size (const TdShape *s)
{
  int64_t size = 1;

  for (int i = 2; i < s->ndim; i++)
    size *= s->dim[i];
  return size;
}

/* The place in one channel of x under window place k of pixel p; -1 in the padding. */
static inline int64_t
place_of (const Sizes *s, int64_t p, int64_t k)
{
  int64_t at = 0, step = 1;

  for (int i = s->attrs->ndim - 1; i >= 0; i--)
    {
      const int64_t o = p % s->y->dim[2 + i], u = k % s->W->dim[2 + i];
      const int64_t v = o * s->attrs->stride[i] + u * s->attrs->dilate[i] - s->attrs->pad[i];

      if (v < 0 || v >= s->x->dim[2 + i])
        return -1;
      at += v * step;
      step *= s->x->dim[2 + i];
      p /= s->y->dim[2 + i];
      k /= s->W->dim[2 + i];
    }
  return at;
}

/* The sums of each kind; xs, ws and ys are walked alike, the output among them collects. */
#define DEFINE_CONV(T, E)                                                                      \
  static void add_products_##T (TdConvKind kind, const Sizes *s, const T *in0, const T *in1,   \
                                T *out)                                                        \
  {                                                                                            \
    const int64_t O = s->W->dim[0], cg = s->W->dim[1], C = s->x->dim[1];                       \
    const int64_t og = O / s->attrs->groups, image = spatial_size (s->x);                      \
                                                                                               \
    for (int64_t io = 0; io < s->x->dim[0] * O; io++)                                          \
      for (int64_t p = 0; p < s->pixels; p++)                                                  \
        for (int64_t ck = 0; ck < cg * s->window; ck++)                                        \
          {                                                                                    \
            const int64_t i = io / O, o = io % O, c = o / og * cg + ck / s->window;            \
            const int64_t place = place_of (s, p, ck % s->window);                             \
            const int64_t x = (i * C + c) * image + place, W = o * cg * s->window + ck;        \
            const int64_t y = io * s->pixels + p;                                              \
                                                                                               \
            if (place < 0)                                                                     \
              continue;                                                                        \
            if (kind == TD_CONV_FORWARD)                                                       \
              out[y] += in0[x] * in1[W];                                                       \
            else if (kind == TD_CONV_DATA_GRAD)                                                \
              out[x] += in0[W] * in1[y];                                                       \
            else                                                                               \
              out[W] += in0[x] * in1[y];                                                       \
          }                                                                                    \
  }                                                                                            \
                                                                                               \
  /* What is accumulated is finished first, then added: the bits do not depend on where. */    \
  static TdStatus conv_##T (TdConvKind kind, const Sizes *s, const TdTensor *in, int n_in,     \
                            TdTensor *out)                                                     \
  {                                                                                            \
    const int64_t inner = spatial_size (out->shape);                                           \
    const TdGemm end = td__conv_end (s->attrs, inner);                                         \
    T *y = out->data, *part = y;                                                               \
                                                                                               \
    if (s->attrs->accumulate)                                                                  \
      part = td__cpu_scratch (TD_SCRATCH_PARTS, (size_t)out->size * sizeof *part);             \
    if (part == NULL)                                                                          \
      return TD_ERR_MEMORY;                                                                    \
    for (int64_t i = 0; i < out->size; i++)                                                    \
      part[i] = n_in > 2 ? ((const T *)in[2].data)[i / inner % out->shape->dim[1]] : 0;        \
    add_products_##T (kind, s, in[0].data, in[1].data, part);                                  \
    for (int64_t i = 0; s->attrs->accumulate && i < out->size; i++)                            \
      y[i] += part[i];                                                                         \
    td__gemm_end_##E (&end, 0, out->size / inner, 0, inner, y);                                \
    return TD_OK;                                                                              \
  }

DEFINE_CONV (float, f32)
DEFINE_CONV (double, f64)

TdStatus
td__conv_by_definition (TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
                        TdTensor *out)
{
  Sizes s = { .attrs = attrs };

  s.x = kind == TD_CONV_DATA_GRAD ? out->shape : in[0].shape;
  s.W = kind == TD_CONV_FORWARD     ? in[1].shape
        : kind == TD_CONV_DATA_GRAD ? in[0].shape
                                    : out->shape;
  s.y = kind == TD_CONV_FORWARD ? out->shape : in[1].shape;
  s.pixels = spatial_size (s.y);
  s.window = spatial_size (s.W);
  if (out->size == 0)
    return TD_OK;
  if (out->dtype == TD_F32)
    return conv_float (kind, &s, in, n_in, out);
  return out->dtype == TD_F64 ? conv_double (kind, &s, in, n_in, out) : TD_ERR_DTYPE;
}
