/* What the operations of layers share: checks with Chainer's messages, attributes that an
 * operation hands to its gradients, and those gradients as functions.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ops.h"

/* Checks for infer.  Each fails the call with one line that names the operands. */

/** Inputs 0 .. n - 1, those in mask, are of one floating-point dtype. */
TdStatus td__check_floats (const TdOpCall *call, uint32_t mask);
/** The same, but beside an input 0 in halves others may be f32: the parameters (inputs 1 and 2,
 * both of one dtype) and statistics of normalisations; those in `like` may not. */
TdStatus td__check_mixed (const TdOpCall *call, uint32_t mask, uint32_t like);
/** What moments of numbers of this dtype are kept in. */
TdDtype td__moments_dtype (TdDtype dtype);
/** v itself where it is of this dtype, else cast. *Owner*: the scope. */
TdVar *td__in_dtype (TdVar *v, TdDtype dtype);
/** A vector (c) as (1, c, 1, ...), to broadcast against an image x. *Owner*: the scope. */
TdVar *td__per_channel (TdVar *v, const TdShape *x);
/** Sum over all axes but that of channels. *Owner*: the scope. */
TdVar *td__channel_sum (TdVar *v);
/** Input i holds i32, i64 or u8. */
TdStatus td__check_integers (const TdOpCall *call, int i);
TdStatus td__check_ndim (const TdOpCall *call, int i, int ndim);
/** in[i].shape[a] == in[j].shape[b]. */
TdStatus td__check_sizes (const TdOpCall *call, int i, int a, int j, int b);
TdStatus td__check_same_shape (const TdOpCall *call, int i, int j);
/** Input i is a vector as long as axis a of input j. */
TdStatus td__check_vector (const TdOpCall *call, int i, int j, int a);
/** Input t is x's shape without axis 1. */
TdStatus td__check_labels_shape (const TdOpCall *call, int x, int t);

/** For forward: every element of input i is in [0, limit), or `allowed`.  *Errors*: TD_ERR_ARG,
 * naming the value and its place. */
TdStatus td__check_labels (TdOpCall *call, int i, int64_t limit, int64_t allowed);
/** What td__check_labels allows besides when nothing is to be allowed. */
#define TD_NOT_A_LABEL INT64_MIN

/** Output size of windows along one axis.  *Source*: chainer.utils.conv.get_conv_outsize. */
int64_t td__window_count (int64_t size, int64_t ksize, int64_t stride, int64_t pad,
                          int64_t dilate, bool cover_all);

/** Output 0 has the shape and dtype of input i. */
TdStatus td__out_like (TdOpCall *call, int out, int i);
/** infer of random masks: a floating-point x, 0 <= ratio of zeros < 1, an output like x. */
TdStatus td__infer_mask (TdOpCall *call, double ratio);

typedef struct TdMatmulAttrs
{
  bool ta, tb;
} TdMatmulAttrs;

typedef struct TdSoftmaxAttrs
{
  int axis;
} TdSoftmaxAttrs;
extern const TdAttr td__softmax_attrs[];
TdStatus td__softmax_infer (TdOpCall *call);
TdStatus td__softmax_grad_infer (TdOpCall *call);
TdStatus td__softmax_run (TdOpCall *call, TdSoftmaxKind kind);
/** Negative axes count from the end. */
TdVar *td__softmax_apply (const TdOpClass *cls, TdVar *x, int axis, const TdSite *site);

/** The matrix product when it is not one of two matrices. */
TdVar *td__matmul_nd (TdVar *a, TdVar *b, bool ta, bool tb, const TdSite *site);
