/* What the host's C compiler, nvcc and the compiler of kernels made at run time all read.  It
 * includes nothing, for the last of them has no files.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

enum
{
  TD_BLOCK = 256 /* threads of a block, unless a kernel says less */
};

/** One array's statistics as the device leaves them; histogram as TdStats has it. */
typedef struct TdCudaStats
{
  uint64_t n, n_sampled, n_zero, n_nan, n_pos_inf, n_neg_inf;
  double min, max, shift, s1, s2; /**< sums of (x - shift) and its square over finite x */
  uint32_t exponent[32];
} TdCudaStats;
