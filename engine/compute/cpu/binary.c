/* z = f (x, y) with broadcasting, and z = c ? x : y.
 *
 * Equal shapes and single numbers take the first path; everything else is walked row by row,
 * where a row is the longest segment in which each operand advances by one or stands still.
 * SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "elementwise.h"
#include "vector.h"

#define BLOCK 512 /* elements that fit the stack, for accumulation and half precision */

typedef struct
{
  const TdBinaryLoop *loops;
  TdBinaryLoop add; /* z += f (x, y) */
  const TdTensor *x, *y;
  TdTensor *z;
  size_t bytes;
  TdWalk walk;
  int64_t rows_grain;
  bool half;
} BinaryWork;

/* One segment: sx and sy are 0 or 1. */
static void
segment (const BinaryWork *w, int64_t x, int64_t sx, int64_t y, int64_t sy, int64_t z,
         int64_t n)
{
  TdBinaryLoop loop = w->loops[sx == 0 && n > 1   ? TD_WALK_SECOND
                               : sy == 0 && n > 1 ? TD_WALK_FIRST
                                                  : TD_WALK_BOTH];
  const char *xs = w->x->data, *ys = w->y->data;
  char *zs = w->z->data;
  _Alignas(64) char block[BLOCK * sizeof (double)];

  if (w->add == NULL)
    {
      loop (xs + (size_t)x * w->bytes, ys + (size_t)y * w->bytes, zs + (size_t)z * w->bytes, n);
      return;
    }
  for (int64_t i = 0; i < n; i += BLOCK)
    {
      int64_t m = n - i < BLOCK ? n - i : BLOCK;
      char *out = zs + (size_t)(z + i) * w->bytes;

      loop (xs + (size_t)(x + i * sx) * w->bytes, ys + (size_t)(y + i * sy) * w->bytes, block,
            m);
      w->add (out, block, out, m);
    }
}

/* The same through float. */
static void
half_segment (const BinaryWork *w, int64_t x, int64_t sx, int64_t y, int64_t sy, int64_t z,
              int64_t n)
{
  float a[BLOCK], b[BLOCK], c[BLOCK];

  for (int64_t i = 0; i < n; i += BLOCK)
    {
      int64_t m = n - i < BLOCK ? n - i : BLOCK;
      int walk = sx == 0 ? TD_WALK_SECOND : sy == 0 ? TD_WALK_FIRST : TD_WALK_BOTH;

      td__half_load (w->x, x + i * sx, sx == 0 ? 1 : m, a);
      td__half_load (w->y, y + i * sy, sy == 0 ? 1 : m, b);
      if (m == 1)
        walk = TD_WALK_BOTH;
      w->loops[walk](a, b, c, m);
      if (w->add != NULL)
        {
          td__half_load (w->z, z + i, m, a);
          w->add (a, c, c, m);
        }
      td__half_store (w->z, z + i, m, c);
    }
}

static void
any_segment (const BinaryWork *w, int64_t x, int64_t sx, int64_t y, int64_t sy, int64_t z,
             int64_t n)
{
  if (w->half)
    half_segment (w, x, sx, y, sy, z, n);
  else
    segment (w, x, sx, y, sy, z, n);
}

/* Rows [begin, end) of the walk. */
static void
row_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const BinaryWork *w = context;
  int last = w->walk.ndim - 1;
  int64_t n = w->walk.dim[last];
  int64_t offset[3];

  for (int64_t row = begin; row < end; row++)
    {
      td__walk_row (&w->walk, row, offset);
      any_segment (w, offset[0], w->walk.stride[0][last], offset[1], w->walk.stride[1][last],
                   row * n, n);
    }
}

/* Elements [begin, end) of a walk with one axis. */
static void
flat_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const BinaryWork *w = context;
  int64_t sx = w->walk.stride[0][0], sy = w->walk.stride[1][0];

  any_segment (w, begin * sx, sx, begin * sy, sy, begin, end - begin);
}

static TdStatus
binary_walk (BinaryWork *w)
{
  const TdTensor *operands[2] = { w->x, w->y };
  int64_t rows, n;

  if (w->z->size == 0)
    return TD_OK;
  td__walk_init (&w->walk, w->z->shape, operands, 2);
  n = w->walk.dim[w->walk.ndim - 1];
  rows = w->z->size / n;
  if (rows == 1)
    td__cpu_parallel (n, TD_CPU_GRAIN, flat_piece, w);
  else
    td__cpu_parallel (rows, 1 + TD_CPU_GRAIN / n, row_piece, w);
  return TD_OK;
}

static bool
same_shape (const TdShape *a, const TdShape *b)
{
  if (a->ndim != b->ndim)
    return false;
  for (int i = 0; i < a->ndim; i++)
    if (a->dim[i] != b->dim[i])
      return false;
  return true;
}

TdStatus
td__cpu_binary (TdDevice *d, TdBinaryKind kind, const TdTensor *x, const TdTensor *y,
                TdTensor *z, bool accumulate)
{
  bool half = td__is_half (x->dtype);
  TdDtype dtype = half ? TD_F32 : x->dtype;
  const TdBinaryLoop *loops = td__vector->binary[kind][dtype];
  BinaryWork w;

  if (loops[0] == NULL || x->dtype != y->dtype || x->dtype != z->dtype)
    return TD_ERR_DTYPE;
  if (__builtin_expect (!half && !accumulate && z->size <= TD_CPU_GRAIN, 1))
    {
      if (__builtin_expect (
              x->size == z->size && y->size == z->size && same_shape (x->shape, y->shape), 1))
        {
          loops[TD_WALK_BOTH](x->data, y->data, z->data, z->size);
          return TD_OK;
        }
      if (y->size == 1 && x->size == z->size)
        {
          loops[TD_WALK_FIRST](x->data, y->data, z->data, z->size);
          return TD_OK;
        }
    }
  w.loops = loops;
  w.add = accumulate ? td__vector->binary[TD_BINARY_ADD][dtype][TD_WALK_BOTH] : NULL;
  w.x = x;
  w.y = y;
  w.z = z;
  w.bytes = td__dtype_sizes[x->dtype];
  w.half = half;
  if (z->size <= TD_CPU_GRAIN && same_shape (x->shape, z->shape)
      && same_shape (y->shape, z->shape))
    {
      if (z->size > 0)
        any_segment (&w, 0, 1, 0, 1, 0, z->size);
      return TD_OK;
    }
  return binary_walk (&w);
}
