/* The CPU's kernels, one file per family, and the one thread pool they share.
 *
 * Kernels see contiguous arrays and no variable.  Whatever is split over threads is split into
 * pieces of a fixed size, so that results are bitwise equal for any number of threads.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"

/** The CPU's vtable (device.c). */
extern const TdDeviceOps td__cpu_ops;

/* --- threads (pool-threads.c) --- */

/** Work on [begin, end); worker is 0 .. td__cpu_threads () - 1, for scratch of one's own. */
typedef void (*TdCpuBody) (int64_t begin, int64_t end, int worker, void *context);

/** How many threads work together: TAPEDECK_THREADS, else OMP_NUM_THREADS, else the cores. */
int td__cpu_threads (void);
/** Change it (tests, benchmarks); 1 .. 64. */
void td__cpu_set_threads (int n);
/** Say whether the caller runs inside td__cpu_parallel: BLAS must use one thread there. */
bool td__cpu_in_parallel (void);
/** Call body for each piece [k grain, (k + 1) grain) of [0, n), on all threads; returns when
 * all is done.  Pieces do not depend on the number of threads.  Nested calls run serially. */
void td__cpu_parallel (int64_t n, int64_t grain, TdCpuBody body, void *context);
/** Keep the other threads spinning from here until they are let go: short pieces of work follow
 * each other.  Calls come in pairs, and may nest. */
void td__cpu_stay_awake (bool awake);
/** Does anybody ask for that? */
bool td__cpu_stays_awake (void);
/** Are they awake, still: do they join at once? */
bool td__cpu_are_awake (void);

/* --- element by element (unary.c, unary-grad.c, binary.c, cast.c, random.c, fill.c) --- */
TdStatus td__cpu_fill (TdDevice *d, TdTensor *y, double value);
TdStatus td__cpu_arange (TdDevice *d, TdTensor *y, double start, double step);
TdStatus td__cpu_unary (TdDevice *d, TdUnaryKind kind, double p, double q, const TdTensor *x,
                        TdTensor *y);
TdStatus td__cpu_unary_grad (TdDevice *d, TdUnaryKind kind, double p, const TdTensor *x,
                             const TdTensor *gy, TdTensor *gx, bool accumulate);
TdStatus td__cpu_binary (TdDevice *d, TdBinaryKind kind, const TdTensor *x, const TdTensor *y,
                         TdTensor *z, bool accumulate);
TdStatus td__cpu_select (TdDevice *d, const TdTensor *c, const TdTensor *x, const TdTensor *y,
                         TdTensor *z);
TdStatus td__cpu_cast (TdDevice *d, const TdTensor *x, TdTensor *y);
TdStatus td__cpu_random (TdDevice *d, TdRandomKind kind, TdRngKey key, double p, TdTensor *y);
/** Four 32-bit numbers of the stream.  *Source*: Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3", SC 2011, Philox4x32-10. */
void td__philox (const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* --- shape and index (strided.c, index.c) --- */
TdStatus td__cpu_strided (TdDevice *d, TdStridedKind kind, const TdTensor *x,
                          const TdStrides *walk, TdTensor *y);
TdStatus td__cpu_gather_rows (TdDevice *d, const TdTensor *w, const TdTensor *index,
                              TdTensor *y);
TdStatus td__cpu_scatter_rows_add (TdDevice *d, const TdTensor *index, const TdTensor *gy,
                                   TdTensor *gw);
TdStatus td__cpu_check_index (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                              int64_t *bad_place, int64_t *bad_value);

/* --- reductions (reduce.c, stats.c) and updates (update.c) --- */
TdStatus td__cpu_reduce (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x,
                         TdTensor *y, bool accumulate);
/** The place of the first of the largest (smallest) elements along one axis (i32); NaN comes
 * first. */
TdStatus td__cpu_argmax (TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y);
/** Sums of what lies up to each element along an axis (cumulative-sum.c). */
TdStatus td__cpu_cumulative_sum (TdDevice *d, int axis, bool reverse, const TdTensor *x,
                                 TdTensor *y);
TdStatus td__cpu_stats (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed,
                        TdStats *out);
TdStatus td__cpu_update (TdDevice *d, TdUpdateKind kind, const TdUpdate *u,
                         TdTensor *const *arrays, int n);

/* --- products and layers (gemm.c, conv.c, pooling.c, softmax.c, batch-norm.c ...) --- */
TdStatus td__cpu_gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b,
                       TdTensor *c);
/* The same for channels-last operands as well (layout.c). */
TdStatus td__cpu_conv_any (TdDevice *d, TdConvKind kind, const TdConv *attrs,
                           const TdTensor *in, int n_in, TdTensor *out);
TdStatus td__cpu_pooling_any (TdDevice *d, TdPoolKind kind, const TdPooling *attrs,
                              const TdTensor *in, int n_in, TdTensor *out, TdTensor *out2);
TdStatus td__cpu_batch_norm_any (TdDevice *d, int kind, const double *params,
                                 const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_conv (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                       int n_in, TdTensor *out);
TdStatus td__cpu_pooling (TdDevice *d, TdPoolKind kind, const TdPooling *attrs,
                          const TdTensor *in, int n_in, TdTensor *out, TdTensor *out2);
/** Images in another size, and the way back (resize.c). */
TdStatus td__cpu_resize (TdDevice *d, const TdResize *r, bool grad, const TdTensor *x,
                         TdTensor *y);
TdStatus td__cpu_softmax (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x,
                          const TdTensor *gy, TdTensor *y);
TdStatus td__cpu_batch_norm (TdDevice *d, int kind, const double *params, const TdTensor *in,
                             int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_row_norm (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm,
                           const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_attention (TdDevice *d, TdAttentionKind kind, const TdAttention *attention,
                            const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_cross_entropy (TdDevice *d, int kind, const int64_t *params,
                                const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_lstm (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out,
                       int n_out);
