/* A program of element-by-element kernels as the text of one kernel.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "device.h"

#include "kernels/fused.h"

typedef struct TdFused
{
  char name[32]; /**< of the kernel, from its text */
  char *text;    /**< #include "fused.cuh" and the kernel */
  int n_operands, n_numbers, n_rows, n_draws;
  int pack;               /**< elements that are read and written at once */
  uint32_t repeated;      /**< operands that are one number, or a row */
  uint32_t reads, writes; /**< operands */
  uint32_t period[TD_FUSED_ROWS];
  double number[TD_FUSED_NUMBERS];
  int n_with_stats; /**< operands whose numbers the kernel's twin counts */
  uint8_t with_stats[TD_FUSED_COUNTS];
} TdFused;

/** Write the text.  Returns false where there is none: too many operands or parameters, an
 * array of two dtypes, a formula that is not in scalar-ops.h, no memory.  *Owner*: the caller,
 * td_cuda_fused_clear. */
bool td_cuda_fused_write (const TdProgram *program, TdFused *fused);
void td_cuda_fused_clear (TdFused *fused);
/** The text of the twin that counts what it writes, of a text that counts some; `name` is the
 * twin's.  *Owner*: the caller, free; NULL: no memory. */
char *td_cuda_fused_twin (const char *text, const char *of, char name[32]);
