/* Batch normalisation on the CPU: training, with a given mean and variance, and the gradient.
 *
 * Arrays are (n, c, rest); a channel's numbers are summed in double, the mean first and then
 * the squares around it.  Blocks of channels are shared out over the threads.
 * *Source*: Ioffe and Szegedy, 2015, and chainer.functions.batch_normalization: running
 * variance takes the unbiased m / (m - 1).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "cpu.h"

enum
{
  CHANNELS = 8 /* per task */
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

/* Call BODY for each element `at` of channel ch. */
#define EACH(j, ch, BODY)                                                                      \
  for (int64_t i_ = 0; i_ < (j)->n; i_++)                                                      \
    for (int64_t r_ = 0, at = (i_ * (j)->c + (ch)) * (j)->rest; r_ < (j)->rest; r_++, at++)    \
      {                                                                                        \
        BODY;                                                                                  \
      }

#define DEFINE_BATCH_NORM(T)                                                                   \
  static void scale_##T (const Job *j, int64_t ch, double mean, double inv_std)                \
  {                                                                                            \
    const T *x = j->in[0].data;                                                                \
    const T gamma = ((const T *)j->in[1].data)[ch], beta = ((const T *)j->in[2].data)[ch];     \
    const T m = (T)mean, s = (T)inv_std;                                                       \
    T *y = j->out[0].data;                                                                     \
                                                                                               \
    EACH (j, ch, y[at] = (x[at] - m) * s * gamma + beta)                                       \
  }                                                                                            \
                                                                                               \
  static void train_##T (const Job *j, int64_t ch)                                             \
  {                                                                                            \
    const T *x = j->in[0].data;                                                                \
    const double m = (double)(j->n * j->rest);                                                 \
    double mean = 0, var = 0, inv_std;                                                         \
                                                                                               \
    EACH (j, ch, mean += (double)x[at])                                                        \
    mean /= m;                                                                                 \
    EACH (j, ch, const double e = (double)x[at] - mean; var += e * e)                          \
    var /= m;                                                                                  \
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
    double ggamma = 0, gbeta = 0;                                                              \
    T a, b;                                                                                    \
                                                                                               \
    EACH (j, ch, gbeta += (double)gy[at];                                                      \
          ggamma += (double)gy[at] * (double)((x[at] - mean) * s))                             \
    ((T *)j->out[1].data)[ch] = (T)ggamma;                                                     \
    ((T *)j->out[2].data)[ch] = (T)gbeta;                                                      \
    a = (T)(ggamma / m);                                                                       \
    b = (T)(gbeta / m);                                                                        \
    EACH (j, ch, gx[at] = gamma * s * (gy[at] - (x[at] - mean) * s * a - b))                   \
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
    return TD_ERR_DTYPE;
  return TD_OK;
}
