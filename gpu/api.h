/* The CUDA driver as a table of functions, so that nothing links it: a machine without it loads
 * nothing, and in tests a fake one stands in.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

typedef struct TdCudaApi
{
#define TD_CU(name) __typeof__ (name) *name;
#include "api.def"
#undef TD_CU
} TdCudaApi;

extern TdCudaApi td_cuda;

/** Fill td_cuda.  Returns NULL, or in one line what is missing. */
const char *td_cuda_api_open (void);
