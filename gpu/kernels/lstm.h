/* What the kernels of LSTM cells are launched with.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "params.h"

typedef struct TdLstmWithStats
{
  TdLstmParams p;
  TdCudaStats *parts[2]; /* of each block, of out0 and out1, where the kernel counts them */
} TdLstmWithStats;
