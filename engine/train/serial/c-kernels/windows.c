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

/* Of m windows in a line of n, those that lie inside: from range[0] to before range[1]; window
 * q begins at q s + at. */
static void
part_inside (long n, long m, long s, long at, long *range)
{
  const long low = at < 0 ? (s - 1 - at) / s : 0, high = at < n ? (n - at + s - 1) / s : 0;

  range[0] = low < m ? low : m;
  range[1] = high < m ? high : m;
  if (range[1] < range[0])
    range[1] = range[0];
}

/* The numbers of a plane that stand at one place of their windows: `lines` lines of m, of which
 * those inside have rows[0] to rows[1] and range[0] to range[1]; the first line is `from`,
 * `next` numbers before the one of the next. */
static void
unfold_plane (const float *from, long next, long s, long at, const long *rows,
              const long *range, long lines, long m, float *to)
{
  if (rows[1] <= rows[0] || range[1] <= range[0])
    {
      memset (to, 0, (size_t)(lines * m) * sizeof *to);
      return;
    }
  memset (to, 0, (size_t)(rows[0] * m) * sizeof *to);
  memset (to + rows[1] * m, 0, (size_t)((lines - rows[1]) * m) * sizeof *to);
  /* Lines of the image's own length, moved by `at`: all at once, and then their ends. */
  if (s == 1 && next == m)
    memcpy (to + rows[0] * m + range[0], from + rows[0] * m + range[0] + at,
            (size_t)((rows[1] - rows[0] - 1) * m + range[1] - range[0]) * sizeof *to);
  else
    for (long j = rows[0]; j < rows[1]; j++)
      for (long q = range[0]; q < range[1]; q++)
        to[j * m + q] = from[j * next + q * s + at];
  for (long q = 0; q < range[0]; q++)
    for (long j = rows[0]; j < rows[1]; j++)
      to[j * m + q] = 0;
  for (long q = range[1]; q < m; q++)
    for (long j = rows[0]; j < rows[1]; j++)
      to[j * m + q] = 0;
}

/* Lines first to end of plane i of the windows of each channel of x as rows: cols (channels, k,
 * end - first, m[2]), a row every `row` numbers; 0 outside. */
static void
unfold_lines (const float *x, long channels, const windows *w, long i, long first, long end,
              float *cols, long row)
{
  const long *n = w->n, *m = w->m, *k = w->k, *s = w->s;
  const long window = k[0] * k[1] * k[2], size = n[0] * n[1] * n[2];

  for (long r = 0; r < window; r++)
    {
      const long a = i * s[0] + r / (k[1] * k[2]) * w->d[0] - w->p[0],
                 f = first * s[1] + r / k[2] % k[1] * w->d[1] - w->p[1],
                 g = r % k[2] * w->d[2] - w->p[2];
      long rows[2] = { 0, 0 }, range[2];

      if (a >= 0 && a < n[0])
        part_inside (n[1], end - first, s[1], f, rows);
      part_inside (n[2], m[2], s[2], g, range);
      for (long c = 0; c < channels; c++)
        unfold_plane (x + c * size + (a * n[1] + f) * n[2], s[1] * n[2], s[2], g, rows, range,
                      end - first, m[2], cols + (c * window + r) * row);
    }
}

/* All of them, (channels, k, m). */
static void
unfold (const float *x, long channels, const windows *w, float *cols, long row)
{
  for (long i = 0; i < w->m[0]; i++)
    unfold_lines (x, channels, w, i, 0, w->m[1], cols + i * w->m[1] * w->m[2], row);
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

/* A convolution (below) of one group and small results: one product for several images, of
 * 256 numbers a channel together; room for their windows, and y. */
static void
small_convolution (const float *x, const float *w, const float *b, float *y, long batch,
                   long n_in, long n_out, const windows *g, float *room)
{
  const long size = g->n[0] * g->n[1] * g->n[2], out = g->m[0] * g->m[1] * g->m[2];
  const long rows = n_in * g->k[0] * g->k[1] * g->k[2], most = 256 / out;

  for (long first = 0; first < batch; first += most)
    {
      const long n = batch - first < most ? batch - first : most;
      float *results = room + rows * n * out;

      for (long i = 0; i < n; i++)
        unfold (x + (first + i) * n_in * size, n_in, g, room + i * out, n * out);
      gemm (0, 0, n_out, n * out, rows, w, room, 0, results);
      for (long i = 0; i < n; i++)
        for (long o = 0; o < n_out; o++)
          {
            const float *from = results + (o * n + i) * out, add = b != 0 ? b[o] : 0;
            float *to = y + ((first + i) * n_out + o) * out;

            for (long k = 0; k < out; k++)
              to[k] = from[k] + add;
          }
    }
}

/* y (batch, n_out, m) from x (batch, n_in, n), w (n_out, n_in / groups, k), b (n_out) or 0;
 * room for the windows of a group, or, of less than 256 results a channel, those of the batch
 * and y.  Windows are made piece by piece, so that a piece is still near when it is multiplied.
 */
static void
convolution (const float *x, const float *w, const float *b, float *y, long batch, long n_in,
             long n_out, long groups, const windows *g, float *room)
{
  const long size = g->n[0] * g->n[1] * g->n[2], out = g->m[0] * g->m[1] * g->m[2];
  const long window = g->k[0] * g->k[1] * g->k[2], c = n_in / groups, o = n_out / groups;
  const long fit = 65536 / (c * window * g->m[2] + 1), least = 255 / g->m[2] + 1;
  const long step = fit > least ? fit : least; /* lines of a piece */
  const int as_it_is = window == 1 && size == out && g->s[0] == 1 && g->s[1] == 1
                       && g->s[2] == 1 && g->p[0] == 0 && g->p[1] == 0 && g->p[2] == 0;

  if (groups == 1 && out < 256)
    {
      small_convolution (x, w, b, y, batch, n_in, n_out, g, room);
      return;
    }
  for (long i = 0; i < batch * groups; i++)
    {
      const float *image = x + i * c * size, *weight = w + i % groups * o * c * window;
      float *to = y + i * o * out;

      for (long k = 0; b != 0 && k < o * out; k++)
        to[k] = b[i % groups * o + k / out];
      if (as_it_is)
        gemm (0, 0, o, out, c, weight, image, b != 0, to);
      for (long a = 0; a < g->m[0] && !as_it_is; a++)
        for (long j = 0; j < g->m[1]; j += step)
          {
            const long end = j + step < g->m[1] ? j + step : g->m[1], n = (end - j) * g->m[2];

            unfold_lines (image, c, g, a, j, end, room, n);
            gemm_rows (0, 0, o, n, c * window, weight, room, b != 0,
                       to + (a * g->m[1] + j) * g->m[2], out);
          }
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

/* Its gradient, of gy: a share of each to all of its window. */
static void
adaptive_pooling_grad (const float *gy, float *gx, long planes, const long *n, const long *m)
{
  memset (gx, 0, (size_t)(planes * n[0] * n[1]) * sizeof *gx);
  for (long o = 0; o < planes * m[0] * m[1]; o++)
    {
      float *image = gx + o / (m[0] * m[1]) * n[0] * n[1];
      const long i = o / m[1] % m[0], j = o % m[1];
      const long top = i * n[0] / m[0], end = ((i + 1) * n[0] + m[0] - 1) / m[0];
      const long left = j * n[1] / m[1], right = ((j + 1) * n[1] + m[1] - 1) / m[1];
      const float share = gy[o] / (float)((end - top) * (right - left));

      for (long a = top; a < end; a++)
        for (long b = left; b < right; b++)
          image[a * n[1] + b] += share;
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

/* What the pixel before (which = 0) or behind (1) a place in a line weighs. */
static float
weight_in_line (double at, int which)
{
  const double share = at - (double)(long)at;

  return ROUND ((float)(which == 1 ? share : 1 - share));
}

/* The pixel before (which = 0) or behind (1) a place in a line of n. */
static long
pixel_in_line (double at, int which, long n)
{
  return (long)at + which < n ? (long)at + which : n - 1;
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
      float sum = 0;

      for (int k = 0; k < 4 && how != 2; k++)
        {
          const float weight = ROUND (weight_in_line (v, k / 2) * weight_in_line (u, k % 2));
          const long at
              = pixel_in_line (v, k / 2, n[0]) * n[1] + pixel_in_line (u, k % 2, n[1]);

          sum = ROUND (sum + ROUND (image[at] * weight));
        }
      y[o] = how == 2 ? image[(long)v * n[1] + (long)u] : sum;
    }
}

/* The gradient of resize, of gy: what goes to one of the four pixels around each place, added
 * to gx; 0 is the one above and left, and the only one if the nearest is all. */
static void
resize_grad (const float *gy, float *gx, long planes, const long *n, const long *m, int how,
             int corner)
{
  for (long o = 0; o < planes * m[0] * m[1]; o++)
    {
      float *image = gx + o / (m[0] * m[1]) * n[0] * n[1];
      const double v = place_in_line (o / m[1] % m[0], n[0], m[0], how),
                   u = place_in_line (o % m[1], n[1], m[1], how);
      const float weight
          = ROUND (weight_in_line (v, corner / 2) * weight_in_line (u, corner % 2));
      const long at
          = pixel_in_line (v, corner / 2, n[0]) * n[1] + pixel_in_line (u, corner % 2, n[1]);

      image[at] += how == 2 ? gy[o] : ROUND (gy[o] * weight);
    }
}
