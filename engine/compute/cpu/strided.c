/* Walks with any stride: transpose, slice, repeat, and their opposites.
 *
 * The walk's shape is the smaller side's: y's for a read, x's for a write.  Neighbouring axes
 * are merged first; rows of neighbouring numbers are copied whole.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "halves.h"

#define TILE 16
#define AHEAD 8 /* rows */

/* A side with strides and a dense side: `n` elements of a row, `rows` rows of the dense side,
 * whose counterparts start one element apart. */
typedef struct
{
  int ndim;
  int64_t dim[TD_MAX_DIMS], stride[TD_MAX_DIMS];
  int64_t offset;
  int64_t rows; /* product of all dims but the last */
  char *strided;
  char *dense;
  size_t bytes;
  bool write;
} StridedWork;

static void
merge_axes (StridedWork *w, const TdShape *shape, const TdStrides *walk)
{
  int last = -1;

  for (int i = 0; i < shape->ndim; i++)
    {
      if (shape->dim[i] == 1)
        continue;
      if (last >= 0 && w->stride[last] == walk->stride[i] * shape->dim[i])
        w->dim[last] *= shape->dim[i];
      else
        w->dim[++last] = shape->dim[i];
      w->stride[last] = walk->stride[i];
    }
  if (last < 0)
    {
      w->dim[++last] = 1;
      w->stride[last] = 1;
    }
  w->ndim = last + 1;
  w->rows = 1;
  for (int i = 0; i < last; i++)
    w->rows *= w->dim[i];
}

static int64_t
row_offset (const StridedWork *w, int64_t row)
{
  int64_t offset = w->offset;

  for (int i = w->ndim - 2; i >= 0; i--)
    {
      offset += row % w->dim[i] * w->stride[i];
      row /= w->dim[i];
    }
  return offset;
}

#define COPY_ROW(Bits)                                                                         \
  static void copy_row_##Bits (char *dense, char *strided, int64_t n, int64_t step,            \
                               bool write)                                                     \
  {                                                                                            \
    Bits *a = (Bits *)(void *)dense, *b = (Bits *)(void *)strided;                             \
                                                                                               \
    if (write)                                                                                 \
      for (int64_t i = 0; i < n; i++)                                                          \
        b[i * step] = a[i];                                                                    \
    else                                                                                       \
      for (int64_t i = 0; i < n; i++)                                                          \
        a[i] = b[i * step];                                                                    \
  }                                                                                            \
  /* TILE rows at once, whose strided counterparts are neighbours: a transpose. */             \
  static void copy_tile_##Bits (char *dense, char *strided, int64_t n, int64_t step,           \
                                int64_t rows, bool write)                                      \
  {                                                                                            \
    Bits *a = (Bits *)(void *)dense, *b = (Bits *)(void *)strided;                             \
                                                                                               \
    for (int64_t i = 0; i < n; i++)                                                            \
      for (int64_t r = 0; r < rows; r++)                                                       \
        if (write)                                                                             \
          b[i * step + r] = a[r * n + i];                                                      \
        else                                                                                   \
          a[r * n + i] = b[i * step + r];                                                      \
  }

COPY_ROW (uint8_t)
COPY_ROW (uint16_t)
COPY_ROW (uint32_t)
COPY_ROW (uint64_t)

static void (*const copy_row[9]) (char *, char *, int64_t, int64_t, bool)
    = { [1] = copy_row_uint8_t,
        [2] = copy_row_uint16_t,
        [4] = copy_row_uint32_t,
        [8] = copy_row_uint64_t };
static void (*const copy_tile[9]) (char *, char *, int64_t, int64_t, int64_t, bool)
    = { [1] = copy_tile_uint8_t,
        [2] = copy_tile_uint16_t,
        [4] = copy_tile_uint32_t,
        [8] = copy_tile_uint64_t };

/* The next row's offset; at: an index for each axis but the last. */
static inline int64_t
next_row (const StridedWork *w, int64_t *at, int64_t offset)
{
  for (int i = w->ndim - 2; i >= 0; i--)
    {
      offset += w->stride[i];
      if (++at[i] < w->dim[i])
        return offset;
      offset -= at[i] * w->stride[i];
      at[i] = 0;
    }
  return offset;
}

/* Rows of neighbouring numbers, copied whole.  They may be short and far apart, which no
 * processor foresees: rows to come are asked for. */
static void
whole_rows_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const StridedWork *w = context;
  const size_t bytes = (size_t)w->dim[w->ndim - 1] * w->bytes;
  const int64_t ahead
      = w->ndim > 1 && bytes <= 512 ? AHEAD * w->stride[w->ndim - 2] * (int64_t)w->bytes : 0;
  int64_t at[TD_MAX_DIMS], offset = row_offset (w, begin);

  for (int64_t i = w->ndim - 2, row = begin; i >= 0; i--)
    {
      at[i] = row % w->dim[i];
      row /= w->dim[i];
    }
  for (int64_t row = begin; row < end; row++)
    {
      char *dense = w->dense + (size_t)row * bytes;
      char *strided = w->strided + offset * (int64_t)w->bytes;

      if (ahead != 0)
        for (size_t line = 0; line < bytes; line += 64)
          __builtin_prefetch (strided + ahead + line);
      memcpy (w->write ? strided : dense, w->write ? dense : strided, bytes);
      offset = next_row (w, at, offset);
    }
}

static void
strided_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const StridedWork *w = context;
  int last = w->ndim - 1;
  int64_t n = w->dim[last], step = w->stride[last];
  bool transposes = last > 0 && step != 1 && w->stride[last - 1] == 1;

  for (int64_t row = begin; row < end;)
    {
      char *dense = w->dense + (size_t)(row * n) * w->bytes;
      char *strided = w->strided + row_offset (w, row) * (int64_t)w->bytes;
      int64_t rows = 1;

      if (transposes)
        {
          rows = w->dim[last - 1] - row % w->dim[last - 1];
          rows = rows > TILE ? TILE : rows;
          rows = rows > end - row ? end - row : rows;
        }
      if (rows > 1)
        copy_tile[w->bytes](dense, strided, n, step, rows, w->write);
      else
        copy_row[w->bytes](dense, strided, n, step, w->write);
      row += rows;
    }
}

#define ADD_ROW(T, U)                                                                          \
  static void add_row_##T (const char *dense, char *strided, int64_t n, int64_t step)          \
  {                                                                                            \
    const T *a = (const T *)(const void *)dense;                                               \
    T *b = (T *)(void *)strided;                                                               \
                                                                                               \
    for (int64_t i = 0; i < n; i++)                                                            \
      b[i * step] = (T)((U)b[i * step] + (U)a[i]);                                             \
  }

ADD_ROW (float, float)
ADD_ROW (double, double)
ADD_ROW (int32_t, uint32_t)
ADD_ROW (int64_t, uint64_t)

static void (*const add_row[TD_BOOL + 1]) (const char *, char *, int64_t, int64_t)
    = { [TD_F32] = add_row_float,
        [TD_F64] = add_row_double,
        [TD_I32] = add_row_int32_t,
        [TD_I64] = add_row_int64_t };

/* In order, on one thread: two elements may go to one place. */
static TdStatus
strided_add (const StridedWork *w, TdDtype dtype)
{
  int64_t n = w->dim[w->ndim - 1];

  if (add_row[dtype] == NULL)
    return TD_ERR_DTYPE;
  for (int64_t row = 0; row < w->rows; row++)
    add_row[dtype](w->dense + (size_t)(row * n) * w->bytes,
                   w->strided + row_offset (w, row) * (int64_t)w->bytes, n,
                   w->stride[w->ndim - 1]);
  return TD_OK;
}

TdStatus
td__cpu_strided (TdDevice *d, TdStridedKind kind, const TdTensor *x, const TdStrides *walk,
                 TdTensor *y)
{
  bool read = kind == TD_STRIDED_READ;
  const TdTensor *dense = read ? y : x;
  StridedWork w = { .offset = walk->offset,
                    .strided = read ? x->data : y->data,
                    .dense = dense->data,
                    .bytes = td__dtype_sizes[x->dtype],
                    .write = !read };
  int64_t n;

  if (x->dtype != y->dtype)
    return TD_ERR_DTYPE;
  if (dense->size == 0)
    return TD_OK;
  merge_axes (&w, dense->shape, walk);
  if (kind == TD_STRIDED_ADD)
    {
      const TdStatus status = strided_add (&w, x->dtype);

      return status == TD_ERR_DTYPE ? td__cpu_half_strided (d, kind, x, walk, y) : status;
    }
  n = w.dim[w.ndim - 1];
  td__cpu_parallel (w.rows, TILE + TD_CPU_GRAIN / n / TILE * TILE,
                    w.stride[w.ndim - 1] == 1 ? whole_rows_piece : strided_piece, &w);
  return TD_OK;
}
