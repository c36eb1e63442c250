/* The text of matrix products for C programs that td_static_save writes: c-kernels.py takes
 * each function with the comment above it.
 *
 * SPDX-License-Identifier: MIT */
#include "c-kernels.h"

/* c (m, n), a row every `row` numbers, = beta c + op (a) op (b); op (a) is (m, k), op (b) is
 * (k, n), both row by row. */
static void
gemm_rows (int ta, int tb, long m, long n, long k, const float *a, const float *b, float beta,
           float *c, long row)
{
#ifdef WITH_BLAS
  if (m > 0 && n > 0)
    cblas_sgemm (CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                 (int)m, (int)n, (int)k, 1, a,
                 (int)(ta      ? m
                       : k > 0 ? k
                               : 1),
                 b, (int)(tb && k > 0 ? k : n), beta, c, (int)row);
#else
  for (long i = 0; i < m; i++)
    {
      float *line = c + i * row;

      for (long j = 0; j < n; j++)
        line[j] = beta != 0 ? beta * line[j] : 0;
      for (long j = 0; j < n && tb; j++)
        {
          float sum = 0;

          for (long p = 0; p < k; p++)
            sum += a[ta ? p * m + i : i * k + p] * b[j * k + p];
          line[j] += sum;
        }
      for (long p = 0; p < k && !tb; p++)
        {
          const float s = a[ta ? p * m + i : i * k + p];

          for (long j = 0; j < n; j++)
            line[j] += s * b[p * n + j];
        }
    }
#endif
}

/* The same of neighbours in c. */
static void
gemm (int ta, int tb, long m, long n, long k, const float *a, const float *b, float beta,
      float *c)
{
  gemm_rows (ta, tb, m, n, k, a, b, beta, c, n);
}

/* Products of a stack of matrices with another. */
static void
matmul (int ta, int tb, long batch, long m, long n, long k, const float *a, const float *b,
        float *y)
{
  for (long i = 0; i < batch; i++)
    gemm (ta, tb, m, n, k, a + i * m * k, b + i * k * n, 0, y + i * m * n);
}

/* y (rows, n_out) = x w' + b; b may be 0. */
static void
linear (const float *x, const float *w, const float *b, float *y, long rows, long n_in,
        long n_out)
{
  for (long r = 0; b != 0 && r < rows; r++)
    memcpy (y + r * n_out, b, (size_t)n_out * sizeof *y);
  gemm (0, 1, rows, n_out, n_in, x, w, b != 0, y);
}

/* The product of each number of a (n, p) with each of b (n, q): y (n, p, q). */
static void
products_of_pairs (const float *a, const float *b, float *y, long n, long p, long q)
{
  for (long i = 0; i < n; i++)
    for (long k = 0; k < p * q; k++)
      y[i * p * q + k] = ROUND (a[i * p + k / q] * b[i * q + k % q]);
}

/* Attention: y (batch, n_q, d_v) = softmax (scale q k') v, log_sum (batch, n_q).  Query i sees
 * key j where j <= i + n_k - n_q, if causal, and the mask, one for `every` batches, is not 0;
 * one that sees nothing gives zeros.  n: batch, n_q, n_k, d, d_v, every; room for n_q n_k. */
static void
attention (const float *const *in, float *y, float *log_sum, const long *n, float scale,
           int causal, float *room)
{
  for (long b = 0; b < n[0]; b++)
    {
      gemm (0, 1, n[1], n[2], n[3], in[0] + b * n[1] * n[3], in[1] + b * n[2] * n[3], 0, room);
      for (long i = 0; i < n[1]; i++)
        {
          const float *seen = in[3] != 0 ? in[3] + (b / n[5] * n[1] + i) * n[2] : 0;
          float *row = room + i * n[2], top = -INFINITY, sum = 0;

          for (long j = 0; j < n[2]; j++)
            {
              const int hidden = (causal && j > i + n[2] - n[1]) || (seen != 0 && seen[j] == 0);

              row[j] = hidden ? -INFINITY : scale * row[j];
              top = row[j] > top ? row[j] : top;
            }
          for (long j = 0; j < n[2]; j++)
            {
              row[j] = row[j] > -INFINITY ? expf (row[j] - top) : row[j] != row[j] ? row[j] : 0;
              sum += row[j];
            }
          for (long j = 0; j < n[2] && sum != 0; j++)
            row[j] /= sum;
          log_sum[b * n[1] + i] = sum != 0 ? top + logf (sum) : INFINITY;
        }
      gemm (0, 0, n[1], n[4], n[2], room, in[2] + b * n[2] * n[4], 0, y + b * n[1] * n[4]);
    }
}

/* Its gradients, those of q, k and v; in: q, k, v, the gradient of y, y, log_sum and the mask
 * or 0; room for twice n_q n_k. */
static void
attention_grad (const float *const *in, float *gq, float *gk, float *gv, const long *n,
                float scale, int causal, float *room)
{
  float *slopes = room + n[1] * n[2];

  for (long b = 0; b < n[0]; b++)
    {
      const float *q = in[0] + b * n[1] * n[3], *k = in[1] + b * n[2] * n[3],
                  *v = in[2] + b * n[2] * n[4], *gy = in[3] + b * n[1] * n[4],
                  *y = in[4] + b * n[1] * n[4];

      gemm (0, 1, n[1], n[2], n[3], q, k, 0, room);
      gemm (0, 1, n[1], n[2], n[4], gy, v, 0, slopes);
      for (long i = 0; i < n[1]; i++)
        {
          const float *seen = in[6] != 0 ? in[6] + (b / n[5] * n[1] + i) * n[2] : 0;
          float *row = room + i * n[2];

          for (long j = 0; j < n[2]; j++)
            {
              const int hidden = (causal && j > i + n[2] - n[1]) || (seen != 0 && seen[j] == 0);

              row[j] = expf ((hidden ? -INFINITY : scale * row[j]) - in[5][b * n[1] + i]);
            }
        }
      gemm (1, 0, n[2], n[4], n[1], room, gy, 0, gv + b * n[2] * n[4]);
      for (long i = 0; i < n[1]; i++)
        {
          double sum = 0;

          for (long j = 0; j < n[4]; j++)
            sum += y[i * n[4] + j] * gy[i * n[4] + j];
          for (long j = 0; j < n[2]; j++)
            room[i * n[2] + j] *= (slopes[i * n[2] + j] - (float)sum) * scale;
        }
      gemm (0, 0, n[1], n[3], n[2], room, k, 0, gq + b * n[1] * n[3]);
      gemm (1, 0, n[2], n[3], n[1], room, q, 0, gk + b * n[2] * n[3]);
    }
}
