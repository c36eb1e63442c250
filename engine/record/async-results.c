/* Asynchronous results of devices, statistics and times, and the memory that devices use.
 *
 * The recorder never waits for a device.  It polls for results at the end of an iteration and
 * every few events; they go into the ring as they arrive, with the iteration and the event that
 * they are about.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"

#include "agent/agent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  LOOK_EVERY = 64,    /* events */
  TIMED_AT_FIRST = 2, /* so many iterations are timed whatever it costs */
  BUDGET_PARTS = 100, /* afterwards 1/100 of the time may go into timing */
  MEMORY_EVERY_NS = 100000000
};

/* --- counting requests and results --- */

static TdAsyncCount *
count_of (TdRecorder *r, uint64_t iteration)
{
  return &r->async[iteration % TD_ASYNC_ITERATIONS];
}

static void
ask (TdRecorder *r, TdDevice *d)
{
  TdAsyncCount *c = count_of (r, r->now->iteration);

  if (c->iteration != r->now->iteration)
    *c = (TdAsyncCount){ .iteration = r->now->iteration };
  c->n++;
  r->async_devices |= (uint16_t)(1u << d->number);
}

static void
say_answered (TdRecorder *r, uint64_t iteration)
{
  TdRawAnswered *a = td_ring_reserve (r->ring, sizeof *a);

  a->head = (TdRawHead){ sizeof *a, TD_RAW_ANSWERED, 0 };
  a->iteration = iteration;
  td_ring_publish (r->ring, sizeof *a);
}

static void
answered (TdRecorder *r, uint64_t iteration)
{
  TdAsyncCount *c = count_of (r, iteration);

  if (c->iteration == iteration && c->n > 0 && --c->n == 0 && c->ended)
    say_answered (r, iteration);
}

bool
td__recorder_async_ends (TdRecorder *r)
{
  TdAsyncCount *c = count_of (r, r->now->iteration);

  if (c->iteration != r->now->iteration || c->n == 0)
    return false;
  c->ended = true;
  return true;
}

/* --- results --- */

static void
write_stats (TdRecorder *r, const TdAsyncResult *result)
{
  TdRawAsyncStats *s = td_ring_reserve (r->ring, sizeof *s);

  s->head = (TdRawHead){ sizeof *s, TD_RAW_ASYNC_STATS, 0 };
  s->iteration = result->of.iteration;
  s->variable = result->of.variable;
  td__recorder_fill_stats (&s->stats, &result->stats);
  s->stats.event = result->of.event;
  td_ring_publish (r->ring, sizeof *s);
}

static void
write_time (TdRecorder *r, const TdDevice *d, const TdAsyncResult *result)
{
  TdRawDeviceTime *t = td_ring_reserve (r->ring, sizeof *t);

  *t = (TdRawDeviceTime){ .head = { sizeof *t, TD_RAW_DEVICE_TIME, 0 },
                          .iteration = result->of.iteration,
                          .zero = result->zero,
                          .since_ns = result->since_ns,
                          .start_ns = result->start_ns,
                          .duration_ns = result->duration_ns,
                          .event = result->of.event,
                          .copy = result->of.copy,
                          .device = d->number,
                          .stream = result->stream,
                          .kind = result->exact ? TD_TAPE_DEVICE_TIME_EXACT
                                                : TD_TAPE_DEVICE_TIME_SAMPLED };
  td_ring_publish (r->ring, sizeof *t);
}

static void
look (TdRecorder *r, TdDevice *d, TdAsyncHow how)
{
  TdAsyncResult result[16];
  int n;

  do
    {
      n = d->ops->poll_async (d, how, result, TD_ARRAY_LENGTH (result));
      for (int i = 0; i < n; i++)
        {
          if (result[i].status == TD_OK && result[i].what == TD_ASYNC_STATS)
            write_stats (r, &result[i]);
          else if (result[i].status == TD_OK)
            write_time (r, d, &result[i]);
          answered (r, result[i].of.iteration);
        }
    }
  while (n == TD_ARRAY_LENGTH (result));
}

void
td__recorder_poll_async (TdRecorder *r, TdAsyncHow how)
{
  uint64_t begin = td_ring_ticks ();

  for (int i = 0; r->async_devices >> i != 0; i++)
    if (r->async_devices >> i & 1)
      look (r, td__device_at (i), how);
  if (r->async_devices != 0 && r->times.on)
    r->times.spent += td_ring_ticks () - begin;
}

void
td__recorder_poll_async_now_and_then (TdRecorder *r)
{
  if (r->event % LOOK_EVERY == 0)
    td__recorder_poll_async (r, TD_ASYNC_LOOK);
}

/* --- statistics --- */

/* An optimizer's hook has no output: it writes to the gradient that it is given. */
void
td__recorder_stats_wanted (const TdEvent *e, bool wanted)
{
  const TdNode *n = NULL;

  if (e->n_out > 0)
    n = e->out[0];
  else if (e->phase == TD_PHASE_UPDATE && e->n_in > 0 && (e->cls->writes & 1) != 0)
    n = e->in[0];
  if (n == NULL)
    return;
  if (wanted && e->n_out == 0)
    wanted = td__recorder_gradient_of (n) != NULL;
  n->device->stats_wanted = wanted && n->device->ops->stats_async != NULL;
}

bool
td__recorder_stats_async (TdRecorder *r, const TdNode *n, const TdTensor *x, uint64_t sample)
{
  TdDevice *d = n->device;
  TdAsyncOf of = { .iteration = r->now->iteration,
                   .variable = n->id,
                   .event = r->written > 0 ? (uint32_t)(r->written - 1) : TD_TAPE_NONE };

  if (d->ops->stats_async == NULL)
    return false;
  TdAsyncRefusal why = d->ops->stats_async (d, x, sample, n->id, &of);

  if (why == TD_ASYNC_TAKEN)
    ask (r, d);
  else if ((unsigned)why < TD_ASYNC_N_REFUSALS)
    r->n_left_out[why]++;
  return true;
}

/* Say on the tape how many statistics are missing, and why.  The error by which a device was
 * lost is there by itself. */
void
td__recorder_report_left_out (TdRecorder *r)
{
  static const char *const because[TD_ASYNC_N_REFUSALS] = {
    [TD_ASYNC_BEHIND] = "their device was too far behind",
    [TD_ASYNC_CAPTURED] = ("they were asked for while a graph was captured, before there were "
                           "numbers"),
    [TD_ASYNC_TOO_LARGE] = "they have more elements than the device looks at in one launch",
    [TD_ASYNC_NO_ROOM] = "the device had no memory for them",
    [TD_ASYNC_LOST] = "the device had failed",
  };
  char text[200];

  for (int why = TD_ASYNC_TAKEN + 1; why < TD_ASYNC_N_REFUSALS; why++)
    {
      const unsigned long n = (unsigned long)r->n_left_out[why];

      snprintf (text, sizeof text, "statistics of %lu array%s were left out: %s", n,
                n == 1 ? "" : "s", because[why]);
      if (n > 0)
        td__recorder_notice (r, text);
    }
}

/* --- times --- */

/* In each iteration, in every n-th, never, or as often as the budget allows. */
static bool
wants_times (const TdRecorder *r, uint64_t now)
{
  const TdDeviceTimes *t = &r->times;

  if (t->every > 0)
    return r->now->iteration % (uint64_t)t->every == 0;
  return t->every == 0
         && (t->n_timed < TIMED_AT_FIRST || t->spent * BUDGET_PARTS < now - t->began);
}

/* Whether any device can time; programs on the CPU alone skip all of this. */
static bool
has_clock (void)
{
  for (int i = 1; td__device_at (i) != NULL; i++)
    if (td__device_at (i)->ops->time_op != NULL)
      return true;
  return false;
}

void
td__recorder_times_setting (TdRecorder *r, const char *text)
{
  if (text == NULL || strcmp (text, "auto") == 0)
    r->times.every = 0;
  else if (strcmp (text, "off") == 0)
    r->times.every = -1;
  else
    r->times.every = strcmp (text, "all") == 0 ? 1 : (int)strtol (text, NULL, 10);
}

void
td__recorder_times_begin (TdRecorder *r)
{
  uint64_t now;

  r->times.on = false;
  if (!has_clock ())
    return;
  now = td_ring_ticks ();
  if (r->times.began == 0)
    r->times.began = now;
  r->times.on = wants_times (r, now);
  r->times.zeroed = 0;
}

/* The device that an event computes on; NULL: none, or one that cannot time.  What runs in a
 * graph has not been launched when the event ends: marks around it would have nothing between
 * them, and say that it took a microsecond. */
static TdDevice *
device_of (const TdEvent *e)
{
  TdDevice *d = e->n_out > 0 ? e->out[0]->device : e->n_in > 0 ? e->in[0]->device : NULL;

  return d != NULL && d->ops->time_op != NULL && !(e->cls->flags & TD_OP_VIEW) && e->id != 0
                 && !(e->flags & TD_EVENT_CAPTURED)
             ? d
             : NULL;
}

/* Set the mark that a device's times count from in this iteration, if it is not set yet. */
static bool
has_zero (TdRecorder *r, TdDevice *d, uint64_t now)
{
  if (r->times.zeroed >> d->number & 1)
    return true;
  if (!d->ops->time_zero (d, now))
    return false;
  r->times.n_timed += r->times.zeroed == 0;
  r->times.zeroed |= (uint16_t)(1u << d->number);
  return true;
}

void
td__recorder_time_before (TdRecorder *r, const TdEvent *e)
{
  TdDevice *d = device_of (e);
  uint64_t begin;

  r->times.device = NULL;
  if (d == NULL)
    return;
  begin = td_ring_ticks ();
  if (has_zero (r, d, begin) && d->ops->time_op (d, NULL))
    r->times.device = d;
  r->times.spent += td_ring_ticks () - begin;
}

void
td__recorder_time_after (TdRecorder *r)
{
  TdDevice *d = r->times.device;
  uint64_t begin = td_ring_ticks ();
  TdAsyncOf of = { .iteration = r->now->iteration, .event = (uint32_t)r->event };

  if (d == NULL)
    return;
  r->times.device = NULL;
  if (d->ops->time_op (d, &of))
    ask (r, d);
  r->times.spent += td_ring_ticks () - begin;
}

/* A copy within a timed event is part of the event's time. */
void
td__recorder_time_copy (TdRecorder *r, TdDevice *d)
{
  uint64_t begin;

  r->times.copies = NULL;
  if (!r->times.on || !r->in_iteration || r->times.device != NULL || d->ops->time_copy == NULL)
    return;
  begin = td_ring_ticks ();
  if (has_zero (r, d, begin) && d->ops->time_copy (d))
    r->times.copies = d;
  r->times.spent += td_ring_ticks () - begin;
}

void
td__recorder_time_copied (TdRecorder *r)
{
  TdDevice *d = r->times.copies;
  TdAsyncOf of = { .iteration = r->now->iteration, .event = TD_TAPE_NONE, .copy = r->n_copies };
  uint64_t begin;

  r->times.copies = NULL;
  if (d == NULL)
    return;
  begin = td_ring_ticks ();
  if (d->ops->time_op (d, &of))
    ask (r, d);
  r->times.spent += td_ring_ticks () - begin;
}

/* --- asynchronous errors --- */

bool
td__recorder_where (TdObserver *o, TdEventPlace *place)
{
  const TdRecorder *r = (const TdRecorder *)(const void *)o;

  *place = (TdEventPlace){ .iteration = r->now->iteration, .event = (uint32_t)r->event };
  return r->writes && r->in_iteration;
}

void
td__recorder_fault (TdObserver *o, const TdError *error, const TdAsyncFault *fault)
{
  TdRecorder *r = (TdRecorder *)(void *)o;

  if (r->writes)
    {
      const uint32_t text = td__recorder_string (r, error->message),
                     op = td__recorder_string (r, error->op),
                     operand = td__recorder_string (r, fault->operand),
                     site = td__recorder_site (r, error->site);
      TdRawFault *f = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *f));

      *f = (TdRawFault){ .head = { TD_RAW_PADDED (sizeof *f), TD_RAW_FAULT, 0 },
                         .ticks = td_ring_ticks (),
                         .status = error->status,
                         .fault = { .iteration = fault->at.iteration,
                                    .value = fault->value,
                                    .limit = fault->limit,
                                    .element = fault->element,
                                    .event = fault->at.event,
                                    .operand = operand,
                                    .text = text,
                                    .op = op,
                                    .site = site } };
      td_ring_publish (r->ring, f->head.size);
    }
  if (r->agent != NULL)
    r->agent->calls->error (r->agent, error, fault);
}

/* --- memory of devices --- */

static const uint8_t tape_pool[TD_MEM_N_POOLS] = {
  [TD_MEM_POOL_DEFAULT] = TD_TAPE_POOL_DEFAULT,
  [TD_MEM_POOL_WORKSPACE] = TD_TAPE_POOL_WORKSPACE,
  [TD_MEM_POOL_STATIC] = TD_TAPE_POOL_STATIC,
  [TD_MEM_POOL_GRAPH] = TD_TAPE_POOL_GRAPH,
  [TD_MEM_POOL_CAPTURE] = TD_TAPE_POOL_CAPTURE,
  [TD_MEM_POOL_UPLOAD] = TD_TAPE_POOL_UPLOAD,
};

static void
write_pool (TdRecorder *r, TdTapePool pool)
{
  TdRawPool *p = td_ring_reserve (r->ring, sizeof *p);

  *p = (TdRawPool){ .head = { sizeof *p, TD_RAW_POOL, 0 }, .pool = pool };
  td_ring_publish (r->ring, sizeof *p);
}

static void
write_pools (TdRecorder *r, const TdDevice *d, const TdMemInfo *info)
{
  for (int k = 0; k < TD_MEM_N_POOLS; k++)
    if (info->pool_reserved_bytes[k] != 0)
      write_pool (r, (TdTapePool){ .reserved_bytes = info->pool_reserved_bytes[k],
                                   .live_bytes = info->pool_bytes[k],
                                   .pending_bytes = info->pool_pending_bytes[k],
                                   .split_bytes = info->pool_split_bytes[k],
                                   .largest_free_bytes = info->pool_largest_free_bytes[k],
                                   .device = d->number,
                                   .kind = tape_pool[k] });
}

/* Write the host's memory, and how much of it devices have pinned. */
static void
write_host (TdRecorder *r)
{
  size_t pinned = 0;
  TdMemInfo info;

  td__mem_info (td__device_at (0), &info);
  write_pools (r, td__device_at (0), &info);
  for (int i = 1; td__device_at (i) != NULL; i++)
    if (td__device_at (i)->ops->pinned_bytes != NULL)
      pinned += td__device_at (i)->ops->pinned_bytes (td__device_at (i));
  if (pinned > 0)
    write_pool (r, (TdTapePool){ .reserved_bytes = pinned,
                                 .live_bytes = pinned,
                                 .kind = TD_TAPE_POOL_PINNED });
}

static void
write_device (TdRecorder *r, TdDevice *d)
{
  TdTapeDevice *known = &r->devices[d->number];
  uint64_t now = td_ring_ticks ();
  TdMemInfo info;

  td__mem_info (d, &info);
  if (known->name == 0)
    known->name = td__recorder_string (r, td__device_text (d));
  known->device = d->number;
  known->reserved_bytes = info.reserved_bytes;
  known->live_bytes = info.live_bytes;
  if (known->total_bytes == 0
      || (double)(now - r->devices_asked) * r->ring->shared->ns_per_tick > MEMORY_EVERY_NS)
    {
      const TdMemInfo asked = td__mem_info_whole (d); /* the driver */

      known->total_bytes = asked.device_bytes;
      known->outside_bytes = asked.outside_bytes;
    }

  TdRawDevice *raw = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *raw));
  raw->head = (TdRawHead){ TD_RAW_PADDED (sizeof *raw), TD_RAW_DEVICE, 0 };
  raw->device = *known;
  td_ring_publish (r->ring, raw->head.size);
  write_pools (r, d, &info);
}

void
td__recorder_devices (TdRecorder *r)
{
  bool any = false;

  write_host (r);
  for (int i = 1; td__device_at (i) != NULL; i++)
    if (td__device_at (i)->computes && i < TD_ARRAY_LENGTH (r->devices))
      {
        write_device (r, td__device_at (i));
        any = true;
      }
  if (any
      && (r->devices_asked == 0
          || (double)(td_ring_ticks () - r->devices_asked) * r->ring->shared->ns_per_tick
                 > MEMORY_EVERY_NS))
    r->devices_asked = td_ring_ticks ();
}
