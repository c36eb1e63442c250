/* The one kernel of driver.c, for the fake driver.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include <string.h>

static void
run_nothing (const FakeKernel *kernel, const unsigned grid[3], unsigned block,
             size_t shared_bytes, const void *params)
{
}

const FakeKernel *
fake_kernel_find (const char *name)
{
  static const FakeKernel nothing = { .name = "nothing", .run = run_nothing };

  return strcmp (name, nothing.name) == 0 ? &nothing : NULL;
}
