/* The LSTM cell on the CPU: gates to cell and output, and back.
 *
 * x (n, 4 u) holds the gates a, i, f, o interleaved per unit, as Chainer does; a row is taken
 * apart, pushed through the vector loops and put together again.
 * *Source*: chainer.functions.lstm.
 *
 * SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "gemm-tile.h"
#include "halves.h"
#include "vector.h"

typedef struct
{
  int64_t u;
  TdLstmKind kind;
  const TdTensor *in;
  TdTensor *out;
  bool failed;
} Job;

#define DEFINE_LSTM(T, DTYPE)                                                                  \
  static void gates_##T (const T *restrict x, int64_t u, T *restrict a, T *restrict i,         \
                         T *restrict f, T *restrict o)                                         \
  {                                                                                            \
    for (int64_t k = 0; k < u; k++)                                                            \
      {                                                                                        \
        a[k] = x[4 * k];                                                                       \
        i[k] = x[4 * k + 1];                                                                   \
        f[k] = x[4 * k + 2];                                                                   \
        o[k] = x[4 * k + 3];                                                                   \
      }                                                                                        \
    td__vector->unary[TD_UNARY_TANH][DTYPE](a, a, u, 0, 0);                                    \
    td__vector->unary[TD_UNARY_SIGMOID][DTYPE](i, i, 3 * u, 0, 0); /* i, f, o follow */        \
  }                                                                                            \
                                                                                               \
  static void forward_##T (const Job *j, int64_t row, T *restrict s)                           \
  {                                                                                            \
    const int64_t u = j->u;                                                                    \
    const T *restrict c_prev = (const T *)j->in[0].data + row * u;                             \
    T *restrict a = s, *restrict i = s + u, *restrict f = s + 2 * u, *restrict o = s + 3 * u;  \
    T *restrict c = (T *)j->out[0].data + row * u, *restrict h                                 \
                                                   = (T *)j->out[1].data + row * u;            \
                                                                                               \
    gates_##T ((const T *)j->in[1].data + row * 4 * u, u, a, i, f, o);                         \
    for (int64_t k = 0; k < u; k++)                                                            \
      c[k] = a[k] * i[k] + f[k] * c_prev[k];                                                   \
    td__vector->unary[TD_UNARY_TANH][DTYPE](c, a, u, 0, 0);                                    \
    for (int64_t k = 0; k < u; k++)                                                            \
      h[k] = o[k] * a[k];                                                                      \
  }                                                                                            \
                                                                                               \
  static void backward_##T (const Job *j, int64_t row, T *restrict s)                          \
  {                                                                                            \
    const int64_t u = j->u;                                                                    \
    const T *restrict c_prev = (const T *)j->in[0].data + row * u;                             \
    const T *restrict c = (const T *)j->in[2].data + row * u;                                  \
    const T *restrict gc = (const T *)j->in[3].data + row * u;                                 \
    const T *restrict gh = (const T *)j->in[4].data + row * u;                                 \
    T *restrict a = s, *restrict i = s + u, *restrict f = s + 2 * u, *restrict o = s + 3 * u;  \
    T *restrict co = s + 4 * u;                                                                \
    T *restrict gc_prev = (T *)j->out[0].data + row * u;                                       \
    T *restrict gx = (T *)j->out[1].data + row * 4 * u;                                        \
                                                                                               \
    gates_##T ((const T *)j->in[1].data + row * 4 * u, u, a, i, f, o);                         \
    td__vector->unary[TD_UNARY_TANH][DTYPE](c, co, u, 0, 0);                                   \
    for (int64_t k = 0; k < u; k++)                                                            \
      {                                                                                        \
        const T g = gc[k] + gh[k] * o[k] * (1 - co[k] * co[k]);                                \
                                                                                               \
        gc_prev[k] = g * f[k];                                                                 \
        gx[4 * k] = g * i[k] * (1 - a[k] * a[k]);                                              \
        gx[4 * k + 1] = g * a[k] * i[k] * (1 - i[k]);                                          \
        gx[4 * k + 2] = g * c_prev[k] * f[k] * (1 - f[k]);                                     \
        gx[4 * k + 3] = gh[k] * co[k] * o[k] * (1 - o[k]);                                     \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static void rows_##T (int64_t begin, int64_t end, int worker, void *context)                 \
  {                                                                                            \
    Job *j = context;                                                                          \
    T *s = td__cpu_scratch (TD_SCRATCH_C, (size_t)(5 * j->u) * sizeof *s);                     \
                                                                                               \
    if (s == NULL)                                                                             \
      {                                                                                        \
        __atomic_store_n (&j->failed, true, __ATOMIC_RELAXED);                                 \
        return;                                                                                \
      }                                                                                        \
    for (int64_t row = begin; row < end; row++)                                                \
      if (j->kind == TD_LSTM)                                                                  \
        forward_##T (j, row, s);                                                               \
      else                                                                                     \
        backward_##T (j, row, s);                                                              \
  }

DEFINE_LSTM (float, TD_F32)
DEFINE_LSTM (double, TD_F64)

TdStatus
td__cpu_lstm (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  Job job = { in[0].shape->dim[1], (TdLstmKind)kind, in, out, false };
  const int64_t n = in[0].shape->dim[0], grain = 1 + 8192 / (job.u + 1);

  if (job.u == 0)
    return TD_OK;
  if (out[0].dtype == TD_F32)
    td__cpu_parallel (n, grain, rows_float, &job);
  else if (out[0].dtype == TD_F64)
    td__cpu_parallel (n, grain, rows_double, &job);
  else
    return td__cpu_half_lstm (d, kind, in, n_in, out, n_out);
  return job.failed ? TD_ERR_MEMORY : TD_OK;
}
