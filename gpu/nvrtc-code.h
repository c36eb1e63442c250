/* NVIDIA's compiler at run time, opened when it is wanted: text in, code for one architecture
 * out.  It needs no device.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernels/texts.h"

/** Is it here? */
bool td_cuda_nvrtc_here (void);

typedef struct TdCudaCode
{
  void *data; /**< free; NULL: none */
  size_t bytes;
  char *log;      /**< what the compiler said; free */
  bool from_disk; /**< it was there: nothing compiled, no log */
} TdCudaCode;

/** What is compiled: a text, the files that it may include, the device's compute capability. */
typedef struct TdCudaSource
{
  const char *text;
  const TdCudaText
      *headers; /**< besides the C library's, of which nvrtc.c has the little needed */
  int major, minor;
} TdCudaSource;

/** Look only in the disk cache.  Returns whether the code was there. */
bool td_cuda_nvrtc_find (const TdCudaSource *source, TdCudaCode *code);
/** Look in the disk cache, else compile and keep it there.  Returns whether there is code; else
 * the log says why. */
bool td_cuda_nvrtc_compile (const TdCudaSource *source, TdCudaCode *code);
void td_cuda_code_clear (TdCudaCode *code);

/** The text that has one kernel named td_count_... compiled, with td_counting_texts
 * (counting.c). False: no file has a kernel of this name, or there is no room. */
bool td_cuda_counting_text (const char *kernel, char *text, size_t room);
