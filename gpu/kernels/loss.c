/* Launches of cross entropy and its relatives.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"

#define KERNELS(name)                                                                          \
  static TdCudaKernel name[TD_N_DTYPES] = { TD_FLOATS ("td_" #name), TD_HALVES ("td_" #name) }
KERNELS (loss);
KERNELS (count_loss);
KERNELS (right);
KERNELS (loss_grad);
KERNELS (count_loss_grad);
KERNELS (loss_rows);
KERNELS (loss_end);
static TdCudaKernel count_rows = { .name = "td_count_rows" };
static TdCudaKernel label_counts_end = { .name = "td_label_counts_end" };

/* Blocks that leave totals, then the one that adds them up.  Those that count y are as many as
 * those that do not, as the order in which the totals are added up is theirs. */
static TdStatus
launch_totals (TdCudaLauncher *l, TdCudaKernel *kernel, TdDtype dtype, TdCrossEntropyParams *a,
               size_t counts, const TdTensor *y)
{
  const int lanes = kernel == &count_rows ? 1 : a->lanes;
  TdStatus status;

  a->n_totals = (int)td__blocks (l, a->rows, TD_BLOCK / lanes);
  a->totals = l->workspace (l, (size_t)(3 * a->n_totals + 1) * sizeof (double)
                                   + counts * sizeof (uint64_t));
  if (a->totals == NULL)
    return TD_ERR_MEMORY;
  if (y != NULL)
    a->parts
        = td__count_lines_of_all (l, &count_loss[dtype], y, a->n_totals, a->rows, a->c, lanes);
  kernel = a->parts != NULL ? &count_loss[dtype] : kernel;
  if (counts > 0)
    {
      TdShape shape = { 1, { (int64_t)counts } };
      TdTensor zeros = { a->counts = (uint64_t *)(void *)(a->totals + 3 * a->n_totals + 1),
                         &shape, (int64_t)counts, TD_I64 };

      status = td_cuda_fill (l, &zeros, 0);
      if (status != TD_OK)
        return status;
    }
  status = td__launch (l, kernel, a->n_totals, 1, a);
  return status == TD_OK ? td__launch (l, &loss_end[dtype], 1, 1, a) : status;
}

static TdStatus
run (TdCudaLauncher *l, TdCrossEntropyParams *a, TdDtype dtype, const TdTensor *out)
{
  TdStatus status = TD_OK;
  int64_t blocks;

  switch ((TdCrossEntropyKind)a->kind)
    {
    case TD_CROSS_ENTROPY:
      return launch_totals (l, &loss[dtype], dtype, a, 0, &out[1]);
    case TD_ACCURACY:
      return launch_totals (l, &right[dtype], dtype, a, 0, NULL);
    case TD_LABEL_COUNTS:
      status = launch_totals (l, &right[dtype], dtype, a, 3 * (size_t)a->n_labels, NULL);
      return status == TD_OK ? td__launch (l, &label_counts_end,
                                           td__blocks (l, a->n_labels, TD_BLOCK), 1, a)
                             : status;
    case TD_CROSS_ENTROPY_GRAD:
    case TD_CROSS_ENTROPY_ROWS:
      break;
    }
  if (a->normalize)
    status = launch_totals (l, &count_rows, dtype, a, 0, NULL);
  if (status != TD_OK)
    return status;
  if (a->kind == TD_CROSS_ENTROPY_GRAD)
    {
      blocks = td__blocks (l, a->rows, TD_BLOCK / a->lanes);
      a->parts = td__count_lines (l, &count_loss_grad[dtype], &out[0], &blocks, a->rows, a->c,
                                  a->lanes);
      return td__launch (l, &(a->parts != NULL ? count_loss_grad : loss_grad)[dtype], blocks, 1,
                         a);
    }
  return td__launch (l, &loss_rows[dtype], td__blocks (l, a->rows, TD_BLOCK), 1, a);
}

TdStatus
td_cuda_cross_entropy (TdCudaLauncher *l, int kind, const int64_t *params, const TdTensor *in,
                       int n_in, TdTensor *out, int n_out)
{
  static const int n_fixed[] = { 2, 3, 1, 2, 2 };
  const bool rows_only = kind == TD_CROSS_ENTROPY_ROWS;
  const TdTensor *t = &in[rows_only ? 0 : 1];
  const TdDtype dtype = kind == TD_LABEL_COUNTS ? in[0].dtype : out[0].dtype;
  /* Sums are of packs of as many numbers, whatever their type; a gradient has none. */
  const bool grad = kind == TD_CROSS_ENTROPY_GRAD;
  const size_t pack = grad ? TD_WIDE_BYTES : TD_PACK * td__bytes_of (dtype);
  TdCrossEntropyParams a = { .x = in[0].data,
                             .t = t->data,
                             .t_dtype = (int)t->dtype,
                             .kind = kind,
                             .ignore = params[0],
                             .rows = t->size,
                             .c = rows_only ? 0 : in[0].shape->dim[1],
                             .rest = 1,
                             .share_of = t->shape->dim[0],
                             .loss = out[0].data };

  if (loss[dtype].name == NULL)
    return TD_ERR_DTYPE;
  for (int i = 0; i < n_in; i++)
    if (&in[i] != t && in[i].dtype != dtype)
      return TD_ERR_DTYPE;
  for (int i = 1; i < t->shape->ndim; i++)
    a.rest *= t->shape->dim[i];
  /* Places of the largest are found within a warp. */
  a.lanes = a.rest > 1 ? 1 : td__lanes (a.c);
  if (kind == TD_ACCURACY || kind == TD_LABEL_COUNTS)
    a.lanes = a.lanes > 32 ? 32 : a.lanes;
  a.n_labels = rows_only ? INT64_MAX : a.c;
  if (n_in > n_fixed[kind])
    {
      a.weight = in[n_fixed[kind]].data;
      a.n_labels = in[n_fixed[kind]].size;
    }
  if (kind == TD_CROSS_ENTROPY)
    {
      a.y = out[1].data;
      a.wide = a.rest == 1 && td__rows_aligned (a.x, a.c, dtype)
               && td__rows_aligned (a.y, a.c, dtype);
      if (a.wide)
        a.lanes = td__wide_lanes (a.c, TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype));
    }
  else if (grad)
    {
      a.g = in[2].data;
      a.y = out[0].data;
    }
  else if (kind == TD_LABEL_COUNTS)
    {
      a.n_labels = out[0].size;
      a.right = out[0].data;
      a.chosen = out[1].data;
      a.labelled = out[2].data;
    }
  a.packs = a.rest == 1 && (grad || dtype != TD_F64) && td__aligned (a.x, pack)
            && td__aligned (a.y, pack);
  if (kind == TD_ACCURACY)
    a.each = params[1] != 0;
  else if (kind == TD_LABEL_COUNTS)
    a.each = 1; /* ignored rows count nowhere */
  else
    {
      a.each = params[2] != 0;
      a.normalize = !a.each && params[1] != 0;
    }
  return run (l, &a, dtype, out);
}
