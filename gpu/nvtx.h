/* NVTX in one file.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "device.h"

typedef void (*TdCudaRange) (TdDevice *d, const char *name, int category, uint64_t payload);

/** The slot `range`; NULL: no tool looks (NVTX_INJECTION64_PATH names one; TAPEDECK_NVTX=1 and
 * 0 say it otherwise), or the toolkit that this was built with has no NVTX. */
TdCudaRange td_cuda_nvtx (void);
