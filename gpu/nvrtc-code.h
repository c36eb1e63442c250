/* NVIDIA's compiler at run time, opened when it is wanted: text in, code for one architecture
 * out.  It needs no device.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Is it here? */
bool td_cuda_nvrtc_here (void);

typedef struct TdCudaCode
{
  void *data; /**< free; NULL: none */
  size_t bytes;
  char *log;      /**< what the compiler said; free */
  bool from_disk; /**< it was there: nothing compiled, no log */
} TdCudaCode;

/** Compile text that includes fused.cuh for compute capability major.minor, or find it in the
 * disk cache.  Returns whether there is code; else the log says why. */
bool td_cuda_nvrtc_compile (const char *text, int major, int minor, TdCudaCode *code);
void td_cuda_code_clear (TdCudaCode *code);
