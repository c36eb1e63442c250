/* The table of the driver's functions, filled from libcuda.so.1.
 *
 * SPDX-License-Identifier: MIT */
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>

TdCudaApi td_cuda;

const char *
td_cuda_api_open (void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_ (x)
#define TD_CU(name) { TEXT (name), offsetof (TdCudaApi, name) },
  static const struct
  {
    const char *name;
    size_t at;
  } functions[] = {
#include "api.def"
  };
#undef TD_CU
  static char why[200];
  void *library = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

  if (library == NULL)
    return "no driver here (libcuda.so.1 cannot be opened)";
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    {
      void *function = dlsym (library, functions[i].name);

      if (function == NULL)
        {
          snprintf (why, sizeof why, "the driver is too old: it has no %s", functions[i].name);
          return why;
        }
      *(void **)((char *)&td_cuda + functions[i].at) = function;
    }
  return NULL;
}
