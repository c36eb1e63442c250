/* What devices answer later: statistics, and when events ran on them; and how full they are.
 *
 * A device that computes by itself is asked, not waited for.  Its answers are looked for when
 * an iteration ends and every few events; they go into the ring as they come, with the
 * iteration and the event they are about.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"

#include "../agent/agent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  LOOK_EVERY = 64,    /* events */
  TIMED_AT_FIRST = 2, /* iterations whose times cost what they cost */
  BUDGET_PARTS = 100, /* else one part of the time in so many is for taking times */
  MEMORY_EVERY_NS = 100000000
};

/* --- counting what is asked and answered --- */

static TdLateCount *
count_of (TdRecorder *r, uint64_t iteration)
{
  return &r->late[iteration % TD_LATE_ITERATIONS];
}

static void
ask (TdRecorder *r, TdDevice *d)
{
  TdLateCount *c = count_of (r, r->now->iteration);

  if (c->iteration != r->now->iteration)
    *c = (TdLateCount){ .iteration = r->now->iteration };
  c->n++;
  r->late_devices |= (uint16_t)(1u << d->number);
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
  TdLateCount *c = count_of (r, iteration);

  if (c->iteration == iteration && c->n > 0 && --c->n == 0 && c->ended)
    say_answered (r, iteration);
}

bool
td__recorder_late_ends (TdRecorder *r)
{
  TdLateCount *c = count_of (r, r->now->iteration);

  if (c->iteration != r->now->iteration || c->n == 0)
    return false;
  c->ended = true;
  return true;
}

/* --- answers --- */

static void
write_stats (TdRecorder *r, const TdLate *late)
{
  TdRawLateStats *s = td_ring_reserve (r->ring, sizeof *s);

  s->head = (TdRawHead){ sizeof *s, TD_RAW_LATE_STATS, 0 };
  s->iteration = late->of.iteration;
  s->variable = late->of.variable;
  td__recorder_fill_stats (&s->stats, &late->stats);
  s->stats.event = late->of.event;
  td_ring_publish (r->ring, sizeof *s);
}

static void
write_time (TdRecorder *r, const TdDevice *d, const TdLate *late)
{
  TdRawDeviceTime *t = td_ring_reserve (r->ring, sizeof *t);

  *t = (TdRawDeviceTime){ .head = { sizeof *t, TD_RAW_DEVICE_TIME, 0 },
                          .iteration = late->of.iteration,
                          .zero = late->zero,
                          .since_ns = late->since_ns,
                          .start_ns = late->start_ns,
                          .duration_ns = late->duration_ns,
                          .event = late->of.event,
                          .copy = late->of.copy,
                          .device = d->number,
                          .stream = late->stream,
                          .kind = late->exact ? TD_TAPE_DEVICE_TIME_EXACT
                                              : TD_TAPE_DEVICE_TIME_SAMPLED };
  td_ring_publish (r->ring, sizeof *t);
}

static void
look (TdRecorder *r, TdDevice *d, TdLateHow how)
{
  TdLate late[16];
  int n;

  do
    {
      n = d->ops->late (d, how, late, TD_ARRAY_LENGTH (late));
      for (int i = 0; i < n; i++)
        {
          if (late[i].status == TD_OK && late[i].what == TD_LATE_STATS)
            write_stats (r, &late[i]);
          else if (late[i].status == TD_OK)
            write_time (r, d, &late[i]);
          answered (r, late[i].of.iteration);
        }
    }
  while (n == TD_ARRAY_LENGTH (late));
}

void
td__recorder_late (TdRecorder *r, TdLateHow how)
{
  uint64_t begin = td_ring_ticks ();

  for (int i = 0; r->late_devices >> i != 0; i++)
    if (r->late_devices >> i & 1)
      look (r, td__device_at (i), how);
  if (r->late_devices != 0 && r->times.on)
    r->times.spent += td_ring_ticks () - begin;
}

void
td__recorder_late_now_and_then (TdRecorder *r)
{
  if (r->event % LOOK_EVERY == 0)
    td__recorder_late (r, TD_LATE_LOOK);
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
  n->device->stats_wanted = wanted && n->device->ops->stats_later != NULL;
}

bool
td__recorder_stats_later (TdRecorder *r, const TdNode *n, const TdTensor *x, uint64_t sample)
{
  TdDevice *d = n->device;
  TdLateOf of = { .iteration = r->now->iteration,
                  .variable = n->id,
                  .event = r->written > 0 ? (uint32_t)(r->written - 1) : TD_TAPE_NONE };

  if (d->ops->stats_later == NULL)
    return false;
  TdLateRefusal why = d->ops->stats_later (d, x, sample, n->id, &of);

  if (why == TD_LATE_TAKEN)
    ask (r, d);
  else if ((unsigned)why < TD_LATE_N_REFUSALS)
    r->n_left_out[why]++;
  return true;
}

/* Statistics that are missing are said to be, and why; the error that lost a device is on the
 * tape itself. */
void
td__recorder_tell_left_out (TdRecorder *r)
{
  static const char *const because[TD_LATE_N_REFUSALS] = {
    [TD_LATE_BEHIND] = "their device was too far behind",
    [TD_LATE_CAPTURED] = ("they were asked for while a graph was captured, before there were "
                          "numbers"),
    [TD_LATE_TOO_LARGE] = "they have more elements than the device looks at in one launch",
    [TD_LATE_NO_ROOM] = "the device had no memory for them",
    [TD_LATE_LOST] = "the device had failed",
  };
  char text[200];

  for (int why = TD_LATE_TAKEN + 1; why < TD_LATE_N_REFUSALS; why++)
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

/* Programs on the host alone have nothing to pay. */
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

/* Where an event computes; NULL: nowhere, or on a device that cannot tell. */
static TdDevice *
device_of (const TdEvent *e)
{
  TdDevice *d = e->n_out > 0 ? e->out[0]->device : e->n_in > 0 ? e->in[0]->device : NULL;

  return d != NULL && d->ops->time_op != NULL && !(e->cls->flags & TD_OP_VIEW) && e->id != 0
             ? d
             : NULL;
}

/* The mark that a device's times count from in this iteration. */
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
  TdLateOf of = { .iteration = r->now->iteration, .event = (uint32_t)r->event };

  if (d == NULL)
    return;
  r->times.device = NULL;
  if (d->ops->time_op (d, &of))
    ask (r, d);
  r->times.spent += td_ring_ticks () - begin;
}

/* A copy within an event that is timed is part of that. */
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
  TdLateOf of = { .iteration = r->now->iteration, .event = TD_TAPE_NONE, .copy = r->n_copies };
  uint64_t begin;

  r->times.copies = NULL;
  if (d == NULL)
    return;
  begin = td_ring_ticks ();
  if (d->ops->time_op (d, &of))
    ask (r, d);
  r->times.spent += td_ring_ticks () - begin;
}

/* --- errors of events that were over --- */

bool
td__recorder_where (TdObserver *o, TdEventPlace *place)
{
  const TdRecorder *r = (const TdRecorder *)(const void *)o;

  *place = (TdEventPlace){ .iteration = r->now->iteration, .event = (uint32_t)r->event };
  return r->writes && r->in_iteration;
}

void
td__recorder_fault (TdObserver *o, const TdError *error, const TdLateFault *fault)
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
    td__agent_error (r->agent, error, fault);
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

/* The host's own, and what others have pinned of it. */
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
      const TdMemInfo asked = td_mem_info (d); /* the driver */

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
