/* Interpreting a trace: its operations are run one by one through the engine, which makes an
 * ordinary graph without running the code.  This is needed for hooks on operations, for
 * derivatives of higher order, and for a backward that was never traced.
 *
 * SPDX-License-Identifier: MIT */
#include "entry.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  const TdSchedule *s;
  TdVar *const *externals;
  TdRngKey key;
  uint64_t first_id;
  bool again;
  TdVar **vars;
} Walk;

static void *
room (size_t bytes)
{
  void *memory = td__xmalloc (bytes + 1);

  return memory;
}

uint32_t
td__state_save (const TdSchedule *s, TdVar *const *externals, TdSavedState **to)
{
  TdSavedState *saved = *to = room (s->n_externals * sizeof *saved);
  uint32_t n = 0;

  for (uint32_t k = 0; k < s->n_externals; k++)
    if (td__node_value (s, s->externals[k].node)->is_state)
      {
        TdBuffer *b = externals[k]->buffer;

        saved[n] = (TdSavedState){ b, room (b->bytes), b->version,
                                   s->nodes[s->externals[k].node].dtype };
        if (b->device->computes)
          td__copy_out (b->device, saved[n].bytes, b->data, b->bytes, TD_COPY_CHECK, NULL,
                        b->writer);
        n++;
      }
  return n;
}

void
td__state_put_back (const TdSavedState *saved, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++)
    {
      TdBuffer *b = saved[k].buffer;

      if (b->device->computes)
        td__copy_in (b->device, b->data, saved[k].bytes, b->bytes, TD_COPY_CHECK, NULL,
                     b->writer);
      b->version = saved[k].version;
    }
}

void
td__state_restore (TdSavedState *saved, uint32_t n, bool back)
{
  if (back)
    td__state_put_back (saved, n);
  for (uint32_t k = 0; k < n; k++)
    free (saved[k].bytes);
  free (saved);
}

bool
td__state_is_read (const TdSchedule *s)
{
  /* running statistics it changes, and computes with those of the batch */
  const TdOpClass *normalization = td_op_class_find ("batch_normalization");

  for (uint32_t k = 0; k < s->forward.n; k++)
    {
      const TdStep *step = &s->forward.steps[k];

      if (step->kind != TD_STEP_COPY
          && (step->cls == NULL || step->n_out == 0 || step->cls == normalization))
        continue;
      for (uint32_t i = 0; i < step->n_in; i++)
        if (td__node_value (s, td__step_in (s, step, i))->is_state)
          return true;
    }
  return false;
}

/* The attributes of a step, with this run's key for random numbers. */
static const void *
attrs_of (const Walk *w, const TdStep *step, void *copy)
{
  TdRngKey *key = copy;

  if (!step->random)
    return step->attrs;
  memcpy (copy, step->attrs, step->cls->attrs_size);
  *key = (TdRngKey){ w->key.seed, w->key.offset + step->random_at };
  return copy;
}

static TdStatus
run_op (const Walk *w, const TdStep *step)
{
  TdVar *in_room[16], *out_room[16];
  TdVar **in = step->n_in > 16 ? room (step->n_in * sizeof *in) : in_room;
  TdVar **out = step->n_out > 16 ? room (step->n_out * sizeof *out) : out_room;
  void *copy = step->random ? room (step->cls->attrs_size) : NULL;
  TdStatus status;

  for (uint32_t k = 0; k < step->n_in; k++)
    in[k] = w->vars[td__step_in (w->s, step, k)];
  td__engine.path = step->path;
  if (w->again) /* as it was there: TD_NO_BACKPROP may be around parts of the code */
    td__engine.config.enable_backprop = step->graph;
  status = td__apply_at (step->cls, attrs_of (w, step, copy), in, (int)step->n_in, out,
                         (int)step->n_out, step->site);
  for (uint32_t k = 0; k < step->n_out; k++)
    w->vars[td__step_out (w->s, step, k)] = out[k];
  if (status == TD_OK && step->n_out > 0 && out[0]->node->creator != NULL)
    out[0]->node->creator->id = w->first_id + step->event; /* backward goes by it */
  free (copy);
  if (in != in_room)
    free (in);
  if (out != out_room)
    free (out);
  return status;
}

static TdStatus
run_fill (const Walk *w, const TdStep *step)
{
  TdEngine *e = &td__engine;
  const TdNodeInfo *n = &w->s->nodes[td__step_out (w->s, step, 0)];
  uint64_t offset = e->rng_offset, seed = e->rng_seed;
  TdDevice *device = e->device;
  TdVar *v;

  e->device = w->s->device;
  if (step->how.origin == TD_ARRAY_RANDOM)
    {
      e->rng_seed = w->key.seed;
      e->rng_offset = w->key.offset + step->random_at;
      v = step->how.random_kind == (int)TD_RANDOM_NORMAL
              ? td_randn ((TdDtype)n->dtype, n->shape)
              : td_rand ((TdDtype)n->dtype, n->shape);
      e->rng_seed = seed;
      e->rng_offset = offset;
    }
  else if (step->how.origin == TD_ARRAY_ARANGE)
    v = td_arange ((TdDtype)n->dtype, step->how.a,
                   step->how.a + step->how.b * (double)n->shape.dim[0], step->how.b);
  else
    v = td_full ((TdDtype)n->dtype, n->shape, step->how.a);
  e->device = device;
  w->vars[td__step_out (w->s, step, 0)] = v;
  return td_poisoned (v) ? TD_ERR_MEMORY : TD_OK;
}

static TdStatus
run_copy (const Walk *w, const TdStep *step)
{
  const TdNodeInfo *n = &w->s->nodes[td__step_out (w->s, step, 0)];
  TdVar *from = w->vars[td__step_in (w->s, step, 0)];
  TdVar *to
      = td__var_leaf ((TdDtype)n->dtype, &n->shape, w->s->device, TD_MEM_OTHER, step->site);

  if (to == NULL)
    return TD_ERR_MEMORY;
  to->node->layout = n->layout;
  w->vars[td__step_out (w->s, step, 0)] = td__scope_add (to);
  return w->s->device->computes ? w->s->device->ops->copy (
             w->s->device, to->buffer->data, from->buffer->data, to->buffer->bytes)
                                : TD_OK;
}

static TdStatus
run_step (const Walk *w, const TdStep *step)
{
  TdEngine *e = &td__engine;

  switch (step->kind)
    {
    case TD_STEP_OP:
      return run_op (w, step);
    case TD_STEP_FILL:
      return run_fill (w, step);
    case TD_STEP_COPY:
      return run_copy (w, step);
    case TD_STEP_EFFECT:
      if (!w->again)
        step->effect.run (step->effect.data,
                          step->n_in > 0 ? w->vars[td__step_in (w->s, step, 0)] : NULL);
      return TD_OK;
    case TD_STEP_LINK_ENTER:
    case TD_STEP_LINK_LEAVE:
      if (!w->again && e->observer != NULL)
        e->observer->link (e->observer, step->kind == TD_STEP_LINK_ENTER, step->path,
                           step->site);
      return TD_OK;
    default:
      return TD_OK;
    }
}

/* Constants of the trace become leaves of the graph. */
static void
put_constants (const Walk *w)
{
  const TdSchedule *s = w->s;

  for (uint32_t k = 0; k < s->n_nodes; k++)
    if (w->vars[k] == NULL && td__node_value (s, k)->kind == TD_VALUE_CONSTANT)
      {
        TdNode *n = td__node_new ();

        n->dtype = s->nodes[k].dtype;
        n->shape = s->nodes[k].shape;
        n->layout = s->nodes[k].layout;
        n->device = s->device;
        n->category = s->nodes[k].category;
        w->vars[k] = td__scope_add (
            td__var_new (n, td__buffer_ref (s->constants[td__node_value (s, k)->index].buffer),
                         td__engine.site));
      }
}

TdStatus
td__interpret (const TdSchedule *s, TdVar *const *externals, TdRngKey key, uint64_t first_id,
               bool again, TdVar **vars)
{
  TdEngine *e = &td__engine;
  const TdSite *site = e->site;
  const TdPath *path = e->path;
  const TdOp *twin = e->twin;
  uint64_t twin_id = e->twin_id;
  TdPhase phase = e->phase;
  int enable_backprop = e->config.enable_backprop;
  const TdHookTable *hooks = e->hooks;
  TdSavedState *saved = NULL;
  uint32_t n_saved = again ? td__state_save (s, externals, &saved) : 0;
  Walk w = { s, externals, key, first_id, again, vars };
  TdStatus status = TD_OK;

  for (uint32_t k = 0; k < s->n_externals; k++)
    vars[s->externals[k].node] = externals[k];
  put_constants (&w);
  e->phase = TD_PHASE_FORWARD;
  e->twin = NULL;
  e->twin_id = 0;
  if (again)
    e->hooks = NULL; /* hooks have seen this forward, or were added later */
  for (uint32_t k = 0; k < s->forward.n && status == TD_OK; k++)
    status = run_step (&w, &s->forward.steps[k]);
  e->config.enable_backprop = enable_backprop;
  e->hooks = hooks;
  e->site = site;
  e->path = path;
  e->twin = twin;
  e->twin_id = twin_id;
  e->phase = phase;
  td__state_restore (saved, n_saved, true);
  return status;
}
