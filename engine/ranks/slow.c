/* A link as slow as a test wants it: what is summed arrives no sooner than a network of this
 * latency and bandwidth would bring it.  One sum follows the other there, as through one cable,
 * and nobody's processor is used for it.
 *
 * TAPEDECK_TEST_LINK="MICROSECONDS:MEGABYTES_PER_SECOND".
 *
 * SPDX-License-Identifier: MIT */
#include "transport.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const size_t bytes_of[TD_WIRE_N]
    = { [TD_WIRE_F32] = 4, [TD_WIRE_F64] = 8, [TD_WIRE_I32] = 4, [TD_WIRE_I64] = 8,
        [TD_WIRE_U8] = 1,  [TD_WIRE_F16] = 2, [TD_WIRE_BF16] = 2 };

static struct
{
  const TdTransport *inner;
  TdTransport table;
  double latency_ns, ns_per_byte;
  int64_t free_at; /* ns: what was begun before has arrived then */
} slow;

struct TdWireSum
{
  TdWireSum *inner;
  int64_t due;
};

static int64_t
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t
due_after (size_t bytes)
{
  const int64_t begin = now () > slow.free_at ? now () : slow.free_at;

  slow.free_at = begin + (int64_t)(slow.latency_ns + slow.ns_per_byte * (double)bytes);
  return slow.free_at;
}

static void
sleep_until (int64_t due)
{
  const struct timespec t = { due / 1000000000, due % 1000000000 };

  while (now () < due)
    clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static bool
slow_sum (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why)
{
  const int64_t due = due_after ((size_t)n * bytes_of[kind]);
  const bool ok = slow.inner->sum (wire, data, n, kind, why);

  sleep_until (due);
  return ok;
}

static TdWireSum *
slow_sum_begin (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why)
{
  TdWireSum *inner = slow.inner->sum_begin (wire, data, n, kind, why), *s;

  if (inner == NULL)
    return NULL;
  s = td__xcalloc (1, sizeof *s);
  s->inner = inner;
  s->due = due_after ((size_t)n * bytes_of[kind]);
  return s;
}

static bool
slow_sum_test (TdWireSum *s)
{
  return slow.inner->sum_test (s->inner) && now () >= s->due;
}

static bool
slow_sum_end (TdWireSum *s, char *why)
{
  const bool ok = slow.inner->sum_end (s->inner, why);

  sleep_until (s->due);
  free (s);
  return ok;
}

static void
slow_sum_drop (TdWireSum *s, void *data)
{
  slow.inner->sum_drop (s->inner, data);
  free (s);
}

const TdTransport *
td__transport_slow (const TdTransport *transport)
{
  const char *text = getenv ("TAPEDECK_TEST_LINK");
  double us, mb;

  if (transport == NULL || text == NULL || sscanf (text, "%lf:%lf", &us, &mb) != 2 || us < 0
      || !(mb > 0))
    return transport;
  slow.inner = transport;
  slow.latency_ns = us * 1e3;
  slow.ns_per_byte = 1e3 / mb;
  slow.table = *transport;
  slow.table.sum = slow_sum;
  slow.table.sum_begin = slow_sum_begin;
  slow.table.sum_test = slow_sum_test;
  slow.table.sum_end = slow_sum_end;
  slow.table.sum_drop = slow_sum_drop;
  return &slow.table;
}
