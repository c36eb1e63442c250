/* Rows chosen by an array of indices (i32, i64 or u8).  They were checked before, or a device
 * that computes by these loops checks them by itself: one that is out of range reads zeros, and
 * adds nothing.
 *
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "halves.h"

#include "vector.h"

static inline int64_t
index_at (const TdTensor *index, int64_t i)
{
  if (index->dtype == TD_I32)
    return ((const int32_t *)index->data)[i];
  if (index->dtype == TD_I64)
    return ((const int64_t *)index->data)[i];
  return ((const uint8_t *)index->data)[i];
}

static bool
is_index (const TdTensor *index)
{
  return index->dtype == TD_I32 || index->dtype == TD_I64 || index->dtype == TD_U8;
}

typedef struct
{
  const TdTensor *w, *index;
  TdTensor *y;
  size_t row_bytes;
  int64_t rows;
} GatherWork;

static void
gather_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const GatherWork *g = context;

  for (int64_t i = begin; i < end; i++)
    {
      char *y = (char *)g->y->data + (size_t)i * g->row_bytes;
      const int64_t row = index_at (g->index, i);

      if (__builtin_expect (row >= 0 && row < g->rows, 1))
        memcpy (y, (const char *)g->w->data + (size_t)row * g->row_bytes, g->row_bytes);
      else
        memset (y, 0, g->row_bytes);
    }
}

TdStatus
td__cpu_gather_rows (TdDevice *d, const TdTensor *w, const TdTensor *index, TdTensor *y)
{
  int64_t columns = index->size > 0 ? y->size / index->size : 0;
  GatherWork g = { w, index, y, (size_t)columns * td__dtype_sizes[w->dtype],
                   columns > 0 ? w->size / columns : 0 };

  if (!is_index (index) || w->dtype != y->dtype)
    return TD_ERR_DTYPE;
  if (columns > 0)
    td__cpu_parallel (index->size, 1 + TD_CPU_GRAIN / columns, gather_piece, &g);
  return TD_OK;
}

/* Rows are added in their order: one result, however many threads there are. */
TdStatus
td__cpu_scatter_rows_add (TdDevice *d, const TdTensor *index, const TdTensor *gy, TdTensor *gw)
{
  int64_t columns = index->size > 0 ? gy->size / index->size : 0;
  size_t row_bytes = (size_t)columns * td__dtype_sizes[gw->dtype];
  TdBinaryLoop add = td__vector->binary[TD_BINARY_ADD][gw->dtype][TD_WALK_BOTH];

  if (!is_index (index) || gw->dtype != gy->dtype)
    return TD_ERR_DTYPE;
  if (add == NULL)
    return td__cpu_half_scatter_rows_add (d, index, gy, gw);
  for (int64_t i = 0; i < index->size && columns > 0; i++)
    {
      const int64_t at = index_at (index, i);
      char *row = (char *)gw->data + (size_t)at * row_bytes;

      if (at >= 0 && at < gw->size / columns)
        add (row, (const char *)gy->data + (size_t)i * row_bytes, row, columns);
    }
  return TD_OK;
}

TdStatus
td__cpu_check_index (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                     int64_t *bad_place, int64_t *bad_value)
{
  *bad_place = -1;
  *bad_value = 0;
  if (!is_index (index))
    return TD_ERR_DTYPE;
  for (int64_t i = 0; i < index->size; i++)
    {
      int64_t v = index_at (index, i);

      if ((v < 0 || v >= limit) && v != ignore)
        {
          *bad_place = i;
          *bad_value = v;
          break;
        }
    }
  return TD_OK;
}
