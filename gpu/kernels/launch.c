/* What the launch functions share: grid sizes, and strided walks cut into launches that count
 * elements in 32 bits.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"

#include <assert.h>

enum
{
  BLOCKS_OF_SM = 8, /* 2048 threads of a multiprocessor */
  COUNTING_OF_SM = 5,
  MOST_OF_THREAD = UINT16_MAX /* numbers, in count.cuh */
};

TdStatus
td__launch (TdCudaLauncher *l, TdCudaKernel *kernel, int64_t blocks_x, int64_t blocks_y,
            const void *params)
{
  const unsigned grid[3] = { (unsigned)blocks_x, (unsigned)blocks_y, 1 };

  if (kernel->name == NULL)
    return TD_ERR_DTYPE;
  if (blocks_x == 0 || blocks_y == 0)
    return TD_OK;
  if (blocks_x > INT32_MAX || blocks_y > 65535)
    return TD_ERR_SHAPE; /* beyond any grid */
  return l->launch (l, kernel, grid, TD_BLOCK, 0, params);
}

int64_t
td__counting_blocks (const TdCudaLauncher *l)
{
  return (int64_t)l->n_sms * COUNTING_OF_SM;
}

/* Threads take equal shares, but for a few packs. */
static TdCudaStats *
count (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y, int64_t blocks)
{
  if (l->count == NULL || kernel->name == NULL || y->size == 0
      || y->size / TD_BLOCK / blocks > MOST_OF_THREAD / 2)
    return NULL;
  return l->count (l, kernel, y, blocks);
}

TdCudaStats *
td__count (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y, int64_t *blocks)
{
  const int64_t most = td__counting_blocks (l), n = *blocks < most ? *blocks : most;
  TdCudaStats *parts = count (l, kernel, y, n);

  if (parts != NULL)
    *blocks = n;
  return parts;
}

/* Whether a thread of so many blocks can count its share of the lines; in packs, one of these
 * may be more than that. */
static bool
can_count (int64_t blocks, int64_t lines, int64_t n, int lanes)
{
  const int64_t groups = blocks * (TD_BLOCK / lanes);

  return lines > 0
         && n / lanes + TD_WIDE_BYTES <= MOST_OF_THREAD / ((lines + groups - 1) / groups);
}

TdCudaStats *
td__count_lines (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y, int64_t *blocks,
                 int64_t lines, int64_t n, int lanes)
{
  const int64_t most = td__counting_blocks (l), some = *blocks < most ? *blocks : most;

  return can_count (some, lines, n, lanes) ? td__count (l, kernel, y, blocks) : NULL;
}

TdCudaStats *
td__count_lines_of_all (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y,
                        int64_t blocks, int64_t lines, int64_t n, int lanes)
{
  return can_count (blocks, lines, n, lanes) ? count (l, kernel, y, blocks) : NULL;
}

int64_t
td__blocks (const TdCudaLauncher *l, int64_t n, int64_t each)
{
  const int64_t blocks = (n + each - 1) / each, most = (int64_t)l->n_sms * BLOCKS_OF_SM;

  return blocks < most ? blocks : most;
}

int
td__lanes (int64_t n)
{
  int lanes = 1;

  while (lanes < 32 && lanes < n)
    lanes *= 2;
  return n > 1024 ? TD_BLOCK : lanes;
}

int
td__wide_lanes (int64_t n, int64_t wide)
{
  return n > 1024 ? TD_BLOCK : td__lanes ((n + wide - 1) / wide);
}

bool
td__rows_aligned (const void *p, int64_t n, TdDtype dtype)
{
  return td__aligned (p, TD_WIDE_BYTES)
         && n % (int64_t)(TD_WIDE_BYTES / td__bytes_of (dtype)) == 0;
}

TdDivisor
td__divisor (int64_t value)
{
  TdDivisor d = { (uint32_t)(value > 0 ? value : 1), 0, 0 };

  while (d.shift < 32 && (1ull << d.shift) < d.value)
    d.shift++;
  d.magic = (uint32_t)(((1ull << 32) * ((1ull << d.shift) - d.value)) / d.value + 1);
  return d;
}

void
td__axes_add (TdAxes *a, int64_t dim, const int64_t *stride)
{
  const int last = a->ndim - 1;
  bool merge = last >= 0;

  if (dim == 1)
    return;
  for (int k = 0; k < a->n_operands && merge; k++)
    merge = a->stride[k][last] == stride[k] * dim;
  if (merge)
    a->dim[last] *= dim;
  else
    a->dim[a->ndim++] = dim;
  for (int k = 0; k < a->n_operands; k++)
    a->stride[k][a->ndim - 1] = stride[k];
}

TdAxes
td__axes_broadcast (const TdShape *out, const TdTensor *const *operands, int n)
{
  TdAxes a = { .n_operands = n };
  int64_t stride[TD_MAX_DIMS][TD_MAX_OPERANDS];

  for (int k = 0; k < n; k++)
    {
      const TdShape *x = operands[k]->shape;
      int64_t step = 1;

      for (int i = out->ndim - 1; i >= 0; i--)
        {
          const int j = i - (out->ndim - x->ndim);

          stride[i][k] = j < 0 || x->dim[j] == 1 ? 0 : step;
          step *= j >= 0 ? x->dim[j] : 1;
        }
    }
  for (int i = 0; i < out->ndim; i++)
    td__axes_add (&a, out->dim[i], stride[i]);
  return a;
}

/* The walk of axes that are few enough for one launch. */
static TdStatus
one_piece (TdCudaLauncher *l, const TdAxes *axes, TdWalkParams *walk, TdWalkLaunch launch,
           void *context)
{
  TdAxes whole = *axes;
  int64_t n = 1;

  if (whole.ndim == 0)
    {
      whole.ndim = 1;
      whole.dim[0] = 1;
      for (int k = 0; k < whole.n_operands; k++)
        whole.stride[k][0] = 1;
    }
  walk->ndim = whole.ndim;
  for (int i = 0; i < whole.ndim; i++)
    {
      n *= whole.dim[i];
      walk->dim[i] = td__divisor (whole.dim[i]);
      for (int k = 0; k < whole.n_operands; k++)
        walk->stride[k][i] = whole.stride[k][i];
    }
  walk->n = (uint32_t)n;
  walk->tail = 0;
  walk->items = 1;
  return launch (l, walk, &whole, context);
}

TdStatus
td__walk_pieces (TdCudaLauncher *l, const TdAxes *axes, TdWalkParams *walk, const size_t *bytes,
                 TdWalkLaunch launch, void *context)
{
  const int n_operands = axes->n_operands;
  TdAxes part = *axes;
  void *data[TD_MAX_OPERANDS];
  int64_t n = 1, inner = 1, share;
  TdStatus status = TD_OK;

  for (int i = 0; i < axes->ndim; i++)
    {
      n *= axes->dim[i];
      inner *= i > 0 ? axes->dim[i] : 1;
    }
  if (n == 0)
    return TD_OK;
  if (n <= TD_PIECE)
    return one_piece (l, axes, walk, launch, context);
  /* The first axis in shares; or one after the other, if each of them is still too much. */
  share = inner <= TD_PIECE ? TD_PIECE / inner : 1;
  for (int k = 0; k <= n_operands; k++)
    data[k] = walk->data[k];
  for (int64_t at = 0; at < axes->dim[0] && status == TD_OK; at += share)
    {
      part = *axes;
      part.dim[0] = axes->dim[0] - at < share ? axes->dim[0] - at : share;
      for (int k = 0; k < n_operands; k++)
        walk->data[k] = (char *)data[k] + at * axes->stride[k][0] * (int64_t)bytes[k];
      walk->data[n_operands]
          = (char *)data[n_operands] + at * inner * (int64_t)bytes[n_operands];
      if (part.dim[0] == 1 && axes->ndim > 1)
        {
          part.ndim--;
          for (int i = 0; i < part.ndim; i++)
            {
              part.dim[i] = axes->dim[i + 1];
              for (int k = 0; k < n_operands; k++)
                part.stride[k][i] = axes->stride[k][i + 1];
            }
        }
      status = td__walk_pieces (l, &part, walk, bytes, launch, context);
    }
  for (int k = 0; k <= n_operands; k++)
    walk->data[k] = data[k];
  return status;
}
