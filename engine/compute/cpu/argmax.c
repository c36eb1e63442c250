/* Where the largest or the smallest element along an axis is.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"

typedef struct
{
  const TdTensor *x;
  int32_t *y;
  int64_t n, inner; /* length of the axis, elements from one to the next along it */
} ArgmaxWork;

/* v replaces best if it is larger (smaller), or the first NaN. */
#define ARGMAX_PIECE(name, T, better)                                                          \
  static void name##_##T (int64_t begin, int64_t end, int worker, void *context)               \
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
            if (v better best || v != v)                                                       \
              {                                                                                \
                best = v;                                                                      \
                place = i;                                                                     \
              }                                                                                \
          }                                                                                    \
        w->y[o] = (int32_t)place;                                                              \
      }                                                                                        \
  }

#define ARGMAX_PIECES(name, better)                                                            \
  ARGMAX_PIECE (name, float, better)                                                           \
  ARGMAX_PIECE (name, double, better)                                                          \
  ARGMAX_PIECE (name, int32_t, better)                                                         \
  ARGMAX_PIECE (name, int64_t, better)

ARGMAX_PIECES (argmax, >)
ARGMAX_PIECES (argmin, <)

#define PIECES_OF(name)                                                                        \
  {                                                                                            \
    [TD_F32] = name##_float, [TD_F64] = name##_double, [TD_I32] = name##_int32_t,              \
    [TD_I64] = name##_int64_t                                                                  \
  }
static const TdCpuBody pieces[2][TD_BOOL + 1] = { PIECES_OF (argmax), PIECES_OF (argmin) };

TdStatus
td__cpu_argmax (TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y)
{
  ArgmaxWork w = { x, y->data, 1, 1 };
  const TdCpuBody piece = pieces[kind == TD_REDUCE_ARGMIN][x->dtype];
  int axis = __builtin_ctz (axes);

  if (piece == NULL || y->dtype != TD_I32)
    return TD_ERR_DTYPE;
  w.n = x->shape->dim[axis];
  for (int i = axis + 1; i < x->shape->ndim; i++)
    w.inner *= x->shape->dim[i];
  if (y->size > 0)
    td__cpu_parallel (y->size, 1 + TD_CPU_GRAIN / w.n, piece, &w);
  return TD_OK;
}
