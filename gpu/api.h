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
  /** For a runtime that checks: kernels on the stream will read or write these bytes.  NULL on
   * a real device. */
  void (*uses) (CUstream stream, CUdeviceptr address, size_t bytes, bool writes);
  /** Keep what was said of the next launch while another goes out before it; false: take it
   * back.  NULL on a real device. */
  void (*uses_aside) (bool aside);
  /** Where NVIDIA's other libraries come from in its place; NULL: from the loader. */
  void *(*library) (const char *name);
} TdCudaApi;

extern TdCudaApi td_cuda;

/** Fill td_cuda.  Returns NULL, or in one line what is missing. */
const char *td_cuda_api_open (void);
