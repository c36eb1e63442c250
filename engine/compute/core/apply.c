/* One call of an operation: check, infer, allocate, compute, keep the graph, tell the observer.
 *
 * This is the engine's hottest path: no allocation from libc for the usual numbers of operands,
 * no strings, one branch for the observer.
 *
 * SPDX-License-Identifier: MIT */
#include "before-write.h"
#include "host-memory.h"
#include "dot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  INLINE_OPERANDS = 8,
  UNSET = 1 << 7 /* the dtype of an output that infer has not set: no dtype has this bit */
};

typedef TdRun Run;

static const TdMemCategory category_of_phase[] = {
  [TD_PHASE_FORWARD] = TD_MEM_ACTIVATION,
  [TD_PHASE_BACKWARD] = TD_MEM_GRADIENT,
  [TD_PHASE_ACCUMULATE] = TD_MEM_GRADIENT,
  [TD_PHASE_UPDATE] = TD_MEM_OPTIMIZER,
};

static inline TdMemCategory
category_of (const Run *r)
{
  return TD_UNLIKELY (r->call.cls->flags & TD_OP_WORKSPACE)
             ? TD_MEM_WORKSPACE
             : category_of_phase[td__engine.phase];
}

void *
td_op_workspace (TdOpCall *call, size_t bytes)
{
  Run *r = (Run *)(void *)call; /* call is the first member */

  if (!td__list_there (call, 1, "td_op_workspace", NULL))
    return NULL;
  if (r->workspace != NULL)
    td__pool_release (r->workspace);
  r->workspace
      = TD_UNLIKELY (td__engine.capturing)
            ? td__pool_take_from (r->device->pool, TD_MEM_POOL_GRAPH, bytes, TD_MEM_WORKSPACE)
            : td__pool_take (r->device->pool, bytes, TD_MEM_WORKSPACE);
  if (r->workspace == NULL)
    {
      td__fail_memory (r->device, bytes, call->cls->name, r->site);
      return NULL;
    }
  return r->workspace->address;
}

static __attribute__ ((noinline, cold)) TdStatus
refuse_count (const Run *r)
{
  const TdOpClass *cls = r->call.cls;

  if (r->call.n_in < cls->n_in_min || (cls->n_in_max >= 0 && r->call.n_in > cls->n_in_max))
    return td__fail (TD_ERR_ARG, cls->name, r->site, "%d to %d inputs expected, got %d",
                     cls->n_in_min, cls->n_in_max, r->call.n_in);
  return td__fail (TD_ERR_ARG, cls->name, r->site,
                   "at most %d inputs and outputs expected, got %d and %d", UINT16_MAX,
                   r->call.n_in, r->call.n_out);
}

/* For poison nothing new is recorded. */
static __attribute__ ((noinline, cold)) TdStatus
refuse_input (const Run *r, const TdVar *v)
{
  const TdEngine *e = &td__engine;
  const TdOpClass *cls = r->call.cls;

  if (v == NULL || v->state != TD_VAR_LIVE)
    {
      td__var_usable (v, cls->name, r->site);
      return e->has_error ? e->error.status : TD_ERR_STATE;
    }
  return td__fail (TD_ERR_DEVICE, cls->name, r->site,
                   "operands on one device expected, got %s and %s", r->device->name,
                   v->node->device->name);
}

/* As many inputs as the class takes? */
static inline __attribute__ ((always_inline)) bool
count_fits (const Run *r)
{
  const TdOpClass *cls = r->call.cls;

  return r->call.n_in >= cls->n_in_min && (cls->n_in_max < 0 || r->call.n_in <= cls->n_in_max)
         && (r->call.n_in | r->call.n_out) <= UINT16_MAX;
}

/* Would the gradient of a call go on to its input i? */
static inline bool
gives_gradient_to (const TdOpClass *cls, int i, const TdNode *n)
{
  return n->requires_grad & !td__bit (cls->no_grad_in, i);
}

/* Inputs must be live, on one device; say what they are, and in call.layout in which layouts.
 * Returns TD_OK, or the status of the (first) error. */
static inline __attribute__ ((always_inline)) TdStatus
take_inputs (Run *r, TdTensor *in)
{
  uint8_t layout = TD_ROW_MAJOR;
  bool wants = false;

  for (int i = 0; i < r->call.n_in; i++)
    {
      const TdVar *v = r->in[i];
      TdNode *n;

      if (TD_UNLIKELY (v == NULL || v->state != TD_VAR_LIVE))
        return refuse_input (r, v);
      n = v->node;
      if (TD_UNLIKELY (n->device != r->device))
        return refuse_input (r, v);
      in[i].data = v->buffer->data;
      in[i].shape = &n->shape;
      in[i].dtype = (TdDtype)n->dtype;
      in[i].layout = n->layout;
      in[i].size = td__size (&n->shape);
      layout |= n->layout;
      wants |= gives_gradient_to (r->call.cls, i, n);
    }
  r->call.layout = layout;
  r->wants_gradient = wants;
  return TD_OK;
}

/* Give every output memory: a view shares the input's, an accumulation goes into its target. */
static inline __attribute__ ((always_inline)) TdStatus
allocate_outputs (Run *r)
{
  TdOpCall *call = &r->call;

  for (int i = 0; i < call->n_out; i++)
    {
      TdTensor *t = &call->out[i];
      size_t bytes;

      t->size = td__size (t->shape);
      bytes = (size_t)t->size * td__dtype_sizes[t->dtype];
      if (i == 0 && (call->cls->flags & TD_OP_VIEW))
        r->buffers[i] = td__buffer_ref (r->in[0]->buffer);
      else if (i == 0 && call->accumulate)
        r->buffers[i] = td__buffer_ref (r->into->buffer);
      else
        r->buffers[i] = td__buffer_take (r->device, bytes, (TdMemCategory)r->category);
      if (TD_UNLIKELY (r->buffers[i] == NULL))
        return td__fail_memory_of (r->device, t->shape, t->dtype, call->cls->name, r->site);
      t->data = r->buffers[i]->data;
    }
  return TD_OK;
}

/* Keep one array for backward. */
static inline void
retain (TdNode *n, TdBuffer *b)
{
  if (n->n_retains++ == 0)
    {
      n->retained = td__buffer_ref (b);
      b->n_saved++;
    }
}

static void *
larger (void *inline_room, size_t n, size_t inline_n, size_t item)
{
  void *p;

  if (TD_LIKELY (n <= inline_n))
    return inline_room;
  p = td__xmalloc (n * item);
  return p;
}

/* Build the graph's record of this call. */
TdOp *
td__graph_keep (const Run *r, uint64_t id)
{
  TdEngine *e = &td__engine;
  const TdOpCall *call = &r->call;
  const TdOpClass *cls = call->cls;
  TdOp *op = td__slab_take (&e->ops, sizeof *op);
  int n_in = call->n_in, n_out = call->n_out;

  op->refs = 0;
  op->mark = 0;
  op->orphans = 0;
  op->id = id;
  op->cls = cls;
  op->site = r->site;
  op->path = e->path;
  op->n_in = n_in;
  op->n_out = n_out;
  op->in = larger (op->in_inline, (size_t)n_in, TD_OP_INLINE_IN, sizeof *op->in);
  op->in_versions
      = larger (op->versions_inline, (size_t)n_in, TD_OP_INLINE_IN, sizeof *op->in_versions);
  op->out = larger (op->out_inline, (size_t)n_out, TD_ARRAY_LENGTH (op->out_inline),
                    sizeof *op->out);
  op->attrs = larger (op->attrs_inline, cls->attrs_size, sizeof op->attrs_inline, 1);
  if (cls->attrs_size > 0)
    memcpy (op->attrs, call->attrs, cls->attrs_size);
  op->retained_in = cls->retain_in & (n_in >= 32 ? ~0u : (1u << n_in) - 1);
  op->retained_out = cls->retain_out & (n_out >= 32 ? ~0u : (1u << n_out) - 1);
  for (int i = 0; i < n_in; i++)
    {
      op->in[i] = td__node_ref (r->in[i]->node);
      op->in_versions[i] = r->in[i]->buffer->version;
      if (td__bit (op->retained_in, i))
        retain (op->in[i], r->in[i]->buffer);
    }
  for (int i = 0; i < n_out; i++)
    {
      TdNode *n = r->nodes[i];

      op->out[i] = n;
      op->refs++;
      n->creator = op;
      n->out_index = (uint16_t)i;
      n->requires_grad = n->dtype <= TD_BF16;
      if (td__bit (op->retained_out, i))
        {
          retain (n, r->buffers[i]);
          n->retained_version = r->buffers[i]->version;
        }
    }
  return TD_UNLIKELY (e->config.keep_graph) ? td__keep_apart (r, op) : op;
}

static bool
wants_graph (const Run *r)
{
  const TdOpClass *cls = r->call.cls;

  /* Of the program's own without a backward: backward says so when it comes there. */
  if (!td__engine.config.enable_backprop || (cls->flags & TD_OP_NO_GRAD)
      || (cls->backward == NULL && cls != td__engine.no_backward))
    return false;
  return r->wants_gradient || TD_UNLIKELY (cls->flags & TD_OP_CAPTURES);
}

bool
td__wants_graph (const Run *r)
{
  Run asked = *r;

  asked.wants_gradient = false;
  for (int i = 0; i < r->call.n_in; i++)
    asked.wants_gradient |= gives_gradient_to (r->call.cls, i, r->in[i]->node);
  return wants_graph (&asked);
}

/* Config debug: every output must be finite. */
TdStatus
td__debug_check (const Run *r)
{
  const TdOp *twin = td__engine.phase == TD_PHASE_BACKWARD ? td__engine.twin : NULL;
  char whose[300] = "";

  if (twin != NULL)
    snprintf (whose, sizeof whose, ": backward of %s at %.200s:%d", twin->cls->name,
              twin->site != NULL ? twin->site->file : "?",
              twin->site != NULL ? twin->site->line : 0);
  for (int i = 0; i < r->call.n_out; i++)
    {
      TdStats stats;

      if (r->call.out[i].dtype > TD_BF16
          || r->device->ops->stats (r->device, &r->call.out[i], UINT64_MAX, 0, &stats) != TD_OK)
        continue;
      if (stats.n_nan > 0 || stats.n_pos_inf > 0 || stats.n_neg_inf > 0)
        return td__fail (TD_ERR_NUMERIC, r->call.cls->name, r->site,
                         "output %d has %lu NaN, %lu +inf, %lu -inf among %lu numbers%s", i,
                         (unsigned long)stats.n_nan, (unsigned long)stats.n_pos_inf,
                         (unsigned long)stats.n_neg_inf, (unsigned long)stats.n, whose);
    }
  return TD_OK;
}

/* Which of the operations of one backward this is.  A change of layout, which the CPU's run of
 * the same code does not have, is not counted, so that the others are the same ones on every
 * device. */
static uint32_t
order_of (TdEngine *e, const TdOpClass *cls)
{
  const bool forward = e->phase == TD_PHASE_FORWARD;

  if (TD_UNLIKELY (cls == &td__to_layout_class))
    return TD_ORDER_APART | (forward ? 0 : e->order);
  return forward ? 0 : e->order++;
}

/* In place: a copy of what was just written word by word waits for the stores. */
static inline __attribute__ ((always_inline)) void
fill_event (TdEvent *event, const Run *r, TdNode **in_nodes, uint64_t id)
{
  TdEngine *e = &td__engine;
  const TdOpClass *cls = r->call.cls;
  int n_in = r->call.n_in;

  for (int i = 0; i < n_in; i++)
    in_nodes[i] = r->in[i]->node;
  *event = (TdEvent){
    .id = id,
    .cls = cls,
    .attrs = r->call.attrs,
    .site = r->site,
    .path = e->path,
    .phase = e->phase,
    .flags
    = (r->call.accumulate ? TD_EVENT_ACCUMULATE : 0u) | (r->graph ? TD_EVENT_GRAPH : 0u)
      | (e->phase == TD_PHASE_BACKWARD && e->config.enable_backprop ? TD_EVENT_DOUBLE : 0u),
    .twin_id = e->twin_id,
    .order = order_of (e, r->call.cls),
    .n_in = n_in,
    .n_out = r->call.n_out,
    .in = in_nodes,
    .out = r->nodes,
    .out_buffers = r->buffers,
    .into = r->call.accumulate ? r->into->node : NULL,
    .retained_in = r->graph ? cls->retain_in : 0,
    .retained_out = r->graph ? cls->retain_out : 0,
  };
}

/* The outputs of a failed event are reported as memory alone: they end with it. */
static __attribute__ ((noinline, cold)) void
notify_buffers (TdObserver *o, const Run *r)
{
  for (int i = 0; i < r->call.n_out; i++)
    if (r->buffers[i] != NULL
        && !(i == 0 && ((r->call.cls->flags & TD_OP_VIEW) || r->call.accumulate)))
      o->buffer_new (o, r->buffers[i]);
}

/* Allocate and compute, between the observer's before and after. */
static inline __attribute__ ((always_inline)) TdStatus
compute (Run *r)
{
  TdEngine *e = &td__engine;
  TdObserver *o = e->observer;
  TdNode *room[INLINE_OPERANDS], **in_nodes = room;
  TdEvent event;
  TdStatus status;

  if (TD_UNLIKELY (o != NULL))
    {
      in_nodes = larger (room, (size_t)r->call.n_in, INLINE_OPERANDS, sizeof *in_nodes);
      fill_event (&event, r, in_nodes, e->next_id + 1);
      o->before_op (o, &event);
      r->device->algorithm = NULL;
    }
  status = allocate_outputs (r);
  if (TD_LIKELY (status == TD_OK) && !(r->call.cls->flags & TD_OP_VIEW) && r->device->computes)
    status = r->call.cls->forward (&r->call);
  if (TD_UNLIKELY (status != TD_OK && !e->has_error)) /* a kernel refused without a word */
    td__fail (status, r->call.cls->name, r->site, "not possible for %s on %s",
              td_dtype_name (r->call.n_in > 0 ? r->call.in[0].dtype : TD_F32), r->device->name);
  if (TD_UNLIKELY (e->config.debug) && status == TD_OK && r->device->computes)
    status = td__debug_check (r);
  if (TD_UNLIKELY (o != NULL))
    {
      if (TD_UNLIKELY (status != TD_OK))
        {
          event.flags |= TD_EVENT_FAILED;
          notify_buffers (o, r);
        }
      event.algorithm = r->device->algorithm;
      o->after_op (o, &event);
      if (in_nodes != room)
        free (in_nodes);
    }
  return status;
}

/* A call that failed before it could compute is an event as well, without outputs. */
static __attribute__ ((noinline, cold)) void
notify_failed (Run *r)
{
  TdObserver *o = td__engine.observer;
  TdNode *room[INLINE_OPERANDS];
  TdEvent event;

  if (o == NULL)
    return;
  for (int i = 0; i < r->call.n_in; i++)
    if (i >= INLINE_OPERANDS || r->in[i] == NULL || r->in[i]->state != TD_VAR_LIVE)
      return;
  fill_event (&event, r, room, ++td__engine.next_id);
  event.flags |= TD_EVENT_FAILED;
  event.n_out = 0;
  o->before_op (o, &event);
  o->after_op (o, &event);
}

/* The accumulation target is used only by a call whose result has just that shape. */
static bool
takes_into (const Run *r)
{
  const TdTensor *t = &r->call.out[0];

  return r->into != NULL && (r->call.cls->flags & TD_OP_ACCUMULATES) && r->call.n_out == 1
         && t->dtype == (TdDtype)r->into->node->dtype && t->layout == r->into->node->layout
         && td__same_shape (t->shape, &r->into->node->shape);
}

static void
fill_nodes (Run *r)
{
  r->category = (uint8_t)category_of (r);
  for (int i = 0; i < r->call.n_out; i++)
    {
      r->nodes[i]->dtype = (uint8_t)r->call.out[i].dtype;
      r->nodes[i]->layout = r->call.out[i].layout;
      r->nodes[i]->device = r->device;
      r->nodes[i]->category = r->category;
    }
}

static __attribute__ ((noinline, cold)) void
notify_tracer (const Run *r)
{
  TdTracer *t = td__engine.tracer;
  const TdTraceOp op = { .call = &r->call,
                         .in = r->in,
                         .nodes = r->nodes,
                         .buffers = r->buffers,
                         .site = r->site,
                         .path = td__engine.path,
                         .graph = r->graph,
                         .into = r->call.accumulate ? r->into : NULL };

  t->op (t, &op);
}

static __attribute__ ((noinline, cold)) void
announce_writes (const Run *r)
{
  for (int i = 0; i < r->call.n_in; i++)
    if (td__bit (r->call.cls->writes, i))
      td__will_be_written (r->in[i]->buffer);
}

/* Compute what infer allowed, and keep it. */
static inline __attribute__ ((always_inline)) TdStatus
run_inferred (Run *r, TdVar **out)
{
  TdEngine *e = &td__engine;
  TdStatus status;
  int n_out = r->call.n_out;

  fill_nodes (r);
  r->call.accumulate = TD_UNLIKELY (r->into != NULL) && takes_into (r);
  r->graph = wants_graph (r) || (TD_UNLIKELY (e->config.keep_graph) && td__keeps_graph (r));
  if (TD_UNLIKELY (td__before_write != NULL) && r->call.cls->writes != 0)
    announce_writes (r);
  status = compute (r);
  if (TD_UNLIKELY (r->workspace != NULL))
    td__pool_release (r->workspace);
  if (TD_UNLIKELY (status != TD_OK))
    {
      e->next_id++; /* the failed event keeps its id */
      for (int i = 0; i < n_out; i++)
        {
          td__buffer_unref (r->buffers[i]);
          td__node_unref (r->nodes[i]);
        }
      return status;
    }
  if (r->call.cls->writes != 0)
    for (int i = 0; i < r->call.n_in; i++)
      if (td__bit (r->call.cls->writes, i))
        td__buffer_written (r->in[i]->buffer, r->site);
  if (r->graph)
    td__graph_keep (r, ++e->next_id);
  else
    e->next_id++; /* the event's id, graph or not */
  if (TD_UNLIKELY (e->tracer != NULL))
    notify_tracer (r);
  if (r->call.accumulate) /* the result is the target, which has its owner */
    {
      td__buffer_written (r->buffers[0], r->site);
      td__buffer_unref (r->buffers[0]);
      td__node_unref (r->nodes[0]);
      r->into->flags |= TD_VAR_ADDED_TO;
      out[0] = td__scope_add (r->into);
      return TD_OK;
    }
  for (int i = 0; i < n_out; i++)
    out[i] = td__scope_add (td__var_new (r->nodes[i], r->buffers[i], r->site));
  if (TD_UNLIKELY (e->has_scaled) && e->phase == TD_PHASE_FORWARD)
    td__mark_scaled (r->in, r->call.n_in, out, n_out);
  return TD_OK;
}

TdFunctionCall
td__function_call (const TdOpClass *cls, const void *attrs, const TdSite *site,
                   const TdPath *path, char *label, size_t label_size)
{
  td__op_label (cls, attrs, label, label_size);
  return (TdFunctionCall){ .cls = cls,
                           .name = cls->name,
                           .label = label,
                           .attrs = attrs,
                           .path = path != NULL ? path->text : "",
                           .site = site };
}

/* Updates are no functions, nor is what the engine adds up: whether it does so in place is its
 * own matter.  With double backprop the sum is a part of the graph. */
static bool
is_function (const Run *r)
{
  const TdEngine *e = &td__engine;

  return r->call.n_out > 0 && e->phase != TD_PHASE_UPDATE
         && (e->phase != TD_PHASE_ACCUMULATE || e->config.enable_backprop);
}

/* The same between the hooks' pre and post. */
static __attribute__ ((noinline, cold)) TdStatus
run_hooked (Run *r, TdVar **out)
{
  TdEngine *e = &td__engine;
  char label[64];
  const TdHookTable *hooks = e->hooks;
  TdFunctionCall call
      = td__function_call (r->call.cls, r->call.attrs, r->site, e->path, label, sizeof label);
  TdStatus status;

  call.in_backward = e->phase != TD_PHASE_FORWARD;
  call.n_in = r->call.n_in;
  call.n_out = r->call.n_out;
  call.in = r->in;
  hooks->function (TD_MOMENT_FORWARD_PRE, &call);
  e->call_site = r->site;
  status = run_inferred (r, out);
  call.status = status;
  call.out = status == TD_OK ? out : NULL;
  call.id = e->next_id;
  hooks->function (TD_MOMENT_FORWARD_POST, &call);
  return status;
}

/* Has infer said what all outputs are? */
static inline bool
outputs_set (const Run *r)
{
  unsigned dtypes = 0;

  for (int i = 0; i < r->call.n_out; i++)
    dtypes |= (unsigned)r->call.out[i].dtype;
  return dtypes < UNSET;
}

static TdStatus
run (Run *r, TdVar **out)
{
  TdStatus status = r->call.cls->infer (&r->call);

  if (TD_UNLIKELY (status != TD_OK || !outputs_set (r)))
    {
      if (status == TD_OK)
        status = td__fail (TD_ERR_STATE, r->call.cls->name, r->site,
                           "infer says nothing of an output: td_op_out for each of %d expected",
                           r->call.n_out);
      else if (!td__engine.has_error)
        td__fail (status, r->call.cls->name, r->site,
                  "infer refuses its inputs (%s), and td_op_fail has not said why",
                  td_status_name (status));
      notify_failed (r);
      for (int i = 0; i < r->call.n_out; i++)
        td__node_unref (r->nodes[i]);
      return status;
    }
  if (TD_UNLIKELY (r->call.layout != TD_ROW_MAJOR))
    td__layout_outputs (r);
  if (TD_UNLIKELY (td__engine.hooks != NULL) && is_function (r))
    return run_hooked (r, out);
  return run_inferred (r, out);
}

/* The rest of a call, whose inputs are as it wants them. */
static inline __attribute__ ((always_inline)) TdStatus
apply_to (Run *r, TdVar **out)
{
  TdTensor out_room[INLINE_OPERANDS];
  TdNode *node_room[INLINE_OPERANDS];
  TdBuffer *buffer_room[INLINE_OPERANDS];
  const int n_out = r->call.n_out;
  TdTensor *tout = larger (out_room, (size_t)n_out, INLINE_OPERANDS, sizeof *tout);
  TdStatus status;

  r->nodes = larger (node_room, (size_t)n_out, INLINE_OPERANDS, sizeof *r->nodes);
  r->buffers = larger (buffer_room, (size_t)n_out, INLINE_OPERANDS, sizeof *r->buffers);
  for (int i = 0; i < n_out; i++)
    {
      r->nodes[i] = td__node_new ();
      r->buffers[i] = NULL;
      tout[i].shape = &r->nodes[i]->shape;
      tout[i].dtype = (TdDtype)UNSET;
      tout[i].layout = TD_ROW_MAJOR;
    }
  r->call.out = tout;
  status = run (r, out);
  if (TD_UNLIKELY (tout != out_room))
    {
      free (tout);
      free (r->nodes);
      free (r->buffers);
    }
  return status;
}

/* Some operand, or the device, is for another layout than row-major: the inputs in the one in
 * which the call is made.  room: where their list goes. */
static __attribute__ ((noinline, cold)) TdStatus
enter_layout (Run *r, TdTensor *tin, TdVar **room)
{
  TdStatus status = td__layout_begin (r, room);
  const uint8_t layout = r->call.layout;

  if (status == TD_OK)
    status = take_inputs (r, tin);
  r->call.layout = layout;
  return status;
}

/* Of a call that no plain one is: by its thread, or without a list. */
static __attribute__ ((noinline, cold)) TdStatus
may_begin (const TdOpClass *cls, TdVar *const *in, int n_in, TdVar **out, int n_out,
           const TdSite *site)
{
  if (td__check_thread (cls->name) != TD_OK)
    return TD_ERR_STATE;
  return td__list_there (in, n_in, cls->name, site)
                 && td__list_there (out, n_out, cls->name, site)
             ? TD_OK
             : td__error_status ();
}

TdStatus
td__apply_at (const TdOpClass *cls, const void *attrs, TdVar *const *in, int n_in, TdVar **out,
              int n_out, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdTensor in_room[INLINE_OPERANDS], *tin;
  TdVar *layout_room[INLINE_OPERANDS], **brought = NULL;
  TdStatus status;
  Run r;

  if (TD_UNLIKELY (!td__on_engine_thread () | (in == NULL) | (out == NULL)))
    {
      status = may_begin (cls, in, n_in, out, n_out, site);
      if (status != TD_OK)
        goto poisoned;
    }
  r.call = (TdOpCall){ .cls = cls, .attrs = attrs, .n_in = n_in, .n_out = n_out };
  r.in = in;
  r.site = site != NULL ? site : e->site;
  r.workspace = NULL;
  r.graph = false; /* until the call is known to be one that can be made */
  r.into = e->into;
  e->into = NULL;
  e->call_site = r.site;
  r.device = n_in > 0 && in[0] != NULL && in[0]->state == TD_VAR_LIVE ? in[0]->node->device
                                                                      : e->device;
  r.call.device = r.device;
  if (TD_UNLIKELY (!count_fits (&r)))
    {
      status = refuse_count (&r);
      goto poisoned;
    }
  tin = larger (in_room, (size_t)n_in, INLINE_OPERANDS, sizeof *tin);
  r.call.in = tin;
  status = take_inputs (&r, tin);
  if (TD_LIKELY (status == TD_OK)
      && TD_UNLIKELY (r.call.layout != TD_ROW_MAJOR
                      || (r.device->channels_last && (cls->flags & TD_OP_LAYOUTS))))
    {
      brought = larger (layout_room, (size_t)n_in, INLINE_OPERANDS, sizeof *brought);
      status = enter_layout (&r, tin, brought);
    }
  if (TD_LIKELY (status == TD_OK))
    status = apply_to (&r, out);
  if (TD_UNLIKELY (brought != NULL))
    {
      td__layout_end (&r, in);
      if (brought != layout_room)
        free (brought);
    }
  if (TD_UNLIKELY (tin != in_room))
    free (tin);
  if (TD_LIKELY (status == TD_OK))
    return TD_OK;
poisoned:
  for (int i = 0; i < n_out && out != NULL; i++)
    out[i] = td__poison ();
  return status;
}

TdVar *
td__apply1 (const TdOpClass *cls, const void *attrs, const TdSite *site, TdVar *x)
{
  TdVar *y;

  td__apply_at (cls, attrs, &x, 1, &y, 1, site);
  return y;
}

TdVar *
td__apply2 (const TdOpClass *cls, const void *attrs, const TdSite *site, TdVar *a, TdVar *b)
{
  TdVar *in[] = { a, b }, *y;

  td__apply_at (cls, attrs, in, 2, &y, 1, site);
  return y;
}

TdVar *
td__apply3 (const TdOpClass *cls, const void *attrs, const TdSite *site, TdVar *a, TdVar *b,
            TdVar *c)
{
  TdVar *in[] = { a, b, c }, *y;

  td__apply_at (cls, attrs, in, 3, &y, 1, site);
  return y;
}

TdVar *
td__applyn (const TdOpClass *cls, const void *attrs, const TdSite *site, TdVar *const *in,
            int n_in)
{
  TdVar *y;

  td__apply_at (cls, attrs, in, n_in, &y, 1, site);
  return y;
}

TdStatus
td__apply_update (const TdOpClass *cls, const void *attrs, TdVar *const *in, int n_in,
                  const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdPhase phase = e->phase;
  TdVar *none;
  TdStatus status;

  e->phase = TD_PHASE_UPDATE;
  status = td__apply_at (cls, attrs, in, n_in, &none, 0, site);
  e->phase = phase;
  return status;
}
