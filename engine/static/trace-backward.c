/* The tracer of backward: which operations the backward of the function's operations ran, and
 * which gradients they gave to what lies outside.
 *
 * Ids of the function's operations are contiguous and backward goes from new to old, so its
 * part of a larger backward is contiguous too, and begins when the gradients of its outputs are
 * complete.  Gradients for the outside are PROPAGATE steps: how they are collected there
 * depends on what is there at replay.
 *
 * SPDX-License-Identifier: MIT */
#include "notify.h"
#include "host-memory.h"
#include "trace-private.h"

#include <string.h>

/* The node of output k, if it lives. */
static TdNode *
output_node (const TdTrace *t, uint32_t k)
{
  return t->outs[k] != NULL && t->outs[k]->id == t->out_ids[k] ? t->outs[k] : NULL;
}

static bool
is_ours (const TdTrace *t, const TdOp *op)
{
  return op != NULL && op->id > t->first && op->id <= t->last;
}

bool
td__trace_is_over (const TdTrace *t)
{
  for (uint32_t k = 0; k < t->schedule->n_outputs; k++)
    {
      const TdNode *n = output_node (t, k);

      if (n != NULL && is_ours (t, n->creator))
        return false;
    }
  return true;
}

/* The gradient that came to output k: taken by op already, or still at the node. */
static TdVar *
gradient_of (const TdTrace *t, uint32_t k, const TdOp *op, TdVar *const *gy)
{
  TdNode *n = output_node (t, k);

  if (n == NULL || !is_ours (t, n->creator) || t->schedule->outputs[k].same_as != TD_ABSENT)
    return NULL;
  return n->creator == op ? gy[n->out_index] : n->acc;
}

/* Give every gradient of an output its value. */
static void
meet_gradients (TdTrace *t, const TdOp *op, TdVar *const *gy)
{
  TdSchedule *s = t->schedule;

  for (uint32_t k = 0; k < s->n_outputs; k++)
    {
      TdVar *g = gradient_of (t, k, op, gy);
      uint32_t value, node;

      if (g == NULL)
        continue;
      t->backward.gy_given |= (uint64_t)1 << k;
      value = td__map_get (&t->buffers, g->buffer->id);
      if (value != TD_ABSENT && s->values[value].kind != TD_VALUE_GY)
        td__trace_refuse (t, NULL, "got an array as gradient that it knows already");
      for (uint32_t j = 0; j < k; j++)
        {
          const TdVar *other = gradient_of (t, j, op, gy);

          if (other != NULL && other->buffer == g->buffer)
            t->backward.gy_alias = t->backward.gy_alias * 4096 + k * 64 + j + 1;
        }
      if (value == TD_ABSENT)
        value = td__schedule_value (s, TD_VALUE_GY, k, g->buffer->bytes);
      node = td__schedule_node (s, value, g->node);
      td__map_put (&t->nodes, g->node->id, node);
      td__map_put (&t->buffers, g->buffer->id, value);
    }
}

static void
begin (TdTrace *t, const TdOp *op, TdVar *const *gy)
{
  TdSchedule *s = t->schedule;

  t->state = TD_TRACE_BACKWARD;
  t->random_before = td__engine.rng_offset;
  t->backward = (TdBackwardTrace){ 0 };
  meet_gradients (t, op, gy);
  td__schedule_reach (s, &t->backward);
  t->reported = true;
  td__static_notify_run (TD_RUN_BEGINS, TD_RUN_TRACED, t->function, 0, s->n_backwards + 1);
}

static void
notify_end (TdTrace *t)
{
  if (t->reported)
    td__static_notify_run (TD_RUN_ENDS, TD_RUN_TRACED, t->function, 0,
                           t->schedule->n_backwards + 1);
  t->reported = false;
}

/* The trace whose operation's backward runs: one backward may pass through several. */
static TdTrace *current;

void
td__trace_forget (const TdTrace *t)
{
  if (current == t)
    current = NULL;
}

static bool
step_begin (const TdOp *op, TdVar *const *gy,
            bool (*wanted) (const void *walk, const TdNode *n), const void *walk)
{
  TdEngine *e = &td__engine;
  TdTrace *t = e->traces;

  if (e->tracer != NULL || e->hooks != NULL || e->config.enable_backprop)
    return false;
  for (; t != NULL && (!is_ours (t, op) || t->state == TD_TRACE_DONE); t = t->next)
    if (t->state == TD_TRACE_BACKWARD) /* its part is over */
      notify_end (t);
  if (t == NULL)
    return false;
  if (t->state == TD_TRACE_WAITING)
    begin (t, op, gy);
  for (int i = 0; i < op->n_in; i++)
    {
      uint32_t external = td__map_get (&t->external, op->in[i]->id);

      if (external != TD_ABSENT && wanted (walk, op->in[i]))
        t->backward.wanted[external / 64] |= (uint64_t)1 << external % 64;
    }
  t->n_into_results = 0;
  t->into = NULL;
  e->tracer = &t->tracer;
  current = t;
  return true;
}

static void
remember_given (TdTrace *t, uint32_t value)
{
  if (value >= t->n_given)
    {
      uint32_t n = t->schedule->n_values;

      t->given = td__xrealloc (t->given, n * sizeof *t->given);
      memset (t->given + t->n_given, 0, (n - t->n_given) * sizeof *t->given);
      t->n_given = n;
    }
  t->given[value] = true;
}

/* The node of gx: what a kernel made for this input, or any array that is known. */
static uint32_t
given_node (TdTrace *t, const TdOp *op, int i, TdVar *gx, bool into)
{
  for (int k = 0; k < t->n_into_results && into; k++)
    if (t->into_results[k].node == op->in[i])
      return t->into_results[k].result;
  return td__trace_operand (t, gx);
}

static void
give (TdTrace *t, uint32_t node, uint32_t external)
{
  TdSchedule *s = t->schedule;
  TdValue *value = td__node_value (s, node);
  uint32_t at = td__schedule_operands (s, 1);
  TdStep *step = td__steps_add (&t->backward.list);

  if (value->kind == TD_VALUE_INTERIOR)
    value->kind = TD_VALUE_GRADIENT;
  remember_given (t, s->nodes[node].value);
  s->operands[at] = node;
  step->kind = TD_STEP_PROPAGATE;
  step->phase = TD_PHASE_BACKWARD;
  step->in = at;
  step->n_in = 1;
  step->external = external;
  step->site = td__trace_site (t, td__engine.site);
  step->path = td__engine.path;
  td__trace_notify (t);
}

static void
take_gradient (const TdOp *op, int i, TdVar *gx, bool into)
{
  TdTrace *t = current;
  const TdNode *n = op->in[i];
  uint32_t external, node;

  if (t == NULL || t->refused[0] != '\0' || is_ours (t, n->creator))
    return;
  external = td__map_get (&t->external, n->id);
  td__engine.tracer = NULL; /* collecting is not ours */
  if (external == TD_ABSENT)
    td__trace_refuse (t, op->site, "has a gradient for a variable it does not know");
  else if ((node = given_node (t, op, i, gx, into)) != TD_ABSENT)
    give (t, node, external);
}

static void
collected (const TdOp *op, int i)
{
  TdTrace *t = current;

  (void)op;
  (void)i;
  if (t != NULL)
    td__engine.tracer = &t->tracer;
}

static void
step_end (TdStatus status)
{
  TdTrace *t = current;

  td__engine.tracer = NULL;
  current = NULL;
  if (t != NULL && status != TD_OK)
    td__trace_refuse (t, NULL, "failed in backward");
}

/* Interior values that the forward wrote (those below first_value were there before). */
static void
mark_saved (TdSchedule *s, const TdSteps *list)
{
  bool *made = td__xcalloc (s->n_values + 1, sizeof *made);

  for (uint32_t i = 0; i < s->forward.n; i++)
    for (uint32_t k = 0; k < s->forward.steps[i].n_out; k++)
      made[s->nodes[td__step_out (s, &s->forward.steps[i], k)].value] = true;
  for (uint32_t i = 0; i < list->n; i++)
    for (uint32_t k = 0; k < list->steps[i].n_in; k++)
      {
        uint32_t value = s->nodes[td__step_in (s, &list->steps[i], k)].value;

        if (made[value])
          s->values[value].is_saved = true;
      }
  free (made);
}

static void
finish (TdTrace *t, TdStatus status)
{
  TdSchedule *s = t->schedule;

  notify_end (t);
  t->state = TD_TRACE_DONE;
  if (td__engine.rng_offset != t->random_before)
    td__trace_refuse (t, NULL, "drew random numbers in backward");
  if (status != TD_OK)
    td__trace_refuse (t, NULL, "failed in backward");
  if (t->refused[0] != '\0')
    {
      td__steps_free (&t->backward.list);
      free (t->backward.wanted);
      t->state = TD_TRACE_WAITING; /* another backward may do */
      memcpy (t->why, t->refused, sizeof t->why);
      t->refused[0] = '\0';
    }
  else
    {
      s->backwards = td__xrealloc (s->backwards, (s->n_backwards + 1) * sizeof *s->backwards);
      s->backwards[s->n_backwards++] = t->backward;
      mark_saved (s, &t->backward.list);
    }
  t->backward = (TdBackwardTrace){ 0 };
  t->n_given = 0;
}

static void
backward_end (TdStatus status)
{
  TdTrace *t;

  for (t = td__engine.traces; t != NULL; t = t->next)
    if (t->state == TD_TRACE_BACKWARD)
      finish (t, status);
  t = td__engine.traces;
  while (t != NULL)
    if (t->state == TD_TRACE_DONE && t->traced_backward != NULL)
      {
        t->traced_backward (t);
        t = td__engine.traces;
      }
    else
      t = t->next;
}

void
td__trace_wait (TdTrace *t)
{
  static const TdTraceTable table = { .step_begin = step_begin,
                                      .gradient = take_gradient,
                                      .collected = collected,
                                      .step_end = step_end,
                                      .backward_end = backward_end };

  t->state = TD_TRACE_WAITING;
  t->next = td__engine.traces;
  td__engine.traces = t;
  td__engine.trace_table = &table;
}
