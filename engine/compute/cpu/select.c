/* z = c ? x : y, all three broadcast.
 * SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "elementwise.h"

typedef struct
{
  const TdTensor *c, *x, *y;
  TdTensor *z;
  TdWalk walk;
  TdSelectLoop row;
} SelectWork;

/* Numbers are moved as bits: only the condition's type and the size of the others count. */
#define TRUE_NUMBER(v) ((v) != 0)
#define TRUE_HALF(v) (((v)&0x7FFF) != 0) /* -0 is 0 */

/* Both are loaded, so that the loop becomes vectors.  z may be one of the others. */
#define SELECT_LOOP(Bits, holds, from_x, from_y)                                               \
  _Pragma ("omp simd") for (int64_t i = 0; i < n; i++)                                         \
  {                                                                                            \
    const Bits a = from_x, b = from_y;                                                         \
    z[i] = holds (c[i]) ? a : b;                                                               \
  }

#define SELECT_ROW(C, Bits, holds)                                                             \
  static void select_##C##_##Bits (const char *cs, int64_t sc, const char *xs, int64_t sx,     \
                                   const char *ys, int64_t sy, char *zs, int64_t n)            \
  {                                                                                            \
    const C *c = (const C *)cs;                                                                \
    const Bits *x = (const Bits *)xs, *y = (const Bits *)ys;                                   \
    const Bits x0 = x[0], y0 = y[0];                                                           \
    Bits *z = (Bits *)zs;                                                                      \
                                                                                               \
    if (sc != 1)                                                                               \
      for (int64_t i = 0; i < n; i++)                                                          \
        z[i] = holds (c[i * sc]) ? x[i * sx] : y[i * sy];                                      \
    else if (sx == 1 && sy == 1)                                                               \
      SELECT_LOOP (Bits, holds, x[i], y[i])                                                    \
    else if (sx == 1)                                                                          \
      SELECT_LOOP (Bits, holds, x[i], y0)                                                      \
    else if (sy == 1)                                                                          \
      SELECT_LOOP (Bits, holds, x0, y[i])                                                      \
    else                                                                                       \
      SELECT_LOOP (Bits, holds, x0, y0)                                                        \
  }

#define SELECT_ROWS(C, holds)                                                                  \
  SELECT_ROW (C, uint8_t, holds)                                                               \
  SELECT_ROW (C, uint16_t, holds)                                                              \
  SELECT_ROW (C, uint32_t, holds)                                                              \
  SELECT_ROW (C, uint64_t, holds)

SELECT_ROWS (float, TRUE_NUMBER)
SELECT_ROWS (double, TRUE_NUMBER)
SELECT_ROWS (uint16_t, TRUE_HALF)
SELECT_ROWS (int32_t, TRUE_NUMBER)
SELECT_ROWS (int64_t, TRUE_NUMBER)
SELECT_ROWS (uint8_t, TRUE_NUMBER)

#define ROWS_OF(C)                                                                             \
  {                                                                                            \
    [1] = select_##C##_uint8_t, [2] = select_##C##_uint16_t, [4] = select_##C##_uint32_t,      \
    [8] = select_##C##_uint64_t                                                                \
  }

static const TdSelectLoop rows_of[TD_BOOL + 1][9] = {
  [TD_F32] = ROWS_OF (float),     [TD_F64] = ROWS_OF (double),  [TD_F16] = ROWS_OF (uint16_t),
  [TD_BF16] = ROWS_OF (uint16_t), [TD_I32] = ROWS_OF (int32_t), [TD_I64] = ROWS_OF (int64_t),
  [TD_U8] = ROWS_OF (uint8_t),    [TD_BOOL] = ROWS_OF (uint8_t)
};

TdSelectLoop
td__select_loop (TdDtype condition, size_t bytes)
{
  return rows_of[condition][bytes];
}

static void
select_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const SelectWork *w = context;
  int last = w->walk.ndim - 1;
  int64_t n = w->walk.dim[last];
  size_t c_bytes = td__dtype_sizes[w->c->dtype], bytes = td__dtype_sizes[w->x->dtype];
  int64_t offset[3];

  for (int64_t row = begin; row < end; row++)
    {
      td__walk_row (&w->walk, row, offset);
      w->row ((const char *)w->c->data + (size_t)offset[0] * c_bytes, w->walk.stride[0][last],
              (const char *)w->x->data + (size_t)offset[1] * bytes, w->walk.stride[1][last],
              (const char *)w->y->data + (size_t)offset[2] * bytes, w->walk.stride[2][last],
              (char *)w->z->data + (size_t)(row * n) * bytes, n);
    }
}

TdStatus
td__cpu_select (TdDevice *d, const TdTensor *c, const TdTensor *x, const TdTensor *y,
                TdTensor *z)
{
  const TdTensor *operands[3] = { c, x, y };
  SelectWork w = { c, x, y, z, .row = rows_of[c->dtype][td__dtype_sizes[x->dtype]] };
  int64_t n;

  if (w.row == NULL || x->dtype != y->dtype || x->dtype != z->dtype)
    return TD_ERR_DTYPE;
  if (z->size == 0)
    return TD_OK;
  td__walk_init (&w.walk, z->shape, operands, 3);
  n = w.walk.dim[w.walk.ndim - 1];
  td__cpu_parallel (z->size / n, 1 + TD_CPU_GRAIN / n, select_piece, &w);
  return TD_OK;
}
