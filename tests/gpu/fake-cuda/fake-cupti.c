/* A CUPTI for the fake driver: every command that runs takes 700 ns of a clock that ticks once
 * a microsecond, and is told of in buffers, as the real one does, when somebody flushes.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-internal.h"

#include <stdlib.h>
#include <string.h>

#if __has_include(<cupti.h>)
#include <cupti.h>

#pragma GCC visibility push(default)

enum
{
  MAX_RECORDS = 1 << 16,
  MAX_DEPTH = 16
};

static struct
{
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
  bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
  uint64_t ids[MAX_DEPTH];
  int depth;
  uint64_t clock;
  uint32_t n_launches;
  struct
  {
    uint32_t correlation;
    uint64_t id, start, end;
  } records[MAX_RECORDS];
  int n_records;
} now;

uint64_t
fake_cupti_id (void)
{
  return now.depth > 0 ? now.ids[now.depth - 1] : 0;
}

void
fake_cupti_ran (uint64_t id, bool is_kernel)
{
  now.clock += 1000;
  if (!is_kernel || !now.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]
      || now.n_records == MAX_RECORDS)
    return;
  now.records[now.n_records].correlation = ++now.n_launches;
  now.records[now.n_records].id = id;
  now.records[now.n_records].start = now.clock;
  now.records[now.n_records++].end = now.clock + 700;
}

CUptiResult CUPTIAPI
cuptiGetVersion (uint32_t *version)
{
  *version = CUPTI_API_VERSION;
  return fake_enter ("cuptiGetVersion") == CUDA_SUCCESS ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
}

CUptiResult CUPTIAPI
cuptiGetTimestamp (uint64_t *timestamp)
{
  *timestamp = now.clock;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks (CUpti_BuffersCallbackRequestFunc request,
                                CUpti_BuffersCallbackCompleteFunc complete)
{
  now.request = request;
  now.complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityEnable (CUpti_ActivityKind kind)
{
  now.enabled[kind] = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityPushExternalCorrelationId (CUpti_ExternalCorrelationKind kind, uint64_t id)
{
  if (now.depth == MAX_DEPTH)
    {
      fake_violation ("more operations are begun than ended");
      return CUPTI_ERROR_UNKNOWN;
    }
  now.ids[now.depth++] = id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityPopExternalCorrelationId (CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
  if (now.depth == 0)
    {
      fake_violation ("an operation ends that has not begun");
      return CUPTI_ERROR_QUEUE_EMPTY;
    }
  *last = now.ids[--now.depth];
  return CUPTI_SUCCESS;
}

static size_t
put (uint8_t *to, const void *record, size_t bytes)
{
  memcpy (to, record, bytes);
  return bytes;
}

/* The call that launched it, after what it correlates with; nothing where calls are not asked
 * for. */
static size_t
put_call (uint8_t *to, int i)
{
  const CUpti_ActivityExternalCorrelation e
      = { .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
          .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
          .externalId = now.records[i].id,
          .correlationId = now.records[i].correlation };
  const CUpti_ActivityAPI call = { .kind = CUPTI_ACTIVITY_KIND_DRIVER,
                                   .start = now.records[i].start,
                                   .end = now.records[i].start,
                                   .correlationId = now.records[i].correlation };
  size_t used = 0;

  if (!now.enabled[CUPTI_ACTIVITY_KIND_DRIVER])
    return 0;
  if (now.enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] && e.externalId != 0)
    used = put (to, &e, sizeof e);
  return used + put (to + used, &call, sizeof call);
}

static size_t
put_kernel (uint8_t *to, int i)
{
  const CUpti_ActivityKernel10 k = { .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     .start = now.records[i].start,
                                     .end = now.records[i].end,
                                     .correlationId = now.records[i].correlation };

  return put (to, &k, sizeof k);
}

/* Each record as a call and a kernel, in either order; as many buffers as that takes. */
CUptiResult CUPTIAPI
cuptiActivityFlushAll (uint32_t flags)
{
  for (int i = 0; i < now.n_records;)
    {
      uint8_t *buffer = NULL;
      size_t bytes = 0, max = 0, used = 0;
      const size_t both = sizeof (CUpti_ActivityExternalCorrelation)
                          + sizeof (CUpti_ActivityAPI) + sizeof (CUpti_ActivityKernel10);

      now.request (&buffer, &bytes, &max);
      if (buffer == NULL)
        return CUPTI_ERROR_OUT_OF_MEMORY;
      for (; i < now.n_records && used + both <= bytes; i++)
        {
          const bool call_first = i % 2 == 0;

          used += call_first ? put_call (buffer + used, i) : put_kernel (buffer + used, i);
          used += call_first ? put_kernel (buffer + used, i) : put_call (buffer + used, i);
        }
      now.complete (NULL, 0, buffer, bytes, used);
    }
  now.n_records = 0;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiActivityGetNextRecord (uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
  uint8_t *at = (uint8_t *)*record;
  const CUpti_ActivityKind kind = at != NULL ? ((CUpti_Activity *)at)->kind : 0;

  if (at == NULL)
    at = buffer;
  else if (kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
    at += sizeof (CUpti_ActivityExternalCorrelation);
  else if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
    at += sizeof (CUpti_ActivityAPI);
  else
    at += sizeof (CUpti_ActivityKernel10);
  if (at >= buffer + valid)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)at;
  return CUPTI_SUCCESS;
}

#pragma GCC visibility pop

#else

uint64_t
fake_cupti_id (void)
{
  return 0;
}

void
fake_cupti_ran (uint64_t id, bool is_kernel)
{
}

#endif
