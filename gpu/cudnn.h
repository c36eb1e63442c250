/* Convolutions and attention through cuDNN's graphs, recurrent layers through its functions. No
 * type of cuDNN's is in here.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cuda-device.h"

enum
{
  TD_CUDNN_RANK = 5 /* batch, channels, up to three axes */
};

/** What the plan of a convolution depends on; compared as bytes. */
typedef struct TdCudnnConv
{
  int64_t x[TD_CUDNN_RANK], w[TD_CUDNN_RANK], y[TD_CUDNN_RANK];
  int64_t stride[3], pad[3], dilate[3];
  int32_t rank; /**< 4 or 5 */
  int32_t kind; /**< a TdConvKind */
  int32_t dtype;
  int32_t tf32, accumulate, alignment;
  int32_t layout; /**< a TdLayout: of all three */
  /* what is done to the result, in this order */
  int32_t added, bias, relu;
} TdCudnnConv;

/** What the plan of an attention depends on; compared as bytes. */
typedef struct TdCudnnAttention
{
  int64_t batch, n_q, n_k, d, d_v;
  int32_t kind; /**< a TdAttentionKind */
  int32_t dtype, causal, alignment;
} TdCudnnAttention;

/** Put the convolution on the stream, if cuDNN is here and takes it.  Returns whether it did,
 * or failed at it; *status says which. */
bool td_cudnn_conv (TdCuda *c, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                    int n_in, TdTensor *out, TdStatus *status);
/** The same for attention: in halves, without a mask. */
bool td_cudnn_attention (TdCuda *c, TdAttentionKind kind, const TdAttention *attrs,
                         const TdTensor *in, int n_in, TdTensor *out, TdStatus *status);
/** Recurrent layers; without cuDNN its sizes say so. */
extern const TdDeviceRnn td_cudnn_rnn;
void td_cudnn_close (TdCuda *c);

/** Fill the key of a call; of a forward one with its bias and end.  Returns false where cuDNN
 * has no such convolution. */
bool td_cudnn_conv_key (TdCudnnConv *key, TdConvKind kind, const TdConv *attrs,
                        const TdTensor *in, int n_in, const TdTensor *out, bool tf32);
/** The same; false also where a row may see no key, of which cuDNN makes NaN. */
bool td_cudnn_attention_key (TdCudnnAttention *key, TdAttentionKind kind,
                             const TdAttention *attrs, const TdTensor *in, int n_in,
                             const TdTensor *out);

/** Say whether a number of a floating-point type, as it lies in memory, is NaN. */
bool td_cudnn_is_nan (const void *bytes, TdDtype dtype);

/** Which of n times is the one to take: the least, unless an earlier one is nearly as short;
 * below 0 are none. */
int td__dnn_fastest (const float *milliseconds, int n);

/** What cuDNN proposes for a device that is only described. */
typedef struct TdCudnnPlanned
{
  int n_engines, n_exact; /**< proposed; left when those that round inputs or are not
                             repeatable are out */
  int n_plans;            /**< made */
  int64_t workspace_bytes;
  bool from_disk; /**< it was planned before: nothing was proposed */
  char why[400];  /**< of a plan that could not be made */
} TdCudnnPlanned;

/** Make up to `wanted` (1 to 8) plans without a device, from its properties in JSON.  Returns
 * whether there is one. */
bool td_cudnn_conv_plan_deviceless (const TdCudnnConv *key, const char *properties, int wanted,
                                    TdCudnnPlanned *planned);
bool td_cudnn_attention_plan_deviceless (const TdCudnnAttention *key, const char *properties,
                                         TdCudnnPlanned *planned);
