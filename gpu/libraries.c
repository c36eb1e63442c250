/* Finding NVIDIA's libraries, also in the folders of pip's packages.
 *
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

/* Ended by NULL; the folders that this build was told of, if any. */
static const char *const folders[] = { TD_CUDA_FOLDERS NULL };

void *
td_cuda_library (const char *name)
{
  void *library = dlopen (name, RTLD_NOW | RTLD_LOCAL);
  char path[4096];

  for (int i = 0; library == NULL && folders[i] != NULL; i++)
    if ((size_t)snprintf (path, sizeof path, "%s/%s", folders[i], name) < sizeof path)
      library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  return library;
}
