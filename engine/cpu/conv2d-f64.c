/* Convolution in f64 by its definition: one loop nest for all three kinds, read where the
 * window lies inside the image.  Slow; gradients are checked with it.
 *
 * SPDX-License-Identifier: MIT */
#include "conv2d.h"

#include <string.h>

/* One pair of an output element and a window element, with x, W and y indices. */
typedef struct
{
  int64_t x, W, y;
} Place;

static inline bool
place_of (const TdConvSizes *s, int64_t i, int64_t o, int64_t oy, int64_t ox, int64_t kk,
          Place *at)
{
  const int64_t v = kk % s->kw, u = kk / s->kw % s->kh, c = kk / s->kw / s->kh;
  const int64_t iy = oy * s->sy + u * s->dy - s->py, ix = ox * s->sx + v * s->dx - s->px;
  const int64_t channel = o / s->og * s->cg + c;

  *at = (Place){ ((i * s->c + channel) * s->h + iy) * s->w + ix, o * s->k + kk,
                 ((i * s->o + o) * s->oh + oy) * s->ow + ox };
  return iy >= 0 && iy < s->h && ix >= 0 && ix < s->w;
}

void
td__conv_f64 (TdConvKind kind, const TdConvSizes *s, const double *in0, const double *in1,
              const double *bias, double *out)
{
  const int64_t size = kind == TD_CONV_FORWARD     ? s->n * s->o * s->pixels
                       : kind == TD_CONV_DATA_GRAD ? s->n * s->c * s->h * s->w
                                                   : s->o * s->k;

  memset (out, 0, (size_t)size * sizeof *out);
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t o = 0; o < s->o; o++)
      for (int64_t p = 0; p < s->pixels; p++)
        {
          Place at;

          if (bias != NULL)
            out[(i * s->o + o) * s->pixels + p] += bias[o];
          for (int64_t kk = 0; kk < s->k; kk++)
            {
              if (!place_of (s, i, o, p / s->ow, p % s->ow, kk, &at))
                continue;
              if (kind == TD_CONV_FORWARD)
                out[at.y] += in0[at.x] * in1[at.W];
              else if (kind == TD_CONV_DATA_GRAD)
                out[at.x] += in0[at.W] * in1[at.y];
              else
                out[at.W] += in0[at.x] * in1[at.y];
            }
        }
}
