/* The tracer of the forward pass, and what it shares with that of backward (trace-backward.c).
 *
 * SPDX-License-Identifier: MIT */
#include "trace.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include "trace-private.h"

#include <stdio.h>
#include <string.h>

void
td__trace_refuse (TdTrace *t, const TdSite *site, const char *format, ...)
{
  va_list args;

  if (t->refused[0] != '\0')
    return;
  va_start (args, format);
  vsnprintf (t->refused, sizeof t->refused, format, args);
  va_end (args);
  t->refused_site = site != NULL ? site : td__engine.site;
}

TdSteps *
td__trace_list (TdTrace *t)
{
  return t->state == TD_TRACE_BACKWARD ? &t->backward.list : &t->schedule->forward;
}

static void
know (TdTrace *t, uint32_t node, uint64_t node_id, uint64_t buffer_id)
{
  td__map_put (&t->nodes, node_id, node);
  td__map_put (&t->buffers, buffer_id, t->schedule->nodes[node].value);
}

void
td__trace_know (TdTrace *t, uint32_t node, const TdVar *v)
{
  know (t, node, v->node->id, v->buffer->id);
}

static void
keep (TdTrace *t, uint32_t value, TdBuffer *b)
{
  t->kept = td__xrealloc (t->kept, (value + 1) * sizeof *t->kept);
  while (t->n_kept <= value)
    t->kept[t->n_kept++] = NULL;
  t->kept[value] = td__buffer_ref (b);
}

uint32_t
td__trace_new_node (TdTrace *t, TdValueKind kind, uint32_t index, const TdNode *n,
                    const TdBuffer *b)
{
  uint32_t value = td__schedule_value (t->schedule, kind, index, b->bytes);

  if (t->keeps)
    keep (t, value, (TdBuffer *)(uintptr_t)b);
  return td__schedule_node (t->schedule, value, n);
}

/* A variable that the code did not make: it must outlive the call. */
static uint32_t
capture (TdTrace *t, TdVar *v)
{
  TdSchedule *s = t->schedule;
  uint32_t value = td__map_get (&t->buffers, v->buffer->id), node;

  if (v->node->creator != NULL)
    {
      td__trace_refuse (t, v->site,
                        "uses a variable that was made outside it, at %s:%d: pass it as an "
                        "argument",
                        v->site != NULL ? v->site->file : "?",
                        v->site != NULL ? v->site->line : 0);
      return TD_ABSENT;
    }
  if (v->node->device != s->device)
    {
      td__trace_refuse (t, v->site, "uses variables of two devices");
      return TD_ABSENT;
    }
  if (value == TD_ABSENT)
    value = td__schedule_value (s, TD_VALUE_EXTERNAL, s->n_externals, v->buffer->bytes);
  node = td__schedule_node (s, value, v->node);
  s->externals = td__xrealloc (s->externals, (s->n_externals + 1) * sizeof *s->externals);
  s->externals[s->n_externals] = (TdExternal){ .node = node,
                                               .argument = -1,
                                               .var = td__var_ref (v, TD_HOLD_ENGINE),
                                               .node_id = v->node->id,
                                               .retained = v->holds[TD_HOLD_USER] > 0 };
  td__map_put (&t->external, v->node->id, s->n_externals++);
  know (t, node, v->node->id, v->buffer->id);
  return node;
}

uint32_t
td__trace_operand (TdTrace *t, TdVar *v)
{
  uint32_t node = td__map_get (&t->nodes, v->node->id), value;

  if (node != TD_ABSENT)
    return node;
  if (t->state == TD_TRACE_FORWARD)
    return capture (t, v);
  value = td__map_get (&t->buffers, v->buffer->id);
  if (value == TD_ABSENT)
    {
      td__trace_refuse (t, v->site, "backward uses an array of shape unknown to the trace");
      return TD_ABSENT;
    }
  node = td__schedule_node (t->schedule, value, v->node);
  td__map_put (&t->nodes, v->node->id, node);
  return node;
}

/* A foreign array is about to be changed in place: from here on the function has its own. */
static uint32_t
own_copy (TdTrace *t, uint32_t node, TdVar *v)
{
  TdSchedule *s = t->schedule;
  uint32_t value = td__schedule_value (s, TD_VALUE_INTERIOR, 0, v->buffer->bytes);
  uint32_t copy = td__schedule_node (s, value, v->node), at = td__schedule_operands (s, 2);
  TdStep *step = td__steps_add (td__trace_list (t));

  step->kind = TD_STEP_COPY;
  step->phase = (uint8_t)td__engine.phase;
  step->in = at;
  step->n_in = 1;
  step->out = at + 1;
  step->n_out = 1;
  step->site = td__trace_site (t, td__engine.site);
  step->path = td__engine.path;
  s->operands[at] = node;
  s->operands[at + 1] = copy;
  s->values[value].n_writers = 1;
  know (t, copy, v->node->id, v->buffer->id);
  td__trace_notify (t);
  return copy;
}

static bool
was_given (const TdTrace *t, uint32_t value)
{
  return value < t->n_given && t->given[value];
}

/* The node that stands for v when a step writes into it. */
uint32_t
td__trace_target (TdTrace *t, TdVar *v)
{
  uint32_t node = td__trace_operand (t, v);
  TdValue *value;

  if (node == TD_ABSENT)
    return node;
  value = td__node_value (t->schedule, node);
  if (t->state == TD_TRACE_BACKWARD
      && (value->kind == TD_VALUE_GY || value->kind == TD_VALUE_EXTERNAL
          || value->kind == TD_VALUE_CONSTANT || value->kind == TD_VALUE_OUTPUT
          || was_given (t, t->schedule->nodes[node].value)))
    node = own_copy (t, node, v);
  else if (value->kind == TD_VALUE_CONSTANT)
    node = own_copy (t, node, v);
  value = td__node_value (t->schedule, node);
  if (value->kind == TD_VALUE_EXTERNAL)
    value->is_state = true;
  value->n_writers++;
  return node;
}

static void
claim_random (TdTrace *t, TdStep *step)
{
  const TdRngKey *key = step->attrs;

  for (uint32_t i = 0; i < t->n_draws; i++)
    if (t->draws[i].offset == key->offset && t->seed == key->seed)
      {
        t->draws[i].used = true;
        step->random = true;
        step->random_at = t->state == TD_TRACE_FORWARD ? i : t->draws[i].at;
        return;
      }
}

static bool
same_kind (const TdTensor *t, const TdNode *n)
{
  return t->dtype == (TdDtype)n->dtype && t->layout == n->layout
         && td_shape_equal (t->shape, &n->shape);
}

/* The first output: a target that was added to, a new gradient for an external, or new. */
static uint32_t
first_output (TdTrace *t, const TdTraceOp *op, TdStep *step)
{
  TdNode *into = t->into;
  TdSchedule *s = t->schedule;
  uint32_t external, node;

  if (into != NULL && (op->call->cls->flags & TD_OP_ACCUMULATES) && op->call->n_out == 1
      && same_kind (&op->call->out[0], into)
      && (external = td__map_get (&t->external, into->id)) != TD_ABSENT)
    {
      step->external = external;
      node = td__trace_new_node (t, TD_VALUE_GRADIENT, 0, op->nodes[0], op->buffers[0]);
      s->values[s->nodes[node].value].n_writers = 1;
      if (!op->call->accumulate)
        know (t, node, op->nodes[0]->id, op->buffers[0]->id);
      if (t->n_into_results < TD_TRACE_MAX_INTO)
        {
          t->into_results[t->n_into_results].node = into;
          t->into_results[t->n_into_results++].result = node;
        }
      return node;
    }
  if (op->call->accumulate)
    {
      step->accumulate = true;
      return td__trace_target (t, op->into);
    }
  node = td__trace_new_node (t, TD_VALUE_INTERIOR, 0, op->nodes[0], op->buffers[0]);
  s->values[s->nodes[node].value].n_writers = 1;
  know (t, node, op->nodes[0]->id, op->buffers[0]->id);
  return node;
}

static void
trace_outputs (TdTrace *t, const TdTraceOp *op, TdStep *step, uint32_t at)
{
  TdSchedule *s = t->schedule;

  for (int i = 0; i < op->call->n_out; i++)
    {
      uint32_t node;

      if (i == 0 && (op->call->cls->flags & TD_OP_VIEW))
        {
          node = td__schedule_node (s, s->nodes[s->operands[step->in]].value, op->nodes[0]);
          know (t, node, op->nodes[0]->id, op->buffers[0]->id);
        }
      else if (i == 0)
        node = first_output (t, op, step);
      else
        {
          node = td__trace_new_node (t, TD_VALUE_INTERIOR, 0, op->nodes[i], op->buffers[i]);
          s->values[s->nodes[node].value].n_writers = 1;
          know (t, node, op->nodes[i]->id, op->buffers[i]->id);
        }
      s->operands[at + (uint32_t)i] = node;
    }
}

static void
trace_op (TdTracer *tracer, const TdTraceOp *op)
{
  TdTrace *t = (TdTrace *)(void *)tracer;
  TdEngine *e = &td__engine;
  TdSchedule *s = t->schedule;
  const TdOpCall *call = op->call;
  uint32_t in = td__schedule_operands (s, (uint32_t)call->n_in), out;
  TdStep built = { 0 }, *step;

  if ((call->cls->flags & TD_OP_CAPTURES) || call->cls->release != NULL)
    td__trace_refuse (t, op->site, "%s cannot be in a schedule", call->cls->name);
  if (t->refused[0] != '\0')
    return;
  for (int i = 0; i < call->n_in; i++)
    {
      uint32_t node = td__bit (call->cls->writes, i) ? td__trace_target (t, op->in[i])
                                                     : td__trace_operand (t, op->in[i]);
      if (node == TD_ABSENT)
        return;
      s->operands[in + (uint32_t)i] = node;
    }
  out = td__schedule_operands (s, (uint32_t)call->n_out);
  built.kind = TD_STEP_OP;
  built.phase = (uint8_t)e->phase;
  built.graph = op->graph;
  built.in = in;
  built.n_in = (uint32_t)call->n_in;
  built.out = out;
  built.n_out = (uint32_t)call->n_out;
  built.cls = call->cls;
  built.site = td__trace_site (t, op->site);
  built.path = op->path;
  built.external = TD_ABSENT;
  if (call->cls->attrs_size > 0)
    {
      built.attrs = td__xmalloc (call->cls->attrs_size);
      memcpy (built.attrs, call->attrs, call->cls->attrs_size);
    }
  if (call->cls->flags & TD_OP_RANDOM)
    claim_random (t, &built);
  trace_outputs (t, op, &built, out);
  if (call->cls != &td__to_layout_class) /* an operand of the call that it is for */
    t->into = NULL;
  if (t->state == TD_TRACE_FORWARD)
    built.event = (uint32_t)(e->next_id - t->first);
  else
    {
      built.event = 1;
      built.twin = (uint32_t)(e->twin_id - t->first);
      built.order
          = call->cls == &td__to_layout_class ? TD_ORDER_APART | e->order : e->order - 1;
    }
  step = td__steps_add (td__trace_list (t)); /* after the copies that its operands asked for */
  *step = built;
  td__trace_list (t)->n_events++;
  td__trace_notify (t);
}

static void
trace_array (TdTracer *tracer, TdVar *v, const TdTraceArray *how)
{
  TdTrace *t = (TdTrace *)(void *)tracer;
  TdSchedule *s = t->schedule;
  uint32_t node, at;
  TdStep *step;

  if (t->refused[0] != '\0')
    return;
  if (v->node->device != s->device)
    {
      td__trace_refuse (t, v->site, "makes an array on another device");
      return;
    }
  if (how->origin == TD_ARRAY_UPLOAD)
    {
      s->constants = td__xrealloc (s->constants, (s->n_constants + 1) * sizeof *s->constants);
      s->constants[s->n_constants]
          = (TdConstant){ td__buffer_ref (v->buffer),
                          v->site != NULL ? v->site : td__engine.site, how->drawn };
      node = td__trace_new_node (t, TD_VALUE_CONSTANT, s->n_constants++, v->node, v->buffer);
      know (t, node, v->node->id, v->buffer->id);
      return;
    }
  node = td__trace_new_node (t, TD_VALUE_INTERIOR, 0, v->node, v->buffer);
  know (t, node, v->node->id, v->buffer->id);
  s->values[s->nodes[node].value].n_writers = 1;
  at = td__schedule_operands (s, 1);
  s->operands[at] = node;
  step = td__steps_add (td__trace_list (t));
  step->kind = TD_STEP_FILL;
  step->phase = (uint8_t)td__engine.phase;
  step->out = at;
  step->n_out = 1;
  step->how = *how;
  step->site = td__trace_site (t, v->site);
  step->path = td__engine.path;
  if (how->origin == TD_ARRAY_RANDOM)
    {
      step->attrs = td__xmalloc (sizeof how->key);
      memcpy (step->attrs, &how->key, sizeof how->key);
      claim_random (t, step);
    }
  td__trace_notify (t);
}

static void
trace_random (TdTracer *tracer, uint64_t offset, uint64_t n)
{
  TdTrace *t = (TdTrace *)(void *)tracer;

  if (t->state == TD_TRACE_BACKWARD)
    td__trace_refuse (t, NULL, "backward draws random numbers");
  t->draws = td__xrealloc (t->draws, (t->n_draws + 1) * sizeof *t->draws);
  t->draws[t->n_draws++] = (TdDraw){ .offset = offset, .n = n };
}

/* Reading numbers is a decision of the code's: the same numbers must come again. */
static void
trace_host_read (TdTracer *tracer, const TdVar *v, const TdSite *site)
{
  TdTrace *t = (TdTrace *)(void *)tracer;
  uint32_t node = t->refused[0] == '\0' && !t->in_effect
                      ? td__trace_operand (t, (TdVar *)(uintptr_t)v)
                      : TD_ABSENT;
  uint32_t at;
  TdStep *step;

  if (node == TD_ABSENT || t->in_effect)
    return;
  at = td__schedule_operands (t->schedule, 1);
  t->schedule->operands[at] = node;
  step = td__steps_add (td__trace_list (t));
  step->kind = TD_STEP_HOST_READ;
  step->in = at;
  step->n_in = 1;
  step->site = td__trace_site (t, site);
  step->path = td__engine.path;
  step->bytes = td__xmalloc (v->buffer->bytes + 1);
  if (td__copy_out (v->node->device, step->bytes, v->buffer->data, v->buffer->bytes,
                    TD_COPY_CHECK, v->node, site)
      != TD_OK)
    td__trace_refuse (t, site, "reads numbers that cannot be kept");
  td__trace_notify (t);
}

/* Nothing uses the variable yet, or ever: another one in its place would not be noticed.  Those
 * of links have the guard of links. */
static void
trace_looked (TdTracer *tracer, TdVar *v)
{
  TdTrace *t = (TdTrace *)(void *)tracer;

  if (t->refused[0] == '\0' && !t->in_effect && t->state == TD_TRACE_FORWARD
      && v->holds[TD_HOLD_USER] > 0 && v->holds[TD_HOLD_LINK] == 0)
    td__trace_operand (t, v);
}

static void
trace_asked (TdTracer *tracer, const char *call)
{
  TdTrace *t = (TdTrace *)(void *)tracer;

  if (!t->in_effect) /* which runs at each replay */
    td__trace_refuse (t, NULL,
                      "asks %s, which no guard sees: pass what it returns as an argument, or "
                      "keep it where td_static_watch sees it",
                      call);
}

static void
trace_effect (TdTracer *tracer, const TdTraceEffect *effect, TdVar *v)
{
  TdTrace *t = (TdTrace *)(void *)tracer;
  uint32_t node = TD_ABSENT, at = 0;
  TdStep *step;

  if (v != NULL && t->refused[0] == '\0' && !t->in_effect)
    node = td__trace_operand (t, v);
  if (t->refused[0] != '\0' || t->in_effect)
    {
      if (effect->free != NULL)
        effect->free (effect->data);
      return;
    }
  if (v != NULL)
    {
      at = td__schedule_operands (t->schedule, 1);
      t->schedule->operands[at] = node;
    }
  step = td__steps_add (td__trace_list (t));
  step->kind = TD_STEP_EFFECT;
  step->in = at;
  step->n_in = v != NULL;
  step->effect = *effect;
  step->site = td__trace_site (t, td__engine.site);
  step->path = td__engine.path;
  td__trace_notify (t);
}

static void
trace_link (TdTracer *tracer, bool enter, const TdPath *path, const TdSite *site, void *self,
            size_t self_bytes)
{
  TdTrace *t = (TdTrace *)(void *)tracer;
  TdStep *step;

  if (t->refused[0] != '\0')
    return;
  if (enter && t->guards != NULL && self_bytes > 0)
    td__guards_watch (t->guards, path->text, site, self, self_bytes);
  step = td__steps_add (td__trace_list (t));
  t->enters = enter;
  step->kind = enter ? TD_STEP_LINK_ENTER : TD_STEP_LINK_LEAVE;
  step->path = path;
  step->site = td__trace_site (t, site);
  td__trace_notify (t);
}

static void
trace_scope (TdTracer *tracer, bool open, const TdScope *scope)
{
  TdTrace *t = (TdTrace *)(void *)tracer;
  TdStep *step;

  if (open && t->enters) /* it is marked as the link's only when it is open */
    {
      t->enters = false;
      return;
    }
  if (scope->is_link || scope->name == NULL || t->refused[0] != '\0')
    return;
  step = td__steps_add (td__trace_list (t));
  step->kind = open ? TD_STEP_SCOPE_OPEN : TD_STEP_SCOPE_CLOSE;
  step->text = scope->name;
  step->site = td__trace_site (t, scope->site);
  td__trace_notify (t);
}

static void
trace_refuse (TdTracer *tracer, const char *what, const TdSite *site)
{
  td__trace_refuse ((TdTrace *)(void *)tracer, site, "%s cannot be in a schedule", what);
}

static void
trace_into (TdTracer *tracer, TdNode *node)
{
  ((TdTrace *)(void *)tracer)->into = node;
}

static TdTrace *
trace_new (TdSchedule *s)
{
  TdTrace *t = td__xcalloc (1, sizeof *t);

  t->tracer = (TdTracer){ .op = trace_op,
                          .array = trace_array,
                          .random = trace_random,
                          .host_read = trace_host_read,
                          .looked = trace_looked,
                          .asked = trace_asked,
                          .effect = trace_effect,
                          .link = trace_link,
                          .scope = trace_scope,
                          .refuse = trace_refuse,
                          .into = trace_into };
  t->schedule = s;
  t->seed = td__engine.rng_seed;
  return t;
}

static void
add_argument (TdTrace *t, TdVar *v, int i)
{
  TdSchedule *s = t->schedule;
  uint32_t node = td__map_get (&t->nodes, v->node->id);
  uint32_t value = td__map_get (&t->buffers, v->buffer->id);

  if (node == TD_ABSENT)
    {
      if (value == TD_ABSENT)
        value = td__schedule_value (s, TD_VALUE_EXTERNAL, (uint32_t)i, v->buffer->bytes);
      node = td__schedule_node (s, value, v->node);
      td__map_put (&t->external, v->node->id, (uint32_t)i);
      know (t, node, v->node->id, v->buffer->id);
    }
  s->externals[i] = (TdExternal){ .node = node, .argument = i, .node_id = v->node->id };
  if (v->node->device != s->device)
    td__trace_refuse (t, v->site, "has arguments on two devices");
}

TdTrace *
td__trace_begin (TdVar *const *in, int n_in, TdGuards *guards)
{
  TdEngine *e = &td__engine;
  TdTrace *t = trace_new (td__schedule_new ((uint32_t)n_in));
  TdSchedule *s = t->schedule;

  t->guards = guards;
  t->first = e->next_id;
  s->device = n_in > 0 ? in[0]->node->device : e->device;
  s->externals = td__xcalloc ((size_t)n_in + 1, sizeof *s->externals);
  s->n_externals = (uint32_t)n_in;
  for (int i = 0; i < n_in; i++)
    add_argument (t, in[i], i);
  e->tracer = &t->tracer;
  return t;
}

/* Where in the stream each step's numbers begin, without those for new parameters. */
static void
settle_random (TdTrace *t)
{
  TdSchedule *s = t->schedule;
  uint64_t at = 0;

  for (uint32_t i = 0; i < t->n_draws; i++)
    if (t->draws[i].used)
      {
        t->draws[i].at = at;
        at += t->draws[i].n;
      }
  s->random_total = at;
  for (uint32_t i = 0; i < s->forward.n; i++)
    if (s->forward.steps[i].random)
      s->forward.steps[i].random_at = t->draws[s->forward.steps[i].random_at].at;
}

static void
settle_output (TdTrace *t, uint32_t k, TdVar *v)
{
  TdSchedule *s = t->schedule;
  TdOutput *out = &s->outputs[k];
  uint32_t node = v->state == TD_VAR_LIVE ? td__trace_operand (t, v) : TD_ABSENT;

  *out = (TdOutput){ node, TD_ABSENT, TD_ABSENT };
  if (node == TD_ABSENT)
    {
      td__trace_refuse (t, NULL, "returned no variable as output %u", k);
      return;
    }
  for (uint32_t i = 0; i < k; i++)
    if (s->outputs[i].node == node)
      out->same_as = i;
  for (uint32_t i = 0; i < s->n_externals; i++)
    if (s->externals[i].node == node)
      out->external = i;
  if (td__node_value (s, node)->kind == TD_VALUE_CONSTANT)
    {
      out->node = node = own_copy (t, node, v);
      td__map_put (&t->nodes, v->node->id, node);
    }
  if (td__node_value (s, node)->kind == TD_VALUE_INTERIOR)
    {
      td__node_value (s, node)->kind = TD_VALUE_OUTPUT;
      td__node_value (s, node)->index = k;
    }
}

void
td__trace_finish (TdTrace *t, TdVar *const *out, int n_out)
{
  TdEngine *e = &td__engine;
  TdSchedule *s = t->schedule;

  s->outputs = td__xcalloc ((size_t)n_out + 1, sizeof *s->outputs);
  t->outs = td__xcalloc ((size_t)n_out + 1, sizeof *t->outs);
  t->out_ids = td__xcalloc ((size_t)n_out + 1, sizeof *t->out_ids);
  s->n_outputs = (uint32_t)n_out;
  for (int k = 0; k < n_out && t->refused[0] == '\0'; k++)
    settle_output (t, (uint32_t)k, out[k]);
  for (int k = 0; k < n_out && t->refused[0] == '\0'; k++)
    {
      t->outs[k] = out[k]->node;
      t->out_ids[k] = out[k]->node->id;
    }
  e->tracer = NULL;
  t->last = e->next_id;
  if (n_out > 64)
    td__trace_refuse (t, NULL, "returns more than 64 variables");
  settle_random (t);
}

/* The draws of a forward that was run again. */
static void
known_draws (TdTrace *t, TdRngKey key)
{
  const TdSteps *list = &t->schedule->forward;

  t->seed = key.seed;
  t->draws = td__xcalloc (list->n + 1, sizeof *t->draws);
  for (uint32_t i = 0; i < list->n; i++)
    if (list->steps[i].random)
      t->draws[t->n_draws++] = (TdDraw){ .offset = key.offset + list->steps[i].random_at,
                                         .at = list->steps[i].random_at };
}

TdTrace *
td__trace_of_backward (TdSchedule *s, TdVar *const *externals, uint64_t first, uint64_t last,
                       TdRngKey key)
{
  TdTrace *t = trace_new (s);

  t->first = first;
  t->last = last;
  known_draws (t, key);
  t->outs = td__xcalloc ((size_t)s->n_outputs + 1, sizeof *t->outs);
  t->out_ids = td__xcalloc ((size_t)s->n_outputs + 1, sizeof *t->out_ids);
  for (uint32_t i = 0; i < s->n_externals; i++)
    {
      if (td__map_get (&t->external, externals[i]->node->id) == TD_ABSENT)
        td__map_put (&t->external, externals[i]->node->id, i);
      td__trace_know (t, s->externals[i].node, externals[i]);
    }
  for (uint32_t i = 0; i < s->n_constants; i++)
    for (uint32_t n = 0; n < s->n_values; n++)
      if (s->values[n].kind == TD_VALUE_CONSTANT && s->values[n].index == i)
        td__map_put (&t->buffers, s->constants[i].buffer->id, n);
  return t;
}

void
td__trace_know_output (TdTrace *t, uint32_t k, TdVar *v)
{
  t->outs[k] = v->node;
  t->out_ids[k] = v->node->id;
}

void
td__trace_keep_no_more (TdTrace *t)
{
  for (uint32_t k = 0; k < t->n_kept; k++)
    td__buffer_unref (t->kept[k]);
  t->n_kept = 0;
  t->keeps = false;
}

void
td__trace_free (TdTrace *t)
{
  TdTrace **at = &td__engine.traces;

  if (t == NULL)
    return;
  while (*at != NULL && *at != t)
    at = &(*at)->next;
  if (*at == t)
    *at = t->next;
  if (td__engine.tracer == &t->tracer)
    td__engine.tracer = NULL;
  td__trace_forget (t);
  td__map_free (&t->nodes);
  td__map_free (&t->buffers);
  td__map_free (&t->external);
  td__steps_free (&t->backward.list);
  free (t->backward.wanted);
  td__trace_keep_no_more (t);
  free (t->kept);
  free (t->given);
  free (t->draws);
  free (t->outs);
  free (t->out_ids);
  free (t);
}
