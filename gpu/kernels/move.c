/* Launches of the kernels that copy without computing: strided copies, transposes, and
 * gathering or scattering rows of a table by an index.
 *
 * A strided copy has two sides.  The `dense` one holds its elements one after the other;
 * element (i0, i1, ...) of the `strided` one lies at i0 * stride[0] + i1 * stride[1] + ...
 * Reading goes from strided to dense (a slice, a transpose, a broadcast), writing from dense to
 * strided.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"
#include "move.h"

#include <stdlib.h>

enum
{
  TILE = 64,                 /* rows and columns of a transposed tile, as in move.cu */
  MIN_TILED = 4,             /* shorter rows or columns are copied without tiles */
  SCATTER_Y = 4,             /* at most so many blocks share the columns of one row */
  FEW_INDICES = 8 * TD_BLOCK /* as many as one block checks by itself */
};

#define BY_BYTES(prefix)                                                                       \
  {                                                                                            \
    [1] = { .name = prefix "_1" }, [2] = { .name = prefix "_2" },                              \
    [4] = { .name = prefix "_4" }, [8] = {                                                     \
      .name = prefix "_8"                                                                      \
    }                                                                                          \
  }

static TdStatus
launch_walk (TdCudaLauncher *l, TdWalkParams *w, const TdAxes *axes, void *context)
{
  return td__launch (l, context, td__blocks (l, w->n, TD_BLOCK * 2), 1, w);
}

/* How many bytes a thread copies at once: up to 16, if elements along the last axis are
 * contiguous on both sides, and all rows begin where such an access is aligned; else one
 * element. */
static size_t
unit_bytes (const TdAxes *axes, size_t bytes, const void *strided, const void *dense)
{
  const int last = axes->ndim - 1;
  size_t unit = 16;

  if (last < 0 || axes->stride[0][last] != 1)
    return bytes;
  for (; unit > bytes; unit /= 2)
    {
      const int64_t items = (int64_t)(unit / bytes);
      bool fits = axes->dim[last] % items == 0 && td__aligned (strided, unit)
                  && td__aligned (dense, unit);

      for (int i = 0; i < last && fits; i++)
        fits = axes->stride[0][i] % items == 0;
      if (fits)
        break;
    }
  return unit;
}

static TdStatus
copy_walk (TdCudaLauncher *l, TdStridedKind kind, TdAxes axes, size_t bytes, char *strided,
           char *dense)
{
  static TdCudaKernel copies[17] = { [1] = { .name = "td_copy_walk_1" },
                                     [2] = { .name = "td_copy_walk_2" },
                                     [4] = { .name = "td_copy_walk_4" },
                                     [8] = { .name = "td_copy_walk_8" },
                                     [16] = { .name = "td_copy_walk_16" } };
  const size_t unit = unit_bytes (&axes, bytes, strided, dense), both[2] = { unit, unit };
  const int64_t items = (int64_t)(unit / bytes);
  const int last = axes.ndim - 1;
  TdWalkParams w = { .data = { strided, dense }, .kind = (int)kind };

  if (items > 1)
    {
      axes.dim[last] /= items;
      for (int i = 0; i < last; i++)
        axes.stride[0][i] /= items;
    }
  return td__walk_pieces (l, &axes, &w, both, launch_walk, &copies[unit]);
}

/* A transpose, through tiles in shared memory: the strided side is contiguous along another
 * axis (`row`) than the dense side (the last), so that a plain copy would have uncoalesced
 * accesses on one of them.  False: the copy is no transpose, or is too large for one grid. */
static bool
copy_tiles (TdCudaLauncher *l, TdStridedKind kind, const TdAxes *axes, size_t bytes,
            char *strided, char *dense, TdStatus *status)
{
  static TdCudaKernel tiles[9] = BY_BYTES ("td_copy_tile");
  const int last = axes->ndim - 1;
  TdTileParams a = { .write = kind != TD_STRIDED_READ };
  int64_t dense_stride = 1, blocks = 1;
  int row = -1;

  for (int i = 0; i < last; i++)
    row = axes->stride[0][i] == 1 && axes->dim[i] >= MIN_TILED ? i : row;
  if (row < 0 || axes->stride[0][last] == 1 || axes->dim[last] < MIN_TILED)
    return false;
  a.from = a.write ? dense : strided;
  a.to = a.write ? strided : dense;
  a.strided_step = axes->stride[0][last];
  a.ndim = axes->ndim - 2;
  for (int i = last, k = a.ndim - 1; i >= 0; i--)
    {
      if (i == row)
        a.dense_step = dense_stride;
      else if (i != last)
        {
          a.dim[k] = td__divisor (axes->dim[i]);
          a.dense_stride[k] = dense_stride;
          a.strided_stride[k--] = axes->stride[0][i];
        }
      blocks *= i == row || i == last ? (axes->dim[i] + TILE - 1) / TILE : axes->dim[i];
      dense_stride *= axes->dim[i];
    }
  if (blocks > TD_PIECE || axes->dim[row] > TD_PIECE || axes->dim[last] > TD_PIECE)
    return false;
  a.rows = (uint32_t)axes->dim[row];
  a.columns = (uint32_t)axes->dim[last];
  a.row_tiles = td__divisor ((a.rows + TILE - 1) / TILE);
  a.column_tiles = td__divisor ((a.columns + TILE - 1) / TILE);
  *status = td__launch (l, &tiles[bytes], blocks, 1, &a);
  return true;
}

/* Whether a set of axes (a bit each) maps different indices to different elements of the
 * strided side.  It does if each axis steps over all that the axes of smaller stride reach. */
static bool
is_injective (const TdAxes *axes, unsigned set)
{
  int64_t reach = 0;

  while (set != 0)
    {
      int least = -1;

      for (int i = 0; i < axes->ndim; i++)
        if ((set >> i & 1) != 0
            && (least < 0 || llabs (axes->stride[0][i]) < llabs (axes->stride[0][least])))
          least = i;
      if (llabs (axes->stride[0][least]) <= reach)
        return false;
      reach += llabs (axes->stride[0][least]) * (axes->dim[least] - 1);
      set &= ~(1u << least);
    }
  return true;
}

/* A set of axes that is injective (see above), taken greedily, longest axis first. */
static unsigned
injective_axes (const TdAxes *axes)
{
  unsigned set = 0, seen = 0;

  for (int n = 0; n < axes->ndim; n++)
    {
      int longest = -1;

      for (int i = 0; i < axes->ndim; i++)
        if ((seen >> i & 1) == 0 && (longest < 0 || axes->dim[i] > axes->dim[longest]))
          longest = i;
      seen |= 1u << longest;
      if (is_injective (axes, set | 1u << longest))
        set |= 1u << longest;
    }
  return set;
}

/* strided += dense.  The strided side may overlap itself, as in the gradient of a broadcast or
 * of overlapping windows: several dense elements are then added to one place.  Within one
 * launch only injective axes are covered, and each index of the other axes is a launch of its
 * own.  No two threads ever add to one place at the same time, and sums are always in the same
 * order. */
static TdStatus
add_walk (TdCudaLauncher *l, const TdAxes *axes, TdDtype dtype, char *strided, char *dense)
{
  static TdCudaKernel adds[TD_N_DTYPES]
      = { TD_FLOATS ("td_add_walk"), TD_HALVES ("td_add_walk"), TD_INTEGERS ("td_add_walk") };
  const size_t bytes = td__bytes_of (dtype), each[3] = { bytes, bytes, 0 };
  const unsigned set = injective_axes (axes);
  TdAxes inner = { .n_operands = 2 };
  int64_t stride[TD_MAX_DIMS], step = 1, n_launches = 1;
  TdStatus status = TD_OK;

  for (int i = axes->ndim - 1; i >= 0; step *= axes->dim[i], i--)
    stride[i] = step;
  for (int i = 0; i < axes->ndim; i++)
    if (set >> i & 1)
      td__axes_add (&inner, axes->dim[i], (const int64_t[]){ axes->stride[0][i], stride[i] });
    else
      n_launches *= axes->dim[i];
  if (n_launches > 1 && bytes == 2)
    return TD_ERR_DTYPE; /* halves would be rounded after every launch: see halves.c */
  for (int64_t k = 0; k < n_launches && status == TD_OK; k++)
    {
      TdWalkParams w = { .data = { strided, dense } };
      int64_t rest = k;

      for (int i = axes->ndim - 1; i >= 0; i--)
        if ((set >> i & 1) == 0)
          {
            const int64_t place = rest % axes->dim[i];

            w.data[0] = (char *)w.data[0] + place * axes->stride[0][i] * (int64_t)bytes;
            w.data[1] = (char *)w.data[1] + place * stride[i] * (int64_t)bytes;
            rest /= axes->dim[i];
          }
      status = td__walk_pieces (l, &inner, &w, each, launch_walk, &adds[dtype]);
    }
  return status;
}

TdStatus
td_cuda_strided (TdCudaLauncher *l, TdStridedKind kind, const TdTensor *x,
                 const TdStrides *walk, TdTensor *y)
{
  const bool read = kind == TD_STRIDED_READ;
  const TdShape *shape = read ? y->shape : x->shape;
  const size_t bytes = td__bytes_of (x->dtype);
  char *dense = read ? y->data : x->data;
  char *strided = (char *)(read ? x->data : y->data) + walk->offset * (int64_t)bytes;
  TdAxes axes = { .n_operands = 1 };
  TdStatus status;

  if (x->dtype != y->dtype)
    return TD_ERR_DTYPE;
  if ((read ? y : x)->size == 0)
    return TD_OK;
  for (int i = 0; i < shape->ndim; i++)
    td__axes_add (&axes, shape->dim[i], &walk->stride[i]);
  if (kind == TD_STRIDED_ADD)
    return add_walk (l, &axes, x->dtype, strided, dense);
  if (copy_tiles (l, kind, &axes, bytes, strided, dense, &status))
    return status;
  return copy_walk (l, kind, axes, bytes, strided, dense);
}

/* --- gathering and scattering rows --- */

static bool
is_index (const TdTensor *index)
{
  return index->dtype == TD_I32 || index->dtype == TD_I64 || index->dtype == TD_U8;
}

/* The kernel that gathers rows and their statistics, with its grid; NULL: nobody asks for them,
 * or the elements are integers.  It takes 16 bytes at once or one element, while the plain
 * kernel also has units between, so that `columns` is computed anew. */
static TdCudaKernel *
gather_with_statistics (TdCudaLauncher *l, TdRowsWithStats *a, size_t unit, const TdTensor *y,
                        int64_t *blocks)
{
  static TdCudaKernel counting[TD_N_DTYPES]
      = { TD_FLOATS ("td_count_gather"), TD_HALVES ("td_count_gather") };
  const size_t bytes = td__bytes_of (y->dtype);

  a->p.packs = unit == TD_WIDE_BYTES;
  if (!a->p.packs)
    a->p.columns = a->p.columns * (int64_t)unit / (int64_t)bytes;
  *blocks = td__blocks (l, a->p.n * a->p.columns, TD_BLOCK * 2);
  a->parts = td__count (l, &counting[y->dtype], y, blocks);
  return a->parts != NULL ? &counting[y->dtype] : NULL;
}

TdStatus
td_cuda_gather_rows (TdCudaLauncher *l, const TdTensor *w, const TdTensor *index, TdTensor *y)
{
  static TdCudaKernel gathers[17] = { [1] = { .name = "td_gather_1" },
                                      [2] = { .name = "td_gather_2" },
                                      [4] = { .name = "td_gather_4" },
                                      [8] = { .name = "td_gather_8" },
                                      [16] = { .name = "td_gather_16" } };
  TdRowsParams a = { .from = w->data,
                     .index = index->data,
                     .to = y->data,
                     .n = index->size,
                     .index_dtype = (int)index->dtype };
  TdRowsWithStats with_stats = { .parts = NULL };
  TdCudaKernel *counting;
  size_t unit = 16, row_bytes;
  int64_t blocks;

  if (!is_index (index) || w->dtype != y->dtype)
    return TD_ERR_DTYPE;
  if (y->size == 0)
    return TD_OK;
  row_bytes = (size_t)(y->size / index->size) * td__bytes_of (w->dtype);
  while (row_bytes % unit != 0 || !td__aligned (a.from, unit) || !td__aligned (a.to, unit))
    unit /= 2;
  a.columns = (int64_t)(row_bytes / unit);
  a.rows = w->size * (int64_t)td__bytes_of (w->dtype) / (int64_t)row_bytes;
  with_stats.p = a;
  counting = gather_with_statistics (l, &with_stats, unit, y, &blocks);
  if (counting != NULL)
    return td__launch (l, counting, blocks, 1, &with_stats);
  return td__launch (l, &gathers[unit], td__blocks (l, a.n * a.columns, TD_BLOCK * 2), 1, &a);
}

/* Workspace of a scatter of halves: rows with the same index are summed in float and rounded
 * once. For each row of the table it is also kept at which index it was found first, by each
 * block that has a share of the columns. */
static TdStatus
take_sums (TdCudaLauncher *l, TdRowsParams *a, int64_t y_blocks)
{
  const size_t sums = (size_t)(a->n * a->columns) * sizeof *a->sums;
  const size_t aligned = (sums + 15) / 16 * 16;
  char *room;

  if (a->n > INT32_MAX)
    return TD_ERR_DTYPE;
  room = l->workspace (l, aligned + (size_t)(y_blocks * a->rows) * sizeof *a->first_of);
  if (room == NULL)
    return TD_ERR_MEMORY;
  a->sums = (float *)(void *)room;
  a->first_of = (int32_t *)(void *)(room + aligned);
  return TD_OK;
}

TdStatus
td_cuda_scatter_rows_add (TdCudaLauncher *l, const TdTensor *index, const TdTensor *gy,
                          TdTensor *gw)
{
  static TdCudaKernel scatters[TD_N_DTYPES]
      = { TD_FLOATS ("td_scatter"), TD_HALVES ("td_scatter"), TD_INTEGERS ("td_scatter") };
  const bool half = gw->dtype == TD_F16 || gw->dtype == TD_BF16;
  TdRowsParams a = { .from = gy->data,
                     .index = index->data,
                     .to = gw->data,
                     .n = index->size,
                     .index_dtype = (int)index->dtype };
  int64_t y_blocks, pack;
  size_t bytes;
  TdStatus status = TD_OK;

  if (!is_index (index) || gw->dtype != gy->dtype || scatters[gw->dtype].name == NULL)
    return TD_ERR_DTYPE;
  if (gy->size == 0)
    return TD_OK;
  a.columns = gy->size / index->size;
  a.rows = gw->size / a.columns;
  pack = half ? TD_PACK : TD_WIDE_BYTES / (int64_t)td__bytes_of (gw->dtype);
  bytes = (size_t)pack * td__bytes_of (gw->dtype);
  a.packs = a.columns % pack == 0 && td__aligned (a.from, bytes) && td__aligned (a.to, bytes);
  y_blocks = (a.columns / (a.packs ? pack : 1) + TD_BLOCK - 1) / TD_BLOCK;
  y_blocks = y_blocks < SCATTER_Y ? y_blocks : SCATTER_Y;
  if (half)
    status = take_sums (l, &a, y_blocks);
  return status == TD_OK
             ? td__launch (l, &scatters[gw->dtype], td__blocks (l, a.rows, 1), y_blocks, &a)
             : status;
}

/* Find the first index out of range: each block the first of its share, then one block the
 * first of those. */
static TdStatus
check_in_blocks (TdCudaLauncher *l, TdRowsParams *a)
{
  static TdCudaKernel check = { .name = "td_check_index" },
                      end = { .name = "td_check_index_end" };
  TdStatus status;

  a->rows = td__blocks (l, a->n, TD_BLOCK * 4);
  a->to = l->workspace (l, (size_t)(a->rows + 1) * sizeof (int64_t));
  if (a->to == NULL)
    return TD_ERR_MEMORY;
  status = td__launch (l, &check, a->rows, 1, a);
  return status == TD_OK ? td__launch (l, &end, 1, 1, a) : status;
}

TdStatus
td_cuda_check_index (TdCudaLauncher *l, const TdTensor *index, int64_t limit, int64_t ignore,
                     int64_t *result)
{
  TdRowsParams a = { .index = index->data,
                     .n = index->size,
                     .index_dtype = (int)index->dtype,
                     .limit = limit,
                     .ignore = ignore,
                     .result = result };

  return is_index (index) ? check_in_blocks (l, &a) : TD_ERR_DTYPE;
}

TdStatus
td_cuda_check_index_async (TdCudaLauncher *l, const TdTensor *index, int64_t limit,
                           int64_t ignore, int64_t *found, int64_t *any_bad, uint64_t *runs)
{
  static TdCudaKernel few = { .name = "td_check_index_few" };
  TdRowsParams a = { .index = index->data,
                     .n = index->size,
                     .index_dtype = (int)index->dtype,
                     .limit = limit,
                     .ignore = ignore,
                     .result = found,
                     .any_bad = any_bad,
                     .runs = runs };

  if (!is_index (index))
    return TD_ERR_DTYPE;
  return a.n <= FEW_INDICES ? td__launch (l, &few, 1, 1, &a) : check_in_blocks (l, &a);
}
