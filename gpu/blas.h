/* Matrix products through cublasLt, opened when the first one is wanted.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cuda-device.h"

/** Put the product on the stream, if cublasLt is here and takes it.  Returns whether it did, or
 * failed at it; *status says which. */
bool td_cuda_blas_gemm (TdCuda *c, const TdGemm *g, const TdTensor *a, const TdTensor *b,
                        TdTensor *out, TdStatus *status);
void td_cuda_blas_close (TdCuda *c);
