/* What the kernel that gathers rows and counts them is launched with.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "params.h"

typedef struct TdRowsWithStats
{
  TdRowsParams p;     /* columns of it: packs of 16 bytes if it says so, else numbers */
  TdCudaStats *parts; /* of each block */
} TdRowsWithStats;
