/* Launches of reductions, and of what is done along one axis.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"

enum
{
  WIDE = 128,      /* outputs side by side from which on a thread takes one alone */
  PART_STEPS = 16, /* numbers of a thread that make a part worth its while */
  MAX_PARTS = 1024
};

static bool
is_integer (TdDtype dtype)
{
  return dtype == TD_I32 || dtype == TD_I64;
}

static TdCudaKernel reduces[TD_N_DTYPES]
    = { TD_FLOATS ("td_reduce"), TD_HALVES ("td_reduce"), TD_INTEGERS ("td_reduce") };
static TdCudaKernel logsumexps[TD_N_DTYPES]
    = { TD_FLOATS ("td_logsumexp"), TD_HALVES ("td_logsumexp") };
static TdCudaKernel ends[TD_N_DTYPES]
    = { TD_FLOATS ("td_reduce_parts"), TD_HALVES ("td_reduce_parts"),
        TD_INTEGERS ("td_reduce_parts") };

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

static TdStatus
launch_reduce (TdCudaLauncher *l, TdReduceParams *a, TdDtype dtype, bool ends_kept)
{
  TdCudaKernel *kernel = a->kind == TD_REDUCE_LOGSUMEXP ? &logsumexps[dtype] : &reduces[dtype];
  int64_t blocks, parts;
  TdStatus status;

  a->lanes = ends_kept && a->outputs >= WIDE ? 1 : td__lanes (a->count);
  blocks = td__blocks (l, a->outputs, TD_BLOCK / a->lanes);
  parts = (int64_t)l->n_sms * 4 / blocks;
  if (parts > a->count / (a->lanes * PART_STEPS))
    parts = a->count / (a->lanes * PART_STEPS);
  parts = parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
  a->part = (a->count + parts - 1) / parts;
  a->n_parts = (int)parts;
  if (parts == 1)
    return td__launch (l, kernel, blocks, 1, a);
  a->parts = l->workspace (l, (size_t)(parts * a->outputs * 2) * sizeof (double));
  if (a->parts == NULL)
    return TD_ERR_MEMORY;
  status = td__launch (l, kernel, blocks, parts, a);
  if (status != TD_OK)
    return status;
  a->lanes = parts > 32 ? 32 : td__lanes (parts);
  return td__launch (l, &ends[dtype], td__blocks (l, a->outputs, TD_BLOCK / a->lanes), 1, a);
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

static TdStatus
argmax (TdCudaLauncher *l, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y)
{
  static TdCudaKernel kernels[TD_N_DTYPES]
      = { TD_FLOATS ("td_argmax"), TD_HALVES ("td_argmax"), TD_INTEGERS ("td_argmax") };
  TdAxisParams a = axis_params (x, __builtin_ctz (axes), y);

  if (kernels[x->dtype].name == NULL || y->dtype != TD_I32)
    return TD_ERR_DTYPE;
  a.lanes = a.lanes > 32 ? 32 : a.lanes;
  a.reverse = kind == TD_REDUCE_ARGMIN;
  return td__launch (l, &kernels[x->dtype], td__blocks (l, a.lines, TD_BLOCK / a.lanes), 1, &a);
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
  TdAxisParams a = axis_params (x, axis, y);

  if (sums[x->dtype].name == NULL || y->dtype != x->dtype)
    return TD_ERR_DTYPE;
  a.reverse = reverse;
  /* Long lines that lie side by side, and few of them: a block each. */
  if (a.inner == 1 && a.n >= TD_BLOCK / 2)
    return td__launch (l, &scans[x->dtype], td__blocks (l, a.lines, 1), 1, &a);
  return td__launch (l, &sums[x->dtype], td__blocks (l, a.lines, TD_BLOCK), 1, &a);
}

TdStatus
td_cuda_softmax (TdCudaLauncher *l, TdSoftmaxKind kind, int axis, const TdTensor *x,
                 const TdTensor *gy, TdTensor *y)
{
  static TdCudaKernel kernels[2][TD_N_DTYPES]
      = { { TD_FLOATS ("td_softmax"), TD_HALVES ("td_softmax") },
          { TD_FLOATS ("td_softmax_grad"), TD_HALVES ("td_softmax_grad") } };
  TdAxisParams a = axis_params (x, axis, y);

  a.gy = gy != NULL ? gy->data : NULL;
  a.kind = (int)kind;
  a.packs = a.inner == 1 && td__rows_aligned (a.x, a.n, y->dtype)
            && td__rows_aligned (a.y, a.n, y->dtype) && td__rows_aligned (a.gy, a.n, y->dtype);
  if (a.packs)
    a.lanes = td__wide_lanes (a.n, TD_WIDE_BYTES / (int64_t)td__bytes_of (y->dtype));
  return td__launch (l, &kernels[gy != NULL][y->dtype],
                     td__blocks (l, a.lines, TD_BLOCK / a.lanes), 1, &a);
}
