/* The text of convolutions, poolings and pictures in another size: see products.c.
 *
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* Windows over an image of up to three axes. */
typedef struct
{
  long n[3], m[3];             /* image, windows */
  long k[3], s[3], p[3], d[3]; /* size, stride, padding, dilation */
} windows;

/* The windows of each channel of x as rows: cols (channels, k, m), a row every `row` numbers; 0
 * outside. */
static void
unfold (const float *x, long channels, const windows *w, float *cols, long row)
{
  const long *n = w->n, *m = w->m, *k = w->k;

  for (long r = 0; r < channels * k[0] * k[1] * k[2]; r++)
    {
      const float *image = x + r / (k[0] * k[1] * k[2]) * n[0] * n[1] * n[2];
      const long e = r / (k[1] * k[2]) % k[0] * w->d[0] - w->p[0],
                 f = r / k[2] % k[1] * w->d[1] - w->p[1], g = r % k[2] * w->d[2] - w->p[2];
      float *to = cols + r * row;

      for (long i = 0; i < m[0]; i++)
        for (long j = 0; j < m[1]; j++, to += m[2])
          {
            const long a = i * w->s[0] + e, b = j * w->s[1] + f;
            const float *line = image + (a * n[1] + b) * n[2] + g;
            const int inside = a >= 0 && a < n[0] && b >= 0 && b < n[1];

            if (inside && w->s[2] == 1)
              {
                const long low = g < 0 ? (-g < m[2] ? -g : m[2]) : 0,
                           high = n[2] - g < m[2] ? (n[2] - g > low ? n[2] - g : low) : m[2];

                for (long q = 0; q < low; q++)
                  to[q] = 0;
                for (long q = low; q < high; q++)
                  to[q] = line[q];
                for (long q = high; q < m[2]; q++)
                  to[q] = 0;
              }
            else
              for (long q = 0; q < m[2]; q++)
                {
                  const long c = q * w->s[2] + g;

                  to[q] = inside && c >= 0 && c < n[2] ? line[q * w->s[2]] : 0;
                }
          }
    }
}

/* The opposite: each number of cols is added to where unfold took it from. */
static void
fold (const float *cols, long channels, const windows *w, float *x)
{
  const long *n = w->n, *m = w->m, *k = w->k;

  for (long r = 0; r < channels * k[0] * k[1] * k[2]; r++)
    {
      float *image = x + r / (k[0] * k[1] * k[2]) * n[0] * n[1] * n[2];
      const long e = r / (k[1] * k[2]) % k[0] * w->d[0] - w->p[0],
                 f = r / k[2] % k[1] * w->d[1] - w->p[1], g = r % k[2] * w->d[2] - w->p[2];

      for (long i = 0; i < m[0]; i++)
        for (long j = 0; j < m[1]; j++)
          for (long q = 0; q < m[2]; q++, cols++)
            {
              const long a = i * w->s[0] + e, b = j * w->s[1] + f, c = q * w->s[2] + g;

              if (a >= 0 && a < n[0] && b >= 0 && b < n[1] && c >= 0 && c < n[2])
                image[(a * n[1] + b) * n[2] + c] += *cols;
            }
    }
}

/* A convolution (below) of one group and small results: one product for the whole batch; room
 * for the windows of all of them, and y. */
static void
small_convolution (const float *x, const float *w, const float *b, float *y, long batch,
                   long n_in, long n_out, const windows *g, float *room)
{
  const long size = g->n[0] * g->n[1] * g->n[2], out = g->m[0] * g->m[1] * g->m[2];
  const long rows = n_in * g->k[0] * g->k[1] * g->k[2], all = batch * out;
  float *product = room + rows * all;

  for (long i = 0; i < batch; i++)
    unfold (x + i * n_in * size, n_in, g, room + i * out, all);
  gemm (0, 0, n_out, all, rows, w, room, 0, product);
  for (long o = 0; o < n_out; o++)
    for (long i = 0; i < batch; i++)
      for (long k = 0; k < out; k++)
        y[(i * n_out + o) * out + k] = product[o * all + i * out + k] + (b != 0 ? b[o] : 0);
}

/* y (batch, n_out, m) from x (batch, n_in, n), w (n_out, n_in / groups, k), b (n_out) or 0;
 * room for the windows of a group, or, of less than 256 results a channel, those of the batch
 * and y. */
static void
convolution (const float *x, const float *w, const float *b, float *y, long batch, long n_in,
             long n_out, long groups, const windows *g, float *room)
{
  const long size = g->n[0] * g->n[1] * g->n[2], out = g->m[0] * g->m[1] * g->m[2];
  const long window = g->k[0] * g->k[1] * g->k[2], c = n_in / groups, o = n_out / groups;
  const int as_it_is = window == 1 && size == out && g->s[0] == 1 && g->s[1] == 1
                       && g->s[2] == 1 && g->p[0] == 0 && g->p[1] == 0 && g->p[2] == 0;

  if (groups == 1 && out < 256)
    {
      small_convolution (x, w, b, y, batch, n_in, n_out, g, room);
      return;
    }
  for (long i = 0; i < batch * groups; i++)
    {
      float *to = y + i * o * out;

      for (long k = 0; b != 0 && k < o * out; k++)
        to[k] = b[i % groups * o + k / out];
      if (!as_it_is)
        unfold (x + i * c * size, c, g, room, out);
      gemm (0, 0, o, out, c * window, w + i % groups * o * c * window,
            as_it_is ? x + i * c * size : room, b != 0, to);
    }
}

/* y (batch, n_out, n) from x (batch, n_in, m), w (n_in, n_out / groups, k): the transposed one;
 * g is of the convolution from y to x. */
static void
deconvolution (const float *x, const float *w, const float *b, float *y, long batch, long n_in,
               long n_out, long groups, const windows *g, float *room)
{
  const long size = g->m[0] * g->m[1] * g->m[2], out = g->n[0] * g->n[1] * g->n[2];
  const long window = g->k[0] * g->k[1] * g->k[2], c = n_in / groups, o = n_out / groups;

  for (long i = 0; i < batch * groups; i++)
    {
      float *to = y + i * o * out;

      for (long k = 0; k < o * out; k++)
        to[k] = b != 0 ? b[i % groups * o + k / out] : 0;
      gemm (1, 0, o * window, size, c, w + i % groups * c * o * window, x + i * c * size, 0,
            room);
      fold (room, o, g, to);
    }
}

/* gw (n_out, n_in / groups, k) of a convolution of x (batch, n_in, n) that has gradient gy
 * (batch, n_out, m). */
static void
convolution_grad_w (const float *x, const float *gy, float *gw, long batch, long n_in,
                    long n_out, long groups, const windows *g, float *room)
{
  const long size = g->n[0] * g->n[1] * g->n[2], out = g->m[0] * g->m[1] * g->m[2];
  const long window = g->k[0] * g->k[1] * g->k[2], c = n_in / groups, o = n_out / groups;

  memset (gw, 0, (size_t)(n_out * c * window) * sizeof *gw);
  for (long i = 0; i < batch * groups; i++)
    {
      unfold (x + i * c * size, c, g, room, out);
      gemm (0, 1, o, c * window, out, gy + i * o * out, room, 1,
            gw + i % groups * o * c * window);
    }
}

/* The largest of each window: y (planes, m), and, if place is not 0, where in its window it
 * lay, 1 for the first, 0 for a window without any. */
static void
max_pooling (const float *x, float *y, int32_t *place, long planes, const windows *w)
{
  const long *n = w->n, *m = w->m, *k = w->k;

  for (long o = 0; o < planes * m[0] * m[1] * m[2]; o++)
    {
      const float *image = x + o / (m[0] * m[1] * m[2]) * n[0] * n[1] * n[2];
      const long a = o / (m[1] * m[2]) % m[0] * w->s[0] - w->p[0],
                 b = o / m[2] % m[1] * w->s[1] - w->p[1], c = o % m[2] * w->s[2] - w->p[2];
      float top = -INFINITY;
      long at = 0;

      for (long i = a < 0 ? -a : 0; i < k[0] && a + i < n[0]; i++)
        for (long j = b < 0 ? -b : 0; j < k[1] && b + j < n[1]; j++)
          for (long q = c < 0 ? -c : 0; q < k[2] && c + q < n[2]; q++)
            {
              const float v = image[((a + i) * n[1] + b + j) * n[2] + c + q];

              if (at == 0 || (top == top && !(v <= top)))
                {
                  top = v;
                  at = 1 + (i * k[1] + j) * k[2] + q;
                }
            }
      y[o] = top;
      if (place != 0)
        place[o] = (int32_t)at;
    }
}

/* What goes by these places: each number of `many` (planes, m) added to the image x (planes,
 * n), or, if it gathers, taken from there. */
static void
max_places (const int32_t *place, float *many, float *x, long planes, const windows *w,
            int gathers)
{
  const long *n = w->n, *m = w->m, *k = w->k;

  for (long o = 0; o < planes * m[0] * m[1] * m[2]; o++)
    {
      float *image = x + o / (m[0] * m[1] * m[2]) * n[0] * n[1] * n[2];
      const long at = place[o] - 1;
      const long i = o / (m[1] * m[2]) % m[0] * w->s[0] - w->p[0] + at / (k[1] * k[2]),
                 j = o / m[2] % m[1] * w->s[1] - w->p[1] + at / k[2] % k[1],
                 q = o % m[2] * w->s[2] - w->p[2] + at % k[2];

      if (at < 0 || i < 0 || i >= n[0] || j < 0 || j >= n[1] || q < 0 || q >= n[2])
        {
          if (gathers)
            many[o] = 0;
        }
      else if (gathers)
        many[o] = image[(i * n[1] + j) * n[2] + q];
      else
        image[(i * n[1] + j) * n[2] + q] += many[o];
    }
}

/* The sum of each window, divided by its size (by = 1), by what of it lies inside (2) or not
 * (0). */
static void
sum_pooling (const float *x, float *y, long planes, const windows *w, int by)
{
  const long *n = w->n, *m = w->m, *k = w->k;

  for (long o = 0; o < planes * m[0] * m[1] * m[2]; o++)
    {
      const float *image = x + o / (m[0] * m[1] * m[2]) * n[0] * n[1] * n[2];
      const long a = o / (m[1] * m[2]) % m[0] * w->s[0] - w->p[0],
                 b = o / m[2] % m[1] * w->s[1] - w->p[1], c = o % m[2] * w->s[2] - w->p[2];
      long inside = 0;
      float sum = 0;

      for (long i = a < 0 ? -a : 0; i < k[0] && a + i < n[0]; i++)
        for (long j = b < 0 ? -b : 0; j < k[1] && b + j < n[1]; j++)
          for (long q = c < 0 ? -c : 0; q < k[2] && c + q < n[2]; q++, inside++)
            sum += image[((a + i) * n[1] + b + j) * n[2] + c + q];
      inside = inside > 0 ? inside : 1;
      y[o] = by == 0 ? sum : sum / (float)(by == 1 ? k[0] * k[1] * k[2] : inside);
    }
}

/* The opposite of sum_pooling: x (planes, m), divided as there, is added to all of its window.
 */
static void
unpooling (const float *x, float *y, long planes, const windows *w, int by)
{
  const long *n = w->n, *m = w->m, *k = w->k;

  memset (y, 0, (size_t)(planes * n[0] * n[1] * n[2]) * sizeof *y);
  for (long o = 0; o < planes * m[0] * m[1] * m[2]; o++)
    {
      float *image = y + o / (m[0] * m[1] * m[2]) * n[0] * n[1] * n[2];
      const long a = o / (m[1] * m[2]) % m[0] * w->s[0] - w->p[0],
                 b = o / m[2] % m[1] * w->s[1] - w->p[1], c = o % m[2] * w->s[2] - w->p[2];
      const long d = a + k[0] < n[0] ? a + k[0] : n[0], e = b + k[1] < n[1] ? b + k[1] : n[1],
                 f = c + k[2] < n[2] ? c + k[2] : n[2];
      const long inside = (d - (a > 0 ? a : 0)) * (e - (b > 0 ? b : 0)) * (f - (c > 0 ? c : 0));
      const float share = by == 0   ? x[o]
                          : by == 1 ? x[o] / (float)(k[0] * k[1] * k[2])
                                    : x[o] / (float)(inside > 0 ? inside : 1);

      for (long i = a > 0 ? a : 0; i < d; i++)
        for (long j = b > 0 ? b : 0; j < e; j++)
          for (long q = c > 0 ? c : 0; q < f; q++)
            image[(i * n[1] + j) * n[2] + q] += share;
    }
}

/* Means of m[0] x m[1] windows that cover an image of n[0] x n[1]. */
static void
adaptive_pooling (const float *x, float *y, long planes, const long *n, const long *m)
{
  for (long o = 0; o < planes * m[0] * m[1]; o++)
    {
      const float *image = x + o / (m[0] * m[1]) * n[0] * n[1];
      const long i = o / m[1] % m[0], j = o % m[1];
      const long top = i * n[0] / m[0], end = ((i + 1) * n[0] + m[0] - 1) / m[0];
      const long left = j * n[1] / m[1], right = ((j + 1) * n[1] + m[1] - 1) / m[1];
      float sum = 0;

      for (long a = top; a < end; a++)
        for (long b = left; b < right; b++)
          sum += image[a * n[1] + b];
      y[o] = sum / (float)((end - top) * (right - left));
    }
}

/* Where pixel o of a line of m lies in a line of n: how = 0 corners are aligned, 1 they are
 * not, 2 the nearest. */
static double
place_in_line (long o, long n, long m, int how)
{
  const double scale = how != 0 ? (double)n / (double)m
                       : m > 1  ? (double)(n - 1) / (double)(m - 1)
                                : 0;
  const double at = how == 1 ? ((double)o + 0.5) * scale - 0.5 : (double)o * scale;

  return at < 0 ? 0 : at > (double)(n - 1) ? (double)(n - 1) : at;
}

/* Images of m[0] x m[1] from images of n[0] x n[1]. */
static void
resize (const float *x, float *y, long planes, const long *n, const long *m, int how)
{
  for (long o = 0; o < planes * m[0] * m[1]; o++)
    {
      const float *image = x + o / (m[0] * m[1]) * n[0] * n[1];
      const double v = place_in_line (o / m[1] % m[0], n[0], m[0], how),
                   u = place_in_line (o % m[1], n[1], m[1], how);
      const long a = (long)v, b = (long)u, c = a + 1 < n[0] ? a + 1 : a,
                 d = b + 1 < n[1] ? b + 1 : b;
      const float p = (float)(v - (double)a), q = (float)(u - (double)b);

      y[o] = how == 2 ? image[a * n[1] + b]
                      : (1 - p) * ((1 - q) * image[a * n[1] + b] + q * image[a * n[1] + d])
                            + p * ((1 - q) * image[c * n[1] + b] + q * image[c * n[1] + d]);
    }
}
