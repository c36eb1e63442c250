/* Launches of reductions, and of softmax, argmax and cumulative sums along one axis.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"

enum
{
  PART_STEPS = 16, /* numbers of a thread that make a part worth its while */
  PART_PACKS = 4,  /* the same in packs */
  LONG_ROW = 128,  /* numbers from which on a row is read in packs though it is not aligned */
  MAX_PARTS = 1024,
  MAX_COLUMNS = 32
};

static bool
is_integer (TdDtype dtype)
{
  return dtype == TD_I32 || dtype == TD_I64;
}

#define NUMBERS(name)                                                                          \
  static TdCudaKernel name[TD_N_DTYPES]                                                        \
      = { TD_FLOATS ("td_" #name), TD_HALVES ("td_" #name), TD_INTEGERS ("td_" #name) }
#define FLOATS(name)                                                                           \
  static TdCudaKernel name[TD_N_DTYPES] = { TD_FLOATS ("td_" #name), TD_HALVES ("td_" #name) }
NUMBERS (reduce);
NUMBERS (reduce_columns);
NUMBERS (reduce_parts);
FLOATS (logsumexp);
FLOATS (logsumexp_columns);
FLOATS (logsumexp_parts);

/* Merge neighbouring axes of one kind; true if the last group is kept. */
static bool
merge_groups (TdReduceParams *a, const TdShape *shape, uint32_t axes)
{
  int64_t stride = 1, strides[TD_MAX_DIMS], dims[2][TD_MAX_DIMS];
  int n[2] = { 0, 0 }, was = -1;

  for (int i = shape->ndim - 1; i >= 0; stride *= shape->dim[i], i--)
    strides[i] = stride;
  a->count = a->outputs = 1;
  for (int i = 0; i < shape->ndim; i++)
    {
      const int reduced = axes >> i & 1;

      *(reduced ? &a->count : &a->outputs) *= shape->dim[i];
      if (shape->dim[i] == 1)
        continue;
      if (reduced != was)
        dims[reduced][n[reduced]++] = 1;
      dims[reduced][n[reduced] - 1] *= shape->dim[i];
      (reduced ? a->reduced_stride : a->kept_stride)[n[reduced] - 1] = strides[i];
      was = reduced;
    }
  a->n_kept = n[0];
  a->n_reduced = n[1];
  for (int i = 0; i < n[0]; i++)
    a->kept[i] = td__divisor (dims[0][i]);
  for (int i = 0; i < n[1]; i++)
    a->reduced[i] = td__divisor (dims[1][i]);
  return was == 0;
}

/* Threads along rows that lie side by side, or are strided; how many numbers of one each takes.
 */
static int64_t
take_rows (TdReduceParams *a, TdDtype dtype)
{
  const int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype);
  TdDivisor *last = &a->reduced[a->n_reduced > 0 ? a->n_reduced - 1 : 0];

  if (a->n_reduced == 1 && a->reduced_stride[0] == 1)
    a->packs = a->count >= LONG_ROW || td__rows_aligned (a->x, a->count, dtype);
  else if (a->n_reduced > 1 && td__rows_aligned (a->x, last->value, dtype))
    {
      a->packs = 1;
      *last = td__divisor (last->value / wide);
      a->reduced_stride[a->n_reduced - 1] = wide;
      a->steps = a->count / wide;
    }
  a->lanes = a->packs ? td__wide_lanes (a->count, wide) : td__lanes (a->count);
  return a->n_reduced == 1 && a->packs ? a->lanes * wide * PART_PACKS
                                       : a->lanes * (a->packs ? PART_PACKS : PART_STEPS);
}

/* The same of columns: threads along the outputs, packs of them where the last axis allows it.
 */
static int64_t
take_columns (TdReduceParams *a, TdDtype dtype)
{
  const int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype);
  const int64_t inner = a->kept[a->n_kept - 1].value;

  a->packs = a->kind != TD_REDUCE_LOGSUMEXP && td__rows_aligned (a->x, inner, dtype);
  for (a->columns = 1; a->columns < inner / (a->packs ? wide : 1) && a->columns < MAX_COLUMNS;)
    a->columns *= 2;
  return (int64_t)TD_BLOCK / a->columns * (a->packs ? PART_PACKS : PART_STEPS);
}

static TdStatus
launch_reduce (TdCudaLauncher *l, TdReduceParams *a, TdDtype dtype, bool ends_kept)
{
  const bool exps = a->kind == TD_REDUCE_LOGSUMEXP;
  TdCudaKernel *kernel
      = ends_kept ? (exps ? logsumexp_columns : reduce_columns) : (exps ? logsumexp : reduce);
  const int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype);
  int64_t share, blocks, parts;
  TdStatus status;

  a->steps = a->count;
  share = ends_kept ? take_columns (a, dtype) : take_rows (a, dtype);
  blocks = td__blocks (l, a->outputs,
                       ends_kept ? a->columns * (a->packs ? wide : 1) : TD_BLOCK / a->lanes);
  parts = (int64_t)l->n_sms * 4 / blocks;
  if (parts > a->steps / share)
    parts = a->steps / share;
  parts = parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
  /* Parts of a row begin where packs do. */
  a->part = ((a->steps + parts - 1) / parts + wide - 1) / wide * wide;
  a->n_parts = a->part > 0 ? (int)((a->steps + a->part - 1) / a->part) : 1;
  if (a->n_parts <= 1)
    return td__launch (l, &kernel[dtype], blocks, 1, a);
  a->parts = l->workspace (l, (size_t)(a->n_parts * a->outputs * 2) * sizeof (double));
  if (a->parts == NULL)
    return TD_ERR_MEMORY;
  status = td__launch (l, &kernel[dtype], blocks, a->n_parts, a);
  if (status != TD_OK)
    return status;
  a->lanes = a->n_parts > 32 ? 32 : td__lanes (a->n_parts);
  return td__launch (l, &(exps ? logsumexp_parts : reduce_parts)[dtype],
                     td__blocks (l, a->outputs, TD_BLOCK / a->lanes), 1, a);
}

static TdStatus argmax (TdCudaLauncher *l, TdReduceKind kind, uint32_t axes, const TdTensor *x,
                        TdTensor *y);

TdStatus
td_cuda_reduce (TdCudaLauncher *l, TdReduceKind kind, uint32_t axes, const TdTensor *x,
                TdTensor *y, bool accumulate)
{
  TdReduceParams a
      = { .x = x->data, .y = y->data, .kind = (int)kind, .accumulate = accumulate };
  bool ends_kept;

  if (kind == TD_REDUCE_ARGMAX || kind == TD_REDUCE_ARGMIN)
    return argmax (l, kind, axes, x, y);
  if (x->dtype == TD_U8 || x->dtype == TD_BOOL || y->dtype != x->dtype)
    return TD_ERR_DTYPE;
  if (is_integer (x->dtype)
      && (kind == TD_REDUCE_MEAN || kind == TD_REDUCE_LOGSUMEXP
          || kind == TD_REDUCE_SUM_SQUARES))
    return TD_ERR_DTYPE;
  if (y->size == 0)
    return TD_OK;
  ends_kept = merge_groups (&a, x->shape, axes);
  /* Places are divided up in 32 bits. */
  if ((a.n_kept > 1 && a.outputs > INT32_MAX) || (a.n_reduced > 1 && a.count > INT32_MAX))
    return TD_ERR_SHAPE;
  return launch_reduce (l, &a, x->dtype, ends_kept);
}

static TdAxisParams
axis_params (const TdTensor *x, int axis, TdTensor *y)
{
  TdAxisParams a = { .x = x->data, .y = y->data, .n = x->shape->dim[axis], .inner = 1 };

  for (int i = axis + 1; i < x->shape->ndim; i++)
    a.inner *= x->shape->dim[i];
  a.lines = a.n > 0 ? x->size / a.n : 0;
  a.lanes = a.inner > 1 ? 1 : td__lanes (a.n);
  return a;
}

/* Whether a thread takes 16 bytes of lines side by side: they are aligned, and so many that
 * each multiprocessor has a block of them. */
static bool
lines_in_packs (const TdCudaLauncher *l, const TdAxisParams *a, TdDtype dtype)
{
  const int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype);

  return td__rows_aligned (a->x, a->inner, dtype)
         && a->lines >= wide * TD_BLOCK * (int64_t)l->n_sms;
}

static TdStatus
argmax (TdCudaLauncher *l, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y)
{
  static TdCudaKernel kernels[TD_N_DTYPES]
      = { TD_FLOATS ("td_argmax"), TD_HALVES ("td_argmax"), TD_INTEGERS ("td_argmax") };
  TdAxisParams a = axis_params (x, __builtin_ctz (axes), y);

  const int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (x->dtype);

  if (kernels[x->dtype].name == NULL || y->dtype != TD_I32)
    return TD_ERR_DTYPE;
  a.reverse = kind == TD_REDUCE_ARGMIN;
  a.packs = a.inner > 1 ? lines_in_packs (l, &a, x->dtype)
                        : a.n >= LONG_ROW || td__rows_aligned (a.x, a.n, x->dtype);
  if (a.packs && a.inner == 1)
    a.lanes = td__wide_lanes (a.n, wide);
  return td__launch (
      l, &kernels[x->dtype],
      td__blocks (l, a.lines, a.packs && a.inner > 1 ? TD_BLOCK * wide : TD_BLOCK / a.lanes), 1,
      &a);
}

TdStatus
td_cuda_cumulative_sum (TdCudaLauncher *l, int axis, bool reverse, const TdTensor *x,
                        TdTensor *y)
{
  static TdCudaKernel sums[TD_N_DTYPES]
      = { TD_FLOATS ("td_sum_along"), TD_HALVES ("td_sum_along"),
          TD_INTEGERS ("td_sum_along") };
  static TdCudaKernel scans[TD_N_DTYPES]
      = { TD_FLOATS ("td_scan_along"), TD_HALVES ("td_scan_along"),
          TD_INTEGERS ("td_scan_along") };
  static TdCudaKernel counting[2][TD_N_DTYPES]
      = { { TD_FLOATS ("td_count_sum_along"), TD_HALVES ("td_count_sum_along") },
          { TD_FLOATS ("td_count_scan_along"), TD_HALVES ("td_count_scan_along") } };
  TdAxisParams a = axis_params (x, axis, y);
  int64_t wide = 1, blocks; /* lines of a thread */
  bool block_each;

  if (sums[x->dtype].name == NULL || y->dtype != x->dtype)
    return TD_ERR_DTYPE;
  a.reverse = reverse;
  /* Long lines that lie side by side, and few of them: a block each. */
  block_each = a.inner == 1 && a.n >= TD_BLOCK / 2;
  if (!block_each)
    a.packs = (a.inner > 1 ? lines_in_packs (l, &a, x->dtype)
                           : td__rows_aligned (a.x, a.n, x->dtype))
              && td__aligned (a.y, TD_WIDE_BYTES);
  if (a.packs && a.inner > 1)
    wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (x->dtype);
  blocks = td__blocks (l, a.lines, block_each ? 1 : TD_BLOCK * wide);
  a.counts = td__count_lines (l, &counting[block_each][x->dtype], y, &blocks, a.lines / wide,
                              a.n * wide, block_each ? TD_BLOCK : 1);
  return td__launch (l,
                     a.counts != NULL ? &counting[block_each][x->dtype]
                     : block_each     ? &scans[x->dtype]
                                      : &sums[x->dtype],
                     blocks, 1, &a);
}

TdStatus
td_cuda_softmax (TdCudaLauncher *l, TdSoftmaxKind kind, int axis, const TdTensor *x,
                 const TdTensor *gy, TdTensor *y)
{
  static TdCudaKernel kernels[2][TD_N_DTYPES]
      = { { TD_FLOATS ("td_softmax"), TD_HALVES ("td_softmax") },
          { TD_FLOATS ("td_softmax_grad"), TD_HALVES ("td_softmax_grad") } };
  static TdCudaKernel counting[2][TD_N_DTYPES]
      = { { TD_FLOATS ("td_count_softmax"), TD_HALVES ("td_count_softmax") },
          { TD_FLOATS ("td_count_softmax_grad"), TD_HALVES ("td_count_softmax_grad") } };
  TdAxisParams a = axis_params (x, axis, y);
  int64_t blocks;

  a.gy = gy != NULL ? gy->data : NULL;
  a.kind = (int)kind;
  a.packs = a.inner == 1 && td__rows_aligned (a.x, a.n, y->dtype)
            && td__rows_aligned (a.y, a.n, y->dtype) && td__rows_aligned (a.gy, a.n, y->dtype);
  if (a.packs)
    a.lanes = td__wide_lanes (a.n, TD_WIDE_BYTES / (int64_t)td__bytes_of (y->dtype));
  blocks = td__blocks (l, a.lines, TD_BLOCK / a.lanes);
  a.counts
      = td__count_lines (l, &counting[gy != NULL][y->dtype], y, &blocks, a.lines, a.n, a.lanes);
  return td__launch (l, &(a.counts != NULL ? counting : kernels)[gy != NULL][y->dtype], blocks,
                     1, &a);
}
