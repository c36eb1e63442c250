/* Normalisation of rows by their own moments on the CPU: layer, group and root mean square
 * normalisation, and their gradients.
 *
 * Sums over a row are made in a fixed number of lanes; gradients of gamma and beta are
 * collected in double by pieces of a fixed number of rows, so that nothing depends on the
 * threads. *Source*: Ba, Kiros and Hinton, 2016; Wu and He, 2018; Zhang and Sennrich, 2019.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "cpu.h"
#include "gemm-tile.h"
#include "halves.h"
#include "twins.h"
#include "vector.h"

enum
{
  LANES = 16,
  PIECES = 16,         /* at most, of a gradient's rows */
  PIECE_NUMBERS = 8192 /* at least, in a piece */
};

typedef struct
{
  const TdRowNorm *norm;
  TdRowNormKind kind;
  int64_t m, n_channels; /* numbers of a row, channels of all groups */
  int64_t grain;
  const TdTensor *in;
  TdTensor *out;
  double *parts; /* of each piece: ggamma, gbeta */
  bool *failed;  /* a thread had no memory */
} Job;

/* The loops, one row or one channel of a row each: gamma is a vector (EACH) or one number. */
#define DEFINE_LOOPS(T)                                                                        \
  static inline void add_##T##_body (const T *x, const T *y, T *z, int64_t n)                  \
  {                                                                                            \
    for (int64_t k = 0; k < n; k++)                                                            \
      z[k] = x[k] + y[k];                                                                      \
  }                                                                                            \
  TD_TWINS (add_##T, (const T *x, const T *y, T *z, int64_t n), (x, y, z, n))                  \
                                                                                               \
  static inline void centre_##T##_body (const T *restrict x, T *restrict y, int64_t n, T mean) \
  {                                                                                            \
    for (int64_t k = 0; k < n; k++)                                                            \
      y[k] = x[k] - mean;                                                                      \
  }                                                                                            \
  TD_TWINS (centre_##T, (const T *restrict x, T *restrict y, int64_t n, T mean),               \
            (x, y, n, mean))                                                                   \
                                                                                               \
  static inline void scale_each_##T##_body (const T *restrict x, const T *restrict gamma,      \
                                            const T *restrict beta, T *restrict y, int64_t n,  \
                                            T mean, T s)                                       \
  {                                                                                            \
    if (beta == NULL)                                                                          \
      for (int64_t k = 0; k < n; k++)                                                          \
        y[k] = (x[k] - mean) * s * gamma[k];                                                   \
    else                                                                                       \
      for (int64_t k = 0; k < n; k++)                                                          \
        y[k] = (x[k] - mean) * s * gamma[k] + beta[k];                                         \
  }                                                                                            \
  TD_TWINS (scale_each_##T,                                                                    \
            (const T *restrict x, const T *restrict gamma, const T *restrict beta,             \
             T *restrict y, int64_t n, T mean, T s),                                           \
            (x, gamma, beta, y, n, mean, s))                                                   \
                                                                                               \
  static inline void scale_one_##T##_body (const T *restrict x, T *restrict y, int64_t n,      \
                                           T mean, T s, T gamma, T beta)                       \
  {                                                                                            \
    for (int64_t k = 0; k < n; k++)                                                            \
      y[k] = (x[k] - mean) * s * gamma + beta;                                                 \
  }                                                                                            \
  TD_TWINS (scale_one_##T,                                                                     \
            (const T *restrict x, T *restrict y, int64_t n, T mean, T s, T gamma, T beta),     \
            (x, y, n, mean, s, gamma, beta))                                                   \
                                                                                               \
  /* sum[0] += gy h, sum[1] += gy, gamma taken with; each column's into ggamma and gbeta. */   \
  static inline void sums_each_##T##_body (                                                    \
      const T *restrict x, const T *restrict gy, const T *restrict gamma,                      \
      double *restrict ggamma, double *restrict gbeta, int64_t n, T mean, T s, double *sum)    \
  {                                                                                            \
    double a[LANES] = { 0 }, b[LANES] = { 0 };                                                 \
    int64_t k = 0;                                                                             \
                                                                                               \
    for (; k + LANES <= n; k += LANES)                                                         \
      for (int l = 0; l < LANES; l++)                                                          \
        {                                                                                      \
          const T h = (x[k + l] - mean) * s, g = gy[k + l], p = g * gamma[k + l];              \
                                                                                               \
          a[l] += (double)(p * h);                                                             \
          b[l] += (double)p;                                                                   \
          ggamma[k + l] += (double)(g * h);                                                    \
          gbeta[k + l] += (double)g;                                                           \
        }                                                                                      \
    for (int l = 0; k < n; k++, l++)                                                           \
      {                                                                                        \
        const T h = (x[k] - mean) * s, p = gy[k] * gamma[k];                                   \
                                                                                               \
        a[l] += (double)(p * h);                                                               \
        b[l] += (double)p;                                                                     \
        ggamma[k] += (double)(gy[k] * h);                                                      \
        gbeta[k] += (double)gy[k];                                                             \
      }                                                                                        \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        sum[0] += a[l];                                                                        \
        sum[1] += b[l];                                                                        \
      }                                                                                        \
  }                                                                                            \
  TD_TWINS (sums_each_##T,                                                                     \
            (const T *restrict x, const T *restrict gy, const T *restrict gamma,               \
             double *restrict ggamma, double *restrict gbeta, int64_t n, T mean, T s,          \
             double *sum),                                                                     \
            (x, gy, gamma, ggamma, gbeta, n, mean, s, sum))                                    \
                                                                                               \
  static inline void sums_one_##T##_body (const T *restrict x, const T *restrict gy,           \
                                          int64_t n, T mean, T s, double *sum)                 \
  {                                                                                            \
    double a[LANES] = { 0 }, b[LANES] = { 0 };                                                 \
    int64_t k = 0;                                                                             \
                                                                                               \
    for (; k + LANES <= n; k += LANES)                                                         \
      for (int l = 0; l < LANES; l++)                                                          \
        {                                                                                      \
          a[l] += (double)(gy[k + l] * ((x[k + l] - mean) * s));                               \
          b[l] += (double)gy[k + l];                                                           \
        }                                                                                      \
    for (int l = 0; k < n; k++, l++)                                                           \
      {                                                                                        \
        a[l] += (double)(gy[k] * ((x[k] - mean) * s));                                         \
        b[l] += (double)gy[k];                                                                 \
      }                                                                                        \
    for (int l = 0; l < LANES; l++)                                                            \
      {                                                                                        \
        sum[0] += a[l];                                                                        \
        sum[1] += b[l];                                                                        \
      }                                                                                        \
  }                                                                                            \
  TD_TWINS (sums_one_##T,                                                                      \
            (const T *restrict x, const T *restrict gy, int64_t n, T mean, T s, double *sum),  \
            (x, gy, n, mean, s, sum))                                                          \
                                                                                               \
  static inline void back_each_##T##_body (const T *restrict x, const T *restrict gy,          \
                                           const T *restrict gamma, T *restrict gx, int64_t n, \
                                           T mean, T s, T a, T b)                              \
  {                                                                                            \
    for (int64_t k = 0; k < n; k++)                                                            \
      gx[k] = s * (gy[k] * gamma[k] - b - (x[k] - mean) * s * a);                              \
  }                                                                                            \
  TD_TWINS (back_each_##T,                                                                     \
            (const T *restrict x, const T *restrict gy, const T *restrict gamma,               \
             T *restrict gx, int64_t n, T mean, T s, T a, T b),                                \
            (x, gy, gamma, gx, n, mean, s, a, b))                                              \
                                                                                               \
  static inline void back_one_##T##_body (const T *restrict x, const T *restrict gy,           \
                                          T *restrict gx, int64_t n, T mean, T s, T gamma,     \
                                          T a, T b)                                            \
  {                                                                                            \
    for (int64_t k = 0; k < n; k++)                                                            \
      gx[k] = s * (gy[k] * gamma - b - (x[k] - mean) * s * a);                                 \
  }                                                                                            \
  TD_TWINS (back_one_##T,                                                                      \
            (const T *restrict x, const T *restrict gy, T *restrict gx, int64_t n, T mean,     \
             T s, T gamma, T a, T b),                                                          \
            (x, gy, gx, n, mean, s, gamma, a, b))

DEFINE_LOOPS (float)
DEFINE_LOOPS (double)

#define DEFINE_ROWS(T, DTYPE)                                                                  \
  /* A row in memory of the thread; NULL: there is none, which is noted. */                    \
  static T *row_of_##T (const Job *j)                                                          \
  {                                                                                            \
    T *row = td__cpu_scratch (TD_SCRATCH_ROW, (size_t)j->m * sizeof *row);                     \
                                                                                               \
    if (row == NULL)                                                                           \
      __atomic_store_n (j->failed, true, __ATOMIC_RELAXED);                                    \
    return row;                                                                                \
  }                                                                                            \
                                                                                               \
  static void forward_##T (const Job *j, int64_t row)                                          \
  {                                                                                            \
    const TdRowNorm *o = j->norm;                                                              \
    const int64_t first = row % o->groups * o->channels;                                       \
    const T *x = (const T *)j->in[0].data + row * j->m;                                        \
    const T *gamma = (const T *)j->in[1].data + first;                                         \
    const T *beta = o->centred ? (const T *)j->in[2].data + first : NULL;                      \
    T *y = (T *)j->out[0].data + row * j->m, s;                                                \
    double mean = 0, squares = 0;                                                              \
                                                                                               \
    if (o->join.added != NULL)                                                                 \
      {                                                                                        \
        T *sum = o->join.sum != NULL ? (T *)o->join.sum->data + row * j->m : row_of_##T (j);   \
                                                                                               \
        if (sum == NULL)                                                                       \
          return;                                                                              \
        add_##T (x, (const T *)o->join.added->data + row * j->m, sum, j->m);                   \
        x = sum;                                                                               \
      }                                                                                        \
    if (o->centred)                                                                            \
      {                                                                                        \
        td__vector->sum[DTYPE](x, j->m, &mean);                                                \
        mean /= (double)j->m;                                                                  \
        centre_##T (x, y, j->m, (T)mean);                                                      \
        ((T *)j->out[1].data)[row] = (T)mean;                                                  \
      }                                                                                        \
    td__vector->sum_squares[DTYPE](o->centred ? y : x, j->m, &squares);                        \
    s = (T)(1 / sqrt (squares / (double)j->m + o->eps));                                       \
    ((T *)j->out[o->centred ? 2 : 1].data)[row] = s;                                           \
    if (o->rest == 1)                                                                          \
      scale_each_##T (x, gamma, beta, y, j->m, (T)mean, s);                                    \
    else                                                                                       \
      for (int64_t c = 0; c < o->channels; c++)                                                \
        scale_one_##T (x + c * o->rest, y + c * o->rest, o->rest, (T)mean, s, gamma[c],        \
                       beta != NULL ? beta[c] : 0);                                            \
  }                                                                                            \
                                                                                               \
  static void backward_##T (const Job *j, int64_t row, double *ggamma, double *gbeta)          \
  {                                                                                            \
    const TdRowNorm *o = j->norm;                                                              \
    const int64_t first = row % o->groups * o->channels;                                       \
    const T *x = (const T *)j->in[0].data + row * j->m;                                        \
    const T *gy = (const T *)j->in[2].data + row * j->m;                                       \
    const T *gamma = (const T *)j->in[1].data + first;                                         \
    const T mean = o->centred ? ((const T *)j->in[3].data)[row] : 0;                           \
    const T s = ((const T *)j->in[o->centred ? 4 : 3].data)[row];                              \
    T *to = (T *)j->out[0].data + row * j->m, *gx = to, a, b;                                  \
    double sum[2] = { 0 };                                                                     \
                                                                                               \
    /* What is added may lie where the sum is to be. */                                        \
    if (o->join.added != NULL && (gx = row_of_##T (j)) == NULL)                                \
      return;                                                                                  \
    ggamma += first;                                                                           \
    gbeta += first;                                                                            \
    if (o->rest == 1)                                                                          \
      sums_each_##T (x, gy, gamma, ggamma, gbeta, j->m, mean, s, sum);                         \
    else                                                                                       \
      for (int64_t c = 0; c < o->channels; c++)                                                \
        {                                                                                      \
          double of[2] = { 0 };                                                                \
                                                                                               \
          sums_one_##T (x + c * o->rest, gy + c * o->rest, o->rest, mean, s, of);              \
          ggamma[c] += of[0];                                                                  \
          gbeta[c] += of[1];                                                                   \
          sum[0] += (double)gamma[c] * of[0];                                                  \
          sum[1] += (double)gamma[c] * of[1];                                                  \
        }                                                                                      \
    a = (T)(sum[0] / (double)j->m);                                                            \
    b = o->centred ? (T)(sum[1] / (double)j->m) : 0;                                           \
    if (o->rest == 1)                                                                          \
      back_each_##T (x, gy, gamma, gx, j->m, mean, s, a, b);                                   \
    else                                                                                       \
      for (int64_t c = 0; c < o->channels; c++)                                                \
        back_one_##T (x + c * o->rest, gy + c * o->rest, gx + c * o->rest, o->rest, mean, s,   \
                      gamma[c], a, b);                                                         \
    if (o->join.added != NULL)                                                                 \
      add_##T (gx, (const T *)o->join.added->data + row * j->m, to, j->m);                     \
  }                                                                                            \
                                                                                               \
  static void rows_##T (int64_t begin, int64_t end, int worker, void *context)                 \
  {                                                                                            \
    const Job *j = context;                                                                    \
                                                                                               \
    if (j->kind == TD_ROW_NORM)                                                                \
      for (int64_t row = begin; row < end; row++)                                              \
        forward_##T (j, row);                                                                  \
    else                                                                                       \
      {                                                                                        \
        double *part = j->parts + begin / j->grain * 2 * j->n_channels;                        \
                                                                                               \
        for (int64_t row = begin; row < end; row++)                                            \
          backward_##T (j, row, part, part + j->n_channels);                                   \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  /* Add the pieces up, in their order. */                                                     \
  static void collect_##T (const Job *j, int64_t n_pieces)                                     \
  {                                                                                            \
    for (int which = 0; which < (j->norm->centred ? 2 : 1); which++)                           \
      for (int64_t c = 0; c < j->n_channels; c++)                                              \
        {                                                                                      \
          double sum = 0;                                                                      \
                                                                                               \
          for (int64_t p = 0; p < n_pieces; p++)                                               \
            sum += j->parts[(2 * p + which) * j->n_channels + c];                              \
          ((T *)j->out[1 + which].data)[c] = (T)sum;                                           \
        }                                                                                      \
  }

DEFINE_ROWS (float, TD_F32)
DEFINE_ROWS (double, TD_F64)

TdStatus
td__cpu_row_norm (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm, const TdTensor *in,
                  int n_in, TdTensor *out, int n_out)
{
  const int64_t rows = norm->n * norm->groups;
  bool failed = false;
  Job job = { .norm = norm,
              .kind = kind,
              .m = norm->channels * norm->rest,
              .n_channels = norm->groups * norm->channels,
              .in = in,
              .out = out,
              .failed = &failed };
  int64_t n_pieces = 0;

  if (out[0].dtype != TD_F32 && out[0].dtype != TD_F64)
    return td__cpu_half_row_norm (d, kind, norm, in, n_in, out, n_out);
  job.grain = 1 + PIECE_NUMBERS / (job.m + 1);
  if (kind == TD_ROW_NORM_GRAD)
    {
      const int64_t even = (rows + PIECES - 1) / PIECES;

      job.grain = job.grain > even ? job.grain : even;
      n_pieces = (rows + job.grain - 1) / job.grain;
      job.parts = td__cpu_scratch (
          TD_SCRATCH_PARTS, (size_t)(2 * (n_pieces + 1) * job.n_channels) * sizeof (double));
      if (job.parts == NULL)
        return TD_ERR_MEMORY;
      for (int64_t i = 0; i < 2 * n_pieces * job.n_channels; i++)
        job.parts[i] = 0;
    }
  td__cpu_parallel (rows, job.grain, out[0].dtype == TD_F32 ? rows_float : rows_double, &job);
  if (kind == TD_ROW_NORM_GRAD && out[0].dtype == TD_F32)
    collect_float (&job, n_pieces);
  else if (kind == TD_ROW_NORM_GRAD)
    collect_double (&job, n_pieces);
  return failed ? TD_ERR_MEMORY : TD_OK;
}
