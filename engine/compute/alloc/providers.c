/* Segments in host memory, and segments that are only addresses (planning without memory).
 *
 * SPDX-License-Identifier: MIT */
#include "pool.h"

#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* Aligned to huge pages, which the kernel is asked for: arrays of megabytes outgrow the table
 * of small ones, and a walk through it costs more than a miss of the cache. */
static void *
host_new (void *context, size_t bytes)
{
  const size_t room = bytes + HUGE_PAGE;
  char *p = mmap (NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t before;

  (void)context;
  if (p == MAP_FAILED)
    return NULL;
  before = -(uintptr_t)p % HUGE_PAGE;
  if (before > 0)
    munmap (p, before);
  munmap (p + before + bytes, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
  (void)madvise (p + before, bytes, MADV_HUGEPAGE);
#endif
  return p + before;
}

static void
host_free (void *context, void *address, size_t bytes)
{
  (void)context;
  munmap (address, bytes);
}

const TdSegmentProvider td__provider_host = { "host", host_new, host_free, .query = NULL };

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

const TdSegmentProvider td__provider_fake = { "fake", fake_new, fake_free, .query = NULL };
