/* Finding NVIDIA's libraries, also in the folders of pip's packages.
 *
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

#include "api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

/* Ended by NULL; the folders that this build was told of, if any. */
static const char *const folders[] = { TD_CUDA_FOLDERS NULL };

void *
td_cuda_library (const char *name)
{
  void *library
      = td_cuda.library != NULL ? td_cuda.library (name) : dlopen (name, RTLD_NOW | RTLD_LOCAL);
  char path[4096];

  if (td_cuda.library != NULL)
    return library;
  for (int i = 0; library == NULL && folders[i] != NULL; i++)
    if ((size_t)snprintf (path, sizeof path, "%s/%s", folders[i], name) < sizeof path)
      library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  return library;
}

const char *
td_cuda_libraries_text (void)
{
  static const struct
  {
    const char *text, *library, *function;
    size_t major; /* what a version is divided by */
    size_t minor;
  } known[] = {
    { "cuBLASLt", "libcublasLt.so.13", "cublasLtGetVersion", 10000, 100 },
    { "cuDNN", "libcudnn.so.9", "cudnnGetVersion", 10000, 100 },
  };
  static char text[160];
  size_t used = 0;

  if (text[0] != '\0')
    return text;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    {
      void *library = td_cuda_library (known[i].library);
      size_t (*version) (void) = NULL;

      if (library != NULL)
        *(void **)&version = dlsym (library, known[i].function);
      if (version == NULL)
        used += (size_t)snprintf (text + used, sizeof text - used, "%sno %s",
                                  used > 0 ? ", " : "", known[i].text);
      else
        used += (size_t)snprintf (
            text + used, sizeof text - used, "%s%s %zu.%zu.%zu", used > 0 ? ", " : "",
            known[i].text, version () / known[i].major,
            version () % known[i].major / known[i].minor, version () % known[i].minor);
    }
  return text;
}
