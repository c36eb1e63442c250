/* The text of convolutions and poolings over more than three axes, for C programs: see
 * products.c.  They go from place to place by division, where those of windows.c have loops.
 *
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* Windows over an image of up to six axes. */
typedef struct
{
  int axes;
  long n[6], m[6];             /* image, windows */
  long k[6], s[6], p[6], d[6]; /* size, stride, padding, dilation */
} many_windows;

/* The product of sizes. */
static long
product_of (const long *n, int axes)
{
  long product = 1;

  for (int i = 0; i < axes; i++)
    product *= n[i];
  return product;
}

/* Where in the image number r of window o lies; -1: outside. */
static long
place_in_image (const many_windows *w, long o, long r)
{
  long at = 0, step = 1;

  for (int i = w->axes - 1; i >= 0; i--)
    {
      const long v = o % w->m[i] * w->s[i] - w->p[i] + r % w->k[i] * w->d[i];

      if (v < 0 || v >= w->n[i])
        return -1;
      at += v * step;
      step *= w->n[i];
      o /= w->m[i];
      r /= w->k[i];
    }
  return at;
}

/* The windows of each channel of x as rows, (channels, k, m), 0 outside. */
static void
unfold_many (const float *x, long channels, const many_windows *w, float *cols)
{
  const long size = product_of (w->n, w->axes), out = product_of (w->m, w->axes),
             window = product_of (w->k, w->axes);

  for (long r = 0; r < channels * window; r++)
    for (long o = 0; o < out; o++)
      {
        const long at = place_in_image (w, o, r % window);

        cols[r * out + o] = at < 0 ? 0 : x[r / window * size + at];
      }
}

/* The opposite: each number of cols is added to where it came from. */
static void
fold_many (const float *cols, long channels, const many_windows *w, float *x)
{
  const long size = product_of (w->n, w->axes), out = product_of (w->m, w->axes),
             window = product_of (w->k, w->axes);

  for (long r = 0; r < channels * window; r++)
    for (long o = 0; o < out; o++)
      {
        const long at = place_in_image (w, o, r % window);

        if (at >= 0)
          x[r / window * size + at] += cols[r * out + o];
      }
}

/* A convolution, as that of three axes. */
static void
convolution_many (const float *x, const float *w, const float *b, float *y, long batch,
                  long n_in, long n_out, long groups, const many_windows *g, float *room)
{
  const long size = product_of (g->n, g->axes), out = product_of (g->m, g->axes),
             window = product_of (g->k, g->axes), c = n_in / groups, o = n_out / groups;

  for (long i = 0; i < batch * groups; i++)
    {
      float *to = y + i * o * out;

      for (long k = 0; b != 0 && k < o * out; k++)
        to[k] = b[i % groups * o + k / out];
      unfold_many (x + i * c * size, c, g, room);
      gemm (0, 0, o, out, c * window, w + i % groups * o * c * window, room, b != 0, to);
    }
}

/* The transposed one; g is of the convolution from y to x. */
static void
deconvolution_many (const float *x, const float *w, const float *b, float *y, long batch,
                    long n_in, long n_out, long groups, const many_windows *g, float *room)
{
  const long size = product_of (g->m, g->axes), out = product_of (g->n, g->axes),
             window = product_of (g->k, g->axes), c = n_in / groups, o = n_out / groups;

  for (long i = 0; i < batch * groups; i++)
    {
      float *to = y + i * o * out;

      for (long k = 0; k < o * out; k++)
        to[k] = b != 0 ? b[i % groups * o + k / out] : 0;
      gemm (1, 0, o * window, size, c, w + i % groups * c * o * window, x + i * c * size, 0,
            room);
      fold_many (room, o, g, to);
    }
}

/* The gradient of a convolution's weights. */
static void
convolution_grad_w_many (const float *x, const float *gy, float *gw, long batch, long n_in,
                         long n_out, long groups, const many_windows *g, float *room)
{
  const long size = product_of (g->n, g->axes), out = product_of (g->m, g->axes),
             window = product_of (g->k, g->axes), c = n_in / groups, o = n_out / groups;

  memset (gw, 0, (size_t)(n_out * c * window) * sizeof *gw);
  for (long i = 0; i < batch * groups; i++)
    {
      unfold_many (x + i * c * size, c, g, room);
      gemm (0, 1, o, c * window, out, gy + i * o * out, room, 1,
            gw + i % groups * o * c * window);
    }
}

/* The largest of each window, and its place, as with three axes. */
static void
max_pooling_many (const float *x, float *y, int32_t *place, long planes, const many_windows *w)
{
  const long size = product_of (w->n, w->axes), out = product_of (w->m, w->axes),
             window = product_of (w->k, w->axes);

  for (long o = 0; o < planes * out; o++)
    {
      float top = -INFINITY;
      long at = 0;

      for (long r = 0; r < window; r++)
        {
          const long from = place_in_image (w, o % out, r);
          const float v = from < 0 ? 0 : x[o / out * size + from];

          if (from >= 0 && (at == 0 || (top == top && !(v <= top))))
            {
              top = v;
              at = 1 + r;
            }
        }
      y[o] = top;
      if (place != 0)
        place[o] = (int32_t)at;
    }
}

/* What goes by these places, as with three axes. */
static void
max_places_many (const int32_t *place, float *many, float *x, long planes,
                 const many_windows *w, int gathers)
{
  const long size = product_of (w->n, w->axes), out = product_of (w->m, w->axes),
             window = product_of (w->k, w->axes);

  for (long o = 0; o < planes * out; o++)
    {
      const long r = place[o] - 1;
      const long at = r < 0 || r >= window ? -1 : place_in_image (w, o % out, r);
      float *image = x + o / out * size;

      if (gathers)
        many[o] = at < 0 ? 0 : image[at];
      else if (at >= 0)
        image[at] += many[o];
    }
}

/* What a sum over window o is divided by: 1, its size (by = 1) or what of it lies inside (2).
 */
static long
divisor_of (const many_windows *w, long o, int by)
{
  const long window = product_of (w->k, w->axes);
  long inside = 0;

  for (long r = 0; r < window; r++)
    inside += place_in_image (w, o, r) >= 0;
  return by == 0 ? 1 : by == 1 ? window : inside > 0 ? inside : 1;
}

/* The sum of each window, divided as with three axes. */
static void
sum_pooling_many (const float *x, float *y, long planes, const many_windows *w, int by)
{
  const long size = product_of (w->n, w->axes), out = product_of (w->m, w->axes),
             window = product_of (w->k, w->axes);

  for (long o = 0; o < planes * out; o++)
    {
      float sum = 0;

      for (long r = 0; r < window; r++)
        {
          const long at = place_in_image (w, o % out, r);

          sum += at < 0 ? 0 : x[o / out * size + at];
        }
      y[o] = sum / (float)divisor_of (w, o % out, by);
    }
}

/* The opposite. */
static void
unpooling_many (const float *x, float *y, long planes, const many_windows *w, int by)
{
  const long size = product_of (w->n, w->axes), out = product_of (w->m, w->axes),
             window = product_of (w->k, w->axes);

  memset (y, 0, (size_t)(planes * size) * sizeof *y);
  for (long o = 0; o < planes * out; o++)
    {
      const float share = x[o] / (float)divisor_of (w, o % out, by);

      for (long r = 0; r < window; r++)
        {
          const long at = place_in_image (w, o % out, r);

          if (at >= 0)
            y[o / out * size + at] += share;
        }
    }
}
