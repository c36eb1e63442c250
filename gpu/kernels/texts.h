/* Sources of kernels that are compiled at run time, as text: what NVRTC finds in place of
 * files. texts.py writes them into kernel-texts.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

typedef struct TdCudaText
{
  const char *name; /**< as #include lines have it; NULL: the end of a list */
  const char *text;
} TdCudaText;

/** What a fused group's text includes (programs.c). */
extern const TdCudaText td_fused_texts[];
/** The files whose kernels can gather statistics, and all that they include (counting.c). */
extern const TdCudaText td_counting_texts[];
