/* Batch normalisation on the CPU: training, with a given mean and variance, and the gradient.
 *
 * Arrays are (n, c, rest); a channel's numbers are summed in double, the mean first and then
 * the squares around it, in a fixed number of lanes.  Blocks of channels are shared out over
 * the threads. *Source*: Ioffe and Szegedy, 2015, and chainer.functions.batch_normalization:
 * running variance takes the unbiased m / (m - 1).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "cpu.h"
#include "halves.h"
#include "twins.h"

enum
{
  CHANNELS = 8, /* per task */
  LANES = 16    /* sums side by side, whatever the processor: the same bits */
};

typedef struct
{
  TdBatchNormKind kind;
  int64_t n, c, rest;
  double eps, decay;
  const TdTensor *in;
  TdTensor *out;
  int n_in;
} Job;

static double
sum_of (const double lanes[LANES])
{
  double sum = 0;

  for (int k = 0; k < LANES; k++)
    sum += lanes[k];
  return sum;
}

/* Call BODY for element r and lane k of a row of n. */
#define EACH_LANE(n, BODY)                                                                     \
  do                                                                                           \
    {                                                                                          \
      int64_t r = 0;                                                                           \
                                                                                               \
      for (; r + LANES <= (n); r += LANES)                                                     \
        for (int k = 0; k < LANES; k++)                                                        \
          {                                                                                    \
            const int64_t at = r + k;                                                          \
            BODY;                                                                              \
          }                                                                                    \
      for (int k = 0; r + k < (n); k++)                                                        \
        {                                                                                      \
          const int64_t at = r + k;                                                            \
          BODY;                                                                                \
        }                                                                                      \
    }                                                                                          \
  while (0)

/* What is done to one row, `rest` numbers side by side. */
#define DEFINE_ROWS(T)                                                                         \
  static inline __attribute__ ((always_inline)) void sum_row_##T##_body (                      \
      const T *restrict x, int64_t n, double *restrict lanes)                                  \
  {                                                                                            \
    EACH_LANE (n, lanes[k] += (double)x[at]);                                                  \
  }                                                                                            \
  TD_TWINS (sum_row_##T, (const T *restrict x, int64_t n, double *restrict lanes),             \
            (x, n, lanes))                                                                     \
                                                                                               \
  static inline __attribute__ ((always_inline)) void squares_row_##T##_body (                  \
      const T *restrict x, int64_t n, double mean, double *restrict lanes)                     \
  {                                                                                            \
    EACH_LANE (n, const double e = (double)x[at] - mean; lanes[k] += e * e);                   \
  }                                                                                            \
  TD_TWINS (squares_row_##T,                                                                   \
            (const T *restrict x, int64_t n, double mean, double *restrict lanes),             \
            (x, n, mean, lanes))                                                               \
                                                                                               \
  static inline __attribute__ ((always_inline)) void grad_sums_row_##T##_body (                \
      const T *restrict x, const T *restrict gy, int64_t n, T mean, T s,                       \
      double *restrict gamma, double *restrict beta)                                           \
  {                                                                                            \
    EACH_LANE (n, beta[k] += (double)gy[at];                                                   \
               gamma[k] += (double)gy[at] * (double)((x[at] - mean) * s));                     \
  }                                                                                            \
  TD_TWINS (grad_sums_row_##T,                                                                 \
            (const T *restrict x, const T *restrict gy, int64_t n, T mean, T s,                \
             double *restrict gamma, double *restrict beta),                                   \
            (x, gy, n, mean, s, gamma, beta))                                                  \
                                                                                               \
  static inline __attribute__ ((always_inline)) void scale_row_##T##_body (                    \
      const T *restrict x, int64_t n, T mean, T s, T gamma, T beta, T *restrict y)             \
  {                                                                                            \
    for (int64_t r = 0; r < n; r++)                                                            \
      y[r] = (x[r] - mean) * s * gamma + beta;                                                 \
  }                                                                                            \
  TD_TWINS (scale_row_##T,                                                                     \
            (const T *restrict x, int64_t n, T mean, T s, T gamma, T beta, T *restrict y),     \
            (x, n, mean, s, gamma, beta, y))                                                   \
                                                                                               \
  static inline __attribute__ ((always_inline)) void grad_row_##T##_body (                     \
      const T *restrict x, const T *restrict gy, int64_t n, T mean, T s, T gamma, T a, T b,    \
      T *restrict gx)                                                                          \
  {                                                                                            \
    for (int64_t r = 0; r < n; r++)                                                            \
      gx[r] = gamma * s * (gy[r] - (x[r] - mean) * s * a - b);                                 \
  }                                                                                            \
  TD_TWINS (grad_row_##T,                                                                      \
            (const T *restrict x, const T *restrict gy, int64_t n, T mean, T s, T gamma, T a,  \
             T b, T *restrict gx),                                                             \
            (x, gy, n, mean, s, gamma, a, b, gx))
DEFINE_ROWS (float)
DEFINE_ROWS (double)

/* Call BODY for each row of channel ch; `at` is where it begins. */
#define EACH_ROW(j, ch, BODY)                                                                  \
  for (int64_t i_ = 0, at = (ch) * (j)->rest; i_ < (j)->n; i_++, at += (j)->c * (j)->rest)     \
    {                                                                                          \
      BODY;                                                                                    \
    }

#define DEFINE_BATCH_NORM(T)                                                                   \
  static void scale_##T (const Job *j, int64_t ch, double mean, double inv_std)                \
  {                                                                                            \
    const T *x = j->in[0].data;                                                                \
    const T gamma = ((const T *)j->in[1].data)[ch], beta = ((const T *)j->in[2].data)[ch];     \
    const T m = (T)mean, s = (T)inv_std;                                                       \
    T *y = j->out[0].data;                                                                     \
                                                                                               \
    EACH_ROW (j, ch, scale_row_##T (x + at, j->rest, m, s, gamma, beta, y + at))               \
  }                                                                                            \
                                                                                               \
  static void train_##T (const Job *j, int64_t ch)                                             \
  {                                                                                            \
    const T *x = j->in[0].data;                                                                \
    const double m = (double)(j->n * j->rest);                                                 \
    double sums[LANES] = { 0 }, squares[LANES] = { 0 }, mean, var, inv_std;                    \
                                                                                               \
    EACH_ROW (j, ch, sum_row_##T (x + at, j->rest, sums))                                      \
    mean = sum_of (sums) / m;                                                                  \
    EACH_ROW (j, ch, squares_row_##T (x + at, j->rest, mean, squares))                         \
    var = sum_of (squares) / m;                                                                \
    inv_std = 1 / sqrt (var + j->eps);                                                         \
    ((T *)j->out[1].data)[ch] = (T)mean;                                                       \
    ((T *)j->out[2].data)[ch] = (T)inv_std;                                                    \
    if (j->n_in == 5)                                                                          \
      {                                                                                        \
        T *running_mean = (T *)j->in[3].data + ch, *running_var = (T *)j->in[4].data + ch;     \
        const double unbiased = var * m / (m > 2 ? m - 1 : 1);                                 \
                                                                                               \
        *running_mean = (T)(j->decay * (double)*running_mean + (1 - j->decay) * mean);         \
        *running_var = (T)(j->decay * (double)*running_var + (1 - j->decay) * unbiased);       \
      }                                                                                        \
    scale_##T (j, ch, mean, inv_std);                                                          \
  }                                                                                            \
                                                                                               \
  static void grad_##T (const Job *j, int64_t ch)                                              \
  {                                                                                            \
    const T *x = j->in[0].data, *gy = j->in[2].data;                                           \
    const T gamma = ((const T *)j->in[1].data)[ch], mean = ((const T *)j->in[3].data)[ch];     \
    const T s = ((const T *)j->in[4].data)[ch];                                                \
    const double m = (double)(j->n * j->rest);                                                 \
    T *gx = j->out[0].data;                                                                    \
    double gammas[LANES] = { 0 }, betas[LANES] = { 0 }, ggamma, gbeta;                         \
    T a, b;                                                                                    \
                                                                                               \
    EACH_ROW (j, ch, grad_sums_row_##T (x + at, gy + at, j->rest, mean, s, gammas, betas))     \
    ggamma = sum_of (gammas);                                                                  \
    gbeta = sum_of (betas);                                                                    \
    ((T *)j->out[1].data)[ch] = (T)ggamma;                                                     \
    ((T *)j->out[2].data)[ch] = (T)gbeta;                                                      \
    a = (T)(ggamma / m);                                                                       \
    b = (T)(gbeta / m);                                                                        \
    EACH_ROW (j, ch, grad_row_##T (x + at, gy + at, j->rest, mean, s, gamma, a, b, gx + at))   \
  }                                                                                            \
                                                                                               \
  static void channels_##T (int64_t begin, int64_t end, int worker, void *context)             \
  {                                                                                            \
    const Job *j = context;                                                                    \
                                                                                               \
    for (int64_t ch = begin; ch < end; ch++)                                                   \
      if (j->kind == TD_BATCH_NORM_TRAIN)                                                      \
        train_##T (j, ch);                                                                     \
      else if (j->kind == TD_BATCH_NORM_GRAD)                                                  \
        grad_##T (j, ch);                                                                      \
      else                                                                                     \
        {                                                                                      \
          const double var = (double)((const T *)j->in[4].data)[ch];                           \
                                                                                               \
          scale_##T (j, ch, (double)((const T *)j->in[3].data)[ch], 1 / sqrt (var + j->eps));  \
        }                                                                                      \
  }

DEFINE_BATCH_NORM (float)
DEFINE_BATCH_NORM (double)

TdStatus
td__cpu_batch_norm (TdDevice *d, int kind, const double *params, const TdTensor *in, int n_in,
                    TdTensor *out, int n_out)
{
  const TdShape *x = in[0].shape;
  Job job = { .kind = (TdBatchNormKind)kind,
              .n = x->dim[0],
              .c = x->dim[1],
              .rest = 1,
              .in = in,
              .out = out,
              .n_in = n_in };

  if (kind != TD_BATCH_NORM_GRAD)
    job.eps = params[0];
  if (kind == TD_BATCH_NORM_TRAIN)
    job.decay = params[1];
  for (int i = 2; i < x->ndim; i++)
    job.rest *= x->dim[i];
  if (out[0].dtype == TD_F32)
    td__cpu_parallel (job.c, CHANNELS, channels_float, &job);
  else if (out[0].dtype == TD_F64)
    td__cpu_parallel (job.c, CHANNELS, channels_double, &job);
  else
    return td__cpu_half_batch_norm (d, kind, params, in, n_in, out, n_out);
  return TD_OK;
}
