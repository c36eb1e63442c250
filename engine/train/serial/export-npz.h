/* Named arrays for an npz file.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"

typedef struct TdNamedArrays
{
  TdVar **vars;
  const char **names;
  int n;
} TdNamedArrays;

TdStatus td__export_npz (const char *path, const TdNamedArrays *arrays, const TdSite *site);
