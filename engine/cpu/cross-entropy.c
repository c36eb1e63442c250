/* Softmax cross entropy, its gradient, accuracy and counts of labels on the CPU.
 *
 * x is (n, c, rest), t (n, rest) of i32, i64 or u8; a row is one place with its c numbers, and
 * counts unless its label is the one to ignore.  Labels have been checked before.  The loss is
 * summed in double.  *Source*: chainer.functions.softmax_cross_entropy.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "cpu.h"

typedef struct
{
  int64_t n, c, rest;
  int64_t ignore;
  double share; /* of one row in the result */
  bool each;    /* rows are results of their own; of accuracy: `ignore` counts */
  const TdTensor *t;
} Rows;

static int64_t
label_of (const TdTensor *t, int64_t i)
{
  return t->dtype == TD_I64   ? ((const int64_t *)t->data)[i]
         : t->dtype == TD_I32 ? ((const int32_t *)t->data)[i]
                              : ((const uint8_t *)t->data)[i];
}

/* 1 / (rows that count), or 1 / n. */
static double
share_of (const Rows *r, bool normalize)
{
  int64_t count = r->n;

  if (normalize)
    {
      count = 0;
      for (int64_t i = 0; i < r->t->size; i++)
        count += label_of (r->t, i) != r->ignore;
    }
  return 1 / (double)(count > 1 ? count : 1);
}

/* The largest of c numbers, NaN before all others. */
#define DEFINE_ROWS(T, EXP)                                                                    \
  static int64_t largest_##T (const T *x, int64_t c, int64_t step)                             \
  {                                                                                            \
    int64_t best = 0;                                                                          \
                                                                                               \
    for (int64_t k = 1; k < c; k++)                                                            \
      if (x[k * step] > x[best * step]                                                         \
          || (x[k * step] != x[k * step] && x[best * step] == x[best * step]))                 \
        best = k;                                                                              \
    return best;                                                                               \
  }                                                                                            \
                                                                                               \
  static void loss_##T (const Rows *r, const T *x, const T *weight, T *loss, T *y)             \
  {                                                                                            \
    double total = 0;                                                                          \
                                                                                               \
    for (int64_t i = 0; i < r->n * r->rest; i++)                                               \
      {                                                                                        \
        const int64_t at = i / r->rest * r->rest * r->c + i % r->rest, step = r->rest;         \
        const int64_t label = label_of (r->t, i);                                              \
        const T top = x[at + largest_##T (x + at, r->c, step) * step];                         \
        T sum = 0;                                                                             \
                                                                                               \
        for (int64_t k = 0; k < r->c; k++)                                                     \
          sum += y[at + k * step] = EXP (x[at + k * step] - top);                              \
        for (int64_t k = 0; k < r->c; k++)                                                     \
          y[at + k * step] /= sum;                                                             \
        if (r->each)                                                                           \
          loss[i] = 0;                                                                         \
        if (label != r->ignore)                                                                \
          {                                                                                    \
            const double row = (log ((double)sum) - (double)(x[at + label * step] - top))      \
                               * (weight != NULL ? (double)weight[label] : 1);                 \
                                                                                               \
            total += row;                                                                      \
            if (r->each)                                                                       \
              loss[i] = (T)row;                                                                \
          }                                                                                    \
      }                                                                                        \
    if (!r->each)                                                                              \
      *loss = (T)(total * r->share);                                                           \
  }                                                                                            \
                                                                                               \
  static void grad_##T (const Rows *r, const T *y, const T *weight, const T *g, T *gx)         \
  {                                                                                            \
    for (int64_t i = 0; i < r->n * r->rest; i++)                                               \
      {                                                                                        \
        const int64_t at = i / r->rest * r->rest * r->c + i % r->rest, step = r->rest;         \
        const int64_t label = label_of (r->t, i);                                              \
        const bool counts = label != r->ignore;                                                \
        const T scale = (T)((double)g[r->each ? i : 0] * r->share                              \
                            * (counts && weight != NULL ? (double)weight[label] : 1));         \
                                                                                               \
        for (int64_t k = 0; k < r->c; k++)                                                     \
          gx[at + k * step] = counts ? y[at + k * step] * scale : 0;                           \
        if (counts)                                                                            \
          gx[at + label * step] = (y[at + label * step] - 1) * scale;                          \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static void shares_##T (const Rows *r, const T *weight, T *out)                              \
  {                                                                                            \
    for (int64_t i = 0; i < r->t->size; i++)                                                   \
      {                                                                                        \
        const int64_t label = label_of (r->t, i);                                              \
                                                                                               \
        out[i] = label == r->ignore                                                            \
                     ? 0                                                                       \
                     : (T)(r->share * (weight != NULL ? (double)weight[label] : 1));           \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static void accuracy_##T (const Rows *r, const T *y, T *out)                                 \
  {                                                                                            \
    int64_t right = 0, n_rows = r->n * r->rest;                                                \
                                                                                               \
    for (int64_t i = 0; i < r->n * r->rest; i++)                                               \
      {                                                                                        \
        const int64_t at = i / r->rest * r->rest * r->c + i % r->rest;                         \
                                                                                               \
        if (r->each && label_of (r->t, i) == r->ignore)                                        \
          n_rows--;                                                                            \
        else                                                                                   \
          right += largest_##T (y + at, r->c, r->rest) == label_of (r->t, i);                  \
      }                                                                                        \
    *out = (T)((double)right / (double)(n_rows > 0 ? n_rows : 1));                             \
  }                                                                                            \
                                                                                               \
  static void counts_##T (const Rows *r, const T *y, TdTensor *out)                            \
  {                                                                                            \
    double *right = out[0].data, *chosen = out[1].data, *labelled = out[2].data;               \
    const int64_t n_labels = out[0].size;                                                      \
                                                                                               \
    for (int k = 0; k < 3; k++)                                                                \
      memset (out[k].data, 0, (size_t)n_labels * sizeof (double));                             \
    for (int64_t i = 0; i < r->n * r->rest; i++)                                               \
      {                                                                                        \
        const int64_t at = i / r->rest * r->rest * r->c + i % r->rest;                         \
        const int64_t label = label_of (r->t, i);                                              \
        const int64_t best = largest_##T (y + at, r->c, r->rest);                              \
                                                                                               \
        if (label == r->ignore)                                                                \
          continue;                                                                            \
        labelled[label]++;                                                                     \
        if (best < n_labels)                                                                   \
          chosen[best]++;                                                                      \
        if (best == label)                                                                     \
          right[label]++;                                                                      \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static void run_##T (TdCrossEntropyKind kind, const Rows *r, const TdTensor *in, int n_in,   \
                       TdTensor *out)                                                          \
  {                                                                                            \
    static const int n_fixed[] = { 2, 3, 1, 2, 2 };                                            \
    const T *weight = n_in > n_fixed[kind] ? in[n_fixed[kind]].data : NULL;                    \
                                                                                               \
    if (kind == TD_CROSS_ENTROPY)                                                              \
      loss_##T (r, in[0].data, weight, out[0].data, out[1].data);                              \
    else if (kind == TD_CROSS_ENTROPY_GRAD)                                                    \
      grad_##T (r, in[0].data, weight, in[2].data, out[0].data);                               \
    else if (kind == TD_CROSS_ENTROPY_ROWS)                                                    \
      shares_##T (r, weight, out[0].data);                                                     \
    else if (kind == TD_ACCURACY)                                                              \
      accuracy_##T (r, in[0].data, out[0].data);                                               \
    else                                                                                       \
      counts_##T (r, in[0].data, out);                                                         \
  }

DEFINE_ROWS (float, expf)
DEFINE_ROWS (double, exp)

TdStatus
td__cpu_cross_entropy (TdDevice *d, int kind, const int64_t *params, const TdTensor *in,
                       int n_in, TdTensor *out, int n_out)
{
  const bool rows_only = kind == TD_CROSS_ENTROPY_ROWS;
  const TdTensor *t = &in[rows_only ? 0 : 1];
  const TdDtype numbers = kind == TD_LABEL_COUNTS ? in[0].dtype : out[0].dtype;
  Rows rows = { .n = t->shape->dim[0], .rest = 1, .ignore = params[0], .t = t };

  for (int i = 1; i < t->shape->ndim; i++)
    rows.rest *= t->shape->dim[i];
  if (!rows_only)
    rows.c = in[0].shape->dim[1];
  if (kind == TD_ACCURACY)
    rows.each = params[1] != 0;
  else if (kind != TD_LABEL_COUNTS)
    {
      rows.each = params[2] != 0;
      rows.share = rows.each ? 1 : share_of (&rows, params[1] != 0);
    }
  if (numbers == TD_F32)
    run_float ((TdCrossEntropyKind)kind, &rows, in, n_in, out);
  else if (numbers == TD_F64)
    run_double ((TdCrossEntropyKind)kind, &rows, in, n_in, out);
  else
    return TD_ERR_DTYPE;
  return TD_OK;
}
