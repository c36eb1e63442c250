/* Schedules and guards described for an observer.  Nothing here is done while nobody looks.
 *
 * SPDX-License-Identifier: MIT */
#include "notify.h"
#include "host-memory.h"

#include "trace-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t n_schedules;

static const uint8_t states[] = {
  [TD_STATIC_OFF] = TD_FUNCTION_OFF,
  [TD_STATIC_TRACING] = TD_FUNCTION_TRACING,
  [TD_STATIC_STATIC] = TD_FUNCTION_SCHEDULED,
};

void
td__static_notify (TdStatic *s, TdStaticEventKind what, const TdEntry *entry,
                   const TdMiss *miss, const TdSite *other_site)
{
  TdObserver *o = td__engine.observer;
  TdStaticEvent report;

  if (TD_LIKELY (o == NULL) || o->static_event == NULL || s->number == 0)
    return;
  if (!s->reported && what != TD_STATIC_EVENT_MADE)
    td__static_notify (s, TD_STATIC_EVENT_MADE, NULL, NULL, NULL);
  s->reported = true;
  report = (TdStaticEvent){ .what = (uint8_t)what,
                            .state = what == TD_STATIC_EVENT_DIFFERS ? TD_FUNCTION_INVALID
                                                                     : states[s->info.state],
                            .function = s->number,
                            .schedule = entry != NULL ? entry->number : 0,
                            .name = s->name,
                            .made = s->site,
                            .called = s->called_at,
                            .other_site = other_site };
  if (miss != NULL)
    {
      report.guard = miss->guard;
      report.text = miss->text;
      report.site = miss->site;
    }
  o->static_event (o, &report);
}

void
td__static_notify_run (TdStaticRunMoment moment, TdStaticRunKind kind, uint32_t function,
                       uint32_t schedule, uint32_t list)
{
  TdObserver *o = td__engine.observer;

  if (TD_LIKELY (o == NULL) || o->static_run == NULL || function == 0)
    return;
  o->static_run (o, &(TdStaticRun){ .moment = (uint8_t)moment,
                                    .kind = (uint8_t)kind,
                                    .function = function,
                                    .schedule = schedule,
                                    .list = list });
}

void
td__static_notify_call (TdStatic *s)
{
  if (TD_LIKELY (td__engine.observer == NULL))
    return;
  if (!s->reported)
    td__static_notify (s, TD_STATIC_EVENT_MADE, NULL, NULL, NULL);
  td__static_notify_run (TD_RUN_BEGINS, TD_RUN_CALL, s->number, 0, 0);
}

static const char *
step_text (const TdStep *t)
{
  return t->kind == TD_STEP_EFFECT ? t->effect.name : t->text;
}

void
td__trace_notify (TdTrace *t)
{
  TdObserver *o = td__engine.observer;
  const TdSteps *list = td__trace_list (t);
  const TdStep *step = &list->steps[list->n - 1];

  if (o == NULL || o->static_entry == NULL || t->function == 0)
    return;
  o->static_entry (o, &(TdStaticEntry){ .function = t->function,
                                        .list = t->state == TD_TRACE_BACKWARD
                                                    ? t->schedule->n_backwards + 1
                                                    : 0,
                                        .number = list->n - 1,
                                        .kind = step->kind,
                                        .phase = step->phase,
                                        .cls = step->cls,
                                        .site = step->site != NULL ? step->site : t->call_site,
                                        .path = step->path,
                                        .text = step_text (step) });
}

/* --- growing lists --- */

static void *
room_for (void *items, uint32_t n, size_t size)
{
  if ((n & (n - 1)) != 0) /* grown at powers of two */
    return items;
  items = td__xrealloc (items, (n > 0 ? 2 * (size_t)n : 1) * size);
  return items;
}

static TdScheduleGuard *
add_guard (TdScheduleInfo *d, const char *guard, const TdSite *site)
{
  TdScheduleGuard *g;

  d->guards = room_for (d->guards, d->n_guards, sizeof *d->guards);
  g = &d->guards[d->n_guards++];
  *g = (TdScheduleGuard){ .guard = guard, .site = site };
  return g;
}

#define GUARD(d, guard, site, ...)                                                             \
  do                                                                                           \
    {                                                                                          \
      TdScheduleGuard *guard_ = add_guard (d, guard, site);                                    \
                                                                                               \
      snprintf (guard_->text, sizeof guard_->text, __VA_ARGS__);                               \
    }                                                                                          \
  while (0)

/* --- guards --- */

static void
argument_guards (TdScheduleInfo *d, const TdGuards *g)
{
  char shape[120], same[40];

  for (uint32_t i = 0; i < g->n_arguments; i++)
    {
      const TdArgumentGuard *a = &g->arguments[i];

      same[0] = '\0';
      if (a->same_buffer != i)
        snprintf (same, sizeof same, ", in the memory of argument %u", a->same_buffer);
      GUARD (d, "argument", NULL, "argument %u: %s %s on %s, %s%s", i,
             td_dtype_name ((TdDtype)a->dtype), td_shape_text (&a->shape, shape, sizeof shape),
             a->device->name, a->requires_grad ? "wants a gradient" : "no gradient", same);
    }
}

static void
config_guard (TdScheduleInfo *d, const TdConfig *config)
{
  TdScheduleGuard *g = add_guard (d, "config", NULL);
  size_t used = 0;

  for (size_t offset = 0; offset < sizeof *config && used < sizeof g->text;
       offset += sizeof (int))
    {
      int value;

      memcpy (&value, (const char *)config + offset, sizeof value);
      used += (size_t)snprintf (g->text + used, sizeof g->text - used, "%s%s=%d",
                                offset > 0 ? " " : "", td__config_name (offset), value);
    }
}

static void
describe_guards (TdScheduleInfo *d, const TdEntry *e)
{
  const TdGuards *g = e->guards;
  const TdSchedule *s = e->schedule;
  char shape[120];

  argument_guards (d, g);
  config_guard (d, &g->config);
  GUARD (d, "links", NULL, "links and their parameters are those that were there");
  if (g->reads_state)
    GUARD (d, "link state", NULL, "no recurrent state of a link was set or dropped");
  GUARD (d, "results", NULL, "%u %s asked for", s->n_outputs,
         s->n_outputs == 1 ? "result is" : "results are");
  for (uint32_t i = 0; i < g->n_watches; i++)
    GUARD (d, "host memory", g->watches[i].site, "%s: %zu bytes, %zu of them set by the code",
           g->watches[i].name, g->watches[i].bytes, g->watches[i].n_changed);
  for (uint32_t i = s->n_arguments; i < s->n_externals; i++)
    {
      const TdNodeInfo *n = &s->nodes[s->externals[i].node];
      const TdVar *v = s->externals[i].var;

      GUARD (d, "captured variable", v != NULL ? v->site : NULL, "%s: %s %s",
             n->name != NULL ? n->name : "unnamed", td_dtype_name ((TdDtype)n->dtype),
             td_shape_text (&n->shape, shape, sizeof shape));
    }
  for (uint32_t i = 0; i < s->forward.n; i++)
    if (s->forward.steps[i].kind == TD_STEP_HOST_READ)
      {
        const TdStep *t = &s->forward.steps[i];

        GUARD (d, "host read", t->site, "%zu bytes that the code read are the same",
               t->n_in > 0 ? td__node_value (s, td__step_in (s, t, 0))->bytes : 0);
      }
}

static void
describe_key (TdScheduleInfo *d, const TdGuards *g)
{
  char shape[120];
  size_t used = 0;

  for (uint32_t i = 0; i < g->n_arguments && used < sizeof d->key; i++)
    used += (size_t)snprintf (d->key + used, sizeof d->key - used, "%s %s, ",
                              td_dtype_name ((TdDtype)g->arguments[i].dtype),
                              td_shape_text (&g->arguments[i].shape, shape, sizeof shape));
  if (used < sizeof d->key)
    snprintf (d->key + used, sizeof d->key - used, "%s%s", g->config.train ? "train" : "test",
              g->config.enable_backprop ? "" : ", no backprop");
}

/* --- steps --- */

/* Any node that shows the value. */
static uint32_t
node_of_value (const TdSchedule *s, uint32_t value)
{
  uint32_t n = 0;

  while (n + 1 < s->n_nodes && s->nodes[n].value != value)
    n++;
  return n;
}

/* An operand; for one that is made of several values side by side, those.  Returns how many. */
static uint32_t
add_operand (TdScheduleInfo *d, const TdPlan *p, uint32_t node, uint32_t value)
{
  const uint32_t b = value < p->s->n_values ? td__plan_block (p, value) : TD_ABSENT;
  uint32_t n = 0;

  if (b == TD_ABSENT || !td__plan_covers (p, value))
    {
      d->operands = room_for (d->operands, d->n_operands, sizeof *d->operands);
      d->operands[d->n_operands++] = node;
      return 1;
    }
  for (uint32_t k = 0; k < p->blocks[b].n_parts; k++)
    if (td__plan_covers_part (p, value, k))
      {
        const uint32_t part = p->blocks[b].parts[k];

        n += add_operand (d, p, node_of_value (p->s, part), part);
      }
  return n;
}

/* A step's numbers on the tape are those of TdStepKind: the tests of the tape hold them to it.
 */
static TdScheduleStep *
add_step (TdScheduleInfo *d, const TdPlan *p, const TdSchedule *s, const TdStep *t,
          uint32_t list)
{
  TdScheduleStep *out;
  uint32_t n[2] = { 0, 0 };

  d->steps = room_for (d->steps, d->n_steps, sizeof *d->steps);
  out = &d->steps[d->n_steps++];
  *out = (TdScheduleStep){ .kind = t->kind,
                           .phase = t->phase,
                           .flags = (uint8_t)(t->accumulate | t->random << 1),
                           .list = list,
                           .cls = t->cls,
                           .attrs = t->attrs,
                           .site = t->site,
                           .path = t->path,
                           .text = step_text (t),
                           .in = d->n_operands,
                           .n_in = t->n_in,
                           .event = t->event,
                           .twin = t->twin,
                           .group = TD_ABSENT,
                           .trace_at = t->trace_at,
                           .other = TD_ABSENT };
  for (uint32_t k = 0; k < t->n_in + t->n_out; k++)
    {
      const bool is_out = k >= t->n_in;
      const uint32_t node = is_out ? td__step_out (s, t, k - t->n_in) : td__step_in (s, t, k);

      n[is_out] += add_operand (d, p, node, s->nodes[node].value);
    }
  out->n_in = n[0];
  out->out = out->in + n[0];
  out->n_out = n[1];
  return out;
}

static void
add_group (TdScheduleInfo *d, const TdPlan *p, const TdStep *t, uint32_t list)
{
  const TdGroup *g = &p->groups[t->external];
  uint32_t at = d->n_steps;

  add_step (d, p, p->s, t, list)->group = g->n_members;
  for (uint32_t m = 0; m < g->n_members; m++)
    add_step (d, p, p->s, &g->members[m], list)->group = at;
}

/* By pass: the tape's fate of a step that it took out; 0: it takes none out. */
static const uint8_t fates[TD_PASS_N] = {
  [TD_PASS_PRUNE] = 1,
  [TD_PASS_FOLD] = 2,
  [TD_PASS_CSE] = 3,
  [TD_PASS_BATCH] = 4,
};

/* What became of each step of a list of the trace that the plan has no more: the note of it, or
 * NULL.  A gradient that is handed on with those of its batch has none. */
static const TdPassNote **
fates_of (const TdPlan *p, const TdSteps *traced, uint32_t list)
{
  const TdPassNote **of = td__xcalloc (traced->n + 1, sizeof *of);

  for (uint32_t i = 0; i < p->n_notes; i++)
    if (p->notes[i].list == list && p->notes[i].step < traced->n
        && fates[p->notes[i].pass] != 0)
      of[p->notes[i].step] = &p->notes[i];
  return of;
}

/* Is the step of the trace in the plan's list, in a group or by itself? */
static bool *
planned_ones (const TdPlan *p, const TdSteps *traced, uint32_t list)
{
  const TdSteps *planned = td__plan_list (p, list);
  bool *there = td__xcalloc (traced->n + 1, sizeof *there);

  for (uint32_t i = 0; i < planned->n; i++)
    {
      const TdStep *t = &planned->steps[i];
      const TdGroup *g = t->kind == TD_STEP_GROUP ? &p->groups[t->external] : NULL;

      if (g == NULL && t->trace_at < traced->n)
        there[t->trace_at] = true;
      for (uint32_t m = 0; g != NULL && m < g->n_members; m++)
        if (g->members[m].trace_at < traced->n)
          there[g->members[m].trace_at] = true;
    }
  return there;
}

static void
add_gone (TdScheduleInfo *d, const TdPlan *p, const TdSchedule *trace, const TdStep *step,
          uint32_t at, uint32_t list, const TdPassNote *note)
{
  TdScheduleStep *out;
  const bool handed_on = note == NULL && step->kind == TD_STEP_PROPAGATE && p->n_batched > 0;

  if (note == NULL && !handed_on)
    return;
  out = add_step (d, p, trace, step, list);
  out->trace_at = at;
  out->fate = handed_on ? fates[TD_PASS_BATCH] : fates[note->pass];
  if (handed_on)
    snprintf (out->why, sizeof out->why, "handed on with those of its batch");
  else if (note->pass == TD_PASS_CSE || note->pass == TD_PASS_BATCH)
    out->other = note->other;
}

/* Name the steps that do the work of those that are gone: by their place in the description. */
static void
name_others (TdScheduleInfo *d, uint32_t first)
{
  for (uint32_t i = first; i < d->n_steps; i++)
    for (uint32_t k = first; k < d->n_steps && d->steps[i].other != TD_ABSENT; k++)
      if (k != i && d->steps[k].trace_at == d->steps[i].other
          && d->steps[k].kind == d->steps[i].kind && d->steps[k].fate == 0)
        {
          snprintf (d->steps[i].why, sizeof d->steps[i].why,
                    d->steps[i].fate == fates[TD_PASS_CSE] ? "the same as step %u"
                                                           : "done with step %u",
                    k);
          d->steps[i].other = TD_ABSENT;
        }
}

/* The plan's list, and the steps that it has no more at their place in the trace. */
static void
describe_list (TdScheduleInfo *d, const TdPlan *p, const TdSchedule *trace,
               const TdSteps *traced, uint32_t list)
{
  const TdSteps *planned = td__plan_list (p, list);
  const TdPassNote **fate = fates_of (p, traced, list);
  bool *there = planned_ones (p, traced, list);
  uint32_t next = 0, first = d->n_steps;

  for (uint32_t i = 0; i <= planned->n; i++)
    {
      const TdStep *t = i < planned->n ? &planned->steps[i] : NULL;

      for (; next < traced->n && (t == NULL || next < t->trace_at); next++)
        if (!there[next])
          add_gone (d, p, trace, &traced->steps[next], next, list, fate[next]);
      if (t != NULL && t->kind == TD_STEP_GROUP)
        add_group (d, p, t, list);
      else if (t != NULL)
        td__plan_why (p, list, t, add_step (d, p, p->s, t, list)->why);
    }
  name_others (d, first);
  free (fate);
  free (there);
}

static void
describe_values (TdScheduleInfo *d, const TdPlan *p)
{
  const TdSchedule *s = p->s;

  d->nodes = td__xcalloc (s->n_nodes + 1, sizeof *d->nodes);
  d->values = td__xcalloc (s->n_values + 1, sizeof *d->values);
  d->n_nodes = s->n_nodes;
  d->n_values = s->n_values;
  for (uint32_t i = 0; i < s->n_nodes; i++)
    {
      const TdNodeInfo *n = &s->nodes[i];

      d->nodes[i] = (TdScheduleNode){ n->value,         n->dtype, n->category,
                                      n->requires_grad, n->name,  &n->shape };
    }
  for (uint32_t i = 0; i < s->n_values; i++)
    {
      const TdValue *v = &s->values[i];

      d->values[i] = (TdScheduleValue){ .kind = v->kind,
                                        .flags = (uint8_t)(v->is_state | v->is_saved << 1),
                                        .index = v->index,
                                        .n_writers = v->n_writers,
                                        .bytes = v->bytes,
                                        .offset = p->offsets[i] };
    }
  for (uint32_t g = 0; g < p->n_groups; g++)
    for (uint32_t k = 0; k < p->groups[g].n_interior; k++)
      d->values[p->groups[g].interior[k]].flags |= 4;
}

static void
describe (TdScheduleInfo *d, const TdEntry *e)
{
  const TdPlan *p = e->plan;
  const TdSchedule *s = p->s;

  d->arena_bytes = p->arena_bytes;
  d->lower_bound = p->lower_bound;
  d->n_backwards = s->n_backwards;
  d->n_arguments = s->n_arguments;
  d->n_externals = s->n_externals;
  d->n_outputs = s->n_outputs;
  d->n_pruned = p->n_pruned;
  d->n_folded = p->n_folded;
  d->n_merged = p->n_merged;
  d->n_fused = p->n_fused;
  d->n_in_place = p->n_in_place;
  describe_key (d, e->guards);
  describe_guards (d, e);
  describe_values (d, p);
  describe_list (d, p, e->schedule, &e->schedule->forward, 0);
  for (uint32_t b = 0; b < s->n_backwards; b++)
    describe_list (d, p, e->schedule, &e->schedule->backwards[b].list, b + 1);
}

void
td__static_notify_plan (TdStatic *s, TdEntry *entry)
{
  TdObserver *o = td__engine.observer;
  TdScheduleInfo d = { .function = s->number };

  entry->number = entry->plan->number = ++n_schedules;
  if (o == NULL || o->schedule == NULL)
    return;
  if (!s->reported)
    td__static_notify (s, TD_STATIC_EVENT_MADE, NULL, NULL, NULL);
  d.schedule = entry->number;
  describe (&d, entry);
  o->schedule (o, &d);
  free (d.steps);
  free (d.operands);
  free (d.nodes);
  free (d.values);
  free (d.guards);
  td__static_notify (s, TD_STATIC_EVENT_SCHEDULED, entry, NULL, NULL);
}
