/* The parameters of the kernels in broken.cpp, most of which do what a kernel must not.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

typedef struct
{
  int *out;
  int n;
} BrokenParams;
