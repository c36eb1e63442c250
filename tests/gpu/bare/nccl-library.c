/* NCCL's functions from its library, opened when it is asked for: there are machines without
 * it.
 *
 * SPDX-License-Identifier: MIT */
#include "nccl.h"

#include <dlfcn.h>

bool
nccl_open (const char *name, Nccl *nccl)
{
  static const char *const names[] = { "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank",
                                       "ncclAllReduce", "ncclCommDestroy" };
  void *library = dlopen (name, RTLD_NOW | RTLD_LOCAL);

  for (int i = 0; library != NULL && i < 5; i++)
    {
      *(void **)((char *)nccl + (size_t)i * sizeof (void *)) = dlsym (library, names[i]);
      if (((void **)(void *)nccl)[i] == NULL)
        return false;
    }
  return library != NULL;
}
