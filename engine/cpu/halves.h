/* The slots of the CPU's vtable whose kernels know no halves: those with floats at once to the
 * kernel, those with halves by way of floats.  Operands are the slot's (device.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cpu.h"

TdStatus td__cpu_half_strided (TdDevice *d, TdStridedKind kind, const TdTensor *x,
                               const TdStrides *walk, TdTensor *y);
TdStatus td__cpu_half_scatter_rows_add (TdDevice *d, const TdTensor *index, const TdTensor *gy,
                                        TdTensor *gw);
TdStatus td__cpu_half_reduce (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x,
                              TdTensor *y, bool accumulate);
TdStatus td__cpu_half_cumulative_sum (TdDevice *d, int axis, bool reverse, const TdTensor *x,
                                      TdTensor *y);
TdStatus td__cpu_half_softmax (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x,
                               const TdTensor *gy, TdTensor *y);
TdStatus td__cpu_half_gemm (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b,
                            TdTensor *c);
TdStatus td__cpu_half_conv (TdDevice *d, TdConvKind kind, const TdConv *attrs,
                            const TdTensor *in, int n_in, TdTensor *out);
TdStatus td__cpu_half_pooling (TdDevice *d, TdPoolKind kind, const TdPooling *attrs,
                               const TdTensor *in, int n_in, TdTensor *out, TdTensor *out2);
TdStatus td__cpu_half_batch_norm (TdDevice *d, int kind, const double *params,
                                  const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_half_row_norm (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm,
                                const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_half_attention (TdDevice *d, TdAttentionKind kind, const TdAttention *attrs,
                                 const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_half_cross_entropy (TdDevice *d, int kind, const int64_t *params,
                                     const TdTensor *in, int n_in, TdTensor *out, int n_out);
TdStatus td__cpu_half_lstm (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out,
                            int n_out);
