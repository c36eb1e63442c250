/* Static functions on their way into the ring: schedules in parts, events, and once an
 * iteration where each of them stands.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"
#include "agent/agent.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

static TdTapeStatic *
state_of (TdRecorder *r, uint32_t function)
{
  if (function == 0 || function > 1u << 20)
    return NULL;
  if (function > r->n_functions)
    {
      TdTapeStatic *more = td__xrealloc (r->functions, function * sizeof *more);

      memset (more + r->n_functions, 0, (function - r->n_functions) * sizeof *more);
      r->functions = more;
      r->n_functions = function;
    }
  return &r->functions[function - 1];
}

static void
put_function (TdRecorder *r, const TdStaticEvent *report)
{
  uint32_t name = td__recorder_string (r, report->name),
           site = td__recorder_site (r, report->made);
  TdRawFunction *c = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *c));

  c->head = (TdRawHead){ TD_RAW_PADDED (sizeof *c), TD_RAW_STATIC_FUNCTION, 0 };
  c->function = (TdTapeChain){ .id = report->function, .name = name, .site = site };
  td_ring_publish (r->ring, c->head.size);
}

/* Of what goes to the tape, as the tape calls it; the rest is counted only. */
static const uint8_t on_tape[TD_N_STATIC_EVENTS] = {
  [TD_STATIC_EVENT_TRACED] = TD_TAPE_STATIC_TRACED + 1,
  [TD_STATIC_EVENT_REFUSED] = TD_TAPE_STATIC_REFUSED + 1,
  [TD_STATIC_EVENT_SCHEDULED] = TD_TAPE_STATIC_SCHEDULED + 1,
  [TD_STATIC_EVENT_MISSED] = TD_TAPE_STATIC_MISSED + 1,
  [TD_STATIC_EVENT_EVICTED] = TD_TAPE_STATIC_EVICTED + 1,
  [TD_STATIC_EVENT_VERIFIED] = TD_TAPE_STATIC_VERIFIED + 1,
  [TD_STATIC_EVENT_CAPTURED] = TD_TAPE_STATIC_CAPTURED + 1,
  [TD_STATIC_EVENT_DIFFERS] = TD_TAPE_STATIC_DIFFERS + 1,
  [TD_STATIC_EVENT_PROVED] = TD_TAPE_STATIC_PROVED + 1,
  [TD_STATIC_EVENT_ASIDE] = TD_TAPE_STATIC_ASIDE + 1,
};

static void
put_event (TdRecorder *r, const TdStaticEvent *report)
{
  TdTapeStaticEvent event = { .chain = report->function,
                              .schedule = report->schedule,
                              .what = on_tape[report->what] - 1u,
                              .guard = td__recorder_string (r, report->guard),
                              .text = td__recorder_string (r, report->text),
                              .site = td__recorder_site (r, report->site),
                              .other_site = td__recorder_site (r, report->other_site) };
  TdRawStaticEvent *e = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *e));

  e->head = (TdRawHead){ TD_RAW_PADDED (sizeof *e), TD_RAW_STATIC_EVENT, 0 };
  e->ticks = td_ring_ticks ();
  e->event = event;
  td_ring_publish (r->ring, e->head.size);
}

/* Counts calls.  A replay that no verification covered is unverified from there on. */
static void
count (TdRecorder *r, TdTapeStatic *s, const TdStaticEvent *report)
{
  uint64_t iteration = r->now->iteration + 1;

  s->chain = report->function;
  s->state = report->state;
  switch (report->what)
    {
    case TD_STATIC_EVENT_REPLAYED:
      s->schedule = report->schedule;
      s->n_replays++;
      s->all_replays++;
      if (s->unverified_since == 0)
        s->unverified_since = iteration;
      break;
    case TD_STATIC_EVENT_CODE:
      s->n_dynamic++;
      s->all_dynamic++;
      break;
    case TD_STATIC_EVENT_VERIFIED:
      s->verified_at = iteration;
      s->unverified_since = 0;
      break;
    case TD_STATIC_EVENT_SCHEDULED:
      s->schedule = report->schedule;
      break;
    case TD_STATIC_EVENT_DIFFERS:
    case TD_STATIC_EVENT_EVICTED:
      if (s->schedule == report->schedule)
        s->schedule = 0;
      break;
    case TD_STATIC_EVENT_FREED:
      s->chain = 0;
      break;
    default:
      break;
    }
}

static void
put_state (TdRecorder *r, const TdTapeStatic *s)
{
  TdRawStatic *raw = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *raw));

  raw->head = (TdRawHead){ TD_RAW_PADDED (sizeof *raw), TD_RAW_STATIC, 0 };
  raw->state = *s;
  td_ring_publish (r->ring, raw->head.size);
}

/* Counts are said when the iteration ends; this at once. */
static bool
stands_elsewhere (const TdTapeStatic *now, const TdTapeStatic *before)
{
  return now->state != before->state || now->schedule != before->schedule
         || now->verified_at != before->verified_at
         || now->unverified_since != before->unverified_since;
}

static void
write_event (TdRecorder *r, const TdStaticEvent *report)
{
  TdTapeStatic *s, before;

  if (!r->writes || (s = state_of (r, report->function)) == NULL)
    return;
  if (report->what == TD_STATIC_EVENT_MADE)
    put_function (r, report);
  before = *s;
  count (r, s, report);
  if (on_tape[report->what] != 0)
    put_event (r, report);
  if (r->in_iteration && s->chain != 0 && stands_elsewhere (s, &before))
    put_state (r, s);
}

void
td__recorder_static_event (TdObserver *o, const TdStaticEvent *report)
{
  TdRecorder *r = (TdRecorder *)(void *)o;

  write_event (r, report);
  if (r->agent != NULL && report->what == TD_STATIC_EVENT_MISSED)
    r->agent->calls->guard (r->agent, report);
}

void
td__recorder_static_run (TdObserver *o, const TdStaticRun *run)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  TdRawStaticRun *raw;

  if (r->agent != NULL)
    r->agent->calls->run (r->agent, run);
  if (!r->writes)
    return;
  if (run->kind == TD_RUN_CALL)
    {
      r->call_ticks = td_ring_ticks ();
      return;
    }
  td__recorder_ensure_iteration (r);
  raw = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *raw));
  raw->head = (TdRawHead){ TD_RAW_PADDED (sizeof *raw), TD_RAW_STATIC_RUN, run->moment };
  raw->ticks
      = run->moment == TD_RUN_BEGINS && r->call_ticks != 0 ? r->call_ticks : td_ring_ticks ();
  raw->run = (TdTapeRun){
    .chain = run->function, .schedule = run->schedule, .list = run->list, .kind = run->kind
  };
  r->call_ticks = 0;
  td_ring_publish (r->ring, raw->head.size);
}

void
td__recorder_static_entry (TdObserver *o, const TdStaticEntry *e)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  TdTapeTraced entry = { .chain = e->function,
                         .list = e->list,
                         .number = e->number,
                         .kind = e->kind,
                         .phase = e->phase };
  TdRawStaticEntry *raw;

  if (!r->writes)
    return;
  td__recorder_ensure_iteration (r);
  entry.opdef = e->cls != NULL ? td__recorder_class (r, e->cls) : 0;
  entry.site = td__recorder_site (r, e->site);
  entry.path = td__recorder_path (r, e->path);
  entry.text = td__recorder_string (r, e->text);
  raw = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *raw));
  raw->head = (TdRawHead){ TD_RAW_PADDED (sizeof *raw), TD_RAW_STATIC_ENTRY, 0 };
  raw->entry = entry;
  td_ring_publish (r->ring, raw->head.size);
}

void
td__recorder_functions (TdRecorder *r)
{
  for (uint32_t i = 0; i < r->n_functions; i++)
    {
      TdTapeStatic *s = &r->functions[i];

      if (s->chain == 0)
        continue;
      put_state (r, s);
      s->n_replays = s->n_dynamic = 0;
    }
}

/* --- schedules --- */

typedef struct
{
  char *bytes;
  size_t n, room;
} Blob;

/* n items of a size at the end, zeroed, padded to 8 bytes. */
static void *
add (Blob *b, size_t n, size_t size)
{
  size_t bytes = (n * size + 7) & ~(size_t)7, at = b->n;

  if (b->n + bytes > b->room)
    {
      b->room = 2 * b->room + bytes + 4096;
      b->bytes = td__xrealloc (b->bytes, b->room);
    }
  memset (b->bytes + at, 0, bytes);
  b->n += bytes;
  return b->bytes + at;
}

static void
put_head (TdRecorder *r, Blob *b, const TdScheduleInfo *d)
{
  uint32_t n_dims = 0;
  TdRawScheduleHead *h = add (b, 1, sizeof *h);

  for (uint32_t i = 0; i < d->n_nodes; i++)
    n_dims += (uint32_t)d->nodes[i].shape->ndim;
  *h = (TdRawScheduleHead){ .head = { .id = d->schedule,
                                      .chain = d->function,
                                      .key = td__recorder_string (r, d->key),
                                      .n_backwards = d->n_backwards,
                                      .arena_bytes = d->arena_bytes,
                                      .lower_bound = d->lower_bound,
                                      .n_arguments = d->n_arguments,
                                      .n_externals = d->n_externals,
                                      .n_outputs = d->n_outputs,
                                      .n_pruned = d->n_pruned,
                                      .n_folded = d->n_folded,
                                      .n_merged = d->n_merged,
                                      .n_fused = d->n_fused,
                                      .n_in_place = d->n_in_place },
                            .n_steps = d->n_steps,
                            .n_operands = d->n_operands,
                            .n_nodes = d->n_nodes,
                            .n_dims = n_dims,
                            .n_values = d->n_values,
                            .n_guards = d->n_guards };
}

static void
put_steps (TdRecorder *r, Blob *b, const TdScheduleInfo *d)
{
  TdTapeStep *steps = add (b, d->n_steps, sizeof *steps);

  for (uint32_t i = 0; i < d->n_steps; i++)
    {
      const TdScheduleStep *s = &d->steps[i];

      steps[i] = (TdTapeStep){ .kind = s->kind,
                               .phase = s->phase,
                               .fate = s->fate,
                               .flags = s->flags,
                               .list = s->list,
                               .opdef = s->cls != NULL ? td__recorder_class (r, s->cls) : 0,
                               .site = td__recorder_site (r, s->site),
                               .path = td__recorder_path (r, s->path),
                               .attrs = s->cls != NULL && s->attrs != NULL
                                            ? td__recorder_attrs (r, s->cls, s->attrs, NULL)
                                            : 0,
                               .text = td__recorder_string (r, s->text),
                               .first_in = s->in,
                               .n_in = s->n_in,
                               .first_out = s->out,
                               .n_out = s->n_out,
                               .event = s->event,
                               .twin = s->twin,
                               .group = s->group,
                               .why = *s->why ? td__recorder_string (r, s->why) : 0 };
    }
}

static void
put_nodes (TdRecorder *r, Blob *b, const TdScheduleInfo *d)
{
  TdTapeNode *nodes = add (b, d->n_nodes, sizeof *nodes);
  uint32_t dim = 0, n_dims;
  int64_t *dims;

  for (uint32_t i = 0; i < d->n_nodes; i++)
    {
      const TdScheduleNode *n = &d->nodes[i];

      nodes[i] = (TdTapeNode){ .value = n->value,
                               .name = td__recorder_string (r, n->name),
                               .first_dim = dim,
                               .dtype = n->dtype,
                               .ndim = (uint8_t)n->shape->ndim,
                               .category = td__tape_category[n->category],
                               .flags = n->requires_grad ? TD_TAPE_VAR_REQUIRES_GRAD : 0 };
      dim += (uint32_t)n->shape->ndim;
    }
  n_dims = dim;
  dims = add (b, n_dims, sizeof *dims); /* nodes may have moved: not used any more */
  for (uint32_t i = 0; i < d->n_nodes; i++)
    for (int k = 0; k < d->nodes[i].shape->ndim; k++)
      *dims++ = d->nodes[i].shape->dim[k];
}

static void
put_values (Blob *b, const TdScheduleInfo *d)
{
  TdTapeValue *values = add (b, d->n_values, sizeof *values);

  for (uint32_t i = 0; i < d->n_values; i++)
    {
      const TdScheduleValue *v = &d->values[i];

      values[i] = (TdTapeValue){
        .bytes = v->bytes,
        .offset = v->offset == SIZE_MAX ? TD_TAPE_NO_OFFSET : v->offset,
        .index = v->index,
        .kind = v->kind,
        .flags = v->flags,
        .n_writers = v->n_writers < UINT16_MAX ? (uint16_t)v->n_writers : UINT16_MAX,
      };
    }
}

static void
put_guards (TdRecorder *r, Blob *b, const TdScheduleInfo *d)
{
  TdTapeGuard *guards = add (b, d->n_guards, sizeof *guards);

  for (uint32_t i = 0; i < d->n_guards; i++)
    guards[i] = (TdTapeGuard){ .guard = td__recorder_string (r, d->guards[i].guard),
                               .text = td__recorder_string (r, d->guards[i].text),
                               .site = td__recorder_site (r, d->guards[i].site) };
}

static void
put_parts (TdRecorder *r, uint32_t schedule, const Blob *b)
{
  uint32_t most = TD_RING_MAX_RECORD (r->ring) / 2;

  for (size_t at = 0; at < b->n;)
    {
      uint32_t length = b->n - at < most ? (uint32_t)(b->n - at) : most;
      uint32_t bytes = TD_RAW_PADDED (sizeof (TdRawSchedule) + length);
      TdRawSchedule *part = td_ring_reserve (r->ring, bytes);

      part->head = (TdRawHead){ bytes, TD_RAW_SCHEDULE, 0 };
      part->schedule = schedule;
      part->length = length;
      part->total = b->n;
      part->offset = at;
      memcpy (part->bytes, b->bytes + at, length);
      td_ring_publish (r->ring, bytes);
      at += length;
    }
}

void
td__recorder_schedule (TdObserver *o, const TdScheduleInfo *schedule)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  Blob b = { NULL, 0, 0 };
  uint32_t *operands;

  if (!r->writes)
    return;
  put_head (r, &b, schedule);
  put_steps (r, &b, schedule);
  operands = add (&b, schedule->n_operands, sizeof *operands);
  if (schedule->n_operands > 0)
    memcpy (operands, schedule->operands, schedule->n_operands * sizeof *operands);
  put_nodes (r, &b, schedule);
  put_values (&b, schedule);
  put_guards (r, &b, schedule);
  put_parts (r, schedule->schedule, &b);
  free (b.bytes);
}
