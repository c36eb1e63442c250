/* Softmax cross entropy, its gradient, accuracy and counts of labels on the CPU.
 *
 * x is (n, c, rest), t (n, rest) of i32, i64 or u8; a row is one place with its c numbers, and
 * counts unless its label is the one to ignore.  Labels have been checked before.  The loss is
 * summed in double, row by row, on any number of threads.  Rows of neighbouring numbers (rest =
 * 1) take the vector loops.  *Source*: chainer.functions.softmax_cross_entropy.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "cpu.h"
#include "halves.h"
#include "gemm-tile.h" /* td__cpu_scratch */
#include "vector.h"

typedef struct
{
  int64_t n, c, rest;
  int64_t labels; /* how many there are; -1: of no matter */
  int64_t ignore;
  double share; /* of one row in the result */
  bool each;    /* rows are results of their own; of accuracy: `ignore` counts */
  const TdTensor *t;
} Rows;

/* One that is none of the labels is reported by the check of labels, and ignored here. */
static int64_t
label_of (const Rows *r, int64_t i)
{
  const TdTensor *t = r->t;
  const int64_t label = t->dtype == TD_I64   ? ((const int64_t *)t->data)[i]
                        : t->dtype == TD_I32 ? ((const int32_t *)t->data)[i]
                                             : ((const uint8_t *)t->data)[i];

  return (label >= 0 && label < r->labels) || r->labels < 0 ? label : r->ignore;
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
        count += label_of (r, i) != r->ignore;
    }
  return 1 / (double)(count > 1 ? count : 1);
}

/* The loss of every row to row[], softmax to y.  Short rows are not worth a call of a loop. */
typedef struct
{
  const Rows *r;
  const void *x, *weight;
  void *y;
  double *row;
} Loss;

enum
{
  SHORT_ROW = 16
};

#define DEFINE_LOSS(T, DTYPE, EXP)                                                             \
  static T top_##T (const T *x, int64_t c, int64_t step)                                       \
  {                                                                                            \
    double top = -INFINITY;                                                                    \
                                                                                               \
    if (step == 1 && c >= SHORT_ROW)                                                           \
      td__vector->max[DTYPE](x, c, &top);                                                      \
    else                                                                                       \
      for (int64_t k = 0; k < c; k++)                                                          \
        top = (double)x[k * step] > top ? (double)x[k * step] : top;                           \
    return (T)top;                                                                             \
  }                                                                                            \
                                                                                               \
  static double sum_##T (const T *y, int64_t c, int64_t step)                                  \
  {                                                                                            \
    double sum = 0;                                                                            \
                                                                                               \
    if (step == 1 && c >= SHORT_ROW)                                                           \
      td__vector->sum[DTYPE](y, c, &sum);                                                      \
    else                                                                                       \
      for (int64_t k = 0; k < c; k++)                                                          \
        sum += (double)y[k * step];                                                            \
    return sum;                                                                                \
  }                                                                                            \
                                                                                               \
  static double row_loss_##T (const Loss *l, int64_t i, const T *x, T *y, T top)               \
  {                                                                                            \
    const Rows *r = l->r;                                                                      \
    const int64_t label = label_of (r, i);                                                     \
    const double sum = sum_##T (y, r->c, r->rest);                                             \
    const T divisor = (T)sum, *weight = l->weight;                                             \
                                                                                               \
    for (int64_t k = 0; k < r->c; k++)                                                         \
      y[k * r->rest] /= divisor;                                                               \
    if (label == r->ignore)                                                                    \
      return 0;                                                                                \
    return (log (sum) - (double)(x[label * r->rest] - top))                                    \
           * (weight != NULL ? (double)weight[label] : 1);                                     \
  }                                                                                            \
                                                                                               \
  static void loss_piece_##T (int64_t begin, int64_t end, int worker, void *context)           \
  {                                                                                            \
    const Loss *l = context;                                                                   \
    const int64_t c = l->r->c, rest = l->r->rest;                                              \
                                                                                               \
    for (int64_t i = begin; i < end; i++)                                                      \
      {                                                                                        \
        const int64_t at = i / rest * rest * c + i % rest;                                     \
        const T *x = (const T *)l->x + at, top = top_##T (x, c, rest);                         \
        T *y = (T *)l->y + at;                                                                 \
                                                                                               \
        for (int64_t k = 0; k < c; k++)                                                        \
          y[k * rest] = x[k * rest] - top;                                                     \
        if (rest > 1)                                                                          \
          for (int64_t k = 0; k < c; k++)                                                      \
            y[k * rest] = EXP (y[k * rest]);                                                   \
        l->row[i] = (double)top;                                                               \
      }                                                                                        \
    if (rest == 1)                                                                             \
      td__vector->unary[TD_UNARY_EXP][DTYPE]((T *)l->y + begin * c, (T *)l->y + begin * c,     \
                                             (end - begin) * c, 0, 0);                         \
    for (int64_t i = begin; i < end; i++)                                                      \
      {                                                                                        \
        const int64_t at = i / rest * rest * c + i % rest;                                     \
                                                                                               \
        l->row[i] = row_loss_##T (l, i, (const T *)l->x + at, (T *)l->y + at, (T)l->row[i]);   \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static TdStatus loss_##T (const Rows *r, const TdTensor *x, const T *weight, T *loss, T *y)  \
  {                                                                                            \
    const int64_t n = r->n * r->rest;                                                          \
    double *row = td__cpu_scratch (TD_SCRATCH_PARTS, (size_t)n * sizeof *row), total = 0;      \
    Loss l = { r, x->data, weight, y, row };                                                   \
                                                                                               \
    if (row == NULL)                                                                           \
      return TD_ERR_MEMORY;                                                                    \
    td__cpu_parallel (n, 1 + 4096 / r->c, loss_piece_##T, &l);                                 \
    for (int64_t i = 0; i < n; i++)                                                            \
      {                                                                                        \
        total += row[i];                                                                       \
        if (r->each)                                                                           \
          loss[i] = (T)row[i];                                                                 \
      }                                                                                        \
    if (!r->each)                                                                              \
      *loss = (T)(total * r->share);                                                           \
    return TD_OK;                                                                              \
  }

DEFINE_LOSS (float, TD_F32, expf)
DEFINE_LOSS (double, TD_F64, exp)

/* The largest of c numbers, NaN before all others. */
#define DEFINE_ROWS(T)                                                                         \
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
  static void grad_##T (const Rows *r, const T *y, const T *weight, const T *g, T *gx)         \
  {                                                                                            \
    for (int64_t i = 0; i < r->n * r->rest; i++)                                               \
      {                                                                                        \
        const int64_t at = i / r->rest * r->rest * r->c + i % r->rest, step = r->rest;         \
        const int64_t label = label_of (r, i);                                                 \
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
        const int64_t label = label_of (r, i);                                                 \
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
        if (r->each && label_of (r, i) == r->ignore)                                           \
          n_rows--;                                                                            \
        else                                                                                   \
          right += largest_##T (y + at, r->c, r->rest) == label_of (r, i);                     \
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
        const int64_t label = label_of (r, i);                                                 \
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
  static TdStatus run_##T (TdCrossEntropyKind kind, const Rows *r, const TdTensor *in,         \
                           int n_in, TdTensor *out)                                            \
  {                                                                                            \
    static const int n_fixed[] = { 2, 3, 1, 2, 2 };                                            \
    const T *weight = n_in > n_fixed[kind] ? in[n_fixed[kind]].data : NULL;                    \
                                                                                               \
    if (kind == TD_CROSS_ENTROPY)                                                              \
      return loss_##T (r, &in[0], weight, out[0].data, out[1].data);                           \
    if (kind == TD_CROSS_ENTROPY_GRAD)                                                         \
      grad_##T (r, in[0].data, weight, in[2].data, out[0].data);                               \
    else if (kind == TD_CROSS_ENTROPY_ROWS)                                                    \
      shares_##T (r, weight, out[0].data);                                                     \
    else if (kind == TD_ACCURACY)                                                              \
      accuracy_##T (r, in[0].data, out[0].data);                                               \
    else                                                                                       \
      counts_##T (r, in[0].data, out);                                                         \
    return TD_OK;                                                                              \
  }

DEFINE_ROWS (float)
DEFINE_ROWS (double)

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
  rows.labels = kind == TD_ACCURACY                         ? -1
                : kind == TD_LABEL_COUNTS                   ? out[0].size
                : kind == TD_CROSS_ENTROPY_ROWS && n_in > 1 ? in[1].size
                : rows_only                                 ? INT64_MAX
                                                            : rows.c;
  if (kind == TD_ACCURACY)
    rows.each = params[1] != 0;
  else if (kind != TD_LABEL_COUNTS)
    {
      rows.each = params[2] != 0;
      rows.share = rows.each ? 1 : share_of (&rows, params[1] != 0);
    }
  if (numbers == TD_F32)
    return run_float ((TdCrossEntropyKind)kind, &rows, in, n_in, out);
  if (numbers == TD_F64)
    return run_double ((TdCrossEntropyKind)kind, &rows, in, n_in, out);
  return td__cpu_half_cross_entropy (d, kind, params, in, n_in, out, n_out);
}
