/* Replay: a schedule runs instead of the code.
 *
 * The graph gets one operation for the whole call, whose backward is a schedule too.  Gradients
 * for variables outside are propagated one by one, in the order of the trace, and accumulated
 * there like any others.  So a parameter that has a gradient already, or is used by several
 * calls, gets the same sum as from the code, bit for bit.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"
#include "host-memory.h"
#include "compute/core/before-write.h"
#include "compute/core/copies.h"
#include "compute/core/replayed.h"
#include "notify.h"
#include "capture.h"
#include "compute/cpu/packed.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdInstance *instance;
  uint64_t generation;
} StaticAttrs;

static TdStatus
fill (const TdReady *r)
{
  const TdStep *step = r->step;
  TdDevice *d = r->run.device;
  TdTensor *t = r->run.call.out;

  if (!d->computes)
    return TD_OK;
  if (step->how.origin == TD_ARRAY_RANDOM)
    return d->ops->random (d, (TdRandomKind)step->how.random_kind,
                           *(const TdRngKey *)r->run.call.attrs, 0, t);
  if (step->how.origin == TD_ARRAY_ARANGE)
    return d->ops->arange (d, t, step->how.a, step->how.b);
  return d->ops->fill (d, t, step->how.a);
}

/* Effects are run at the end, as a later read by the host may still cancel the replay. */
static TdStatus
effect (TdReplay *p, const TdReady *r)
{
  TdVar *v = NULL;

  if (r->step->n_in > 0)
    {
      v = td__replay_snapshot (p, td__step_in (p->i->plan->s, r->step, 0), r->step->site);
      if (v == NULL)
        return td__error_status ();
    }
  p->effects = td__xrealloc (p->effects, (p->n_effects + 1) * sizeof *p->effects);
  p->effects[p->n_effects].step = r->step;
  p->effects[p->n_effects++].v = v;
  return TD_OK;
}

static void
run_effects (TdReplay *p, TdStatus status)
{
  TdEngine *e = &td__engine;
  const TdSite *site = e->site;

  for (uint32_t k = 0; k < p->n_effects && status == TD_OK; k++)
    {
      const TdStep *step = p->effects[k].step;

      e->site = step->site != NULL ? step->site : p->i->site;
      step->effect.run (step->effect.data, p->effects[k].v);
    }
  e->site = site;
  free (p->effects);
  p->effects = NULL;
  p->n_effects = 0;
}

/* The code has read these numbers and may have branched on them: they must be the same. */
static TdStatus
host_read (const TdReplay *p, const TdReady *r)
{
  const TdTensor *t = r->run.call.in;
  size_t bytes = (size_t)t->size * td__dtype_sizes[t->dtype];
  TdDevice *d = r->run.device;
  void *now;
  bool same;

  if (!d->computes)
    return TD_OK;
  now = td__xmalloc (bytes + 1);
  same = td__copy_out (d, now, t->data, bytes, TD_COPY_CHECK, NULL, r->step->site) == TD_OK
         && memcmp (now, r->step->bytes, bytes) == 0;
  if (!same && p->miss != NULL)
    {
      p->miss->guard = "host read";
      p->miss->site = r->step->site;
      snprintf (p->miss->text, sizeof p->miss->text,
                "the code reads numbers that are others now: the first is %.9g, %.9g before",
                td__host_element (now, t->dtype, 0),
                td__host_element (r->step->bytes, t->dtype, 0));
    }
  free (now);
  return same ? TD_OK : TD_ERR_STATE;
}

static TdStatus
replay_other (TdReplay *p, TdReady *r)
{
  switch (r->step->kind)
    {
    case TD_STEP_FILL:
      return fill (r);
    case TD_STEP_COPY:
      return r->run.device->computes ? r->run.device->ops->copy (
                 r->run.device, r->run.call.out[0].data, r->run.call.in[0].data,
                 (size_t)r->run.call.out[0].size * td__dtype_sizes[r->run.call.out[0].dtype])
                                     : TD_OK;
    case TD_STEP_GROUP:
      return td__replay_group (p, r);
    case TD_STEP_EFFECT:
      return effect (p, r);
    case TD_STEP_HOST_READ:
      return host_read (p, r);
    case TD_STEP_PROPAGATE:
      return td__replay_propagate (p, r);
    default:
      return TD_ERR_STATE;
    }
}

/* The innermost replay that runs. */
static const TdReplay *running;

static bool
place_of (const TdOpCall *call, const TdSite **site, const TdPath **path)
{
  const TdReady *ready = running->list->ready, *r;
  const ptrdiff_t at = (const char *)call - (const char *)ready;

  if (at < 0 || (size_t)at >= running->list->n_ready * sizeof *ready)
    return false;
  r = &ready[(size_t)at / sizeof *ready]; /* the call is a part of it */
  *site = r->step->site != NULL ? r->step->site : running->i->site;
  *path = r->step->path;
  return true;
}

static TdStatus
failed (const TdReady *r, TdStatus status)
{
  const TdPath *outer_path = td__engine.path;

  if (td__engine.has_error || r->step->kind == TD_STEP_HOST_READ)
    return status;
  td__engine.path = r->step->path;
  td__fail (status, r->step->cls != NULL ? r->step->cls->name : "static schedule",
            r->step->site, "not possible on %s", r->run.device->name);
  td__engine.path = outer_path;
  return status;
}

/* Let the step use its packed matrix, and pack that if no earlier step has. */
static __attribute__ ((noinline)) void
offer_packed (const TdReplay *p, const TdReady *r)
{
  const TdPack *pack = &p->i->plan->packs[r->step->pack - 1];
  const float *b = (const float *)(const void *)p->i->address[pack->value];
  float *packed = (float *)(void *)((char *)p->i->arena->data + pack->offset);

  if (!*r->packed)
    td__packed_fill (b, pack->tb, pack->n, pack->k, packed);
  *r->packed = true;
  td__packed_offer (b, pack->tb, pack->n, pack->k, packed);
}

TdStatus
td__replay_one (TdReplay *p, TdReady *r)
{
  TdStatus status = TD_OK;

  if (r->packed != NULL)
    offer_packed (p, r);
  if (r->step->kind != TD_STEP_OP)
    status = replay_other (p, r);
  else if (r->run.device->computes)
    status = r->run.call.cls->forward (&r->run.call);
  if (r->packed != NULL)
    td__packed_offer (NULL, false, 0, 0, NULL);
  if (r->run.workspace != NULL)
    {
      td__pool_release (r->run.workspace);
      r->run.workspace = NULL;
    }
  if (TD_UNLIKELY (p->check != NULL) && status == TD_OK)
    td__check_step (p->check, p->i, r->step);
  return status == TD_OK ? TD_OK : failed (r, status);
}

static TdStatus
replay_list (TdReplay *p)
{
  const bool computes = p->i->plan->s->device->computes;

  memset (p->i->packed, 0, p->i->plan->n_packs * sizeof *p->i->packed);
  if (TD_UNLIKELY (td__engine.observer != NULL || td__engine.config.debug || p->check != NULL))
    return td__replay_observed (p);
  if (TD_UNLIKELY (p->i->plan->graphs) && td__captures_begin (p))
    return td__captures_replay (p);

  for (uint32_t k = 0; k < p->list->n_ready; k++)
    {
      TdReady *r = &p->list->ready[k];
      TdStatus status = TD_OK;

      if (TD_UNLIKELY (r->opens) && (status = td__replay_open (p, r)) != TD_OK)
        return status;
      if (TD_LIKELY (r->step->kind == TD_STEP_OP))
        {
          if (TD_UNLIKELY (r->packed != NULL))
            offer_packed (p, r);
          if (TD_LIKELY (computes))
            status = r->run.call.cls->forward (&r->run.call);
          if (TD_UNLIKELY (r->packed != NULL))
            td__packed_offer (NULL, false, 0, 0, NULL);
          if (TD_UNLIKELY (r->run.workspace != NULL))
            {
              td__pool_release (r->run.workspace);
              r->run.workspace = NULL;
            }
        }
      else
        status = replay_other (p, r);
      if (TD_UNLIKELY (status != TD_OK))
        return failed (r, status);
    }
  return TD_OK;
}

static TdStatus
run_replay (TdReplay *p)
{
  TdDevice *d = p->i->plan->s->device;
  const bool awake = p->list->short_products && d->ops->stay_awake != NULL;
  const TdReplay *outer = running;
  TdStatus status;

  running = p;
  td__replayed_place = place_of;
  if (awake)
    d->ops->stay_awake (d, true);
  status = replay_list (p);
  if (awake)
    d->ops->stay_awake (d, false);
  running = outer;
  td__replayed_place = outer != NULL ? place_of : NULL;
  return status;
}

/* --- forward --- */

static TdBuffer *
external_buffer (const TdSchedule *s, uint32_t k, TdVar *const *in)
{
  return k < s->n_arguments ? in[k]->buffer : s->externals[k].var->buffer;
}

static void
set_keys (TdReadyList *list, TdRngKey key)
{
  for (uint32_t k = 0; k < list->n_keys; k++)
    *list->keys[k] = (TdRngKey){ key.seed, key.offset + list->key_at[k] };
}

/* Bind buffers of outputs and externals.  Where memory is missing the error was reported. */
static TdStatus
bind_forward (TdInstance *i, TdVar *const *in)
{
  const TdSchedule *s = i->plan->s;

  for (uint32_t k = 0; k < i->forward.n_bound; k++)
    {
      const uint32_t v = i->forward.bound[k];
      const TdValue *value = &s->values[v];

      if (value->kind == TD_VALUE_EXTERNAL)
        td__instance_bind (i, &i->forward, v, external_buffer (s, value->index, in)->data);
      else if (value->kind == TD_VALUE_OUTPUT)
        {
          TdBuffer *b = td__buffer_new (s->device, value->bytes, TD_MEM_ACTIVATION);

          if (b == NULL)
            return td__fail_memory (s->device, value->bytes, "static schedule", i->site);
          i->outputs[value->index] = b;
          td__instance_bind (i, &i->forward, v, b->data);
        }
    }
  return TD_OK;
}

static void
announce_writes (const TdInstance *i, TdVar *const *in)
{
  for (uint32_t k = 0; k < i->n_writes; k++)
    td__will_be_written (external_buffer (i->plan->s, i->writes[k].external, in));
}

static void
note_writes (const TdInstance *i, TdVar *const *in)
{
  for (uint32_t k = 0; k < i->n_writes; k++)
    td__buffer_written (external_buffer (i->plan->s, i->writes[k].external, in),
                        i->writes[k].site);
}

/* As what an operation computes of a gradient that is times a loss scale. */
static __attribute__ ((noinline, cold)) void
mark_scaled (const TdSchedule *s, TdVar *const *in, TdVar **out)
{
  uint16_t by = TD_SCALED_BY_NONE;

  for (uint32_t k = 0; k < s->n_externals; k++)
    {
      const TdVar *v = k < s->n_arguments ? in[k] : s->externals[k].var;

      if (v->scaled_by != TD_SCALED_BY_NONE)
        by = by == TD_SCALED_BY_NONE ? v->scaled_by : td__scaled_by_both (by, v->scaled_by);
    }
  for (uint32_t k = 0; k < s->n_outputs && by != TD_SCALED_BY_NONE; k++)
    if (s->outputs[k].external == TD_ABSENT)
      out[k]->scaled_by = by;
}

/* Make the variables of the results.  A result that is an external, or the same as another, is
 * that variable. */
static void
make_outputs (TdInstance *i, TdVar *const *in, TdVar **out)
{
  const TdSchedule *s = i->plan->s;

  for (uint32_t k = 0; k < s->n_outputs; k++)
    {
      const TdOutput *o = &s->outputs[k];
      const TdValue *value = td__node_value (s, o->node);
      TdBuffer *b;

      if (o->same_as != TD_ABSENT)
        out[k] = out[o->same_as];
      else if (o->external != TD_ABSENT)
        out[k] = o->external < s->n_arguments ? in[o->external] : s->externals[o->external].var;
      else
        {
          b = value->kind == TD_VALUE_EXTERNAL ? external_buffer (s, value->index, in)
                                               : i->outputs[value->index];
          out[k] = td__replay_var (s, o->node, td__buffer_ref (b), i->site);
          td__observe_output (i, o->node, out[k]->node);
          continue;
        }
      td__scope_add (out[k]);
    }
}

/* Add the call's operation to the graph: its inputs are the externals, its outputs the
 * variables that the call has made. */
static void
keep_graph (TdInstance *i, TdVar *const *in, TdVar **out)
{
  const TdSchedule *s = i->plan->s;
  StaticAttrs attrs = { i, i->generation };
  TdVar **all = (TdVar **)i->room;
  TdNode **nodes = (TdNode **)(i->room + s->n_externals);
  TdBuffer **buffers = (TdBuffer **)(i->room + s->n_externals + s->n_outputs);
  int n = 0;
  TdOp *call;
  TdRun r = { .call = { .cls = &td__static_class, .attrs = &attrs }, .site = i->site };

  for (uint32_t k = 0; k < s->n_externals; k++)
    {
      all[k] = k < s->n_arguments ? in[k] : s->externals[k].var;
      i->externals[k] = td__buffer_ref (all[k]->buffer);
      i->versions[k] = all[k]->buffer->version;
    }
  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (i->entry->op_out[k] != TD_ABSENT)
      {
        nodes[n] = out[k]->node;
        buffers[n++] = out[k]->buffer;
      }
  for (uint32_t k = 0; k < s->n_outputs; k++)
    i->out_versions[k] = i->outputs[k] != NULL ? i->outputs[k]->version : 0;
  r.call.n_in = (int)s->n_externals;
  r.call.n_out = n;
  r.in = all;
  r.nodes = nodes;
  r.buffers = buffers;
  call = td__graph_keep (&r, i->first_id + s->forward.n_events);
  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (i->entry->op_out[k] != TD_ABSENT)
      out[k]->node->requires_grad = true;
  i->refs++;
  i->state = TD_INSTANCE_AWAITING;
  if (s->n_backwards == 0)
    td__replay_waits (i, call);
}

static TdStatus
poisoned (TdVar **out, uint32_t n, TdStatus status)
{
  for (uint32_t k = 0; k < n; k++)
    out[k] = td__poison ();
  return status;
}

static uint32_t
save_state (const TdSchedule *s, TdVar *const *in, TdSavedState **saved)
{
  TdVar **externals = td__xmalloc ((s->n_externals + 1) * sizeof *externals);
  uint32_t n;

  for (uint32_t k = 0; k < s->n_externals; k++)
    externals[k] = k < s->n_arguments ? in[k] : s->externals[k].var;
  n = td__state_save (s, externals, saved);
  free (externals);
  return n;
}

static TdStatus
replay_forward (TdEntry *entry, TdInstance *i, TdVar *const *in, TdVar **out, TdMiss *miss,
                TdCheck *check)
{
  TdEngine *e = &td__engine;
  const TdSchedule *s = i->plan->s;
  TdReplay p = { .i = i, .list = &i->forward, .miss = miss, .check = check };
  size_t start = e->n_scope_vars;
  TdSavedState *saved = NULL;
  uint32_t n_saved = 0;
  TdStatus status;

  if (TD_UNLIKELY (td__before_write != NULL))
    announce_writes (i, in);
  i->state = TD_INSTANCE_IN_FORWARD;
  i->backward_done = false;
  i->cut = false;
  i->generation++;
  i->key = (TdRngKey){ e->rng_seed, e->rng_offset };
  i->first_id = e->next_id;
  td__static_notify_run (TD_RUN_BEGINS, TD_RUN_REPLAYED, entry->function, i->plan->number, 0);
  if (entry->reads_host || entry->reads_state)
    n_saved = save_state (s, in, &saved);
  status = bind_forward (i, in);
  td__observe_forward (&p, in);
  if (status == TD_OK)
    {
      set_keys (&i->forward, i->key);
      status = run_replay (&p);
      run_effects (&p, check == NULL ? status : TD_ERR_STATE); /* the code has run them */
    }
  td__scope_unwind (start);
  if (status == TD_OK && entry->reads_state)
    {
      i->before = saved;
      i->n_before = n_saved;
    }
  else
    td__state_restore (saved, n_saved, status != TD_OK);
  td__static_notify_run (TD_RUN_ENDS, TD_RUN_REPLAYED, entry->function, i->plan->number, 0);
  if (status != TD_OK)
    {
      td__static_notify_run (TD_RUN_DISCARDED, TD_RUN_REPLAYED, entry->function, 0, 0);
      td__instance_drop (i);
      i->state = TD_INSTANCE_FREE;
      return miss->guard != NULL ? status : poisoned (out, s->n_outputs, status);
    }
  e->rng_offset += s->random_total;
  e->next_id = i->first_id + s->forward.n_events;
  note_writes (i, in);
  make_outputs (i, in, out);
  if (TD_UNLIKELY (e->has_scaled))
    mark_scaled (s, in, out);
  if (entry->keeps_graph)
    keep_graph (i, in, out);
  else
    {
      td__instance_drop (i);
      i->state = TD_INSTANCE_FREE;
    }
  return TD_OK;
}

TdStatus
td__replay_forward (TdEntry *entry, TdInstance *i, TdVar *const *in, TdVar **out,
                    const TdSite *site, TdMiss *miss, TdCheck *check)
{
  const TdSite *outer_site = td__engine.site;
  TdStatus status;

  i->site = site;
  td__engine.site = site; /* of the steps that have no line of their own */
  status = replay_forward (entry, i, in, out, miss, check);
  td__engine.site = outer_site;
  return status;
}

/* --- backward --- */

static uint64_t
given_gradients (const TdInstance *i, const TdBackward *b, uint64_t *alias)
{
  const TdEntry *entry = i->entry;
  uint64_t given = 0;

  *alias = 0;
  for (uint32_t k = 0; k < i->plan->s->n_outputs; k++)
    {
      const TdVar *g = entry->op_out[k] != TD_ABSENT ? b->gy[entry->op_out[k]] : NULL;

      if (g == NULL)
        continue;
      given |= (uint64_t)1 << k;
      for (uint32_t j = 0; j < k; j++)
        {
          const TdVar *other = entry->op_out[j] != TD_ABSENT ? b->gy[entry->op_out[j]] : NULL;

          if (other != NULL && other->buffer == g->buffer)
            *alias = *alias * 4096 + k * 64 + j + 1;
        }
    }
  return given;
}

/* The traced backward for these gradients of the outputs, or TD_ABSENT. */
static uint32_t
find_backward (const TdInstance *i, const TdBackward *b)
{
  const TdSchedule *s = i->plan->s;
  uint64_t alias, given = given_gradients (i, b, &alias);

  for (uint32_t k = 0; k < s->n_backwards; k++)
    {
      const TdBackwardTrace *t = &s->backwards[k];
      bool same = t->gy_given == given && t->gy_alias == alias;

      for (uint32_t n = 0; n < s->n_externals && same; n++)
        same = (td_backward_needs (b, (int)n) && (t->reach[n / 64] >> n % 64 & 1))
               == (t->wanted[n / 64] >> n % 64 & 1); /* td_grad_of may want any */
      if (same)
        return k;
    }
  return TD_ABSENT;
}

static void
bind_backward (TdInstance *i, TdReadyList *list, const TdBackward *b)
{
  const TdSchedule *s = i->plan->s;

  for (uint32_t k = 0; k < list->n_bound; k++)
    {
      const uint32_t v = list->bound[k];
      const TdValue *value = &s->values[v];

      if (value->kind == TD_VALUE_EXTERNAL)
        td__instance_bind (i, list, v, i->externals[value->index]->data);
      else if (value->kind == TD_VALUE_OUTPUT)
        td__instance_bind (i, list, v, i->outputs[value->index]->data);
      else
        td__instance_bind (i, list, v, b->gy[i->entry->op_out[value->index]]->buffer->data);
    }
}

TdStatus
td__replay_backward (TdInstance *i, TdBackward *b, uint32_t which)
{
  TdEngine *e = &td__engine;
  const TdSchedule *s = i->plan->s;
  TdReplay p
      = { .i = i, .list = &i->backwards[which], .b = b, .given = i->given, .added = i->added };
  TdStatus status;

  memset (i->given, 0, s->n_values * sizeof *i->given);
  memset (i->added, 0, s->n_values * sizeof *i->added);
  memset (i->kept, 0, s->n_externals * sizeof *i->kept);
  i->backward_done = true;
  bind_backward (i, p.list, b);
  set_keys (p.list, i->key);
  td__static_notify_run (TD_RUN_BEGINS, TD_RUN_REPLAYED, i->entry->function, i->plan->number,
                         which + 1);
  td__observe_backward (&p);
  status = run_replay (&p);
  td__static_notify_run (TD_RUN_ENDS, TD_RUN_REPLAYED, i->entry->function, i->plan->number,
                         which + 1);
  if (!p.observed)
    e->next_id += s->backwards[which].list.n_events;
  return status;
}

TdInstance *
td__replay_instance_or_null (const TdOp *call)
{
  const StaticAttrs *a = call->attrs;

  return a->instance->generation == a->generation ? a->instance : NULL;
}

static TdInstance *
instance_of (const TdOp *call)
{
  const TdInstance *i = ((const StaticAttrs *)call->attrs)->instance;
  TdInstance *still = td__replay_instance_or_null (call);

  if (still != NULL)
    return still;
  td__fail (TD_ERR_STATE, i->entry->owner != NULL ? i->entry->owner->name : "static",
            call->site,
            "the memory of this call was taken by the one at %s:%d: run backward before, or "
            "leave out td_static_end_forward",
            i->site != NULL ? i->site->file : "?", i->site != NULL ? i->site->line : 0);
  return NULL;
}

static TdStatus
static_backward (TdBackward *b)
{
  TdInstance *i = instance_of (td__backward_op (b));
  uint32_t which;
  bool again;
  TdStatus status;

  if (i == NULL)
    return TD_ERR_STATE;
  td__replay_waits_no_more (i);
  if (td__backward_is_double (b) && !i->entry->double_backprop)
    return td__fail (TD_ERR_STATE, i->entry->owner != NULL ? i->entry->owner->name : "static",
                     i->site,
                     "double backprop through a static function is off: make it with "
                     ".enable_double_backprop = true");
  which = find_backward (i, b);
  /* The call is given only what comes to a result from outside; a gradient that is kept has
   * what comes from other results as well. */
  again = which == TD_ABSENT || i->backward_done || i->cut || td__engine.hooks != NULL
          || td__backward_is_double (b)
          || (td__backward_wants_results (b)
              && td__replay_has_several_results (td__backward_op (b)));
  status = td__replay_unwritten (i, again);
  if (status != TD_OK && which == TD_ABSENT && i->entry->owner != NULL)
    td__static_evict (i->entry->owner, i->entry); /* the code may well have such a backward */
  if (status != TD_OK)
    return status;
  if (again)
    return td__replay_expand (i, b);
  if (TD_UNLIKELY (i->code_graph != NULL))
    return td__verify_backward (i, b, which);
  return td__replay_backward (i, b, which);
}

static void
static_release (void *attrs)
{
  StaticAttrs *a = attrs;

  if (a->instance->generation == a->generation)
    {
      td__instance_drop (a->instance);
      a->instance->state = TD_INSTANCE_FREE;
    }
  td__instance_unref (a->instance);
}

static TdStatus
static_infer (TdOpCall *call)
{
  return td_op_fail (call, TD_ERR_STATE, "no operation to be called");
}

const TdOpClass td__static_class = {
  .name = "static_schedule",
  .label = "StaticSchedule",
  .group = "static",
  .formula = "the operations of a static function",
  .n_in_min = 0,
  .n_in_max = -1,
  .n_out = -1,
  .flags = TD_OP_CAPTURES,
  .attrs_size = sizeof (StaticAttrs),
  .infer = static_infer,
  .backward = static_backward,
  .release = static_release,
};
