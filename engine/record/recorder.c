/* The recorder's observer: one raw record per event.  See recorder.h.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"
#include "host-memory.h"

#include "agent/agent.h"
#include "holdings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TdRecorder *td__recorder;

static inline TdRecorder *
self (TdObserver *o)
{
  return (TdRecorder *)(void *)o;
}

static void
begin_iteration (TdRecorder *r, int64_t number, uint32_t label, const TdSite *site,
                 bool outside)
{
  uint32_t site_id = td__recorder_site (r, site);
  const bool is_keyframe = td__keyframe_begin (r, outside);
  TD_RECORD (r, TdRawIterationBegin, b, TD_RAW_ITERATION_BEGIN);

  b->head.flags = (outside ? TD_RAW_OUTSIDE : 0) | (is_keyframe ? TD_RAW_KEYFRAME : 0);
  b->number = (uint64_t)number;
  b->first_id = td__engine.next_node_id + 1;
  b->first_buffer = td__engine.next_buffer_id + 1;
  b->ticks = td_ring_ticks ();
  b->label = label;
  b->site = site_id;
  td__holdings_begin (r->holdings, (uint64_t)number, b->first_id);
  TD_PUBLISH (r, b);
  r->now->iteration = (uint64_t)number;
  r->event = r->written = 0;
  td__event_ids_begin (&r->ids, td__engine.next_id + 1);
  r->in_iteration = true;
  r->outside = outside;
  td__recorder_times_begin (r);
  td__recorder_early_copies (r);
  td__recorder_early_waits (r);
}

/* Labels are counters nearly always: a text for each would never end. */
static uint32_t
label_of (TdRecorder *r, int64_t label)
{
  char text[32];

  if (label >= 0 && label < (int64_t)TD_TAPE_LABEL_NUMBER)
    return TD_TAPE_LABEL_NUMBER | (uint32_t)label;
  snprintf (text, sizeof text, "%ld", (long)label);
  return td__recorder_string (r, text);
}

/* finishing: the program's variables are gone already. */
static void
end_iteration (TdRecorder *r, bool finishing)
{
  if (!r->in_iteration)
    return;
  td__recorder_flush_memory (r);
  td__recorder_functions (r);
  if (!finishing)
    td__holdings_mark (r->holdings, r, r->event);
  td__recorder_devices (r);
  if (r->async_devices != 0)
    td__recorder_poll_async (r, TD_ASYNC_SEND);
  TD_RECORD (r, TdRawIterationEnd, e, TD_RAW_ITERATION_END);
  e->head.flags = td__recorder_async_ends (r) ? TD_RAW_ANSWERS_TO_COME : 0;
  e->ticks = td_ring_ticks ();
  TD_PUBLISH (r, e);
  r->in_iteration = false;
}

/* Work outside TD_ITERATION is an iteration of its own, from its first operation on. */
static inline void
ensure_iteration (TdRecorder *r)
{
  if (TD_LIKELY (r->in_iteration))
    return;
  if (td__engine.iteration_limit > 0) /* of the program's own iterations, recorded or not */
    td__engine.iteration_limit++;
  begin_iteration (r, td__engine.n_iterations++, 0, NULL, true);
}

void
td__recorder_ensure_iteration (TdRecorder *r)
{
  ensure_iteration (r);
}

/* Records are written in whole words: a byte's store costs as much as a word's. */
_Static_assert(TD_RAW_ORDER_APART == TD_ORDER_APART, "they are the same bit");
_Static_assert(offsetof (TdRawOp, opdef) == 24 && offsetof (TdRawOp, path) == 32
                   && offsetof (TdRawOp, twin_back) == 40 && offsetof (TdRawOp, order) == 44
                   && offsetof (TdRawOp, phase) == 46 && offsetof (TdRawOp, n_in) == 48
                   && offsetof (TdRawOp, n_out) == 50 && offsetof (TdRawOp, retained_in) == 52,
               "write_op writes words");
_Static_assert(offsetof (TdRawOutput, dtype) == 8 && offsetof (TdRawOutput, ndim) == 9
                   && offsetof (TdRawOutput, category) == 10
                   && offsetof (TdRawOutput, flags) == 11
                   && offsetof (TdRawOutput, device) == 12,
               "put_output writes words");

static inline uint64_t *
put_output (uint64_t *to, const TdNode *n, const TdBuffer *b, unsigned flags)
{
  int ndim = n->shape.ndim;

  to[0] = n->id;
  to[1] = n->dtype | (unsigned)ndim << 8
          | (unsigned)td__tape_category[b != NULL ? b->category : n->category] << 16
          | (flags | (n->layout != TD_ROW_MAJOR ? TD_TAPE_VAR_CHANNELS_LAST : 0u)) << 24
          | (uint64_t)n->device->number << 32;
  to += 2;
  for (int d = 0; d < ndim; d++)
    *to++ = (uint64_t)n->shape.dim[d];
  return to;
}

/* A variable made outside operations is described when it is first used. */
static void
write_leaf (TdRecorder *r, TdNode *n)
{
  uint32_t name = td__recorder_string (r, n->name);
  uint32_t path = td__recorder_path (r, n->path);
  uint32_t site = td__recorder_site (r, n->var != NULL ? n->var->site : NULL);
  uint32_t bytes = TD_RAW_PADDED (sizeof (TdRawLeaf) + 8 * (uint32_t)n->shape.ndim);
  const TdBuffer *b = n->var != NULL ? n->var->buffer : n->retained;
  TdRawLeaf *leaf = td_ring_reserve (r->ring, bytes);

  leaf->head = (TdRawHead){ bytes, TD_RAW_LEAF, 0 };
  leaf->name = name;
  leaf->path = path;
  leaf->site = site;
  leaf->reserved = 0;
  put_output (&leaf->var.variable, n, b,
              (n->requires_grad ? TD_TAPE_VAR_REQUIRES_GRAD : 0u)
                  | (n->category == TD_MEM_PARAMETER ? TD_TAPE_VAR_PARAMETER : 0u));
  td_ring_publish (r->ring, bytes);
  n->is_leaf_known = true;
  if (b != NULL)
    td__recorder_match_memory (r, b, n->id);
}

/* One look for the three of them. */
static inline const TdKnownPlace *
place_of (TdRecorder *r, const TdEvent *e)
{
  uint32_t path = e->path != NULL ? e->path->id : 0;
  uintptr_t h = ((uintptr_t)e->cls >> 5) ^ ((uintptr_t)e->site >> 4) ^ (uintptr_t)path * 31;
  TdKnownPlace *k = &r->known[(h ^ h >> 8) % TD_N_KNOWN_PLACES];

  if (TD_UNLIKELY (k->cls != e->cls || k->site != e->site || k->path != path))
    *k = (TdKnownPlace){ .cls = e->cls,
                         .site = e->site,
                         .path = td__recorder_path (r, e->path),
                         .opdef_id = td__recorder_class (r, e->cls),
                         .site_id = td__recorder_site (r, e->site) };
  return k;
}

/* Within one td_backward nothing of the program runs between two events: the second starts
 * where the first ended, and one stamp does for both (15 ns of 60). */
static inline bool
is_backward (const TdEvent *e)
{
  return e->phase == TD_PHASE_BACKWARD || e->phase == TD_PHASE_ACCUMULATE;
}

static inline bool
wants_gradients (const TdRecorder *r, const TdEvent *e)
{
  return TD_UNLIKELY (e->phase == TD_PHASE_UPDATE) && r->level >= TD_TAPE_LEVEL_STATS;
}

static inline bool
wants_values (const TdRecorder *r, const TdEvent *e)
{
  return r->level >= TD_TAPE_LEVEL_STATS && !(e->order & TD_ORDER_APART); /* the same numbers */
}

static void
before_op (TdObserver *o, const TdEvent *e)
{
  TdRecorder *r = self (o);
  TdRingNow *now = r->now;

  if (TD_UNLIKELY (r->n_events % TD_COST_EVERY == 0))
    r->cost.sample = td__recorder_measures (r);
  if (TD_LIKELY (r->writes))
    {
      ensure_iteration (r);
      for (int i = 0; i < e->n_in; i++)
        if (TD_UNLIKELY (!e->in[i]->is_leaf_known))
          {
            write_leaf (r, e->in[i]);
            if (wants_gradients (r, e))
              td__recorder_gradient (r, e->in[i]);
          }
      if (wants_values (r, e))
        td__recorder_inputs (r, e);
      if (TD_UNLIKELY (r->keyframes.on))
        td__keyframe_before (r, e);
      const TdKnownPlace *place = r->place = place_of (r, e);
      now->opdef = place->opdef_id;
      now->site = place->site_id;
      now->path = place->path;
      now->phase = e->phase;
      now->event = r->event;
      if (wants_values (r, e))
        td__recorder_stats_wanted (e, true);
    }
  if (TD_UNLIKELY (r->agent != NULL) && td__agent_begins (r->agent, r->n_events))
    {
      r->agent->calls->before (r->agent, e);
      r->chained = r->cost.sample = 0; /* it may have stood */
    }
  now->running = 1;
  if (TD_UNLIKELY (r->times.on) && r->writes)
    td__recorder_time_before (r, e);
  r->start = r->chained != 0 && is_backward (e) ? r->chained : td_ring_ticks ();
  if (TD_UNLIKELY (r->cost.sample != 0))
    r->cost.before = td_ring_ticks () - r->cost.sample;
}

/* By TdEvent.flags, forward events first. */
#define FLAGS(e)                                                                               \
  (((e)&TD_EVENT_ACCUMULATE ? TD_TAPE_EVENT_ACCUMULATED : 0)                                   \
   | ((e)&TD_EVENT_FAILED ? TD_TAPE_EVENT_FAILED : 0)                                          \
   | ((e)&TD_EVENT_DOUBLE ? TD_TAPE_EVENT_DOUBLE : 0))
#define FORWARD_FLAGS(e) (FLAGS (e) | ((e)&TD_EVENT_GRAPH ? 0 : TD_TAPE_EVENT_NO_BACKPROP))
#define FOUR(F, e) F (e), F ((e) + 1), F ((e) + 2), F ((e) + 3)
#define SIXTEEN(F) FOUR (F, 0), FOUR (F, 4), FOUR (F, 8), FOUR (F, 12)
static const uint16_t tape_flags[2][16] = { { SIXTEEN (FORWARD_FLAGS) }, { SIXTEEN (FLAGS) } };

static inline unsigned
event_flags (const TdEvent *e)
{
  return tape_flags[e->phase != TD_PHASE_FORWARD][e->flags & 15]
         | (e->flags & TD_EVENT_REPLAYED ? TD_TAPE_EVENT_REPLAYED : 0)
         | (e->flags & TD_EVENT_CAPTURED ? TD_TAPE_EVENT_CAPTURED : 0)
         | (e->cls->flags & TD_OP_VIEW ? TD_TAPE_EVENT_SHARED : 0);
}

/* Is the buffer of output 0 another one's: the input's, or the sum's? */
static inline bool
shares (const TdEvent *e)
{
  return (e->cls->flags & TD_OP_VIEW) || (e->flags & TD_EVENT_ACCUMULATE);
}

static inline uint64_t *
put_alloc (uint64_t *to, const TdNode *n, const TdBuffer *b)
{
  to[0] = sizeof (TdRawAlloc) | (uint64_t)TD_RAW_ALLOC << 32
          | (uint64_t)td__tape_category[b->category] << 48 | (uint64_t)b->device->number << 56;
  to[1] = (uint64_t)(uintptr_t)b->data;
  to[2] = b->block->bytes;
  to[3] = b->id;
  to[4] = n->id;
  return to + sizeof (TdRawAlloc) / 8;
}

/* Events of fewer operands fit the ring without asking. */
enum
{
  FEW_OPERANDS = 64
};

/* How many events ago the one with this id was; 0: not in this iteration. */
static inline uint64_t
events_since (const TdRecorder *r, uint64_t id)
{
  int64_t event = td__event_ids_find (&r->ids, id);

  return event >= 0 && (uint64_t)event < r->event ? r->event - (uint64_t)event : 0;
}

/* The event, after the allocations that it made for its outputs.  n_out is a constant in the
 * usual case, where the loops go. */
static inline __attribute__ ((always_inline)) void
put_event (TdRecorder *r, const TdEvent *e, uint64_t end, unsigned n_out)
{
  const TdKnownPlace *place = r->place;
  unsigned n_in = (unsigned)e->n_in, shared = shares (e);
  uint64_t attrs
      = e->cls->n_attrs > 0 ? td__recorder_attrs (r, e->cls, e->attrs, e->algorithm) : 0;
  uint64_t back = e->twin_id != 0 ? events_since (r, e->twin_id) : 0;
  unsigned flags = e->flags & TD_EVENT_GRAPH ? TD_TAPE_VAR_REQUIRES_GRAD : 0u;
  uint32_t bytes = (uint32_t)sizeof (TdRawOp) + 8 * n_in, before = 0;
  uint64_t *op, *at;

  for (unsigned i = 0; i < n_out; i++)
    bytes += (uint32_t)sizeof (TdRawOutput) + 8 * (uint32_t)e->out[i]->shape.ndim;
  if (TD_UNLIKELY (e->flags & TD_EVENT_REPLAYED))
    shared = n_out;
  if (n_out > shared)
    before = (n_out - shared) * (uint32_t)sizeof (TdRawAlloc);
  if (n_out > 1 || TD_UNLIKELY (n_in > FEW_OPERANDS))
    if (bytes > TD_RING_MAX_RECORD (r->ring) - before || (n_in | n_out) > UINT16_MAX)
      return; /* tens of thousands of operands: counted as lost by the reader's event ids */
  op = td_ring_reserve (r->ring, before + bytes);
  for (unsigned i = shared; i < n_out; i++)
    op = put_alloc (op, e->out[i], e->out_buffers[i]);
  op[0] = bytes | (uint64_t)TD_RAW_OP << 32 | (uint64_t)event_flags (e) << 48;
  op[1] = r->start;
  op[2] = end;
  op[3] = place->opdef_id | (uint64_t)place->site_id << 32;
  op[4] = place->path | attrs << 32;
  op[5] = (back < UINT32_MAX ? back : 0) | (uint64_t)(uint16_t)e->order << 32
          | (uint64_t)(uint8_t)e->phase << 48;
  op[6] = n_in | n_out << 16 | (uint64_t)e->retained_in << 32;
  at = op + 7;
  for (unsigned i = 0; i < n_in; i++)
    *at++ = e->in[i]->id;
  for (unsigned i = 0; i < n_out; i++)
    {
      at = put_output (at, e->out[i], e->out_buffers[i],
                       flags | (td__bit (e->retained_out, (int)i) ? TD_TAPE_VAR_RETAINED : 0u));
      e->out[i]->is_leaf_known = true;
      e->out[i]->counted = r->level >= TD_TAPE_LEVEL_STATS ? TD_COUNTED : TD_COUNTED_NOT;
    }
  td_ring_publish (r->ring, before + bytes);
}

static __attribute__ ((noinline)) void
put_any_event (TdRecorder *r, const TdEvent *e, uint64_t end)
{
  put_event (r, e, end, e->flags & TD_EVENT_FAILED ? 0 : (unsigned)e->n_out);
}

static inline void
write_op (TdRecorder *r, const TdEvent *e, uint64_t end)
{
  if (TD_LIKELY (e->n_out == 1 && !(e->flags & TD_EVENT_FAILED)))
    put_event (r, e, end, 1);
  else
    put_any_event (r, e, end);
}

/* What else was allocated meanwhile; of a replay, its results. */
static __attribute__ ((noinline)) void
write_memory (TdRecorder *r, const TdEvent *e)
{
  if (e->flags & TD_EVENT_REPLAYED)
    for (int i = 0; i < e->n_out; i++)
      td__recorder_match_memory (r, e->out_buffers[i], e->out[i]->id);
  td__recorder_flush_memory (r);
}

static void
after_op (TdObserver *o, const TdEvent *e)
{
  TdRecorder *r = self (o);
  uint64_t end = td_ring_ticks ();
  bool failed = e->flags & TD_EVENT_FAILED;

  r->now->running = 0;
  if (TD_UNLIKELY (r->times.device != NULL))
    td__recorder_time_after (r);
  if (TD_LIKELY (r->writes))
    {
      if (TD_UNLIKELY (r->n_pending > 0))
        write_memory (r, e);
      if (TD_UNLIKELY (e->phase == TD_PHASE_UPDATE) && e->n_in > 0)
        td__recorder_update (r, e);
      td__event_ids_note (&r->ids, e->id, (uint32_t)r->event);
      if (TD_UNLIKELY (r->keyframes.on))
        td__keyframe_after (r, e);
      write_op (r, e, end);
      r->written = r->event + 1;
      if (wants_values (r, e))
        {
          td__recorder_stats_wanted (e, false);
          for (int i = 0; i < e->n_out && !failed; i++)
            td__recorder_values (r, e->out[i], e->out_buffers[i]);
          if (is_backward (e) && !failed)
            td__recorder_accumulated (r, e);
        }
      if (wants_gradients (r, e) && !failed && e->n_in > 0 && (e->cls->writes & 1) != 0)
        td__recorder_updated (r, e->in[0]);
      r->event++;
      if (TD_UNLIKELY (r->async_devices != 0))
        td__recorder_poll_async_now_and_then (r);
    }
  r->n_events++;
  r->chained = is_backward (e) && r->level == TD_TAPE_LEVEL_GRAPH && td__engine.hooks == NULL
                   ? end
                   : 0;
  if (TD_UNLIKELY (r->agent != NULL && r->agent->control.needs_after))
    {
      r->agent->calls->after (r->agent, e);
      r->chained = r->cost.sample = 0;
    }
  if (TD_UNLIKELY (r->cost.sample != 0))
    {
      td__recorder_spent (r, r->cost.before + td_ring_ticks () - end, TD_COST_EVERY);
      r->cost.sample = 0;
    }
}

static void
on_scope (TdObserver *o, bool open, const TdScope *s)
{
  TdRecorder *r = self (o);

  if (open && r->link_opens) /* the scope of a link call, which is a span already */
    {
      r->link_opens = false;
      return;
    }
  if (!r->writes || s->is_link || s->is_iteration || s->name == NULL || !r->in_iteration
      || __builtin_strcmp (s->name, "iteration") == 0)
    return;
  if (open)
    {
      uint32_t name = td__recorder_string (r, s->name), site = td__recorder_site (r, s->site);
      TD_RECORD (r, TdRawSpan, span, TD_RAW_SCOPE_OPEN);

      span->name = name;
      span->path = 0;
      span->site = site;
      span->reserved = 0;
      TD_PUBLISH (r, span);
    }
  else
    {
      TdRawHead *h = td_ring_reserve (r->ring, sizeof *h);

      *h = (TdRawHead){ sizeof *h, TD_RAW_SCOPE_CLOSE, 0 };
      td_ring_publish (r->ring, sizeof *h);
    }
}

static void
on_link (TdObserver *o, bool enter, const TdPath *path, const TdSite *site)
{
  TdRecorder *r = self (o);

  r->link_opens = enter;
  if (!r->writes)
    return;
  if (enter)
    {
      ensure_iteration (r);
      uint32_t path_id = td__recorder_path (r, path), site_id = td__recorder_site (r, site);
      TD_RECORD (r, TdRawSpan, span, TD_RAW_LINK_ENTER);

      span->name = 0;
      span->path = path_id;
      span->site = site_id;
      span->reserved = 0;
      TD_PUBLISH (r, span);
    }
  else if (r->in_iteration)
    {
      TdRawHead *h = td_ring_reserve (r->ring, sizeof *h);

      *h = (TdRawHead){ sizeof *h, TD_RAW_LINK_LEAVE, 0 };
      td_ring_publish (r->ring, sizeof *h);
    }
}

static void
on_iteration (TdObserver *o, bool begin, int64_t number, int64_t label, const TdSite *site)
{
  TdRecorder *r = self (o);
  uint64_t began;

  if (!begin && r->agent != NULL)
    r->agent->calls->ends (r->agent, number, site);
  began = td__recorder_measures (r);
  if (r->writes)
    end_iteration (r, false);
  td__recorder_spent (r, td_ring_ticks () - began, 1);
  if (!begin)
    {
      if (r->assembler != NULL)
        td_assembler_drain (r->assembler, r->ring);
      return;
    }
  if (r->assembler == NULL)
    td_ring_look (r->ring);
  if (r->writes)
    begin_iteration (r, number, label_of (r, label), site, false);
  else
    td__holdings_begin (r->holdings, (uint64_t)number, td__engine.next_node_id + 1);
  if (r->agent != NULL)
    r->agent->calls->iteration (r->agent, number);
}

static void
on_report (TdObserver *o, const char *key, double value)
{
  TdRecorder *r = self (o);

  if (!r->writes)
    return;
  ensure_iteration (r);
  uint32_t id = td__recorder_string (r, key);
  TD_RECORD (r, TdRawReport, report, TD_RAW_REPORT);
  report->value = value;
  report->key = id;
  report->reserved = 0;
  TD_PUBLISH (r, report);
}

static void
on_host_read (TdObserver *o, TdNode *n, const TdSite *site)
{
  TdRecorder *r = self (o);

  if (!r->writes || !r->in_iteration)
    return;
  uint32_t id = td__recorder_site (r, site);
  TD_RECORD (r, TdRawHostRead, h, TD_RAW_HOST_READ);
  h->variable = n->id;
  h->site = id;
  h->reserved = 0;
  TD_PUBLISH (r, h);
}

static void
on_unchain (TdObserver *o, TdNode *n, const TdSite *site)
{
  TdRecorder *r = self (o);

  if (r->writes && r->in_iteration)
    {
      TD_RECORD (r, TdRawName, u, TD_RAW_UNCHAIN);
      u->variable = n->id;
      u->name = 0;
      u->flags = 0;
      TD_PUBLISH (r, u);
    }
  if (r->agent != NULL)
    r->agent->calls->cut (r->agent, n, site);
}

static void
on_name (TdObserver *o, TdNode *n, const char *name)
{
  TdRecorder *r = self (o);

  if (!r->writes || !r->in_iteration)
    return;
  uint32_t id = td__recorder_string (r, name);
  TD_RECORD (r, TdRawName, u, TD_RAW_NAME);
  u->variable = n->id;
  u->name = id;
  u->flags = 0;
  TD_PUBLISH (r, u);
}

static void
notice (TdRecorder *r, TdTapeNoticeKind kind, int status, const char *text, const char *op,
        const TdSite *site)
{
  if (!r->writes)
    return;
  ensure_iteration (r);
  uint32_t text_id = td__recorder_string (r, text), op_id = td__recorder_string (r, op),
           site_id = td__recorder_site (r, site);
  TD_RECORD (r, TdRawNotice, n, TD_RAW_NOTICE);
  n->head.flags = (uint16_t)kind;
  n->status = status;
  n->text = text_id;
  n->op = op_id;
  n->site = site_id;
  n->ticks = td_ring_ticks ();
  TD_PUBLISH (r, n);
}

static void
on_error (TdObserver *o, const TdError *error)
{
  TdRecorder *r = self (o);

  notice (r, TD_TAPE_NOTICE_ERROR, error->status, error->message, error->op, error->site);
  if (r->agent != NULL)
    r->agent->calls->error (r->agent, error, NULL);
}

static void
on_notice (TdObserver *o, const char *text)
{
  notice (self (o), TD_TAPE_NOTICE_TEXT, 0, text, NULL, td__engine.site);
}

static void
on_config (TdObserver *o, const char *field, int value)
{
  char text[96];

  if (!self (o)->in_iteration)
    return;
  snprintf (text, sizeof text, "%s=%d", field, value);
  notice (self (o), TD_TAPE_NOTICE_CONFIG, 0, text, NULL, NULL);
}

static void
on_param (TdObserver *o, const TdPath *path, const TdVar *param, bool learnt)
{
  TdRecorder *r = self (o);
  const TdNode *n = param->node;

  if (!r->writes)
    return;
  uint32_t id = td__recorder_string (r, path->text);
  TD_RECORD (r, TdRawParameter, p, TD_RAW_PARAMETER);
  p->variable = n->id;
  p->path = id;
  p->dtype = n->dtype;
  p->ndim = (uint8_t)n->shape.ndim;
  p->flags = learnt ? 0 : TD_TAPE_PARAMETER_PERSISTENT;
  for (int d = 0; d < TD_TAPE_MAX_NDIM; d++)
    p->dims[d] = d < n->shape.ndim ? n->shape.dim[d] : 0;
  TD_PUBLISH (r, p);
}

static void
on_backward (TdObserver *o, bool begin, const TdSite *site)
{
  self (o)->chained = 0;
}

static void
on_gradient (TdObserver *o, TdNode *leaf, TdNode *gradient)
{
}

static void
on_write (TdObserver *o, TdNode *n, const TdSite *site)
{
  (void)o;
  (void)site;
  n->counted = TD_COUNTED_WRITTEN;
}

static void
recorder_free (TdRecorder *r)
{
  if (r == NULL)
    return;
  if (td__recorder == r)
    td__recorder = NULL;
  if (r->agent != NULL)
    r->agent->calls->free (r->agent);
  td_assembler_free (r->assembler);
  td_tape_writer_free (r->writer);
  td_ring_free (r->ring);
  free (r->tape);
  free (r->masters.items);
  free (r->strings.slots);
  free (r->classes.slots);
  free (r->sites.slots);
  free (r->attrs.slots);
  free (r->paths.slots);
  free (r->pending);
  free (r->functions);
  td__event_ids_clear (&r->ids);
  td__holdings_free (r->holdings);
  free (r->keyframes.known);
  free (r);
}

static void
on_finish (TdObserver *o, int status)
{
  TdRecorder *r = self (o);

  if (r->writes)
    {
      if (r->n_early > 0 || r->n_early_waits > 0)
        ensure_iteration (r);
      end_iteration (r, true);
      td__recorder_poll_async (r, TD_ASYNC_WAIT);
      td__recorder_report_left_out (r);
      TD_RECORD (r, TdRawExit, e, TD_RAW_EXIT);
      e->status = status;
      e->reserved = 0;
      e->ticks = td_ring_ticks ();
      TD_PUBLISH (r, e);
      if (r->assembler != NULL)
        {
          td_assembler_drain (r->assembler, r->ring);
          status |= td__recorder_say_trouble (r); /* as the program's will be */
          td_assembler_end (r->assembler, r->ring, status << 8, false);
          td__recorder_say_trouble (r);
        }
      else
        td_ring_drain_wait (r->ring);
    }
  recorder_free (r);
}

/* Numbers of every operation, and a debugger that may stop at any. */
static bool
each (TdObserver *o)
{
  const TdRecorder *r = self (o);

  return r->level >= TD_TAPE_LEVEL_STATS
         || (r->agent != NULL
             && (td__agent_attention (r->agent) || r->agent->control.needs_after));
}

static const TdObserver vtable = {
  .before_op = before_op,
  .after_op = after_op,
  .buffer_new = td__recorder_buffer_new,
  .buffer_free = td__recorder_buffer_free,
  .scope = on_scope,
  .link = on_link,
  .iteration = on_iteration,
  .backward = on_backward,
  .gradient = on_gradient,
  .report = on_report,
  .host_read = on_host_read,
  .copied = td__recorder_copied,
  .copying = td__recorder_copying,
  .wait = td__recorder_wait,
  .clock = td__recorder_clock,
  .rank_sum = td__recorder_rank_sum,
  .write = on_write,
  .unchain = on_unchain,
  .name = on_name,
  .error = on_error,
  .out_of_memory = td__recorder_out_of_memory,
  .where = td__recorder_where,
  .fault = td__recorder_fault,
  .notice = on_notice,
  .config = on_config,
  .param = on_param,
  .static_event = td__recorder_static_event,
  .schedule = td__recorder_schedule,
  .static_run = td__recorder_static_run,
  .static_entry = td__recorder_static_entry,
  .each = each,
  .finish = on_finish,
};

TdRecorder *
td__recorder_new (TdRing *ring, uint32_t level, bool writes)
{
  TdRecorder *r = td__xcalloc (1, sizeof *r);

  r->observer = vtable;
  r->ring = ring;
  r->now = &ring->shared->now;
  r->level = r->keyframes.level = level;
  r->writes = writes;
  r->values_max_bytes = 1 << 20;
  r->holdings = td__holdings_new ();
  return r;
}
