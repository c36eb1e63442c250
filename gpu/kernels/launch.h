/* What the launch functions share: grids, tables of kernels by element type, walks.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "params.h"

/** A row of a table by dtype: kernels named `prefix`_f32 and so on. */
#define TD_FLOATS(prefix)                                                                      \
  [TD_F32] = { .name = prefix "_f32" }, [TD_F64] = { .name = prefix "_f64" }
#define TD_HALVES(prefix)                                                                      \
  [TD_F16] = { .name = prefix "_f16" }, [TD_BF16] = { .name = prefix "_bf16" }
#define TD_INTEGERS(prefix)                                                                    \
  [TD_I32] = { .name = prefix "_i32" }, [TD_I64] = { .name = prefix "_i64" }

static inline bool
td__aligned (const void *p, size_t bytes)
{
  return (uintptr_t)p % bytes == 0;
}

/** Launch blocks of TD_BLOCK threads; 0 blocks: nothing to do.  *Errors*: TD_ERR_DTYPE for a
 * kernel without a name, and the launcher's. */
TdStatus td__launch (TdCudaLauncher *l, TdCudaKernel *kernel, int64_t blocks_x,
                     int64_t blocks_y, const void *params);
/** Where the blocks of `kernel` leave statistics of what they write to all of y; NULL: launch
 * the plain kernel.  Fewer blocks gather statistics than write, as each of them needs more of a
 * multiprocessor. */
TdCudaStats *td__count (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y,
                        int64_t *blocks);
/** The same where `lanes` threads share each of some lines of n numbers: also not where one
 * would take more than it can count. */
TdCudaStats *td__count_lines (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y,
                              int64_t *blocks, int64_t lines, int64_t n, int lanes);
/** The same for kernels whose blocks have to be as many as they are. */
TdCudaStats *td__count_lines_of_all (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y,
                                     int64_t blocks, int64_t lines, int64_t n, int lanes);
/** Blocks that count, at most. */
int64_t td__counting_blocks (const TdCudaLauncher *l);
/** Blocks for n pieces of work, `each` of them a block: a few for each multiprocessor at most,
 * as kernels go on with the rest of the grid's share. */
int64_t td__blocks (const TdCudaLauncher *l, int64_t n, int64_t each);
/** Threads of a warp, or a block, that share the `n` numbers of one line. */
int td__lanes (int64_t n);

/** The same where each takes `wide` of the numbers at once. */
int td__wide_lanes (int64_t n, int64_t wide);
/** Whether rows of n numbers, side by side from p on, all begin and end on 16 bytes; NULL: no
 * array. */
bool td__rows_aligned (const void *p, int64_t n, TdDtype dtype);

TdDivisor td__divisor (int64_t value);

/** Offsets and steps of operands over one shape. */
typedef struct TdAxes
{
  int ndim, n_operands;
  int64_t dim[TD_MAX_DIMS], stride[TD_MAX_OPERANDS][TD_MAX_DIMS];
} TdAxes;

/** Add an axis behind the others: merged with the last where all operands allow it. */
void td__axes_add (TdAxes *a, int64_t dim, const int64_t *stride);
/** Axes of n operands broadcast to `out`. */
TdAxes td__axes_broadcast (const TdShape *out, const TdTensor *const *operands, int n);

/** Call `launch` with walks that cover the axes, each of at most TD_PIECE elements; operands of
 * which `bytes[k]` is the element size are moved on, the last (data[n_operands]) is dense. */
typedef TdStatus (*TdWalkLaunch) (TdCudaLauncher *l, TdWalkParams *walk, const TdAxes *axes,
                                  void *context);
TdStatus td__walk_pieces (TdCudaLauncher *l, const TdAxes *axes, TdWalkParams *walk,
                          const size_t *bytes, TdWalkLaunch launch, void *context);
