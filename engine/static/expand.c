/* A replayed call becomes an ordinary graph: its trace is interpreted, and the operations that
 * this makes take the place of the call's one operation, with the ids that the code's would
 * have.  Backward then goes through the same graph as the code's, in the same order, so that
 * sums of gradients, and gradients of gradients, have the same bits.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"
#include "host-memory.h"
#include "static.h"
#include "verify.h"

#include <stdlib.h>

typedef struct
{
  TdInstance *i;
  TdOp *call;
  TdBackward *b;             /* NULL: nobody goes backward yet */
  TdVar **externals, **vars; /* vars: by node of the schedule */
  TdVar *ys[64], *gys[64];   /* results that have a gradient */
  int n;
  bool trace; /* the backward that comes */
} Expansion;

static TdVar *
handle_of (TdNode *n, TdBuffer *b, const TdSite *site)
{
  return n->var != NULL
             ? n->var
             : td__scope_add (td__var_new (td__node_ref (n), td__buffer_ref (b), site));
}

static bool
is_new (const Expansion *x, const TdOp *op)
{
  const uint64_t first = x->i->first_id;

  return op != NULL && op->id > first && op->id <= first + x->i->plan->s->forward.n_events;
}

/* The operations that interpreting has made, some of them more than once. */
static size_t
made_operations (const Expansion *x, TdOp **ops)
{
  size_t n = 0;

  for (uint32_t k = 0; k < x->i->entry->schedule->n_nodes; k++)
    if (x->vars[k] != NULL && is_new (x, x->vars[k]->node->creator))
      ops[n++] = x->vars[k]->node->creator;
  return n;
}

/* What the program holds of a result belongs to the operation that has made it now. */
static void
take_place (Expansion *x)
{
  const TdEntry *entry = x->i->entry;
  const TdSchedule *s = entry->schedule;
  TdOp **ops = td__xcalloc ((size_t)s->n_nodes + 1, sizeof *ops);
  const size_t n_ops = made_operations (x, ops);

  for (uint32_t k = 0; k < s->n_outputs; k++)
    {
      const uint32_t node = s->outputs[k].node;
      const TdValue *value = td__node_value (s, node);
      const bool own = value->kind == TD_VALUE_OUTPUT; /* or it shares an external's array */
      TdBuffer *array = own ? x->i->outputs[value->index] : x->vars[node]->buffer;
      TdNode *held = entry->op_out[k] != TD_ABSENT ? x->call->out[entry->op_out[k]] : NULL;

      if (held == NULL || !is_new (x, x->vars[node]->node->creator))
        continue;
      td__node_take_place (held, x->vars[node]->node, own ? array : NULL,
                           own ? x->i->out_versions[value->index] : 0, ops, n_ops);
      x->vars[node] = handle_of (held, array, x->i->site);
    }
  free (ops);
}

/* From the results' gradients on. */
static void
collect_roots (Expansion *x)
{
  const TdEntry *entry = x->i->entry;

  x->n = 0;
  for (uint32_t k = 0; k < entry->schedule->n_outputs; k++)
    if (entry->op_out[k] != TD_ABSENT)
      {
        x->ys[x->n] = x->vars[entry->schedule->outputs[k].node];
        x->gys[x->n++] = x->b->gy[entry->op_out[k]];
      }
}

/* The next backward like this is replayed. */
static void
trace_it (const Expansion *x)
{
  TdEntry *entry = x->i->entry;
  TdSchedule *s = entry->schedule;
  const uint64_t first = x->i->first_id;
  const uint32_t n_nodes = s->n_nodes;

  if (entry->trace != NULL || s->n_backwards >= TD_MAX_BACKWARDS || td__engine.hooks != NULL
      || (x->b != NULL && (td__backward_is_double (x->b) || td__backward_wants_results (x->b))))
    return;
  entry->trace
      = td__trace_of_backward (s, x->externals, first, first + s->forward.n_events, x->i->key);
  entry->trace->function = entry->function;
  for (uint32_t k = 0; k < n_nodes; k++)
    if (x->vars[k] != NULL)
      td__trace_know (entry->trace, k, x->vars[k]);
  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (entry->op_out[k] != TD_ABSENT)
      td__trace_know_output (entry->trace, k, x->vars[s->outputs[k].node]);
  td__trace_wait (entry->trace);
}

/* From what the call changed outside, as it was then, with the numbers of its changes: where
 * the code's graph has lost an array, or has it, this one has. */
static TdStatus
interpret (Expansion *x)
{
  const TdSchedule *s = x->i->entry->schedule;
  TdSavedState *now = NULL;
  uint32_t n_now = 0;
  TdStatus status;

  if (x->i->n_before > 0)
    {
      n_now = td__state_save (s, x->externals, &now);
      td__state_put_back (x->i->before, x->i->n_before);
    }
  status = td__interpret (s, x->externals, x->i->key, x->i->first_id, true, x->vars);
  td__state_restore (now, n_now, true);
  return status;
}

static TdStatus
expand (Expansion *x)
{
  const TdSchedule *s = x->i->entry->schedule;
  TdStatus status;

  for (uint32_t k = 0; k < s->n_externals; k++)
    /* held: the last hold on one may be that of the code's graph, which goes when it is
     * verified */
    x->externals[k] = td__var_ref (handle_of (x->call->in[k], x->i->externals[k], x->i->site),
                                   TD_HOLD_ENGINE);
  status = interpret (x);
  if (status != TD_OK)
    return status;
  if (x->b == NULL)
    {
      take_place (x);
      if (x->trace)
        trace_it (x);
      return TD_OK;
    }
  collect_roots (x);
  if (TD_UNLIKELY (x->i->code_graph != NULL)
      && !td__verify_graph (x->i, x->b, x->ys, x->gys, x->n, &status))
    return status;
  take_place (x);
  collect_roots (x);
  trace_it (x);
  return td__backward_splice (x->b, x->ys, x->gys, x->n, x->i->first_id + 1);
}

static TdStatus
expand_call (TdInstance *i, TdOp *call, TdBackward *b, bool trace)
{
  const TdSchedule *s = i->entry->schedule;
  Expansion x = { .i = i,
                  .call = call,
                  .b = b,
                  .trace = trace,
                  .externals = td__xcalloc ((size_t)s->n_externals + 1, sizeof *x.externals),
                  .vars = td__xcalloc ((size_t)s->n_nodes + 1, sizeof *x.vars) };
  TdStatus status = expand (&x);

  for (uint32_t k = 0; k < s->n_externals; k++)
    td__var_unref (x.externals[k], TD_HOLD_ENGINE);
  free (x.externals);
  free (x.vars);
  return status;
}

TdStatus
td__replay_expand (TdInstance *i, TdBackward *b)
{
  return expand_call (i, td__backward_op (b), b, true);
}

bool
td__replay_has_several_results (const TdOp *call)
{
  int n = 0;

  for (int k = 0; k < call->n_out; k++)
    n += call->out[k] != NULL;
  return n > 1;
}

/* While anything else runs. */
static void
expand_aside (TdInstance *i, TdOp *call, bool trace)
{
  TdEngine *e = &td__engine;
  TdTracer *tracer = e->tracer;
  const size_t start = e->n_scope_vars;

  e->tracer = NULL;
  call->refs++;
  expand_call (i, call, NULL, trace);
  td__scope_unwind (start);
  td__op_unref (call);
  e->tracer = tracer;
}

void
td__replay_expand_now (TdInstance *i, TdOp *call)
{
  if (td__replay_is_unwritten (i))
    expand_aside (i, call, true);
}

void
td__static_expand (TdOp *call)
{
  TdInstance *i;

  if (call->cls != &td__static_class || !td__replay_has_several_results (call))
    return;
  i = td__replay_instance_or_null (call);
  if (i != NULL && td__replay_is_unwritten (i))
    expand_aside (i, call, false);
  else if (i != NULL)
    i->cut = true; /* an error, if a backward should come */
}
