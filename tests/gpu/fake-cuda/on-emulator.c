/* The kernels themselves, compiled for the host: the fake driver finds them by name, and runs a
 * launch as one fibre for each thread; in every launch they begin in another order.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include "emu-core.h"
#include "kernels.h"

/* One image that holds them all. */
const TdCudaImage td_cuda_images[] = { { "emulated", "", 1 }, { NULL, NULL, 0 } };

static void
run (const FakeKernel *kernel, const unsigned grid[3], unsigned block, size_t shared_bytes,
     const void *params)
{
  static unsigned n;

  td_emu_order ((TdEmuOrder)(n++ % TD_EMU_ORDERS));
  td_emu_run (kernel->emulated, grid, block, params);
}

const FakeKernel *
fake_kernel_find (const char *name)
{
  static FakeKernel found[1024]; /* the module asks for each once */
  static size_t n;
  TdEmuKernel *kernel = td_emu_find (name);

  if (kernel == NULL || n == sizeof found / sizeof found[0])
    return NULL;
  found[n] = (FakeKernel){
    .name = kernel->name, .params_bytes = kernel->params_bytes, .run = run, .emulated = kernel
  };
  return &found[n++];
}
