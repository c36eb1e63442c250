/* Sizes of one convolution over up to three axes, shared by the files that compute it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"

typedef struct TdConvSizes
{
  int64_t n, c, d, h, w;  /**< input images; axes that are not there are of size 1 */
  int64_t o, kd, kh, kw;  /**< filters */
  int64_t od, oh, ow;     /**< output */
  int64_t sz, sy, sx;     /**< stride */
  int64_t pz, py, px;     /**< padding */
  int64_t dz, dy, dx;     /**< dilation */
  int64_t groups, cg, og; /**< channels in and out per group */
  int64_t k, pixels;      /**< cg kd kh kw, od oh ow */
  int64_t image;          /**< d h w */
  int64_t dp, hp, wp;     /**< input with its padding and what windows overhang */
} TdConvSizes;

/** Take sizes from the three arrays of a convolution over at most three axes. */
TdConvSizes td__conv_sizes (const TdConv *attrs, const TdShape *x, const TdShape *W,
                            const TdShape *y);

/** Say whether windows reach beyond the image, so that it must be copied to a padded one. */
static inline bool
td__conv_padded (const TdConvSizes *s)
{
  return s->dp > s->d || s->hp > s->h || s->wp > s->w;
}

/** What ends a convolution as td__gemm_end_* know it: its result is as many rows as images
 * times channels, each of a channel's elements. */
static inline TdGemm
td__conv_end (const TdConv *attrs, int64_t channel)
{
  return (TdGemm){ .n = channel, .end = attrs->end };
}

/** Elements from one slice of a channel to the next. */
static inline int64_t
td__conv_slice (const TdConvSizes *s)
{
  return td__conv_padded (s) ? s->hp * s->wp : s->h * s->w;
}

/** Where the windows of output row `row` (of od oh) begin in a channel. */
static inline int64_t
td__conv_row (const TdConvSizes *s, int64_t row, int64_t stride)
{
  const int64_t z = row / s->oh, y = row % s->oh;

  return z * s->sz * td__conv_slice (s) + y * s->sy * stride;
}

/** The channels [c0, c0 + cg) of an image, padded with zeros where td__conv_padded: x itself,
 * or a copy in the calling thread's scratch.  Rows are *stride apart, planes *plane. *Errors*:
 * NULL when there is no memory. */
const float *td__conv_image (const TdConvSizes *s, const float *x, int64_t *stride,
                             int64_t *plane);

/** gW (o, k) = or += sum over images, f32.  *Errors*: TD_ERR_MEMORY. */
TdStatus td__conv_weight_grad (const TdConvSizes *s, const float *x, const float *gy, float *gW,
                               bool accumulate);

/** All three by the definition, one number at a time, over any number of axes; f32 and f64.
 * *Errors*: TD_ERR_DTYPE. */
TdStatus td__conv_by_definition (TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                                 int n_in, TdTensor *out);
