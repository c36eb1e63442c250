/* Replay under an observer.  Before and after each operation an event is reported, as when the
 * code runs, so that a debugger can stop there and a recording has statistics and times.
 *
 * Events refer to nodes of the graph, but a replay makes none for the values inside a schedule.
 * Here such a node is made for each of them; it shows the value's part of the arena and is kept
 * until the instance's next call.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"
#include "host-memory.h"
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
zeroed (size_t n, size_t bytes)
{
  void *memory = td__xcalloc (n + 1, bytes);

  return memory;
}

void
td__observe_drop (TdInstance *i)
{
  const TdSchedule *s = i->plan->s;

  if (i->nodes == NULL)
    return;
  for (uint32_t k = 0; k < s->n_nodes; k++)
    {
      if (i->nodes_owned[k])
        {
          i->nodes[k]->retained = NULL;
          td__node_unref (i->nodes[k]);
        }
      i->nodes[k] = NULL;
      i->nodes_owned[k] = false;
    }
  for (uint32_t v = 0; v < s->n_values; v++)
    if (i->slices[v] != NULL)
      {
        td__slab_release (&td__engine.buffers, i->slices[v]);
        i->slices[v] = NULL;
      }
}

static void
make_room (TdInstance *i)
{
  const TdSchedule *s = i->plan->s;

  if (i->nodes != NULL)
    return;
  i->nodes = zeroed (s->n_nodes, sizeof *i->nodes);
  i->nodes_owned = zeroed (s->n_nodes, sizeof *i->nodes_owned);
  i->slices = zeroed (s->n_values, sizeof *i->slices);
}

/* A part of the arena as a buffer, which counts as no memory of its own and ends with the call.
 * NULL: a value between the members of a group, of which there is a view, is nowhere. */
static TdBuffer *
slice_of (TdInstance *i, uint32_t value)
{
  TdEngine *e = &td__engine;
  TdBuffer *b = i->slices[value];

  if (b != NULL || i->address[value] == NULL)
    return b;
  b = i->slices[value] = td__slab_take (&e->buffers, sizeof *b);
  *b = (TdBuffer){ .refs = 1,
                   .block = i->arena != NULL ? i->arena->block : NULL,
                   .data = i->address[value],
                   .bytes = i->plan->s->values[value].bytes,
                   .device = i->plan->s->device,
                   .id = ++e->next_buffer_id,
                   .category = TD_MEM_STATIC };
  return b;
}

static TdBuffer *
buffer_of (const TdReplay *p, uint32_t value)
{
  TdInstance *i = p->i;
  const TdValue *v = &i->plan->s->values[value];

  switch (v->kind)
    {
    case TD_VALUE_OUTPUT:
      return i->outputs[v->index];
    case TD_VALUE_CONSTANT:
      return i->plan->s->constants[v->index].buffer;
    case TD_VALUE_GRADIENT:
      return p->given != NULL && p->given[value] != NULL ? p->given[value]->buffer
                                                         : slice_of (i, value);
    default:
      return slice_of (i, value);
    }
}

static TdNode *
node_of (const TdReplay *p, uint32_t node)
{
  TdInstance *i = p->i;
  const TdSchedule *s = i->plan->s;
  const TdNodeInfo *info = &s->nodes[node];
  TdNode *n = i->nodes[node];

  if (n != NULL)
    return n;
  n = i->nodes[node] = td__replay_node (s, node);
  i->nodes_owned[node] = true;
  n->requires_grad = info->requires_grad;
  n->retained = buffer_of (p, info->value);
  return n;
}

void
td__observe_forward (TdReplay *p, TdVar *const *in)
{
  TdInstance *i = p->i;
  const TdSchedule *s = i->plan->s;

  if (td__engine.observer == NULL)
    {
      td__observe_drop (i);
      return;
    }
  make_room (i);
  td__observe_drop (i);
  td__overwritten_begin (i);
  for (uint32_t k = s->n_externals; k-- > 0;)
    i->nodes[s->externals[k].node]
        = k < s->n_arguments ? in[k]->node : s->externals[k].var->node;
}

void
td__observe_backward (TdReplay *p)
{
  TdInstance *i = p->i;
  const TdSchedule *s = i->plan->s;
  TdNode *const *in = td__backward_op (p->b)->in;

  if (td__engine.observer == NULL)
    return;
  make_room (i);
  if (i->written == NULL) /* nobody looked at the forward */
    td__overwritten_begin (i);
  for (uint32_t k = s->n_externals; k-- > 0;)
    i->nodes[s->externals[k].node] = in[k];
  for (uint32_t n = 0; n < s->n_nodes; n++)
    {
      const TdValue *v = td__node_value (s, n);
      uint32_t out = v->kind == TD_VALUE_GY ? i->entry->op_out[v->index] : TD_ABSENT;

      if (out == TD_ABSENT || p->b->gy[out] == NULL)
        continue;
      if (i->nodes_owned[n])
        {
          i->nodes[n]->retained = NULL;
          td__node_unref (i->nodes[n]);
          i->nodes_owned[n] = false;
        }
      i->nodes[n] = p->b->gy[out]->node;
    }
}

void
td__observe_output (TdInstance *i, uint32_t node, TdNode *n)
{
  if (i->nodes == NULL || !i->nodes_owned[node])
    return;
  n->id = i->nodes[node]->id;
  n->is_leaf_known = true;
  n->counted = i->nodes[node]->counted;
}

/* --- groups --- */

/* The operation class that stands for a group in events: one for each name, never freed. */
typedef struct Named
{
  struct Named *next;
  TdOpClass cls;
  char text[];
} Named;

static Named *names;

static const TdOpClass *
group_class (const TdGroup *g)
{
  char text[160] = "";
  size_t n = 0;
  Named *named;

  for (uint32_t k = 0; k < g->n_members && n + 40 < sizeof text; k++)
    if (g->members[k].cls != NULL)
      n += (size_t)snprintf (text + n, sizeof text - n, "%s%s", n > 0 ? "+" : "",
                             g->members[k].cls->name);
  for (named = names; named != NULL; named = named->next)
    if (strcmp (named->text, text) == 0)
      return &named->cls;
  named = td__xcalloc (1, sizeof *named + n + 1);
  memcpy (named->text, text, n + 1);
  named->cls = (TdOpClass){
    .name = named->text, .label = "Fused", .group = "static", .n_in_max = -1, .n_out = -1
  };
  named->next = names;
  names = named;
  return &named->cls;
}

void
td__observe_finish (void)
{
  while (names != NULL)
    {
      Named *next = names->next;

      free (names);
      names = next;
    }
}

/* --- events --- */

typedef struct
{
  TdNode *in_room[16], *out_room[8], **in, **out;
  TdBuffer *buffer_room[8], **buffers;
  TdNode *sum; /* the sum's node, made for this event; or NULL */
} Operands;

static void
operands (const TdReplay *p, const TdStep *step, const TdReady *r, Operands *o)
{
  const TdSchedule *s = p->i->plan->s;

  o->in = step->n_in > 16 ? zeroed (step->n_in, sizeof *o->in) : o->in_room;
  o->out = step->n_out > 8 ? zeroed (step->n_out, sizeof *o->out) : o->out_room;
  o->buffers = step->n_out > 8 ? zeroed (step->n_out, sizeof *o->buffers) : o->buffer_room;
  for (uint32_t k = 0; k < step->n_in; k++)
    o->in[k] = node_of (p, td__step_in (s, step, k));
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      uint32_t node = td__step_out (s, step, k), value = s->nodes[node].value;

      if (p->given != NULL && p->given[value] != NULL && p->i->nodes[node] == NULL
          && td_shape_equal (&p->given[value]->node->shape, &s->nodes[node].shape))
        p->i->nodes[node] = p->given[value]->node; /* a view of it is another variable */
      o->out[k] = node_of (p, node);
      o->buffers[k] = o->out[k]->var != NULL ? o->out[k]->var->buffer : o->out[k]->retained;
    }
  o->sum = NULL;
  if (r == NULL || !r->run.call.accumulate)
    return;
  /* the sum is another node than what was added to, as in a call of the code */
  o->sum = td__node_new ();
  o->sum->dtype = o->out[0]->dtype;
  o->sum->shape = o->out[0]->shape;
  o->sum->layout = o->out[0]->layout;
  o->sum->device = o->out[0]->device;
  o->sum->category = o->out[0]->category;
  o->out[0] = o->sum;
}

static void
operands_free (Operands *o)
{
  if (o->sum != NULL)
    td__node_unref (o->sum);
  if (o->in != o->in_room)
    free (o->in);
  if (o->out != o->out_room)
    free (o->out);
  if (o->buffers != o->buffer_room)
    free (o->buffers);
}

/* Its own, or that of the function's call. */
static const TdSite *
line_of (const TdInstance *i, const TdStep *step)
{
  return step->site != NULL ? step->site : i->site;
}

static TdEvent
event_of (const TdReplay *p, const TdStep *step, const TdReady *r, const Operands *o)
{
  TdEngine *e = &td__engine;
  const TdInstance *i = p->i;
  const TdOpClass *cls = step->kind == TD_STEP_GROUP
                             ? group_class (&i->plan->groups[step->external])
                             : step->cls;
  bool backward = p->b != NULL;

  return (TdEvent){
    .id = backward ? ++e->next_id : i->first_id + step->event,
    .cls = cls,
    .attrs = r != NULL ? r->run.call.attrs : step->attrs,
    .site = line_of (i, step),
    .path = step->path,
    .phase = (TdPhase)step->phase,
    .flags = TD_EVENT_REPLAYED | (step->graph ? TD_EVENT_GRAPH : 0u)
             | (r != NULL && r->run.call.accumulate ? TD_EVENT_ACCUMULATE : 0u),
    .twin_id = backward && step->twin > 0 ? i->first_id + step->twin : 0,
    .order = step->order,
    .n_in = (int)step->n_in,
    .n_out = (int)step->n_out,
    .in = o->in,
    .out = o->out,
    .out_buffers = o->buffers,
    .retained_in = step->graph && cls == step->cls ? cls->retain_in : 0,
    .retained_out = step->graph && cls == step->cls ? cls->retain_out : 0,
  };
}

static TdStatus
run_one (TdReplay *p, TdReady *r)
{
  TdStatus status = td__replay_one (p, r);

  if (status == TD_OK && td__engine.config.debug && r->run.device->computes)
    status = td__debug_check (&r->run);
  return status;
}

static TdStatus
observed_op (TdReplay *p, const TdStep *step, TdReady *r, bool captures)
{
  TdObserver *o = td__engine.observer;
  TdStatus status = TD_OK;
  Operands operand;
  TdEvent event;
  bool waits = captures && r != NULL
               && td__captures_defer (p, (uint32_t)(r - p->list->ready), &status);
  bool looks;

  if (status != TD_OK)
    return status;
  if (r != NULL && r->opens && (status = td__replay_open (p, r)) != TD_OK)
    return status;
  if (o == NULL)
    {
      td__overwritten_note (p->i, step, r != NULL);
      return r != NULL ? run_one (p, r) : TD_OK;
    }
  operands (p, step, r, &operand);
  event = event_of (p, step, r, &operand);
  event.flags |= waits ? TD_EVENT_CAPTURED : 0u;
  looks = step->kind == TD_STEP_GROUP && r != NULL && !waits;
  if (looks)
    td__inside_begin (p, r);
  o->before_op (o, &event);
  p->i->plan->s->device->algorithm = NULL;
  if (waits)
    td__captures_notify (p, (uint32_t)(r - p->list->ready));
  if (looks)
    td__inside_runs ();
  if (r != NULL && !waits)
    status = run_one (p, r);
  if (status == TD_OK)
    td__overwritten_note (p->i, step, r != NULL);
  else
    event.flags |= TD_EVENT_FAILED;
  event.algorithm = p->i->plan->s->device->algorithm;
  o->after_op (o, &event);
  if (looks)
    td__inside_end ();
  operands_free (&operand);
  return status;
}

/* Run a step that is no operation: scopes, links, effects, reads by the host, propagation. */
static TdStatus
observed_other (TdReplay *p, const TdStep *step, TdReady *r, bool captures)
{
  TdObserver *o = td__engine.observer;
  const TdSite *site = line_of (p->i, step);
  TdStatus status = TD_OK;
  bool waits;

  if (o != NULL && (step->kind == TD_STEP_LINK_ENTER || step->kind == TD_STEP_LINK_LEAVE))
    {
      o->link (o, step->kind == TD_STEP_LINK_ENTER, step->path, site);
      o->scope (o, step->kind == TD_STEP_LINK_ENTER,
                &(TdScope){ .is_link = true,
                            .site = site }); /* the scope of the link's call, as in the code */
    }
  else if (o != NULL && (step->kind == TD_STEP_SCOPE_OPEN || step->kind == TD_STEP_SCOPE_CLOSE))
    o->scope (o, step->kind == TD_STEP_SCOPE_OPEN,
              &(TdScope){ .name = step->text, .site = site });
  else if (o != NULL && step->kind == TD_STEP_HOST_READ)
    o->host_read (o, node_of (p, td__step_in (p->i->plan->s, step, 0)), site);
  if (r == NULL)
    return TD_OK;
  waits = captures && td__captures_defer (p, (uint32_t)(r - p->list->ready), &status);
  if (status != TD_OK)
    return status;
  if (r->opens && td__replay_open (p, r) != TD_OK)
    return td__error_status ();
  td__overwritten_note (p->i, step, true);
  return waits ? TD_OK : td__replay_one (p, r);
}

TdStatus
td__replay_observed (TdReplay *p)
{
  const TdSteps *steps = p->list->steps;
  const bool captures = td__captures_begin (p);
  TdStatus status = TD_OK;

  p->observed = td__engine.observer != NULL;
  if (p->observed)
    make_room (p->i);
  for (uint32_t k = 0; k < steps->n && status == TD_OK; k++)
    {
      const TdStep *step = &steps->steps[k];
      TdReady *r = p->list->at[k] != TD_ABSENT ? &p->list->ready[p->list->at[k]] : NULL;

      status = step->kind == TD_STEP_OP || step->kind == TD_STEP_GROUP
                   ? observed_op (p, step, r, captures)
                   : observed_other (p, step, r, captures);
    }
  return status == TD_OK && captures ? td__captures_end (p) : status;
}
