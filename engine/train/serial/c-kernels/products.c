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

/* y (n, c) = sum over pairs of e1 (n, p), e2 (n, q) by w (p q, c) + e1 v1 + e2 v2 + b; v1 may
 * be 0; room for n p q numbers. */
static void
bilinear (const float *const *in, float *y, long n, long p, long q, long c, float *room)
{
  for (long i = 0; i < n; i++)
    {
      for (long k = 0; k < p * q; k++)
        room[i * p * q + k] = in[0][i * p + k / q] * in[1][i * q + k % q];
      for (long k = 0; k < c; k++)
        y[i * c + k] = in[5] != 0 ? in[5][k] : 0;
    }
  gemm (0, 0, n, c, p * q, room, in[2], 1, y);
  if (in[3] != 0)
    {
      gemm (0, 0, n, c, p, in[0], in[3], 1, y);
      gemm (0, 0, n, c, q, in[1], in[4], 1, y);
    }
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
          log_sum[b * n[1] + i] = top + logf (sum);
        }
      gemm (0, 0, n[1], n[4], n[2], room, in[2] + b * n[2] * n[4], 0, y + b * n[1] * n[4]);
    }
}
