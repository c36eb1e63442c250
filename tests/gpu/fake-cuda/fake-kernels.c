/* Kernels of the fake driver: found by name where there are any, run when their stream comes to
 * them.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  SHARED_BY_DEFAULT = 48 << 10,
  MAX_LOADED = 1024
};

/* Kernels whose attribute says that they may take more shared memory, and how much. */
static struct
{
  const void *kernel;
  int bytes;
} allowed[16];

/* Kernels whose code is in the context: a driver loads each when it is launched first. */
static const FakeKernel *loaded[MAX_LOADED];
static int n_loaded;

typedef struct
{
  const FakeKernel *kernel;
  unsigned grid[3], block, shared_bytes;
  void *params;
} Launch;

/* Launches that the module prepared and may hold back: what each uses. */
typedef struct Kept
{
  struct Kept *next;
  const FakeKernel *kernel;
  void *params;
  FakeUse *uses;
  int n_uses;
} Kept;

int fake_launches_kept;
static Kept *kept[1024];

static Kept **
kept_at (const FakeKernel *kernel, const void *params)
{
  const unsigned char *bytes = params;
  uint32_t hash = 2166136261u;
  Kept **at;

  for (size_t i = 0; i < kernel->params_bytes; i++)
    hash = (hash ^ bytes[i]) * 16777619u;
  at = &kept[(hash ^ hash >> 16) % (sizeof kept / sizeof kept[0])];
  while (
      *at != NULL
      && ((*at)->kernel != kernel || memcmp ((*at)->params, params, kernel->params_bytes) != 0))
    at = &(*at)->next;
  return at;
}

void
fake_launch_keep_uses (const FakeKernel *kernel, const void *params)
{
  Kept **at = kept_at (kernel, params), *k = *at;
  FakeCommand holder = { .n_uses = 0 };

  if (k == NULL)
    {
      k = *at = calloc (1, sizeof *k);
      if (k == NULL || (k->params = malloc (kernel->params_bytes)) == NULL)
        abort ();
      k->kernel = kernel;
      memcpy (k->params, params, kernel->params_bytes);
    }
  fake_command_take_uses (&holder);
  free (k->uses);
  k->uses = holder.uses;
  k->n_uses = holder.n_uses;
}

static void
take_uses (FakeCommand *c, const FakeKernel *kernel, const void *params)
{
  const Kept *k;

  if (fake_launches_kept == 0)
    {
      fake_command_take_uses (c);
      return;
    }
  k = *kept_at (kernel, params);
  if (k == NULL)
    fake_violation ("%s is launched with parameters that nobody prepared", kernel->name);
  for (int i = 0; k != NULL && i < k->n_uses; i++)
    fake_command_use (c, k->uses[i].address, k->uses[i].bytes, k->uses[i].writes);
}

void
fake_kernels_unload (void)
{
  n_loaded = 0;
  for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
    while (kept[i] != NULL)
      {
        Kept *k = kept[i];

        kept[i] = k->next;
        free (k->params);
        free (k->uses);
        free (k);
      }
}

/* Loading may take memory, which is not for a thread that captures in earnest. */
static CUresult
load (const FakeKernel *kernel)
{
  char text[120];

  for (int i = 0; i < n_loaded; i++)
    if (loaded[i] == kernel)
      return CUDA_SUCCESS;
  snprintf (text, sizeof text, "the first launch of %s", kernel->name);
  if (fake_forbids (text))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (n_loaded < MAX_LOADED)
    loaded[n_loaded++] = kernel;
  return CUDA_SUCCESS;
}

CUresult
cuLibraryLoadData (CUlibrary *library, const void *code, CUjit_option *options, void **values,
                   unsigned n_options, CUlibraryOption *library_options, void **library_values,
                   unsigned n_library_options)
{
  *library = (CUlibrary)&fake;
  if (fake_forbids ("cuLibraryLoadData"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (fake_code_load != NULL)
    fake_code_load (code);
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
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
    if (allowed[i].kernel == NULL || allowed[i].kernel == kernel)
      {
        if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > 227 << 10)
          return CUDA_ERROR_INVALID_VALUE;
        allowed[i].kernel = kernel;
        allowed[i].bytes = value;
        break;
      }
  return fake_enter ("cuKernelSetAttribute");
}

CUresult
cuKernelGetParamInfo (CUkernel kernel, size_t i, size_t *offset, size_t *bytes)
{
  if (i != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  *bytes = ((const FakeKernel *)(const void *)kernel)->params_bytes;
  return fake_enter ("cuKernelGetParamInfo");
}

static bool
may_share (const FakeKernel *kernel, unsigned bytes)
{
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
    if (allowed[i].kernel == kernel && bytes <= (unsigned)allowed[i].bytes)
      return true;
  return bytes <= SHARED_BY_DEFAULT;
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

/* A launch as a command; NULL: no device would take it. */
static FakeCommand *
launch_new (const FakeKernel *kernel, const unsigned grid[3], const unsigned block[3],
            unsigned shared_bytes, void *const *params)
{
  Launch *l;
  FakeCommand *c;

  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || block[0] == 0
      || block[0] * block[1] * block[2] > 1024 || block[2] > 64 || grid[0] > INT32_MAX
      || grid[1] > 65535 || grid[2] > 65535 || !may_share (kernel, shared_bytes))
    {
      fake_violation ("%s with a grid or a block that no device takes", kernel->name);
      return NULL;
    }
  l = calloc (1, sizeof *l);
  *l = (Launch){ .kernel = kernel,
                 .grid = { grid[0], grid[1], grid[2] },
                 .block = block[0],
                 .shared_bytes = shared_bytes,
                 .params = malloc (kernel->params_bytes) };
  memcpy (l->params, params[0], kernel->params_bytes);
  c = fake_command (kernel->name, run_launch);
  c->data = l;
  c->free = free_launch;
  take_uses (c, kernel, l->params);
  return c;
}

/* What of our kernels has to do with statistics; the CPU's stand-ins count for themselves. */
static void
count_launch (const char *name, unsigned blocks)
{
  fake.n_launches++;
  if (strcmp (name, "td_stats") == 0)
    fake.n_stats_read += blocks;
  else if (strcmp (name, "td_stats_end") == 0)
    {
      fake.n_stats++;
      fake.n_stats_of += blocks;
    }
  else if (strncmp (name, "td_count_", 9) == 0 && strcmp (name, "td_count_rows") != 0)
    {
      fake.n_counting++;
      fake.n_counting_fused += strncmp (name, "td_count_fused_", 15) == 0;
    }
}

CUresult
cuLaunchKernel (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                CUstream stream, void **params, void **extra)
{
  CUresult result = fake_enter ("cuLaunchKernel");
  FakeCommand *c;

  if (result == CUDA_SUCCESS)
    result = load ((const FakeKernel *)function);
  if (result != CUDA_SUCCESS)
    return result;
  c = launch_new ((const FakeKernel *)function, (unsigned[]){ grid_x, grid_y, grid_z },
                  (unsigned[]){ block_x, block_y, block_z }, shared_bytes, params);
  if (c == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  count_launch (c->name, grid_x);
  return fake_enqueue (stream, c);
}

CUresult
cuGraphExecKernelNodeSetParams (CUgraphExec exec, CUgraphNode node,
                                const CUDA_KERNEL_NODE_PARAMS *p)
{
  CUresult result = fake_enter ("cuGraphExecKernelNodeSetParams");
  const FakeKernel *kernel = p->func != NULL ? (const FakeKernel *)p->func
                                             : (const FakeKernel *)(const void *)p->kern;
  FakeCommand *c;

  if (result != CUDA_SUCCESS)
    return result;
  c = launch_new (kernel, (unsigned[]){ p->gridDimX, p->gridDimY, p->gridDimZ },
                  (unsigned[]){ p->blockDimX, p->blockDimY, p->blockDimZ }, p->sharedMemBytes,
                  p->kernelParams);
  return c != NULL ? fake_graph_change (exec, node, c) : CUDA_ERROR_INVALID_VALUE;
}
