/* Where the largest element along an axis is.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"

typedef struct
{
  const TdTensor *x;
  int32_t *y;
  int64_t n, inner; /* length of the axis, elements from one to the next along it */
} ArgmaxWork;

/* v replaces best if it is larger, or the first NaN. */
#define ARGMAX_PIECE(T)                                                                        \
  static void argmax_##T (int64_t begin, int64_t end, int worker, void *context)               \
  {                                                                                            \
    const ArgmaxWork *w = context;                                                             \
                                                                                               \
    for (int64_t o = begin; o < end; o++)                                                      \
      {                                                                                        \
        const T *x = (const T *)w->x->data + o / w->inner * w->n * w->inner + o % w->inner;    \
        T best = x[0];                                                                         \
        int64_t place = 0;                                                                     \
                                                                                               \
        for (int64_t i = 1; i < w->n && best == best; i++)                                     \
          {                                                                                    \
            const T v = x[i * w->inner];                                                       \
                                                                                               \
            if (v > best || v != v)                                                            \
              {                                                                                \
                best = v;                                                                      \
                place = i;                                                                     \
              }                                                                                \
          }                                                                                    \
        w->y[o] = (int32_t)place;                                                              \
      }                                                                                        \
  }

ARGMAX_PIECE (float)
ARGMAX_PIECE (double)
ARGMAX_PIECE (int32_t)
ARGMAX_PIECE (int64_t)

static const TdCpuBody pieces[TD_BOOL + 1] = { [TD_F32] = argmax_float,
                                               [TD_F64] = argmax_double,
                                               [TD_I32] = argmax_int32_t,
                                               [TD_I64] = argmax_int64_t };

TdStatus
td__cpu_argmax (uint32_t axes, const TdTensor *x, TdTensor *y)
{
  ArgmaxWork w = { x, y->data, 1, 1 };
  int axis = __builtin_ctz (axes);

  if (pieces[x->dtype] == NULL || y->dtype != TD_I32)
    return TD_ERR_DTYPE;
  w.n = x->shape->dim[axis];
  for (int i = axis + 1; i < x->shape->ndim; i++)
    w.inner *= x->shape->dim[i];
  if (y->size > 0)
    td__cpu_parallel (y->size, 1 + TD_CPU_GRAIN / w.n, pieces[x->dtype], &w);
  return TD_OK;
}
