/* The CUDA kernels as C functions: one per slot of device.h that computes, same operands, same
 * order.
 *
 * Each decides on grids and parameters and calls the launcher's `launch`; nothing here talks to
 * CUDA, so that the same functions run on a GPU, on a fake runtime, or in the kernel emulator
 * of the tests.  Kernels are deterministic: no floating-point atomics, sums in an order that
 * depends on sizes alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "device.h"
#include "kernels/common.h"

/** Bytes of an element: the engine's, of which the module sees no more than headers. */
static inline size_t
td__bytes_of (TdDtype dtype)
{
  /* f32, f64, f16, bf16, i32, i64, u8, bool */
  static const uint8_t bytes[TD_N_DTYPES] = { 4, 8, 2, 2, 4, 8, 1, 1 };

  return bytes[dtype];
}

/** One kernel: its name in the images, and whatever the launcher found for it. */
typedef struct TdCudaKernel
{
  const char *name;
  void *handle;        /**< NULL at first; the launcher's to fill */
  size_t params_bytes; /**< of its struct; 0: not asked for yet */
  bool unavailable;    /**< compiled at run time, and that failed: it is not tried again */
} TdCudaKernel;

/** What a launch needs.  *Owner*: the caller of the functions below. */
typedef struct TdCudaLauncher TdCudaLauncher;
struct TdCudaLauncher
{
  int n_sms; /**< multiprocessors of the device: large arrays get a few blocks for each */
  /** Put kernel <<<grid, block, shared_bytes>>> (params) on the stream; params is one struct,
   * copied before this returns. */
  TdStatus (*launch) (TdCudaLauncher *l, TdCudaKernel *kernel, const unsigned grid[3],
                      unsigned block, size_t shared_bytes, const void *params);
  /** Device memory, aligned to 256 bytes, for the launches of one of the functions below: the
   * next function on the stream may be given the same.  NULL: there is none. */
  void *(*workspace) (TdCudaLauncher *l, size_t bytes);
  /** Device memory for the statistics of y that each block of `kernel` gathers while it writes
   * all of y; that kernel is launched next.  NULL: nobody asks for statistics, or the kernel is
   * not to be had, and the plain one is launched.  No function: always so. */
  struct TdCudaStats *(*count) (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y,
                                int64_t blocks);
};

/** A file of kernels, compiled: a fat binary for cuLibraryLoadData. */
typedef struct TdCudaImage
{
  const char *name;
  const void *data;
  size_t bytes;
} TdCudaImage;
/** All of them, ended by a NULL name; a kernel is in exactly one.  Only where nvcc was found.
 * Kernels named td_count_ are in none: counting.c has them compiled at run time. */
extern const TdCudaImage td_cuda_images[];

/* --- element by element --- */
TdStatus td_cuda_fill (TdCudaLauncher *l, TdTensor *y, double value);
TdStatus td_cuda_arange (TdCudaLauncher *l, TdTensor *y, double start, double step);
TdStatus td_cuda_unary (TdCudaLauncher *l, TdUnaryKind kind, double p, double q,
                        const TdTensor *x, TdTensor *y);
TdStatus td_cuda_unary_grad (TdCudaLauncher *l, TdUnaryKind kind, double p, const TdTensor *x,
                             const TdTensor *gy, TdTensor *gx, bool accumulate);
TdStatus td_cuda_binary (TdCudaLauncher *l, TdBinaryKind kind, const TdTensor *x,
                         const TdTensor *y, TdTensor *z, bool accumulate);
TdStatus td_cuda_select (TdCudaLauncher *l, const TdTensor *c, const TdTensor *x,
                         const TdTensor *y, TdTensor *z);
TdStatus td_cuda_cast (TdCudaLauncher *l, const TdTensor *x, TdTensor *y);
TdStatus td_cuda_random (TdCudaLauncher *l, TdRandomKind kind, TdRngKey key, double p,
                         TdTensor *y);
TdStatus td_cuda_dropout (TdCudaLauncher *l, TdRngKey key, double p, const TdTensor *x,
                          TdTensor *y);

/* --- shape --- */
TdStatus td_cuda_strided (TdCudaLauncher *l, TdStridedKind kind, const TdTensor *x,
                          const TdStrides *walk, TdTensor *y);
/** Each from its place to another; they do not overlap. */
TdStatus td_cuda_copy_parts (TdCudaLauncher *l, const TdCopyPart *parts, int n);
TdStatus td_cuda_gather_rows (TdCudaLauncher *l, const TdTensor *w, const TdTensor *index,
                              TdTensor *y);
/** Rows that go to one place are added in their order. */
TdStatus td_cuda_scatter_rows_add (TdCudaLauncher *l, const TdTensor *index, const TdTensor *gy,
                                   TdTensor *gw);
/** result: device memory of two int64_t, the first bad place (-1: all in range) and its value.
 */
TdStatus td_cuda_check_index (TdCudaLauncher *l, const TdTensor *index, int64_t limit,
                              int64_t ignore, int64_t *result);
/** The same for memory of the host that the device reaches: counts up *runs, and leaves the
 * run, the bad place and its value in found unless found[0] is not 0; then *any_bad is 1. */
TdStatus td_cuda_check_index_async (TdCudaLauncher *l, const TdTensor *index, int64_t limit,
                                    int64_t ignore, int64_t *found, int64_t *any_bad,
                                    uint64_t *runs);

/* --- reductions --- */
TdStatus td_cuda_reduce (TdCudaLauncher *l, TdReduceKind kind, uint32_t axes, const TdTensor *x,
                         TdTensor *y, bool accumulate);
TdStatus td_cuda_cumulative_sum (TdCudaLauncher *l, int axis, bool reverse, const TdTensor *x,
                                 TdTensor *y);
TdStatus td_cuda_softmax (TdCudaLauncher *l, TdSoftmaxKind kind, int axis, const TdTensor *x,
                          const TdTensor *gy, TdTensor *y);

/* --- products: what the libraries do better where they are there --- */
TdStatus td_cuda_gemm (TdCudaLauncher *l, const TdGemm *g, const TdTensor *a, const TdTensor *b,
                       TdTensor *c);
TdStatus td_cuda_conv (TdCudaLauncher *l, TdConvKind kind, const TdConv *attrs,
                       const TdTensor *in, int n_in, TdTensor *out);
TdStatus td_cuda_attention (TdCudaLauncher *l, TdAttentionKind kind,
                            const TdAttention *attention, const TdTensor *in, int n_in,
                            TdTensor *out, int n_out);

/* --- fused layers --- */
TdStatus td_cuda_pooling (TdCudaLauncher *l, TdPoolKind kind, const TdPooling *attrs,
                          const TdTensor *in, int n_in, TdTensor *out, TdTensor *out2);
TdStatus td_cuda_batch_norm (TdCudaLauncher *l, int kind, const double *params,
                             const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td_cuda_row_norm (TdCudaLauncher *l, TdRowNormKind kind, const TdRowNorm *norm,
                           const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td_cuda_cross_entropy (TdCudaLauncher *l, int kind, const int64_t *params,
                                const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td_cuda_lstm (TdCudaLauncher *l, int kind, const TdTensor *in, int n_in, TdTensor *out,
                       int n_out);

/* --- updates and statistics: many arrays a launch --- */

/** The same update of n_params parameters; arrays [i * n .. i * n + n) are those of the i-th.
 */
TdStatus td_cuda_update (TdCudaLauncher *l, TdUpdateKind kind, const TdUpdate *u,
                         TdTensor *const *arrays, int n, int n_params);

/** Say whether that can be. */
TdStatus td_cuda_update_check (TdUpdateKind kind, TdTensor *const *arrays, int n, int n_params);
TdStatus td_cuda_sum_squares (TdCudaLauncher *l, const TdTensor *x, int n, TdTensor *y);
/** The slots look and decide of TdDeviceScaling. */
TdStatus td_cuda_scale_look (TdCudaLauncher *l, const TdTensor *gradients, int n,
                             double *numbers);
TdStatus td_cuda_scale_decide (TdCudaLauncher *l, int n, double growth, double *numbers,
                               int64_t *report, int64_t run);

/** One array to look at, and how; max_samples and seed as the slot `stats` takes them. */
typedef struct TdCudaStatsOf
{
  const void *data;
  int64_t size;
  TdDtype dtype;
  uint64_t max_samples, seed;
  TdCudaStats *result;      /**< device memory */
  const TdCudaStats *parts; /**< NULL, or what those counted who wrote it: data is not read */
  int64_t n_parts;
} TdCudaStatsOf;

/** Statistics of n arrays by as few launches as that takes. */
TdStatus td_cuda_stats (TdCudaLauncher *l, const TdCudaStatsOf *of, int n);
/** What the slot `stats` gives, from a result copied to the host. */
void td_cuda_stats_finish (const TdCudaStats *result, TdStats *out);
