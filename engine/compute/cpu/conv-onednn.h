/* Convolutions through oneDNN, where the build has it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "conv.h"

#if defined(TD_HAVE_ONEDNN)
/** Say whether oneDNN is the faster way for such a convolution.  The answer depends on sizes
 * only; TAPEDECK_ONEDNN=off, or a wish for tiles (TAPEDECK_TILES), turns it off. */
bool td__conv_onednn_prefers (TdConvKind kind, const TdConvSizes *s);
/** One of the three kinds in f32; operands as of td__cpu_conv.  *algorithm: which of its
 * implementations ran, a string that stays.  *Errors*: TD_ERR_STATE when oneDNN refuses, and
 * nothing was written; TD_ERR_MEMORY. */
TdStatus td__conv_onednn (TdConvKind kind, const TdConv *attrs, const TdConvSizes *s,
                          const TdTensor *in, int n_in, TdTensor *out, const char **algorithm);
#endif
