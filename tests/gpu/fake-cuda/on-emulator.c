/* The kernels themselves, compiled for the host: the fake driver finds them by name, and runs a
 * launch as one fibre for each thread; in every launch they begin in another order.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include "emu-core.h"
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

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

/* Those that gather statistics are in no image of the module's; of fused groups each is in code
 * of its own. */
static const TdEmuKernel *shown[1024];
static size_t n_shown;

void
fake_kernel_show (const char *name)
{
  if (n_shown == sizeof shown / sizeof shown[0])
    abort ();
  shown[n_shown++] = td_emu_find (name);
}

static bool
is_hidden (const TdEmuKernel *kernel)
{
  if (strncmp (kernel->name, "td_count_", 9) != 0 || strcmp (kernel->name, "td_count_rows") == 0
      || strncmp (kernel->name, "td_count_fused_", 15) == 0)
    return false;
  for (size_t i = 0; i < n_shown; i++)
    if (shown[i] == kernel)
      return false;
  return true;
}

const FakeKernel *
fake_kernel_find (const char *name)
{
  static FakeKernel found[1024]; /* the module asks for each once */
  static size_t n;
  TdEmuKernel *kernel = td_emu_find (name);

  if (kernel == NULL || is_hidden (kernel) || n == sizeof found / sizeof found[0])
    return NULL;
  found[n] = (FakeKernel){
    .name = kernel->name, .params_bytes = kernel->params_bytes, .run = run, .emulated = kernel
  };
  return &found[n++];
}
