/* A call of the driver without the engine, which ends the program when it fails: nothing can be
 * measured after that.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "api.h"

#include <stdio.h>
#include <stdlib.h>

static inline void
driver_check (CUresult result, const char *what)
{
  const char *name = "?";

  if (result == CUDA_SUCCESS)
    return;
  td_cuda.cuGetErrorName (result, &name);
  fprintf (stderr, "%s: %s\n", what, name);
  exit (1);
}

#define CU(call) driver_check (td_cuda.call, #call)
