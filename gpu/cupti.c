/* Activity records of CUPTI: kernels and copies, with the number of the operation that launched
 * them pushed as their external correlation.
 *
 * CUPTI hands buffers over in threads of its own, so that what is known lies behind a lock.
 * Operations far behind are forgotten: the table is a ring.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel-times.h"

#include "libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<cupti.h>)
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>

enum
{
  RING = 1 << 14,
  BUFFER_BYTES = 64 << 10
};

#define FUNCTIONS(F)                                                                           \
  F (cuptiGetVersion)                                                                          \
  F (cuptiGetTimestamp)                                                                        \
  F (cuptiActivityRegisterCallbacks)                                                           \
  F (cuptiActivityEnable)                                                                      \
  F (cuptiActivityFlushAll)                                                                    \
  F (cuptiActivityGetNextRecord)                                                               \
  F (cuptiActivityPushExternalCorrelationId)                                                   \
  F (cuptiActivityPopExternalCorrelationId)

static struct
{
#define F(name) __typeof__ (name) *name;
  FUNCTIONS (F)
#undef F
} cupti;

static bool tried, on;
static char text[80];

/* A launch: whose it is, and when it ran; the two come in either order. */
typedef struct
{
  uint32_t correlation; /* CUPTI's number; 0: none */
  bool has_id, has_times;
  uint64_t id, start, end;
} Launch;

typedef struct
{
  uint64_t id; /* 0: none */
  uint64_t start, end;
} Span;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Launch launches[RING];
static Span spans[RING];

static Launch *
launch_of (uint32_t correlation)
{
  Launch *l = &launches[correlation % RING];

  if (l->correlation != correlation)
    *l = (Launch){ .correlation = correlation };
  return l;
}

static void
join (Launch *l)
{
  Span *s = &spans[l->id % RING];

  if (!l->has_id || !l->has_times || l->id == 0)
    return;
  if (s->id != l->id)
    *s = (Span){ .id = l->id, .start = l->start, .end = l->end };
  s->start = l->start < s->start ? l->start : s->start;
  s->end = l->end > s->end ? l->end : s->end;
  l->correlation = 0;
}

static void
add_times (uint32_t correlation, uint64_t start, uint64_t end)
{
  Launch *l = launch_of (correlation);

  l->has_times = true;
  l->start = start;
  l->end = end;
  join (l);
}

static void
take_record (const CUpti_Activity *record)
{
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
    {
      const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;

      add_times (k->correlationId, k->start, k->end);
    }
  else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
    {
      const CUpti_ActivityMemcpy6 *m = (const CUpti_ActivityMemcpy6 *)record;

      add_times (m->correlationId, m->start, m->end);
    }
  else if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
    {
      const CUpti_ActivityExternalCorrelation *e
          = (const CUpti_ActivityExternalCorrelation *)record;
      Launch *l = launch_of (e->correlationId);

      l->has_id = true;
      l->id = e->externalId;
      join (l);
    }
}

static void CUPTIAPI
wants_buffer (uint8_t **buffer, size_t *bytes, size_t *max_records)
{
  void *room = NULL;

  *max_records = 0;
  *bytes = posix_memalign (&room, 8, BUFFER_BYTES) == 0 ? BUFFER_BYTES : 0;
  *buffer = room;
}

static void CUPTIAPI
has_buffer (CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
  CUpti_Activity *record = NULL;

  (void)context, (void)stream, (void)bytes;
  pthread_mutex_lock (&lock);
  while (cupti.cuptiActivityGetNextRecord (buffer, valid, &record) == CUPTI_SUCCESS)
    take_record (record);
  pthread_mutex_unlock (&lock);
  free (buffer);
}

static bool
load (void)
{
  static const char *const names[] = { "libcupti.so.13", "libcupti.so" };
  void *library = NULL;

  for (int i = 0; i < 2 && library == NULL; i++)
    library = td_cuda_library (names[i]);
  if (library == NULL)
    return false;
#define F(name)                                                                                \
  *(void **)&cupti.name = dlsym (library, #name);                                              \
  if (cupti.name == NULL)                                                                      \
    return false;
  FUNCTIONS (F)
#undef F
  return true;
}

static bool
enable (void)
{
  /* Of calls nothing is kept; but it is their records that correlations come before, so that
     without them there would be none: of the driver for our launches, of the runtime for the
     libraries'. */
  static const CUpti_ActivityKind kinds[]
      = { CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_DRIVER,
          CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
          CUPTI_ACTIVITY_KIND_MEMCPY };

  if (cupti.cuptiActivityRegisterCallbacks (wants_buffer, has_buffer) != CUPTI_SUCCESS)
    return false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (cupti.cuptiActivityEnable (kinds[i]) != CUPTI_SUCCESS)
      return false;
  return true;
}

bool
td_cupti_start (void)
{
  const char *asked = getenv ("TAPEDECK_CUPTI");
  uint32_t version = 0;

  if (tried || asked == NULL || strcmp (asked, "1") != 0)
    return on;
  tried = true;
  if (!load ())
    snprintf (text, sizeof text, "no CUPTI (libcupti.so.13 cannot be opened)");
  else if (cupti.cuptiGetVersion (&version) != CUPTI_SUCCESS
           || version / 10000 != CUPTI_API_VERSION / 10000)
    snprintf (text, sizeof text, "no CUPTI (version %u, not %d)", version, CUPTI_API_VERSION);
  else if (!enable ())
    snprintf (text, sizeof text, "no CUPTI (it does not trace kernels here)");
  else
    {
      on = true;
      snprintf (text, sizeof text, "CUPTI %u", version);
    }
  return on;
}

uint64_t
td_cupti_now (void)
{
  uint64_t now = 0;

  cupti.cuptiGetTimestamp (&now);
  return now;
}

void
td_cupti_push (uint64_t id)
{
  cupti.cuptiActivityPushExternalCorrelationId (CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
}

void
td_cupti_pop (void)
{
  uint64_t last;

  cupti.cuptiActivityPopExternalCorrelationId (CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

void
td_cupti_flush (bool force)
{
  cupti.cuptiActivityFlushAll (force ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

bool
td_cupti_take (uint64_t id, uint64_t *start, uint64_t *end)
{
  Span *s = &spans[id % RING];
  bool found;

  pthread_mutex_lock (&lock);
  found = s->id == id;
  *start = s->start;
  *end = s->end;
  pthread_mutex_unlock (&lock);
  return found;
}

#else

bool
td_cupti_start (void)
{
  return false;
}

uint64_t
td_cupti_now (void)
{
  return 0;
}

void
td_cupti_push (uint64_t id)
{
  (void)id;
}

void
td_cupti_pop (void)
{
}

void
td_cupti_flush (bool force)
{
  (void)force;
}

bool
td_cupti_take (uint64_t id, uint64_t *start, uint64_t *end)
{
  (void)id, (void)start, (void)end;
  return false;
}

#define text "no CUPTI (this build has not seen its headers)"
#endif

const char *
td_cupti_text (void)
{
  const char *asked = getenv ("TAPEDECK_CUPTI");

  return asked != NULL && strcmp (asked, "1") == 0 ? text : "";
}
