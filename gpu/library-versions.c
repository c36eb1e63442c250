/* Which of NVIDIA's libraries are here, and their versions: for `tapedeck --version`.
 *
 * SPDX-License-Identifier: MIT */
#include "libraries.h"
#include "nccl-library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

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
  const TdNccl *nccl;
  size_t used = 0;
  int version_of_nccl = 0;
  const char *why;

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
  nccl = td_nccl (&why);
  if (nccl != NULL && nccl->ncclGetVersion (&version_of_nccl) == TD_NCCL_SUCCESS)
    snprintf (text + used, sizeof text - used, ", NCCL %d.%d.%d", version_of_nccl / 10000,
              version_of_nccl % 10000 / 100, version_of_nccl % 100);
  else
    snprintf (text + used, sizeof text - used, ", no NCCL");
  return text;
}
