/* Replaying steps as CUDA graphs.  A segment is a run of steps that follow each other on the
 * device with no work of the host between them; it is captured the second time that it runs and
 * launched as one graph from then on.
 *
 * Steps are deferred: while they wait for the launch of their segment, the host already makes
 * and propagates the gradients that they will write.  The stream keeps the order.
 *
 * A graph contains the addresses and scalar arguments of the call it was captured from.  Before
 * each launch these are compared with those of the present call:
 *
 * - Where a kernel of our own differs, its node in the graph is updated.
 * - Where a step that calls a library differs, the segment has to be captured again.  If that
 *   happens because an array lies elsewhere each time, the array gets a fixed place in memory,
 *   to and from which it is copied.
 * - A step whose scalars differ at every call, or that cannot be captured, is launched alone.
 *
 * SPDX-License-Identifier: MIT */
#include "capture-private.h"
#include "host-memory.h"
#include "compute/core/async-index.h"
#include "pass.h"
#include "notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_SEGMENTS = 64, /* for each list; one list has several sets of segments if its
                         gradients arrive in different combinations */
  MAX_TROUBLE = 3    /* ... because a step's numbers are others */
};

static void *
zeroed (size_t n, size_t bytes)
{
  void *memory = td__xcalloc (n + 1, bytes);

  return memory;
}

/* --- life --- */

static void
segment_clear (TdCaptures *c, TdCaptureSegment *st)
{
  if (st->graph != NULL)
    {
      c->device->ops->graphs->free (c->device, st->graph);
      td__pool_hold (c->device->pool, TD_MEM_POOL_GRAPH, -1);
    }
  td__segment_drop_places (st);
  for (uint32_t k = 0; k < st->n_steps; k++)
    td__index_forget (c->device, &st->steps[k].places);
  free (st->steps);
  free (st->refs);
  free (st->fixed);
  free (st->written);
  *st = (TdCaptureSegment){ 0 };
}

void
td__captures_free (TdReadyList *list)
{
  TdCaptures *c = list->captures;

  if (c == NULL)
    return;
  for (uint32_t k = 0; k < c->n; k++)
    segment_clear (c, &c->segments[k]);
  for (uint32_t k = 0; k < list->n_ready; k++)
    free ((void *)(uintptr_t)c->alone[k]);
  free (c->alone);
  free (c->trouble);
  free (c->at);
  free (c->moves);
  free (c->blamed);
  free (c->segments);
  free (c);
  list->captures = NULL;
}

static bool
is_watched (void)
{
  TdObserver *o = td__engine.observer;

  return o != NULL && (o->each == NULL || o->each (o));
}

bool
td__captures_begin (TdReplay *p)
{
  const TdPlan *plan = p->i->plan;
  TdDevice *d = plan->s->device;
  TdCaptures *c = p->list->captures;

  if (!plan->graphs || d->ops->graphs == NULL || !d->computes || p->check != NULL
      || td__engine.config.debug || is_watched ())
    return false;
  if (c == NULL) /* the first run loads kernels and lets libraries plan */
    {
      c = p->list->captures = zeroed (1, sizeof *c);
      c->device = d;
      c->alone = zeroed (p->list->n_ready, sizeof *c->alone);
      c->trouble = zeroed (p->list->n_ready, 1);
      c->at = zeroed (p->list->n_ready, sizeof *c->at);
      c->moves = zeroed (plan->s->n_values, 1);
      c->blamed = zeroed (plan->s->n_values, sizeof *c->blamed);
      return false;
    }
  return !c->off;
}

/* --- reports to the observer --- */

static void
notify (const TdReplay *p, const char *what, const TdSite *site, const char *text)
{
  TdEntry *entry = p->i->entry;
  TdMiss miss = { what, "", site };

  if (entry->owner == NULL)
    return;
  snprintf (miss.text, sizeof miss.text, "%s: %.220s", p->b != NULL ? "backward" : "forward",
            text);
  td__static_notify (entry->owner, TD_STATIC_EVENT_CAPTURED, entry, &miss, NULL);
}

static const char *
step_name (const TdReady *r)
{
  return r->step->cls != NULL ? r->step->cls->name : "step";
}

/* Launch the step by itself from now on, and drop the segment that it is in. */
static void
leave_alone (const TdReplay *p, uint32_t k, const char *why)
{
  TdCaptures *c = p->list->captures;
  const TdReady *r = &p->list->ready[k];
  TdStatic *owner = p->i->entry->owner;
  const TdSite *site = r->step->site != NULL ? r->step->site : p->i->site;
  char text[300];

  snprintf (text, sizeof text, "%s is launched alone: it %s", step_name (r), why);
  free ((void *)(uintptr_t)c->alone[k]);
  c->alone[k] = td__xstrdup (why);
  for (uint32_t i = 0; i < c->n; i++)
    if (c->segments[i].from <= k && k < c->segments[i].to)
      {
        segment_clear (c, &c->segments[i]);
        c->segments[i--] = c->segments[--c->n];
      }
  if (owner != NULL)
    snprintf (owner->alone_text, sizeof owner->alone_text, "%s at %s:%d", text,
              site != NULL ? site->file : "?", site != NULL ? site->line : 0);
  notify (p, "alone", site, text);
}

/* --- segments --- */

static bool
is_launched (const TdReady *r)
{
  return r->step->kind == TD_STEP_OP || r->step->kind == TD_STEP_FILL
         || r->step->kind == TD_STEP_COPY || r->step->kind == TD_STEP_GROUP;
}

static bool
is_fixed (const TdValue *v)
{
  return v->kind == TD_VALUE_INTERIOR || v->kind == TD_VALUE_CONSTANT;
}

/* Operand i of a step, counting inputs first. */
static TdTensor *
operand (const TdReady *r, uint32_t i)
{
  return r->run.call.out - r->step->n_in + i;
}

static uint32_t
operand_node (const TdSchedule *s, const TdStep *step, uint32_t i)
{
  return i < step->n_in ? td__step_in (s, step, i) : td__step_out (s, step, i - step->n_in);
}

static void
index_step (const TdReplay *p, TdCaptureSegment *st, uint32_t k)
{
  const TdSchedule *s = p->i->plan->s;
  const TdReady *r = &p->list->ready[k];
  const TdStep *step = r->step;

  for (uint32_t i = 0; i < step->n_in + step->n_out; i++)
    {
      uint32_t node = operand_node (s, step, i);

      if (is_fixed (td__node_value (s, node)))
        continue;
      st->refs[st->n_refs++]
          = (TdCaptureSegmentRef){ .t = operand (r, i),
                                   .value = s->nodes[node].value,
                                   .at = st->n_steps,
                                   .fixed = -1,
                                   .reads = i < step->n_in,
                                   .writes
                                   = i >= step->n_in || td__step_writes_input (step, i) };
    }
  st->steps[st->n_steps++] = (TdLaunched){ .ready = k };
}

static TdCaptureSegment *
segment_of (const TdReplay *p, uint32_t from, uint32_t to)
{
  TdCaptures *c = p->list->captures;
  size_t n_refs = 0;
  TdCaptureSegment *st;

  for (uint32_t k = 0; k < c->n; k++)
    if (c->segments[k].from == from && c->segments[k].to == to)
      return &c->segments[k];
  if (c->n == MAX_SEGMENTS)
    return NULL;
  if (c->segments == NULL)
    c->segments = zeroed (MAX_SEGMENTS, sizeof *c->segments);
  for (uint32_t k = from; k < to; k++)
    n_refs += p->list->ready[k].step->n_in + p->list->ready[k].step->n_out;
  st = &c->segments[c->n++];
  *st = (TdCaptureSegment){ .from = from,
                            .to = to,
                            .steps = zeroed (to - from, sizeof *st->steps),
                            .refs = zeroed (n_refs, sizeof *st->refs),
                            .written = zeroed (n_refs, sizeof *st->written) };
  for (uint32_t k = from; k < to; k++)
    if (is_launched (&p->list->ready[k]))
      index_step (p, st, k);
  return st;
}

static TdStatus
run_one_by_one (TdReplay *p, uint32_t from, uint32_t to)
{
  TdStatic *owner = p->i->entry->owner;
  TdStatus status = TD_OK;

  for (uint32_t k = from; k < to && status == TD_OK; k++)
    if (is_launched (&p->list->ready[k]))
      {
        td__index_async_event (p->observed ? &p->list->captures->at[k] : NULL);
        status = td__replay_one (p, &p->list->ready[k]);
        if (owner != NULL)
          owner->info.n_alone++;
      }
  td__index_async_event (NULL);
  return status;
}

/* Which of its outputs a step adds to. */
static uint64_t
adds_of (const TdReplay *p, const TdReady *r)
{
  const TdSchedule *s = p->i->plan->s;
  uint64_t adds = 0;

  if (p->added == NULL || !r->opens)
    return 0;
  for (uint32_t k = 0; k < r->step->n_out && k < 64; k++)
    adds |= (uint64_t)p->added[s->nodes[td__step_out (s, r->step, k)].value] << k;
  return adds;
}

static TdRngKey
key_of (const TdReady *r)
{
  return r->step->random ? *(const TdRngKey *)r->run.call.attrs : (TdRngKey){ 0, 0 };
}

/* --- capturing --- */

static void
remember (const TdReplay *p, TdCaptureSegment *st)
{
  for (uint32_t k = 0; k < st->n_refs; k++)
    st->refs[k].seen = st->refs[k].t->data;
  for (uint32_t k = 0; k < st->n_steps; k++)
    {
      const TdReady *r = &p->list->ready[st->steps[k].ready];

      st->steps[k].adds = adds_of (p, r);
      st->steps[k].key = key_of (r);
      st->steps[k].changed = false;
    }
}

/* Capture the segment, for the first time or again.  False: it cannot be captured; the step at
 * fault is launched alone from now on. */
static bool
capture (TdReplay *p, TdCaptureSegment *st)
{
  TdStatic *owner = p->i->entry->owner;
  bool first = st->graph == NULL;
  char text[80];
  uint32_t bad;
  const char *why = td__segment_record (p, st, true, &bad);

  if (why == NULL)
    {
      if (owner != NULL)
        owner->info.n_captures++;
      snprintf (text, sizeof text, "%u operations are one CUDA graph", st->n_steps);
      if (first)
        notify (p, "graph", p->list->ready[st->steps[0].ready].step->site, text);
      return true;
    }
  if (bad != TD_ABSENT)
    leave_alone (p, bad, why);
  else
    {
      p->list->captures->off = true;
      notify (p, "graph", NULL, why);
    }
  return false;
}

/* --- launching --- */

/* Mark the steps for which addresses or scalars in the graph differ from those of this call.
 * Returns how many. */
static uint32_t
compare (const TdReplay *p, TdCaptureSegment *st)
{
  uint32_t n = 0;

  for (uint32_t k = 0; k < st->n_refs; k++)
    if (TD_UNLIKELY (st->refs[k].t->data != st->refs[k].seen))
      st->steps[st->refs[k].at].changed = true;
  for (uint32_t k = 0; k < st->n_steps; k++)
    {
      TdLaunched *l = &st->steps[k];
      const TdReady *r = &p->list->ready[l->ready];

      if (TD_UNLIKELY (r->opens) && adds_of (p, r) != l->adds)
        l->changed = true;
      if (TD_UNLIKELY (r->step->random))
        {
          TdRngKey key = key_of (r);

          l->changed |= key.seed != l->key.seed || key.offset != l->key.offset;
        }
      n += l->changed;
    }
  return n;
}

/* The segment has to be captured again because of the marked steps: count that for each of them
 * and for the arrays that have moved.  False: a step has caused too many captures, is launched
 * alone from now on, and the segment was dropped. */
static bool
blame (const TdReplay *p, TdCaptureSegment *st)
{
  TdCaptures *c = p->list->captures;
  const TdDeviceGraphs *graphs = c->device->ops->graphs;
  uint32_t alone = TD_ABSENT;

  c->n_searches++;
  for (uint32_t k = 0; k < st->n_refs; k++)
    {
      const TdCaptureSegmentRef *ref = &st->refs[k];

      if (ref->t->data == ref->seen || graphs->changes (st->graph, ref->at)
          || c->blamed[ref->value] == c->n_searches || c->moves[ref->value] == TD_MAX_MOVES)
        continue;
      c->blamed[ref->value] = c->n_searches;
      c->moves[ref->value]++;
    }
  for (uint32_t k = 0; k < st->n_steps; k++)
    {
      const TdLaunched *l = &st->steps[k];
      const TdReady *r = &p->list->ready[l->ready];
      TdRngKey key = key_of (r);
      bool numbers
          = adds_of (p, r) != l->adds || key.seed != l->key.seed || key.offset != l->key.offset;

      if (l->changed && numbers && !graphs->changes (st->graph, k)
          && ++c->trouble[l->ready] >= MAX_TROUBLE)
        alone = l->ready;
    }
  if (alone != TD_ABSENT)
    leave_alone (p, alone,
                 p->list->ready[alone].step->random
                     ? "draws random numbers in a library's kernel"
                     : "adds to a gradient in some calls and not in others");
  return alone == TD_ABSENT;
}

/* Update the marked steps in the graph.  False: it has to be captured again. */
static bool
change (TdReplay *p, TdCaptureSegment *st)
{
  const TdDeviceGraphs *graphs = p->list->captures->device->ops->graphs;
  uint32_t bad;

  for (uint32_t k = 0; k < st->n_steps; k++)
    if (st->steps[k].changed && !graphs->changes (st->graph, k))
      return false;
  return td__segment_record (p, st, false, &bad) == NULL;
}

/* Make the segment's graph fit this call; if that fails the segment has no graph afterwards. */
static bool
make_ready (TdReplay *p, TdCaptureSegment *st)
{
  const bool ready = st->graph != NULL, shared = td__segment_places_hold (p, st);

  td__segment_bind (p, st, shared);
  if (ready && shared && compare (p, st) == 0)
    return true;
  if (ready && shared && change (p, st))
    {
      remember (p, st);
      return true;
    }
  if (ready)
    compare (p, st);
  if (ready && !blame (p, st))
    return false;
  td__segment_bind (p, st, false);
  td__segment_make_places (p, st);
  td__segment_bind (p, st, true);
  if (!capture (p, st))
    return false;
  remember (p, st);
  return true;
}

static TdStatus
launch (TdReplay *p, const TdCaptureSegment *st)
{
  TdDevice *d = p->list->captures->device;
  TdStatic *owner = p->i->entry->owner;
  uint32_t n = 0;
  TdStatus status = td__segment_copy (p, st, true);

  for (uint32_t k = 0; k < st->n_refs; k++)
    if (st->refs[k].writes)
      st->written[n++]
          = (TdSpan){ st->refs[k].t->data, p->i->plan->s->values[st->refs[k].value].bytes };
  if (status == TD_OK)
    status = d->ops->graphs->launch (d, st->graph, st->written, n);
  for (uint32_t k = 0; k < st->n_steps && status == TD_OK; k++)
    if (st->steps[k].places != 0)
      td__index_launched (d, st->steps[k].places,
                          p->observed ? &p->list->captures->at[st->steps[k].ready] : NULL);
  if (status == TD_OK)
    status = td__segment_copy (p, st, false);
  if (owner != NULL)
    owner->info.n_graph_launches++;
  return status;
}

/* Point operands back at the arrays of the call, where a run without graphs expects them. */
static void
unbind (const TdReplay *p, uint32_t from, uint32_t to)
{
  const TdSchedule *s = p->i->plan->s;

  for (uint32_t k = from; k < to; k++)
    {
      const TdReady *r = &p->list->ready[k];

      for (uint32_t i = 0; is_launched (r) && i < r->step->n_in + r->step->n_out; i++)
        operand (r, i)->data = p->i->address[s->nodes[operand_node (s, r->step, i)].value];
    }
}

/* Launch the deferred steps before step `to`. */
static TdStatus
flush (TdReplay *p, uint32_t to)
{
  const uint32_t from = p->waiting;
  TdCaptureSegment *st;
  TdStatus status;

  p->waiting = to;
  st = p->n_waiting > 1 && !p->list->captures->off ? segment_of (p, from, to) : NULL;
  p->n_waiting = 0;
  if (st == NULL)
    return run_one_by_one (p, from, to);
  if (!make_ready (p, st))
    {
      unbind (p, from, to);
      return run_one_by_one (p, from, to);
    }
  status = launch (p, st);
  td__segment_bind (p, st, false);
  return status;
}

/* Whether the step is only bookkeeping of the host, which need not wait for deferred steps. */
static bool
launches_nothing (const TdReplay *p, const TdReady *r)
{
  const TdSchedule *s = p->i->plan->s;
  uint32_t value;

  if (r->step->kind == TD_STEP_EFFECT)
    return r->step->n_in == 0; /* else a copy is made */
  if (r->step->kind != TD_STEP_PROPAGATE)
    return false;
  value = s->nodes[td__step_in (s, r->step, 0)].value;
  return s->values[value].kind == TD_VALUE_GRADIENT && p->given[value] != NULL
         && (p->added[value] || !td__backward_adds (p->b, (int)r->step->external));
}

bool
td__captures_defer (TdReplay *p, uint32_t k, TdStatus *status)
{
  const TdCaptures *c = p->list->captures;
  const TdReady *r = &p->list->ready[k];
  TdStatic *owner = p->i->entry->owner;

  if (is_launched (r) && c->alone[k] == NULL && !(p->observed && is_watched ()))
    {
      p->n_waiting++;
      return true;
    }
  if (launches_nothing (p, r))
    return false;
  *status = flush (p, k);
  p->waiting = k + 1;
  if (owner != NULL && is_launched (r))
    owner->info.n_alone++;
  return false;
}

void
td__captures_notify (TdReplay *p, uint32_t k)
{
  p->list->captures->at[k] = td__index_where ();
}

TdStatus
td__captures_end (TdReplay *p)
{
  return flush (p, p->list->n_ready);
}

TdStatus
td__captures_replay (TdReplay *p)
{
  TdStatus status = TD_OK;

  for (uint32_t k = 0; k < p->list->n_ready && status == TD_OK; k++)
    {
      TdReady *r = &p->list->ready[k];
      bool waits = td__captures_defer (p, k, &status);

      if (status == TD_OK && r->opens)
        status = td__replay_open (p, r);
      if (status == TD_OK && !waits)
        status = td__replay_one (p, r);
    }
  return status == TD_OK ? td__captures_end (p) : status;
}

const char *
td_static_last_alone (const TdStatic *s)
{
  return td__stranger ("td_static_last_alone") || s == NULL ? "" : s->alone_text;
}
