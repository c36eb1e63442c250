/* Sizes of one two-dimensional convolution, shared by the files that compute it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"

typedef struct TdConvSizes
{
  int64_t n, c, h, w;     /**< input images */
  int64_t o, kh, kw;      /**< filters */
  int64_t oh, ow;         /**< output */
  int64_t sy, sx, py, px; /**< stride, padding */
  int64_t dy, dx;         /**< dilation */
  int64_t groups, cg, og; /**< channels in and out per group */
  int64_t k, pixels;      /**< cg kh kw, oh ow */
  int64_t hp, wp;         /**< input with its padding and what windows overhang */
} TdConvSizes;

/** Take sizes from the three arrays of a convolution. */
TdConvSizes td__conv_sizes (const TdConv2d *attrs, const TdShape *x, const TdShape *W,
                            const TdShape *y);

/** Say whether windows reach beyond the image, so that it must be copied to a padded one. */
static inline bool
td__conv_padded (const TdConvSizes *s)
{
  return s->py != 0 || s->px != 0 || s->hp > s->h || s->wp > s->w;
}

/** The channels [c0, c0 + cg) of an image, padded with zeros where td__conv_padded: x itself,
 * or a copy in the calling thread's scratch.  Rows are *stride apart, planes *plane. *Errors*:
 * NULL when there is no memory. */
const float *td__conv_image (const TdConvSizes *s, const float *x, int64_t *stride,
                             int64_t *plane);

/** gW (o, k) = or += sum over images, f32.  *Errors*: TD_ERR_MEMORY. */
TdStatus td__conv_weight_grad (const TdConvSizes *s, const float *x, const float *gy, float *gW,
                               bool accumulate);

/** All three in f64 by the definition, one number at a time. */
void td__conv_f64 (TdConvKind kind, const TdConvSizes *s, const double *in0, const double *in1,
                   const double *bias, double *out);
