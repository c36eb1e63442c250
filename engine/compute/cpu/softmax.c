/* Softmax and log softmax along one axis, and their gradients, on the CPU.
 *
 * An array is (outer, n, inner) around the axis.  Rows (inner = 1) use the vector loops for
 * exp; other axes go element by element.  *Source*: the maximum is taken out first, as in
 * chainer.functions.softmax, so nothing overflows.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "cpu.h"
#include "halves.h"
#include "vector.h"

typedef struct
{
  TdSoftmaxKind kind;
  int64_t n, inner;
  const void *x, *gy;
  void *y;
} Job;

/* One row of n numbers, step apart. */
#define DEFINE_SOFTMAX(T, DTYPE, EXP, LOG)                                                     \
  static void forward_##T (const Job *j, const T *x, T *y, int64_t step)                       \
  {                                                                                            \
    const int64_t n = j->n;                                                                    \
    T top = x[0], sum = 0;                                                                     \
                                                                                               \
    for (int64_t i = 1; i < n; i++)                                                            \
      top = x[i * step] > top ? x[i * step] : top;                                             \
    for (int64_t i = 0; i < n; i++)                                                            \
      y[i * step] = x[i * step] - top;                                                         \
    if (j->kind == TD_SOFTMAX && step == 1)                                                    \
      td__vector->unary[TD_UNARY_EXP][DTYPE](y, y, n, 0, 0);                                   \
    else if (j->kind == TD_SOFTMAX)                                                            \
      for (int64_t i = 0; i < n; i++)                                                          \
        y[i * step] = EXP (y[i * step]);                                                       \
    for (int64_t i = 0; i < n; i++)                                                            \
      sum += j->kind == TD_SOFTMAX ? y[i * step] : EXP (y[i * step]);                          \
    if (j->kind == TD_SOFTMAX)                                                                 \
      for (int64_t i = 0; i < n; i++)                                                          \
        y[i * step] /= sum;                                                                    \
    else                                                                                       \
      {                                                                                        \
        sum = LOG (sum);                                                                       \
        for (int64_t i = 0; i < n; i++)                                                        \
          y[i * step] -= sum;                                                                  \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static void backward_##T (const Job *j, const T *y, const T *gy, T *gx, int64_t step)        \
  {                                                                                            \
    const bool logs = j->kind == TD_LOG_SOFTMAX_GRAD;                                          \
    T sum = 0;                                                                                 \
                                                                                               \
    for (int64_t i = 0; i < j->n; i++)                                                         \
      sum += logs ? gy[i * step] : gy[i * step] * y[i * step];                                 \
    for (int64_t i = 0; i < j->n; i++)                                                         \
      gx[i * step] = logs ? gy[i * step] - EXP (y[i * step]) * sum                             \
                          : y[i * step] * (gy[i * step] - sum);                                \
  }                                                                                            \
                                                                                               \
  static void rows_##T (int64_t begin, int64_t end, int worker, void *context)                 \
  {                                                                                            \
    const Job *j = context;                                                                    \
                                                                                               \
    for (int64_t row = begin; row < end; row++)                                                \
      {                                                                                        \
        const int64_t at = row / j->inner * j->inner * j->n + row % j->inner;                  \
        const T *x = (const T *)j->x + at;                                                     \
        T *y = (T *)j->y + at;                                                                 \
                                                                                               \
        if (j->gy == NULL)                                                                     \
          forward_##T (j, x, y, j->inner);                                                     \
        else                                                                                   \
          backward_##T (j, x, (const T *)j->gy + at, y, j->inner);                             \
      }                                                                                        \
  }

DEFINE_SOFTMAX (float, TD_F32, expf, logf)
DEFINE_SOFTMAX (double, TD_F64, exp, log)

TdStatus
td__cpu_softmax (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x,
                 const TdTensor *gy, TdTensor *y)
{
  Job job = { kind, x->shape->dim[axis], 1, x->data, gy != NULL ? gy->data : NULL, y->data };
  const TdCpuBody body = y->dtype == TD_F32 ? rows_float : rows_double;

  if (y->dtype != TD_F32 && y->dtype != TD_F64)
    return td__cpu_half_softmax (d, kind, axis, x, gy, y);
  if (x->size == 0)
    return TD_OK;
  for (int i = axis + 1; i < x->shape->ndim; i++)
    job.inner *= x->shape->dim[i];
  td__cpu_parallel (x->size / job.n, 1 + 4096 / job.n, body, &job);
  return TD_OK;
}
