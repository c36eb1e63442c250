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

/* Sums so far over the middle axis of (outer, n, inner), from its end if reverse. */
static void
cumulative_sum (const float *x, float *y, long outer, long n, long inner, int reverse)
{
  for (long o = 0; o < outer; o++)
    for (long i = 0; i < inner; i++)
      {
        double sum = 0;

        for (long k = 0; k < n; k++)
          {
            const long at = (o * n + (reverse ? n - 1 - k : k)) * inner + i;

            sum += x[at];
            y[at] = (float)sum;
          }
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

        for (long k = 0; k < n; k++)
          sum += (double)x[(o * n + k) * inner + i] * x[(o * n + k) * inner + i];
        for (long k = 0; k < n; k++)
          y[(o * n + k) * inner + i] = x[(o * n + k) * inner + i] / ((float)sqrt (sum) + eps);
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

/* x (n, c, inner) by moments that are given. */
static void
fixed_normalize (const float *x, const float *gamma, const float *beta, const float *mean,
                 const float *var, float *y, long n, long c, long inner, float eps)
{
  for (long i = 0; i < n * c; i++)
    {
      const float scale = gamma[i % c] / sqrtf (var[i % c] + eps), at = mean[i % c],
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

          sum += squared ? v * v : v;
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
