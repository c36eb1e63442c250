/* Asynchronous results that arrive after the end of their iteration.  The iteration is kept
 * open for them, and the records that follow are queued until it is complete.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdlib.h>
#include <string.h>

#define MAX_QUEUE (64u << 20) /* bytes; then the iteration ends without the missing results */
#define LONG_AGO_NS 60e9      /* marks further apart than this are not compared: clocks drift */

static bool
is_about (const TdAssembler *a, const TdRawHead *head)
{
  switch (head->type)
    {
    case TD_RAW_ASYNC_STATS:
      return ((const TdRawAsyncStats *)head)->iteration == a->begin.number;
    case TD_RAW_DEVICE_TIME:
      return ((const TdRawDeviceTime *)head)->iteration == a->begin.number;
    case TD_RAW_ANSWERED:
      return ((const TdRawAnswered *)head)->iteration == a->begin.number;
    default:
      return false;
    }
}

bool
td__hold_keeps (TdAssembler *a, const TdRawHead *head)
{
  void *to;

  if (is_about (a, head))
    return false;
  while (a->waits && a->queue.n > MAX_QUEUE - head->size)
    td__hold_end (a, true);
  if (!a->waits)
    return false;
  to = td__list_add_n (&a->queue, 1, head->size);
  if (to != NULL)
    memcpy (to, head, head->size);
  else
    a->flags |= TD_TAPE_ITERATION_LOST;
  return true;
}

void
td__hold_end (TdAssembler *a, bool lost)
{
  TdList queue = a->queue;

  if (!a->waits)
    return;
  a->waits = false;
  a->queue = (TdList){ 0 };
  a->flags |= lost ? TD_TAPE_ITERATION_LOST : 0;
  td__finish_iteration (a, a->waits_since);
  a->fed -= queue.n; /* places in the ring are counted by bytes fed */
  td_assembler_feed (a, queue.items, queue.n);
  td__list_clear (&queue);
}

void
td__feed_async_stats (TdAssembler *a, const TdRawHead *head)
{
  const TdRawAsyncStats *raw = (const TdRawAsyncStats *)head;

  if (is_about (a, head))
    td__add_stats (a, raw->variable, raw->stats.event, &raw->stats);
}

void
td__feed_device_time (TdAssembler *a, const TdRawHead *head)
{
  TdRawDeviceTime *time = a->state.in_iteration && is_about (a, head)
                              ? td__list_add (&a->device_times, sizeof *time)
                              : NULL;

  if (time != NULL)
    *time = *(const TdRawDeviceTime *)head;
}

void
td__feed_answered (TdAssembler *a, const TdRawHead *head)
{
  if (is_about (a, head))
    td__hold_end (a, false);
}

void
td__feed_device (TdAssembler *a, const TdRawHead *head)
{
  TdTapeDevice *device
      = a->state.in_iteration ? td__list_add (&a->devices, sizeof *device) : NULL;

  if (device == NULL)
    return;
  *device = ((const TdRawDevice *)head)->device;
  device->name = td__alias (&a->strings, device->name).id;
}

void
td__feed_pool (TdAssembler *a, const TdRawHead *head)
{
  TdTapePool *pool = a->state.in_iteration ? td__list_add (&a->pools, sizeof *pool) : NULL;

  if (pool != NULL)
    *pool = ((const TdRawPool *)head)->pool;
}

/* An asynchronous error.  Its notice names the event that failed, and belongs to that event's
 * iteration if it is still open. */
void
td__feed_fault (TdAssembler *a, const TdRawHead *head)
{
  const TdRawFault *raw = (const TdRawFault *)head;
  TdTapeFault fault = raw->fault;
  TdTapeNotice notice, *own = NULL;

  fault.found_iteration = a->state.iteration;
  fault.found_event = a->state.n_events;
  fault.time_ns = td__assembler_ns (a, raw->ticks);
  fault.operand = td__alias (&a->strings, fault.operand).id;
  fault.text = td__alias (&a->strings, fault.text).id;
  fault.op = td__alias (&a->strings, fault.op).id;
  fault.site = td__alias (&a->sites, fault.site).id;
  notice = (TdTapeNotice){ .iteration = fault.iteration,
                           .time_ns = fault.time_ns,
                           .event = fault.event,
                           .kind = TD_TAPE_NOTICE_ERROR,
                           .status = raw->status,
                           .text = fault.text,
                           .op = fault.op,
                           .site = fault.site };
  if (a->state.in_iteration && fault.iteration == a->begin.number)
    {
      own = td__list_add (&a->notices, sizeof *own);
      a->flags |= TD_TAPE_ITERATION_ERROR;
    }
  if (own != NULL)
    *own = notice;
  td_tape_writer_notice (a->w, &notice);
  td_tape_writer_fault (a->w, &fault);
}

/* ------------------------------------------------------------- clocks of devices */

static int
by_event (const void *a, const void *b)
{
  const TdTapeDeviceTime *x = a, *y = b;

  return x->event != y->event ? (x->event < y->event ? -1 : 1) : x->device - y->device;
}

/* When the host launched the event or copy that a time is about, in ns after the iteration's
 * start.  False: it is about nothing in this iteration. */
static bool
issued_at (const TdAssembler *a, const TdTapeIteration *it, const TdRawDeviceTime *t,
           double *ns)
{
  const TdRawCopy *copies = a->copies.items;
  uint64_t start, duration;

  if (t->copy == 0 && t->event < it->n_events)
    {
      if (it->packed != NULL)
        td_tape_packed_time (it->packed, t->event, &start, &duration);
      else
        start = it->event_start_ns[t->event];
      *ns = (double)start;
    }
  else if (t->copy != 0 && t->copy <= a->copies.n && copies[t->copy - 1].start != 0)
    *ns = ((double)copies[t->copy - 1].start - (double)a->begin.ticks) * a->ns_per_tick;
  else
    return false;
  return true;
}

/* When the device passed its mark, in ns after the iteration's start.  The clocks of host and
 * device are not synchronized, so this is an estimate, the earliest time such that: the mark is
 * not before its own launch, no operation starts before its launch, and the distance from the
 * mark before is at least what the device has measured. */
static double
zero_of (const TdAssembler *a, const TdTapeIteration *it, unsigned device)
{
  const TdRawDeviceTime *all = a->device_times.items;
  const TdDeviceZero *before = &a->zeros[device];
  double zero = 0, issued;
  bool first = true;

  for (uint32_t i = 0; i < a->device_times.n; i++)
    if (all[i].device == device && issued_at (a, it, &all[i], &issued))
      {
        issued -= all[i].start_ns;
        if (first)
          zero = ((double)all[i].zero - (double)a->begin.ticks) * a->ns_per_tick;
        if (first && before->iteration != 0 && all[i].since_ns >= 0
            && all[i].since_ns < LONG_AGO_NS
            && before->ns + all[i].since_ns - (double)it->start_ns > zero)
          zero = before->ns + all[i].since_ns - (double)it->start_ns;
        zero = issued > zero ? issued : zero;
        first = false;
      }
  return zero;
}

/* Set the device time of a copy. */
static void
set_copy (TdTapeCopy *copy, const TdTapeDeviceTime *time)
{
  copy->device_start_ns = time->start_ns;
  copy->device_duration_ns = time->duration_ns;
  copy->device_kind = time->kind;
  copy->device_stream = time->stream;
}

void
td__resolve_devices (TdAssembler *a, TdTapeIteration *it, TdList *times, TdList *copies,
                     bool commit)
{
  const TdRawDeviceTime *all = a->device_times.items;
  double zeros[MAX_TAPE_DEVICES];
  bool known[MAX_TAPE_DEVICES] = { false };

  it->devices = a->devices.items;
  it->n_devices = a->devices.n;
  it->pools = a->pools.items;
  it->n_pools = a->pools.n;
  for (uint32_t i = 0; i < a->device_times.n; i++)
    {
      unsigned d = all[i].device;
      TdTapeDeviceTime time, *to;
      double start;

      if (!issued_at (a, it, &all[i], &start) || !(all[i].duration_ns >= 0)
          || !(all[i].duration_ns < 1e18) || !(all[i].start_ns < 1e18))
        continue;
      if (!known[d])
        zeros[d] = zero_of (a, it, d);
      known[d] = true;
      start = zeros[d] + all[i].start_ns;
      time = (TdTapeDeviceTime){ .start_ns = start > 0 && start < 1e18 ? (uint64_t)start : 0,
                                 .duration_ns = (uint64_t)all[i].duration_ns,
                                 .event = all[i].event,
                                 .device = all[i].device,
                                 .stream = all[i].stream,
                                 .kind = all[i].kind };
      if (all[i].copy != 0 && all[i].copy <= copies->n)
        set_copy ((TdTapeCopy *)copies->items + all[i].copy - 1, &time);
      else if (all[i].copy == 0 && (to = td__list_add (times, sizeof *to)) != NULL)
        *to = time;
    }
  if (times->n > 1)
    qsort (times->items, times->n, sizeof (TdTapeDeviceTime), by_event);
  it->device_times = times->items;
  it->n_device_times = times->n;
  for (unsigned d = 0; commit && d < MAX_TAPE_DEVICES; d++)
    if (known[d])
      a->zeros[d] = (TdDeviceZero){ .ns = zeros[d] + (double)it->start_ns,
                                    .iteration = it->number + 1 };
}
