/* The text of what works on rows, normalisations among it, for C programs: see products.c.
 *
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* Softmax, or its logarithm, over the middle axis of (outer, n, inner). */
static void
softmax (const float *x, float *y, long outer, long n, long inner, int logs)
{
  for (long o = 0; o < outer; o++)
    for (long i = 0; i < inner; i++)
      {
        const float *a = x + o * n * inner + i;
        float *b = y + o * n * inner + i, top = -INFINITY, sum = 0;

        for (long k = 0; k < n; k++)
          top = a[k * inner] > top ? a[k * inner] : top;
        for (long k = 0; k < n; k++)
          {
            b[k * inner] = expf (a[k * inner] - top);
            sum += b[k * inner];
          }
        for (long k = 0; k < n; k++)
          b[k * inner] = logs ? a[k * inner] - top - logf (sum) : b[k * inner] / sum;
      }
}

/* Their gradients, of y and gy. */
static void
softmax_grad (const float *y, const float *gy, float *gx, long outer, long n, long inner,
              int logs)
{
  for (long o = 0; o < outer; o++)
    for (long i = 0; i < inner; i++)
      {
        const long at = o * n * inner + i;
        float sum = 0;

        for (long k = 0; k < n; k++)
          sum += gy[at + k * inner] * (logs ? 1 : y[at + k * inner]);
        for (long k = 0; k < n; k++)
          gx[at + k * inner] = logs ? gy[at + k * inner] - expf (y[at + k * inner]) * sum
                                    : y[at + k * inner] * (gy[at + k * inner] - sum);
      }
}

/* x / (|x| + eps), |x| over the middle axis of (outer, n, inner). */
static void
unit_length (const float *x, float *y, long outer, long n, long inner, float eps)
{
  for (long o = 0; o < outer; o++)
    for (long i = 0; i < inner; i++)
      {
        double sum = 0;
        float length;

        for (long k = 0; k < n; k++)
          sum += (double)x[(o * n + k) * inner + i] * x[(o * n + k) * inner + i];
        length = ROUND (ROUND (sqrtf (ROUND ((float)sum))) + eps);
        for (long k = 0; k < n; k++)
          y[(o * n + k) * inner + i] = x[(o * n + k) * inner + i] / length;
      }
}

/* The place of number i of an array of these sizes in one that has only some of its axes: the
 * others have stride 0. */
static long
place_of_kept (long i, int ndim, const long *dim, const long *stride)
{
  long at = 0;

  for (int d = ndim - 1; d >= 0; d--)
    {
      at += i % dim[d] * stride[d];
      i /= dim[d];
    }
  return at;
}

/* unit_length over axes that have others between them; room for the `kept` lengths. */
static void
unit_length_apart (const float *x, float *y, long n, int ndim, const long *dim,
                   const long *stride, long kept, double *room, float eps)
{
  for (long k = 0; k < kept; k++)
    room[k] = 0;
  for (long i = 0; i < n; i++)
    room[place_of_kept (i, ndim, dim, stride)] += (double)x[i] * x[i];
  for (long i = 0; i < n; i++)
    {
      const float sum = ROUND ((float)room[place_of_kept (i, ndim, dim, stride)]);

      y[i] = x[i] / ROUND (ROUND (sqrtf (sum)) + eps);
    }
}

/* n numbers, or their squares, less `at`, added to eight sums, so that several are added at
 * once. */
static void
add_moments (const float *x, long n, double at, int squared, double *sums)
{
  const long whole = n - n % 8;

  for (long j = 0; j < whole; j += 8)
    for (int k = 0; k < 8; k++)
      {
        const double d = x[j + k] - at;

        sums[k] += squared ? d * d : d;
      }
  for (long j = whole; j < n; j++)
    {
      const double d = x[j] - at;

      sums[j % 8] += squared ? d * d : d;
    }
}

/* x (n, c, inner) by the batch's own moments, which go to mean and inv_std, and to the running
 * ones with decay, if they are not 0. */
static void
batch_normalize (const float *x, const float *gamma, const float *beta, float *running_mean,
                 float *running_var, float *y, float *mean, float *inv_std, long n, long c,
                 long inner, double eps, double decay)
{
  for (long k = 0; k < c; k++)
    {
      const double m = (double)(n * inner);
      double sum = 0, squares = 0, sums[8] = { 0 }, more[8] = { 0 };

      for (long i = 0; i < n; i++)
        add_moments (x + (i * c + k) * inner, inner, 0, 0, sums);
      for (int j = 0; j < 8; j++)
        sum += sums[j] / m;
      for (long i = 0; i < n; i++)
        add_moments (x + (i * c + k) * inner, inner, sum, 1, more);
      for (int j = 0; j < 8; j++)
        squares += more[j] / m;
      mean[k] = (float)sum;
      inv_std[k] = (float)(1 / sqrt (squares + eps));
      if (running_mean != 0)
        {
          running_mean[k] = (float)(decay * running_mean[k] + (1 - decay) * sum);
          running_var[k] = (float)(decay * running_var[k]
                                   + (1 - decay) * squares * (m > 1 ? m / (m - 1) : 1));
        }
      for (long i = 0; i < n; i++)
        {
          const float *from = x + (i * c + k) * inner, at = mean[k], by = inv_std[k],
                      scale = gamma[k], add = beta[k];
          float *to = y + (i * c + k) * inner;

          for (long j = 0; j < inner; j++)
            to[j] = scale * ((from[j] - at) * by) + add;
        }
    }
}

/* Its gradients: gx, ggamma and gbeta of gy, of the same sizes. */
static void
batch_normalize_grad (const float *x, const float *gamma, const float *gy, const float *mean,
                      const float *inv_std, float *gx, float *ggamma, float *gbeta, long n,
                      long c, long inner)
{
  for (long k = 0; k < c; k++)
    {
      const double m = (double)(n * inner);
      const float at = mean[k], by = inv_std[k];
      double slope = 0, shift = 0;

      for (long i = 0; i < n; i++)
        for (long j = (i * c + k) * inner; j < (i * c + k + 1) * inner; j++)
          {
            shift += gy[j];
            slope += (double)gy[j] * ((x[j] - at) * by);
          }
      ggamma[k] = (float)slope;
      gbeta[k] = (float)shift;
      for (long i = 0; i < n; i++)
        {
          const float a = (float)(slope / m), b = (float)(shift / m), scale = gamma[k] * by;

          for (long j = (i * c + k) * inner; j < (i * c + k + 1) * inner; j++)
            gx[j] = scale * (gy[j] - (x[j] - at) * by * a - b);
        }
    }
}

/* x (n, c, inner) by moments that are given. */
static void
fixed_normalize (const float *x, const float *gamma, const float *beta, const float *mean,
                 const float *var, float *y, long n, long c, long inner, double eps)
{
  for (long i = 0; i < n * c; i++)
    {
      const float scale = (float)(gamma[i % c] / sqrt (var[i % c] + eps)), at = mean[i % c],
                  to = beta[i % c];

      for (long j = 0; j < inner; j++)
        y[i * inner + j] = (x[i * inner + j] - at) * scale + to;
    }
}

/* x (n, groups, channels, inner): each row, the last two axes, by its own moments, which go to
 * mean and inv; mean is 0 where it stays and the root mean square is all. */
static void
row_normalize (const float *x, const float *gamma, const float *beta, float *y, float *mean,
               float *inv, const long *n, double eps)
{
  const long size = n[2] * n[3];

  for (long r = 0; r < n[0] * n[1]; r++)
    {
      const float *a = x + r * size;
      const long first = r % n[1] * n[2];
      double sum = 0, squares = 0, sums[8] = { 0 }, more[8] = { 0 };
      float at = 0, scale, *to = y + r * size;

      if (mean != 0)
        add_moments (a, size, 0, 0, sums);
      for (int j = 0; j < 8; j++)
        sum += sums[j] / (double)size;
      add_moments (a, size, sum, 1, more);
      for (int j = 0; j < 8; j++)
        squares += more[j] / (double)size;
      scale = inv[r] = (float)(1 / sqrt (squares + eps));
      if (mean != 0)
        at = mean[r] = (float)sum;
      for (long c = 0; c < n[2] && n[3] == 1; c++)
        to[c] = (a[c] - at) * scale * gamma[first + c] + (beta != 0 ? beta[first + c] : 0);
      for (long c = 0; c < n[2] && n[3] > 1; c++)
        for (long j = 0; j < n[3]; j++)
          to[c * n[3] + j] = (a[c * n[3] + j] - at) * scale * gamma[first + c]
                             + (beta != 0 ? beta[first + c] : 0);
    }
}

/* Its gradients: gx of gy, and those of gamma and beta, the last not where mean is 0; room for
 * both of these. */
static void
row_normalize_grad (const float *x, const float *gamma, const float *gy, const float *mean,
                    const float *inv, float *gx, float *ggamma, float *gbeta, const long *n,
                    double *room)
{
  const long size = n[2] * n[3], channels = n[1] * n[2];

  for (long c = 0; c < 2 * channels; c++)
    room[c] = 0;
  for (long r = 0; r < n[0] * n[1]; r++)
    {
      const float *a = x + r * size, *g = gy + r * size;
      const float at = mean != 0 ? mean[r] : 0, by = inv[r];
      double *slopes = room + r % n[1] * n[2], sum = 0, shift = 0;
      const float *scale = gamma + r % n[1] * n[2];
      float p, q;

      for (long j = 0; j < size; j++)
        {
          const long c = n[3] == 1 ? j : j / n[3];
          const float h = (a[j] - at) * by, s = g[j] * scale[c];

          sum += s * h;
          shift += s;
          slopes[c] += g[j] * h;
          slopes[channels + c] += g[j];
        }
      p = (float)(sum / (double)size);
      q = mean != 0 ? (float)(shift / (double)size) : 0;
      for (long j = 0; j < size; j++)
        gx[r * size + j]
            = by * (g[j] * scale[n[3] == 1 ? j : j / n[3]] - q - (a[j] - at) * by * p);
    }
  for (long c = 0; c < channels; c++)
    {
      ggamma[c] = (float)room[c];
      if (gbeta != 0)
        gbeta[c] = (float)room[channels + c];
    }
}

/* y[:, c] = the sum of x[:, c - half .. c + half] of x (n, channels, inner), or, if squared, of
 * their squares. */
static void
channel_window (const float *x, float *y, long n, long channels, long inner, long half,
                int squared)
{
  for (long i = 0; i < n * channels * inner; i++)
    {
      const long c = i / inner % channels;
      float sum = 0;

      for (long k = c < half ? -c : -half; k <= half && c + k < channels; k++)
        {
          const float v = x[i + k * inner];

          sum = ROUND (sum + (squared ? ROUND (v * v) : v));
        }
      y[i] = sum;
    }
}

/* The LSTM cell: gates a, i, f, o of each unit are neighbours in x (n, 4 u).  Rows of c past
 * those stay as they are. */
static void
lstm (const float *c, const float *x, float *c_next, float *h, long rows, long n, long u)
{
  memcpy (c_next + n * u, c + n * u, (size_t)((rows - n) * u) * sizeof *c);
  for (long i = 0; i < n * u; i++)
    {
      const float *g = x + 4 * i;

      c_next[i] = tanhf (g[0]) / (1 + expf (-g[1])) + c[i] / (1 + expf (-g[2]));
      h[i] = tanhf (c_next[i]) / (1 + expf (-g[3]));
    }
}

/* Its gradients, of c and x: (n, u) and (n, 4 u); gc and gh are those of c_next and h. */
static void
lstm_grad (const float *c, const float *x, const float *c_next, const float *gc,
           const float *gh, float *gc_prev, float *gx, long rows, long n, long u)
{
  (void)rows;
  for (long k = 0; k < n * u; k++)
    {
      const float *g = x + 4 * k;
      const float a = tanhf (g[0]), i = 1 / (1 + expf (-g[1])), f = 1 / (1 + expf (-g[2])),
                  o = 1 / (1 + expf (-g[3])), h = tanhf (c_next[k]);
      const float s = gc[k] + gh[k] * o * (1 - h * h);

      gc_prev[k] = s * f;
      gx[4 * k] = s * i * (1 - a * a);
      gx[4 * k + 1] = s * a * i * (1 - i);
      gx[4 * k + 2] = s * c[k] * f * (1 - f);
      gx[4 * k + 3] = gh[k] * h * o * (1 - o);
    }
}
