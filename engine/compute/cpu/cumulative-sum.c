/* Sums of what lies up to each element along an axis, summed in double (integers wrap).
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "halves.h"

enum
{
  COLUMNS = 64 /* summed together, where neighbours lie along another axis */
};

typedef struct
{
  const TdTensor *x;
  TdTensor *y;
  int64_t n, inner, chunks; /* length of the axis, elements between its own, pieces of those */
  bool reverse;
} SumWork;

/* Piece o: up to COLUMNS neighbours, walked along the axis together. */
#define SUM_PIECE(T, Total)                                                                    \
  static void sum_##T (int64_t begin, int64_t end, int worker, void *context)                  \
  {                                                                                            \
    const SumWork *w = context;                                                                \
                                                                                               \
    for (int64_t o = begin; o < end; o++)                                                      \
      {                                                                                        \
        const int64_t first = o % w->chunks * COLUMNS;                                         \
        const int64_t columns = w->inner - first < COLUMNS ? w->inner - first : COLUMNS;       \
        const int64_t at = o / w->chunks * w->n * w->inner + first;                            \
        const T *x = (const T *)w->x->data + at;                                               \
        T *y = (T *)w->y->data + at;                                                           \
        Total total[COLUMNS] = { 0 };                                                          \
                                                                                               \
        for (int64_t i = 0; i < w->n; i++)                                                     \
          {                                                                                    \
            const int64_t row = (w->reverse ? w->n - 1 - i : i) * w->inner;                    \
                                                                                               \
            for (int64_t k = 0; k < columns; k++)                                              \
              y[row + k] = (T)(total[k] += (Total)x[row + k]);                                 \
          }                                                                                    \
      }                                                                                        \
  }

SUM_PIECE (float, double)
SUM_PIECE (double, double)
SUM_PIECE (int32_t, uint32_t)
SUM_PIECE (int64_t, uint64_t)

static const TdCpuBody pieces[TD_BOOL + 1] = {
  [TD_F32] = sum_float, [TD_F64] = sum_double, [TD_I32] = sum_int32_t, [TD_I64] = sum_int64_t
};

TdStatus
td__cpu_cumulative_sum (TdDevice *d, int axis, bool reverse, const TdTensor *x, TdTensor *y)
{
  SumWork w = { x, y, x->shape->dim[axis], 1, 1, reverse };

  if (pieces[x->dtype] == NULL || y->dtype != x->dtype)
    return td__cpu_half_cumulative_sum (d, axis, reverse, x, y);
  if (x->size == 0)
    return TD_OK;
  for (int i = axis + 1; i < x->shape->ndim; i++)
    w.inner *= x->shape->dim[i];
  w.chunks = (w.inner + COLUMNS - 1) / COLUMNS;
  td__cpu_parallel (x->size / w.n / w.inner * w.chunks,
                    1 + TD_CPU_GRAIN / (w.n * (w.inner < COLUMNS ? w.inner : COLUMNS)),
                    pieces[x->dtype], &w);
  return TD_OK;
}
