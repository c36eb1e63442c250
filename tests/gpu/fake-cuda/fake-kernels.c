/* Kernels of the fake driver: found by name where there are any, run when their stream comes to
 * them.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  const FakeKernel *kernel;
  unsigned grid[3], block, shared_bytes;
  void *params;
} Launch;

CUresult
cuLibraryLoadData (CUlibrary *library, const void *code, CUjit_option *options, void **values,
                   unsigned n_options, CUlibraryOption *library_options, void **library_values,
                   unsigned n_library_options)
{
  *library = (CUlibrary)&fake;
  return fake_enter ("cuLibraryLoadData");
}

CUresult
cuLibraryGetKernel (CUkernel *kernel, CUlibrary library, const char *name)
{
  CUresult result = fake_enter ("cuLibraryGetKernel");
  const FakeKernel *found = fake_kernel_find (name);

  *kernel = (CUkernel)(uintptr_t)found;
  return result == CUDA_SUCCESS && found == NULL ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult
cuKernelSetAttribute (CUfunction_attribute attribute, int value, CUkernel kernel,
                      CUdevice device)
{
  return fake_enter ("cuKernelSetAttribute");
}

static void
run_launch (FakeCommand *command)
{
  const Launch *l = command->data;

  l->kernel->run (l->kernel, l->grid, l->block, l->shared_bytes, l->params);
}

static void
free_launch (FakeCommand *command)
{
  Launch *l = command->data;

  free (l->params);
  free (l);
}

CUresult
cuLaunchKernel (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                CUstream stream, void **params, void **extra)
{
  CUresult result = fake_enter ("cuLaunchKernel");
  const FakeKernel *kernel = (const FakeKernel *)function;
  Launch *l;
  FakeCommand *c;

  if (result != CUDA_SUCCESS)
    return result;
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0
      || block_x * block_y * block_z > 1024)
    {
      fake_violation ("%s with a grid or a block that no device takes", kernel->name);
      return CUDA_ERROR_INVALID_VALUE;
    }
  l = calloc (1, sizeof *l);
  *l = (Launch){ .kernel = kernel,
                 .grid = { grid_x, grid_y, grid_z },
                 .block = block_x,
                 .shared_bytes = shared_bytes,
                 .params = malloc (kernel->params_bytes) };
  memcpy (l->params, params[0], kernel->params_bytes);
  c = fake_command (kernel->name, run_launch);
  c->data = l;
  c->free = free_launch;
  fake_command_take_uses (c);
  fake.n_launches++;
  return fake_enqueue (stream, c);
}
