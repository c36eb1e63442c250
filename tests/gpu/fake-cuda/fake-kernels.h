/* What the fake driver wants to know of a kernel; found by name in whatever emulates them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "fake-internal.h"

typedef struct FakeKernel FakeKernel;
struct FakeKernel
{
  const char *name;
  size_t params_bytes;
  void (*run) (const FakeKernel *kernel, const unsigned grid[3], unsigned block,
               size_t shared_bytes, const void *params);
  void *emulated;
};

/** NULL: there is none of this name. */
const FakeKernel *fake_kernel_find (const char *name);
/** Launches that reach the driver now were prepared earlier (repeat.c): what they use is looked
 * up by kernel and parameters.  Counts calls within each other. */
extern int fake_launches_kept;
/** What was noted of the next launch is kept for this one. */
void fake_launch_keep_uses (const FakeKernel *kernel, const void *params);
/** Kernels named td_count_ are in no image: fake_kernel_find gives one after this. */
void fake_kernel_show (const char *name);
/** Code is loaded: what is made at run time can be found from then on.  NULL where no kernels
 * are made. */
void fake_code_load (const void *code) __attribute__ ((weak));
