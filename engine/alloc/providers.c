/* Segments in host memory, and segments that are only addresses (planning without memory).
 *
 * SPDX-License-Identifier: MIT */
#include "pool.h"

#include <sys/mman.h>

static void *
host_new (void *context, size_t bytes)
{
  void *p = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  (void)context;
  return p == MAP_FAILED ? NULL : p;
}

static void
host_free (void *context, void *address, size_t bytes)
{
  (void)context;
  munmap (address, bytes);
}

const TdSegmentProvider td__provider_host = { "host", host_new, host_free, NULL };

/* Addresses start at 1 << 44 and are never given out twice.  context may be a uint64_t limit.
 */
static void *
fake_new (void *context, size_t bytes)
{
  static uintptr_t next = (uintptr_t)1 << 44;
  const uint64_t *limit = context;
  uintptr_t address = next;

  if (limit != NULL && bytes > *limit)
    return NULL;
  next += bytes;
  return (void *)address; /* NOLINT(performance-no-int-to-ptr): never followed */
}

static void
fake_free (void *context, void *address, size_t bytes)
{
  (void)context;
  (void)address;
  (void)bytes;
}

const TdSegmentProvider td__provider_fake = { "fake", fake_new, fake_free, NULL };
