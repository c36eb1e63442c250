/* What the kernels of batch normalisation that write an array are launched with.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "params.h"

typedef struct TdBatchNormWithStats
{
  TdBatchNormParams p; /* of the others, all */
  TdCudaStats *counts; /* of each block, row by row of the grid, where the kernel counts */
} TdBatchNormWithStats;
