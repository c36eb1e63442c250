/* Ranges for NVIDIA's profilers: the link and the operation that the host is in.  On where a
 * profiler is attached, or with TAPEDECK_NVTX=1.
 *
 * NVTX is a header that looks for the profiler's library; without one each call is a branch.
 * Names are registered once, so that they are not copied each time.
 *
 * SPDX-License-Identifier: MIT */
#include "nvtx.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

enum
{
  KNOWN = 512 /* names, by hash; the last that met there */
};

static nvtxDomainHandle_t domain;
static struct
{
  const char *name;
  nvtxStringHandle_t handle;
} known[KNOWN];

static nvtxStringHandle_t
handle_of (const char *name)
{
  uintptr_t h = (uintptr_t)name >> 4;
  size_t at = (h ^ h >> 9) % KNOWN;

  if (known[at].name != name)
    {
      known[at].name = name;
      known[at].handle = nvtxDomainRegisterStringA (domain, name);
    }
  return known[at].handle;
}

static void
start (void)
{
  static const char *const categories[]
      = { "forward", "backward", "accumulate", "update", "link" };

  if (domain != NULL)
    return;
  domain = nvtxDomainCreateA ("Tapedeck");
  for (uint32_t i = 0; i < sizeof categories / sizeof *categories; i++)
    nvtxDomainNameCategoryA (domain, i + 1, categories[i]);
}

static void
range (TdDevice *d, const char *name, int category, uint64_t payload)
{
  nvtxEventAttributes_t a = { .version = NVTX_VERSION,
                              .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                              .category = (uint32_t)category + 1,
                              .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                              .messageType = NVTX_MESSAGE_TYPE_REGISTERED };

  (void)d;
  if (name == NULL)
    {
      nvtxDomainRangePop (domain);
      return;
    }
  a.payload.ullValue = payload;
  a.message.registered = handle_of (name);
  nvtxDomainRangePushEx (domain, &a);
}

TdCudaRange
td_cuda_nvtx (void)
{
  const char *asked = getenv ("TAPEDECK_NVTX"), *tool = getenv ("NVTX_INJECTION64_PATH");

  if (asked != NULL ? strcmp (asked, "1") != 0 : tool == NULL || *tool == '\0')
    return NULL;
  start ();
  return range;
}

#else

TdCudaRange
td_cuda_nvtx (void)
{
  return NULL;
}

#endif
